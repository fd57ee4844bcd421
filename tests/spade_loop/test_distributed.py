"""Sampling on several ranks: the same completions as on one, and no way to wait for each other for ever."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranks import in_threads, torchrun

from spade_loop.backends.distributed import LeadingSampler, block, follow
from spade_loop.backends.transformers import TransformersSampler
from spade_loop.chat import ChatFormat
from spade_loop.completers import JsonSchema
from spade_loop.errors import WorldError
from spade_loop.types import Completion, Message
from spade_loop.world import Alone, World

SCHEMA = {"enum": ["red", "green", "blue"]}


class Counter:
    """A sampler that needs no model: what a row says follows from its stream and from everything said in it."""

    chat: Any = None

    def __init__(self, broken_row: int | None = None) -> None:
        self.broken_row = broken_row
        self.alive: weakref.WeakSet[CounterDialogue] = weakref.WeakSet()
        self.calls: list[str] = []

    def open(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        streams: Sequence[Sequence[int]],
        initial: bool = False,
    ) -> CounterDialogue:
        assert prompts
        dialogue = CounterDialogue(self, prompts, streams, initial)
        self.alive.add(dialogue)
        return dialogue

    def score(self, prompt_ids: Sequence[int], completion: Completion) -> list[float]:
        return [-float(sum(prompt_ids))] * len(completion.ids)


class CounterDialogue:
    def __init__(self, sampler: Counter, prompts: Any, streams: Any, initial: bool) -> None:
        self._sampler = sampler
        self._ids = {row: list(prompt) for row, prompt in enumerate(prompts)}
        self._streams = [tuple(s) for s in streams]
        self._initial = initial

    def generate(
        self, rows: Sequence[int], max_tokens: int, schema: JsonSchema | None = None
    ) -> dict[int, Completion]:
        assert rows
        self._sampler.calls.append("generate")
        out = {}
        for row in rows:
            if self._sampler.broken_row == self._streams[row][-1]:
                raise MemoryError("no room")
            said = (*self._streams[row], *self._ids[row], int(self._initial), len(schema or {}))
            ids = tuple(said[-max_tokens:])
            self._ids[row] += ids
            out[row] = Completion(ids, (0.0,) * len(ids), (1,) * len(ids))
        return out

    def feed(self, chunks: Mapping[int, Sequence[int]]) -> None:
        assert chunks
        for row, ids in chunks.items():
            self._ids[row] += ids

    def drop(self, rows: Sequence[int]) -> None:
        assert rows
        for row in rows:
            del self._ids[row]


def streams_of(count: int) -> list[list[int]]:
    return [[7, row] for row in range(count)]


def lead_and_follow(size: int, samplers: Sequence[Any], lead: Any) -> list[Any]:
    """`lead(sampler)` on rank 0, `follow` on the others; what each came to."""

    def work(world: World) -> Any:
        local = samplers[world.rank]
        if world.rank:
            return follow(local, world)
        with LeadingSampler(local, world) as sampler:
            return lead(sampler)

    return in_threads(size, work)


@given(st.integers(0, 50), st.integers(1, 9))
def test_blocks_are_contiguous_cover_every_row_once_and_are_balanced(count: int, size: int) -> None:
    blocks = [block(count, rank, size) for rank in range(size)]
    assert [row for own in blocks for row in own] == list(range(count))
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1


def conversations(count: int, keep: Sequence[int]) -> Any:
    """Two dialogues side by side, in which rows are fed and dropped."""

    def lead(sampler: Any) -> list[Any]:
        prompts = [[row, row + 1] for row in range(count)]
        first = sampler.open(prompts, streams=streams_of(count))
        second = sampler.open(prompts[::-1], streams=streams_of(count), initial=True)
        said = [first.generate(range(count), 4), second.generate(range(count)[::-1], 3, SCHEMA)]
        first.feed({row: [50 + row] for row in keep})
        first.drop([row for row in range(count) if row not in keep])
        said.append(first.generate(keep, 6))
        first.feed({})
        first.drop([])
        said.append(second.generate([], 6))
        return [list(replies.items()) for replies in said]

    return lead


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("count", "keep"),
    [(7, [0, 3, 6]), (7, [5, 6]), (7, [1, 0]), (7, []), (2, [1]), (1, [0]), (0, [])],
    ids=["one of each", "first ranks over", "last ranks over", "all over", "two", "one", "none"],
)
def test_ranks_say_together_what_one_says_alone(size: int, count: int, keep: list[int]) -> None:
    lead = conversations(count, keep)
    with LeadingSampler(Counter(), Alone()) as alone:
        expected = lead(alone)
    results = lead_and_follow(size, [Counter() for _ in range(size)], lead)
    assert results == [expected, *[None] * (size - 1)]


def test_every_rank_has_its_share_of_the_work() -> None:
    samplers = [Counter() for _ in range(3)]
    lead_and_follow(3, samplers, conversations(3, [0, 1, 2]))
    assert [s.calls for s in samplers] == [["generate"] * 3] * 3


def test_a_rank_with_nothing_to_say_takes_part_where_all_have_to() -> None:
    class Together(Counter):
        def keep_company(self) -> None:
            self.calls.append("company")

    samplers = [Together() for _ in range(3)]
    lead_and_follow(3, samplers, conversations(2, [1]))
    assert [len(s.calls) for s in samplers] == [4] * 3
    assert [s.calls.count("generate") for s in samplers] == [0, 2, 3]


def test_a_follower_that_fails_is_named_and_ends_all() -> None:
    samplers = [Counter(broken_row=3) for _ in range(3)]
    results = lead_and_follow(3, samplers, conversations(6, [0]))
    assert [type(r) for r in results] == [WorldError, MemoryError, WorldError]
    assert str(results[0]) == "rank 1 failed: MemoryError: no room"
    assert str(results[2]) == f"rank 0 failed: WorldError: {results[0]}"


def test_a_leader_whose_own_share_fails_raises_what_failed() -> None:
    samplers = [Counter(broken_row=0) for _ in range(3)]
    results = lead_and_follow(3, samplers, conversations(6, [0]))
    assert [type(r) for r in results] == [MemoryError, WorldError, WorldError]
    assert str(results[1]) == "rank 0 failed: MemoryError: no room"


def test_ranks_that_fail_together_end_together() -> None:
    results = lead_and_follow(2, [Counter(0), Counter(1)], conversations(2, []))
    assert [type(r) for r in results] == [MemoryError, MemoryError]


@pytest.mark.parametrize("error", [ValueError("a bad row"), KeyboardInterrupt()])
def test_a_leader_that_fails_between_commands_ends_the_others(error: BaseException) -> None:
    def lead(sampler: Any) -> None:
        sampler.open([[1], [2]], streams=streams_of(2)).generate([0, 1], 2)
        raise error

    results = lead_and_follow(3, [Counter() for _ in range(3)], lead)
    assert [type(r) for r in results] == [type(error), WorldError, WorldError]
    assert type(error).__name__ in str(results[1])


def test_a_leader_that_is_interrupted_in_a_command_sends_nothing_that_nobody_waits_for() -> None:
    class Interrupted(Counter):
        def open(self, *_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

    sent: list[Any] = []

    class Listening(Alone):
        def broadcast(self, value: Any) -> Any:
            sent.append(value)
            return value

    with pytest.raises(KeyboardInterrupt), LeadingSampler(Interrupted(), Listening()) as sampler:
        sampler.open([[1]], streams=[[1]])
    assert len(sent) == 1


def test_a_dialogue_that_nobody_holds_is_forgotten_on_every_rank() -> None:
    samplers = [Counter() for _ in range(2)]

    def lead(sampler: Any) -> list[int]:
        kept = sampler.open([[1], [2]], streams=streams_of(2))
        lost = sampler.open([[1], [2]], streams=streams_of(2))
        lost.generate([0, 1], 2)
        alive = [len(s.alive) for s in samplers]
        del lost
        gc.collect()
        kept.generate([0, 1], 2)
        gc.collect()
        return [*alive, *(len(s.alive) for s in samplers)]

    assert lead_and_follow(2, samplers, lead) == [[2, 2, 1, 1], None]


def test_a_completion_is_scored_by_the_leaders_model() -> None:
    completion = Completion((5, 6), (0.0, 0.0), (1, 1))
    results = lead_and_follow(2, [Counter(), Counter()], lambda s: s.score([1, 2], completion))
    assert results == [[-3.0, -3.0], None]


def test_prompts_and_streams_are_as_many() -> None:
    results = lead_and_follow(2, [Counter(), Counter()], lambda s: s.open([[1], [2]], streams=[]))
    assert str(results[0]) == "2 prompts need as many streams, got 0"


# --- a real model ---


def speak(sampler: Any) -> list[dict[int, Completion]]:
    """Two turns of five conversations, one of which is under a grammar throughout."""
    texts = ["a", "a longer question", "b", "what is it", "c"]
    prompts = [sampler.chat.prompt([Message("user", text)]) for text in texts]
    dialogue = sampler.open(prompts, streams=[[3, row] for row in range(5)])
    first = dialogue.generate([0, 1, 2, 3], 12) | dialogue.generate([4], 12, SCHEMA)
    dialogue.drop([0, 1])
    dialogue.feed({r: sampler.chat.next_turn("go on", stopped=first[r].stopped) for r in (2, 3, 4)})
    return [first, dialogue.generate([2, 3], 12), dialogue.generate([4], 12, SCHEMA)]


def said(turns: list[dict[int, Completion]]) -> list[list[Any]]:
    """Ids, masks and grammar choices, which have to be equal, and log-probabilities, which are rounded."""
    return [
        [row, list(c.ids), list(c.mask), sorted(c.allowed), [round(p, 4) for p in c.logprobs]]
        for turn in turns
        for row, c in sorted(turn.items())
    ]


def same(left: list[list[Any]], right: list[list[Any]]) -> None:
    assert [turn[:4] for turn in left] == [turn[:4] for turn in right]
    for mine, others in zip(left, right, strict=True):
        assert mine[4] == pytest.approx(others[4], abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 7])
def test_a_model_on_several_ranks_says_what_it_says_on_one(
    size: int, model: Any, tokenizer: Any, chat: ChatFormat
) -> None:
    expected = said(speak(TransformersSampler(model, tokenizer, chat)))
    assert any(len(turn[1]) == 12 for turn in expected)
    samplers = [TransformersSampler(model, tokenizer, chat) for _ in range(size)]
    results = lead_and_follow(size, samplers, speak)
    assert results[1:] == [None] * (size - 1)
    same(said(results[0]), expected)


# --- real processes ---


@pytest.mark.slow
def test_two_processes_sample_together_and_end_together(
    tiny_model: Path, tmp_path: Path, model: Any, tokenizer: Any, chat: ChatFormat
) -> None:
    done = torchrun([__file__, str(tiny_model), str(tmp_path)], seconds=200)
    assert done.returncode == 0, done.stderr
    results = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    same(results[0]["said"], said(speak(TransformersSampler(model, tokenizer, chat))))
    assert results[0]["failed"] == "WorldError: rank 1 failed: MemoryError: no room"
    assert results[1]["failed"] == "MemoryError: no room"
    assert results[1]["deserted"].startswith("WorldError: another process of the run is gone")


def _in_a_process(model_path: str, out: Path) -> None:
    """What each of the two processes does: sample, fail on rank 1, lose rank 0 in the midst of a command."""
    import os

    from transformers import AutoModelForCausalLM, AutoTokenizer

    from spade_loop.world import joined

    def attempt(local: Any, lead: Any) -> Any:
        try:
            if world.rank:
                return follow(local, world)
            with LeadingSampler(local, world) as sampler:
                return lead(sampler)
        except (WorldError, MemoryError) as error:
            return f"{type(error).__name__}: {error}"

    with joined() as world:
        tokenizer = AutoTokenizer.from_pretrained(model_path, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(model_path).eval()
        sampler = TransformersSampler(model, tokenizer, ChatFormat(tokenizer))
        told = {"said": attempt(sampler, lambda leading: said(speak(leading)))}
        told["failed"] = attempt(Counter(broken_row=1), conversations(2, []))
        path = out / f"{world.rank}.json"
        path.write_text(json.dumps(told))
        told["deserted"] = attempt(Counter(), lambda _: os._exit(0))
        path.write_text(json.dumps(told))


if __name__ == "__main__":
    _in_a_process(sys.argv[1], Path(sys.argv[2]))
