"""Frozen designers on this machine: the tiny random model behind the real sampler."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from spade_loop.backends.transformers_writer import TransformersWriter
from spade_loop.completers import Reply, Writer
from spade_loop.errors import ContextError, ModelError
from spade_loop.types import Message

SCHEMA = {
    "type": "object",
    "properties": {"size": {"enum": [2, 3, 4]}},
    "required": ["size"],
    "additionalProperties": False,
}
CHATS = [
    [Message("system", "You design."), Message("user", f"Design {what}.")]
    for what in ("a lock", "a long and winding corridor with many doors", "a farm", "a ship")
]


@pytest.fixture(scope="module")
def writer(tiny_model: Path) -> TransformersWriter:
    return TransformersWriter(str(tiny_model), name="frozen", dtype="float32", batch_rows=3)


def write(
    writer: Writer, chats: list[list[Message]], seeds: list[int], tokens: int = 12
) -> list[Reply]:
    return writer.write(chats, max_tokens=tokens, temperature=0.8, seeds=seeds)


def test_it_is_a_writer(writer: TransformersWriter) -> None:
    ours, theirs = inspect.signature(TransformersWriter.write), inspect.signature(Writer.write)
    assert ours.parameters == theirs.parameters
    assert writer.name == "frozen"


def test_every_chat_has_its_reply(writer: TransformersWriter) -> None:
    replies = write(writer, CHATS, [1, 2, 3, 4])
    assert len(replies) == 4
    assert len({reply.text for reply in replies}) == 4
    for reply in replies:
        assert 1 <= reply.tokens <= 12
        assert reply.stopped or reply.tokens == 12


def test_a_reply_depends_on_its_chat_and_its_seed_alone(writer: TransformersWriter) -> None:
    together = write(writer, CHATS, [1, 2, 3, 4])
    assert write(writer, CHATS, [1, 2, 3, 4]) == together
    for i, chat in enumerate(CHATS):
        assert write(writer, [chat], [i + 1]) == [together[i]]
    assert write(writer, CHATS[:1], [9]) != together[:1]


def test_a_temperature_of_zero_takes_the_likeliest(writer: TransformersWriter) -> None:
    first, second = (
        writer.write(CHATS[:1], max_tokens=8, temperature=0.0, seeds=[seed]) for seed in (1, 2)
    )
    assert first == second


def test_a_schema_is_kept_to(writer: TransformersWriter) -> None:
    replies = writer.write(CHATS[:2], max_tokens=40, temperature=1.0, seeds=[1, 2], schema=SCHEMA)
    for reply in replies:
        assert json.loads(reply.text)["size"] in (2, 3, 4)


def test_the_weights_are_frozen(writer: TransformersWriter) -> None:
    model = writer._sampler.model
    assert not any(p.requires_grad for p in model.parameters())
    assert not model.training


def test_no_chat_is_no_reply(writer: TransformersWriter) -> None:
    assert write(writer, [], []) == []


def test_what_does_not_fit_into_the_context_is_named(writer: TransformersWriter) -> None:
    with pytest.raises(ContextError, match=r"'frozen' has a context of 2048 tokens.*max_tokens"):
        write(writer, CHATS[:1], [1], tokens=2048)


def test_seeds_that_are_missing_are_told(writer: TransformersWriter) -> None:
    with pytest.raises(ValueError, match="2 chats need as many seeds, got 1"):
        write(writer, CHATS[:2], [1])


def test_a_model_that_is_not_there_is_told() -> None:
    with pytest.raises(ModelError, match="there is no directory"):
        TransformersWriter("/nope")


@pytest.mark.parametrize("cut", [{"top_k": 1}, {"top_p": 1e-6}, {"top_k": 5, "top_p": 1e-6}])
def test_leaving_out_all_but_the_likeliest_is_greedy(
    writer: TransformersWriter, cut: dict[str, Any]
) -> None:
    greedy = writer.write(CHATS, max_tokens=8, temperature=0.0, seeds=[1, 2, 3, 4])
    assert writer.write(CHATS, max_tokens=8, temperature=2.0, seeds=[5, 6, 7, 8], **cut) == greedy
    assert writer.write(CHATS, max_tokens=8, temperature=2.0, seeds=[5, 6, 7, 8]) != greedy


def test_unlikely_tokens_are_left_out(writer: TransformersWriter) -> None:
    drawn = {
        writer.write(CHATS[:1], max_tokens=1, temperature=5.0, seeds=[seed], top_k=3)[0].text
        for seed in range(40)
    }
    assert 1 < len(drawn) <= 3
    free = {
        writer.write(CHATS[:1], max_tokens=1, temperature=5.0, seeds=[seed])[0].text
        for seed in range(40)
    }
    assert len(free) > 3


def test_tokens_of_the_chat_are_counted(writer: TransformersWriter) -> None:
    (reply,) = write(writer, CHATS[:1], [1])
    assert reply.prompt_tokens == len(writer._sampler.chat.prompt(CHATS[0]))
