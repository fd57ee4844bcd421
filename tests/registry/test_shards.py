from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from snapshots import EMBEDDER, contents, game, games, rich, row, tree, write

from synthgym import atomic
from synthgym.errors import EnvNotFoundError, IntegrityError, SnapshotError
from synthgym.registry import Snapshot, layout, tables, write_metrics
from synthgym.registry.files import FolderFiles

MANY = 60


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """60 environments in 16 shards of a few row groups, some of them versions of one name."""
    specs = [
        *games(MANY - 3, title="A game", skills=("mathematical-reasoning",)),
        *(game("LedgerAudit", n, str(n), title="Audit of a Ledger") for n in (0, 2, 10)),
    ]
    vectors = {spec.digest: {EMBEDDER: row(spec.digest)} for spec in specs[::2]}
    reports = {spec.digest: {"ok": True, "name": spec.name} for spec in specs}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "SHARD_TARGET", 4)
        for kind, count in (("index", 16), ("envs", 2), ("notes", 2)):
            patch.setitem(tables.GROUP_ROWS, kind, count)
        path = tmp_path_factory.mktemp("many") / "s"
        return write(path, specs, "shards", vectors=vectors, reports=reports)


def test_the_files_are_those_of_the_layout(many: Snapshot) -> None:
    kinds = Counter(ref.kind for ref in many.manifest.files)
    assert kinds == {"envs": 16, "notes": 16, "index": 1, "vectors": kinds["vectors"]}
    assert 8 <= kinds["vectors"] <= 16
    assert many.manifest.entries == ()
    assert sum(ref.rows for ref in many.manifest.files if ref.kind == "envs") == MANY
    assert many.verify() == ()


def test_iteration_goes_by_name_and_version(many: Snapshot) -> None:
    aliases = [(entry.name, entry.version) for entry in many]
    assert aliases == sorted(aliases)
    assert len(aliases) == len(many) == MANY
    assert list(many) == list(many)  # and can be done again


def test_an_entry_is_found_by_id_pinned_id_and_digest(many: Snapshot) -> None:
    for entry in many:
        for wanted in (entry.env_id, entry.pinned_id, entry.digest):
            assert many.entry(wanted) == entry
            assert many.entry(wanted.removeprefix("synthgym/")) == entry
        assert entry.digest in many
        assert many.spec(entry.digest).digest == entry.digest
        assert many.report(entry.env_id) == {"ok": True, "name": entry.name}


def test_versions_of_a_name_go_by_number(many: Snapshot) -> None:
    assert [entry.version for entry in many.versions("LedgerAudit")] == [0, 2, 10]
    assert many.versions("Ledger") == many.versions("Zebra") == many.versions("") == []


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("synthgym/LedgerAudt-v0", "synthgym/LedgerAudit-v0"),
        ("LedgerAudit-v11", "synthgym/LedgerAudit-v10"),
        ("game17-v0", "synthgym/Game17-v0"),
    ],
)
def test_a_misspelt_id_names_the_nearest(many: Snapshot, wanted: str, near: str) -> None:
    with pytest.raises(EnvNotFoundError, match=f"did you mean '{near}'"):
        many.entry(wanted)


def test_what_is_not_there_is_not_found(many: Snapshot) -> None:
    entry = next(iter(many))
    near = entry.digest[:-1] + ("0" if entry.digest[-1] != "0" else "1")
    slug, _, rest = entry.pinned_id.partition(".")
    for wanted in (near, "sha256:" + "0" * 64, "sha256:" + "f" * 64, f"{slug}x.{rest}", "", "a:b"):
        assert wanted not in many
        with pytest.raises(EnvNotFoundError):
            many.entry(wanted)
    assert 7 not in many


def test_digests_are_sorted_and_complete(many: Snapshot) -> None:
    assert many.digests() == sorted(entry.digest for entry in many)


def test_sampling_is_seeded_without_repeats_and_sorted(many: Snapshot) -> None:
    drawn = many.sample(7, np.random.default_rng(5))
    assert drawn == many.sample(7, np.random.default_rng(5))
    assert drawn != many.sample(7, np.random.default_rng(6))
    assert len({entry.digest for entry in drawn}) == 7
    assert drawn == sorted(drawn, key=lambda entry: entry.alias)
    assert many.sample(10**9, np.random.default_rng(0)) == list(many)
    assert many.sample(0, np.random.default_rng(0)) == []


def test_every_environment_is_drawn_as_often(many: Snapshot) -> None:
    rng = np.random.default_rng(0)
    drawn = Counter(entry.digest for _ in range(100) for entry in many.sample(30, rng))
    assert drawn.keys() == set(many.digests())
    # Without repeats, each environment is drawn or not: 100 times 1/2, standard deviation 5.
    assert all(abs(count - 50) < 5 * 5 for count in drawn.values())
    chi_squared = sum((count - 50) ** 2 / 25 for count in drawn.values())
    assert 25 < chi_squared < 110  # 60 degrees of freedom: both tails are far away


def test_search_looks_for_every_word_whatever_the_case(many: Snapshot) -> None:
    assert [e.version for e in many.search("ledger AUDIT of")] == [0, 2, 10]
    assert [e.name for e in many.search("game1")][:3] == ["Game1", "Game10", "Game11"]
    assert list(many.search("ledger game")) == []
    assert len(list(many.search(skill="mathematical-reasoning"))) == MANY - 3
    assert len(list(many.search(limit=4))) == 4
    assert list(many.search()) == list(many)


def test_vectors_come_by_digest(many: Snapshot) -> None:
    found = [(digest, vector) for digest, vector in many.vectors(EMBEDDER)]
    assert [digest for digest, _ in found] == sorted(digest for digest, _ in found)
    assert len(found) == MANY // 2
    for digest, vector in found:
        assert vector.dtype == np.float16
        assert vector.tolist() == row(digest).tolist()
    with pytest.raises(SnapshotError, match=f"did you mean '{EMBEDDER}'"):
        next(many.vectors("unittest"))


def test_both_layouts_hold_the_same(tmp_path: Path) -> None:
    folder, shards = (rich(tmp_path / kind, kind) for kind in ("folder", "shards"))
    assert folder.digest == shards.digest
    assert list(folder) == list(shards)
    assert contents(folder) == contents(shards)
    for entry in folder:
        assert folder.spec(entry.digest) == shards.spec(entry.digest)
    assert folder.digests() == shards.digests()
    with pytest.raises(SnapshotError, match="without a validation report"):
        shards.report("DryDock-v0")
    for seed in range(3):
        drawn = (s.sample(2, np.random.default_rng(seed)) for s in (folder, shards))
        assert next(drawn) == next(drawn)


@pytest.mark.parametrize(("shard", "count"), [(0, 1), (1, 2), (5, 16), (3, 4), (40, 64)])
def test_any_number_of_shards_can_be_read(many: Snapshot, shard: int, count: int) -> None:
    expected = [d for d in many.digests() if layout.shard_of(d, count) == shard]
    assert [item.entry.digest for item in many.packed(shard, count)] == expected
    assert expected or count == 64


class Counting(FolderFiles):
    """Files of a folder that note what is opened and how much is read."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.opened: list[str] = []
        self.bytes = 0

    def open(self, path: str) -> IO[bytes]:
        self.opened.append(path)
        with super().open(path) as file:
            return _Counted(file.read(), self)


class _Counted(io.BytesIO):
    def __init__(self, data: bytes, files: Counting) -> None:
        super().__init__(data)
        self._files = files

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._files.bytes += len(data)
        return data


def counted(snapshot: Snapshot) -> tuple[Snapshot, Counting]:
    files = Counting(snapshot.path)
    return Snapshot(files, snapshot.manifest), files


def test_reading_one_environment_opens_its_shard_and_no_other(many: Snapshot) -> None:
    entry = list(many)[31]
    number = layout.shard_of(entry.digest, 16)
    own = [f"{kind}/{kind}-{number:03d}-of-016.parquet" for kind in ("envs", "notes")]
    for wanted, files in (
        (entry.digest, own),
        (entry.pinned_id, own),
        (entry.env_id, ["index.parquet", *own]),
    ):
        snapshot, counting = counted(many)
        assert counting.opened == []
        assert snapshot.spec(wanted).digest == entry.digest
        snapshot.report(wanted)
        assert counting.opened == files
    snapshot, counting = counted(many)
    assert (len(list(snapshot)), len(snapshot.sample(3, np.random.default_rng(0)))) == (MANY, 3)
    assert counting.opened == ["index.parquet"]
    assert len(snapshot.digests()) == MANY
    assert len(counting.opened) == 17


def test_reading_one_environment_reads_a_part_of_its_shard(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    specs = [game(f"Game{n}", text=rng.bytes(16_000).hex()) for n in range(200)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tables.GROUP_ROWS, "envs", 8)
        large = write(tmp_path / "large", specs, "shards")
    snapshot, counting = counted(large)
    assert snapshot.spec(specs[77].digest) == specs[77]
    size = next(ref.size for ref in large.manifest.files if ref.kind == "envs")
    assert size > 3_000_000
    assert counting.bytes < size // 10


def test_figures_are_noted_and_nothing_else_changes(tmp_path: Path) -> None:
    snapshot = rich(tmp_path / "games", "shards")
    for name in ("README.md", "manifest.json.sig", ".gitattributes"):
        (snapshot.path / name).write_text("beside")
    entry = snapshot.entry("DryDock-v1")
    noted = write_metrics(snapshot.path, {entry.digest: {"agents": {"null": {"wins": 0}}}})
    assert (snapshot.version, noted.version) == ("1.0.0", "1.0.1")
    assert noted.manifest.layout == "shards"
    assert noted.core.content_digest == snapshot.core.content_digest
    assert noted.spec(entry.digest).metrics == {"regret": 0.25, "agents": {"null": {"wins": 0}}}
    assert noted.spec(entry.digest).hint == "Look at the tide."
    assert noted.report("LedgerAudit-v0") == {"ok": True, "seeds": [0, 1]}
    assert [digest for digest, _ in noted.vectors(EMBEDDER)] == [
        digest for digest, _ in noted.vectors(EMBEDDER) if digest in snapshot
    ]
    assert len(list(noted.vectors(EMBEDDER))) == 2
    assert noted.verify() == ()
    for name in ("README.md", ".gitattributes"):
        assert (noted.path / name).read_text() == "beside"
    assert not (noted.path / "manifest.json.sig").exists()  # it was of the old manifest
    assert [path.name for path in tmp_path.iterdir()] == ["games"]
    before = tree(noted.path)
    write_metrics(noted.path, {entry.digest: {"agents": {"null": {"wins": 0}}}})
    assert tree(noted.path) == before


def test_figures_noted_in_either_layout_give_the_same_digest(tmp_path: Path) -> None:
    made = [rich(tmp_path / kind, kind) for kind in ("folder", "shards")]
    metrics = {digest: {"rate": 0.5} for digest in made[0].digests()[:2]}
    noted = [write_metrics(snapshot.path, metrics) for snapshot in made]
    assert noted[0].digest == noted[1].digest != made[0].digest


def test_a_crash_while_noting_leaves_the_old_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = rich(tmp_path / "games", "shards")
    before = tree(snapshot.path)

    def fail(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "sync_tree", fail)
    with pytest.raises(SnapshotError, match=r"left as it is: .*No space left"):
        write_metrics(snapshot.path, {snapshot.digests()[0]: {"rate": 1}})
    assert tree(snapshot.path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["games"]


def test_a_shard_that_is_missing_is_named_when_it_is_needed(tmp_path: Path) -> None:
    snapshot = rich(tmp_path / "games", "shards")
    (snapshot.path / "notes" / "notes-000-of-001.parquet").unlink()
    assert len(list(snapshot)) == 3
    with pytest.raises(IntegrityError, match="cannot read notes/notes-000-of-001"):
        snapshot.spec("DryDock-v0")


def test_an_empty_snapshot_is_one(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty", [], "shards")
    assert (len(empty), list(empty), empty.digests(), empty.verify()) == (0, [], [], ())
    assert empty.sample(3, np.random.default_rng(0)) == []
    assert list(empty.search("x")) == empty.versions("Game") == []
    assert empty.digest == write(tmp_path / "folder", [], "folder").digest
    with pytest.raises(EnvNotFoundError):
        empty.entry("Game-v0")
