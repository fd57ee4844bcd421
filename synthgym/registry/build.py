"""Building a registry from what people wrote by hand: `env.py` and `card.json`.

    registry/envs/<Name>/v<N>/env.py       the environment
    registry/envs/<Name>/v<N>/card.json    {"title": ..., "skills": [...], "license": "Apache-2.0"}

Every source is validated; `spec.json`, `report.json` and `manifest.json` are written beside it.
Nothing is written unless everything is fine, and the manifest comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from synthgym.atomic import write_file
from synthgym.contract import SKILLS, TOOL_SKILLS
from synthgym.errors import ConfigError, SnapshotError
from synthgym.ids import did_you_mean, is_name
from synthgym.registry.layout import (
    CARD,
    ENVS,
    FILE_CAPS,
    MANIFEST,
    SOURCE,
    env_parts,
    read_file,
)
from synthgym.registry.manifest import Entry, parse_json
from synthgym.registry.store import (
    Snapshot,
    check_succession,
    env_files,
    make_entry,
    make_manifest,
)
from synthgym.registry.verify import read_manifest, read_spec
from synthgym.sandbox import Pool
from synthgym.spec import JsonObject, Provenance, SynthEnvSpec, sha256_digest
from synthgym.validation import validate

DEFAULT_NAME: Final = "bundled"
DEFAULT_VERSION: Final = "0.1.0"
_CARD_KEYS: Final = frozenset({"title", "skills", "license", "author"})
_CARD_REQUIRED: Final = frozenset({"title", "skills", "license"})


@dataclass(frozen=True, slots=True)
class _Built:
    """One environment, validated, with every file that its folder is to hold."""

    entry: Entry
    files: dict[str, bytes]


def build_bundled(
    root: Path, *, version: str | None = None, force: bool = False, pool: Pool | None = None
) -> Snapshot:
    """Validate every environment under `root/envs`, write what is derived, and open the result.

    The version stays that of the manifest that is there, or 0.1.0. `SnapshotError` lists every
    environment that is not fine, and then nothing was written; it is raised too when an id that
    the old manifest names would stand for another content, unless `force` (for work on
    environments that nobody was given yet). Metrics stay with the content that they were measured
    of. The same sources and metrics give the same bytes.
    """
    metrics = _metrics(root)
    built: list[_Built] = []
    problems: list[str] = []
    for name, number in _folders(root):
        try:
            built.append(_build_env(root, name, number, metrics, pool))
        except (SnapshotError, ConfigError) as error:
            problems.append(str(error))
    if problems:
        raise SnapshotError(f"{root} was not built:\n" + "\n".join(problems))
    old = read_manifest(root) if (root / MANIFEST).is_file() and not force else None
    manifest = make_manifest(
        DEFAULT_NAME if old is None else old.name,
        version or (DEFAULT_VERSION if old is None else old.version),
        [item.entry for item in built],
    )
    if old is not None:
        check_succession(old, manifest)
    for item in built:
        folder = root.joinpath(*env_parts(item.entry.name, item.entry.version))
        _write_changed(folder, item.files)
    _write_changed(root, {MANIFEST: manifest.to_bytes()})
    return Snapshot.open(root)


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
        manifest = read_manifest(root)
    except SnapshotError:  # there is none yet, or it is to be replaced
        return {}
    found: dict[str, JsonObject] = {}
    for entry in manifest.entries:
        with suppress(SnapshotError):  # an author changed the source, or a file is damaged
            found[entry.digest] = read_spec(root, entry).metrics
    return found


def _build_env(
    root: Path,
    name: str,
    version: int,
    metrics: Mapping[str, JsonObject],
    pool: Pool | None,
) -> _Built:
    parts = env_parts(name, version)
    shown = "/".join(parts)
    source = read_file(root, (*parts, SOURCE), FILE_CAPS[SOURCE])
    card_bytes = read_file(root, (*parts, CARD), FILE_CAPS[CARD])
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
    files = env_files(spec, {spec.digest: report.to_json()})
    files[CARD] = card_bytes
    return _Built(make_entry(spec, files), files)


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


def _write_changed(folder: Path, files: dict[str, bytes]) -> None:
    """Write each file whose bytes differ, in one step each."""
    for name, data in sorted(files.items()):
        path = folder / name
        if not path.is_file() or sha256_digest(path.read_bytes()) != sha256_digest(data):
            write_file(path, data)
