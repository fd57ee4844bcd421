"""The hostile sources of tests/redteam, and a folder where their markers go.

A worker of root runs as a user without rights, so markers need a folder where everybody may write: otherwise the
file system, and not the sandbox, would be what stops them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

FOLDER = Path(__file__).parents[1] / "redteam"
MARKERS = "/tmp/synthgym-redteam"
"""Where a payload leaves its marker unless it is aimed elsewhere."""


class Payload(TypedDict):
    """One entry of the manifest; tests/redteam/README.md explains the fields."""

    file: str
    core: bool
    layer: str
    category: str
    description: str
    defence: str
    marker: str
    raw: list[str]
    full: list[str]


PAYLOADS: list[Payload] = json.loads((FOLDER / "manifest.json").read_text())


@contextmanager
def open_folder() -> Iterator[Path]:
    """A new folder that every user may write to."""
    folder = Path(tempfile.mkdtemp(prefix="synthgym-redteam-", dir="/tmp"))
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def aimed(payload: Payload, folder: Path) -> str:
    """The source, with its marker below `folder`."""
    return (FOLDER / payload["file"]).read_text().replace(MARKERS, str(folder / "marker"))
