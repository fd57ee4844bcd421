"""Inside a worker process: one source, many instances of it, operations in, replies out.

Everything here runs behind the lock-down and beside generated code, so nothing that leaves is
trusted by the parent. No time is kept here either: deadlines are the parent's, which kills.

Every reset makes the instance anew, namespace and all. Nothing can leak from one episode to the
next, and a replay (reset and the recorded actions, in another process) starts from exactly the same
state.
"""

from __future__ import annotations

import os
import socket
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, assert_never

import msgspec

from synthgym.contract import MAX_ACTION_CHARS, MAX_TURNS, MIN_TURNS
from synthgym.sandbox import values
from synthgym.sandbox.compile import Violation, compile_source
from synthgym.sandbox.isolation import Confinement, lock_down
from synthgym.sandbox.protocol import (
    MAX_DETAIL,
    MEMORY_EXIT,
    RECV_BYTES,
    Drop,
    DropDone,
    Failed,
    FrameDecoder,
    Hint,
    HintDone,
    Load,
    LoadDone,
    Op,
    Ready,
    Reply,
    Reset,
    ResetDone,
    Solution,
    SolutionDone,
    Step,
    StepDone,
    decode_ops,
    encode,
    frame,
)
from synthgym.sandbox.results import FaultKind
from synthgym.sandbox.runtime import ContractError, Runtime

_VARARGS: Final = 0x04
"""`co_flags` of a function that takes `*args` (inspect.CO_VARARGS, without importing inspect)."""


class _Refused(Exception):
    """The source is not run, or does not hold what the contract asks for."""


class _Loaded:
    """The compiled source and what is needed to make instances of it."""

    __slots__ = ("_code", "_kwargs", "_runtime", "limit")

    def __init__(self, runtime: Runtime, code: CodeType, op: Load) -> None:
        self._runtime = runtime
        self._code = code
        self._kwargs: dict[str, Any] = msgspec.json.decode(op.kwargs, type=dict[str, Any])
        self.limit = op.observation_chars

    def env_class(self) -> type:
        """Return the class, from a namespace of its own."""
        return self._runtime.env_class(self._runtime.instantiate(self._code, 0))

    def reset(self, seed: int) -> tuple[Any, object]:
        """Return a new instance and what its `reset` returned."""
        namespace = self._runtime.instantiate(self._code, seed)
        env = self._runtime.env_class(namespace)(**self._kwargs)
        self._runtime.reseed(namespace, seed)
        return env, env.reset(seed)


class Interpreter:
    """Carries out operations.

    Whatever generated code does, the outcome is a reply or the end of the process.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loaded: _Loaded | None = None
        self._instances: dict[int, Any] = {}

    def answer(self, op: Op) -> Reply:
        """Return the reply to `op`. A reply of kind `memory` means that this process must end."""
        try:
            return self._run(op)
        except MemoryError:
            self._instances.clear()
            return Failed(op.id, FaultKind.MEMORY, "the memory quota is used up")
        except values.BadValue as error:
            return Failed(op.id, FaultKind.BAD_VALUE, str(error)[:MAX_DETAIL])
        except (_Refused, ContractError) as error:
            return Failed(op.id, FaultKind.REFUSED, str(error)[:MAX_DETAIL])
        except BaseException as error:
            return Failed(op.id, FaultKind.ERROR, values.error_text(error))

    def _run(self, op: Op) -> Reply:
        match op:
            case Step():
                return self._step(op)
            case Reset():
                return self._reset(op)
            case Hint():
                env, _ = self._source().reset(op.seed)
                text = values.text(_hint(env, op.level), "hint", self._source().limit)
                return HintDone(op.id, text)
            case Solution():
                env, _ = self._source().reset(op.seed)
                return SolutionDone(op.id, values.actions(env.solution(), MAX_ACTION_CHARS))
            case Drop():
                self._instances.pop(op.instance, None)
                return DropDone(op.id)
            case Load():
                return self._load(op)
        assert_never(op)

    def _source(self) -> _Loaded:
        if self._loaded is None:
            raise _Refused("no source is loaded")
        return self._loaded

    def _load(self, op: Load) -> LoadDone:
        compiled = compile_source(op.source)
        if compiled.code is None:
            raise _Refused(_first_violations(compiled.violations))
        loaded = _Loaded(self._runtime, compiled.code, op)
        found = loaded.env_class()
        _check_class(found, op.entry)
        self._loaded = loaded
        return LoadDone(
            op.id,
            entry=found.__name__,
            max_turns=found.max_turns,  # type: ignore[attr-defined]  # checked just above
            docstring=compiled.docstring or _docstring(found),
            requires=list(compiled.requires),
            has_hint=_has_hint(found),
            has_solution=callable(getattr(found, "solution", None)),
        )

    def _reset(self, op: Reset) -> ResetDone:
        self._instances.pop(op.instance, None)  # a reset that fails leaves no instance to step
        source = self._source()
        env, returned = source.reset(op.seed)
        reply = ResetDone(op.id, *values.reset_values(returned, source.limit))
        self._instances[op.instance] = env
        return reply

    def _step(self, op: Step) -> StepDone:
        env = self._instances.get(op.instance)
        if env is None:
            raise _Refused("the instance was not reset")
        returned = env.step(op.action)
        return StepDone(op.id, *values.step_values(returned, self._source().limit))


def serve(channel: socket.socket, confinement: Confinement, runtime: Runtime) -> None:
    """Locks this process down for good, then answers messages from `channel` until it closes."""
    layers = lock_down(channel.fileno(), confinement)
    channel.sendall(
        frame(encode(Ready(0, [(layer.name, layer.ok, layer.detail) for layer in layers])))
    )
    interpreter = Interpreter(runtime)
    decoder = FrameDecoder()
    try:
        while data := channel.recv(RECV_BYTES):
            for body in decoder.feed(data):
                for op in decode_ops(body):
                    reply = interpreter.answer(op)
                    channel.sendall(frame(encode(reply)))
                    if type(reply) is Failed and reply.kind == FaultKind.MEMORY:
                        os._exit(MEMORY_EXIT)
    except MemoryError:
        os._exit(MEMORY_EXIT)


def _check_class(found: type, entry: str) -> None:
    """`_Refused` when the class is not what the record or the contract says."""
    if entry and found.__name__ != entry:
        raise _Refused(f"the record names the class {entry!r}, the source holds {found.__name__!r}")
    for method in ("reset", "step"):
        if not callable(getattr(found, method, None)):
            raise _Refused(f"class {found.__name__} needs a method {method}()")
    turns = getattr(found, "max_turns", None)
    if type(turns) is not int or not MIN_TURNS <= turns <= MAX_TURNS:
        got = turns if type(turns) is int and abs(turns) < 1 << 63 else values.type_name(turns)
        raise _Refused(
            f"class {found.__name__} needs a class attribute max_turns: "
            f"an int in {MIN_TURNS}..{MAX_TURNS}, got {got}"
        )


def _first_violations(violations: tuple[Violation, ...]) -> str:
    lines = "; ".join(f"line {item.line}: {item.message}" for item in violations[:5])
    return values.utf8(lines[:MAX_DETAIL]) or "the source does not compile"


def _docstring(found: type) -> str:
    text = found.__doc__
    return values.utf8(text) if type(text) is str else ""


def _has_hint(found: type) -> bool:
    hint = getattr(found, "hint", None)
    return bool(hint.strip()) if type(hint) is str else callable(hint)


def _hint(env: Any, level: int) -> object:
    """Return what the hint of `env` gives.

    An attribute and a method without arguments serve every level.
    """
    hint = getattr(env, "hint", None)
    if type(hint) is str:
        return hint
    if not callable(hint):
        raise values.BadValue("the class has no hint")
    function = hint.__func__ if type(hint) is MethodType else hint
    if type(function) is not FunctionType:
        return hint(level)
    code = function.__code__
    if code.co_argcount > (1 if type(hint) is MethodType else 0) or code.co_flags & _VARARGS:
        return hint(level)
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return hint(level=level) if "level" in keywords else hint()
