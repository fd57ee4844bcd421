"""Which contract a source is written for: told by whoever asks, or read off its text."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from synthgym.contract import BASE, SPADE_BASE, SPADE_TOOLS_BASE, TOOLS_BASE
from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean


class Dialect(StrEnum):
    """What a source is read as."""

    PROGRAM = "program"
    """The contract of this package, with or without `ToolEnv`."""
    SPADE = "spade"
    """Sources of the SPADE pools."""
    AUTO = "auto"
    """Whichever of the two the text looks like."""


_TOOL_ENV: Final = re.compile(r"\bToolEnv\b")
_TOOL_USE: Final = re.compile(r"\bToolUseBaseEnv\b")
_CLASS_TURNS: Final = re.compile(r"^(?: {2,4}|\t)max_turns\b[^=\n(]*=", re.MULTILINE)
"""`max_turns` in a class body, where the contract wants it."""
_SPADE_SIGNS: Final = re.compile(r"\bself\.max_turns\s*=|\\\\boxed|\bdef __init__\(self, max_turns")


def base_of(source: str, dialect: str) -> str:
    """The base that `source` is to be checked under. `ConfigError` for an unknown dialect.

    Nothing is parsed: text can be written to break a parser, and a worker has not seen it yet.
    """
    try:
        wanted = Dialect(dialect)
    except ValueError:
        known = [str(item) for item in Dialect]
        raise ConfigError(
            f"unknown dialect {dialect!r}{did_you_mean(dialect, known)}: there are {', '.join(known)}"
        ) from None
    if wanted is Dialect.AUTO:
        wanted = _guess(source)
    if wanted is Dialect.SPADE:
        return SPADE_TOOLS_BASE if _TOOL_USE.search(source) else SPADE_BASE
    return TOOLS_BASE if _TOOL_ENV.search(source) else BASE


def _guess(source: str) -> Dialect:
    if _TOOL_USE.search(source):
        return Dialect.SPADE
    if _TOOL_ENV.search(source) or _CLASS_TURNS.search(source):
        return Dialect.PROGRAM
    return Dialect.SPADE if _SPADE_SIGNS.search(source) else Dialect.PROGRAM
