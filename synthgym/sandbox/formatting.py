"""`str.format` without its attribute walk in C: templates are looked at, paths go through the guard."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any


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


class SafeFormatter(string.Formatter):
    """Formats like `str.format`, with every attribute step of a field taken by the given `getattr`."""

    def __init__(self, read: Callable[[Any, str], Any]) -> None:
        self._read = read

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, str]:
        """Return the object that `field_name` leads to, and the name it starts from."""
        first, rest = _split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, step in rest:
            value = self._read(value, str(step)) if is_attribute else value[step]
        return value, str(first)


def _split(field_name: str) -> tuple[int | str, list[tuple[bool, int | str]]]:
    """`a.b[0]` as its first name and its steps (whether it is an attribute, name or index)."""
    cut = min((i for i in map(field_name.find, ".[") if i >= 0), default=len(field_name))
    head, rest = field_name[:cut], field_name[cut:]
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
    return (int(head) if head.isdecimal() else head), steps
