"""Snapshots of strangers whose numbers, texts or folders are made to trip who reads or writes them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import ENVS, GAMES, INDEX, Columns, change_rows, sealed, write_games

from synthgym import atomic
from synthgym.errors import ConfigError, IntegrityError, SnapshotError
from synthgym.registry import Snapshot, archive, write_snapshot, write_vectors
from synthgym.registry.algebra import select
from synthgym.registry.core import MAX_NOTES, Core
from synthgym.registry.layout import MAX_SHARD_ENTRIES
from synthgym.registry.strict import parse_json
from synthgym.spec import Limits, canonical_json


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_games(tmp_path / "games")


def change_core(root: Path, **changes: Any) -> None:
    raw = json.loads((root / "manifest.json").read_bytes())
    core = raw["core"] | changes
    raw |= {"core": core}
    if all(0 <= core[what] <= 2**62 for what in ("env_count", "notes_count")):
        raw["digest"] = Core.from_json(core).digest
    (root / "manifest.json").write_bytes(sealed(raw))


@pytest.mark.parametrize("count", [2**70, MAX_NOTES + 1, -1])
@pytest.mark.parametrize("what", ["env_count", "notes_count"])
def test_a_count_that_cannot_be_is_refused(root: Path, what: str, count: int) -> None:
    raw = Snapshot.open(root).core.to_json() | {what: count}
    with pytest.raises(SnapshotError, match=f"{what} is .*not a count"):
        Core.from_json(raw)


@pytest.mark.parametrize("count", [0, 4, 6, MAX_SHARD_ENTRIES])
def test_the_rows_of_shards_are_as_many_as_the_core_counts(root: Path, count: int) -> None:
    change_core(root, env_count=count)
    with pytest.raises(IntegrityError, match=rf"promises {count} environments, and 5 rows of"):
        Snapshot.open(root)


def test_digests_are_handed_out_in_order_only(root: Path) -> None:
    def same(rows: Columns) -> Columns:
        return rows | {"digest": rows["digest"][:1] * len(rows["digest"])}

    change_rows(root, ENVS, same)
    with pytest.raises(IntegrityError, match="out of order"):
        Snapshot.open(root).digests()


def test_skills_that_cannot_be_written_again_are_refused(root: Path, tmp_path: Path) -> None:
    def strange(rows: Columns) -> Columns:
        return rows | {"skills": ['["\\ud800"]', *rows["skills"][1:]]}

    for path in (INDEX, ENVS):
        change_rows(root, path, strange)
    opened = Snapshot.open(root)
    for read in (
        lambda: list(opened),
        lambda: select(tmp_path / "out", opened, lambda _: True, name="x", version="1"),
    ):
        with pytest.raises(IntegrityError, match="skills must be a JSON list"):
            read()
    assert not (tmp_path / "out").exists()


def test_many_keys_of_which_one_is_doubled_cost_little() -> None:
    keys = ",".join(f'"{number}":0' for number in range(200_000))
    start = time.process_time()
    with pytest.raises(SnapshotError, match="duplicate key '199999'"):
        parse_json(f'{{{keys},"199999":0}}'.encode(), "x")
    assert time.process_time() - start < 20, "it once took an hour"


@pytest.mark.parametrize("inner", ["vectors", "vectors/mini"])
def test_nothing_is_written_through_a_link(tmp_path: Path, inner: str) -> None:
    root = write_snapshot(tmp_path / "games", GAMES, name="games", version="1").path
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / inner).parent.mkdir(exist_ok=True)
    (root / inner).symlink_to(outside)
    with pytest.raises(SnapshotError, match="is a link, and nothing is written through it"):
        write_vectors(root, {GAMES[0].digest: {"mini": np.ones(4)}})
    assert list(outside.iterdir()) == []
    assert Snapshot.open(root).version == "1"


def test_what_appears_while_a_snapshot_is_unpacked_stays(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = Snapshot.open(archive.pack(Snapshot.open(root), tmp_path / "games.sgz"))
    target = tmp_path / "target"
    flush: Callable[[Path], None] = atomic.sync_tree

    def meanwhile(folder: Path) -> None:
        flush(folder)
        target.mkdir()
        (target / "mine").write_text("precious")

    monkeypatch.setattr(atomic, "sync_tree", meanwhile)
    with pytest.raises(SnapshotError, match="exists already"):
        archive.unpack(packed, target)
    assert (target / "mine").read_text() == "precious"


def test_an_own_digest_covers_what_was_changed_here(root: Path) -> None:
    """So that the tests above fail for the reason that they name."""
    change_core(root, license="MIT")
    assert Snapshot.open(root).core.license == "MIT"
    assert canonical_json(Snapshot.open(root).core.to_json())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reset_seconds", 1e9),
        ("step_seconds", float("inf")),
        ("episode_seconds", 86_401),
        ("memory_mb", 1e30),
        ("memory_mb", 256.0),
        ("observation_chars", 10.5),
        ("observation_chars", 10**9),
    ],
)
def test_a_stranger_cannot_ask_for_an_hour_or_for_all_of_the_memory(
    name: str, value: float
) -> None:
    with pytest.raises(ConfigError, match=f"limits.{name} must be .* at most"):
        Limits(**{name: value})
