"""Inside a worker process: operations in, replies out.

Everything here runs behind the lock-down and beside generated code, so nothing that leaves is
trusted by the parent. No time is kept here either: deadlines are the parent's, which kills. What
it needs to know, which row of which batch is running, is a counter in a page that both share; the
worker counts up before each row.

Every reset makes the instance anew, namespace and all. Nothing can leak from one episode to the
next, and a replay (reset and the recorded actions, in another process) starts from exactly the same
state.
"""

from __future__ import annotations

import marshal
import os
import socket
from collections.abc import Iterator
from types import CodeType
from typing import Any, Final, assert_never

import msgspec

from synthgym.contract import MAX_ACTION_CHARS
from synthgym.sandbox import protocol, values
from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.isolation import Confinement, lock_down
from synthgym.sandbox.offers import (
    DOCSTRING_CHARS,
    Refused,
    hint_of,
    offer_of,
)
from synthgym.sandbox.program import Program
from synthgym.sandbox.protocol import MAX_DETAIL, MEMORY_EXIT, Failed, Op, Reply
from synthgym.sandbox.results import FaultKind
from synthgym.sandbox.runtime import ContractError, Runtime
from synthgym.sandbox.streams import Instance, Running

_CHUNK_CHARS: Final = 48_000
"""Text at which rows are handed out: four bytes a character and one more text of the largest size
still fit into a frame."""
_ROOM_BYTES: Final = 1 << 15
"""How much is read at once. Resident in every worker, so no larger than most messages."""
_SEND_BYTES: Final = 1 << 16
"""Replies at which the parent gets what there is."""
_MAX_VIOLATIONS: Final = 200
_UNUSUAL: Final[tuple[object, ...]] = (None,) * 5
"""Stands for what a step returned when that is no tuple of five."""
_NOTHING: Final[values.StepValues] = ("", 0.0, False, False, "")
"""The row of an instance whose episode has ended earlier in the batch."""


class _Chunk:
    """Rows on their way out, as columns."""

    __slots__ = ("chars", "failures", "flags", "infos", "observations", "rewards")

    def __init__(self) -> None:
        self.chars = 0
        self.observations: list[str] = []
        self.rewards: list[float] = []
        self.flags = bytearray()
        self.infos: dict[int, str] = {}
        self.failures: dict[int, tuple[str, str]] = {}

    def add(self, row: values.StepValues) -> None:
        observation, reward, terminated, truncated, info = row
        if info:
            self.infos[len(self.observations)] = info
            self.chars += len(info)
        self.observations.append(observation)
        self.rewards.append(reward)
        self.flags.append(
            (protocol.TERMINATED if terminated else 0) | (protocol.TRUNCATED if truncated else 0)
        )
        self.chars += len(observation)

    def fail(self, kind: FaultKind, detail: str) -> None:
        self.failures[len(self.observations)] = (kind, detail)
        self.chars += len(detail)
        self.add(_NOTHING)

    def reply(self, number: int) -> protocol.Rows:
        return protocol.Rows(
            number, self.observations, self.rewards, bytes(self.flags), self.infos, self.failures
        )


class _Held:
    """A program and the limit on what it may show."""

    __slots__ = ("limit", "program")

    def __init__(self, program: Program, limit: int) -> None:
        self.program = program
        self.limit = limit


class Interpreter:
    """Carries out operations.

    Whatever generated code does, the outcome is a reply or the end of the process. `progress` is the
    counter of the rows that were begun, one element of 64 bits.
    """

    def __init__(self, runtime: Runtime, progress: memoryview) -> None:
        self._runtime = runtime
        self._progress = progress
        self._row = 0
        self._compiled: CodeType | None = None
        self._programs: dict[int, _Held] = {}
        self._instances: dict[int, tuple[Any, Instance]] = {}
        """Environments, each with its streams and clock."""
        self._owners: dict[int, int] = {}
        """Program by instance."""
        self._replayed = 0.0
        """Rewards of the replay that is under way."""
        self.spent = False
        """Whether the memory quota was reached: this process must end."""

    def answers(self, op: Op) -> Iterator[Reply]:
        """The replies to `op`: one, or for a batch as many as its rows need."""
        if type(op) is protocol.Steps:
            yield from self._steps(op)
            return
        if type(op) is protocol.Resets:
            yield from self._resets(op)
            return
        try:
            yield self._run(op)
        except BaseException as error:
            yield Failed(op.id, *self._failure(error))

    def _run(self, op: Op) -> Reply:
        match op:
            case protocol.Replay():
                end = self._row + len(op.actions) + (not op.resumed)
                try:
                    return self._replay(op)
                finally:
                    self._row = end  # the parent counts the rows of one that failed as well
            case protocol.Hint():
                held = self._start(op.program)
                env = self._fresh(held, op.seed)
                return protocol.HintDone(
                    op.id, values.text(hint_of(env, op.level), "hint", held.limit)
                )
            case protocol.Solution():
                env = self._fresh(self._start(op.program), op.seed)
                actions = values.actions(env.solution(), MAX_ACTION_CHARS)
                return protocol.SolutionDone(op.id, actions)
            case protocol.Drop():
                self._forget(op.instances)
                return protocol.Done(op.id)
            case protocol.Compile():
                return self._compile(op)
            case protocol.Load():
                return self._load(op)
            case protocol.Unload():
                self._programs.pop(op.program, None)
                owned = [i for i, program in self._owners.items() if program == op.program]
                self._forget(owned)
                return protocol.Done(op.id)
            case protocol.Steps() | protocol.Resets():
                raise TypeError("a batch has more than one reply")
        assert_never(op)

    def _steps(self, op: protocol.Steps) -> Iterator[Reply]:
        chunk = _Chunk()
        over: set[int] = set()  # of these no more is to be said, though they may come again
        held = self._programs.get(op.program)
        running = held.program.running if held is not None else Running(Instance(0))
        limit = held.limit if held is not None else 0
        progress, instances, row = self._progress, self._instances, self._row
        for instance, action in zip(op.instances, op.actions, strict=True):
            row += 1
            progress[0] = row
            if over and instance in over:
                chunk.add(_NOTHING)
                continue
            try:
                env, running.instance = instances[instance]
                returned = env.step(action)
                observation, reward, terminated, truncated, info = (
                    returned if type(returned) is tuple and len(returned) == 5 else _UNUSUAL
                )
                # What nearly every step returns; these tests are those of `values`.
                if (
                    type(observation) is str
                    and observation.isascii()
                    and len(observation) <= limit
                    and len(observation) < _CHUNK_CHARS
                    and type(reward) is float
                    and reward - reward == 0.0
                    and type(terminated) is bool
                    and type(truncated) is bool
                    and type(info) is dict
                    and not info
                ):
                    chunk.observations.append(observation)
                    chunk.rewards.append(reward)
                    chunk.flags.append(terminated | truncated << 1)
                    chunk.chars += len(observation)
                else:
                    chunk.add(values.step_values(returned, limit))
                if chunk.flags[-1]:
                    over.add(instance)
            except BaseException as error:
                over.add(instance)
                known = instance in instances
                cause = error if known else Refused("the instance was not reset")
                chunk.fail(*self._failure(cause))
                if self.spent:
                    break
            if chunk.chars > _CHUNK_CHARS:
                yield chunk.reply(op.id)
                chunk = _Chunk()
        self._row = row
        if chunk.observations:
            yield chunk.reply(op.id)

    def _resets(self, op: protocol.Resets) -> Iterator[Reply]:
        chunk = _Chunk()
        for instance, seed in zip(op.instances, op.seeds, strict=True):
            try:
                observation, info = self._reset(self._start(op.program), op, instance, seed)
                chunk.add((observation, 0.0, False, False, info))
            except BaseException as error:
                chunk.fail(*self._failure(error))
                if self.spent:
                    break
            if chunk.chars > _CHUNK_CHARS:
                yield chunk.reply(op.id)
                chunk = _Chunk()
        if chunk.observations:
            yield chunk.reply(op.id)

    def _failure(self, error: BaseException) -> tuple[FaultKind, str]:
        if issubclass(
            type(error), MemoryError
        ):  # never isinstance: the object may lie about its class
            self._instances.clear()
            self.spent = True
            return FaultKind.MEMORY, "the memory quota is used up"
        if type(error) is values.BadValue:
            return FaultKind.BAD_VALUE, str(error)[:MAX_DETAIL]
        if type(error) is Refused or type(error) is ContractError:
            return FaultKind.REFUSED, str(error)[:MAX_DETAIL]
        return FaultKind.ERROR, values.error_text(error)

    def _start(self, program: int) -> _Held:
        """Count one row and return the program that it is for."""
        self._row += 1
        self._progress[0] = self._row
        held = self._programs.get(program)
        if held is None:
            raise Refused("the source is not loaded")
        return held

    def _fresh(self, held: _Held, seed: int) -> Any:
        env = held.program.make(seed)
        env.reset(seed)
        return env

    def _compile(self, op: protocol.Compile) -> Reply:
        self._row += 1
        self._progress[0] = self._row
        self._compiled = None
        found = compile_source(op.source, base=op.base)
        self._compiled = found.code
        code = b"" if found.code is None else marshal.dumps(found.code)
        return protocol.Compiled(
            op.id,
            code if len(code) <= protocol.MAX_CODE else b"",
            list(found.requires),
            values.utf8(found.docstring[:DOCSTRING_CHARS]),
            [
                (item.line, values.utf8(item.message[:MAX_DETAIL]))
                for item in found.violations[:_MAX_VIOLATIONS]
            ],
        )

    def _load(self, op: protocol.Load) -> Reply:
        self._row += 1
        self._progress[0] = self._row
        code = marshal.loads(op.code) if op.code else self._compiled
        self._compiled = None
        if type(code) is not CodeType:
            raise Refused("the source does not compile")
        kwargs = msgspec.json.decode(op.kwargs, type=dict[str, Any])
        program = Program(self._runtime, code, kwargs, op.base)
        offer = offer_of(program, op.entry, op.base)
        self._programs[op.program] = _Held(program, op.observation_chars)
        return protocol.LoadDone(op.id, *offer)

    def _reset(
        self, held: _Held, op: protocol.Resets | protocol.Replay, instance: int, seed: int
    ) -> tuple[str, str]:
        self._instances.pop(instance, None)  # a reset that fails leaves no instance to step
        env = held.program.make(seed)
        found = values.reset_values(env.reset(seed), held.limit)
        self._instances[instance] = env, held.program.running.instance
        self._owners[instance] = op.program
        return found

    def _replay(self, op: protocol.Replay) -> Reply:
        """Reset, and step through the log. A step that fails is part of the log, a reset is not."""
        observation = ""
        if not op.resumed:
            held = self._start(op.program)
            observation, _ = self._reset(held, op, op.instance, op.seed)
            self._replayed = 0.0
        else:
            held = self._programs[op.program]
        env, held.program.running.instance = self._instances[op.instance]
        for action in op.actions:
            self._row += 1
            self._progress[0] = self._row
            try:
                observation, reward, *_ = values.step_values(env.step(action), held.limit)
                self._replayed += reward
            except MemoryError:
                raise
            except BaseException:
                observation = ""
        return protocol.Replayed(op.id, observation, self._replayed)

    def _forget(self, instances: list[int]) -> None:
        for instance in instances:
            self._instances.pop(instance, None)
            self._owners.pop(instance, None)


def serve(
    channel: socket.socket, confinement: Confinement, runtime: Runtime, progress: memoryview
) -> None:
    """Locks this process down for good, then answers messages from `channel` until it closes."""
    layers = lock_down(channel.fileno(), confinement)
    out = bytearray()
    ready = protocol.Ready(0, [(layer.name, layer.ok, layer.detail) for layer in layers])
    protocol.append_frame(ready, out)
    interpreter = Interpreter(runtime, progress)
    decoder = protocol.FrameDecoder()
    room = memoryview(bytearray(_ROOM_BYTES))
    try:
        while True:
            channel.sendall(out)
            out.clear()
            size = channel.recv_into(room)
            if not size:
                return
            for body in decoder.feed(room[:size]):
                for op in protocol.decode_ops(body):
                    for reply in interpreter.answers(op):
                        protocol.append_frame(reply, out)
                        # Checked code leaves before the source runs for the first time.
                        if len(out) > _SEND_BYTES or type(reply) is protocol.Compiled:
                            channel.sendall(out)
                            out.clear()
                    if interpreter.spent:
                        channel.sendall(out)
                        os._exit(MEMORY_EXIT)
    except MemoryError:
        os._exit(MEMORY_EXIT)
