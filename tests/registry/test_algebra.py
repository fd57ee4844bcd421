from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import LAYOUTS, contents, game, rich, tree, write

from synthgym import atomic
from synthgym.errors import ConfigError, IntegrityError, SnapshotError
from synthgym.registry import Snapshot, layout
from synthgym.registry.algebra import diff, merge, select
from synthgym.registry.packed import Packed
from synthgym.spec import SynthEnvSpec, canonical_json, sha256_digest


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about power cuts."""
    monkeypatch.setattr(atomic, "_sync", lambda *_: None)


def ids(snapshot: Snapshot) -> list[str]:
    return [entry.env_id.removeprefix("synthgym/") for entry in snapshot]


def united(target: Path, *snapshots: Snapshot, **options: Any) -> Snapshot:
    made = merge(target, snapshots, **{"name": "all", "version": "1.0.0"} | options)
    assert made.verify() == ()
    return made


# --- difference ---


@pytest.mark.parametrize("old_layout", LAYOUTS)
@pytest.mark.parametrize("new_layout", LAYOUTS)
def test_a_difference_names_what_was_added_removed_renamed_and_noted(
    tmp_path: Path, old_layout: str, new_layout: str
) -> None:
    same, gone, moved, noted = (game(name) for name in ("Same", "Gone", "Moved", "Noted"))
    come = game("Come")
    changed = [replace(moved, version=3, title="New too"), replace(noted, title="New title")]
    old = write(tmp_path / "old", [same, gone, moved, noted], old_layout)
    new = write(tmp_path / "new", [same, come, *changed], new_layout)
    found = diff(old, new)
    assert [entry.env_id for entry in found.added] == ["synthgym/Come-v0"]
    assert [entry.env_id for entry in found.removed] == ["synthgym/Gone-v0"]
    assert [(a.env_id, b.env_id) for a, b in found.renamed] == [
        ("synthgym/Moved-v0", "synthgym/Moved-v3")
    ]
    assert [(entry.env_id, entry.title) for entry in found.noted] == [
        ("synthgym/Noted-v0", "New title")
    ]
    assert found
    without = diff(old, new, notes=False)
    assert without == replace(found, noted=())


@pytest.mark.parametrize("other", LAYOUTS)
def test_equal_content_makes_no_difference_whatever_the_layout(tmp_path: Path, other: str) -> None:
    one = rich(tmp_path / "one", "folder")
    assert not diff(one, rich(tmp_path / "other", other))
    assert not diff(one, one)


@pytest.mark.parametrize("kind", ["report", "vector"])
def test_a_report_or_a_vector_is_a_note_too(tmp_path: Path, kind: str) -> None:
    spec = game()
    options: dict[str, Any] = (
        {"reports": {spec.digest: {"ok": True}}}
        if kind == "report"
        else {"vectors": {spec.digest: {"e": np.ones(2)}}}
    )
    plain, noted = write(tmp_path / "a", [spec]), write(tmp_path / "b", [spec], **options)
    assert [entry.env_id for entry in diff(plain, noted).noted] == ["synthgym/LedgerAudit-v0"]
    assert not diff(plain, noted, notes=False)


def test_without_notes_a_difference_opens_no_environment(tmp_path: Path) -> None:
    old, new = rich(tmp_path / "old", "folder"), rich(tmp_path / "new", "shards")
    for path in (*old.path.glob("envs/*/*/*"), *new.path.glob("notes/*")):
        path.unlink()
    assert not diff(old, new, notes=False)


# --- union ---


@pytest.mark.parametrize("target", LAYOUTS)
def test_a_union_is_the_same_whatever_the_layouts(tmp_path: Path, target: str) -> None:
    digests = set()
    for a in LAYOUTS:
        for b in LAYOUTS:
            folder = tmp_path / f"{a}-{b}"
            one = rich(folder / "one", a)
            other = write(folder / "other", [game("Other", text="x")], b, name="other")
            made = united(folder / "all", one, other, layout=target)
            assert made.manifest.layout == target
            assert ids(made) == ["DryDock-v0", "DryDock-v1", "LedgerAudit-v0", "Other-v0"]
            assert contents(made) == contents(one) | contents(other)
            digests.add(made.digest)
    assert len(digests) == 1


def test_a_union_names_its_parents_in_order(tmp_path: Path) -> None:
    a = write(tmp_path / "a", [game("A")], name="a", version="2.1")
    b = write(tmp_path / "b", [game("B")], name="b")
    one, other = united(tmp_path / "ab", a, b), united(tmp_path / "ba", b, a)
    assert [(p.name, p.version, p.digest, p.relation) for p in one.core.parents] == [
        ("a", "2.1", a.digest, "merge"),
        ("b", "1.0.0", b.digest, "merge"),
    ]
    assert one.core.parents == other.core.parents[::-1]
    assert one.core.content_digest == other.core.content_digest
    assert contents(one) == contents(other)


def test_of_equal_content_id_and_notes_of_the_first_are_kept_and_missing_kinds_added(
    tmp_path: Path,
) -> None:
    spec = game("First", title="first", license="MIT", metrics={"a": 1})
    late = replace(spec, name="Second", title="second", hint="Look.", metrics={"b": 2})
    a = write(tmp_path / "a", [spec], vectors={spec.digest: {"e": np.zeros(2)}})
    b = write(
        tmp_path / "b",
        [late],
        "shards",
        reports={spec.digest: {"ok": True}},
        vectors={spec.digest: {"e": np.ones(2), "f": np.ones(3)}},
    )
    made = united(tmp_path / "ab", a, b)
    assert ids(made) == ["First-v0"]
    found = made.spec(spec.digest)
    assert (found.title, found.license, found.metrics) == ("first", "MIT", {"a": 1})
    assert found.hint == "Look."
    assert made.report(spec.digest) == {"ok": True}
    assert made.embedders == ("e", "f")
    assert [v.tolist() for _, v in made.vectors("e")] == [[0, 0]]
    reverse = united(tmp_path / "ba", b, a)
    assert ids(reverse) == ["Second-v0"]
    assert reverse.spec(spec.digest).title == "second"


def test_a_report_that_is_added_is_named_and_one_of_another_validation_is_not_added(
    tmp_path: Path,
) -> None:
    spec, report = game(), {"ok": True}
    named = sha256_digest(canonical_json(report))
    checked = write(tmp_path / "checked", [spec], "shards", reports={spec.digest: report})
    for name, before, there in (("a", "", True), ("b", named, True), ("c", "sha256:0", False)):
        plain = write(tmp_path / name, [replace(spec, report_digest=before)], "shards")
        for kind in LAYOUTS:
            made = united(tmp_path / f"{name}-{kind}", plain, checked, layout=kind)
            assert made.spec(spec.digest).report_digest == (named if there else before)
            assert ("report" in contents(made)[spec.env_id][1]) is there


@pytest.fixture
def three(tmp_path: Path) -> list[Snapshot]:
    """`Game-v0` stands for three contents, once under a name that differs in case; v1 and v2 are taken."""
    return [
        write(tmp_path / "a", [game("Game", 0, "a"), game("Other")], name="a"),
        write(tmp_path / "b", [game("GAME", 0, "b")], "shards", name="b"),
        write(tmp_path / "c", [game("Game", 0, "c"), game("Game", 2, "d")], name="c"),
    ]


def test_an_id_that_stands_for_two_contents_is_an_error_and_nothing_is_left(
    tmp_path: Path, three: list[Snapshot]
) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    for inputs in (three, three[::-1], three[:2], three[::2], [three[2], three[0]]):
        with pytest.raises(SnapshotError, match=r"(?i)synthgym/game-v0 stands for .*--on-conflict"):
            united(tmp_path / "all", *inputs)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_first_of_an_id_can_be_kept(tmp_path: Path, three: list[Snapshot]) -> None:
    made = united(tmp_path / "all", *three, on_conflict="first")
    assert ids(made) == ["Game-v0", "Game-v2", "Other-v0"]
    assert made.entry("Game-v0").digest == three[0].entry("Game-v0").digest
    made = united(tmp_path / "reverse", *three[::-1], on_conflict="first")
    assert made.entry("Game-v0").digest == three[2].entry("Game-v0").digest


def test_later_ones_can_be_given_versions_that_are_free_in_every_snapshot(
    tmp_path: Path, three: list[Snapshot]
) -> None:
    made = united(tmp_path / "all", *three, on_conflict="renumber")
    assert ids(made) == ["GAME-v3", "Game-v0", "Game-v2", "Game-v4", "Other-v0"]
    assert made.entry("GAME-v3").digest == three[1].entry("GAME-v0").digest
    assert made.entry("Game-v4").digest == three[2].entry("Game-v0").digest
    assert set(made.digests()) == {digest for s in three for digest in s.digests()}


@pytest.mark.parametrize("on_conflict", ["first", "renumber"])
def test_content_that_a_later_snapshot_has_under_a_free_id_gets_that_id(
    tmp_path: Path, on_conflict: str
) -> None:
    clash = game("Game", 0, "clash")
    a = write(tmp_path / "a", [game("Game"), game("Game", 3, "three")])
    b = write(tmp_path / "b", [clash])
    c = write(tmp_path / "c", [replace(clash, name="Free", version=3)])
    made = united(tmp_path / "all", a, b, c, on_conflict=on_conflict)
    assert ids(made) == ["Free-v3", "Game-v0", "Game-v3"]
    assert made.entry("Free-v3").digest == clash.digest


def test_an_id_that_was_left_for_another_is_not_given_to_other_content(tmp_path: Path) -> None:
    spec = game("First")
    a = write(tmp_path / "a", [spec])
    b = write(tmp_path / "b", [replace(spec, name="Second")])
    c = write(tmp_path / "c", [game("Second")])
    for inputs in ((a, b, c), (c, b, a), (b, a, c)):
        with pytest.raises(SnapshotError, match="synthgym/Second-v0 stands for"):
            united(tmp_path / "all", *inputs)
    made = united(tmp_path / "all", a, b, c, on_conflict="renumber")
    assert ids(made) == ["First-v0", "Second-v1"]


def test_a_conflict_is_one_in_whatever_order_the_snapshots_come(tmp_path: Path) -> None:
    spec = game("First")
    a = write(tmp_path / "a", [spec, game("Second")])
    b = write(tmp_path / "b", [replace(spec, name="Second")])  # under an id of other content in `a`
    for inputs in ((a, b), (b, a)):
        with pytest.raises(SnapshotError, match="synthgym/Second-v0 stands for"):
            united(tmp_path / "all", *inputs)
    assert ids(united(tmp_path / "ab", a, b, on_conflict="first")) == ["First-v0", "Second-v0"]


def test_versions_end_somewhere(tmp_path: Path) -> None:
    a = write(tmp_path / "a", [game("Game", 999_999, "a")])
    b = write(tmp_path / "b", [game("Game", 999_999, "b")])
    with pytest.raises(SnapshotError, match="beyond 999999"):
        united(tmp_path / "all", a, b, on_conflict="renumber")


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    a, b = (write(tmp_path / name, [game(name.upper())]) for name in "ab")
    target = tmp_path / "all"
    for inputs, options, message in (
        ((a,), {}, "at least two"),
        ((a, b), {"on_conflict": "last"}, "error, first, renumber, got 'last'"),
        ((a, b), {"layout": "zip"}, "layout must be one of"),
        ((a, b), {"name": "a/b"}, "a snapshot's name"),
        ((a, b), {"version": "newest"}, "a snapshot's version"),
    ):
        with pytest.raises((ConfigError, SnapshotError), match=message):
            united(target, *inputs, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    with pytest.raises(SnapshotError, match="exists already"):
        united(b.path, a, b)


def test_vectors_of_different_lengths_are_not_united(tmp_path: Path) -> None:
    specs = [game("A"), game("B")]
    parts = [
        write(tmp_path / s.name, [s], vectors={s.digest: {"e": np.ones(n + 1)}})
        for n, s in enumerate(specs)
    ]
    for target in LAYOUTS:
        with pytest.raises(SnapshotError, match="vectors of e have"):
            united(tmp_path / "all", *parts, layout=target)


@pytest.mark.parametrize("kind", LAYOUTS)
def test_what_is_damaged_is_not_merged(tmp_path: Path, kind: str) -> None:
    a, b = write(tmp_path / "a", [game("A")], kind), write(tmp_path / "b", [game("B")])
    victim = tmp_path / "a" / next(r.path for r in a.manifest.files if r.kind in ("envs", "source"))
    data = bytearray(victim.read_bytes())
    data[len(data) // 3] ^= 0xFF
    victim.write_bytes(data)
    before = tree(tmp_path)
    with pytest.raises(IntegrityError):
        united(tmp_path / "all", a, b)
    assert tree(tmp_path) == before


# --- selection ---


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_selection_keeps_ids_notes_and_names_its_parent(tmp_path: Path, kind: str) -> None:
    source = rich(tmp_path / "source", kind)
    made = select(
        tmp_path / "dry", source, lambda i: i.entry.name == "DryDock", name="dry", version="2.0"
    )
    assert contents(made) == {k: v for k, v in contents(source).items() if "DryDock" in k}
    both = "Apache-2.0 AND MIT"
    assert (made.name, made.version, made.core.license) == ("dry", "2.0", both)
    (parent,) = made.core.parents
    assert (parent.digest, parent.relation) == (source.digest, "filter")
    assert made.verify() == ()


def test_a_selection_of_nothing_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "source", [game()])
    with pytest.raises(SnapshotError, match="nothing is written"):
        select(tmp_path / "none", source, lambda _: False, name="none", version="1")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


# --- random sets of environments ---

SPECS = st.lists(
    st.builds(
        game,
        name=st.sampled_from(["Able", "Baker", "Charlie"]),
        version=st.integers(0, 2),
        text=st.sampled_from("abcd"),
        title=st.sampled_from(["", "one", "two"]),
        license=st.sampled_from(["", "MIT"]),
    ),
    max_size=6,
    unique_by=(lambda s: s.digest, lambda s: s.env_id),
)
ANY_LAYOUT = st.sampled_from(LAYOUTS)


def both(
    folder: Path, one: list[SynthEnvSpec], other: list[SynthEnvSpec], kinds: list[str]
) -> list[Snapshot]:
    return [
        write(folder / k, s, kind) for k, s, kind in zip("ab", (one, other), kinds, strict=True)
    ]


@settings(max_examples=25, deadline=None)
@given(SPECS, SPECS, st.lists(ANY_LAYOUT, min_size=2, max_size=2), ANY_LAYOUT)
def test_a_union_holds_exactly_the_contents_of_both(
    one: list[SynthEnvSpec], other: list[SynthEnvSpec], kinds: list[str], target: str
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "SHARD_TARGET", 2)
        a, b = both(Path(folder), one, other, kinds)
        made = united(Path(folder, "all"), a, b, on_conflict="renumber", layout=target)
        assert set(made.digests()) == {*a.digests(), *b.digests()}
        for entry in a:
            assert made.entry(entry.digest).alias == entry.alias
        found = diff(a, made)
        assert (found.removed, found.renamed, found.noted) == ((), (), ())
        assert {entry.digest for entry in found.added} == set(b.digests()) - set(a.digests())
        kept = united(Path(folder, "first"), a, b, on_conflict="first", layout=target)
        assert set(a.digests()) <= set(kept.digests()) <= set(made.digests())


@settings(max_examples=25, deadline=None)
@given(SPECS.filter(bool), st.sets(st.sampled_from("abcd")), ANY_LAYOUT)
def test_what_fits_and_what_does_not_are_a_partition(
    specs: list[SynthEnvSpec], texts: set[str], kind: str
) -> None:
    def fits(item: Packed) -> bool:
        return item.source.rstrip()[-1] in texts

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "SHARD_TARGET", 2)
        whole = write(Path(folder, "whole"), specs, kind)
        parts: list[dict[str, Any]] = []
        for name, wanted in (("fits", fits), ("rest", lambda item: not fits(item))):
            try:
                made = select(Path(folder, name), whole, wanted, name=name, version="1")
            except SnapshotError:
                continue
            assert all(wanted(item) for item in made.packed())
            parts.append(contents(made))
        assert sum(map(len, parts)) == len(specs)
        assert {k: v for part in parts for k, v in part.items()} == contents(whole)
