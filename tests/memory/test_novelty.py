from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import ConfigError, EnvNotFoundError, InvalidIdError
from synthgym.memory import (
    Description,
    HashEmbedder,
    NoveltyMemory,
    NoveltyReason,
    Trace,
    behaviour_trace,
    describe,
)
from synthgym.memory.records import MemoryRecord, parameter_distance
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, SynthEnvSpec

Describe = Callable[..., Description]
Digest = Callable[[object], str]
UNIT = st.floats(0, 1, allow_nan=False)


def put(
    memory: NoveltyMemory, digest: str, description: Description, iteration: int = 0
) -> NoveltyReason:
    """Check and, when accepted, add."""
    decision = memory.check(description, iteration=iteration)
    if decision.accepted:
        memory.add(digest, description, name=f"E{len(memory)}", skill="logic", iteration=iteration)
    return decision.reason


def test_equal_structure_and_data_is_a_copy_for_ever(
    memory: NoveltyMemory, program: Describe, digest: Digest
) -> None:
    assert put(memory, digest(1), program("a", "x")) is NoveltyReason.NEW
    decision = memory.check(replace(program("a", "x"), rules_text="other words"), iteration=99)
    assert (decision.accepted, decision.reason) == (False, NoveltyReason.COPY)
    assert "E0" in decision.detail


def test_equal_structure_with_other_data_is_a_family_with_a_quota(
    memory: NoveltyMemory, program: Describe, digest: Digest
) -> None:
    reasons = [put(memory, digest(i), program("a", str(i))) for i in range(6)]
    assert reasons == [NoveltyReason.NEW] * 4 + [NoveltyReason.FAMILY_FULL] * 2
    assert put(memory, digest(9), program("b", "1")) is NoveltyReason.NEW
    assert put(memory, digest(7), program("a", "7"), iteration=3) is NoveltyReason.NEW


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ((0.2, 0.4), NoveltyReason.SAME_PARAMETERS),
        ((0.3, 0.45), NoveltyReason.SAME_PARAMETERS),
        ((0.3, 0.5), NoveltyReason.NEW),
        ((0.4, 0.4), NoveltyReason.NEW),
        ((0.9, 0.9), NoveltyReason.NEW),
    ],
)
def test_blueprints_are_compared_by_parameters(
    memory: NoveltyMemory,
    blueprint: Describe,
    digest: Digest,
    parameters: tuple[float, ...],
    reason: NoveltyReason,
) -> None:
    put(memory, digest(0), blueprint(0.2, 0.4))
    assert memory.check(blueprint(*parameters)).reason is reason
    assert memory.check(blueprint(*parameters, family="docks")).accepted


def test_blueprints_are_forgotten_after_the_window(
    memory: NoveltyMemory, blueprint: Describe, digest: Digest
) -> None:
    put(memory, digest(0), blueprint(0.5), iteration=4)
    assert [memory.check(blueprint(0.5), iteration=i).accepted for i in (4, 5, 6, 7)] == [
        False,
        False,
        False,
        True,
    ]


def test_a_family_has_a_quota_within_the_window(
    memory: NoveltyMemory, blueprint: Describe, digest: Digest
) -> None:
    reasons = [put(memory, digest(i), blueprint(i / 5)) for i in range(6)]
    assert reasons == [NoveltyReason.NEW] * 4 + [NoveltyReason.FAMILY_FULL] * 2


def test_a_finite_space_never_saturates(blueprint: Describe, digest: Digest) -> None:
    memory = NoveltyMemory(HashEmbedder(32), family_quota=32, window=3)
    grid = [(a / 3, b / 2) for a, b in itertools.product(range(4), range(3))]
    admitted = []
    for iteration in range(20):
        rng = np.random.default_rng(iteration)
        picks = [grid[i] for i in rng.permutation(len(grid))[:6]]
        reasons = [put(memory, digest(p), blueprint(*p), iteration) for p in picks]
        admitted.append(reasons.count(NoveltyReason.NEW))
    assert len(memory) <= len(grid)  # an admitted blueprint that was forgotten comes back
    assert all(sum(admitted[i : i + 3]) > 0 for i in range(18))
    assert sum(admitted[10:]) >= 20


@given(st.lists(st.tuples(UNIT, UNIT), max_size=12))
def test_held_blueprints_keep_their_distance(points: list[tuple[float, float]]) -> None:
    memory = NoveltyMemory(HashEmbedder(8), window=2)
    for i, point in enumerate(points):
        put(memory, f"sha256:{i:064x}", Description("text", "a", "", "f", point))
    held = [record.description.parameters for record in memory]
    for first, second in itertools.combinations(held, 2):
        assert parameter_distance(first, second) >= 0.1 - 1e-8


@given(st.lists(UNIT, min_size=1, max_size=5), st.data())
def test_the_distance_is_a_metric_in_the_unit_interval(
    first: list[float], data: st.DataObject
) -> None:
    second = data.draw(st.lists(UNIT, min_size=len(first), max_size=len(first)))
    distance = parameter_distance(tuple(first), tuple(second))
    assert 0.0 <= distance <= 1.0
    assert distance == parameter_distance(tuple(second), tuple(first))
    assert parameter_distance(tuple(first), tuple(first)) == 0.0
    assert math.isinf(parameter_distance((*first, 0.5), tuple(second)))


def test_similar_text_is_named_but_never_refused(
    memory: NoveltyMemory, program: Describe, digest: Digest
) -> None:
    put(memory, digest(0), program("a", text="open the lock gates"))
    put(memory, digest(1), program("b", text="count primes"))
    decision = memory.check(program("c", text="open the lock gates"))
    assert decision.accepted
    first = decision.nearest[0]
    assert (first.name, first.similarity) == ("E0", 1.0)
    assert [n.digest for n in decision.nearest] == [digest(0), digest(1)]


def test_adding_again_refreshes_the_iteration_and_keeps_the_metrics(
    memory: NoveltyMemory, blueprint: Describe, digest: Digest
) -> None:
    put(memory, digest(0), blueprint(0.5))
    memory.update(digest(0), win_rate=0.5, regret=0.2)
    assert put(memory, digest(0), blueprint(0.5), iteration=5) is NoveltyReason.NEW
    record = memory.get(digest(0))
    assert (len(memory), record.iteration, record.win_rate, record.regret) == (1, 5, 0.5, 0.2)


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_was_not_measured_changes_nothing(
    memory: NoveltyMemory, program: Describe, digest: Digest, value: float | None
) -> None:
    put(memory, digest(0), program("a"))
    memory.update(digest(0), win_rate=0.4, regret=-0.1)
    memory.update(digest(0), win_rate=value, regret=value)
    assert (memory.get(digest(0)).win_rate, memory.get(digest(0)).regret) == (0.4, -0.1)


def test_an_unknown_or_misspelt_digest_is_an_error(
    memory: NoveltyMemory, program: Describe, digest: Digest
) -> None:
    put(memory, digest(0), program("a"))
    with pytest.raises(EnvNotFoundError, match="did you mean"):
        memory.update(digest(0)[:-1], win_rate=0.5)
    with pytest.raises(InvalidIdError):
        memory.add("abc", program("b"), name="B", skill="logic", iteration=0)
    assert digest(0) in memory
    assert digest(1) not in memory


@pytest.mark.parametrize(
    "settings",
    [{"family_quota": 0}, {"window": 0}, {"min_parameter_distance": 1.5}],
    ids=lambda settings: next(iter(settings)),
)
def test_wrong_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        NoveltyMemory(HashEmbedder(8), **settings)  # type: ignore[arg-type]


def filled(program: Describe, digest: Digest, n: int = 40) -> NoveltyMemory:
    memory = NoveltyMemory(HashEmbedder(64))
    rng = np.random.default_rng(0)
    for i in range(n):
        memory.add(
            digest(i),
            program(str(i), text=f"theme {i % 3} rules " + "word " * (i % 4)),
            name=f"E{i}",
            skill="logic" if i % 2 else "space",
            iteration=0,
            win_rate=round(float(rng.random()), 2),
            regret=round(float(rng.random()), 2),
        )
    return memory


def test_exemplars_are_learnable_ones_of_the_skill_with_the_best_regret(
    program: Describe, digest: Digest
) -> None:
    memory = filled(program, digest)
    usable = [r for r in memory if r.skill == "logic" and 0.15 <= (r.win_rate or 0) <= 0.85]
    best = sorted((r.regret or 0 for r in usable), reverse=True)[:10]
    for seed in range(20):
        drawn = memory.exemplars("logic", 3, np.random.default_rng(seed))
        regrets = [record.regret or 0 for record in drawn]
        assert len({record.digest for record in drawn}) == 3
        assert regrets == sorted(regrets, reverse=True)
        assert set(drawn) <= set(usable)
        assert min(regrets) >= min(best)


def test_exemplars_are_unlike_each_other(program: Describe, digest: Digest) -> None:
    memory = NoveltyMemory(HashEmbedder())
    texts = ["locks and gates"] * 4 + ["ledgers and sums"]
    for i, text in enumerate(texts):
        memory.add(
            digest(i),
            program(str(i), text=text),
            name="E",
            skill="s",
            iteration=0,
            win_rate=0.5,
            regret=0.5,
        )
    for seed in range(8):
        drawn = memory.exemplars("s", 2, np.random.default_rng(seed))
        assert {r.description.rules_text for r in drawn} == set(texts)


def test_warnings_are_too_easy_or_too_hard(program: Describe, digest: Digest) -> None:
    memory = NoveltyMemory(HashEmbedder(8))
    rates = [0.0, 0.09, 0.1, 0.5, 0.9, 0.91, 1.0, None]
    for i, rate in enumerate(rates):
        memory.add(digest(i), program(str(i)), name=f"E{i}", skill="s", iteration=0, win_rate=rate)
    drawn = memory.warnings("s", 9, np.random.default_rng(0))
    assert {(r.name, r.verdict) for r in drawn} == {
        ("E0", "too hard"),
        ("E1", "too hard"),
        ("E5", "too easy"),
        ("E6", "too easy"),
    }


@pytest.mark.parametrize("draw", ["exemplars", "warnings"])
def test_the_same_generator_draws_the_same(program: Describe, digest: Digest, draw: str) -> None:
    def drawn(seed: int, skill: str = "logic", k: int = 2) -> tuple[MemoryRecord, ...]:
        method = getattr(filled(program, digest), draw)
        return tuple(method(skill, k, np.random.default_rng(seed)))

    assert drawn(3) == drawn(3)
    assert len({drawn(seed) for seed in range(10)}) > 1
    assert drawn(0, k=0) == ()
    assert drawn(0, skill="other") == ()


def test_a_copy_changes_alone(memory: NoveltyMemory, program: Describe, digest: Digest) -> None:
    put(memory, digest(0), program("a"))
    other = memory.copy()
    put(other, digest(1), program("b"))
    other.update(digest(0), win_rate=0.7)
    assert (len(memory), len(other)) == (1, 2)
    assert memory.get(digest(0)).win_rate is None
    assert len(memory.check(program("c")).nearest) == 1
    assert len(other.check(program("c")).nearest) == 2


SOURCE = '''"""Say go."""


class GoEnv:
    max_turns = 2

    def reset(self, seed):
        return f"Say go, {seed}.", {}

    def step(self, action):
        return "done", 1.0, True, False, {}

    def hint(self, level=2):
        return "A short word."

    def solution(self):
        return ["go"]
'''


def test_seeding_plays_each_environment_once() -> None:
    good = SynthEnvSpec(
        record=EnvRecord(source=SOURCE, entry="GoEnv", max_turns=2), name="Go", skills=("s",)
    )
    bad = SynthEnvSpec(
        record=EnvRecord(
            source=SOURCE.replace("return f", "raise ValueError(seed)\n        return f"),
            entry="GoEnv",
            max_turns=2,
        ),
        name="Bad",
    )
    memory = NoveltyMemory(HashEmbedder(8))
    with Pool() as pool:
        memory.seed([good, bad], pool)
    assert [record.description.rules_text for record in memory] == [
        "Say go.\n\nSay go, #.",
        "Say go.",
    ]
    assert memory.get(good.digest).skill == "s"
    assert memory.check(describe(SOURCE, "Say go, 7.")).reason is NoveltyReason.COPY


COUNTER = '''"""Take stones."""

import random

WORDS = ["ash", "oak", "elm", "fir", "yew", "bay", "box", "fig", "gum"]


class CountEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.heaps = [rng.randrange(100, 999) for _ in WORDS]
        return "Heaps: " + ", ".join(f"{w} {n}" for w, n in zip(WORDS, self.heaps)), {}

    def step(self, action):
        done = action == str(sum(self.heaps))
        return "yes" if done else "no", float(done), done, False, {}

    def hint(self, level=2):
        return "Add them."

    def solution(self):
        return [str(sum(self.heaps))]
'''


def test_seeding_with_behaviour_tells_a_reskin() -> None:
    spec = SynthEnvSpec(record=EnvRecord(source=COUNTER, entry="CountEnv", max_turns=9), name="C")
    other = COUNTER.replace("ash", "ewe").replace("oak", "ram").replace("stones", "sheep")
    with Pool() as pool:
        plain, played = NoveltyMemory(HashEmbedder(64)), NoveltyMemory(HashEmbedder(64))
        plain.seed([spec], pool)
        played.seed([spec], pool, with_behaviour=True)
        trace = behaviour_trace(EnvRecord(source=other, entry="CountEnv", max_turns=9), pool)
    assert isinstance(trace, Trace)
    assert played.get(spec.digest).description.behaviour == trace
    assert plain.get(spec.digest).description.behaviour is None
    candidate = describe(other, "", behaviour=trace)
    assert played.check(candidate).reason is NoveltyReason.RESKIN
    assert plain.check(candidate).accepted
