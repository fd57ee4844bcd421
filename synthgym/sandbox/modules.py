"""What a source may import and use without import: frozen facades filled from the lists in `names.MODULES`.

They are built once a worker. `random`, `time` and the clock belong to an instance (`streams`).
"""

from __future__ import annotations

import abc
import builtins
import collections
import collections.abc
import copy
import dataclasses
import decimal
import enum
import functools
import importlib
import keyword
import sys
import types
import typing
import unicodedata
from collections.abc import Callable
from typing import Any, Final

from synthgym.sandbox import names
from synthgym.sandbox.guards import FrozenModule, Guards, StandInBase


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


INSTANCE_MODULES: Final = frozenset({"random", "time"})
"""Modules that every instance has for itself."""

_BUILTINS: Final = _words(
    """
    abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter
    float format frozenset hash hex id int isinstance issubclass iter len list map max min next object oct
    ord pow property range repr reversed round set slice sorted staticmethod str sum super tuple zip True
    False None Ellipsis NotImplemented
    """
)

_INHERITABLE: Final = {
    "builtins": "object int float complex str bytes bytearray list tuple dict set frozenset",
    "collections": "deque defaultdict Counter OrderedDict ChainMap UserDict UserList",
    "collections.abc": " ".join(names.MODULES["collections.abc"]),
    "fractions": "Fraction",
    "json": "JSONDecodeError",
    "numbers": "Number Complex Real Rational Integral",
    "queue": "Queue LifoQueue PriorityQueue",
    "random": "Random",
    "typing": "Generic Protocol",
    "abc": "ABC",
}
"""Library classes that a source may derive from; exceptions and the enum classes come on top."""

_PRELOADED: Final = {
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "dataclasses": "dataclass field",
    "enum": "Enum IntEnum auto",
    "abc": "ABC abstractmethod",
    "functools": "cache cmp_to_key lru_cache partial reduce",
    "itertools": "accumulate chain combinations count cycle groupby permutations product",
    "copy": "deepcopy",
    "fractions": "Fraction",
    "typing": "Any Callable Dict FrozenSet Generic Iterable Iterator List Literal NamedTuple Optional Sequence Set"
    " Tuple TypeVar Union",
}
"""Names in use without an import, because generators forget imports; a source's own names win."""

_PRELOADED_MODULES: Final = (
    "bisect collections copy functools heapq itertools json math operator re string"
)


def build_modules(guards: Guards) -> dict[str, FrozenModule]:
    """The facades that all instances of a worker share; also tells `guards` which classes are harmless."""
    importlib.import_module(
        "_strptime"
    )  # `datetime.strptime` wants it, and a locked worker cannot load it
    replaced = _replacements(guards)
    facades: dict[str, FrozenModule] = {}
    for module, wanted in names.MODULES.items():
        if module in INSTANCE_MODULES or module == "typing_extensions":
            continue
        real = importlib.import_module(module)
        members = {
            name: replaced[module, name] if (module, name) in replaced else getattr(real, name)
            for name in wanted
            if (module, name) != ("collections", "abc")
        }
        if module == "collections":
            abstract = names.MODULES["collections.abc"]
            members["abc"] = FrozenModule(
                "collections.abc", {name: getattr(collections.abc, name) for name in abstract}
            )
        facades[module] = FrozenModule(module, members)
    facades["collections.abc"] = facades["collections"].abc
    facades["typing_extensions"] = facades["typing"]
    _classify(guards, facades)
    return facades


def _classify(guards: Guards, facades: dict[str, FrozenModule]) -> None:
    members = [value for facade in facades.values() for value in vars(facade).values()]
    classes = {value for value in members if isinstance(value, type)}
    exceptions = {value for value in classes | _exceptions() if issubclass(value, BaseException)}
    named = {
        getattr(importlib.import_module(module), name)
        for module, text in _INHERITABLE.items()
        for name in text.split()
    }
    enums = {value for value in classes if isinstance(value, enum.EnumMeta)}
    builtin = {value for name in _BUILTINS if isinstance(value := getattr(builtins, name), type)}
    guards.inheritable |= named | exceptions | enums
    guards.public_types |= classes | exceptions | builtin


def _exceptions() -> set[type]:
    return {
        value
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException) and "Group" not in name
    }


def build_builtins(guards: Guards, facades: dict[str, FrozenModule]) -> dict[str, Any]:
    """Fill and return `guards.builtins`: hooks, builtins and the preloaded names."""
    table = guards.builtins
    for module in _PRELOADED_MODULES.split():
        table[module] = facades[module]
    for module, wanted in _PRELOADED.items():
        table.update({name: getattr(facades[module], name) for name in wanted.split()})
    table.update({name: getattr(builtins, name) for name in _BUILTINS})
    table.update({cls.__name__: cls for cls in _exceptions()})
    table.update(EnvironmentError=OSError, IOError=OSError)
    table.update({f"_t_{name}_": getattr(builtins, name) for name in names.MATCH_TYPES})
    table.update(
        _t_ClassVar_=typing.ClassVar,
        _t_InitVar_=dataclasses.InitVar(object),
        _t_KW_ONLY_=dataclasses.KW_ONLY,
        _getattr_=guards.getattr_hook,
        _write_=guards.write,
        __build_class__=guards.build_class,
        __import__=_import_for_c,
        __name__="env",
        getattr=guards.getattr,
        hasattr=guards.hasattr,
        setattr=guards.setattr,
        delattr=guards.delattr,
        vars=guards.vars,
        type=guards.type,
        print=_print,
    )
    return table


def _import_for_c(name: str, *_rest: object) -> types.ModuleType:
    """Serve the library's own C code (`datetime.strptime`, `typing.Generic`), which imports by the caller's builtins.

    A source cannot reach this: no import statement is left in its code and it cannot spell the name.
    """
    if name not in sys.modules:
        raise ImportError(f"module {name!r} is not loaded")
    return sys.modules[name]


def _ignore(_value: object, /) -> None:
    """Do nothing."""


def _print(
    *_values: object, sep: object = None, end: object = None, file: object = None, flush: object = 0
) -> None:
    """Nothing: an environment has no output but its observations."""


def _replacements(guards: Guards) -> dict[tuple[str, str], Any]:
    """Checked stand-ins for what would execute text, write to library objects or read the machine."""
    namedtuple = _namedtuple(guards)
    made: dict[tuple[str, str], Any] = {
        ("abc", "abstractmethod"): _abstractmethod(guards),
        ("collections", "namedtuple"): namedtuple,
        ("dataclasses", "dataclass"): _dataclass(guards),
        ("dataclasses", "fields"): _fields,
        ("dataclasses", "replace"): _replace,
        ("dataclasses", "asdict"): _asdict,
        ("decimal", "getcontext"): _getcontext,
        ("functools", "total_ordering"): _own_classes_only(guards, functools.total_ordering),
        ("functools", "wraps"): _wraps(guards),
        ("operator", "attrgetter"): _attrgetter(guards),
        ("operator", "methodcaller"): _methodcaller(guards),
        ("sys", "setrecursionlimit"): _ignore,
        ("sys", "getrecursionlimit"): lambda: 1000,
        ("typing", "NamedTuple"): StandInBase(typing.NamedTuple, _typed_namedtuple(namedtuple)),
        ("typing", "TypedDict"): StandInBase(typing.TypedDict, _refuse_typed_dict),
        ("typing", "runtime_checkable"): _own_classes_only(guards, typing.runtime_checkable),
        ("typing", "final"): lambda thing, /: thing,
        ("typing", "overload"): lambda function, /: function,
    }
    made["typing", "Counter"] = typing.Counter
    return made | _enum_bases(guards)


def _own_classes_only(guards: Guards, decorate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorator(cls: Any) -> Any:
        if not guards.made(cls):
            raise TypeError("this decorator works on your own classes only")
        return decorate(cls)

    return decorator


def _abstractmethod(guards: Guards) -> Callable[[Any], Any]:
    def abstractmethod(function: Any) -> Any:
        wrappers = (property, classmethod, staticmethod)
        if not guards.own_function(function) and type(function) not in wrappers:
            raise TypeError("abstractmethod works on your own functions only")
        return abc.abstractmethod(function)

    return abstractmethod


def _wraps(guards: Guards) -> Callable[..., Any]:
    def wraps(wrapped: Any, *_assigned: object, **_updated: object) -> Callable[[Any], Any]:
        def decorate(wrapper: Any) -> Any:
            if guards.own_function(wrapper) and type(wrapper) is types.FunctionType:
                for name in ("__name__", "__qualname__", "__doc__"):
                    value = getattr(wrapped, name, None)
                    if type(value) is str:
                        setattr(wrapper, name, value)
                if guards.own_function(wrapped):
                    wrapper.__dict__.update(wrapped.__dict__)
            return wrapper

        return decorate

    return wraps


def _plain_name(text: object, what: str) -> str:
    """`text` as an exact str that can be a field; names are pasted into code that the library executes."""
    name = str.__str__(text) if isinstance(text, str) else ""
    parsed = unicodedata.normalize("NFKC", name)  # what the parser of that code will read
    usable = name.isidentifier() and not keyword.iskeyword(parsed) and not names.is_dunder(parsed)
    if not usable or names.reserved(parsed):
        raise ValueError(f"{name!r} cannot be a {what}")
    return name


def _namedtuple(guards: Guards) -> Callable[..., Any]:
    make: Any = collections.namedtuple  # mypy wants literal fields

    def namedtuple(
        typename: str, field_names: Any, *, rename: bool = False, defaults: Any = None
    ) -> Any:
        if isinstance(field_names, str):
            field_names = str.__str__(field_names).replace(",", " ").split()
        fields = [_plain_name(field, "field name") for field in field_names]
        name = _plain_name(typename, "type name")
        return guards.mark(make(name, fields, rename=rename, defaults=defaults, module="env"))

    return namedtuple


def _typed_namedtuple(namedtuple: Callable[..., Any]) -> Callable[..., Any]:
    def typed(typename: str, fields: Any = ()) -> Any:
        return namedtuple(typename, [name for name, _kind in fields])

    return typed


def _refuse_typed_dict(*_args: object, **_kwargs: object) -> Any:
    raise TypeError("TypedDict works as a base class only: write a class statement")


def _dataclass(guards: Guards) -> Callable[..., Any]:
    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        def decorate(target: Any) -> Any:
            if not guards.made(target):
                raise TypeError("dataclass works on your own classes only")
            for field in vars(target).get("__annotations__", {}):
                _plain_field(field)
            _give_docstring(target)
            made = guards.mark(dataclasses.dataclass(target, **options))
            if any(field.startswith(names.PREFIX) for field in vars(made)["__dataclass_fields__"]):
                _show_private_fields(made, init=bool(options.get("init", True)))
            return made

        return decorate if cls is None else decorate(cls)

    return dataclass


def _give_docstring(cls: Any) -> None:
    """A class without one would get its signature, and `inspect` evaluates names in the docstrings of its bases."""
    doc = vars(cls).get("__doc__")
    if type(doc) is not str or not doc:
        cls.__doc__ = names.restore(cls.__name__)


def _plain_field(field: object) -> None:
    renamed = type(field) is str and field.startswith(names.PREFIX + "_")
    _plain_name(names.restore(field) if renamed and type(field) is str else field, "field name")


def _show_private_fields(cls: Any, *, init: bool) -> None:
    """Let callers and `repr` see private fields under the names that the source gave them."""
    make, show = cls.__init__, cls.__repr__

    def __init__(self: Any, /, *args: Any, **values: Any) -> None:
        make(self, *args, **{names.rename(name): value for name, value in values.items()})

    def __repr__(self: Any) -> str:
        return names.restore(show(self))

    if init:
        cls.__init__ = __init__
    cls.__repr__ = __repr__


def _fields(thing: Any) -> tuple[Any, ...]:
    """Copies of the fields, under the names that the source gave them."""
    found = [copy.copy(item) for item in dataclasses.fields(thing)]
    for item in found:
        item.name = names.restore(item.name)
    return tuple(found)


def _replace(instance: Any, /, **changes: Any) -> Any:
    renamed = {names.rename(name): value for name, value in changes.items()}
    return dataclasses.replace(instance, **renamed)


def _asdict(instance: Any, *, dict_factory: Callable[[Any], Any] = dict) -> Any:
    def build(pairs: list[tuple[str, Any]]) -> Any:
        return dict_factory([(names.restore(name), value) for name, value in pairs])

    return dataclasses.asdict(instance, dict_factory=build)


def _getcontext() -> decimal.Context:
    """A copy of the arithmetic context: the real one is shared by every environment of the worker."""
    context = decimal.getcontext().copy()
    context.clear_flags()
    return context


def _attrgetter(guards: Guards) -> Callable[..., Any]:
    def attrgetter(*paths: str) -> Callable[[Any], Any]:
        if not paths or any(type(path) is not str for path in paths):
            raise TypeError("attribute name must be a plain string")

        def read(ob: Any, path: str) -> Any:
            return functools.reduce(guards.getattr, path.split("."), ob)

        if len(paths) == 1:
            return lambda ob, /: read(ob, paths[0])
        return lambda ob, /: tuple(read(ob, path) for path in paths)

    return attrgetter


def _methodcaller(guards: Guards) -> Callable[..., Any]:
    def methodcaller(name: str, /, *args: Any, **values: Any) -> Callable[[Any], Any]:
        return lambda ob, /: guards.getattr(ob, name)(*args, **values)

    return methodcaller


def _enum_bases(guards: Guards) -> dict[tuple[str, str], Any]:
    """The enum classes, rebuilt with a metaclass of this worker's."""

    class SafeEnumMeta(enum.EnumMeta):
        """Enum classes without the functional form, whose member names would not have been checked."""

        def __new__(metacls, name: str, bases: Any, body: Any, **values: Any) -> Any:
            if any(type(base) is metacls for base in bases):
                guards.mark_body(body)
            return super().__new__(metacls, name, bases, body, **values)

        def __call__(cls, *args: Any, **values: Any) -> Any:
            if not cls.__members__ or len(args) != 1 or values:
                raise TypeError(
                    "an enum is called with one value: write a class statement to make one"
                )
            return super().__call__(*args)

    def rebuilt(real: Any) -> Any:
        body = SafeEnumMeta.__prepare__(real.__name__, (real,))
        body["__doc__"] = real.__doc__
        return SafeEnumMeta(real.__name__, (real,), body)

    names_of = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")
    return {("enum", name): rebuilt(getattr(enum, name)) for name in names_of}
