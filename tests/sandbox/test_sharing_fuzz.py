from __future__ import annotations

import ast
import random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sharing_modules import modules

from synthgym.sandbox import sharing
from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.program import Program
from synthgym.sandbox.runtime import Runtime
from synthgym.sandbox.writing import SharedWriteError

RUNTIME = Runtime()
STEPS = 3
SEEDS = (1, 2, 1)


def programs(source: str, *, blind: bool) -> tuple[Program, Program] | None:
    """A program that shares its module, and one whose instances have everything for themselves; None if it cannot."""
    compiled = compile_source(source)
    if compiled.code is None:
        return None
    facts = sharing.analyse(ast.parse(source))
    if blind:
        facts = msgspec.structs.replace(facts, blocked="", names={}, attributes={})
    apart = msgspec.structs.replace(facts, finalizers=True)
    try:
        together = Program(RUNTIME, sharing.attach(compiled.code, facts), {})
        if together.unshared:
            return None
        return together, Program(RUNTIME, sharing.attach(compiled.code, apart), {})
    except Exception:  # noqa: BLE001 - the module itself fails, whoever runs it
        return None


def answer(call: Any, argument: object) -> str:
    try:
        return str(call(argument)[0])
    except Exception as error:  # noqa: BLE001 - what a source raises is a result here
        return f"{type(error).__name__}: {error}"


def episode(program: Program, seed: int) -> list[str]:
    """One episode from its beginning to its end."""
    env = program.make(seed)
    return [answer(env.reset, seed), *(answer(env.step, str(turn)) for turn in range(STEPS))]


def woven(program: Program, order: list[int]) -> list[list[str]]:
    """One episode for each seed, in turns: `order` says whose step is next."""
    envs = []
    for seed in SEEDS:
        env = program.make(seed)
        envs.append((env, program.running.instance, [answer(env.reset, seed)]))
    for number in order:
        env, program.running.instance, log = envs[number]
        if len(log) <= STEPS:
            log.append(answer(env.step, str(len(log) - 1)))
    return [log for _, _, log in envs]


def leaks(source: str, order: list[int], *, blind: bool = False) -> bool | None:
    """Whether episodes of `source` influence each other; None for a module that is not run once for all."""
    pair = programs(source, blind=blind)
    if pair is None:
        return None
    together, apart = pair
    expected = {seed: episode(apart, seed) for seed in set(SEEDS)}
    try:
        logs = [*woven(together, order), *(episode(together, seed) for seed in SEEDS)]
    except SharedWriteError:
        return False  # refused loudly: nothing was written
    return any(
        log != expected[seed][: len(log)] for log, seed in zip(logs, (*SEEDS, *SEEDS), strict=True)
    )


ORDERS = st.lists(st.integers(0, len(SEEDS) - 1), min_size=STEPS, max_size=STEPS * len(SEEDS))


@settings(
    max_examples=350,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(source=modules(), order=ORDERS)
def test_episodes_that_share_a_random_module_do_not_influence_each_other(
    source: str, order: list[int]
) -> None:
    assert not leaks(source, order), source


def test_the_fuzzer_shares_modules_and_sees_a_leak_where_the_analysis_is_blind() -> None:
    shared: list[str] = []
    leaking: list[str] = []

    @settings(
        max_examples=120,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(source=modules(), seed=st.integers(0, 99))
    def look(source: str, seed: int) -> None:
        order = random.Random(seed).choices(range(len(SEEDS)), k=6)
        if leaks(source, order) is not None:
            shared.append(source)
        if leaks(source, order, blind=True):
            leaking.append(source)

    look()
    assert len(shared) >= 10
    assert len(leaking) >= 3
