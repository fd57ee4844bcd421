"""One iteration after the other with a scripted model: what is chosen, rewarded, committed, restored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spade_loop.alarms import alarms
from spade_loop.chat import ChatFormat
from spade_loop.completers import Script, ScriptedSampler
from spade_loop.config import load_config
from spade_loop.corpus import Corpus
from spade_loop.curriculum import Uniform
from spade_loop.design.admission import Admission
from spade_loop.field import choose
from spade_loop.library import Library
from spade_loop.loop import Loop, waiting
from spade_loop.measurement import Arms, Measured, measure
from spade_loop.progress import Progress, Silent
from spade_loop.rewards import Regret
from spade_loop.state import RunDirectory, RunState
from spade_loop.types import Arm, Candidate, Completion, Outcome, StopReason, Trajectory
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, SynthEnvSpec

SETTINGS = (
    "novelty.embedder=hash",
    "designer.candidates=4",
    "designer.max_tokens=4000",
    "designer.exemplars=0",
    "designer.warnings=0",
    "validation.seeds=5",
    "agent.environments=2",
    "agent.pool_share=0",
    "agent.seeds=2",
    "agent.plays=2",
    "agent.max_turns=2",
    "agent.turn_tokens=40",
    "agent.context=6000",
)
CORPUS = Corpus.load()


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=6) as pool:
        yield pool


Making = Callable[..., Loop]


@pytest.fixture
def making(pool: Pool, tmp_path: Path) -> Making:
    def make(
        library: Library | None = None, *settings: str, progress: Progress | None = None
    ) -> Loop:
        config = load_config("tiny", [*SETTINGS, *settings])
        directory = RunDirectory(tmp_path / "run")
        listener = progress or Silent()
        return Loop(config, directory, library or Library(), CORPUS, pool, listener)

    return make


@pytest.fixture
def scripted(chat: ChatFormat, tokenizer: Any) -> Callable[[Script], ScriptedSampler]:
    return lambda script: ScriptedSampler(chat, script, tokenizer.eos_token_id)


def spec(number: int) -> SynthEnvSpec:
    record = EnvRecord(source=f"X = {number}\n", entry="XEnv", max_turns=4)
    return SynthEnvSpec(record=record, name=f"X{number}", skills=("optimisation",))


def candidate(made: SynthEnvSpec | None, cell: str = "levers") -> Candidate:
    return Candidate(
        skill="optimisation",
        document_id="d",
        document_license="CC0-1.0",
        prompt_ids=(1,),
        completion=Completion((2,), (0.0,), (1,)),
        reply="",
        spec=made,
        cell=cell,
        outcome=Outcome.ADMITTED if made else Outcome.REFUSED,
    )


def library_of(old: Sequence[int], new: Sequence[int] = ()) -> Library:
    library = Library()
    for number in (*old, *new):
        library.add(candidate(spec(number)), {}, 0)
    return library


# --- choose ---


def chosen(loop: Loop, old: Sequence[int], new: Sequence[int], iteration: int = 0) -> list[str]:
    return names_of(loop, library_of(old, new), [spec(n).digest for n in new], iteration)


def names_of(
    loop: Loop, library: Library, proposed: Sequence[str], iteration: int = 0
) -> list[str]:
    rng = loop.rng(iteration, "environments")
    picked = choose(loop.config, library, Uniform(), proposed, rng)
    return [library.specs[digest].name for digest in picked]


@pytest.mark.parametrize(
    ("share", "old", "new", "from_old", "from_new"),
    [
        (0.25, 9, 9, 1, 3),
        (0.0, 9, 9, 0, 4),
        (1.0, 9, 9, 4, 0),
        (0.25, 9, 1, 3, 1),
        (0.25, 9, 0, 4, 0),
        (0.5, 0, 9, 0, 4),
        (0.75, 1, 9, 1, 3),
        (0.25, 1, 1, 1, 1),
        (0.25, 0, 0, 0, 0),
    ],
)
def test_pool_and_new_designs_share_the_field_and_fill_in_for_each_other(
    share: float, old: int, new: int, from_old: int, from_new: int, making: Making
) -> None:
    loop = making(None, "agent.environments=4", f"agent.pool_share={share}")
    names = chosen(loop, range(old), range(100, 100 + new))
    assert len(set(names)) == len(names)
    assert sum(len(name) < 4 for name in names) == from_old
    assert sum(len(name) == 4 for name in names) == from_new


def test_the_choice_follows_from_seed_iteration_and_digests_alone(making: Making) -> None:
    loop = making(None, "agent.environments=4", "agent.pool_share=0.5")
    first = chosen(loop, range(20), range(100, 110))
    assert first == chosen(loop, list(range(20))[::-1], range(100, 110))
    assert first != chosen(loop, range(20), range(100, 110), iteration=1)


def test_quarantine_is_kept_out_even_when_its_content_is_admitted_again(making: Making) -> None:
    loop = making(None, "agent.environments=4", "agent.pool_share=0.5")
    library = library_of(range(3), [100, 101])
    for number in (1, 101):
        digest = spec(number).digest
        library.records[digest] = replace(library.records[digest], quarantined=True)
    names = names_of(loop, library, [spec(100).digest, spec(101).digest])
    assert sorted(names) == ["X0", "X100", "X2"]


def test_content_that_is_new_and_held_is_played_once(making: Making) -> None:
    loop = making(None, "agent.environments=4", "agent.pool_share=0.5")
    assert sorted(chosen(loop, [1], [1, 2])) == ["X1", "X2"]


# --- rewards and alarms ---


def measured(made: SynthEnvSpec, regret: float, rate: float = 0.5) -> Measured:
    arms = [
        tuple(
            Trajectory(
                digest=made.digest,
                seed=seed,
                play=0,
                arm=arm,
                prompt_ids=(1,),
                completion=Completion((2,), (0.0,), (1,)),
                turns=(),
                episode_return=0.0,
                success=False,
                stop=StopReason.FAILURE,
            )
            for seed in range(2)
        )
        for arm in (Arm.PLAIN, Arm.HINTED)
    ]
    both = Arms(plain=arms[0], hinted=arms[1])
    m = measure(made, both, lambda _s, _t: False, iteration=0)
    return replace(m, regret=Regret(regret, 0.1, rate, rate, 2))


def test_a_rare_cell_earns_a_bonus(making: Making) -> None:
    loop = making(None, "designer.cell_bonus=0.1")
    loop.state = RunState(cells=(("levers", "levers"), ("levers",), ("map",)))
    candidates = [
        candidate(spec(1), "levers"),
        candidate(None),
        candidate(spec(2), "map"),
        candidate(spec(3), "belt"),
    ]
    made = waiting(loop, [Admission(c, None) for c in candidates], 5)
    assert made.iteration == 5
    assert [a.digest for a in made.attempts] == [
        "" if c.spec is None else c.spec.digest for c in candidates
    ]
    assert [a.valid for a in made.attempts] == [True, False, True, True]
    expected = [-0.1 * np.log(share / 5) for share in (4, 4, 2, 1)]
    assert [a.bonus for a in made.attempts] == pytest.approx(expected)


def test_high_regret_that_only_the_hint_explains_is_an_alarm() -> None:
    assert alarms(RunState(), [measured(spec(1), 0.5, 0.0), measured(spec(2), 0.6, 0.05)]) == (
        "alarm: regret is high while almost nothing is solved without its hint",
    )
    assert alarms(RunState(), [measured(spec(1), 0.5, 0.2)]) == ()
    assert alarms(RunState(), [measured(spec(1), 0.3, 0.0)]) == ()
    assert alarms(RunState(), []) == ()


def test_few_kinds_of_design_over_ten_iterations_are_an_alarm() -> None:
    few = RunState(cells=(("a", "b"), ("c",), *[("a", "b", "c")] * 8))
    assert alarms(few, [])[0].startswith("alarm: designs of the last 10 regenerations")
    assert alarms(replace(few, cells=few.cells[1:]), []) == ()
    assert alarms(RunState(cells=(("a", "b", "c", "d"),) * 10), []) == ()


# --- streams ---


def test_every_purpose_has_a_stream_of_its_own(making: Making) -> None:
    loop = making()
    streams = {
        tuple(loop.rng(i, purpose).integers(0, 2**60, 3))
        for i in range(3)
        for purpose in ("assignments", "environments", "seeds")
    }
    assert len(streams) == 9


def played(
    loop: Loop,
    sampler: ScriptedSampler,
    specs: Sequence[SynthEnvSpec],
    iteration: int,
    *,
    hinted: bool = True,
) -> list[Measured]:
    return loop.field.play(
        sampler,
        specs,
        iteration=iteration,
        hinted=hinted,
        streams=lambda purpose: loop.stream(iteration, purpose),
    )


class Counted(Silent):
    def __init__(self) -> None:
        self.advanced = 0

    def advance(self, steps: int, tokens: int = 0) -> None:
        self.advanced += steps


def test_both_arms_play_the_same_seeds_as_often(
    making: Making, scripted: Callable[[Script], ScriptedSampler]
) -> None:
    progress = Counted()
    loop = making(None, "agent.seeds=3", progress=progress)
    field = [Snapshot.open(bundled_root()).spec(e.digest) for e in Snapshot.open(bundled_root())][
        :2
    ]
    results = played(loop, scripted(lambda *_: "no box"), field, 4)
    assert [m.spec for m in results] == field
    for m in results:
        keys = [[(t.seed, t.play) for t in arm] for arm in (m.plain, m.hinted)]
        assert keys[0] == keys[1] == [(seed, k) for seed in m.seeds for k in range(2)]
        assert {t.arm for t in m.plain} == {Arm.PLAIN}
        assert {t.arm for t in m.hinted} == {Arm.HINTED}
        assert len(set(m.seeds)) == 3
    assert results[0].seeds == results[1].seeds
    assert progress.advanced == 2 * 3 * 2 * 2


def bundled(count: int) -> list[SynthEnvSpec]:
    snapshot = Snapshot.open(bundled_root())
    return [snapshot.spec(e.digest) for e in snapshot][:count]


def test_robust_replay_trains_on_replays_only(
    making: Making, scripted: Callable[[Script], ScriptedSampler]
) -> None:
    """An environment is no replay in the iteration in which it is played first."""
    settings = (
        "designer.candidates=0",
        "hints.play=false",
        "agent.pool_share=1",
        "curriculum.choice=replay",
        "curriculum.score=positive_advantage",
    )
    for robust, rows in (("false", 2 * 2 * 2), ("true", 0)):
        library = Library.start(Snapshot.open(bundled_root()))
        loop = making(library, *settings, f"curriculum.robust={robust}")
        samples = loop.collect(scripted(lambda *_: "no box"), 0)
        assert len(samples) == rows
        pending = loop._pending
        assert pending is not None
        assert len(pending.measured) == 2
        assert all(m.hinted == () for m in pending.measured)
        assert len(pending.state.curriculum["levels"]) == 2


def test_unpaired_arms_share_no_seed(
    making: Making, scripted: Callable[[Script], ScriptedSampler]
) -> None:
    loop = making(None, "reward.paired=false", "agent.seeds=3")
    (m,) = played(loop, scripted(lambda *_: "no box"), bundled(1), 0)
    assert {t.seed for t in m.plain}.isdisjoint(t.seed for t in m.hinted)
    assert (len(m.plain), len(m.hinted)) == (6, 6)
    assert m.interval is None


def test_an_iteration_without_hints_plays_the_plain_arm_alone(
    making: Making, scripted: Callable[[Script], ScriptedSampler]
) -> None:
    (m,) = played(making(), scripted(lambda *_: "no box"), bundled(1), 0, hinted=False)
    assert (len(m.plain), m.hinted, m.placebo) == (4, (), ())


def test_a_placebo_is_a_third_arm_on_the_same_seeds(
    making: Making, scripted: Callable[[Script], ScriptedSampler]
) -> None:
    loop = making(None, "hints.placebo=true")
    (m,) = played(loop, scripted(lambda *_: "no box"), bundled(1), 0)
    assert [(t.seed, t.play) for t in m.placebo] == [(t.seed, t.play) for t in m.plain]
    shown = {t.arm: t.turns[0].observation for t in (m.plain[0], m.hinted[0], m.placebo[0])}
    plain, hinted, placebo = (shown[arm] for arm in Arm)
    assert hinted.startswith(f"{plain}\n\nHint: ")
    assert placebo.startswith(f"{plain}\n\nHint: ")
    assert hinted != placebo
    assert len(placebo.split()) == len(hinted.split())


def test_playing_goes_on_until_the_interval_is_narrow_and_trains_on_the_first_seeds(
    making: Making, scripted: Callable[[Script], ScriptedSampler]
) -> None:
    settings = ("agent.max_seeds=16", "agent.half_width=0.3")
    (narrow,) = played(making(None, *settings), scripted(lambda *_: "no box"), bundled(1), 0)
    (once,) = played(making(), scripted(lambda *_: "no box"), bundled(1), 0)
    assert len(narrow.seeds) in (4, 8, 16)
    assert narrow.interval is not None
    assert narrow.interval.half_width <= 0.3 or len(narrow.seeds) == 16
    assert narrow.trained_seeds == 2
    # The first seeds are those of a run that plays once.
    assert narrow.plain[:4] == once.plain
