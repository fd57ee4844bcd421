"""Text and numbers as people read them. Text of models and environments becomes harmless to look at here."""

from __future__ import annotations

import math
import unicodedata

MISSING = "–"  # noqa: RUF001
"""Stands where nothing was measured."""

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_KEPT = frozenset("\n\t")
_INVISIBLE_RANGES = (
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer vowels that are not drawn
    (0x180B, 0x180F),  # Mongolian variation selectors
    (0x2800, 0x2800),  # blank Braille pattern
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFFA0, 0xFFA0),  # Hangul filler
    (0xE0100, 0xE01EF),  # variation selectors
)


def visible(text: str) -> str:
    r"""`text` with every character that draws nothing, or turns the text around, written as `\u{202e}`.

    Line feed and tab stay. Idempotent, and free of lone surrogates, so the result can always be encoded.
    """
    return text.translate(_SHOWN)


class _Shown(dict[int, int | str]):
    """What each code point is written as, worked out when it is first met."""

    def __missing__(self, code: int) -> int | str:
        shown = f"\\u{{{code:x}}}" if _is_invisible(code) else code
        self[code] = shown
        return shown


def _is_invisible(code: int) -> bool:
    if chr(code) in _KEPT:
        return False
    if unicodedata.category(chr(code)) in _INVISIBLE_CATEGORIES:
        return True
    return any(first <= code <= last for first, last in _INVISIBLE_RANGES)


_SHOWN = _Shown()


def clip(text: str, limit: int) -> str:
    """The first `limit` characters of `text`, made visible; those cut off are counted in their place."""
    shown = visible(text[:limit])
    more = len(text) - limit
    return f"{shown}\n… ({count(more, 'more character')})" if more > 0 else shown


def decimal(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """Fixed-point text of a number; an en dash when it is unknown."""
    if value is None or not math.isfinite(value):
        return MISSING
    rounded = round(value, digits) + 0.0  # no "-0.00"
    return f"{rounded:{'+' if sign and rounded else ''},.{digits}f}"


def significant(value: float | None) -> str:
    """A number with three significant digits, or in whole units from a thousand; an en dash when it is unknown."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"


def percent(value: float | None) -> str:
    """A share in whole per cent; an en dash when it is unknown."""
    return MISSING if value is None or not math.isfinite(value) else f"{100 * value:.0f} %"


def plus_minus(value: float | None, error: float | None) -> str:
    """`+0.12 ± 0.05`; the error is left out when it is unknown."""
    if value is None or not math.isfinite(value):
        return MISSING
    if error is None or not math.isfinite(error):
        return decimal(value, sign=True)
    return f"{decimal(value, sign=True)} ± {decimal(error)}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 episode`, `3,912 tokens`."""
    word = noun if number == 1 else (plural or f"{noun}s")
    return f"{number:,} {word}"


def duration(seconds: float) -> str:
    """`38.7 s`, `2 min 05 s`, `3 h 20 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60:,} h {minutes % 60:02d} min"
