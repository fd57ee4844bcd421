from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.errors import EnvNotFoundError, SnapshotError
from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import (
    EnvRecord,
    Limits,
    Provenance,
    SynthEnvSpec,
    canonical_json,
    sha256_digest,
)

MakeSpec = Callable[..., SynthEnvSpec]
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.text(st.characters(codec="ascii"), max_size=5)
HASHABLE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SPECS = st.builds(
    SynthEnvSpec,
    record=st.builds(
        EnvRecord,
        source=TEXT,
        entry=TEXT,
        max_turns=st.integers(2, 100),
        kwargs=st.dictionaries(KEYS, HASHABLE, max_size=2),
        requires=st.lists(TEXT, max_size=2).map(tuple),
    ),
    name=st.from_regex(r"[A-Z][A-Za-z0-9]{0,9}", fullmatch=True),
    version=st.integers(0, 999_999),
    title=TEXT,
    skills=st.lists(TEXT, max_size=2).map(tuple),
    license=TEXT,
    provenance=st.builds(
        Provenance,
        author=TEXT,
        parameters=st.dictionaries(TEXT, JSON, max_size=2),
        seed=st.none() | st.integers(0, 9),
    ),
    hint=st.none() | TEXT,
    metrics=st.dictionaries(TEXT, JSON | FLOATS, max_size=3),
    limits=st.builds(Limits, step_seconds=st.floats(0.1, 9.0)),
)


def tree(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_environments_come_back_as_they_were(snapshot: Snapshot, specs: list[SynthEnvSpec]) -> None:
    assert len(snapshot) == 3
    assert [entry.env_id for entry in snapshot] == [
        "synthgym/DryDock-v0",
        "synthgym/DryDock-v1",
        "synthgym/LedgerAudit-v0",
    ]
    for spec in specs:
        again = snapshot.spec(spec.digest)
        assert dataclasses.replace(again, report_digest="") == spec
        assert spec.digest in snapshot
    assert (snapshot.name, snapshot.version) == ("games", "1.0.0")
    assert snapshot.verify() == ()


@settings(max_examples=30)  # every file is flushed to the disk
@given(st.lists(SPECS, max_size=3, unique_by=(lambda s: s.digest, lambda s: s.env_id)))
def test_any_spec_survives_the_round_trip(specs: list[SynthEnvSpec]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        snapshot = write_snapshot(Path(folder, "s"), specs, name="any", version="0")
        assert {s.env_id: snapshot.spec(s.digest) for s in specs} == {s.env_id: s for s in specs}
        assert snapshot.verify() == ()


def test_a_report_comes_with_its_digest_in_the_spec(
    snapshot: Snapshot, specs: list[SynthEnvSpec]
) -> None:
    assert snapshot.report(specs[0].digest) == {"ok": True, "seeds": [0, 1]}
    entry = snapshot.entry(specs[0].digest)
    report = canonical_json({"ok": True, "seeds": [0, 1]})
    assert snapshot.spec(entry.digest).report_digest == sha256_digest(report)
    with pytest.raises(SnapshotError, match="without a validation report"):
        snapshot.report(specs[1].digest)


def test_an_entry_is_found_by_id_pinned_id_and_digest(
    snapshot: Snapshot, specs: list[SynthEnvSpec]
) -> None:
    spec = specs[1]
    for wanted in (
        spec.digest,
        spec.env_id,
        "DryDock-v1",
        spec.pinned_id,
        spec.pinned_id.removeprefix("synthgym/"),
    ):
        assert snapshot.entry(wanted).digest == spec.digest


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("synthgym/LedgerAudt-v0", "synthgym/LedgerAudit-v0"),
        ("LedgerAudit", "synthgym/LedgerAudit-v0"),
        ("synthgym/DryDock-v7", "synthgym/DryDock-v1"),
    ],
)
def test_a_misspelt_id_names_the_nearest(snapshot: Snapshot, wanted: str, near: str) -> None:
    with pytest.raises(EnvNotFoundError, match=f"did you mean '{near}'"):
        snapshot.entry(wanted)


@pytest.mark.parametrize(
    "wanted", ["sha256:" + "0" * 64, "synthgym/dry-dock.000000000000-v0", "", "../..", "a:b"]
)
def test_what_is_not_there_is_not_found(snapshot: Snapshot, wanted: str) -> None:
    with pytest.raises(EnvNotFoundError):
        snapshot.spec(wanted)


def test_the_slug_of_a_pinned_id_must_fit(snapshot: Snapshot, specs: list[SynthEnvSpec]) -> None:
    with pytest.raises(EnvNotFoundError):
        snapshot.entry(specs[1].pinned_id.replace("dry-dock", "wet-dock"))


def test_opening_reads_the_manifest_and_nothing_else(snapshot: Snapshot) -> None:
    for path in snapshot.path.glob("envs/*/*/*"):
        path.unlink()
    assert len(Snapshot.open(snapshot.path)) == 3


def test_the_same_content_gives_the_same_bytes_in_any_order(
    tmp_path: Path, specs: list[SynthEnvSpec]
) -> None:
    for name, order in (("a", specs), ("b", specs[::-1])):
        write_snapshot(tmp_path / name, order, name="games", version="1")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


WRITE = """
import sys
from synthgym.registry import write_snapshot
from synthgym.spec import EnvRecord, Provenance, SynthEnvSpec
specs = [
    SynthEnvSpec(
        record=EnvRecord(source=f"# {i} \\u20ac", entry="E", max_turns=5, kwargs={"b": 1, "a": [i]}),
        name=f"Env{i}",
        skills=("x", "y"),
        metrics={"z": 0.1, "a": {"c": 1, "b": 2}},
        provenance=Provenance(parameters={"q": 1, "p": 2}),
    )
    for i in range(4)
]
reports = {spec.digest: {"ok": True, "by": {"b": 1, "a": 2}} for spec in specs}
def write(path):
    return write_snapshot(path, specs, name="games", version="1", reports=reports, replace=True)
"""


def run(code: str, *args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | env,
        timeout=60,
    )


def test_another_process_with_another_hash_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        done = run(WRITE + "write(sys.argv[1])", tmp_path / seed, PYTHONHASHSEED=seed)
        assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
    assert len(tree(tmp_path / "1")) == 13


def test_something_that_is_there_is_not_overwritten(
    snapshot: Snapshot, make_spec: MakeSpec
) -> None:
    before = tree(snapshot.path)
    with pytest.raises(SnapshotError, match="replace=True"):
        write_snapshot(snapshot.path, [make_spec()], name="games", version="2")
    assert tree(snapshot.path) == before


def test_a_snapshot_is_replaced_as_a_whole(snapshot: Snapshot, make_spec: MakeSpec) -> None:
    spec = make_spec("SignalBox")
    new = write_snapshot(snapshot.path, [spec], name="games", version="2", replace=True)
    assert [entry.name for entry in new] == ["SignalBox"]
    assert new.verify() == ()
    assert [p.name for p in snapshot.path.parent.iterdir()] == [snapshot.path.name]


def test_only_a_snapshot_is_ever_replaced(tmp_path: Path, make_spec: MakeSpec) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("years of work")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for name in ("home", "file", "link"):
        with pytest.raises(SnapshotError):
            write_snapshot(tmp_path / name, [make_spec()], name="g", version="1", replace=True)
    assert (tmp_path / "home" / "thesis.txt").read_text() == "years of work"
    write_snapshot(tmp_path / "new", [make_spec()], name="g", version="1", replace=True)


def test_an_id_never_stands_for_another_content(snapshot: Snapshot, make_spec: MakeSpec) -> None:
    changed = make_spec("LedgerAudit", body="    # changed\n")
    with pytest.raises(SnapshotError, match="synthgym/LedgerAudit-v0 stands for"):
        write_snapshot(snapshot.path, [changed], name="games", version="2", replace=True)
    with pytest.raises(SnapshotError, match=r"games 1\.0\.0 stands for"):
        write_snapshot(
            snapshot.path, [make_spec("New")], name="games", version="1.0.0", replace=True
        )
    assert snapshot.verify() == ()


def test_annotations_change_the_version_and_the_digest_but_not_the_content(
    snapshot: Snapshot, specs: list[SynthEnvSpec]
) -> None:
    titled = [dataclasses.replace(spec, title="New title") for spec in specs]
    with pytest.raises(SnapshotError, match="next version"):
        write_snapshot(snapshot.path, titled, name="games", version="1.0.0", replace=True)
    new = write_snapshot(snapshot.path, titled, name="games", version="1.0.1", replace=True)
    assert new.digest != snapshot.digest
    assert new.core.content_digest == snapshot.core.content_digest
    assert {entry.title for entry in new} == {"New title"}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "NaN among the metrics": ({"metrics": {"regret": float("nan")}}, "strict JSON"),
    "a lone surrogate": ({"title": "\ud800"}, "strict JSON"),
    "a value that is not JSON": ({"metrics": {"x": object()}}, "strict JSON"),
    "annotations that are too large": ({"title": "x" * 300_000}, "may have"),
}


@pytest.mark.parametrize(("notes", "message"), BAD.values(), ids=BAD.keys())
def test_what_could_not_be_read_again_is_not_written(
    tmp_path: Path, make_spec: MakeSpec, notes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SnapshotError, match=message):
        write_snapshot(tmp_path / "s", [make_spec(**notes)], name="g", version="1")
    assert list(tmp_path.iterdir()) == []


def test_a_source_with_a_lone_surrogate_is_not_written(tmp_path: Path) -> None:
    spec = SynthEnvSpec(record=EnvRecord(source="'\ud800'", entry="E", max_turns=5), name="Env")
    with pytest.raises(SnapshotError, match="UTF-8"):
        write_snapshot(tmp_path / "s", [spec], name="g", version="1")


def test_the_same_environment_twice_is_refused(tmp_path: Path, make_spec: MakeSpec) -> None:
    spec = make_spec()
    for second in (spec, dataclasses.replace(spec, version=1), make_spec(body="    # other\n")):
        with pytest.raises(SnapshotError, match="there twice"):
            write_snapshot(tmp_path / "s", [spec, second], name="g", version="1")


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a/b", "1"), ("a", ""), ("a", "1.x")])
def test_a_snapshot_needs_a_name_and_a_version(
    tmp_path: Path, make_spec: MakeSpec, name: str, version: str
) -> None:
    with pytest.raises(SnapshotError, match="a snapshot's"):
        write_snapshot(tmp_path / "s", [make_spec()], name=name, version=version)


def test_a_folder_without_a_manifest_is_no_snapshot(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(SnapshotError, match="is not a snapshot"):
            Snapshot.open(path)


KILL = (
    WRITE
    + """
import os, signal
from synthgym import atomic
calls = 0
def killing(real):
    def call(*args, **options):
        global calls
        calls += 1
        if calls > int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)
    return call
atomic._sync = killing(atomic._sync)
atomic._exchange = killing(atomic._exchange)
write(sys.argv[1])
"""
)


# 13 files and 10 folders are flushed, then the names are swapped, then the parent is flushed.
@pytest.mark.parametrize(
    ("calls", "left"), [(0, 3), (1, 3), (13, 3), (22, 3), (23, 3), (24, 4), (25, 4)]
)
def test_a_writer_that_is_killed_leaves_the_old_or_the_new_snapshot(
    snapshot: Snapshot, calls: int, left: int
) -> None:
    old = tree(snapshot.path)
    done = run(KILL, snapshot.path, str(calls))
    assert done.returncode == (-signal.SIGKILL if calls < 25 else 0), done.stderr
    after = Snapshot.open(snapshot.path)
    assert (len(after), after.verify()) == (left, ())
    assert left == 4 or tree(snapshot.path) == old
