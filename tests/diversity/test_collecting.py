from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from diversity_pools import BROKEN, DOORS, SCALES, mixed, snapshot, spec

from synthgym.diversity import Collection, collect, collecting
from synthgym.diversity.traces import witness_trace
from synthgym.errors import ConfigError, IntegrityError
from synthgym.memory import HashEmbedder
from synthgym.sandbox import EnvFault, FaultKind, Pool


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as pool:
        yield pool


@pytest.fixture(scope="module")
def collected(pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Collection:
    found = mixed(tmp_path_factory.mktemp("mixed") / "pool")
    return collect(found, HashEmbedder(), pool=pool, traces=True)


def test_each_environment_is_measured_or_named_with_its_fault(collected: Collection) -> None:
    assert collected.total == 5
    assert {m.env_id for m in collected.members} == {
        "synthgym/Doors-v0",
        "synthgym/Gates-v0",
        "synthgym/Scales-v0",
    }
    faults = {item.env_id: item for item in collected.unmeasured}
    broken, refused = faults["synthgym/Broken-v0"], faults["synthgym/Refused-v0"]
    assert (broken.kind, broken.call) == (FaultKind.ERROR, "reset")
    assert "RuntimeError" in broken.detail
    assert (refused.kind, refused.call) == (FaultKind.REFUSED, "load")
    assert len(faults) == 2


def test_members_come_by_digest_with_what_their_text_says(collected: Collection) -> None:
    digests = [member.digest for member in collected.members]
    assert digests == sorted(digests)
    row = {member.env_id: place for place, member in enumerate(collected.members)}
    doors, scales = row["synthgym/Doors-v0"], row["synthgym/Scales-v0"]
    text = (
        "Three doors. Behind one of them is a way out.\n\n"
        "You stand before # doors: a, b and c. Say: open <door>."
    )
    assert collected.vectors[doors].tolist() == HashEmbedder()([text])[0].tolist()
    assert collected.members[scales].skills == ("optimisation", "logical-deduction")
    assert collected.structures.containment(doors, row["synthgym/Gates-v0"]) == 1.0
    assert collected.embedder == "hash/1-512"
    assert collected.name == "pool 1.0"


def test_a_trace_is_what_the_witness_is_paid_and_does_not_depend_on_words(
    collected: Collection,
) -> None:
    traces = {member.env_id: member.trace for member in collected.members}
    assert traces == {
        "synthgym/Doors-v0": "0+ 0+ 0+",
        "synthgym/Gates-v0": "0+ 0+ 0+",
        "synthgym/Scales-v0": "+ + +",
    }


def test_without_a_witness_there_is_no_trace(pool: Pool, tmp_path: Path) -> None:
    silent = DOORS.replace("def solution", "def other")
    assert isinstance(witness_trace(spec(silent, "Silent"), pool), EnvFault)
    stuck = DOORS.replace("self.tries += 1", "self.tries //= self.tries")
    assert isinstance(witness_trace(spec(stuck, "Stuck"), pool), EnvFault)
    found = snapshot(tmp_path / "pool", spec(silent, "Silent"))
    (member,) = collect(found, HashEmbedder(), pool=pool, traces=True).members
    assert member.trace is None


def test_batches_make_no_difference_and_progress_is_told(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collected: Collection
) -> None:
    monkeypatch.setattr(collecting, "_BATCH", 2)
    told: list[int] = []
    again = collect(mixed(tmp_path / "pool"), HashEmbedder(), pool=pool, tell=told.append)
    assert told == [2, 4, 5]
    assert [m.digest for m in again.members] == [m.digest for m in collected.members]
    assert again.vectors.tolist() == collected.vectors.tolist()
    assert [item.env_id for item in again.unmeasured] == [
        item.env_id for item in collected.unmeasured
    ]
    assert not again.traced
    assert {member.trace for member in again.members} == {None}


def test_many_vectors_lie_in_a_file(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collected: Collection
) -> None:
    monkeypatch.setattr(collecting, "_IN_MEMORY", 100)
    again = collect(mixed(tmp_path / "pool"), HashEmbedder(), pool=pool)
    assert isinstance(again.vectors, np.memmap)
    assert np.array_equal(again.vectors, collected.vectors)


def test_nothing_measured_is_a_collection_without_members(pool: Pool, tmp_path: Path) -> None:
    found = collect(snapshot(tmp_path / "pool", spec(BROKEN, "Broken")), HashEmbedder(), pool=pool)
    assert (found.members, len(found.unmeasured), found.vectors.shape) == ((), 1, (0, 512))


def test_a_source_that_the_parent_cannot_parse_is_named(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConfigError("does not parse")

    monkeypatch.setattr(collecting, "describe", refuse)
    found = collect(snapshot(tmp_path / "pool", spec(SCALES, "Scales")), HashEmbedder(), pool=pool)
    (item,) = found.unmeasured
    assert (item.kind, item.call, item.detail) == ("unparsed", "load", "does not parse")


def test_changed_bytes_end_the_measurement(pool: Pool, tmp_path: Path) -> None:
    found = snapshot(tmp_path / "pool", spec(DOORS, "Doors"))
    for path in (tmp_path / "pool").rglob("env.py"):
        path.write_text(SCALES)
    with pytest.raises(IntegrityError):
        collect(found, HashEmbedder(), pool=pool)
