"""Reading a snapshot's files against what its manifest promises."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from synthgym.errors import ConfigError, IntegrityError, SnapshotError
from synthgym.registry.layout import (
    CARD,
    ENVS,
    FILE_CAPS,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    README,
    REPORT,
    SOURCE,
    SPEC,
    env_parts,
    read_file,
)
from synthgym.registry.manifest import Entry, Manifest, parse_json
from synthgym.spec import SynthEnvSpec, sha256_digest


def read_manifest(root: Path) -> Manifest:
    """Return the checked manifest of the snapshot at `root`."""
    if not (root / MANIFEST).is_file():
        raise SnapshotError(f"{root} is not a snapshot: it holds no {MANIFEST}")
    return Manifest.from_bytes(read_file(root, (MANIFEST,), MAX_MANIFEST_BYTES))


def read_promised(root: Path, entry: Entry, file: str) -> bytes:
    """Return the bytes of one file of an environment; `IntegrityError` unless they are promised."""
    promised = entry.files[file]
    data = read_file(root, (*env_parts(entry.name, entry.version), file), FILE_CAPS[file])
    came = sha256_digest(data)
    if came != promised:
        raise IntegrityError(
            f"{root}: {file} of {entry.env_id} is not the file of the manifest: "
            f"promised {promised}, got {came}"
        )
    return data


def read_spec(root: Path, entry: Entry) -> SynthEnvSpec:
    """Return the environment of an entry, with every digest checked; nothing of it is executed."""
    source = read_promised(root, entry, SOURCE)
    raw = parse_json(read_promised(root, entry, SPEC), f"{SPEC} of {entry.env_id}")
    try:
        spec = SynthEnvSpec.from_json(raw, source.decode("utf-8"))
    except (ConfigError, SnapshotError, ValueError) as error:
        raise IntegrityError(f"{root}: {SPEC} of {entry.env_id}: {error}") from error
    for what in ("digest", "name", "version", "title", "skills"):
        _compare(root, entry, what, getattr(spec, what), getattr(entry, what))
    _compare(root, entry, "max_turns", spec.record.max_turns, entry.max_turns)
    if REPORT in entry.files:
        _compare(root, entry, "report_digest", spec.report_digest, entry.files[REPORT])
    return spec


def read_report(root: Path, entry: Entry) -> dict[str, Any]:
    """Return the validation report of an entry; `SnapshotError` when it has none."""
    if REPORT not in entry.files:
        raise SnapshotError(f"{root}: {entry.env_id} came without a validation report")
    return parse_json(read_promised(root, entry, REPORT), f"{REPORT} of {entry.env_id}")


def find_problems(root: Path, manifest: Manifest) -> Iterator[str]:
    """Yield every difference between the folder and its manifest, in a fixed order."""
    try:
        if read_manifest(root) != manifest:
            yield f"{root}: {MANIFEST} has changed since the snapshot was opened"
    except SnapshotError as error:
        yield str(error)
    for entry in manifest.entries:
        try:
            read_spec(root, entry)
            for file in (REPORT, CARD):
                if file in entry.files:
                    parse_json(read_promised(root, entry, file), f"{file} of {entry.env_id}")
        except SnapshotError as error:
            yield str(error)
    expected = _expected_files(manifest)
    for path in _all_files(root):
        if path not in expected:
            yield f"{root}: {path} is not in the manifest"


def _compare(root: Path, entry: Entry, what: str, came: object, promised: object) -> None:
    if came != promised:
        raise IntegrityError(
            f"{root}: {what} of {entry.env_id} is {came!r} in {SPEC}, "
            f"the manifest promises {promised!r}"
        )


def _expected_files(manifest: Manifest) -> set[str]:
    files = {MANIFEST, README}
    for entry in manifest.entries:
        folder = "/".join(env_parts(entry.name, entry.version))
        files |= {f"{folder}/{file}" for file in entry.files}
    return files | ({ENVS} if not manifest.entries else set())


def _all_files(root: Path) -> Iterator[str]:
    """Yield the path of everything under `root` but folders that hold something; links as links."""
    for folder, names, files in os.walk(root, followlinks=False):
        names.sort()
        inner = Path(folder).relative_to(root)
        for name in sorted(files):
            yield (inner / name).as_posix()
        for name in names:
            path = Path(folder, name)
            if stat.S_ISLNK(path.lstat().st_mode) or not any(path.iterdir()):
                yield (inner / name).as_posix()
