"""README.md and docs/ as the tests read them: marked tables and blocks."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`[^|]+?) \| ([^|]*)", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def after(name: str, marker: str) -> str:
    """The text of a page from `<!-- marker -->` to the next blank line after its table or block."""
    _, found, rest = read(name).partition(f"<!-- {marker} -->\n")
    assert found, f"{name} has no <!-- {marker} -->"
    return re.split(r"\n\n(?!```)", rest, maxsplit=1)[0] + "\n"


def block(name: str, marker: str) -> str:
    """The code block after a marker."""
    _, _, rest = read(name).partition(f"<!-- {marker} -->\n")
    match = FENCE.match(rest)
    assert match, f"{name}: no code block after <!-- {marker} -->"
    return match[2]


def table(name: str, marker: str) -> dict[str, str]:
    """The second column of the table after a marker, by each name in the first."""
    rows: dict[str, str] = {}
    for first, second in ROW.findall(after(name, marker)):
        for key in CODE.findall(first):
            assert key not in rows, f"{name}: {key} comes twice"
            rows[key] = second.strip()
    return rows


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))
