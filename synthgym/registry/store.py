"""Snapshots on disk: open, read, write."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from synthgym.atomic import new_folder
from synthgym.errors import EnvNotFoundError, InvalidIdError, SnapshotError
from synthgym.ids import did_you_mean, is_digest, parse_env_id, parse_pinned_id
from synthgym.registry.layout import (
    ENVS,
    FILE_CAPS,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    REPORT,
    SOURCE,
    SPEC,
    env_parts,
)
from synthgym.registry.manifest import Entry, Manifest
from synthgym.registry.verify import find_problems, read_manifest, read_report, read_spec
from synthgym.spec import JsonObject, SynthEnvSpec, sha256_digest

Files = Mapping[str, bytes]
"""Bytes by file name: one environment's folder."""


class Snapshot:
    """Environments in a folder that was opened. Opening reads the manifest and nothing else.

    Every other file is checked against the manifest each time it is read.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._path = path
        self._manifest = manifest
        self._by_digest = {entry.digest: entry for entry in manifest.entries}
        self._by_id = {entry.env_id: entry for entry in manifest.entries}

    @classmethod
    def open(cls, path: str | Path) -> Snapshot:
        """Open the snapshot in a folder.

        `SnapshotError` when there is none or it needs a newer reader, `IntegrityError` when a byte
        of the manifest was changed.
        """
        return cls(Path(path), read_manifest(Path(path)))

    def __len__(self) -> int:
        return len(self._manifest.entries)

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the entries by name and version."""
        return iter(self._manifest.entries)

    def __contains__(self, digest: object) -> bool:
        return digest in self._by_digest

    def __repr__(self) -> str:
        return f"<Snapshot {self.name} {self.version}: {len(self)} environments at {self._path}>"

    @property
    def path(self) -> Path:
        """The folder."""
        return self._path

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
        """`sha256:<hex>` over the environments and their ids."""
        return self._manifest.digest

    def entry(self, id_or_digest: str) -> Entry:
        """Return the entry of an id, a pinned id or a digest.

        `EnvNotFoundError` when there is none: the message names the nearest id.
        """
        found = self._find(id_or_digest)
        if found is None:
            near = did_you_mean(id_or_digest, self._by_id) or did_you_mean(
                f"synthgym/{id_or_digest}", self._by_id
            )
            raise EnvNotFoundError(f"no environment {id_or_digest!r} in {self._path}{near}")
        return found

    def spec(self, digest: str) -> SynthEnvSpec:
        """Read the environment of a digest (or id).

        `IntegrityError` names the file whose bytes are not those of the manifest.
        """
        return read_spec(self._path, self.entry(digest))

    def report(self, digest: str) -> JsonObject:
        """Read the validation report of a digest (or id); `SnapshotError` when it has none."""
        return read_report(self._path, self.entry(digest))

    def verify(self) -> tuple[str, ...]:
        """Read everything and return what differs from the manifest; empty when all is as promised.

        The manifest is read again, and a file that it does not name is a problem too, but for
        `README.md`.
        """
        return tuple(find_problems(self._path, self._manifest))

    def _find(self, wanted: str) -> Entry | None:
        if is_digest(wanted):
            return self._by_digest.get(wanted)
        if parse_pinned_id(wanted) is not None:
            full = wanted if wanted.startswith("synthgym/") else f"synthgym/{wanted}"
            return next((e for e in self if e.pinned_id == full), None)
        try:
            return self._by_id.get(str(parse_env_id(wanted)))
        except InvalidIdError:
            return None


def write_snapshot(
    path: str | Path,
    specs: Iterable[SynthEnvSpec],
    *,
    name: str,
    version: str,
    reports: Mapping[str, JsonObject] | None = None,
    replace: bool = False,
) -> Snapshot:
    """Write a snapshot folder in one step and open it. The same content gives the same bytes.

    `reports` holds validation reports by environment digest; the spec that is written names the
    digest of its report. With `replace` a snapshot that is there is replaced; after a failure or a
    crash the old one is there unchanged. `SnapshotError` when something is there already (without
    `replace`), when an id or a digest comes twice, or when an id of the replaced snapshot would
    stand for another content.
    """
    target = Path(path)
    files: dict[str, Files] = {}
    entries: list[Entry] = []
    for spec in specs:
        files[spec.env_id] = env_files(spec, reports or {})
        entries.append(make_entry(spec, files[spec.env_id]))
    manifest = make_manifest(name, version, entries)
    if target.exists() or target.is_symlink():
        _check_replaceable(target, manifest, allowed=replace)
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(target) as folder:
        (folder / ENVS).mkdir()
        for entry in manifest.entries:
            inner = folder.joinpath(*env_parts(entry.name, entry.version))
            inner.mkdir(parents=True)
            for file, data in files[entry.env_id].items():
                (inner / file).write_bytes(data)
        (folder / MANIFEST).write_bytes(manifest.to_bytes())
    return Snapshot.open(target)


def env_files(spec: SynthEnvSpec, reports: Mapping[str, JsonObject]) -> dict[str, bytes]:
    """Return the files of one environment, with the report that `reports` holds for its digest."""
    try:
        files = {SOURCE: spec.record.source.encode("utf-8")}
        report = reports.get(spec.digest)
        if report is not None:
            files[REPORT] = _readable_json(report)
            spec = dataclasses.replace(spec, report_digest=sha256_digest(files[REPORT]))
        files[SPEC] = _readable_json(spec.to_json())
    except (ValueError, TypeError) as error:
        raise SnapshotError(
            f"{spec.name}-v{spec.version} cannot be written as UTF-8 and strict JSON: {error}"
        ) from error
    return files


def make_entry(spec: SynthEnvSpec, files: Files) -> Entry:
    """Return the manifest's entry for a spec and its files; `SnapshotError` when one is too large."""
    for file, data in files.items():
        if len(data) > FILE_CAPS[file]:
            raise SnapshotError(
                f"{file} of {spec.env_id} may have {FILE_CAPS[file]} bytes, got {len(data)}"
            )
    return Entry(
        name=spec.name,
        version=spec.version,
        digest=spec.digest,
        title=spec.title,
        skills=spec.skills,
        max_turns=spec.record.max_turns,
        files={file: sha256_digest(data) for file, data in sorted(files.items())},
    )


def make_manifest(name: str, version: str, entries: Iterable[Entry]) -> Manifest:
    """Return a manifest that can be read again; `SnapshotError` when it would be too large."""
    ordered = sorted(entries, key=lambda entry: (entry.name, entry.version))
    manifest = Manifest(name=name, version=version, entries=tuple(ordered))
    size = len(manifest.to_bytes())
    if size > MAX_MANIFEST_BYTES:
        raise SnapshotError(f"{MANIFEST} may have {MAX_MANIFEST_BYTES} bytes, got {size}")
    return manifest


def check_succession(old: Manifest, new: Manifest) -> None:
    """Raise `SnapshotError` when an id, of a snapshot or an environment, changes its content."""
    if (old.name, old.version) == (new.name, new.version) and old.digest != new.digest:
        raise SnapshotError(
            f"{old.name} {old.version} stands for {old.digest}, the new content comes to "
            f"{new.digest}: give the snapshot the next version"
        )
    known = {entry.env_id: entry.digest for entry in old.entries}
    for entry in new.entries:
        if known.get(entry.env_id, entry.digest) != entry.digest:
            raise SnapshotError(
                f"{entry.env_id} stands for {known[entry.env_id]}, the new content comes to "
                f"{entry.digest}: an id stands for one content for ever, so give the environment "
                "the next version"
            )


def _check_replaceable(target: Path, manifest: Manifest, *, allowed: bool) -> None:
    if not allowed:
        raise SnapshotError(f"{target} exists already; pass replace=True to replace a snapshot")
    if target.is_symlink() or not target.is_dir():
        raise SnapshotError(f"{target} is not a folder, so it is not replaced by a snapshot")
    if any(target.iterdir()):
        check_succession(read_manifest(target), manifest)  # and nothing but a snapshot is replaced


def _readable_json(value: JsonObject) -> bytes:
    """Sorted keys, indented: files that people review line by line."""
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"
