from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from synthgym import atomic
from synthgym.errors import EnvNotFoundError, IntegrityError, SnapshotError
from synthgym.registry import Snapshot, build_bundled, write_snapshot
from synthgym.registry.annotate import check_writable, write_metrics
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, SynthEnvSpec

CARD = {"title": "Locker", "skills": ["mathematical-reasoning"], "license": "Apache-2.0"}
LOCKER = (Path(__file__).parents[1] / "data" / "good_envs" / "locker.py").read_text()


def spec(name: str, source: str) -> SynthEnvSpec:
    record = EnvRecord(source=source, entry="LockerEnv", max_turns=8, requires=("random",))
    return SynthEnvSpec(record=record, name=name, metrics={"solve_rate": 0.5})


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    specs = [spec("Locker", LOCKER), spec("Other", LOCKER + "# another\n")]
    reports = {specs[0].digest: {"ok": True}}
    found = write_snapshot(tmp_path / "two", specs, name="two", version="1", reports=reports)
    (found.path / "README.md").write_text("for people")
    return found


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_figures_are_noted_and_nothing_else_changes(snapshot: Snapshot) -> None:
    before = tree(snapshot.path)
    entry = snapshot.entry("synthgym/Locker-v0")
    report_digest = snapshot.spec(entry.digest).report_digest
    noted = write_metrics(snapshot.path, {entry.digest: {"agents": {"null": {"wins": 0}}}})
    assert noted.verify() == ()
    assert noted.core.content_digest == snapshot.core.content_digest
    assert (snapshot.version, noted.version) == ("1", "1.0.1")
    assert [(e.env_id, e.digest) for e in noted] == [(e.env_id, e.digest) for e in snapshot]
    found = noted.spec(entry.digest)
    assert found.metrics == {"solve_rate": 0.5, "agents": {"null": {"wins": 0}}}
    assert found.report_digest == report_digest
    after = tree(noted.path)
    changed = {name for name in after if after[name] != before[name]}
    assert after.keys() == before.keys()
    assert changed == {"manifest.json", "envs/Locker/v0/spec.json"}
    assert sorted(path.name for path in noted.path.parent.iterdir()) == ["two"]


def test_noting_the_same_again_changes_no_byte(snapshot: Snapshot) -> None:
    digest = snapshot.entry("Locker-v0").digest
    once = tree(write_metrics(snapshot.path, {digest: {"agents": {}}}).path)
    assert tree(write_metrics(snapshot.path, {digest: {"agents": {}}}).path) == once


def test_a_crash_leaves_the_old_figures(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(snapshot.path)
    digest = snapshot.entry("Locker-v0").digest

    def fail(root: Path) -> None:
        assert tree(root) != before  # it was all there already
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "sync_tree", fail)
    with pytest.raises(KeyboardInterrupt):
        write_metrics(snapshot.path, {digest: {"agents": {}}})
    assert tree(snapshot.path) == before
    assert sorted(path.name for path in snapshot.path.parent.iterdir()) == ["two"]


def test_a_file_system_without_hard_links_gets_copies(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links")

    monkeypatch.setattr(os, "link", refuse)
    digest = snapshot.entry("Locker-v0").digest
    assert write_metrics(snapshot.path, {digest: {"agents": {}}}).verify() == ()


def test_a_failure_of_the_disk_is_ours_and_says_that_nothing_changed(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(snapshot.path)

    def fail(root: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "sync_tree", fail)
    with pytest.raises(SnapshotError, match=r"left as it is: .*No space left"):
        write_metrics(snapshot.path, {snapshot.entry("Locker-v0").digest: {"agents": {}}})
    assert tree(snapshot.path) == before


def test_what_is_not_as_promised_is_not_annotated(snapshot: Snapshot) -> None:
    with pytest.raises(EnvNotFoundError, match="no environment"):
        write_metrics(snapshot.path, {"sha256:" + "0" * 64: {}})
    (snapshot.path / "envs" / "Locker" / "v0" / "env.py").write_text("# changed")
    with pytest.raises(IntegrityError, match="not the file of the manifest"):
        write_metrics(snapshot.path, {snapshot.entry("Locker-v0").digest: {}})


def test_the_environments_of_an_installed_package_are_not_written_to(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    check_writable(snapshot.path, package=tmp_path / "site-packages" / "synthgym")
    package = tmp_path / "site-packages" / "synthgym"
    shutil.copytree(snapshot.path, package / "bundled")
    with pytest.raises(SnapshotError, match=r"belongs to the installed package.*--snapshot"):
        check_writable(package / "bundled", package=package)


def test_a_read_only_folder_is_named_before_anything_is_measured(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(SnapshotError, match="is read-only"):
        check_writable(snapshot.path)


def test_the_folder_that_is_swapped_is_not_the_one_we_stand_in(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(snapshot.path / "envs")
    with pytest.raises(SnapshotError, match="run from another folder"):
        check_writable(Path(".."))


# --- building a registry again ---


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


@pytest.fixture
def registry(tmp_path: Path, pool: Pool) -> Snapshot:
    folder = tmp_path / "registry" / "envs" / "Locker" / "v0"
    folder.mkdir(parents=True)
    (folder / "env.py").write_text(LOCKER)
    (folder / "card.json").write_text(json.dumps(CARD))
    built = build_bundled(tmp_path / "registry", pool=pool)
    return write_metrics(built.path, {entry.digest: {"agents": {"null": 1}} for entry in built})


@pytest.mark.parametrize("force", [False, True])
def test_a_rebuild_keeps_the_figures_of_what_has_not_changed(
    registry: Snapshot, pool: Pool, force: bool
) -> None:
    before = tree(registry.path)
    built = build_bundled(registry.path, pool=pool, force=force)
    assert tree(built.path) == before
    card = built.path / "envs" / "Locker" / "v0" / "card.json"
    card.write_text(json.dumps(CARD | {"title": "Another title"}))
    built = build_bundled(built.path, pool=pool, force=force)
    (found,) = [built.spec(entry.digest) for entry in built]
    assert (found.title, found.metrics) == ("Another title", {"agents": {"null": 1}})
    assert built.verify() == ()


def test_a_rebuild_drops_the_figures_of_what_has_changed(registry: Snapshot, pool: Pool) -> None:
    source = registry.path / "envs" / "Locker" / "v0" / "env.py"
    source.write_text(LOCKER.replace("The locker opens.", "The locker springs open."))
    built = build_bundled(registry.path, pool=pool, force=True)
    assert [built.spec(entry.digest).metrics for entry in built] == [{}]


def test_a_rebuild_does_not_keep_what_the_manifest_does_not_promise(
    registry: Snapshot, pool: Pool
) -> None:
    path = registry.path / "envs" / "Locker" / "v0" / "spec.json"
    path.write_text(path.read_text().replace('"null": 1', '"null": 2'))
    built = build_bundled(registry.path, pool=pool)
    assert [built.spec(entry.digest).metrics for entry in built] == [{}]
