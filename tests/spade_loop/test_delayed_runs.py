"""Whole runs with regeneration, delay and repairs: everything is trained on once, and a resumed run is the same run."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spade_loop.chat import ChatFormat
from spade_loop.completers import ScriptedSampler
from spade_loop.config import load_config
from spade_loop.corpus import Corpus
from spade_loop.families import load_families, random_blueprint
from spade_loop.inputs import interrupted_run
from spade_loop.library import Library
from spade_loop.loop import Loop
from spade_loop.progress import Silent
from spade_loop.state import RunDirectory
from spade_loop.types import Role, Sample, StepReport
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import Pool

FAMILIES = {family.skill: family for family in load_families()}
SKILL = "optimisation"
SETTINGS = (
    f"designer.skills=['{SKILL}']",
    "novelty.embedder=hash",
    "policy.model=org/name",
    "iterations=5",
    "schedule.regenerate_every=2",
    "schedule.designer_delay=3",
    "trainer.learning_rate=1e-6",
    "designer.candidates=4",
    "designer.repairs=1",
    "designer.rejections=2",
    "designer.initial_share=0",
    "designer.max_tokens=4000",
    "validation.seeds=3",
    "agent.environments=2",
    "agent.pool_share=0.5",
    "agent.seeds=2",
    "agent.plays=1",
    "agent.max_turns=2",
    "agent.turn_tokens=40",
    "agent.context=8000",
    "curriculum.choice=replay",
    "hints.source=designer",
    "hints.train=true",
    "hints.max_tokens=400",
    "reward.designer=learning_potential",
)
STEPS = 7
"""Five iterations; the designs of 2 and 4 are trained on after them."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=6) as pool:
        yield pool


def answer(_row: int, turn: int, text: str) -> str:
    """The same answer to the same text: blueprints, every third of them broken at first; moves; a hint."""
    number = zlib.crc32(text.encode())
    if "Write a hint for its players" in text:
        return "Find out what is hidden before you commit to anything."
    if "design small puzzle games" in text:
        if turn == 0 and number % 3 == 0:
            return "{}"
        return random_blueprint(FAMILIES[SKILL], np.random.default_rng(number)).to_json()
    return rf"\boxed{{{number % 7}}}"


class Going:
    """A run that may be interrupted after any step."""

    def __init__(self, path: Path, pool: Pool, sampler: Callable[[], ScriptedSampler]) -> None:
        config = load_config("tiny", SETTINGS)
        self.pool, self.sampler = pool, sampler
        library = Library.start(Snapshot.open(bundled_root()))
        directory = RunDirectory.create(path, config)
        self.loop = Loop(config, directory, library, Corpus.load(), pool, Silent())
        self.samples: list[list[Sample]] = []

    def step(self, number: int) -> None:
        self.samples.append(list(self.loop.collect(self.sampler(), number)))
        checkpoint = self.loop.directory.path / f"checkpoint-{number}"
        checkpoint.mkdir()
        self.loop.commit(checkpoint, StepReport())

    def interrupt(self) -> None:
        path = self.loop.directory.path
        del self.loop
        inputs = interrupted_run(path)
        self.loop = Loop(
            inputs.config, inputs.directory, inputs.library, inputs.corpus, self.pool, Silent()
        )


Sampling = Callable[[], ScriptedSampler]


@pytest.fixture
def sampler(chat: ChatFormat, tokenizer: Any) -> Sampling:
    return lambda: ScriptedSampler(chat, answer, tokenizer.eos_token_id)


def rows(path: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_run_that_is_interrupted_after_every_step_is_the_run_that_is_not(
    tmp_path: Path, pool: Pool, sampler: Sampling
) -> None:
    whole = Going(tmp_path / "whole", pool, sampler)
    broken = Going(tmp_path / "broken", pool, sampler)
    assert whole.loop.schedule.steps == STEPS
    for number in range(STEPS):
        whole.step(number)
        broken.step(number)
        broken.interrupt()
    assert broken.samples == whole.samples
    for name in ("metrics", "designs", "hints", "episodes"):
        assert rows(tmp_path / "broken", name) == rows(tmp_path / "whole", name)
    assert broken.loop.state == whole.loop.state
    assert broken.loop.queue == whole.loop.queue == ()
    assert broken.loop.library.records == whole.loop.library.records

    designs = rows(tmp_path / "whole", "designs")
    assert {row["iteration"] for row in designs} == {0, 2, 4}
    assert {row["attempt"] for row in designs} == {0, 1}
    by_step = [
        [s for s in samples if s.role is Role.DESIGNER and s.group != "hint"]
        for samples in whole.samples
    ]
    # Each attempt of iterations 0, 2, 4 is trained on once: in steps 3, 5 and 6.
    made = {i: sum(row["iteration"] == i for row in designs) for i in (0, 2, 4)}
    assert [len(samples) for samples in by_step] == [0, 0, 0, made[0], 0, made[2], made[4]]
    metrics = rows(tmp_path / "whole", "metrics")
    # Iterations without new designs play the plain arm of the same field; steps after the last play nothing.
    for number, row in enumerate(metrics):
        assert bool(row["turns"]["plain"]) == (number < 5)
        assert bool(row["turns"]["hinted"]) == (number in (0, 2, 4))
    fields = [
        {row["digest"] for row in rows(tmp_path / "whole", "episodes") if row["iteration"] == i}
        for i in range(5)
    ]
    assert fields[0] == fields[1] != fields[2] == fields[3]
    hints = rows(tmp_path / "whole", "hints")
    assert hints
    assert {row["refused"] for row in hints} == {""}
    told = {row["digest"]: row["text"] for row in hints}
    for digest, text in told.items():
        assert whole.loop.library.specs[digest].hint == text
