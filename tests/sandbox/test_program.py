from __future__ import annotations

import ast
import gc
import hashlib
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hidden_sources import HIDDEN
from program_sources import SHARED, env_source
from stream_sources import STREAMS
from unshared_sources import UNSHARED

from synthgym.sandbox import sharing
from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.program import Program
from synthgym.sandbox.runtime import ContractError, Runtime
from synthgym.sandbox.writing import SharedWriteError

REGISTRY = {
    path.parent.parent.name: path.read_text()
    for path in sorted((Path(__file__).parents[2] / "registry" / "envs").glob("*/v*/env.py"))
    if "ToolEnv" not in path.read_text()
}
SEEDS = (3, 3, 11, 2**63 - 1)
STEPS = 6


def program_of(source: str, runtime: Runtime | None = None, **kwargs: Any) -> Program:
    compiled = compile_source(source)
    assert compiled.violations == ()
    assert compiled.code is not None
    facts = sharing.analyse(ast.parse(source))
    code = sharing.attach(compiled.code, facts)
    return Program(runtime or Runtime(), code, kwargs)


def forced(source: str) -> Program:
    """A program that shares its module although uses of what it binds are harmful."""
    compiled = compile_source(source)
    assert compiled.code is not None
    facts = sharing.analyse(ast.parse(source))
    blind = msgspec.structs.replace(facts, blocked="", names={}, attributes={})
    return Program(Runtime(), sharing.attach(compiled.code, blind), {})


def actions_of(env: Any) -> list[str]:
    plan = env.solution() if hasattr(env, "solution") else []
    return [*plan[: STEPS // 2], *(str(turn) for turn in range(STEPS))]


def attempt(call: Any, *args: object) -> str:
    """What a call returned or raised, as text."""
    try:
        return repr(call(*args))
    except Exception as error:  # noqa: BLE001 - what a source raises is a result here
        return f"{type(error).__name__}: {error}"


def alone(source: str, seed: int) -> list[str]:
    """One episode in a worker, a namespace and modules that nothing else ever uses."""
    runtime = Runtime()
    compiled = compile_source(source)
    assert compiled.code is not None
    namespace = runtime.instantiate(compiled.code, seed)
    env = runtime.env_class(namespace)()
    runtime.reseed(namespace, seed)
    return [attempt(env.reset, seed), *(attempt(env.step, action) for action in actions_of(env))]


def interleaved(program: Program, seeds: tuple[int, ...]) -> list[list[str]]:
    """Episodes of one program, their steps dealt in an order that puts many others between any two."""
    episodes: list[tuple[Any, Any, list[str]]] = []
    logs: list[list[str]] = []
    for seed in seeds:
        env = program.make(seed)
        instance = program.running.instance
        logs.append([attempt(env.reset, seed)])
        episodes.append((env, instance, actions_of(env)))
    order = [number for number, (_, _, plan) in enumerate(episodes) for _ in plan]
    random.Random(5).shuffle(order)
    for number in order:
        env, program.running.instance, plan = episodes[number]
        logs[number].append(attempt(env.step, plan.pop(0)))
    return logs


def differing(source: str, program: Program) -> list[int]:
    """Numbers of the episodes that come out otherwise than alone, in two rounds."""
    expected = [alone(source, seed) for seed in SEEDS]
    found = [*interleaved(program, SEEDS), *interleaved(program, SEEDS)]
    return [number for number, log in enumerate(found) if log != expected[number % len(SEEDS)]]


@pytest.mark.parametrize("source", SHARED.values(), ids=SHARED)
def test_a_module_that_cannot_change_is_run_once(source: str) -> None:
    program = program_of(source)
    assert program.unshared == ""
    assert type(program.make(1)) is type(program.make(2))
    assert differing(source, program) == []


@pytest.mark.parametrize("source", (UNSHARED | HIDDEN).values(), ids=UNSHARED | HIDDEN)
def test_a_module_that_may_change_is_run_for_every_instance(source: str) -> None:
    program = program_of(source)
    assert program.unshared
    assert type(program.make(1)) is not type(program.make(2))
    assert differing(source, program) == []


@pytest.mark.parametrize("source", REGISTRY.values(), ids=REGISTRY)
def test_every_environment_of_the_registry_shares_its_module(source: str) -> None:
    program = program_of(source)
    assert program.unshared == ""
    assert differing(source, program) == []


@pytest.mark.parametrize(("source", "digests"), STREAMS.values(), ids=STREAMS)
def test_streams_are_what_they_were_when_every_instance_had_modules_of_its_own(
    source: str, digests: list[str]
) -> None:
    program = program_of(source)
    found = []
    for seed in (0, 7, 2**63 - 1):
        env = program.make(seed)
        shown = [env.reset(seed), *(env.step(str(turn)) for turn in range(6))]
        found.append(hashlib.sha256(repr(shown).encode()).hexdigest()[:16])
    assert found == digests
    assert differing(source, program) == []


LEAKS = [
    "a class level list that is appended to",
    "a constant changed by a function",
    "a shuffled constant",
    "rows of a constant by values",
    "an operator that hands out the list",
    "the memo of a deep copy",
]


@pytest.mark.parametrize("name", LEAKS)
def test_the_comparison_sees_a_leak_when_such_a_module_is_shared(name: str) -> None:
    if name in (
        "rows of a constant by values",
        "an operator that hands out the list",
        "the memo of a deep copy",
    ):
        with pytest.raises(SharedWriteError):
            differing(UNSHARED[name], forced(UNSHARED[name]))
    else:
        assert differing(UNSHARED[name], forced(UNSHARED[name])) != []


REFUSED = [
    "an item that is counted up",
    "an item of a class level table",
    "an attribute of the class through type",
    "an attribute of the class through setattr",
    "an attribute of the class through __class__",
    "an attribute of the class by its name",
    "an attribute of the class in a classmethod",
    "an attribute of a function",
    "a class in a variable",
    "a constant changed through an alias",
    "a list in a nested constant by an alias",
]


@pytest.mark.parametrize("name", [name for name in REFUSED if "nested" not in name])
def test_the_write_guard_refuses_a_write_to_what_is_shared(name: str) -> None:
    program = forced(UNSHARED[name])
    assert program.unshared == ""
    env = program.make(1)
    with pytest.raises(SharedWriteError, match="all instances of its source share"):
        env.reset(1)


def test_no_except_exception_hides_a_refused_write() -> None:
    reset = "try: type(self).n = 1\nexcept Exception: pass\nout = self.n"
    program = forced(env_source("", reset, "out = 1", members="n = 0"))
    env = program.make(1)
    with pytest.raises(SharedWriteError):
        env.reset(1)


def test_members_of_an_enum_cannot_be_written_to_but_other_objects_can() -> None:
    before = "from enum import Enum\nclass K(Enum):\n    A = 1\nclass Box: pass\n"
    reset, step = "self.box = Box()\nself.box.k = K.A\nout = 1", "k = K.A\nk.seen = 1\nout = 1"
    program = program_of(env_source(before, reset, step))
    env = program.make(1)
    assert env.reset(1) == ("1", {})
    with pytest.raises(SharedWriteError):
        env.step("")


def test_object_setattr_does_not_get_round_the_write_guard() -> None:
    before = "from enum import Enum\nclass K(Enum):\n    A = 1\n"
    program = forced(env_source(before, "object.__setattr__(K.A, 'seen', 1)\nout = 1", "out = 1"))
    env = program.make(1)
    with pytest.raises(SharedWriteError):
        env.reset(1)


def test_a_program_that_is_gone_protects_nothing_any_more() -> None:
    runtime = Runtime()
    source = env_source("TABLE = [1]", "out = TABLE[0]", "out = 1")
    assert program_of(source, runtime).unshared == ""
    kept = program_of(source, runtime)
    gc.collect()
    held = runtime.guards.writing._shared
    assert {id(kept.env_class)} <= set(held)
    assert sum(isinstance(ob, type) for ob in held.values()) == 1
    del kept
    gc.collect()
    assert held == {}
    fresh: list[int] = []
    assert runtime.guards.write(fresh) is fresh


def test_a_generator_that_closes_another_object_does_not_draw_from_who_runs_when_it_is_dropped() -> (
    None
):
    source = HIDDEN["a generator that closes what it delegates to"]
    program = program_of(source)
    dropped = program.make(1)
    dropped.reset(1)
    env = program.make(2)
    log = [attempt(env.reset, 2)]
    del dropped
    gc.collect()
    log += [attempt(env.step, str(turn)) for turn in range(STEPS)]
    assert log == alone(source, 2)


def test_without_facts_every_instance_has_modules_of_its_own() -> None:
    source = STREAMS["module functions"][0]
    compiled = compile_source(source)
    assert compiled.code is not None
    consts = tuple(item for item in compiled.code.co_consts if not _is_attached(item))
    program = Program(Runtime(), compiled.code.replace(co_consts=consts), {})
    assert program.unshared == "nothing is known about the source"
    first, second = program.make(1), program.make(1)
    assert first.reset(1) == second.reset(1)  # nobody said which of the two runs


def _is_attached(constant: object) -> bool:
    return isinstance(constant, tuple) and str(constant[:1]).startswith("('synthgym.")


def test_facts_survive_with_the_code() -> None:
    compiled = compile_source(SHARED["nested tables"])
    assert compiled.code is not None
    facts = sharing.analyse(ast.parse(SHARED["nested tables"]))
    assert sharing.facts_of(sharing.attach(compiled.code, facts)) == facts
    bare = compile("x = 1", "<env>", "exec")
    assert sharing.facts_of(bare) is None


def test_a_source_cannot_attach_facts_by_a_constant() -> None:
    forged = "x = ('synthgym.sandbox.sharing 1', ('', False, False, False), (), ())\n"
    program = program_of(forged + UNSHARED["a global counter"])
    assert program.unshared == "a global statement"


def test_every_instance_gets_arguments_of_its_own() -> None:
    source = (
        "class AEnv:\n    max_turns = 1\n    def __init__(self, log): self.log = log\n"
        "    def reset(self, seed): self.log.append(seed); return str(self.log), {}\n"
    )
    program = program_of(source, log=[0])
    assert program.make(1).reset(1) == ("[0, 1]", {})
    assert program.make(2).reset(2) == ("[0, 2]", {})


def test_what_the_module_or_the_class_raises_passes_through() -> None:
    with pytest.raises(KeyError, match="oops"):
        program_of("raise KeyError('oops')")
    with pytest.raises(ContractError, match="got 0"):
        program_of("x = 1")
    with pytest.raises(ZeroDivisionError):
        program_of("class AEnv:\n    def __init__(self): 1 / 0").make(1)


def test_a_class_that_only_some_seeds_define_is_a_contract_error_for_those() -> None:
    source = (
        "import random\nclass AEnv: pass\n"
        "if random.random() < 0.5:\n    class BEnv: pass\nelse:\n    other = 1\n"
    )
    seeds = [seed for seed in range(20) if random.Random(seed).random() < 0.5]
    assert 0 not in seeds
    program = program_of(source)
    with pytest.raises(ContractError, match="got 2"):
        program.make(seeds[0])
    program.make(0)


def test_a_copied_function_of_random_draws_from_the_instance_that_runs() -> None:
    source = env_source(
        "import random, copy",
        "self.roll = random.choice\nself.twin = copy.deepcopy(self.roll)\nout = 1",
        "out = [self.roll('abcdef'), self.twin('abcdef')]",
    )
    program = program_of(source)
    assert program.unshared == ""
    assert differing(source, program) == []
