"""What a module bound, looked at after it has run: the dynamic half of sharing one module.

Only kinds of objects that are known are accepted: immutable values, functions and classes of the source (the write
guard refuses to change those), and lists, dicts and sets that no function of the source can change.
"""

from __future__ import annotations

import abc
import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import re
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

from synthgym.sandbox import names
from synthgym.sandbox.guards import FrozenModule, Guards
from synthgym.sandbox.runtime import Runtime
from synthgym.sandbox.sharing import Facts, Limit

__all__ = ["Frozen", "NotFrozenError"]

MAX_OBJECTS: Final = 200_000
"""A module that holds more is not looked at to the end."""
MAX_DEPTH: Final = 30

_VALUES: Final = frozenset(
    {
        bool,
        bytes,
        complex,
        datetime.date,
        datetime.timedelta,
        decimal.Decimal,
        float,
        int,
        object,
        range,
        str,
        type(None),
        type(...),
        type(NotImplemented),
        type(dataclasses.MISSING),
        type(getattr(dataclasses, "_HAS_DEFAULT_FACTORY", None)),  # default of generated `__init__`
    }
)
"""Exact types whose objects never change."""
_DESCRIPTORS: Final = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    enum.property,
    type(vars(collections.namedtuple("_Sample", "field"))["field"]),
)
_ALIASES: Final[Any] = (
    types.GenericAlias,
    types.UnionType,
    type(typing.Optional),
    type(typing.Sequence),
    type(typing.Sequence[int]),
    type(typing.Union[int, typing.Sequence[int]]),  # noqa: UP007 - the runtime class of old unions
)
_METACLASSES: Final = (type, abc.ABCMeta)
_ENUM_BASES: Final = frozenset({float, int, object, str})
"""Library classes that a member of an enumeration may be an object of: they cannot change."""
_GENERATED: Final = frozenset(
    {id(vars(module)) for module in (collections, dataclasses, enum, reprlib)}
)
"""Globals of library functions that get into classes and hold nothing of the source's."""
_GENERATED_FILE: Final = "<string>"
"""File of what `dataclass` and `namedtuple` compile; the source's own code has another one."""


_PARTS: Final[Mapping[Any, Callable[[Any], tuple[Any, ...]]]] = {
    datetime.datetime: lambda value: (value.tzinfo,),
    datetime.time: lambda value: (value.tzinfo,),
    datetime.timezone: lambda value: (value.tzname(None),),
    fractions.Fraction: lambda value: (value._numerator, value._denominator),
    re.Pattern: lambda value: (value.pattern,),
    typing.ForwardRef: lambda value: (value.__forward_arg__,),
    typing.NewType: lambda value: (value.__name__, value.__qualname__, value.__supertype__),
    typing.TypeVar: lambda value: (value.__name__, value.__bound__, *value.__constraints__),
}
"""Library objects that hold others and never change themselves; a subclass of `str` in one could."""


class NotFrozenError(Exception):
    """Something that the module binds may change."""


class Frozen:
    """Collects everything that a module binds, and refuses what may change."""

    def __init__(self, runtime: Runtime, namespace: dict[str, Any], facts: Facts) -> None:
        self._guards: Guards = runtime.guards
        self._library = runtime.library(namespace)
        self._namespace = namespace
        self._facts = facts
        self._depths: dict[int, int] = {}
        self._seen: list[object] = []
        self._left = MAX_OBJECTS
        self.objects: list[object] = []
        """What the write guard has to protect: functions, classes, containers, and instances of the source."""

    def add_module(self, bound: dict[str, Any]) -> None:
        """Accept what the module bound by name; `NotFrozenError` names the first thing that may change."""
        for name, value in bound.items():
            if name == "__doc__":
                self._constant(value, name)
            elif not names.is_dunder(name):
                self._within(name, value, _limit_of(self._facts.names, name))

    def _within(self, name: str, value: object, limit: Limit) -> None:
        depth = self._depth(value, name, 0)
        if depth > (limit.as_dict if type(value) is dict else limit.other):
            raise NotFrozenError(f"{name} is a container that a function may change or keep")
        if depth and self._facts.reads_any_attribute and (depth > 1 or type(value) is dict):
            raise NotFrozenError(f"{name} holds a dict, and attributes are read by computed names")

    def _constant(self, value: object, where: str) -> None:
        if self._depth(value, where, 0):
            raise NotFrozenError(f"{where} holds a container")

    def _depth(self, value: Any, where: str, level: int) -> int:
        """How deeply mutable containers are nested in `value`; 0 when it cannot change at all."""
        kind = type(value)
        if kind in _VALUES or id(value) in self._library:
            return 0
        if id(value) in self._depths:
            return self._depths[id(value)]
        self._seen.append(value)  # it stays alive, so its id stays its own
        if kind in (list, set, dict):
            self.objects.append(value)
            items = [*value.keys(), *value.values()] if kind is dict else value
            depth = 1 + self._deepest(items, where, level)
        elif kind in (tuple, frozenset):
            inner = self._deepest(value, where, level)
            depth = inner + 1 if inner else 0
        else:
            depth = self._depths[id(value)] = 0  # a class and its methods lead to one another
            self._object(value, kind, where)
        self._depths[id(value)] = depth
        return depth

    def _deepest(self, values: Any, where: str, level: int) -> int:
        self._left -= len(values)
        if self._left < 0 or level > MAX_DEPTH:
            raise NotFrozenError(f"{where} holds too much")
        return max((self._depth(value, where, level + 1) for value in values), default=0)

    def _object(self, value: Any, kind: type, where: str) -> None:
        if kind is types.FunctionType:
            self._function(value, where)
        elif issubclass(kind, type):
            self._class(value, where)
        elif self._guards.made(kind):
            self._instance(value, kind, where)
        elif kind is not FrozenModule:
            for part in self._parts(value, kind, where):
                self._constant(part, where)

    def _parts(self, value: Any, kind: type, where: str) -> list[Any]:
        """What an object of the library consists of, if it is of a kind that only holds others."""
        if kind is staticmethod or kind is classmethod:
            return [value.__func__]
        if kind is property:
            return [value.fget, value.fset, value.fdel, value.__doc__]
        if kind is types.MethodType:
            return [value.__func__, value.__self__]
        if kind is types.BuiltinMethodType:
            free = isinstance(value.__self__, types.ModuleType | type | None)
            return [] if free else [value.__self__]
        if kind in _ALIASES:
            return [getattr(value, "__origin__", None), *getattr(value, "__args__", ())]
        read = _PARTS.get(kind)
        if read is None:
            raise NotFrozenError(f"{where} is a {kind.__name__}, which may change")
        return list(read(value))

    # Functions and classes of the source: the write guard keeps what is set on them; here is what they hold

    def _function(self, value: types.FunctionType, where: str) -> None:
        if value.__globals__ is not self._namespace:
            raise NotFrozenError(f"{where} is a function made by the library")
        self.objects.append(value)
        self._defaults(value, where)
        for item in value.__dict__.values():
            self._constant(item, where)
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        for name, cell in cells:
            if name != "__class__" and self._facts.rebinds_cells:
                raise NotFrozenError(f"{where} has variables that may be rebound")
            try:
                content = cell.cell_contents
            except ValueError:
                raise NotFrozenError(f"{where} has a variable without a value") from None
            self._constant(content, where)

    def _defaults(self, value: types.FunctionType, where: str) -> None:
        for item in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()):
            self._constant(item, f"a default of {where}")

    def _class(self, cls: Any, where: str) -> None:
        if not self._guards.made(cls):
            return  # a library class: nobody may write to it
        is_enum = issubclass(type(cls), enum.EnumMeta)
        if (not is_enum and type(cls) not in _METACLASSES) or issubclass(cls, enum.Flag):
            raise NotFrozenError(f"{where} is a class of a kind that may change")
        if self._facts.reads_any_attribute and type(cls) is abc.ABCMeta:
            raise NotFrozenError(f"{where} is abstract, and attributes are read by computed names")
        if issubclass(cls, str | bytes) and not is_enum:
            raise NotFrozenError(f"{where} is a kind of text, and the library keeps some texts")
        self.objects.append(cls)
        for base in cls.__mro__[1:]:
            self._constant(base, where)
        body = vars(cls)
        self._constant(body.get("__doc__"), f"the docstring of {where}")
        for key, value in body.items():
            if _is_reachable(key):
                self._member(cls, key, value)
        self._fields(body.get("__dataclass_fields__", {}).values(), where)
        members = cls._member_map_ if is_enum else {}
        for item in (*members.values(), *body.get("_field_defaults", {}).values()):
            self._constant(item, where)

    def _member(self, cls: Any, key: str, value: Any) -> None:
        name = names.restore(key)
        where = f"{names.restore(cls.__name__)}.{name}"
        if type(value) in _DESCRIPTORS:
            return
        function = value.__func__ if type(value) in (classmethod, staticmethod) else value
        if type(function) is types.FunctionType and function.__globals__ is not self._namespace:
            self._library_function(function, where)
            return
        self._within(where, value, _limit_of(self._facts.attributes, name))
        if type(value) in (list, dict, set) and self._facts.reads_any_attribute:
            raise NotFrozenError(
                f"{where} is a container, and attributes are read by computed names"
            )

    def _library_function(self, function: types.FunctionType, where: str) -> None:
        generated = (
            id(function.__globals__) in _GENERATED
            or function.__code__.co_filename == _GENERATED_FILE
            or (function.__closure__ is None and function.__globals__ is vars(functools))
        )
        if not generated and id(function) not in self._library:
            raise NotFrozenError(f"{where} is a function made by the library")
        self._defaults(function, where)

    def _fields(self, fields: Any, where: str) -> None:
        for field in fields:
            if field.metadata:
                raise NotFrozenError(f"{where} has fields with metadata")
            for item in (field.default, field.default_factory):
                if item is not dataclasses.MISSING:
                    self._constant(item, f"a default of {where}")

    # Instances of the source's classes: members of an enumeration, named tuples, frozen dataclasses

    def _instance(self, value: Any, kind: Any, where: str) -> None:
        if issubclass(type(kind), enum.EnumMeta) and self._is_plain_enum(kind):
            parts = [value._value_, *vars(value).values(), *_slots(value, kind)]
        elif issubclass(kind, tuple) and not kind.__dictoffset__:
            parts = list(tuple.__iter__(value))
        elif _is_frozen_dataclass(kind) and not self._may_start_again(kind):
            parts = [object.__getattribute__(value, field) for field in kind.__dataclass_fields__]
            parts += [*getattr(value, "__dict__", {}).values(), *_slots(value, kind)]
        else:
            raise NotFrozenError(
                f"{where} is an object of {names.restore(kind.__name__)}, which may change"
            )
        self.objects.append(value)
        self._constant(kind, where)
        for part in parts:
            self._constant(part, where)

    def _is_plain_enum(self, kind: Any) -> bool:
        """Whether members have no content but their value and what was set on them."""
        return all(
            isinstance(base, enum.EnumMeta)
            or base in _ENUM_BASES
            or (self._guards.made(base) and "__dataclass_fields__" not in vars(base))
            for base in kind.__mro__
        )

    def _may_start_again(self, kind: Any) -> bool:
        """Whether `__init__` may run on an object that there is: what `dataclass` makes sets fields in C."""
        called = self._facts.attributes
        return (
            "__init__" in called
            or self._facts.reads_any_attribute
            or ("super().__init__" in called and len(kind.__mro__) > 2)
            or any("__new__" in vars(base) for base in kind.__mro__[:-1])
        )


def _slots(value: Any, kind: Any) -> list[Any]:
    """What the slots of an object hold, whether they are fields or not."""
    found = []
    for base in kind.__mro__:
        for slot in vars(base).values():
            if type(slot) is types.MemberDescriptorType and slot.__objclass__ is base:
                with contextlib.suppress(AttributeError):
                    found.append(slot.__get__(value))
    return found


def _is_frozen_dataclass(kind: Any) -> bool:
    params = vars(kind).get("__dataclass_params__")
    plain = all(base is object or "__dataclass_fields__" in vars(base) for base in kind.__mro__)
    return params is not None and params.frozen and plain and type(kind) is type


def _is_reachable(key: str) -> bool:
    """Whether a source can read a class attribute that is stored under `key`."""
    if names.is_dunder(key):
        return key in names.DEF_DUNDERS
    return not key.startswith("_") or key in names.KEPT or key in names.ENUM_HOOKS


def _limit_of(limits: Mapping[str, Limit], name: str) -> Limit:
    """The limit for `name` under every spelling: inside its class `__x` stands for `_Class__x`."""
    spellings = [name, *(name[i:] for i in range(1, len(name)) if name.startswith("__", i))]
    limit = Limit()
    for spelling in spellings:
        limit &= limits.get(spelling, Limit())
    return limit
