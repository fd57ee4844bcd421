"""One iteration after the other with a scripted model: collected, committed, restored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spade_loop.chat import ChatFormat
from spade_loop.completers import Script, ScriptedSampler
from spade_loop.config import load_config
from spade_loop.corpus import Corpus
from spade_loop.errors import CorpusError, RunStateError
from spade_loop.families import (
    Blueprint,
    load_families,
    parameter_vector,
    random_blueprint,
    render,
)
from spade_loop.inputs import Inputs, interrupted_run
from spade_loop.library import Library
from spade_loop.loop import Loop
from spade_loop.progress import Silent
from spade_loop.state import RunDirectory, RunState
from spade_loop.types import Role, StepReport
from synthgym.registry import Snapshot, bundled_root, write_snapshot
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, Provenance, SynthEnvSpec

FAMILIES = load_families()
FAMILY = FAMILIES[0]
SETTINGS = (
    f"designer.skills=['{FAMILY.skill}']",
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
    def make(library: Library | None = None, *settings: str, corpus: Corpus = CORPUS) -> Loop:
        config = load_config("tiny", [*SETTINGS, *settings])
        directory = RunDirectory(tmp_path / "run")
        return Loop(config, directory, library or Library(), corpus, pool, Silent())

    return make


@pytest.fixture
def scripted(chat: ChatFormat, tokenizer: Any) -> Callable[[Script], ScriptedSampler]:
    return lambda script: ScriptedSampler(chat, script, tokenizer.eos_token_id)


def spec(number: int) -> SynthEnvSpec:
    record = EnvRecord(source=f"X = {number}\n", entry="XEnv", max_turns=4)
    return SynthEnvSpec(record=record, name=f"X{number}", skills=("optimisation",))


# --- whole iterations ---

PROGRAM = '''"""Press the lit button."""

import random


class ButtonsEnv:
    max_turns = 4

    def reset(self, seed):
        self.rng = random.Random(seed)
        self.paid = 0.0
        return self._show("Two rounds."), {}

    def _show(self, text):
        self.lit = self.rng.randrange(10)
        signs = [str(i) for i in range(10)]
        signs[self.lit] += "*"
        return text + " Buttons: " + " ".join(signs) + ". Commands: press <n>."

    def step(self, action):
        if action == "crash":
            raise ValueError("told to")
        if action != f"press {self.lit}":
            return self._show("Wrong."), 0.0, False, False, {}
        self.paid += 0.5
        return self._show("Right."), 0.5, self.paid >= 1.0, False, {}

    def hint(self, level=2):
        return "The star marks it."

    def solution(self):
        rng_state = self.rng.getstate()
        first = self.lit
        second = self.rng.randrange(10)
        self.rng.setstate(rng_state)
        return [f"press {first}", f"press {second}"]
'''


def designs(*replies: str, agent: str = r"\boxed{pull}") -> Script:
    """Reply i for design i in turn, then over again; the agent always answers the same."""
    state = iter(())

    def script(_row: int, _turn: int, text: str) -> str:
        nonlocal state
        if "play short text games" in text:
            return agent
        reply = next(state, None)
        if reply is None:
            state = iter(replies)
            reply = next(state)
        return str(reply)

    return script


def blueprints(count: int, skip: int = 0) -> list[str]:
    """Blueprints of one family that are far enough apart to be new."""
    rng = np.random.default_rng(5)
    kept: list[Blueprint] = []
    for drawn in (random_blueprint(FAMILY, rng) for _ in range(400)):
        vector = np.array(parameter_vector(drawn, FAMILIES))
        others = [np.array(parameter_vector(b, FAMILIES)) for b in kept]
        if all(np.abs(vector - other).mean() > 0.12 for other in others):
            kept.append(drawn)
    return [b.to_json() for b in kept[skip : skip + count]]


def finish(loop: Loop, index: int) -> None:
    """What the trainer does after the optimiser step."""
    if not (loop.directory.path / "config.json").exists():
        RunDirectory.create(loop.directory.path, loop.config)
    checkpoint = loop.directory.path / f"checkpoint-{index}"
    checkpoint.mkdir()
    loop.commit(checkpoint, StepReport())


def metrics(loop: Loop) -> list[dict[str, Any]]:
    text = (loop.directory.path / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def again(loop: Loop, pool: Pool) -> tuple[Inputs, Loop]:
    inputs = interrupted_run(loop.directory.path)
    return inputs, Loop(
        inputs.config, inputs.directory, inputs.library, inputs.corpus, pool, Silent()
    )


def test_nothing_admitted_and_nothing_held_is_an_iteration_all_the_same(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path
) -> None:
    loop = making()
    samples = loop.collect(scripted(lambda *_: "I would rather not"), 0)
    assert {s.role for s in samples} == {Role.DESIGNER}
    assert {s.advantage for s in samples} == {0.0}
    finish(loop, 0)
    (row,) = metrics(loop)
    assert (row["played"], row["designs"]["unparsed"]) == (0, 4)
    assert row["regret"]["mean"] is None
    assert len(Snapshot.open(loop.directory.path / "snapshot")) == 0


def test_collect_changes_nothing_before_the_commit(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path, pool: Pool
) -> None:
    loop = making()
    sampler = scripted(designs(*blueprints(3), "no design"))
    samples = loop.collect(sampler, 0)
    assert (loop.state, loop.library.specs, len(loop.memory)) == (RunState(), {}, 0)
    assert not loop.directory.path.exists()
    # Three of the four are trained on: the last proposal is the initial designer's, here the one without a design.
    assert sum(s.role is Role.DESIGNER for s in samples) == 3
    assert sum(s.role is Role.AGENT for s in samples) == 2 * 2 * 2
    finish(loop, 0)
    assert loop.state.iteration == 1
    (row,) = metrics(loop)
    assert {o: n for o, n in row["designs"].items() if n} == {"admitted": 3, "unparsed": 1}
    assert row["played"] == 2
    inputs, resumed = again(loop, pool)
    assert inputs.checkpoint == loop.directory.path / "iter-00001" / "checkpoint"
    assert resumed.state == loop.state
    assert resumed.library.records == loop.library.records
    for digest in loop.library.records:
        assert resumed.library.specs[digest].record == loop.library.specs[digest].record
    assert [r.digest for r in resumed.memory] == [r.digest for r in loop.memory]
    # The next iteration is the same one, resumed or not.
    nexts = [x.collect(scripted(designs(*blueprints(4, skip=2))), 1) for x in (loop, resumed)]
    assert nexts[0] == nexts[1]


def test_a_copy_of_what_the_prompt_shows_is_no_design(
    making: Making, scripted: Callable[[Script], ScriptedSampler]
) -> None:
    loop = making(None, "designer.dialect=program")
    shown = loop.dialect.shown
    assert len(loop.memory) == len(shown) == 2
    replies = [f"```python\n{source}\n```" for source in shown]
    loop.collect(scripted(designs(*replies, *replies)), 0)
    pending = loop._pending
    assert pending is not None
    assert {a.candidate.reasons for a in pending.admissions} == {("copy",)}


def test_the_edited_example_is_held_beside_what_it_was_edited_from(making: Making) -> None:
    library = Library.start(Snapshot.open(bundled_root()))
    loop = making(library, "designer.dialect=edit")
    assert len(loop.memory) == len(library.specs) + 2


def test_the_metrics_count_turns_and_replies_without_a_command(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path
) -> None:
    loop = making()
    loop.collect(scripted(designs(*blueprints(4), agent="I would rather wait")), 0)
    finish(loop, 0)
    (row,) = metrics(loop)
    text = (loop.directory.path / "episodes.jsonl").read_text()
    turns = Counter[str]()
    for episode in map(json.loads, text.splitlines()):
        turns[episode["arm"]] += len(episode["turns"])
    assert min(turns["plain"], turns["hinted"]) > 0
    assert row["turns"] == turns | {"placebo": 0}
    failed = {arm: {"no-box": number} for arm, number in turns.items()}
    assert row["parse_failures"] == failed | {"placebo": {}}


def test_an_environment_whose_plays_all_fault_costs_its_designer_and_nobody_else(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path, pool: Pool
) -> None:
    program = f"```python\n{PROGRAM}```"
    loop = making(None, "designer.dialect=program", "reward.fault_floor=-0.5")
    sampler = scripted(designs(program, "nothing", "nothing", "nothing", agent=r"\boxed{crash}"))
    samples = loop.collect(sampler, 0)
    assert [s.role for s in samples] == [Role.DESIGNER] * 3
    assert samples[0].reward == pytest.approx(0.3 - 0.5)
    finish(loop, 0)
    (row,) = metrics(loop)
    assert row["refused_for"] == {"no-source": 3}
    assert (row["played"], row["faulty"], row["solve_rate"]["plain"]) == (1, 1, None)
    (record,) = loop.library.records.values()
    assert (record.quarantined, record.episodes, record.win_rate) == (True, 0, None)
    # It is not played again, now or after a restart; a copy of it is no new design.
    _, resumed = again(loop, pool)
    for x in (loop, resumed):
        x.collect(scripted(designs(program, agent=r"\boxed{crash}")), 1)
        pending = x._pending
        assert pending is not None
        assert pending.measured == []
        outcomes = {str(a.candidate.outcome) for a in pending.admissions}
        assert outcomes == {"duplicate"}


def test_a_blueprint_of_the_starting_snapshot_is_no_new_design(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path
) -> None:
    """What an earlier run left is compared by its parameters, like designs of this one."""
    loop = making()
    loop.collect(scripted(designs(*blueprints(4))), 0)
    finish(loop, 0)
    first = Snapshot.open(loop.directory.path / "snapshot")
    assert len(first) == 4
    directory = RunDirectory(tmp_path / "second")
    second = Loop(loop.config, directory, Library.start(first), CORPUS, loop.pool, Silent())
    second.collect(scripted(designs(*blueprints(4))), 0)
    pending = second._pending
    assert pending is not None
    assert {a.candidate.reasons for a in pending.admissions} == {("same-parameters",)}
    assert pending.library.own == []


def test_a_foreign_family_in_a_snapshot_is_no_obstacle(making: Making, tmp_path: Path) -> None:
    source = render(random_blueprint(FAMILY, np.random.default_rng(0)), FAMILIES)
    made = SynthEnvSpec(
        record=EnvRecord(source=source, entry="XEnv", max_turns=5),
        name="Foreign",
        provenance=Provenance(family=FAMILY.name, parameters={"of": "another version"}),
    )
    other = replace(spec(1), provenance=Provenance(family="unheard-of"))
    start = write_snapshot(tmp_path / "start", [made, other], name="start", version="1")
    assert len(making(Library.start(start)).memory) == 2


# --- resuming ---


def changed_run(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path
) -> Loop:
    """A run of one iteration that started from a snapshot and a corpus in `tmp_path`, and played nothing."""
    start = write_snapshot(tmp_path / "start", [spec(1), spec(2)], name="start", version="1")
    documents = [json.dumps({"id": f"d{i}", "text": "A lock."}) for i in range(8)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(documents))
    library = Library.start(start)
    library.records = {d: replace(r, quarantined=True) for d, r in library.records.items()}
    loop = making(
        library,
        f"registry={tmp_path / 'start'}",
        f"corpus.path={tmp_path / 'corpus.jsonl'}",
        "policy.model=org/name",
        corpus=Corpus.load(tmp_path / "corpus.jsonl"),
    )
    loop.collect(scripted(lambda *_: "nothing"), 0)
    finish(loop, 0)
    return loop


def test_a_run_whose_starting_snapshot_lost_an_environment_is_not_resumed(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path
) -> None:
    loop = changed_run(making, scripted, tmp_path)
    interrupted_run(loop.directory.path)
    write_snapshot(tmp_path / "start", [spec(1)], name="start", version="2", replace=True)
    with pytest.raises(RunStateError, match="registry that the run started from has changed"):
        interrupted_run(loop.directory.path)


def test_a_run_whose_corpus_lost_a_document_is_not_resumed(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path
) -> None:
    loop = changed_run(making, scripted, tmp_path)
    (tmp_path / "corpus.jsonl").write_text('{"id": "other", "text": "A lock."}\n')
    with pytest.raises(CorpusError, match="resume with the corpus that the run started with"):
        interrupted_run(loop.directory.path)


def test_a_run_without_its_checkpoint_is_not_resumed(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path
) -> None:
    loop = changed_run(making, scripted, tmp_path)
    (loop.directory.path / "iter-00001" / "checkpoint").rmdir()
    with pytest.raises(RunStateError, match="checkpoint is missing"):
        interrupted_run(loop.directory.path)


def test_a_snapshot_that_a_kill_left_behind_is_brought_up_to_date(
    making: Making, scripted: Callable[[Script], ScriptedSampler], tmp_path: Path
) -> None:
    loop = making(None, "policy.model=org/name")
    loop.collect(scripted(designs(*blueprints(2), "none", "none")), 0)
    finish(loop, 0)
    stale = (loop.directory.path / "snapshot").rename(tmp_path / "stale")
    loop.collect(scripted(designs(*blueprints(2, skip=4), "none", "none")), 1)
    finish(loop, 1)
    whole = Snapshot.open(loop.directory.path / "snapshot")
    assert len(whole) > len(Snapshot.open(stale))
    (loop.directory.path / "snapshot").rename(tmp_path / "whole")
    stale.rename(loop.directory.path / "snapshot")
    interrupted_run(loop.directory.path)
    assert Snapshot.open(loop.directory.path / "snapshot").digest == whole.digest
