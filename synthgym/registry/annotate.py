"""Noting figures in a snapshot that is there. Figures are annotations: ids and digests stay.

`spec.json` and `manifest.json` change together, so the folder is made anew beside its place and swapped
in one step. A reader, or a crash, sees the old figures or the new ones.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from synthgym.atomic import new_folder
from synthgym.errors import EnvNotFoundError, SnapshotError
from synthgym.registry.layout import MANIFEST, SPEC, env_parts
from synthgym.registry.manifest import Entry
from synthgym.registry.store import Snapshot, env_files, make_entry, make_manifest
from synthgym.registry.verify import read_manifest, read_promised, read_spec
from synthgym.spec import JsonObject


def check_writable(root: Path, package: Path | None = None) -> None:
    """Raise `SnapshotError` when figures cannot be noted in the snapshot at `root`, and say why.

    The environments of an installed wheel belong to the package. `package` is its folder, synthgym's
    own unless given (for tests).
    """
    package = Path(__file__).resolve().parents[1] if package is None else package
    place = root.resolve()
    if place == package.resolve() / "bundled":
        raise SnapshotError(
            f"{place} belongs to the installed package and is not written to: "
            "copy the folder and name the copy with --snapshot"
        )
    if not os.access(place, os.W_OK) or not os.access(place.parent, os.W_OK):
        raise SnapshotError(
            f"{place} is read-only: the folder and the one that holds it must be writable; "
            "copy it and name the copy with --snapshot"
        )
    if Path.cwd().is_relative_to(place):
        raise SnapshotError(
            f"{place} is swapped as a whole, and this process stands in it: run from another folder"
        )


def write_metrics(root: Path, metrics: Mapping[str, JsonObject]) -> Snapshot:
    """Note figures of environments, by their digest, and open the snapshot. One step for all of them.

    Of the metrics that an environment has, those of other names stay. Other files of the folder stay
    as they are. `EnvNotFoundError` for a digest that is not there; `IntegrityError` when a file of one
    of the environments is not as promised; `SnapshotError` when the folder cannot be written.
    """
    check_writable(root)
    place = root.resolve()
    manifest = read_manifest(place)
    entries = {entry.digest: entry for entry in manifest.entries}
    specs: dict[Path, bytes] = {}
    for digest, figures in metrics.items():
        if digest not in entries:
            raise EnvNotFoundError(f"no environment {digest!r} in {place}")
        old = entries[digest]
        data, entries[digest] = _noted(place, old, figures)
        specs[Path(*env_parts(old.name, old.version), SPEC)] = data
    noted = make_manifest(manifest.name, manifest.version, entries.values())
    try:
        with new_folder(place) as folder:
            shutil.copytree(place, folder, symlinks=True, copy_function=_link, dirs_exist_ok=True)
            for path, data in [*specs.items(), (Path(MANIFEST), noted.to_bytes())]:
                # The linked file is the old one as well: another file takes its place.
                (folder / path).unlink()
                (folder / path).write_bytes(data)
    except (OSError, shutil.Error) as error:
        raise SnapshotError(f"{place} was left as it is: {error}") from error
    return Snapshot.open(place)


def _noted(root: Path, entry: Entry, figures: JsonObject) -> tuple[bytes, Entry]:
    """`spec.json` of an environment with its figures, and the entry that promises it."""
    spec = read_spec(root, entry)
    spec = dataclasses.replace(spec, metrics={**spec.metrics, **figures})
    files = {file: read_promised(root, entry, file) for file in entry.files}
    files |= env_files(spec, {})
    return files[SPEC], make_entry(spec, files)


def _link(source: str, target: str) -> None:
    """A second name of a file that does not change, or a copy where the file system has no such thing."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
