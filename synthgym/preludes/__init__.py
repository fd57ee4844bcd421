"""Base classes that the loader puts in front of sources of some dialects: text that runs under the rules of sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

TOOL_ENV: Final = "tool_env"
TOOL_USE_BASE: Final = "tool_use_base"

# Read at import: a worker, which composes sources, cannot open files.
_TEXTS: Final[Mapping[str, str]] = {
    name: Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    for name in (TOOL_ENV, TOOL_USE_BASE)
}


def prelude(name: str) -> str:
    """The text of a prelude, verbatim."""
    return _TEXTS[name]
