"""The wire: frames, messages, and what hostile bytes come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.sandbox.protocol import (
    MAX_FRAME,
    Drop,
    Failed,
    FrameDecoder,
    FrameError,
    Load,
    Reset,
    Step,
    StepDone,
    decode_ops,
    decode_reply,
    encode,
    frame,
    messages,
)

BODIES = st.lists(st.binary(min_size=1, max_size=300), max_size=8)


@given(bodies=BODIES, cuts=st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_frames_come_out_whole_however_the_bytes_are_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(frame(body) for body in bodies)
    decoder = FrameDecoder()
    found: list[bytes] = []
    turn = 0
    while stream:
        size = cuts[turn % len(cuts)]
        found += decoder.feed(stream[:size])
        stream = stream[size:]
        turn += 1
    assert found == bodies


@given(data=st.binary(max_size=200))
def test_any_bytes_are_frames_or_a_frame_error(data: bytes) -> None:
    decoder = FrameDecoder()
    try:
        found = decoder.feed(data)
    except FrameError:
        return
    assert all(body in data for body in found)
    assert sum(len(body) + 4 for body in found) <= len(data)


@given(data=st.binary(max_size=200))
def test_any_body_is_a_reply_or_a_value_error(data: bytes) -> None:
    try:
        reply = decode_reply(data)
    except ValueError:
        return
    assert isinstance(reply.id, int)


@pytest.mark.parametrize("size", [0, MAX_FRAME + 1, (1 << 32) - 1])
def test_a_header_outside_the_cap_is_refused_before_its_body_arrives(size: int) -> None:
    with pytest.raises(FrameError, match="header says"):
        FrameDecoder().feed(size.to_bytes(4, "big"))


@pytest.mark.parametrize("body", [b"", bytes(MAX_FRAME + 1)], ids=["empty", "too long"])
def test_a_body_outside_the_cap_cannot_be_framed(body: bytes) -> None:
    with pytest.raises(FrameError):
        frame(body)


@pytest.mark.parametrize(
    "body",
    [
        b"\x91" * 100_000,
        encode([99, 1]),
        encode([4, "one", "text", 0.0, True, False, ""]),
        encode([4, 1, "text", 0.0, True, False, "", "extra"]),
        encode([4, 1, "text", 0.0, 1, 0, ""]),
        encode({"id": 1}),
        encode(Failed(1, "error", "")) + b"\x00",
        b"\x94\x08\x01\xa1\xff\xa0",
    ],
    ids=["deep", "tag", "id", "more fields", "int flags", "map", "trailing", "not utf-8"],
)
def test_a_body_that_is_no_reply_is_a_value_error(body: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        decode_reply(body)


@given(
    actions=st.lists(st.text(st.characters(codec="utf-8"), max_size=50), max_size=30),
    seeds=st.lists(st.integers(0, (1 << 63) - 1), max_size=5),
)
def test_operations_survive_the_wire_in_order(actions: list[str], seeds: list[int]) -> None:
    ops = [
        Load(1, "source", "AEnv", b"{}", 100),
        *(Reset(2, 7, seed) for seed in seeds),
        *(Step(3, 7, action) for action in actions),
        Drop(4, 7),
    ]
    (body,) = FrameDecoder().feed(messages(ops))
    assert decode_ops(body) == ops


def test_many_large_operations_are_split_into_messages_below_the_cap() -> None:
    ops = [Step(number, 1, "ä" * 4096) for number in range(500)]
    bodies = FrameDecoder().feed(messages(ops))
    assert len(bodies) > 1
    assert [op for body in bodies for op in decode_ops(body)] == ops


def test_a_reply_keeps_every_value() -> None:
    reply = StepDone(5, "text\0\x1b[0m \u202e 你", -0.0, True, False, '{"a":1}')
    assert decode_reply(encode(reply)) == reply
