"""The wire: frames, messages, and what hostile bytes come to."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.sandbox.protocol import (
    MAX_CODE,
    MAX_FRAME,
    Answer,
    Compile,
    Compiled,
    Control,
    Done,
    Drop,
    Failed,
    FrameDecoder,
    FrameError,
    Hint,
    HintDone,
    Kill,
    Load,
    LoadDone,
    Op,
    Ready,
    Replay,
    Replayed,
    Reply,
    Resets,
    Rows,
    Solution,
    SolutionDone,
    Spawn,
    Steps,
    Unload,
    append_frame,
    decode_answer,
    decode_control,
    decode_ops,
    decode_reply,
    encode,
    frame,
    messages,
    slices,
)

BODIES = st.lists(st.binary(min_size=1, max_size=300), max_size=8)
NUMBERS = st.integers(0, (1 << 63) - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=50)
COUNTS = st.integers(-(1 << 63), (1 << 64) - 1)


@st.composite
def batches(draw: st.DrawFn, kind: type[Resets] | type[Steps]) -> Op:
    instances = draw(st.lists(NUMBERS, max_size=8))
    size = len(instances)
    number, program = draw(NUMBERS), draw(NUMBERS)
    if kind is Resets:
        seeds = draw(st.lists(NUMBERS, min_size=size, max_size=size))
        return Resets(number, program, instances, seeds)
    actions = draw(st.lists(TEXTS, min_size=size, max_size=size))
    return Steps(number, program, instances, actions)


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    observations = draw(st.lists(TEXTS, min_size=1, max_size=8))
    size = len(observations)
    position = st.integers(0, size - 1)
    return Rows(
        draw(NUMBERS),
        observations,
        draw(st.lists(st.floats(allow_nan=False), min_size=size, max_size=size)),
        draw(st.binary(min_size=size, max_size=size)),
        draw(st.dictionaries(position, TEXTS)),
        draw(st.dictionaries(position, st.tuples(TEXTS, TEXTS))),
    )


OPS: st.SearchStrategy[Op] = st.one_of(
    st.builds(Compile, NUMBERS, TEXTS),
    st.builds(Load, NUMBERS, NUMBERS, st.binary(max_size=99), TEXTS, st.just(b"{}"), NUMBERS),
    batches(Resets),
    batches(Steps),
    st.builds(Replay, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.lists(TEXTS), st.booleans()),
    st.builds(Hint, NUMBERS, NUMBERS, NUMBERS, st.integers(1, 3)),
    st.builds(Solution, NUMBERS, NUMBERS, NUMBERS),
    st.builds(Drop, NUMBERS, st.lists(NUMBERS)),
    st.builds(Unload, NUMBERS, NUMBERS),
)
REPLIES: st.SearchStrategy[Reply] = st.one_of(
    st.builds(Ready, NUMBERS, st.lists(st.tuples(TEXTS, st.booleans(), TEXTS), max_size=5)),
    st.builds(
        Compiled,
        NUMBERS,
        st.binary(max_size=99),
        st.lists(TEXTS),
        TEXTS,
        st.lists(st.tuples(COUNTS, TEXTS)),
    ),
    st.builds(LoadDone, NUMBERS, TEXTS, COUNTS, TEXTS, st.booleans(), st.booleans()),
    rows(),
    st.builds(Replayed, NUMBERS, TEXTS, st.floats(allow_nan=False)),
    st.builds(HintDone, NUMBERS, TEXTS),
    st.builds(SolutionDone, NUMBERS, st.lists(TEXTS)),
    st.builds(Done, NUMBERS),
    st.builds(Failed, NUMBERS, TEXTS, TEXTS),
)


def in_pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    """The frames of a stream that arrives in pieces of the sizes given, again and again."""
    decoder = FrameDecoder()
    found: list[bytes] = []
    turn = 0
    while stream:
        size = cuts[turn % len(cuts)]
        found += decoder.feed(stream[:size])
        stream = stream[size:]
        turn += 1
    assert not decoder.holding
    return found


# --- frames ---


@given(bodies=BODIES, cuts=st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_frames_come_out_whole_however_the_bytes_are_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    assert in_pieces(b"".join(frame(body) for body in bodies), cuts) == bodies


@given(body=st.binary(min_size=1, max_size=300), cut=st.integers(1, 300))
def test_a_decoder_says_whether_a_frame_has_begun(body: bytes, cut: int) -> None:
    whole = frame(body)
    cut = min(cut, len(whole) - 1)
    decoder = FrameDecoder()
    assert not decoder.holding
    assert decoder.feed(whole[:cut]) == []
    assert decoder.holding
    assert decoder.feed(whole[cut:]) == [body]
    assert not decoder.holding


@given(data=st.binary(max_size=200))
def test_any_bytes_are_frames_or_a_frame_error(data: bytes) -> None:
    decoder = FrameDecoder()
    try:
        found = decoder.feed(data)
    except FrameError:
        return
    assert all(body in data for body in found)
    assert sum(len(body) + 4 for body in found) <= len(data)


@pytest.mark.parametrize("size", [0, MAX_FRAME + 1, (1 << 32) - 1])
def test_a_header_outside_the_cap_is_refused_before_its_body_arrives(size: int) -> None:
    with pytest.raises(FrameError, match="header says"):
        FrameDecoder().feed(size.to_bytes(4, "big"))


@pytest.mark.parametrize("body", [b"", bytes(MAX_FRAME + 1)], ids=["empty", "too long"])
def test_a_body_outside_the_cap_cannot_be_framed(body: bytes) -> None:
    with pytest.raises(FrameError):
        frame(body)


def test_a_message_above_the_cap_leaves_what_was_framed_before() -> None:
    framed = bytearray()
    append_frame(Done(1), framed)
    before = bytes(framed)
    with pytest.raises(FrameError):
        append_frame(HintDone(2, "x" * MAX_FRAME), framed)
    assert framed == before


@given(replies=st.lists(REPLIES, max_size=5), cuts=st.lists(st.integers(1, 40), min_size=1))
def test_what_is_appended_is_what_is_framed(replies: list[Reply], cuts: list[int]) -> None:
    framed = bytearray()
    for reply in replies:
        append_frame(reply, framed)
    assert bytes(framed) == b"".join(frame(encode(reply)) for reply in replies)
    assert [decode_reply(body) for body in in_pieces(bytes(framed), cuts)] == replies


# --- bodies ---


@given(data=st.binary(max_size=200))
def test_any_body_is_a_message_or_a_value_error(data: bytes) -> None:
    for decode, kinds in (
        (decode_reply, Reply),
        (decode_ops, list),
        (decode_control, Control),
        (decode_answer, Answer),
    ):
        try:
            found = decode(data)
        except (ValueError, RecursionError):
            continue
        assert isinstance(found, kinds)


@given(reply=REPLIES, position=st.integers(0, 1 << 20), byte=st.integers(0, 255))
def test_a_reply_with_one_byte_changed_is_a_reply_or_a_value_error(
    reply: Reply, position: int, byte: int
) -> None:
    body = bytearray(encode(reply))
    body[position % len(body)] = byte
    try:
        found = decode_reply(bytes(body))
    except (ValueError, RecursionError):
        return
    assert isinstance(found, Reply)


@given(reply=REPLIES, cut=st.integers(1, 1 << 20))
def test_a_reply_cut_short_is_a_value_error(reply: Reply, cut: int) -> None:
    body = encode(reply)
    with pytest.raises(ValueError, match=r".+"):
        decode_reply(body[: cut % len(body)])


ROWS = [4, 1, ["x"], [0.0], b"\0", {}, {}]


@pytest.mark.parametrize(
    "body",
    [
        b"\x91" * 100_000,
        encode([99, 1]),
        encode([4, "one", *ROWS[2:]]),
        encode([*ROWS, "extra"]),
        encode(ROWS[:-1]),
        encode([4, 1, ["x"], ["0.5"], b"\0", {}, {}]),
        encode([4, 1, ["x"], [0.0], "\0", {}, {}]),
        encode([4, 1, [None], [0.0], b"\0", {}, {}]),
        encode([4, 1, ["x"], [0.0], b"\0", {"0": "{}"}, {}]),
        encode([4, 1, ["x"], [0.0], b"\0", {}, {0: "error"}]),
        encode({"id": 1}),
        encode(Failed(1, "error", "")) + b"\x00",
        b"\x94\x09\x01\xa1\xff\xa0",
    ],
    ids=[
        "deep", "tag", "id", "more fields", "fewer fields", "text reward", "text flags",
        "no observation", "text row", "bare failure", "map", "trailing", "not utf-8",
    ],
)  # fmt: skip
def test_a_body_that_is_no_reply_is_a_value_error(body: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        decode_reply(body)


# --- operations and replies ---


@given(ops=st.lists(OPS, max_size=12), cuts=st.lists(st.integers(1, 40), min_size=1))
def test_operations_survive_the_wire_in_order(ops: list[Op], cuts: list[int]) -> None:
    bodies = in_pieces(bytes(messages(ops)), cuts)
    assert [op for body in bodies for op in decode_ops(body)] == ops


@given(reply=REPLIES)
def test_a_reply_keeps_every_value(reply: Reply) -> None:
    assert decode_reply(encode(reply)) == reply


def test_a_reply_keeps_odd_texts_and_the_sign_of_zero() -> None:
    odd = Rows(5, ["text\0\x1b[0m \u202e 你"], [-0.0], b"\3", {0: '{"a":1}'}, {})
    found = decode_reply(encode(odd))
    assert found == odd
    assert isinstance(found, Rows)
    assert math.copysign(1, found.rewards[0]) == -1


@given(memory=st.integers(1, 1 << 20), slot=st.integers(0, 8191), error=TEXTS)
def test_control_messages_keep_every_value(memory: int, slot: int, error: str) -> None:
    for message in (Spawn(memory, slot), Kill(memory)):
        assert decode_control(encode(message)) == message
    assert decode_answer(encode(Answer(memory, error))) == Answer(memory, error)


# --- messages below the cap ---

LARGE = st.sampled_from(["", "go", "x" * 4096, "ä" * 4096, "\U0001f600" * 4096])


@settings(max_examples=25, deadline=None)
@given(actions=st.lists(LARGE, min_size=1, max_size=40), repeat=st.integers(1, 12))
def test_slices_keep_every_action_in_order_and_fit_into_a_frame(
    actions: list[str], repeat: int
) -> None:
    actions = actions * repeat
    parts = slices(actions)
    assert [action for part in parts for action in actions[part]] == actions
    for part in parts:
        chosen = actions[part]
        assert chosen
        # The longest numbers that there are, in each place of the operation.
        top = (1 << 64) - 1
        ops: list[Op] = [
            Steps(top, top, [top] * len(chosen), chosen),
            Replay(top, top, top, top, chosen, True),
        ]
        for body in FrameDecoder().feed(bytes(messages(ops))):
            assert len(body) <= MAX_FRAME


def test_no_action_is_one_empty_slice() -> None:
    assert slices([]) == [slice(0, 0)]


@settings(max_examples=25, deadline=None)
@given(
    groups=st.lists(st.lists(LARGE, max_size=9), max_size=30),
    small=st.lists(st.builds(Hint, NUMBERS, NUMBERS, NUMBERS, st.just(2)), max_size=5),
)
def test_large_operations_are_split_into_messages_below_the_cap(
    groups: list[list[str]], small: list[Hint]
) -> None:
    ops: list[Op] = [
        Steps(number, 1, [number] * len(group), group) for number, group in enumerate(groups)
    ]
    ops[len(ops) // 2 : len(ops) // 2] = small
    bodies = FrameDecoder().feed(bytes(messages(ops)))
    assert [op for body in bodies for op in decode_ops(body)] == ops
    assert all(len(body) <= MAX_FRAME for body in bodies)


def test_many_large_operations_need_more_than_one_message() -> None:
    ops: list[Op] = [Steps(number, 1, [1], ["ä" * 4096]) for number in range(500)]
    assert len(FrameDecoder().feed(bytes(messages(ops)))) > 1


def test_the_largest_source_and_the_largest_code_fit_into_a_frame() -> None:
    source, kwargs = "\U0001f600" * (64 * 1024 // 4), b"x" * 64 * 1024
    ops: list[Op] = [Compile(1, source), Load(2, 1, bytes(MAX_CODE), "A" * 1000, kwargs, 1 << 30)]
    bodies = FrameDecoder().feed(bytes(messages(ops)))
    assert [op for body in bodies for op in decode_ops(body)] == ops
