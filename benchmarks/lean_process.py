"""A whole validation in one bare process: the fair baseline of validation.py.

It is started like the zygote, without `site`, gymnasium and numpy. It reads one job from its
channel, locks itself down as a worker does, checks, compiles and plays the source twice over, and
writes the verdict. Nothing is forked and nothing is used again.
"""

from __future__ import annotations

import os
import socket
from typing import Any, Final, NoReturn

import msgspec

from synthgym.sandbox import values
from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.isolation import Confinement, lock_down, report
from synthgym.sandbox.program import Program
from synthgym.sandbox.runtime import Runtime

MEMORY_MB: Final = 256
CHARS: Final = 65_536


class Job(msgspec.Struct):
    """What to validate and how."""

    source: str
    seeds: list[int]
    actions: list[str]
    """Played on every seed; an episode that ends goes on with a reset to `seed + 100`."""


class Verdict(msgspec.Struct):
    """What came out."""

    level: str
    deterministic: bool
    steps: int


def main(descriptor: int, parent: int) -> NoReturn:
    """Validate one source and exit."""
    runtime = Runtime()
    channel = socket.socket(fileno=descriptor)
    text = b""
    while part := channel.recv(1 << 16):
        text += part
    job = msgspec.json.decode(text, type=Job)
    level = report(lock_down(descriptor, Confinement(MEMORY_MB, parent))).level
    compiled = compile_source(job.source)
    assert compiled.code is not None, compiled.violations
    program = Program(runtime, compiled.code, {})
    first, second = trace(program, job), trace(program, job)
    steps = len(job.seeds) * len(job.actions)
    channel.sendall(msgspec.json.encode(Verdict(level, first == second, steps)))
    os._exit(0)


def trace(program: Program, job: Job) -> list[Any]:
    """Everything that the source answers, checked as a worker checks it."""
    seen: list[Any] = []
    for seed in job.seeds:
        env = program.make(seed)
        seen.append(values.reset_values(env.reset(seed), CHARS))
        for action in job.actions:
            result = values.step_values(env.step(action), CHARS)
            seen.append(result)
            if result[2] or result[3]:
                env = program.make(seed + 100)
                seen.append(values.reset_values(env.reset(seed + 100), CHARS))
    return seen
