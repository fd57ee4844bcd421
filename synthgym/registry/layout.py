"""Where the files of a snapshot are, and how large they may be.

The folder layout, for few environments and for people:

    manifest.json                        the only file that `open` reads
    envs/<Name>/v<N>/env.py              the source, verbatim
    envs/<Name>/v<N>/spec.json           record and annotations
    envs/<Name>/v<N>/report.json         what validation found (optional)
    envs/<Name>/v<N>/card.json           what the author wrote by hand (optional)

The layout of shards, for many. Environments go by the first bits of their digest:

    manifest.json
    index.parquet                        ids, digests, titles, skills, by name and version
    envs/envs-<i>-of-<n>.parquet         records and sources, by digest
    notes/notes-<i>-of-<n>.parquet       annotations, by digest and kind

Both may hold `vectors/<embedder>/vectors-<i>-of-<n>.safetensors`, and beside the snapshot, no part of it,
what `BESIDE` lists. A snapshot may come from a stranger: paths are made here from checked names and
compared with those of the manifest, never taken from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from synthgym.contract import MAX_DIALECT_BYTES
from synthgym.errors import SnapshotError
from synthgym.ids import is_digest, is_name

MANIFEST: Final = "manifest.json"
SIGNATURES: Final = "manifest.json.sig"
README: Final = "README.md"
CROISSANT: Final = "croissant.json"
ATTRIBUTES: Final = ".gitattributes"
BESIDE: Final = (README, CROISSANT, SIGNATURES, ATTRIBUTES)
"""Files that may lie beside those of the manifest and are no part of the snapshot."""
_BYTECODE: Final = re.compile(r"envs/[^/]+/v\d+/__pycache__/env\.[a-z0-9.-]+\.pyc", re.ASCII)
FOLDER: Final = "folder"
SHARDS: Final = "shards"
LAYOUTS: Final = (FOLDER, SHARDS)

ENVS: Final = "envs"
NOTES: Final = "notes"
VECTORS: Final = "vectors"
INDEX: Final = "index.parquet"
SOURCE: Final = "env.py"
SPEC: Final = "spec.json"
REPORT: Final = "report.json"
CARD: Final = "card.json"

MAX_MANIFEST_BYTES: Final = 4 * 1024 * 1024
MAX_ENTRIES: Final = 5_000
"""Environments of the folder layout: their manifest lists each."""
MAX_SHARD_ENTRIES: Final = 20_000_000
MAX_FILES: Final = 32_768
MAX_SHARD_BYTES: Final = 4 * 1024**3
SHARD_TARGET: Final = 4096
"""Environments a shard, at most, until there are `MAX_SHARDS`."""
MAX_SHARDS: Final = 256
FILE_CAPS: Final = {
    SOURCE: MAX_DIALECT_BYTES,
    SPEC: 256 * 1024,
    REPORT: 1024 * 1024,
    CARD: 16 * 1024,
}
"""Largest size in bytes of each file of an environment."""
_KIND_OF: Final = {SOURCE: "source", SPEC: "spec", REPORT: "report", CARD: "card"}
REQUIRED_FILES: Final = frozenset({SOURCE, SPEC})
_EMBEDDER: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_SHARD: Final = re.compile(
    r"(?P<folder>envs|notes|vectors/[a-z0-9][a-z0-9._-]{0,62})/(?P<kind>envs|notes|vectors)"
    r"-(?P<number>\d{3})-of-(?P<count>\d{3})\.(?:parquet|safetensors)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A file that a manifest promises."""

    path: str
    sha256: str
    """`sha256:<hex>` of its bytes."""
    size: int
    """In bytes."""
    kind: str
    """source, spec, report or card; envs, notes, index or vectors."""
    rows: int = 0
    """Rows of a table; 0 for a file that is none."""

    def to_json(self) -> dict[str, Any]:
        """Return the object that stands in the manifest."""
        return {
            "path": self.path,
            "sha256": self.sha256,
            "size": self.size,
            "kind": self.kind,
            "rows": self.rows,
        }


def is_beside(path: str) -> bool:
    """Whether a file may lie beside a snapshot. So may bytecode: installers compile every `.py`, nobody loads it."""
    return path in BESIDE or _BYTECODE.fullmatch(path) is not None


def env_parts(name: str, version: int) -> tuple[str, str, str]:
    """Return the folder of an environment as path components; `SnapshotError` for a bad name."""
    if not is_name(name) or not 0 <= version < 1_000_000:
        raise SnapshotError(f"an environment cannot be named {name!r} with version {version!r}")
    return (ENVS, name, f"v{version}")


def env_file(name: str, version: int, file: str) -> str:
    """Return the path of one file of an environment in the folder layout."""
    return "/".join((*env_parts(name, version), file))


def shard_count(environments: int) -> int:
    """Return the number of shards: the least power of two with `SHARD_TARGET` a shard, at most 256."""
    count = 1
    while count * SHARD_TARGET < environments and count < MAX_SHARDS:
        count *= 2
    return count


def shard_of(digest: str, count: int) -> int:
    """Return the shard of a digest: its first bits."""
    return int(digest[7:9], 16) * count // 256


def table_path(kind: str, number: int, count: int) -> str:
    """Return the path of a shard of `envs` or `notes`."""
    return f"{kind}/{kind}-{number:03d}-of-{count:03d}.parquet"


def vectors_path(embedder: str, number: int, count: int) -> str:
    """Return the path of a shard of vectors."""
    return f"{VECTORS}/{embedder}/vectors-{number:03d}-of-{count:03d}.safetensors"


def is_embedder(text: object) -> bool:
    """Whether `text` can name an embedder: lower-case letters, digits, '.', '_', '-'."""
    return isinstance(text, str) and _EMBEDDER.fullmatch(text) is not None


def embedder_id(name: str) -> str:
    """The name under which a snapshot keeps the vectors of an embedder: `minilm/1` becomes `minilm-1`."""
    return name.lower().replace("/", "-")


def check_files(
    files: Sequence[FileRef], layout: str, environments: Iterable[tuple[str, int]]
) -> None:
    """Raise `SnapshotError` unless every path is one that a snapshot of this layout can have."""
    if len(files) > MAX_FILES:
        raise SnapshotError(f"a snapshot has at most {MAX_FILES} files, got {len(files)}")
    paths = [file.path for file in files]
    if not all(isinstance(path, str) for path in paths) or paths != sorted(set(paths)):
        raise SnapshotError("manifest.json: files must go by path, each once")
    folder = _folder_files(environments) if layout == FOLDER else {}
    missing = {path for path, file in folder.items() if file in REQUIRED_FILES} - set(paths)
    if layout == SHARDS:
        missing = {INDEX} - set(paths)
    if missing:
        raise SnapshotError(f"manifest.json: {min(missing)} is missing")
    for file in files:
        _check_file(file, folder, layout)
    _check_shards(files, layout)


def _check_shards(files: Sequence[FileRef], layout: str) -> None:
    """Raise `SnapshotError` unless all shards are of one set, and none of its tables is missing."""
    paths = {file.path for file in files}
    matches = [match for path in paths if (match := _SHARD.fullmatch(path)) is not None]
    count = 1 if layout == FOLDER else max((int(match["count"]) for match in matches), default=1)
    tables = (
        {table_path(kind, number, count) for kind in (ENVS, NOTES) for number in range(count)}
        if layout == SHARDS
        else set()
    )
    if tables - paths:
        raise SnapshotError(f"manifest.json: {min(tables - paths)} is missing")
    if any(int(match["count"]) != count for match in matches):
        raise SnapshotError("manifest.json: the shards are of several sets")


def embedders_of(files: Iterable[FileRef]) -> set[str]:
    """Embedders that there are files of vectors of."""
    return {file.path.split("/")[1] for file in files if file.kind == VECTORS}


def _check_file(file: FileRef, folder: dict[str, str], layout: str) -> None:
    if not isinstance(file.sha256, str) or not is_digest(file.sha256):
        raise SnapshotError(f"manifest.json: {file.path!r} has sha256 {file.sha256!r}")
    kind, cap = _kind_and_cap(file.path, folder, layout)
    if kind is None or file.kind != kind:
        raise SnapshotError(
            f"manifest.json: {file.path!r} of kind {file.kind!r} is no file of this layout"
        )
    for what, most in (("size", cap), ("rows", MAX_SHARD_ENTRIES * 8)):
        number = getattr(file, what)
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= most:
            raise SnapshotError(f"manifest.json: {file.path} has {what} {number!r}, at most {most}")


def _kind_and_cap(path: str, folder: dict[str, str], layout: str) -> tuple[str | None, int]:
    if path in folder:
        return _KIND_OF[folder[path]], FILE_CAPS[folder[path]]
    if path == INDEX and layout == SHARDS:
        return "index", MAX_SHARD_BYTES
    match = _SHARD.fullmatch(path)
    if match is None:
        return None, 0
    kind, number, count = match["kind"], int(match["number"]), int(match["count"])
    if kind == VECTORS:
        expected = vectors_path(match["folder"].partition("/")[2], number, count)
    else:
        expected = table_path(kind, number, count) if layout == SHARDS else ""
    known = 1 <= count <= MAX_SHARDS and number < count and count & (count - 1) == 0
    return (kind if known and path == expected else None), MAX_SHARD_BYTES


def _folder_files(environments: Iterable[tuple[str, int]]) -> dict[str, str]:
    """File names by path: what the folder layout may hold of these environments."""
    return {
        env_file(name, version, file): file for name, version in environments for file in FILE_CAPS
    }


def bundled_root(package: Path | None = None) -> Path:
    """Return the folder of the environments that come with synthgym.

    In an installed wheel it is `synthgym/bundled`, in an editable install the repository's
    `registry`. `package` is the folder of the package, synthgym's own unless given (for tests).
    `SnapshotError` when neither is there.
    """
    package = Path(__file__).resolve().parents[1] if package is None else package
    bundled = package / "bundled"
    if bundled.is_dir():
        return bundled
    repository = package.parent
    # A folder named `registry` beside site-packages/synthgym would be somebody else's.
    if (repository / "registry").is_dir() and (repository / "pyproject.toml").is_file():
        return repository / "registry"
    raise SnapshotError(
        f"no bundled environments: neither {bundled} nor {repository / 'registry'} is there; "
        "reinstall synthgym"
    )
