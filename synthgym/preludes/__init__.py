"""Base classes that the loader puts in front of sources of some dialects: text that runs under the rules of sources."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

TOOL_ENV: Final = "tool_env"
TOOL_USE_BASE: Final = "tool_use_base"


def _read(name: str) -> str:
    path = os.path.join(os.path.dirname(__file__), f"{name}.py")  # noqa: PTH118, PTH120 - as below
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - every zygote would load pathlib
        return file.read()


# Read at import: a worker, which composes sources, cannot open files.
_TEXTS: Final[Mapping[str, str]] = {name: _read(name) for name in (TOOL_ENV, TOOL_USE_BASE)}


def prelude(name: str) -> str:
    """The text of a prelude, verbatim."""
    return _TEXTS[name]
