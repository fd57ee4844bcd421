"""Where the time went."""

from __future__ import annotations

import time
from typing import Any

import pytest

from spade_loop.chat import ChatFormat
from spade_loop.completers import ScriptedSampler
from spade_loop.timing import GENERATE, UPDATE, Clock, TimedSampler


def test_inner_parts_are_taken_out_of_outer_ones() -> None:
    clock = Clock()
    clock.take()
    begun = time.monotonic()
    with clock.part("play"):
        time.sleep(0.02)
        with clock.part(GENERATE):
            time.sleep(0.04)
    time.sleep(0.01)
    parts = clock.take()
    total = time.monotonic() - begun
    assert set(parts) == {"play", GENERATE, UPDATE}
    assert parts["play"] >= 0.02
    assert parts[GENERATE] >= 0.04
    assert sum(parts.values()) <= total
    assert set(clock.take()) == {UPDATE}


def test_a_part_ends_with_an_exception() -> None:
    clock = Clock()
    with pytest.raises(ZeroDivisionError), clock.part("play"):
        1 / 0  # noqa: B018 -- anything that raises
    clock.take()
    assert set(clock.take()) == {UPDATE}


def test_a_timed_sampler_says_what_the_inner_one_says(chat: ChatFormat, tokenizer: Any) -> None:
    clock = Clock()
    inner = ScriptedSampler(chat, lambda row, turn, text: f"{row}.{turn}", tokenizer.eos_token_id)
    sampler = TimedSampler(inner, clock)
    dialogue = sampler.open([[1, 2], [3]], streams=[[0], [1]])
    first = dialogue.generate([0, 1], 50)
    assert [chat.decode(first[row].ids) for row in (0, 1)] == ["0.0", "1.0"]
    dialogue.feed({0: [5]})
    dialogue.drop([1])
    assert chat.decode(dialogue.generate([0], 50)[0].ids) == "0.1"
    assert sampler.score([1], first[0]) == [0.0] * len(first[0].ids)
    assert set(clock.take()) == {GENERATE, UPDATE}
