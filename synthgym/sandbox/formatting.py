"""`str.format` without its attribute walk in C: templates are looked at, paths go through the guard."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

_MAX_NESTING: Final = 2
"""As in C: a format specification may hold fields, whose own specifications may not."""
_CONVERSIONS: Final[dict[str, Callable[[Any], str]]] = {"s": str, "r": repr, "a": ascii}


@lru_cache(maxsize=512)
def is_plain_template(text: str) -> bool:
    """Whether no replacement field of `text`, nested ones included, holds a `.` or `[` path.

    Raises `ValueError` for a malformed template, as formatting it would.
    """
    for _literal, field, spec, _conversion in string.Formatter().parse(text):
        if field and ("." in field or "[" in field):
            return False
        if spec and "{" in spec and not is_plain_template(spec):
            return False
    return True


class SafeFormatter:
    """One call of `str.format` (or, with `args` None, of `format_map`) whose attribute steps are `read`'s."""

    def __init__(
        self,
        read: Callable[[Any, str], Any],
        args: Sequence[Any] | None,
        values: Mapping[str, Any],
    ) -> None:
        self._read = read
        self._args = args
        self._values = values
        self._numbered = 0
        self._manual = False

    def expand(self, text: str, nesting: int = _MAX_NESTING) -> str:
        """`text` with its fields replaced; raises what `str.format` raises."""
        if nesting == 0:
            raise ValueError("Max string recursion exceeded")
        parts: list[str] = []
        for literal, field, spec, conversion in string.Formatter().parse(text):
            parts.append(literal)
            if field is None:
                continue
            value = self._field(field)
            if conversion:
                if conversion not in _CONVERSIONS:
                    raise ValueError(f"Unknown conversion specifier {conversion!r}")
                value = _CONVERSIONS[conversion](value)
            if spec and "{" in spec:
                spec = self.expand(spec, nesting - 1)
            parts.append(format(value, spec or ""))
        return "".join(parts)

    def _field(self, field: str) -> Any:
        first, steps = _split(field)
        value = self._values[first] if first and not first.isdecimal() else self._argument(first)
        for is_attribute, step in steps:
            value = self._read(value, str(step)) if is_attribute else value[step]
        return value

    def _argument(self, number: str) -> Any:
        """The positional argument of this number, or the next one for an empty number."""
        if self._args is None:
            raise ValueError("Format string contains positional fields")
        if number:
            if self._numbered:
                raise ValueError(
                    "cannot switch from automatic field numbering to manual field specification"
                )
            self._manual = True
            index = int(number)
        else:
            if self._manual:
                raise ValueError(
                    "cannot switch from manual field specification to automatic field numbering"
                )
            index = self._numbered
            self._numbered += 1
        if index >= len(self._args):
            raise IndexError(f"Replacement index {index} out of range for positional args tuple")
        return self._args[index]


def _split(field: str) -> tuple[str, list[tuple[bool, int | str]]]:
    """`a.b[0]` as its first name and its steps (whether it is an attribute, name or index)."""
    cut = min((i for i in map(field.find, ".[") if i >= 0), default=len(field))
    head, rest = field[:cut], field[cut:]
    steps: list[tuple[bool, int | str]] = []
    while rest:
        if rest.startswith("["):
            key, closed, rest = rest[1:].partition("]")
            if not closed or not key:
                raise ValueError("Missing ']' or empty attribute in format string")
            steps.append((False, int(key) if key.isdecimal() else key))
            if rest and rest[0] not in ".[":
                raise ValueError("Only '.' or '[' may follow ']' in format field specifier")
        else:
            rest = rest[1:]
            end = min((i for i in map(rest.find, ".[") if i >= 0), default=len(rest))
            name, rest = rest[:end], rest[end:]
            if not name:
                raise ValueError("Empty attribute in format string")
            steps.append((True, name))
    return head, steps
