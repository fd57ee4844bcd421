"""The file of a novelty memory: an `.npz` archive of one JSON object and one float32 array.

No pickle and no FAISS file. The same content gives the same bytes: members are stored uncompressed,
in a fixed order, with a fixed time.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from synthgym.atomic import write_file
from synthgym.errors import ConfigError, SnapshotError
from synthgym.memory.describe import Description
from synthgym.memory.records import MemoryRecord
from synthgym.spec import canonical_json

FORMAT: Final = "synthgym.memory/1"
_JSON: Final = "memory.json"
_VECTORS: Final = "vectors.npy"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SavedMemory:
    """Everything that a memory is made of, but for its embedder."""

    embedder: str
    settings: Mapping[str, Any]
    records: tuple[MemoryRecord, ...]
    """In the order of the rows of `vectors`."""
    vectors: Floats


def write_memory(path: Path, saved: SavedMemory) -> None:
    """Replace the file at `path` in one step; a crash leaves the old one."""
    rows = [asdict(record) for record in saved.records]
    head = {
        "format": FORMAT,
        "embedder": saved.embedder,
        "settings": dict(saved.settings),
        "records": rows,
    }
    array = io.BytesIO()
    np.lib.format.write_array(array, saved.vectors.astype("<f4"), allow_pickle=False)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for name, data in ((_JSON, canonical_json(head)), (_VECTORS, array.getvalue())):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            file.writestr(info, data)
    write_file(path, archive.getvalue())


def read_memory(path: Path) -> SavedMemory:
    """Read what `write_memory` wrote; `SnapshotError` when the file is anything else."""
    try:
        with zipfile.ZipFile(path) as file:
            head = json.loads(file.read(_JSON))
            array = io.BytesIO(file.read(_VECTORS))
        vectors = np.lib.format.read_array(array, allow_pickle=False)
        if head["format"] != FORMAT:
            raise SnapshotError(f"{path}: expected format {FORMAT}, got {head['format']!r}")
        records = tuple(_records(head["records"]))
        saved = SavedMemory(str(head["embedder"]), dict(head["settings"]), records, vectors)
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError, EOFError) as error:
        if isinstance(error, FileNotFoundError):
            raise SnapshotError(f"there is no novelty memory at {path}") from error
        raise SnapshotError(f"{path} is not a novelty memory ({FORMAT}): {error}") from error
    if vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != len(records):
        raise SnapshotError(
            f"{path}: expected {len(records)} float32 vectors, got {vectors.dtype} {vectors.shape}"
        )
    return saved


def _records(rows: Iterable[Mapping[str, Any]]) -> Iterable[MemoryRecord]:
    for row in rows:
        text = dict(row["description"])
        try:
            description = Description(**text | {"parameters": tuple(text["parameters"])})
        except ConfigError as error:
            raise ValueError(str(error)) from error
        yield MemoryRecord(**dict(row) | {"description": description})
