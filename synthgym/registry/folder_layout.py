"""The folder layout: files that people read and review, for few environments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synthgym.errors import ConfigError, IntegrityError, SnapshotError
from synthgym.registry.files import Files, read_file
from synthgym.registry.layout import (
    CARD,
    FILE_CAPS,
    REPORT,
    SOURCE,
    SPEC,
    FileRef,
    env_file,
    shard_of,
)
from synthgym.registry.manifest import Entry, Manifest
from synthgym.registry.notes import REPORT as REPORT_NOTE
from synthgym.registry.notes import VECTOR
from synthgym.registry.packed import Packed, compare, pack_env
from synthgym.registry.strict import parse_json
from synthgym.registry.vectors import read_vectors, vectors_file
from synthgym.spec import JsonObject, SynthEnvSpec, sha256_digest


class FolderReader:
    """Environments of the folder layout. Every file is compared with the manifest each time it is read."""

    def __init__(self, files: Files, manifest: Manifest) -> None:
        self._files = files
        self._refs = {ref.path: ref for ref in manifest.files}
        self._manifest = manifest
        self._by_id = {entry.env_id: entry for entry in manifest.entries}
        self._by_digest = {entry.digest: entry for entry in manifest.entries}
        self._by_pinned = {entry.pinned_id: entry for entry in manifest.entries}

    def entries(self) -> Iterator[Entry]:
        """Iterate over the entries by name and version."""
        return iter(self._manifest.entries)

    def by_id(self, env_id: str) -> Entry | None:
        """Find an entry by `synthgym/<Name>-v<N>`."""
        return self._by_id.get(env_id)

    def by_digest(self, digest: str) -> Entry | None:
        """Find an entry by its digest."""
        return self._by_digest.get(digest)

    def by_pinned_id(self, pinned_id: str) -> Entry | None:
        """Find an entry by its pinned id."""
        return self._by_pinned.get(pinned_id)

    def named(self, name: str) -> list[Entry]:
        """Entries of a name, by version."""
        return [entry for entry in self._manifest.entries if entry.name == name]

    def ids(self) -> Iterator[str]:
        """Iterate over the ids for people: what a misspelt one is compared with."""
        return iter(self._by_id)

    def digests(self) -> list[str]:
        """Every digest, sorted."""
        return sorted(self._by_digest)

    def aliases(self) -> list[str]:
        """`alias_text` of every entry, in the order of `entries()`."""
        return [entry.alias_text for entry in self._manifest.entries]

    def lists(self, entries: Sequence[Entry]) -> bool:
        """Whether the manifest has these entries, in this order."""
        return tuple(entries) == self._manifest.entries

    def rows(self, places: list[int]) -> Iterator[Entry]:
        """Iterate over the entries at ascending places of `entries()`."""
        return (self._manifest.entries[place] for place in places)

    def spec(self, entry: Entry) -> SynthEnvSpec:
        """Read an environment; nothing of it is executed."""
        source = self._read(entry, SOURCE)
        raw = parse_json(self._read(entry, SPEC), f"{SPEC} of {entry.env_id}")
        try:
            spec = SynthEnvSpec.from_json(raw, source.decode("utf-8"))
        except (ConfigError, SnapshotError, ValueError) as error:
            raise IntegrityError(
                f"{self._files.place}: {SPEC} of {entry.env_id}: {error}"
            ) from error
        for what in ("digest", "name", "version", "title", "skills", "license"):
            compare(entry, what, getattr(spec, what), getattr(entry, what))
        compare(entry, "max_turns", spec.record.max_turns, entry.max_turns)
        return spec

    def report(self, entry: Entry) -> dict[str, Any] | None:
        """Read the validation report of an environment; None when it has none."""
        if env_file(entry.name, entry.version, REPORT) not in self._refs:
            return None
        return parse_json(self._read(entry, REPORT), f"{REPORT} of {entry.env_id}")

    def vectors(self, embedder: str) -> Iterator[tuple[str, bytes]]:
        """Iterate over (digest, float16 bytes) by digest."""
        return read_vectors(self._files, self._manifest, embedder)

    def packed(self, shard: int = 0, count: int = 1) -> Iterator[Packed]:
        """Iterate over the environments of a shard, by digest, with all their notes."""
        vectors = {e: dict(self.vectors(e)) for e in self._manifest.embedders}
        for embedder, rows in vectors.items():
            if strays := rows.keys() - self._by_digest.keys():
                raise IntegrityError(f"a {VECTOR}{embedder} of {min(strays)}, which is not there")
        for entry in sorted(self._manifest.entries, key=lambda e: e.digest):
            if shard_of(entry.digest, count) != shard:
                continue
            spec = self.spec(entry)
            report = self.report(entry)
            item = pack_env(spec, {} if report is None else {entry.digest: report})
            if REPORT_NOTE in item.notes:
                found = sha256_digest(item.notes[REPORT_NOTE])
                compare(entry, "report_digest", found, spec.report_digest)
            own = {VECTOR + e: v[entry.digest] for e, v in vectors.items() if entry.digest in v}
            yield Packed(
                entry=entry,
                record=item.record,
                source=item.source,
                notes=dict(sorted({**item.notes, **own}.items())),
            )

    def problems(self) -> Iterator[str]:
        """Yield what differs in single files."""
        for entry in self._manifest.entries:
            try:
                self.spec(entry)
                for file in (REPORT, CARD):
                    if env_file(entry.name, entry.version, file) in self._refs:
                        parse_json(self._read(entry, file), f"{file} of {entry.env_id}")
            except SnapshotError as error:
                yield str(error)

    def _read(self, entry: Entry, file: str) -> bytes:
        path = env_file(entry.name, entry.version, file)
        data = read_file(self._files, path, FILE_CAPS[file])
        came, promised = sha256_digest(data), self._refs[path].sha256
        if came != promised:
            raise IntegrityError(
                f"{self._files.place}: {file} of {entry.env_id} is not the file of the manifest (or the "
                f"snapshot was replaced since it was opened): promised {promised}, got {came}"
            )
        return data


def folder_files(item: Packed) -> dict[str, bytes]:
    """Return the files of one environment, by name."""
    spec = item.spec()
    files = {SOURCE: item.source.encode("utf-8"), SPEC: _readable_json(spec.to_json())}
    if REPORT_NOTE in item.notes:
        files[REPORT] = _readable_json(parse_json(item.notes[REPORT_NOTE], REPORT))
    for file, data in files.items():
        if len(data) > FILE_CAPS[file]:
            raise SnapshotError(
                f"{file} of {spec.env_id} may have {FILE_CAPS[file]} bytes, got {len(data)}"
            )
    return files


def file_refs(entry: Entry, files: Mapping[str, bytes]) -> list[FileRef]:
    """What the manifest says of the files of one environment."""
    return [
        FileRef(
            path=env_file(entry.name, entry.version, name),
            sha256=sha256_digest(data),
            size=len(data),
            kind=name.partition(".")[0].replace("env", "source"),
        )
        for name, data in sorted(files.items())
    ]


def write_folder(root: Path, items: list[Packed]) -> list[FileRef]:
    """Write the files of every environment below `root`, sorted by digest; what the manifest says of them."""
    refs: list[FileRef] = []
    for item in items:
        files = folder_files(item)
        for name, data in files.items():
            path = root / env_file(item.entry.name, item.entry.version, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        refs += file_refs(item.entry, files)
    for ref, data in vector_files(items):
        (root / ref.path).parent.mkdir(parents=True, exist_ok=True)
        (root / ref.path).write_bytes(data)
        refs.append(ref)
    return refs


def vector_files(items: Sequence[Packed]) -> list[tuple[FileRef, bytes]]:
    """The files of vectors of all environments, sorted by digest: what the manifest says, and their bytes."""
    kinds = sorted({kind for item in items for kind in item.notes if kind.startswith(VECTOR)})
    return [
        vectors_file(
            kind.removeprefix(VECTOR),
            0,
            1,
            [(item.entry.digest, item.notes[kind]) for item in items if kind in item.notes],
        )
        for kind in kinds
    ]


def _readable_json(value: JsonObject) -> bytes:
    """Sorted keys, indented: files that people review line by line."""
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"
