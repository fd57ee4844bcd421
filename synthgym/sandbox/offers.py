"""What a loaded class offers: whether it is what the contract asks for, its docstring, its hint."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any, Final

from synthgym.contract import MAX_TURNS, MIN_TURNS
from synthgym.sandbox import values

_VARARGS: Final = 0x04
"""`co_flags` of a function that takes `*args` (inspect.CO_VARARGS, without importing inspect)."""
DOCSTRING_CHARS: Final = 16_384
"""A longer docstring is cut."""


class Refused(Exception):
    """The source is not run, or does not hold what the contract asks for."""


def check_class(found: type, entry: str) -> None:
    """`Refused` when the class is not what the record or the contract says."""
    if entry and found.__name__ != entry:
        raise Refused(f"the record names the class {entry!r}, the source holds {found.__name__!r}")
    for method in ("reset", "step"):
        if not callable(getattr(found, method, None)):
            raise Refused(f"class {found.__name__} needs a method {method}()")
    turns = getattr(found, "max_turns", None)
    if type(turns) is not int or not MIN_TURNS <= turns <= MAX_TURNS:
        got = turns if type(turns) is int and abs(turns) < 1 << 63 else values.type_name(turns)
        raise Refused(
            f"class {found.__name__} needs a class attribute max_turns: "
            f"an int in {MIN_TURNS}..{MAX_TURNS}, got {got}"
        )


def docstring_of(found: type) -> str:
    text = found.__doc__
    return values.utf8(text[:DOCSTRING_CHARS]) if type(text) is str else ""


def has_hint(found: type) -> bool:
    hint = getattr(found, "hint", None)
    return bool(hint.strip()) if type(hint) is str else callable(hint)


def hint_of(env: Any, level: int) -> object:
    """Return what the hint of `env` gives.

    An attribute and a method without arguments serve every level.
    """
    hint = getattr(env, "hint", None)
    if type(hint) is str:
        return hint
    if not callable(hint):
        raise values.BadValue("the class has no hint")
    function = hint.__func__ if type(hint) is MethodType else hint
    if type(function) is not FunctionType:
        return hint(level)
    code = function.__code__
    if code.co_argcount > (1 if type(hint) is MethodType else 0) or code.co_flags & _VARARGS:
        return hint(level)
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return hint(level=level) if "level" in keywords else hint()
