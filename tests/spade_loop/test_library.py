"""The environments that a run knows: what is kept of them, written, and restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from spade_loop.errors import RunStateError
from spade_loop.library import STARTING, Library
from spade_loop.measurement import Arms, Measured, measure
from spade_loop.types import Arm, Candidate, Completion, Outcome, StopReason, Trajectory
from synthgym.registry import Snapshot, bundled_root, write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec

REPORT = {"ok": True}


def spec(number: int, name: str = "") -> SynthEnvSpec:
    record = EnvRecord(source=f"X = {number}\n", entry="XEnv", max_turns=4)
    return SynthEnvSpec(record=record, name=name or f"X{number}", skills=("optimisation",))


def candidate(made: SynthEnvSpec | None, skill: str = "optimisation") -> Candidate:
    return Candidate(
        skill=skill,
        document_id="d",
        document_license="CC0-1.0",
        prompt_ids=(1,),
        completion=Completion((2,), (0.0,), (1,)),
        reply="",
        spec=made,
        outcome=Outcome.ADMITTED if made else Outcome.REFUSED,
    )


def measured(made: SynthEnvSpec, table: Sequence[Sequence[float]]) -> Measured:
    """Plain returns of `table`, a hinted arm that always wins; a negative return is a fault that comes again."""
    arms = [
        [
            Trajectory(
                digest=made.digest,
                seed=seed,
                play=k,
                arm=arm,
                prompt_ids=(1,),
                completion=Completion((2,), (0.0,), (1,)),
                turns=(),
                episode_return=max(earned, 0.0),
                success=earned == 1.0,
                stop=StopReason.FAULT if earned < 0 else StopReason.FAILURE,
            )
            for seed, row in enumerate(table)
            for k, plain in enumerate(row)
            for earned in [plain if arm is Arm.PLAIN else 1.0]
        ]
        for arm in (Arm.PLAIN, Arm.HINTED)
    ]
    both = Arms(plain=tuple(arms[0]), hinted=tuple(arms[1]))
    return measure(made, both, lambda _s, _t: True, iteration=0)


def test_a_snapshot_is_where_a_library_starts() -> None:
    snapshot = Snapshot.open(bundled_root())
    library = Library.start(snapshot)
    assert list(library.specs) == [entry.digest for entry in snapshot]
    assert {r.iteration for r in library.records.values()} == {STARTING}
    assert library.own == []
    assert library.playable() == sorted(library.specs)


def test_a_copy_can_be_changed_alone() -> None:
    library = Library()
    library.copy().add(candidate(spec(1)), REPORT, 0)
    assert library == Library()


def test_measurements_add_up() -> None:
    library = Library()
    library.add(candidate(spec(1)), REPORT, 0)
    library.record(measured(spec(1), [[1, 0], [0, 0]]))
    record = library.records[spec(1).digest]
    assert (record.episodes, record.plain_wins, record.regret) == (4, 1.0, 0.75)
    library.record(measured(spec(1), [[1, 1], [-1, 0], [0, 1]]))
    record = library.records[spec(1).digest]
    assert (record.episodes, record.plain_wins) == (8, pytest.approx(4.0))
    assert record.win_rate == pytest.approx(0.5)
    assert not record.quarantined


def test_what_could_not_be_measured_keeps_the_earlier_regret_and_quarantine_is_for_good() -> None:
    library = Library()
    library.add(candidate(spec(1)), REPORT, 0)
    library.record(measured(spec(1), [[1], [0]]))
    library.record(measured(spec(1), [[-1], [-1]]))
    record = library.records[spec(1).digest]
    assert (record.episodes, record.regret, record.quarantined) == (2, 0.5, True)
    library.record(measured(spec(1), [[1], [0]]))
    assert library.records[spec(1).digest].quarantined
    assert library.playable() == []


def test_an_unplayed_environment_has_no_rate() -> None:
    library = Library()
    library.add(candidate(spec(1)), REPORT, 0)
    (own,) = library.own
    assert own.metrics == {
        "episodes": 0,
        "solve_rate": None,
        "regret": None,
        "quarantined": False,
    }


def test_content_that_is_admitted_again_keeps_its_id_and_what_is_known_of_it() -> None:
    library = Library()
    first = candidate(spec(1, "First"))
    assert library.add(first, REPORT, 0) == first
    library.record(measured(spec(1), [[-1], [-1]]))
    again = library.add(candidate(spec(1, "Again"), "causal-inference"), {"ok": False}, 9)
    assert again.spec == first.spec
    record = library.records[spec(1).digest]
    assert (record.iteration, record.skill, record.quarantined) == (0, "optimisation", True)
    assert [s.name for s in library.own] == ["First"]
    assert library.reports[spec(1).digest] == REPORT


def test_content_of_the_starting_snapshot_is_not_counted_as_designed_again(tmp_path: Path) -> None:
    start = write_snapshot(tmp_path / "start", [spec(1, "Old")], name="start", version="1")
    library = Library.start(start)
    library.add(candidate(spec(1, "Again")), REPORT, 3)
    assert library.own == []
    assert library.specs[spec(1).digest].name == "Old"


def test_a_refused_candidate_is_not_taken_in() -> None:
    library = Library()
    assert library.add(candidate(None), REPORT, 0) == candidate(None)
    assert library == Library()


def test_what_is_written_is_restored(tmp_path: Path) -> None:
    start = write_snapshot(tmp_path / "start", [spec(1), spec(2)], name="start", version="1")
    library = Library.start(start)
    library.add(candidate(spec(3)), REPORT, 0)
    library.record(measured(spec(2), [[1], [0]]))
    library.record(measured(spec(3), [[1], [1]]))
    library.write(tmp_path / "own", name="run", version="0.0.1")
    own = Snapshot.open(tmp_path / "own")
    assert [entry.name for entry in own] == ["X3"]
    assert own.spec(spec(3).digest).metrics["solve_rate"] == 1.0
    restored = Library.start(start)
    restored.restore(own, library.records.values())
    assert restored.records == library.records
    assert list(restored.specs) == list(library.specs)
    assert restored.reports == library.reports
    restored.write(tmp_path / "again", name="run", version="0.0.1")
    first, second = (
        {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        for root in (tmp_path / "own", tmp_path / "again")
    )
    assert first == second


def test_an_empty_library_is_written_too(tmp_path: Path) -> None:
    Library().write(tmp_path / "own", name="run", version="0.0.1")
    assert len(Snapshot.open(tmp_path / "own")) == 0
    assert Snapshot.open(tmp_path / "own").verify() == ()


def test_a_starting_snapshot_that_lost_an_environment_is_refused(tmp_path: Path) -> None:
    library = Library.start(
        write_snapshot(tmp_path / "a", [spec(1), spec(2)], name="a", version="1")
    )
    library.write(tmp_path / "own", name="run", version="0.0.1")
    changed = Library.start(write_snapshot(tmp_path / "b", [spec(1)], name="a", version="2"))
    with pytest.raises(RunStateError, match=f"1 of its environments are gone.*{spec(2).digest}"):
        changed.restore(Snapshot.open(tmp_path / "own"), library.records.values())


def test_what_the_starting_snapshot_gained_is_not_played(tmp_path: Path) -> None:
    library = Library.start(write_snapshot(tmp_path / "a", [spec(1)], name="a", version="1"))
    library.write(tmp_path / "own", name="run", version="0.0.1")
    grown = Library.start(write_snapshot(tmp_path / "b", [spec(1), spec(2)], name="a", version="2"))
    grown.restore(Snapshot.open(tmp_path / "own"), library.records.values())
    assert grown.playable() == [spec(1).digest]


def test_playable_leaves_out_quarantined_and_excluded() -> None:
    library = Library()
    for number in range(4):
        library.add(candidate(spec(number)), REPORT, 0)
    bad = spec(2).digest
    library.records[bad] = replace(library.records[bad], quarantined=True)
    expected = sorted(spec(n).digest for n in (1, 3))
    assert library.playable(exclude=[spec(0).digest]) == expected
