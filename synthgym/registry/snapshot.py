"""Snapshots, opened."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from synthgym.errors import EnvNotFoundError, InvalidIdError, SnapshotError
from synthgym.ids import did_you_mean, is_digest, parse_env_id, parse_pinned_id
from synthgym.registry.core import Core
from synthgym.registry.files import Files, open_files, read_file
from synthgym.registry.folder_layout import FolderReader
from synthgym.registry.layout import MANIFEST, MAX_MANIFEST_BYTES, SHARDS
from synthgym.registry.manifest import Entry, Manifest
from synthgym.registry.packed import VECTOR_TYPE, Packed
from synthgym.spec import JsonObject, SynthEnvSpec

_NEAR: Final = 20_000
"""Ids that a misspelt one is compared with."""


class Reader(Protocol):
    """What a layout offers."""

    def entries(self) -> Iterator[Entry]: ...
    def ids(self) -> Iterator[str]: ...
    def by_id(self, env_id: str) -> Entry | None: ...
    def by_digest(self, digest: str) -> Entry | None: ...
    def by_pinned_id(self, pinned_id: str) -> Entry | None: ...
    def named(self, name: str) -> list[Entry]: ...
    def digests(self) -> list[str]: ...
    def aliases(self) -> list[str]: ...
    def lists(self, entries: Sequence[Entry]) -> bool: ...
    def rows(self, places: list[int]) -> Iterator[Entry]: ...
    def spec(self, entry: Entry) -> SynthEnvSpec: ...
    def report(self, entry: Entry) -> dict[str, Any] | None: ...
    def vectors(self, embedder: str) -> Iterator[tuple[str, bytes]]: ...
    def packed(self, shard: int = 0, count: int = 1) -> Iterator[Packed]: ...
    def problems(self) -> Iterator[str]: ...


class Snapshot:
    """Environments in a folder or a packed file that was opened. Opening reads the manifest and nothing else.

    What is read later is read anew each time, and checked: see `docs/registry.md` for what is compared
    with what.
    """

    def __init__(self, files: Files, manifest: Manifest) -> None:
        self._files = files
        self._manifest = manifest
        self._reader = _reader(files, manifest)

    @classmethod
    def open(cls, path: str | Path) -> Snapshot:
        """Open the snapshot in a folder, or a packed one.

        `SnapshotError` when there is none or it needs a newer reader, `IntegrityError` when a byte
        of the manifest was changed.
        """
        files = open_files(Path(path))
        return cls(files, read_manifest(files))

    def __len__(self) -> int:
        return self._manifest.env_count

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the entries by name and version."""
        return self._reader.entries()

    def __contains__(self, digest: object) -> bool:
        return isinstance(digest, str) and is_digest(digest) and self._found(digest)

    def __repr__(self) -> str:
        return f"<Snapshot {self.name} {self.version}: {len(self)} environments at {self.path}>"

    @property
    def path(self) -> Path:
        """The folder or the packed file."""
        return self._files.place

    @property
    def files(self) -> Files:
        """Its files, as they are."""
        return self._files

    @property
    def name(self) -> str:
        """Name of the snapshot."""
        return self._manifest.name

    @property
    def version(self) -> str:
        """Version of the snapshot; a name and version stand for one digest."""
        return self._manifest.version

    @property
    def digest(self) -> str:
        """`sha256:<hex>` over everything that the snapshot holds, and its name and version."""
        return self._manifest.digest

    @property
    def core(self) -> Core:
        """What the digest covers: counts, roots, license, parents."""
        return self._manifest.core

    @property
    def manifest(self) -> Manifest:
        """The manifest as it was when the snapshot was opened."""
        return self._manifest

    def entry(self, id_or_digest: str) -> Entry:
        """Return the entry of an id, a pinned id or a digest.

        `EnvNotFoundError` when there is none: the message names the nearest id.
        """
        found = self._find(id_or_digest)
        if found is None:
            raise EnvNotFoundError(
                f"no environment {id_or_digest!r} in {self.path}{self._near(id_or_digest)}"
            )
        return found

    def versions(self, name: str) -> list[Entry]:
        """Entries of a name, the oldest version first; empty when there is none."""
        return self._reader.named(name)

    def spec(self, digest: str) -> SynthEnvSpec:
        """Read the environment of a digest (or id). Nothing of it is executed.

        `IntegrityError` says what is not as the snapshot promises.
        """
        return self._reader.spec(self.entry(digest))

    def report(self, digest: str) -> JsonObject:
        """Read the validation report of a digest (or id); `SnapshotError` when it has none."""
        entry = self.entry(digest)
        report = self._reader.report(entry)
        if report is None:
            raise SnapshotError(f"{self.path}: {entry.env_id} came without a validation report")
        return report

    def digests(self) -> list[str]:
        """Digests of all environments, sorted."""
        return self._reader.digests()

    def aliases(self) -> list[str]:
        """`Entry.alias_text` of all entries, in their order: two snapshots are compared by these.

        Every entry is checked, and so is the hash of the index: `SnapshotError` says what is wrong.
        """
        return self._reader.aliases()

    def lists(self, entries: Sequence[Entry]) -> bool:
        """Whether its entries are these, in this order, and written as synthgym writes them."""
        return self._reader.lists(entries)

    def entries_at(self, places: list[int]) -> Iterator[Entry]:
        """Iterate over the entries at ascending places in the order of all."""
        return self._reader.rows(places)

    def sample(self, count: int, rng: np.random.Generator) -> list[Entry]:
        """Draw `count` different entries, uniformly; all of them when there are fewer. Sorted by name."""
        chosen = rng.choice(len(self), size=min(count, len(self)), replace=False)
        return list(self._reader.rows(sorted(int(place) for place in chosen)))

    def search(
        self, text: str = "", *, skill: str | None = None, limit: int | None = None
    ) -> Iterator[Entry]:
        """Iterate over entries whose name or title holds every word of `text`, whatever the case."""
        words = text.casefold().split()
        found = (
            entry
            for entry in self
            if (skill is None or skill in entry.skills)
            and all(word in f"{entry.name} {entry.title}".casefold() for word in words)
        )
        return islice(found, limit)

    @property
    def embedders(self) -> tuple[str, ...]:
        """Embedders that the snapshot has vectors of."""
        return tuple(sorted(self._manifest.embedders))

    def vectors(self, embedder: str) -> Iterator[tuple[str, npt.NDArray[np.float16]]]:
        """Iterate over (digest, vector) by digest; `SnapshotError` when there are none of this embedder."""
        if embedder not in self._manifest.embedders:
            near = did_you_mean(embedder, self.embedders)
            raise SnapshotError(f"{self.path} holds no vectors of {embedder!r}{near}")
        for digest, data in self._reader.vectors(embedder):
            yield digest, np.frombuffer(data, VECTOR_TYPE)

    def packed(self, shard: int = 0, count: int = 1) -> Iterator[Packed]:
        """Iterate over the environments of a shard, by digest, as they travel: for writing another snapshot."""
        return self._reader.packed(shard, count)

    def file_problems(self) -> Iterator[str]:
        """Yield what differs in single files: the part of `verify` that the layout knows."""
        return self._reader.problems()

    def verify(self) -> tuple[str, ...]:
        """Read everything and return what differs from the manifest; empty when all is as promised.

        The manifest is read again, every digest and root is computed anew, and a file that the manifest
        does not name is a problem too, but for those that may lie beside a snapshot.
        """
        # A snapshot is opened far more often than it is verified.
        from synthgym.registry.verify import find_problems

        return tuple(find_problems(self, self._files))

    def _found(self, digest: str) -> bool:
        return self._reader.by_digest(digest) is not None

    def _find(self, wanted: str) -> Entry | None:
        if is_digest(wanted):
            return self._reader.by_digest(wanted)
        if parse_pinned_id(wanted) is not None:
            full = wanted if wanted.startswith("synthgym/") else f"synthgym/{wanted}"
            return self._reader.by_pinned_id(full)
        try:
            return self._reader.by_id(str(parse_env_id(wanted)))
        except InvalidIdError:
            return None

    def _near(self, wanted: str) -> str:
        known = list(islice(self._reader.ids(), _NEAR))
        full = wanted if wanted.startswith("synthgym/") else f"synthgym/{wanted}"
        near = difflib.get_close_matches(full, known, n=1, cutoff=0.6)
        return f"; did you mean {near[0]!r}?" if near else ""


def read_manifest(files: Files) -> Manifest:
    """Return the checked manifest of a snapshot's files."""
    place = files.place
    if not place.is_file() and not (place / MANIFEST).is_file():
        raise SnapshotError(f"{place} is not a snapshot: it holds no {MANIFEST}")
    return Manifest.from_bytes(read_file(files, MANIFEST, MAX_MANIFEST_BYTES))


def _reader(files: Files, manifest: Manifest) -> Reader:
    if manifest.layout == SHARDS:
        # Only this layout needs PyArrow, and `import synthgym` must not wait for it.
        from synthgym.registry.shard_layout import ShardReader

        return ShardReader(files, manifest)
    return FolderReader(files, manifest)
