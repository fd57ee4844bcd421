"""The file of a novelty memory, format 2: a ZIP archive of arrays, strings and one JSON object.

No pickle and no FAISS file. The same content gives the same bytes. A file of format 1 is refused:
make the memory anew from its snapshot.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from synthgym.errors import ConfigError, SnapshotError
from synthgym.memory.archive import ArchiveReader, ArchiveWriter, new_archive
from synthgym.memory.code_index import CodeIndex
from synthgym.memory.holdings import Holdings
from synthgym.memory.index import VectorIndex
from synthgym.memory.quantise import encode
from synthgym.memory.table_file import Layout, read_table, write_table

FORMAT: Final = "synthgym.memory/2"
_PART: Final = 16_384


@dataclass(frozen=True, slots=True)
class SavedMemory:
    """Everything that a memory is made of, but for its embedder."""

    embedder: str
    settings: Mapping[str, Any]
    held: Holdings


def write_memory(path: Path, saved: SavedMemory) -> None:
    """Replace the file at `path` in one step; a crash leaves the old one."""
    layout = Layout.of(saved.held.table)
    with new_archive(path) as writer:
        head = {
            "format": FORMAT,
            "embedder": saved.embedder,
            "settings": dict(saved.settings),
            "table": write_table(writer, saved.held.table, layout),
            "vectors": _write_vectors(writer, saved.held.index, layout),
        }
        for name, values in saved.held.code.to_arrays().items():
            writer.array(f"code_{name}", values)
        writer.head(head)


def read_memory(path: Path) -> SavedMemory:
    """Read what `write_memory` wrote; `SnapshotError` when the file is anything else."""
    try:
        with zipfile.ZipFile(path) as file:
            return _read(ArchiveReader(file), path)
    except FileNotFoundError as error:
        raise SnapshotError(f"there is no novelty memory at {path}") from error
    except _BROKEN as error:
        raise SnapshotError(f"{path} is not a novelty memory ({FORMAT}): {error}") from error


_BROKEN: Final = (
    OSError,
    zipfile.BadZipFile,
    LookupError,
    TypeError,
    ValueError,
    EOFError,
    RecursionError,
    OverflowError,
    NotImplementedError,
)
"""What reading bytes from elsewhere may come to."""


def _read(reader: ArchiveReader, path: Path) -> SavedMemory:
    head = reader.head()
    if head["format"] != FORMAT:
        raise SnapshotError(
            f"{path}: expected a novelty memory of format {FORMAT}, got {head['format']!r}; "
            "make the memory anew from its snapshot"
        )
    table = read_table(reader, head["table"])
    try:
        index = _read_vectors(reader, head["vectors"], len(table.texts))
        code = _read_code(reader)
    except (ConfigError, SnapshotError) as error:
        raise ValueError(str(error)) from error
    if (
        int(table.code_of.values.max(initial=-1)) >= len(code)
        or table.code_of.values.min(initial=0) < -1
    ):
        raise ValueError(f"a structure outside of {len(code)}")
    held = Holdings(table, index, code)
    return SavedMemory(str(head["embedder"]), dict(head["settings"]), held)


def _read_code(reader: ArchiveReader) -> CodeIndex:
    shapes = {
        "hashes": (np.uint32, (None,)),
        "offsets": (np.int64, (None,)),
        "counted": (np.bool_, (None,)),
        "bands": (np.uint32, (None, None)),
    }
    arrays = {name: reader.array(f"code_{name}", *want) for name, want in shapes.items()}
    return CodeIndex.restore(arrays)


def _write_vectors(writer: ArchiveWriter, index: VectorIndex, layout: Layout) -> str:
    """Write the vectors as they are held; their type."""
    texts = layout.texts
    parts = (index.vectors(texts[start : start + _PART]) for start in range(0, len(texts), _PART))
    shape = (len(texts), index.dim)
    if not index.compact:
        writer.arrays("vectors", np.float32, shape, parts)
        return "float32"
    writer.arrays("vectors", np.int8, shape, (encode(part) for part in parts))
    if index.codebook is not None:
        writer.array("codebook", index.codebook)
    return "int8"


def _read_vectors(reader: ArchiveReader, kind: object, count: int) -> VectorIndex:
    if kind not in ("float32", "int8"):
        raise ValueError(f"vectors are float32 or int8, got {kind!r}")
    values = reader.array("vectors", str(kind), (count, None))
    if not reader.has("codebook"):
        return VectorIndex.restore(values)
    codebook = reader.array("codebook", np.float32, (None, 16, 4))
    if not np.isfinite(codebook).all() or 4 * len(codebook) != values.shape[1]:
        raise ValueError("the codebook does not fit the vectors")
    return VectorIndex.restore(values, codebook)
