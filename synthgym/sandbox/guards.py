"""Run-time guards of the language layer: attribute reads and writes whose names or objects are known only then.

The compiler inserts the hooks `_getattr_`, `_write_` and `_clock_`; the builtins `getattr`, `setattr`, `hasattr`,
`delattr`, `vars`, `type` and the class builder are replaced. Names follow the tables in `names`, as at compile time.
"""

from __future__ import annotations

import builtins
import datetime
import enum
import random
import types
import typing
from collections.abc import Callable
from typing import Any, Final

from synthgym.sandbox import names
from synthgym.sandbox.formatting import SafeFormatter, is_plain_template
from synthgym.sandbox.writing import WriteGuard

MARK: Final = "_abc_made_by_source"
"""Attribute that marks a class made by this source. No source can spell it, because private names are renamed; the
prefix `_abc_` keeps `typing.Protocol` of Python 3.11 from taking it for a member."""

_BUILTIN_METHOD: Final[Any] = type("".join)
_BUILD_CLASS: Final[Any] = builtins.__build_class__
_SET_ON_CLASS = type.__setattr__
_SETATTR = setattr
_GETATTR = getattr


class FrozenModule(types.ModuleType):
    """A module that a source may import: filled once, then read-only."""

    def __init__(self, name: str, members: dict[str, Any]) -> None:
        super().__init__(f"env:{name}")  # never the name of a real module
        for key, value in members.items():
            types.ModuleType.__setattr__(self, key, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("modules are read-only for environments")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("modules are read-only for environments")

    def __getattr__(self, name: str) -> Any:
        module = self.__name__.removeprefix("env:")
        raise AttributeError(f"{module}.{names.restore(name)} is not available to environments")


class ReadOnlyDict(dict[str, Any]):
    """A copy of an instance's attributes; a live one would let a source plant special names."""

    def _refuse(self, *_args: object, **_kwargs: object) -> Any:
        raise TypeError("an instance's __dict__ is a read-only copy here: use setattr()")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


class _OpaqueMeta(type):
    """Type of the stand-ins for classes that a source must not hold."""

    _real: type = object

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._real)

    def __call__(cls, *_args: object, **_kwargs: object) -> Any:
        raise TypeError(f"{cls.__name__} objects cannot be made here")


class _TypeMeta(type):
    """Makes the stand-in for `type` answer like `type` for one argument and for `isinstance`."""

    def __call__(cls, *args: object) -> Any:
        if len(args) != 1:
            raise TypeError("type() takes one argument here: write a class statement instead")
        return cls.__dict__["answer"](args[0])

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, type)

    def __subclasscheck__(cls, subclass: object) -> bool:
        return isinstance(subclass, type) and issubclass(subclass, type)


class Guards:
    """The guards of one worker: they tell this source's classes and functions from everybody else's."""

    def __init__(self) -> None:
        self.builtins: dict[str, Any] = {}
        """The `__builtins__` of every namespace of this worker; a function that has them is the source's own."""
        self.inheritable: set[type] = set()
        self.public_types: set[type] = {type(None), type(...), type(NotImplemented)}
        self._opaque: dict[type, type] = {}
        self._token = object()
        self.writing = WriteGuard(MARK, self._token, self.own)
        self.write = self.writing.write
        self.type = _TypeMeta("type", (), {"answer": staticmethod(self.type_of)})

    def __reduce_ex__(self, _protocol: object) -> Any:
        """Refuse: `copy.deepcopy(getattr, memo)` would put a copy of this object's state into a source's memo."""
        raise TypeError("guards cannot be copied")

    # What is the source's own

    def made(self, cls: object) -> bool:
        """Whether `cls` is a class that this source made, or inherits from one."""
        return issubclass(type(cls), type) and _GETATTR(cls, MARK, None) is self._token

    def mark(self, cls: type) -> type:
        """`cls`, from now on taken for one that the source made."""
        type.__setattr__(cls, MARK, self._token)
        return cls

    def mark_body(self, namespace: dict[str, Any]) -> None:
        """Mark a class that is still a namespace: an enum runs its members' `__init__` before it exists."""
        dict.__setitem__(namespace, MARK, self._token)
        if "__new__" in namespace:
            dict.__setitem__(namespace, "__new__", self._checked_new(namespace["__new__"]))

    def own_function(self, value: object) -> bool:
        """Whether `value` is a function or method written in the source."""
        if type(value) is types.MethodType:
            value = value.__func__
        if type(value) is not types.FunctionType:
            return False
        return value.__globals__.get("__builtins__") is self.builtins

    def _owner(self, ob: object) -> object:
        """`ob`, or the object that a `super` object stands for."""
        return _GETATTR(ob, "__self__") if type(ob) is super else ob

    def own(self, ob: object) -> bool:
        """Whether `ob` is a class, an instance or a function of the source."""
        ob = self._owner(ob)
        return self.made(type(ob)) or self.made(ob) or self.own_function(ob)

    # Writing

    def _writable_name(self, name: object) -> str:
        if type(name) is not str:
            raise TypeError("attribute name must be a plain string")
        refused = names.is_dunder(name) or names.reserved(name) is not None
        if refused and name not in names.ENUM_NAMES:
            raise AttributeError(f"attribute {name!r} cannot be set by environments")
        return names.rename(name)

    def setattr(self, ob: Any, name: str, value: object) -> None:
        """`setattr` with the rules of an assignment."""
        _SETATTR(self.write(ob), self._writable_name(name), value)

    def delattr(self, ob: Any, name: str) -> None:
        """`delattr` with the rules of a deletion."""
        delattr(self.write(ob), self._writable_name(name))

    # Reading

    def getattr_hook(self, ob: Any, name: str) -> Any:
        """Read an attribute by a name that is exactly a str; refuse what no source may read."""
        if not name.startswith("_"):
            if name in names.GUARDED:
                return self._guarded(ob, name)
        elif names.is_dunder(name):
            return self._dunder(ob, name)
        reason = names.reserved(name)
        if reason is not None and name not in names.ENUM_NAMES:
            raise AttributeError(f"attribute {name!r} is not available to environments")
        return _GETATTR(ob, names.rename(name))

    def getattr(self, ob: Any, name: str, *default: Any) -> Any:
        """`getattr` with the rules of an attribute in the source."""
        if type(name) is not str:
            raise TypeError("attribute name must be a plain string")
        if len(default) > 1:
            raise TypeError("getattr expected at most 3 arguments")
        try:
            return self.getattr_hook(ob, name)
        except AttributeError:
            if default:
                return default[0]
            raise

    def hasattr(self, ob: Any, name: str) -> bool:
        """`hasattr` with the rules of an attribute in the source."""
        try:
            self.getattr(ob, name)
        except AttributeError:
            return False
        return True

    def _guarded(self, ob: Any, name: str) -> Any:
        if type(ob) is str and name == "format":  # by far the most frequent
            return lambda *args, **values: self._run_format(ob, args, values)
        value = _GETATTR(ob, name)
        if name in names.PROXIES:
            return dict(value) if type(value) is types.MappingProxyType else value
        if name in names.CLOCKS:
            if clock_class(value) is not None:
                raise AttributeError(f"write .{name}() in the source to read the virtual clock")
            return value
        safe = self._safe_format(value) if name in names.FORMATS else None
        if safe is not None:
            return safe
        if self.own_function(value) or self.own(ob):
            return value
        raise AttributeError(f"attribute {name!r} of {type(ob).__name__} is not available")

    def _dunder(self, ob: Any, name: str) -> Any:
        special = _SPECIAL.get(name)
        if name not in names.READ_DUNDERS or (type(ob) is FrozenModule and special is None):
            raise AttributeError(f"attribute {name!r} is not available to environments")
        return special(self, ob, name) if special else _GETATTR(ob, name)

    def _named(self, ob: Any, name: str) -> Any:
        text = _GETATTR(ob, name)
        return names.restore(text.removeprefix("env:")) if type(text) is str else text

    def _class(self, ob: Any, _name: str) -> Any:
        return self.type_of(ob)

    def _members(self, ob: Any, name: str) -> Any:
        value = _GETATTR(ob, name)
        return dict(value) if type(value) is types.MappingProxyType else value

    def _dict(self, ob: Any, name: str) -> Any:
        if not self.made(type(ob)):
            raise AttributeError(f"attribute {name!r} is available on your own instances only")
        shown = {names.restore(k): v for k, v in ob.__dict__.items() if not names.is_dunder(k)}
        return ReadOnlyDict(shown)

    def _own_dunder(self, ob: Any, name: str) -> Any:
        """`super().__init__`, `Base.__init__`: never on library objects, `property.__init__` rewrites them."""
        listed = name != "__init_subclass__" and self.may_inherit(ob)
        if not listed and not self.own(ob):
            raise AttributeError(f"attribute {name!r} of {type(ob).__name__} is not available")
        return _GETATTR(ob, name)

    def _set_field(self, ob: Any, name: str) -> Any:
        """`object.__setattr__`, for the source's own instances: what `setattr` does but for a frozen dataclass."""
        if ob is not object:
            raise AttributeError(f"attribute {name!r} is available on object only")

        def set_field(instance: Any, name: str, value: object, /) -> None:
            if not self.made(type(instance)):
                raise TypeError("object.__setattr__ works on instances of your own classes only")
            object.__setattr__(self.write(instance), self._writable_name(name), value)

        return set_field

    def _write_dunder(self, ob: Any, name: str) -> Any:
        if not self.may_inherit(ob):
            self.write(self._owner(ob))
        return _GETATTR(ob, name)

    # str.format walks attributes in C: fields with a path go through `getattr` above

    def _safe_format(self, value: Any) -> Callable[..., str] | None:
        """A checked stand-in when `value` is `str.format` or `str.format_map`, bound or not; else None."""
        run, run_map = self._run_format, self._run_format_map
        # `is`, never `==`: that would hand the raw method to the `__eq__` of a source's object.
        if value is str.format:
            return lambda text, /, *args, **kwargs: run(text, args, kwargs)
        if value is str.format_map:
            return lambda text, mapping, /: run_map(text, mapping)
        if type(value) is not _BUILTIN_METHOD or not issubclass(type(value.__self__), str):
            return None
        text = str.__str__(value.__self__)
        if value.__name__ == "format":
            return lambda *args, **kwargs: run(text, args, kwargs)
        return lambda mapping, /: run_map(text, mapping)

    def _run_format(self, text: str, args: tuple[Any, ...], values: dict[str, Any]) -> str:
        text = str.__str__(text)  # exact, whatever `str.format` was called on
        if is_plain_template(text):
            return text.format(*args, **values)
        return SafeFormatter(self.getattr, args, values).expand(text)

    def _run_format_map(self, text: str, mapping: Any) -> str:
        text = str.__str__(text)
        if is_plain_template(text):
            return text.format_map(mapping)
        return SafeFormatter(self.getattr, None, mapping).expand(text)

    # Types and classes

    def type_of(self, ob: Any) -> Any:
        """What `type(ob)` and `ob.__class__` give: the class when it is harmless, else an opaque stand-in."""
        cls = type(ob)
        if issubclass(cls, type):
            return self.type
        if cls in self.public_types or _GETATTR(cls, MARK, None) is self._token:
            return cls
        if cls not in self._opaque:
            self._opaque[cls] = _OpaqueMeta(cls.__name__, (), {"_real": cls})
        return self._opaque[cls]

    def vars(self, ob: Any) -> Any:
        """Return a read-only copy of the attributes of an instance of the source's classes."""
        if not self.made(type(ob)):
            raise TypeError("vars() works on instances of your own classes here")
        return self._dict(ob, "__dict__")

    def may_inherit(self, base: Any) -> bool:
        """Whether a source may derive from `base`; what is not listed is refused."""
        if not issubclass(type(base), type):
            return False
        return base in self.inheritable or self.made(base) or issubclass(base, random.Random)

    def build_class(self, body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
        """Build a class from allowed bases only, and mark it as the source's own."""
        if not bases and not keywords:  # most classes: this runs again for every instance
            plain = _BUILD_CLASS(body, name)
            _SET_ON_CLASS(plain, MARK, self._token)
            if "__new__" in vars(plain):
                self._check_new(plain)
            return plain
        if not set(keywords) <= {"total"}:
            raise TypeError("class keywords are not available to environments")
        real = []
        for base in bases:
            origin = base if issubclass(type(base), type) else typing.get_origin(base)
            stand_in = type(base) is StandInBase
            if not stand_in and not (origin is not None and self.may_inherit(origin)):
                raise TypeError(f"environments cannot derive a class from {base!r}")
            real.append(base._real if stand_in else base)
        made = self.mark(_BUILD_CLASS(body, name, *real, **keywords))
        generated = isinstance(made, enum.EnumMeta) or StandInBase in map(type, bases)
        if "__new__" in vars(made) and not generated:  # for that of an enum see `mark_body`
            self._check_new(made)
        return made

    def _check_new(self, cls: Any) -> None:
        _SET_ON_CLASS(cls, "__new__", self._checked_new(vars(cls)["__new__"]))

    def _checked_new(self, made: Any) -> Any:
        """`__new__` of a source that gives objects of its classes only.

        The library sets attributes on what it gets, past the write guard: `copy.copy` and the enum classes do.
        """
        make = made.__func__ if type(made) is staticmethod else made
        if type(make) is not types.FunctionType:
            raise TypeError("__new__ must be a function")

        def __new__(cls: Any, /, *args: Any, **values: Any) -> Any:
            ob = make(cls, *args, **values)
            if not self.made(type(ob)):
                raise TypeError("__new__ must return an object of one of your own classes")
            return self.write(ob)

        return staticmethod(__new__)


class StandInBase:
    """Stands for `NamedTuple` or `TypedDict` as a base class; calling it runs a checked replacement.

    Its attributes are private, and so out of reach: a source's `x._real` reads `sg0_real`.
    """

    __slots__ = ("_call", "_real")

    def __init__(self, real: Any, call: Callable[..., Any]) -> None:
        self._real = real
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __reduce_ex__(self, _protocol: object) -> Any:
        """Refuse, as `Guards` does: a copy would lead to what this stands for."""
        raise TypeError("stand-ins cannot be copied")


def clock_class(value: Any) -> Any:
    """The class whose real clock `value` reads (`datetime.now` and the like), or None."""
    if type(value) is not _BUILTIN_METHOD or value.__name__ not in names.CLOCKS:
        return None
    owner = value.__self__
    is_date = issubclass(type(owner), type) and issubclass(owner, datetime.date)
    return owner if is_date else None


_SPECIAL: Final[dict[str, Callable[[Guards, Any, str], Any]]] = {
    "__class__": Guards._class,
    "__dict__": Guards._dict,
    "__doc__": Guards._named,
    "__members__": Guards._members,
    "__module__": Guards._named,
    "__name__": Guards._named,
    "__qualname__": Guards._named,
    "__setattr__": Guards._set_field,
    **dict.fromkeys(names.OWN_DUNDERS, Guards._own_dunder),
    **dict.fromkeys(names.WRITE_DUNDERS, Guards._write_dunder),
}
