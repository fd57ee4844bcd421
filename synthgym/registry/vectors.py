"""Vectors of a snapshot: safetensors, float16, each row with the digest that it belongs to.

Indexes are never stored: whoever searches builds one from the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from synthgym.errors import IntegrityError
from synthgym.registry.files import Files, read_file
from synthgym.registry.layout import FileRef, vectors_path
from synthgym.registry.manifest import Manifest
from synthgym.registry.packed import VECTOR_TYPE
from synthgym.spec import sha256_digest

_DIGESTS: Final = "digests"
_VECTORS: Final = "vectors"
_HEADER_ROOM: Final = 64 * 1024


def vectors_bytes(rows: Sequence[tuple[str, bytes]]) -> bytes:
    """Return the file of (digest, float16 bytes) rows, sorted by digest."""
    from safetensors.numpy import save

    digests = np.frombuffer(b"".join(bytes.fromhex(d[7:]) for d, _ in rows), np.uint8)
    vectors = np.frombuffer(b"".join(data for _, data in rows), VECTOR_TYPE)
    return save(
        {_DIGESTS: digests.reshape(len(rows), 32), _VECTORS: vectors.reshape(len(rows), -1)}
    )


def read_vectors(
    files: Files, manifest: Manifest, embedder: str, number: int | None = None
) -> Iterator[tuple[str, bytes]]:
    """Iterate over (digest, float16 bytes) by digest, of one shard or of all.

    `IntegrityError` when a file is not as promised: other bytes, shape or type, a number that is not finite,
    digests out of order.
    """
    dim, last = manifest.embedders[embedder], ""
    for ref in manifest.files:
        folder, _, name = ref.path.rpartition("/")
        wanted = number is None or name.startswith(f"{_VECTORS}-{number:03d}-")
        if folder == f"{_VECTORS}/{embedder}" and wanted:
            for digest, vector in _rows(files, ref, dim):
                if digest <= last:
                    raise IntegrityError(f"{files.place}: {ref.path}: digests are out of order")
                last = digest
                yield digest, vector


def write_vectors(
    root: Path, embedder: str, number: int, count: int, rows: Sequence[tuple[str, bytes]]
) -> FileRef:
    """Write a shard of vectors below `root`, and return what the manifest says of it."""
    ref, data = vectors_file(embedder, number, count, rows)
    (root / ref.path).parent.mkdir(parents=True, exist_ok=True)
    (root / ref.path).write_bytes(data)
    return ref


def vectors_file(
    embedder: str, number: int, count: int, rows: Sequence[tuple[str, bytes]]
) -> tuple[FileRef, bytes]:
    """Return a shard of vectors: what the manifest says of it, and its bytes."""
    path, data = vectors_path(embedder, number, count), vectors_bytes(rows)
    digest = sha256_digest(data)
    return FileRef(path=path, sha256=digest, size=len(data), kind=_VECTORS, rows=len(rows)), data


def _rows(files: Files, ref: FileRef, dim: int) -> Iterator[tuple[str, bytes]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    shown = f"{files.place}: {ref.path}"
    expected = ref.rows * (32 + 2 * dim)
    data = read_file(files, ref.path, min(ref.size, expected + _HEADER_ROOM))
    if sha256_digest(data) != ref.sha256:
        raise IntegrityError(f"{shown} is not the file of the manifest")
    try:
        arrays = load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        raise IntegrityError(f"{shown} is no safetensors file: {error}") from error
    shapes = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    if shapes != {
        _DIGESTS: (np.dtype(np.uint8), (ref.rows, 32)),
        _VECTORS: (np.dtype(np.float16), (ref.rows, dim)),
    }:
        raise IntegrityError(f"{shown} holds {shapes}, expected {ref.rows} rows of length {dim}")
    if not np.isfinite(arrays[_VECTORS]).all():
        raise IntegrityError(f"{shown} holds a number that is not finite")
    for digest, vector in zip(arrays[_DIGESTS], arrays[_VECTORS], strict=True):
        yield "sha256:" + digest.tobytes().hex(), vector.astype(VECTOR_TYPE).tobytes()
