"""Checks of what generated code returns: bounded copies, by exact type.

Nothing here calls a method of a returned object or asks `isinstance`: a subclass may lie about
either. What is not exactly a known type is `BadValue`, or inside `info` a placeholder that names
the type.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Final

import msgspec

from synthgym.sandbox.names import restore
from synthgym.sandbox.protocol import MAX_DETAIL, MAX_FRAME

MAX_TEXT_BYTES: Final = MAX_FRAME * 3 // 4
"""Encoded bytes of one text, so that its frame fits under the cap with everything else in it."""
MAX_ACTIONS: Final = 1000
"""Actions of one solution."""
_INFO_DEPTH: Final = 8
_INFO_NODES: Final = 2000
_INFO_CHARS: Final = 2000
_INFO_BYTES: Final = 16 * 1024
_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1
_NUMBERS: Final = frozenset({bool, Fraction, Decimal})

REPLACED: Final = "<replaced>"
"""Key that a copied info has when the copy is not what was given."""

StepValues = tuple[str, float, bool, bool, str]
encode_json: Final = msgspec.json.Encoder().encode


class BadValue(Exception):
    """Generated code returned something that the contract does not allow."""


def text(value: object, what: str, limit: int) -> str:
    """`value` when it is exactly a str of at most `limit` characters; lone surrogates become `?`."""
    if type(value) is not str:
        raise BadValue(f"{what} must be a str, got {type_name(value)}")
    if len(value) > limit:
        raise BadValue(f"{what} must have at most {limit} characters, got {len(value)}")
    clean = utf8(value)
    if len(clean) > MAX_TEXT_BYTES // 4 and len(clean.encode()) > MAX_TEXT_BYTES:
        raise BadValue(f"{what} must have at most {MAX_TEXT_BYTES} bytes")
    return clean


def number(value: object, what: str) -> float:
    """`value` as a finite float; an int, bool, Fraction or Decimal is converted."""
    if type(value) is float:
        result = value
    elif type(value) is int or type(value) in _NUMBERS:
        try:
            result = float(value)  # type: ignore[arg-type]  # exactly one of four numeric types
        except (OverflowError, ValueError):
            raise BadValue(f"{what} is out of the range of a float") from None
    else:
        raise BadValue(f"{what} must be a float, got {type_name(value)}")
    if not math.isfinite(result):
        raise BadValue(f"{what} must be finite, got {result}")
    return result


def flag(value: object, what: str) -> bool:
    """`value` as a bool; the ints 0 and 1 are converted."""
    if type(value) is bool:
        return value
    if type(value) is int and value in (0, 1):
        return value == 1
    raise BadValue(f"{what} must be a bool, got {type_name(value)}")


def info_json(value: object) -> str:
    """Return a bounded, JSON-safe copy of `value` as JSON text.

    Empty for None and for an empty dict. What JSON cannot carry, or is too much, becomes a
    placeholder, and the copy says so under the key `<replaced>`.
    """
    if value is None:
        return ""
    if type(value) is not dict:
        raise BadValue(f"info must be a dict, got {type_name(value)}")
    if not value:
        return ""
    copier = _Copier()
    copied = copier.copy(value, 0)
    if copier.replaced:
        copied[REPLACED] = True  # type: ignore[index]  # the copy of a dict is a dict
    encoded = encode_json(copied)
    return encoded.decode() if len(encoded) <= _INFO_BYTES else f'{{"{REPLACED}":true}}'


def json_copy(value: object) -> str:
    """Return a bounded, JSON-safe copy of any value as JSON text."""
    return encode_json(_Copier().copy(value, 0)).decode()


class _Copier:
    """Copies one info within a budget of nodes.

    What does not fit, or is of another type, becomes a placeholder.
    """

    def __init__(self) -> None:
        self._left = _INFO_NODES
        self.replaced = False
        """Whether the copy is not what was given."""

    def copy(self, value: object, depth: int) -> object:
        self._left -= 1
        kind = type(value)
        if self._left < 0:
            return self._instead("cut")
        if value is None or kind is bool:
            return value
        if kind is int:
            fits = _INT_MIN <= value <= _INT_MAX  # type: ignore[operator]
            return value if fits else self._instead("int")
        if kind is float:
            finite = math.isfinite(value)  # type: ignore[arg-type]
            return value if finite else self._instead(str(value))
        if type(value) is str:
            self.replaced = self.replaced or len(value) > _INFO_CHARS
            return utf8(value[:_INFO_CHARS])
        if depth >= _INFO_DEPTH:
            return self._instead("deep")
        if type(value) is list or type(value) is tuple:
            return [self.copy(item, depth + 1) for item in value[: max(self._left, 0) + 1]]
        if type(value) is dict:
            return self._copy_dict(value, depth)
        return self._instead(type_name(value))

    def _instead(self, name: str) -> str:
        """The placeholder for what cannot be copied."""
        self.replaced = True
        return f"<{name}>"

    def _copy_dict(self, value: dict[object, object], depth: int) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, item in value.items():
            if self._left <= 0:
                self.replaced = True
                break
            name = _key(key)
            self.replaced = self.replaced or (type(key) is not str and name.startswith("<"))
            result[name] = self.copy(item, depth + 1)
        return result


def _key(key: object) -> str:
    if type(key) is str:
        return utf8(key[:_INFO_CHARS])
    if key is None or type(key) is bool or type(key) is float:
        return str(key)
    if type(key) is int:
        return str(key) if _INT_MIN <= key <= _INT_MAX else "<int>"
    return f"<{type_name(key)}>"


def step_values(value: object, limit: int) -> StepValues:
    """Return what `step` returned: (observation, reward, terminated, truncated, JSON of info)."""
    if (type(value) is not tuple and type(value) is not list) or len(value) != 5:
        raise BadValue(
            "step must return (observation, reward, terminated, truncated, info), "
            f"got {_shape(value)}"
        )
    return (
        text(value[0], "observation", limit),
        number(value[1], "reward"),
        flag(value[2], "terminated"),
        flag(value[3], "truncated"),
        info_json(value[4]),
    )


def reset_values(value: object, limit: int) -> tuple[str, str]:
    """Return what `reset` returned: (observation, JSON of info)."""
    if (type(value) is not tuple and type(value) is not list) or len(value) != 2:
        raise BadValue(f"reset must return (observation, info), got {_shape(value)}")
    return text(value[0], "observation", limit), info_json(value[1])


def actions(value: object, limit: int) -> list[str]:
    """Return a copy of what `solution` returned.

    A list of at most `MAX_ACTIONS` strings of at most `limit` characters.
    """
    if type(value) is not list and type(value) is not tuple:
        raise BadValue(f"solution must return a list of str, got {type_name(value)}")
    if len(value) > MAX_ACTIONS:
        raise BadValue(f"solution must have at most {MAX_ACTIONS} actions, got {len(value)}")
    copies = [text(action, "action of the solution", limit) for action in value]
    if sum(len(action.encode()) for action in copies) > MAX_TEXT_BYTES:
        raise BadValue(f"solution must have at most {MAX_TEXT_BYTES} bytes")
    return copies


def error_text(error: BaseException) -> str:
    """`TypeName: message`, the message being the first argument when that is exactly a str.

    Private names are spelled as in the source.
    """
    args = BaseException.__dict__["args"].__get__(error)
    first = args[0] if args else ""
    message = first if type(first) is str else ""
    return utf8(restore(f"{type_name(error)}: {message[:MAX_DETAIL]}")[:MAX_DETAIL])


def type_name(value: object) -> str:
    """Name of the type of `value`, cut to 60 characters."""
    name = type.__dict__["__name__"].__get__(type(value))
    return utf8(str(name)[:60])


def utf8(value: str) -> str:
    """`value` with lone surrogates, which UTF-8 cannot carry, replaced by `?`."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _shape(value: object) -> str:
    if type(value) is tuple or type(value) is list:
        return f"{type_name(value)} of {len(value)}"
    return type_name(value)
