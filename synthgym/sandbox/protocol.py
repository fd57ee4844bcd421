"""The wire between a process and its sandbox: typed messages, framed by length, never unpickled.

Two channels use it, both Unix stream sockets. The control channel joins the parent and the zygote,
one request and one answer at a time. A worker channel joins the parent and one worker: a message is
a list of operations, and the worker answers every operation with a frame of its own, in order, so
that a deadline can name the operation that hangs.

A frame is four bytes of length (big endian) and that many bytes of MessagePack. Both sides refuse a
frame above `MAX_FRAME` before they allocate anything for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

MAX_FRAME: Final = 1 << 20
"""Bytes of one frame, without its length."""
MAX_DETAIL: Final = 500
"""Characters of the text of a fault."""
MEMORY_EXIT: Final = 83
"""Exit status of a worker that could not even say that its memory is used up."""
RECV_BYTES: Final = 1 << 16
"""How much is read from a socket at once; a peer cannot make the reader hold more than this beyond
one frame."""
_HEADER: Final = 4
_MESSAGE_BYTES: Final = 1 << 19
"""Weight at which operations go into another message, well under the cap of a frame."""
_OP_BYTES: Final = 64
"""Encoded size of an operation without its texts, and more."""


class FrameError(ValueError):
    """The bytes are not frames: the channel cannot be used any more."""


class FrameDecoder:
    """Takes bytes as they arrive and gives back whole frames; holds at most one unfinished frame."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Every frame that `data` completes, oldest first.

        `FrameError` on a length of zero or above the cap.
        """
        buffer = self._buffer + data if self._buffer else data
        frames: list[bytes] = []
        start, end = 0, len(buffer)
        while end - start >= _HEADER:
            body = start + _HEADER
            size = int.from_bytes(buffer[start:body], "big")
            if not 0 < size <= MAX_FRAME:
                raise FrameError(f"a frame must have 1..{MAX_FRAME} bytes, its header says {size}")
            if end - body < size:
                break
            start = body + size
            frames.append(buffer[body:start])
        self._buffer = buffer[start:]
        return frames


def frame(body: bytes) -> bytes:
    """`body` behind its length. `FrameError` when it is empty or above the cap."""
    if not 0 < len(body) <= MAX_FRAME:
        raise FrameError(f"a frame must have 1..{MAX_FRAME} bytes, this one has {len(body)}")
    return len(body).to_bytes(_HEADER, "big") + body


class _Message(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One message: an array that starts with its tag, then its fields in order."""

    id: int
    """Number of the operation; the reply carries it back."""


# --- operations: parent to worker ---


class Load(_Message, tag=1, frozen=True):
    """Check, compile and run the source; must come first."""

    source: str
    entry: str
    """Name that the class must have; empty for whichever it is."""
    kwargs: bytes
    """JSON object of keyword arguments for the class."""
    observation_chars: int


class Reset(_Message, tag=2, frozen=True):
    """Make the instance anew and reset it."""

    instance: int
    seed: int


class Step(_Message, tag=3, frozen=True):
    """Step the instance."""

    instance: int
    action: str


class Hint(_Message, tag=4, frozen=True):
    """The hint of an instance of its own, reset with `seed`."""

    seed: int
    level: int


class Solution(_Message, tag=5, frozen=True):
    """The witness of an instance of its own, reset with `seed`."""

    seed: int


class Drop(_Message, tag=6, frozen=True):
    """Forget the instance."""

    instance: int


Op: TypeAlias = Load | Reset | Step | Hint | Solution | Drop


# --- replies: worker to parent ---


class Ready(_Message, tag=1, frozen=True):
    """The worker is locked down. Comes first and unasked, with id 0."""

    layers: list[tuple[str, bool, str]]
    """(name, whether it holds, detail) of each layer of protection."""


class LoadDone(_Message, tag=2, frozen=True):
    """What the source holds."""

    entry: str
    max_turns: int
    docstring: str
    requires: list[str]
    has_hint: bool
    has_solution: bool


class ResetDone(_Message, tag=3, frozen=True):
    """What `reset` returned. `info` is the JSON of an object, empty for an empty object."""

    observation: str
    info: str


class StepDone(_Message, tag=4, frozen=True):
    """What `step` returned. `info` as in `ResetDone`."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: str


class HintDone(_Message, tag=5, frozen=True):
    """What `hint` gave."""

    text: str


class SolutionDone(_Message, tag=6, frozen=True):
    """What `solution` returned."""

    actions: list[str]


class DropDone(_Message, tag=7, frozen=True):
    """The instance is forgotten."""


class Failed(_Message, tag=8, frozen=True):
    """The operation gave no usable value. After kind `memory` the worker ends."""

    kind: str
    """The value of a `FaultKind`."""
    detail: str


Reply: TypeAlias = (
    Ready | LoadDone | ResetDone | StepDone | HintDone | SolutionDone | DropDone | Failed
)

ANSWERS: Final[dict[type[Op], type[Reply]]] = {
    Load: LoadDone,
    Reset: ResetDone,
    Step: StepDone,
    Hint: HintDone,
    Solution: SolutionDone,
    Drop: DropDone,
}
"""The reply that an operation has when it does not fail."""


# --- control channel: parent and zygote ---


class Spawn(msgspec.Struct, frozen=True, tag=1, array_like=True, forbid_unknown_fields=True):
    """Fork a worker on the descriptor that comes with this message."""

    memory_mb: int


class Kill(msgspec.Struct, frozen=True, tag=2, array_like=True, forbid_unknown_fields=True):
    """Kill a worker and reap it."""

    pid: int


class Answer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The zygote's answer: a pid, or a wait status, or an error."""

    value: int
    error: str = ""


Control: TypeAlias = Spawn | Kill

encode: Final = msgspec.msgpack.Encoder().encode
decode_ops: Final = msgspec.msgpack.Decoder(list[Op]).decode
decode_reply: Final = msgspec.msgpack.Decoder(Reply).decode
decode_control: Final = msgspec.msgpack.Decoder(Control).decode
decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode


def messages(ops: Sequence[Op]) -> bytes:
    """`ops` as framed messages, as few as the cap of a frame allows."""
    framed: list[bytes] = []
    start = weight = 0
    for position, op in enumerate(ops):
        weight += _weight(op)
        if weight > _MESSAGE_BYTES and position > start:
            framed.append(frame(encode(ops[start:position])))
            start, weight = position, _weight(op)
    if start < len(ops):
        framed.append(frame(encode(ops[start:])))
    return b"".join(framed)


def _weight(op: Op) -> int:
    """At least the encoded size of `op`, without encoding it."""
    match op:
        case Step():
            return _OP_BYTES + 4 * len(op.action)
        case Load():
            return _OP_BYTES + 4 * (len(op.source) + len(op.entry)) + len(op.kwargs)
        case _:
            return _OP_BYTES
