"""Arrays, strings and one JSON object as members of a ZIP archive, written and read piece by piece.

Members are stored as they are, in a fixed order, with a fixed time: the same content gives the same
bytes. Nothing is pickled or compressed, so no member can be larger than the file. A member that is
not as it should be is a ValueError; who reads says which file it is.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from synthgym.atomic import sync_folder
from synthgym.spec import canonical_json

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_HEAD: Final = "memory.json"
_MAX_HEAD: Final = 64 << 20
_MAX_HEADER: Final = 4096
Array = npt.NDArray[Any]


class ArchiveWriter:
    """Writes members one after the other."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def head(self, value: object) -> None:
        """Write the JSON object."""
        with self._member(_HEAD) as file:
            file.write(canonical_json(value))

    def array(self, name: str, values: Array) -> None:
        """Write an array, little-endian."""
        self.arrays(name, values.dtype, values.shape, [values])

    def arrays(
        self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...], parts: Iterable[Array]
    ) -> None:
        """Write an array of this shape that comes in parts."""
        kind = np.dtype(dtype).newbyteorder("<")
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False}
        with self._member(f"{name}.npy") as file:
            start = io.BytesIO()
            np.lib.format.write_array_header_1_0(start, header | {"shape": shape})
            file.write(start.getvalue())
            for part in parts:
                file.write(np.ascontiguousarray(part, kind).data.cast("B") if part.size else b"")

    def strings(self, name: str, values: Iterable[bytes]) -> None:
        """Write byte strings, as one blob and the offsets of their ends."""
        ends: list[int] = []
        size = 0
        with self._member(f"{name}.bin") as file:
            for value in values:
                file.write(value)
                size += len(value)
                ends.append(size)
        self.array(name, np.array(ends, np.int64))

    def _member(self, name: str) -> IO[bytes]:
        info = zipfile.ZipInfo(name, _EPOCH)
        info.create_system, info.external_attr = 3, 0o644 << 16
        return self._archive.open(info, "w", force_zip64=True)


class ArchiveReader:
    """Reads members by name. ValueError or KeyError for one that is missing or different."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        packed = [i.filename for i in archive.infolist() if i.compress_type != zipfile.ZIP_STORED]
        if packed:
            raise ValueError(f"member {packed[0]} is compressed")

    def head(self) -> dict[str, Any]:
        """Read the JSON object."""
        if self._archive.getinfo(_HEAD).file_size > _MAX_HEAD:
            raise ValueError(f"{_HEAD} is larger than {_MAX_HEAD} bytes")
        value = json.loads(self._archive.read(_HEAD))
        if not isinstance(value, dict):
            raise TypeError(f"{_HEAD} is not an object")
        return value

    def has(self, name: str) -> bool:
        """Whether there is such an array."""
        return f"{name}.npy" in self._archive.namelist()

    def array(self, name: str, dtype: npt.DTypeLike, shape: tuple[int | None, ...]) -> Array:
        """Read an array of this type and shape; None stands for any length."""
        data = io.BytesIO(self._archive.read(f"{name}.npy"))
        if np.lib.format.read_magic(data) != (1, 0):
            raise ValueError(f"{name}.npy has another version")
        came, fortran, kind = np.lib.format.read_array_header_1_0(data, max_header_size=_MAX_HEADER)
        want = np.dtype(dtype)
        fits = len(came) == len(shape) and all(
            b is None or a == b for a, b in zip(came, shape, strict=True)
        )
        if fortran or kind != want or not fits:
            expected = tuple("n" if size is None else size for size in shape)
            raise ValueError(f"expected {name} as {want} {expected}, got {kind} {came}")
        body = data.getbuffer()[data.tell() :]
        if len(body) != want.itemsize * int(np.prod(came, dtype=object)):
            raise ValueError(f"{name}.npy does not hold {came}")
        return np.frombuffer(body, want.newbyteorder("<")).reshape(came)

    def strings(self, name: str, count: int | None = None) -> Iterator[bytes]:
        """Read byte strings, as many as there should be."""
        ends = self.array(name, np.int64, (count,))
        sizes = np.diff(ends, prepend=0)
        size = self._archive.getinfo(f"{name}.bin").file_size
        if (sizes < 0).any() or (int(ends[-1]) if len(ends) else 0) != size:
            raise ValueError(f"the offsets of {name} do not fit its text")
        with self._archive.open(f"{name}.bin") as file:
            for length in sizes.tolist():
                yield file.read(length)


@contextmanager
def new_archive(path: Path) -> Iterator[ArchiveWriter]:
    """Yield what writes the file at `path`, which is replaced in one step when the block ends well."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.tmp-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                yield ArchiveWriter(archive)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
