"""What a loaded class offers: whether it is what the contract asks for, its docstring, its hint."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

from synthgym.contract import MAX_TURNS, MIN_TURNS, SPADE_BASE, SPADE_TOOLS_BASE, TOOLS_BASE
from synthgym.sandbox import values
from synthgym.sandbox.program import Program
from synthgym.sandbox.spade import SpadeGame

_VARARGS: Final = 0x04
"""`co_flags` of a function that takes `*args` (inspect.CO_VARARGS, without importing inspect)."""
DOCSTRING_CHARS: Final = 16_384
"""A longer docstring is cut."""
MAX_TOOLS_BYTES: Final = 64 * 1024
"""Of the schemas of all tools of one environment."""


class Refused(Exception):
    """The source is not run, or does not hold what the contract asks for."""


class Offer(NamedTuple):
    """What a class offers, in the order of `protocol.LoadDone`."""

    entry: str
    max_turns: int
    docstring: str
    has_hint: bool
    has_solution: bool
    tools: str


def offer_of(program: Program, entry: str, base: str) -> Offer:
    """What the class of a program offers; `Refused` when it is not what the record or its dialect says."""
    found = program.env_class
    if base in (SPADE_BASE, SPADE_TOOLS_BASE):
        check_names(found, entry)
        game = program.make(0)
        turns, tools = game.max_turns, _tools_of_game(game)
    else:
        check_class(found, entry)
        turns = found.max_turns  # type: ignore[attr-defined]  # checked just above
        tools = getattr(found, "tool_schemas", "[]") if base == TOOLS_BASE else "[]"
    if type(tools) is not str or len(tools.encode()) > MAX_TOOLS_BYTES:
        raise Refused(f"the schemas of the tools must have at most {MAX_TOOLS_BYTES} bytes")
    solvable = callable(getattr(found, "solution", None))
    return Offer(found.__name__, turns, docstring_of(found), has_hint(found), solvable, tools)


def _tools_of_game(game: Any) -> str:
    """The schemas of a tool-use environment of the pools, which fills them in at its reset."""
    return game.tools()  # type: ignore[no-any-return]  # the adapter is ours


def check_class(found: type, entry: str) -> None:
    """`Refused` when the class is not what the record or the contract says."""
    check_names(found, entry)
    turns = getattr(found, "max_turns", None)
    if type(turns) is not int or not MIN_TURNS <= turns <= MAX_TURNS:
        got = turns if type(turns) is int and abs(turns) < 1 << 63 else values.type_name(turns)
        raise Refused(
            f"class {found.__name__} needs a class attribute max_turns: "
            f"an int in {MIN_TURNS}..{MAX_TURNS}, got {got}"
        )


def check_names(found: type, entry: str) -> None:
    """`Refused` when the class is not the one that the record names, or has no `reset` or `step`."""
    if entry and found.__name__ != entry:
        raise Refused(f"the record names the class {entry!r}, the source holds {found.__name__!r}")
    for method in ("reset", "step"):
        if not callable(getattr(found, method, None)):
            raise Refused(f"class {found.__name__} needs a method {method}()")


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
    if type(env) is SpadeGame:
        return env.hint()
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
