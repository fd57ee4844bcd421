"""The wire between a process and its sandbox: typed messages, framed by length, never unpickled.

Two channels use it, both Unix stream sockets. The control channel joins the parent and the zygote,
one request and one answer at a time. A worker channel joins the parent and one worker: a message is
a list of operations, and an operation may stand for a whole batch of rows (one step or reset of one
instance each). The worker answers operations in order, the rows of a batch as columns, in as many
replies as their size asks for.

A frame is four bytes of length (big endian) and that many bytes of MessagePack. Both sides refuse a
frame above `MAX_FRAME` before they allocate anything for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from synthgym.contract import BASE

MAX_FRAME: Final = 1 << 20
"""Bytes of one frame, without its length."""
MAX_DETAIL: Final = 500
"""Characters of the text of a fault."""
MAX_CODE: Final = MAX_FRAME >> 1
"""Bytes of checked code that fit into a message; more is not handed out, and so not cached."""
MAX_ROWS: Final = 1 << 14
"""Rows of numbers alone that go into one operation, well under the cap of a frame."""
MEMORY_EXIT: Final = 83
"""Exit status of a worker that could not even say that its memory is used up."""
RECV_BYTES: Final = 1 << 18
"""How much is read from a socket at once; a peer cannot make the reader hold more than this beyond
one frame."""
HEADER: Final = 4
TERMINATED: Final = 1
TRUNCATED: Final = 2
MESSAGE_BYTES: Final = 1 << 19
"""Weight at which operations go into another message, well under the cap of a frame."""
_OP_BYTES: Final = 64
"""Encoded size of an operation without its texts, and more."""
_ROW_BYTES: Final = 24
"""Encoded size of a row without its text, and more."""


class FrameError(ValueError):
    """The bytes are not frames: the channel cannot be used any more."""


class FrameDecoder:
    """Takes bytes as they arrive and gives back whole frames; holds at most one unfinished frame."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = b""

    @property
    def holding(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._buffer)

    def feed(self, data: bytes | memoryview) -> list[bytes | memoryview]:
        """Every frame that `data` completes, oldest first.

        Frames are parts of `data` where they can be: to be decoded before its memory is used again.
        `FrameError` on a length of zero or above the cap.
        """
        if self._buffer:
            data = self._buffer + data
        frames: list[bytes | memoryview] = []
        start, end = 0, len(data)
        while end - start >= HEADER:
            body = start + HEADER
            size = int.from_bytes(data[start:body], "big")
            if not 0 < size <= MAX_FRAME:
                raise FrameError(f"a frame must have 1..{MAX_FRAME} bytes, its header says {size}")
            if end - body < size:
                break
            start = body + size
            frames.append(data[body:start])
        self._buffer = bytes(data[start:])
        return frames


def frame(body: bytes) -> bytes:
    """`body` behind its length. `FrameError` when it is empty or above the cap."""
    if not 0 < len(body) <= MAX_FRAME:
        raise FrameError(f"a frame must have 1..{MAX_FRAME} bytes, this one has {len(body)}")
    return len(body).to_bytes(HEADER, "big") + body


class _Message(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One message: an array that starts with its tag, then its fields in order."""

    id: int
    """Number of the operation; the reply carries it back."""


# --- operations: parent to worker ---


class Compile(_Message, tag=1, frozen=True):
    """Check and compile the source, without running it."""

    source: str
    base: str = BASE
    """What is put in front of it."""


class Load(_Message, tag=2, frozen=True):
    """Run checked code once and hold its class under a number."""

    program: int
    code: bytes
    """Marshalled, from `Compiled` of the same source; empty for what `Compile` has just made."""
    entry: str
    """Name that the class must have; empty for whichever it is."""
    kwargs: bytes
    """JSON object of keyword arguments for the class."""
    observation_chars: int
    base: str = BASE
    """How the class is spoken to."""


class Resets(_Message, tag=3, frozen=True):
    """Make instances anew and reset them. One row each."""

    program: int
    instances: list[int]
    seeds: list[int]


class Steps(_Message, tag=4, frozen=True):
    """Step instances. One row each.

    An instance may come more than once. After a step that ended its episode or failed, its rows say nothing.
    """

    program: int
    instances: list[int]
    actions: list[str]


class Replay(_Message, tag=5, frozen=True):
    """Bring one instance back: a reset and the recorded actions. A row for each of them."""

    program: int
    instance: int
    seed: int
    actions: list[str]
    resumed: bool = False
    """Whether this is a later part of a long log: no reset, and no row for one."""


class Hint(_Message, tag=6, frozen=True):
    """The hint of an instance of its own, reset with `seed`."""

    program: int
    seed: int
    level: int


class Solution(_Message, tag=7, frozen=True):
    """The witness of an instance of its own, reset with `seed`."""

    program: int
    seed: int


class Drop(_Message, tag=8, frozen=True):
    """Forget instances."""

    instances: list[int]


class Unload(_Message, tag=9, frozen=True):
    """Forget a program and its instances."""

    program: int


Op: TypeAlias = Compile | Load | Resets | Steps | Replay | Hint | Solution | Drop | Unload


# --- replies: worker to parent ---


class Ready(_Message, tag=1, frozen=True):
    """The worker is locked down. Comes first and unasked, with id 0."""

    layers: list[tuple[str, bool, str]]
    """(name, whether it holds, detail) of each layer of protection."""


class Compiled(_Message, tag=2, frozen=True):
    """What a source compiles to. There is no code to run exactly when there are violations."""

    code: bytes
    """Marshalled; empty as well when it is above `MAX_CODE`."""
    requires: list[str]
    docstring: str
    violations: list[tuple[int, str]]
    """(line, message)."""


class LoadDone(_Message, tag=3, frozen=True):
    """What the source holds."""

    entry: str
    max_turns: int
    docstring: str
    """Of the class."""
    has_hint: bool
    has_solution: bool
    tools: str = "[]"
    """JSON list of OpenAI function schemas."""


class Rows(_Message, tag=4, frozen=True):
    """The next rows of a batch, as columns of equal length."""

    observations: list[str]
    """Empty for a row that failed."""
    rewards: list[float]
    flags: bytes
    """`TERMINATED` and `TRUNCATED`, a byte a row."""
    infos: dict[int, str]
    """JSON objects by row of this reply; rows with an empty info are left out."""
    failures: dict[int, tuple[str, str]]
    """(kind, detail) by row of this reply. After kind `memory` the worker ends."""


class Replayed(_Message, tag=5, frozen=True):
    """The instance stands where its log ends."""

    observation: str
    """The last one; empty when the last step failed."""
    paid: float
    """Sum of the rewards."""


class HintDone(_Message, tag=6, frozen=True):
    """What `hint` gave."""

    text: str


class SolutionDone(_Message, tag=7, frozen=True):
    """What `solution` returned."""

    actions: list[str]


class Done(_Message, tag=8, frozen=True):
    """It is forgotten."""


class Failed(_Message, tag=9, frozen=True):
    """The operation gave no usable value. After kind `memory` the worker ends."""

    kind: str
    """The value of a `FaultKind`."""
    detail: str


Reply: TypeAlias = (
    Ready | Compiled | LoadDone | Rows | Replayed | HintDone | SolutionDone | Done | Failed
)

ANSWERS: Final[dict[type[Op], type[Reply]]] = {
    Compile: Compiled,
    Load: LoadDone,
    Resets: Rows,
    Steps: Rows,
    Replay: Replayed,
    Hint: HintDone,
    Solution: SolutionDone,
    Drop: Done,
    Unload: Done,
}
"""The reply that an operation has when it does not fail."""


# --- control channel: parent and zygote ---


class Spawn(msgspec.Struct, frozen=True, tag=1, array_like=True, forbid_unknown_fields=True):
    """Fork a worker. Two descriptors come with this message: its channel, and the progress file."""

    memory_mb: int
    slot: int
    """Which page of the progress file is the worker's."""


class Kill(msgspec.Struct, frozen=True, tag=2, array_like=True, forbid_unknown_fields=True):
    """Kill a worker and reap it."""

    pid: int


class Answer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The zygote's answer: a pid, or a wait status, or an error."""

    value: int
    error: str = ""


Control: TypeAlias = Spawn | Kill

_encoder: Final = msgspec.msgpack.Encoder()
encode: Final = _encoder.encode
decode_ops: Final = msgspec.msgpack.Decoder(list[Op]).decode
decode_reply: Final = msgspec.msgpack.Decoder(Reply).decode
decode_control: Final = msgspec.msgpack.Decoder(Control).decode
decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode


def append_frame(message: Reply | Sequence[Op], out: bytearray) -> None:
    """Put `message`, framed, at the end of `out`. `FrameError` when it is above the cap."""
    start = len(out)
    _encoder.encode_into(message, out, start + HEADER)
    size = len(out) - start - HEADER
    if size > MAX_FRAME:
        del out[start:]
        raise FrameError(f"a frame must have 1..{MAX_FRAME} bytes, this one has {size}")
    out[start : start + HEADER] = size.to_bytes(HEADER, "big")


def messages(ops: Sequence[Op]) -> bytearray:
    """`ops` as framed messages, as few as the cap of a frame allows."""
    framed = bytearray()
    if len(ops) == 1:
        append_frame(ops, framed)
        return framed
    start = weight = 0
    for position, op in enumerate(ops):
        own = weigh(op)
        weight += own
        if weight > MESSAGE_BYTES and position > start:
            append_frame(ops[start:position], framed)
            start, weight = position, own
    if start < len(ops):
        append_frame(ops[start:] if start else ops, framed)
    return framed


def weigh(op: Op) -> int:
    """At least the encoded size of `op`, without encoding it."""
    match op:
        case Steps():
            return _OP_BYTES + weight_of(op.actions)
        case Replay():
            return _OP_BYTES + weight_of(op.actions)
        case Resets():
            return _OP_BYTES + _ROW_BYTES * len(op.seeds)
        case Drop():
            return _OP_BYTES + _ROW_BYTES * len(op.instances)
        case Compile():
            return _OP_BYTES + 4 * len(op.source)
        case Load():
            return _OP_BYTES + 4 * len(op.entry) + len(op.kwargs) + len(op.code)
        case _:
            return _OP_BYTES


def weight_of(actions: Sequence[str]) -> int:
    """At least the encoded size of so many rows of steps."""
    return _ROW_BYTES * len(actions) + 4 * sum(map(len, actions))


def fits(actions: Sequence[str]) -> bool:
    """Whether actions fit into one operation."""
    return weight_of(actions) <= MESSAGE_BYTES


def slices(actions: Sequence[str]) -> list[slice]:
    """How many actions fit into one operation: consecutive slices, each below the cap of a frame."""
    if weight_of(actions) <= MESSAGE_BYTES:
        return [slice(0, len(actions))]
    found: list[slice] = []
    start = weight = 0
    for position, action in enumerate(actions):
        own = _ROW_BYTES + 4 * len(action)
        weight += own
        if weight > MESSAGE_BYTES and position > start:
            found.append(slice(start, position))
            start, weight = position, own
    found.append(slice(start, len(actions)))
    return found
