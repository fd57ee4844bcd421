"""Building a registry from what people wrote by hand: `env.py` and `card.json`.

    registry/envs/<Name>/v<N>/env.py       the environment
    registry/envs/<Name>/v<N>/card.json    {"title": ..., "skills": [...], "license": "Apache-2.0"}

Every source is validated; `spec.json`, `report.json` and `manifest.json` are written beside it, all in one
step: the folder is swapped. Nothing is written unless everything is fine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from synthgym.atomic import FolderChangedError, change_folder
from synthgym.contract import SKILLS, TOOL_SKILLS
from synthgym.errors import ConfigError, SnapshotError
from synthgym.ids import did_you_mean, is_name
from synthgym.registry.core import Core, next_patch
from synthgym.registry.files import FolderFiles, read_file
from synthgym.registry.folder_layout import file_refs, folder_files
from synthgym.registry.layout import (
    CARD,
    ENVS,
    FILE_CAPS,
    FOLDER,
    MANIFEST,
    SIGNATURES,
    SOURCE,
    env_file,
)
from synthgym.registry.manifest import check_unique
from synthgym.registry.packed import Packed, Roots, pack_env
from synthgym.registry.snapshot import Snapshot
from synthgym.registry.strict import parse_json
from synthgym.registry.writing import check_succession, make_manifest, manifest_bytes
from synthgym.sandbox import Pool
from synthgym.spec import JsonObject, Provenance, SynthEnvSpec
from synthgym.validation import validate

DEFAULT_NAME: Final = "bundled"
DEFAULT_VERSION: Final = "0.1.0"
_CARD_KEYS: Final = frozenset({"title", "skills", "license", "author"})
_CARD_REQUIRED: Final = frozenset({"title", "skills", "license"})


@dataclass(frozen=True, slots=True)
class _Built:
    """One environment, validated, with every file that its folder is to hold."""

    item: Packed
    files: dict[str, bytes]


def build_bundled(
    root: Path,
    *,
    name: str | None = None,
    version: str | None = None,
    force: bool = False,
    pool: Pool | None = None,
) -> Snapshot:
    """Validate every environment under `root/envs`, write what is derived, and open the result.

    Name and version stay those of the manifest that is there, or 0.1.0; when nothing but notes differ, it is
    the next patch. `SnapshotError` lists every
    environment that is not fine, and then nothing was written; it is raised too when an id that
    the old manifest names would stand for another content, unless `force` (for work on
    environments that nobody was given yet). Metrics stay with the content that they were measured
    of. The same sources and metrics give the same bytes.
    """
    metrics = _metrics(root)
    built: list[_Built] = []
    problems: list[str] = []
    for env_name, number in _folders(root):
        try:
            built.append(_build_env(root, env_name, number, metrics, pool))
        except (SnapshotError, ConfigError) as error:
            problems.append(str(error))
    if problems:
        raise SnapshotError(f"{root} was not built:\n" + "\n".join(problems))
    old = _old(root, force=force)
    roots = Roots()
    for item in sorted(built, key=lambda b: b.item.entry.digest):
        roots.add(item.item.entry, item.item.notes)
    check_unique(roots.entries)
    core = _core(roots, old, name, version)
    refs = [ref for b in built for ref in file_refs(b.item.entry, b.files)]
    manifest = make_manifest(core, FOLDER, refs, roots.entries, {})
    if old is not None and not force:
        check_succession(old, manifest, roots.entries)
    changes = {MANIFEST: manifest_bytes(manifest)}
    for b in built:
        entry = b.item.entry
        changes |= {env_file(entry.name, entry.version, n): d for n, d in b.files.items()}
    if changed := {path: data for path, data in changes.items() if not _is(root / path, data)}:
        # The signatures beside were of the old manifest.
        expected = {} if old is None else {MANIFEST: old.manifest.to_bytes()}
        try:
            change_folder(root, changed | {SIGNATURES: None}, expected)
        except FolderChangedError as error:
            raise SnapshotError(f"{error}: build again") from error
    return Snapshot.open(root)


def _old(root: Path, *, force: bool) -> Snapshot | None:
    """The snapshot that is there; with `force`, one that cannot be read counts as none."""
    if not (root / MANIFEST).is_file():
        return None
    try:
        return Snapshot.open(root)
    except SnapshotError:
        if force:
            return None
        raise


def _core(roots: Roots, old: Snapshot | None, name: str | None, version: str | None) -> Core:
    """The core of the new content. Without a version: the old one, or its next patch when only notes differ."""
    core = roots.core(
        name or (DEFAULT_NAME if old is None else old.name),
        version or (DEFAULT_VERSION if old is None else old.version),
    )
    same = old is not None and old.core.content_digest == core.content_digest
    if version is None and old is not None and same and old.core != core:
        return dataclasses.replace(core, version=next_patch(old.version))
    return core


def _folders(root: Path) -> list[tuple[str, int]]:
    """Return name and version of every environment folder; `SnapshotError` for any other folder."""
    envs = root / ENVS
    if not envs.is_dir():
        raise SnapshotError(f"{root} holds no folder {ENVS!r}: nothing to build")
    found = []
    for folder in sorted(envs.glob("*/*")):
        name, label = folder.parent.name, folder.name
        number = label.removeprefix("v")
        plain = number.isascii() and number.isdecimal() and label == f"v{int(number)}"
        if not (plain and is_name(name)):
            raise SnapshotError(
                f"{folder}: expected {ENVS}/<Name>/v<N>, for example LedgerAudit/v0"
            )
        found.append((name, int(number)))
    return found


def _metrics(root: Path) -> dict[str, JsonObject]:
    """What is noted of the environments, by digest. What is not as the manifest promises is left out."""
    try:
        snapshot = Snapshot.open(root)
    except SnapshotError:  # there is none yet, or it is to be replaced
        return {}
    found: dict[str, JsonObject] = {}
    for entry in snapshot:
        with suppress(SnapshotError):  # an author changed the source, or a file is damaged
            found[entry.digest] = snapshot.spec(entry.digest).metrics
    return found


def _build_env(
    root: Path,
    name: str,
    version: int,
    metrics: Mapping[str, JsonObject],
    pool: Pool | None,
) -> _Built:
    files, shown = FolderFiles(root), env_file(name, version, "").rstrip("/")
    source = read_file(files, f"{shown}/{SOURCE}", FILE_CAPS[SOURCE])
    card_bytes = read_file(files, f"{shown}/{CARD}", FILE_CAPS[CARD])
    card = _card(card_bytes, f"{shown}/{CARD}")
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SnapshotError(f"{shown}/{SOURCE} is not UTF-8: {error}") from error
    report = validate(text, pool=pool)
    if not report.ok or report.record is None:
        findings = "; ".join(f"{f.reason}: {f.detail}" for f in report.refusals)
        raise SnapshotError(f"{shown}/{SOURCE} is refused: {findings}")
    spec = SynthEnvSpec(
        record=report.record,
        name=name,
        version=version,
        title=card["title"],
        skills=tuple(card["skills"]),
        license=card["license"],
        provenance=Provenance(author=card.get("author", "")),
        metrics=metrics.get(report.record.digest, {}),
    )
    item = pack_env(spec, {spec.digest: report.to_json()})
    return _Built(item, folder_files(item) | {CARD: card_bytes})


def _card(data: bytes, shown: str) -> dict[str, Any]:
    """Return a checked card; `SnapshotError` says what is wrong with it."""
    card = parse_json(data, shown)
    if not (card.keys() >= _CARD_REQUIRED and card.keys() <= _CARD_KEYS):
        raise SnapshotError(
            f"{shown}: expected {', '.join(sorted(_CARD_REQUIRED))} (and author), got {sorted(card)}"
        )
    skills = card["skills"]
    if not isinstance(skills, list) or not skills:
        raise SnapshotError(f"{shown}: skills must be a list of at least one skill")
    known = (*SKILLS, *TOOL_SKILLS)
    for skill in skills:
        if skill not in known:
            raise SnapshotError(
                f"{shown}: unknown skill {skill!r}{did_you_mean(str(skill), known)} "
                f"(there are {', '.join(known)})"
            )
    if not _texts(card[key] for key in sorted(card.keys() - {"skills"})):
        raise SnapshotError(f"{shown}: title, license and author must be texts that are not empty")
    return card


def _texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) and value.strip() for value in values)


def _is(path: Path, data: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == data
