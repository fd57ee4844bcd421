"""The play loop: real environments in real workers, a scripted agent, and every token accounted for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from spade_loop.chat import ChatFormat
from spade_loop.completers import Script, ScriptedDialogue, ScriptedSampler
from spade_loop.config import AgentConfig
from spade_loop.episodes import MAX_LENGTH_RATIO, Play, Player, formats_of
from spade_loop.families import Blueprint, load_families, render
from spade_loop.rows import parse_failures
from spade_loop.types import Arm, StopReason, Trajectory
from synthgym.envs import GAME_FORMATS, TOOL_FORMATS, SynthEnv
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import FaultKind, Pool
from synthgym.spec import EnvRecord, Limits, SynthEnvSpec

COUNTER = '''"""Say the number on the wall, twice."""


class CounterEnv:
    max_turns = 6

    def reset(self, seed):
        if seed == 13:
            raise ValueError("unlucky")
        self.number, self.steps, self.paid = seed % 1000, 0, 0.0
        return f"Number {self.number}." + " The wall is long." * (seed // 1000), {}

    def step(self, action):
        self.steps += 1
        if action == "hang":
            while True:
                pass
        if action == "lose":
            return "Lost.", 0.0, True, False, {}
        if action == str(self.number):
            self.paid += 0.5
            return f"Step {self.steps}: right.", 0.5, self.paid >= 1.0, False, {}
        return f"Step {self.steps}: {action} is wrong.", 0.0, False, False, {}

    def hint(self, level=2):
        return f"Read the wall (level {level})."

    def solution(self):
        return [str(self.number)] * 2
'''
CONFIG = AgentConfig(max_turns=6, turn_tokens=60, context=8000)
FAMILIES = load_families()


class Recorded(ScriptedSampler):
    """A scripted sampler that keeps what every conversation saw."""

    def __init__(self, chat: ChatFormat, script: Script, stop_id: int) -> None:
        super().__init__(chat, script, stop_id)
        self.dialogues: list[RecordedDialogue] = []
        self.streams: list[list[tuple[int, ...]]] = []

    def open(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        streams: Sequence[Sequence[int]],
        initial: bool = False,
    ) -> ScriptedDialogue:
        self.streams.append([tuple(stream) for stream in streams])
        self.dialogues.append(RecordedDialogue(self, [tuple(p) for p in prompts]))
        return self.dialogues[-1]

    def seen(self) -> list[tuple[int, ...]]:
        return sorted(tuple(ids) for d in self.dialogues for ids in d.seen())


class RecordedDialogue(ScriptedDialogue):
    def __init__(self, sampler: ScriptedSampler, prompts: Sequence[tuple[int, ...]]) -> None:
        super().__init__(sampler, prompts)
        self.prompts = [len(p) for p in prompts]
        self.dropped: dict[int, list[int]] = {}

    def drop(self, rows: Sequence[int]) -> None:
        self.dropped |= {row: self._ids[row] for row in rows}
        super().drop(rows)

    def seen(self) -> list[list[int]]:
        return [self.dropped.get(row, ids) for row, ids in enumerate(self._ids)]


Sampling = Callable[[Script], Recorded]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=6) as pool:
        yield pool


@pytest.fixture
def sampling(chat: ChatFormat, tokenizer: Any) -> Sampling:
    return lambda script: Recorded(chat, script, tokenizer.eos_token_id)


def counter(step_seconds: float = 2.0) -> SynthEnvSpec:
    record = EnvRecord(source=COUNTER, entry="CounterEnv", max_turns=6)
    return SynthEnvSpec(record=record, name="Counter", limits=Limits(step_seconds=step_seconds))


def family_spec(name: str) -> SynthEnvSpec:
    family = next(f for f in FAMILIES if f.name == name)
    easiest = Blueprint(name, {k: v[0] for k, v in family.choices().items()})
    source = render(easiest, FAMILIES)
    entry = re.findall(r"^class (\w+Env)\b", source, re.MULTILINE)[0]
    with Pool(max_workers=1) as pool:
        session = pool.open(EnvRecord(source=source, entry=entry, max_turns=9))
        loaded = session.load()
        session.close()
    record = EnvRecord(source=source, entry=entry, max_turns=loaded.max_turns)
    return SynthEnvSpec(record=record, name="Family")


def always(*replies: str) -> Script:
    """Reply i in turn i, whatever the row; the last one from then on."""
    return lambda _row, turn, _text: replies[min(turn, len(replies) - 1)]


def number_in(text: str) -> str:
    return re.findall(r"Number (\d+)", text)[-1]


def play(
    pool: Pool, sampler: Recorded, plays: Sequence[Play], config: AgentConfig = CONFIG
) -> list[Trajectory]:
    return Player(config, pool, hint_level=2).play(sampler, plays, stream=[1, 2])


def both_arms(spec: SynthEnvSpec, *seeds: int) -> list[Play]:
    return [Play(spec, seed, 0, arm) for arm in (Arm.PLAIN, Arm.HINTED) for seed in seeds]


def chosen(sampler: Recorded, t: Trajectory) -> list[int]:
    c = t.completion
    return [i for i, m in zip(c.ids, c.mask, strict=True) if m]


def test_every_token_is_accounted_for_and_only_the_models_are_trained_on(
    pool: Pool, sampling: Sampling, chat: ChatFormat, tokenizer: Any
) -> None:
    replies = (r"I say \boxed{7}", "nothing", r"\boxed{3}", r"\boxed{7}")
    sampler = sampling(always(*replies))
    (t,) = play(pool, sampler, [Play(counter(), 7, 0, Arm.PLAIN)])
    c = t.completion
    assert len(c.ids) == len(c.mask) == len(c.logprobs)
    assert sampler.seen() == [(*t.prompt_ids, *c.ids)]
    said = [i for text in replies for i in (*chat.encode_text(text), tokenizer.eos_token_id)]
    assert chosen(sampler, t) == said
    # What follows the last reply is nobody's turn any more, and is not there.
    assert c.mask[0] == c.mask[-1] == 1
    given = chat.decode([i for i, m in zip(c.ids, c.mask, strict=True) if not m])
    assert "Step 1: right." in given
    assert "3 is wrong" in given
    assert "boxed{7}" not in given


def test_a_reply_that_the_limit_cut_is_closed_by_the_template(
    pool: Pool, sampling: Sampling, tokenizer: Any
) -> None:
    sampler = sampling(always("much longer than the limit allows", r"\boxed{7}"))
    (t,) = play(pool, sampler, both_arms(counter(), 7)[:1], replace(CONFIG, turn_tokens=8))
    assert sampler.seen() == [(*t.prompt_ids, *t.completion.ids)]
    end = t.completion.ids.index(tokenizer.eos_token_id)
    assert (end, t.completion.mask[end]) == (8, 0)
    assert [turn.status for turn in t.turns][:2] == ["no-box", "ok"]


def test_arms_differ_in_the_hint_alone(pool: Pool, sampling: Sampling, chat: ChatFormat) -> None:
    sampler = sampling(lambda _r, _t, text: rf"\boxed{{{number_in(text)}}}")
    plain, hinted = play(pool, sampler, both_arms(counter(), 5))
    assert hinted.turns[0].observation == plain.turns[0].observation + (
        "\n\nHint: Read the wall (level 2)."
    )
    assert plain.turns[1:] == hinted.turns[1:]
    assert (plain.success, hinted.success) == (True, True)
    assert chat.decode(hinted.prompt_ids).replace("\n\nHint: Read the wall (level 2).", "") == (
        chat.decode(plain.prompt_ids)
    )
    assert (plain.seed, plain.digest) == (hinted.seed, hinted.digest)


@pytest.mark.parametrize("where", ["bundled", *(f.name for f in FAMILIES if not f.has_tools)])
def test_the_witness_in_boxes_wins_in_both_arms(where: str, pool: Pool, sampling: Sampling) -> None:
    if where == "bundled":
        snapshot = Snapshot.open(bundled_root())
        spec = snapshot.spec(next(iter(snapshot)).digest)
    else:
        spec = family_spec(where)
    env = SynthEnv(spec, pool=pool)
    first, _ = env.reset(seed=11)
    actions = env.solution()
    env.close()
    sampler = sampling(lambda _r, turn, _t: rf"So: \boxed{{{actions[turn]}}}")
    config = replace(CONFIG, max_turns=len(actions))
    for t in play(pool, sampler, both_arms(spec, 11), config):
        assert t.stop is StopReason.SUCCESS
        assert t.actions == actions
        assert t.episode_return == pytest.approx(1.0)
        assert t.turns[0].observation.startswith(first)


def test_a_reply_without_a_box_does_not_reach_the_environment(
    pool: Pool, sampling: Sampling
) -> None:
    sampler = sampling(always("I do not know", r"\boxed{", r"\boxed{ }", r"\boxed{1}"))
    (t,) = play(pool, sampler, [Play(counter(), 7, 0, Arm.PLAIN)])
    assert [turn.status for turn in t.turns] == ["no-box", "unbalanced", "empty"] + ["ok"] * 3
    assert t.turns[1].observation == t.turns[2].observation
    assert "No command was found" in t.turns[1].observation
    assert t.turns[4].observation == "Step 1: 1 is wrong."
    assert t.actions == ("1", "1", "1")
    assert t.stop is StopReason.TURNS


def test_an_environment_that_offers_tools_is_played_by_tool_calls() -> None:
    spec = counter()
    assert formats_of(spec) == GAME_FORMATS
    tools = replace(spec, record=replace(spec.record, action_format="tools"))
    assert formats_of(tools) == TOOL_FORMATS


def test_failures_are_counted_by_what_was_wrong_with_the_reply(
    pool: Pool, sampling: Sampling
) -> None:
    sampler = sampling(always("I do not know", r"\boxed{", "still not", r"\boxed{ }", r"\boxed{1}"))
    trajectories = play(pool, sampler, both_arms(counter(), 7))
    assert parse_failures(trajectories[:1]) == {"empty": 1, "no-box": 2, "unbalanced": 1}
    assert parse_failures(trajectories) == {"empty": 2, "no-box": 4, "unbalanced": 2}
    (clean,) = play(pool, sampling(always(r"\boxed{1}")), both_arms(counter(), 7)[:1])
    assert parse_failures([clean]) == parse_failures([]) == {}


def test_turns_without_a_box_count_against_the_environments_own_limit(
    pool: Pool, sampling: Sampling
) -> None:
    spec = counter()
    limit = spec.record.max_turns
    config = replace(CONFIG, max_turns=limit + 5, context=10_000)
    sampler = sampling(always("I do not know", r"\boxed{1}"))
    (t,) = play(pool, sampler, [Play(spec, 7, 0, Arm.PLAIN)], config)
    assert len(t.turns) == limit
    assert len(t.actions) == limit - 1
    assert t.stop is StopReason.TURNS


def test_the_last_box_is_the_action(pool: Pool, sampling: Sampling) -> None:
    sampler = sampling(always(r"Not \boxed{lose}, rather \boxed{7}"))
    (t,) = play(pool, sampler, [Play(counter(), 7, 0, Arm.PLAIN)])
    assert t.actions == ("7", "7")
    assert t.stop is StopReason.SUCCESS


@pytest.mark.parametrize(
    ("replies", "config", "stop", "turns", "earned"),
    [
        ([r"\boxed{7}"], CONFIG, StopReason.SUCCESS, 2, 1.0),
        ([r"\boxed{7}"], replace(CONFIG, score="terminal"), StopReason.SUCCESS, 2, 1.0),
        ([r"\boxed{7}", r"\boxed{lose}"], CONFIG, StopReason.FAILURE, 2, 0.5),
        (
            [r"\boxed{7}", r"\boxed{lose}"],
            replace(CONFIG, score="terminal"),
            StopReason.FAILURE,
            2,
            0.0,
        ),
        ([r"\boxed{1}"], replace(CONFIG, max_turns=9), StopReason.TURNS, 6, 0.0),
        ([r"\boxed{1}"], replace(CONFIG, max_turns=3), StopReason.TURNS, 3, 0.0),
        (["nothing"], replace(CONFIG, max_turns=9), StopReason.TURNS, 6, 0.0),
        ([r"\boxed{1}"], replace(CONFIG, context=100), StopReason.CONTEXT, 0, 0.0),
    ],
)
def test_an_episode_stops_for_a_reason(
    replies: list[str],
    config: AgentConfig,
    stop: StopReason,
    turns: int,
    earned: float,
    pool: Pool,
    sampling: Sampling,
) -> None:
    (t,) = play(pool, sampling(always(*replies)), [Play(counter(), 7, 0, Arm.PLAIN)], config)
    assert (t.stop, len(t.turns), t.episode_return) == (stop, turns, earned)
    assert t.success is (stop is StopReason.SUCCESS)
    assert t.fault is None
    assert bool(t.completion.ids) is bool(turns)


def test_an_episode_never_grows_beyond_the_context(pool: Pool, sampling: Sampling) -> None:
    plays = [Play(counter(), 7, 0, Arm.PLAIN)]
    (whole,) = play(pool, sampling(always(r"\boxed{1}")), plays)
    room = len(whole.prompt_ids) + len(whole.completion.ids) // 2 + CONFIG.turn_tokens
    config = replace(CONFIG, context=room)
    (t,) = play(pool, sampling(always(r"\boxed{1}")), plays, config)
    assert t.stop is StopReason.CONTEXT
    assert 0 < len(t.turns) < 6
    assert len(t.prompt_ids) + len(t.completion.ids) <= room
    assert t.completion.mask[-1] == 1
    assert t.completion.ids == whole.completion.ids[: len(t.completion.ids)]


def test_a_fault_ends_its_own_episode_and_no_other(pool: Pool, sampling: Sampling) -> None:
    sampler = sampling(
        lambda _r, turn, text: (
            r"\boxed{hang}" if turn and "Number 4." in text else rf"\boxed{{{number_in(text)}}}"
        )
    )
    ticks: list[tuple[int, int]] = []
    plays = [Play(counter(0.3), seed, 0, Arm.PLAIN) for seed in (3, 13, 4, 5)]
    trajectories = Player(CONFIG, pool, hint_level=2).play(
        sampler, plays, stream=[1], tick=lambda over, tokens: ticks.append((over, tokens))
    )
    good, in_reset, in_step, also_good = trajectories
    for t in (good, also_good):
        assert (t.stop, t.fault, t.episode_return) == (StopReason.SUCCESS, None, 1.0)
    assert in_reset.stop is in_step.stop is StopReason.FAULT
    assert in_reset.fault is not None
    assert (in_reset.fault.kind, in_reset.fault.call) == (FaultKind.ERROR, "reset")
    assert in_reset.completion.ids == ()
    assert in_step.fault is not None
    assert (in_step.fault.kind, in_step.fault.call) == (FaultKind.TIMEOUT, "step")
    assert in_step.actions == ("4", "hang")
    assert (in_step.success, in_step.episode_return) == (False, 0.5)
    assert sum(over for over, _ in ticks) == len(plays)
    assert sum(tokens for _, tokens in ticks) == sum(sum(t.completion.mask) for t in trajectories)


def test_batches_are_of_like_length_and_results_in_the_order_of_the_plays(
    pool: Pool, sampling: Sampling
) -> None:
    sampler = sampling(lambda _r, _t, text: rf"\boxed{{{number_in(text)}}}")
    spec = counter()
    seeds = [40_001, 2, 20_003, 5_004, 5, 40_006, 13, 20_008]
    arms = (Arm.PLAIN, Arm.HINTED)
    plays = [Play(spec, seed, i % 2, arm) for arm in arms for i, seed in enumerate(seeds)]
    trajectories = play(pool, sampler, plays, replace(CONFIG, batch_rows=8))
    assert [(t.seed, t.play, t.arm) for t in trajectories] == [
        (p.seed, p.index, p.arm) for p in plays
    ]
    assert all(t.success is (t.seed != 13) for t in trajectories)
    assert len(sampler.dialogues) > 2  # 14 rows: not the number, the length split them
    for dialogue in sampler.dialogues:
        assert len(dialogue.prompts) <= 8
        assert max(dialogue.prompts) <= MAX_LENGTH_RATIO * min(dialogue.prompts)
    streams = [stream for batch in sampler.streams for stream in batch]
    assert len(set(streams)) == len(streams)
    # A stream is told by the place among the plays, whatever batch the episode fell into.
    started = [i for i, p in enumerate(plays) if p.seed != 13]
    assert sorted(streams) == [(1, 2, i) for i in started]
    begun = [(*t.prompt_ids, *t.completion.ids) for t in trajectories if t.completion.ids]
    assert sampler.seen() == sorted(begun)


def test_no_plays_are_no_trajectories(pool: Pool, sampling: Sampling) -> None:
    assert play(pool, sampling(always("")), []) == []
