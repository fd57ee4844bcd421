"""Hostile sources against a whole pool: hangs, bombs, wrong types, odd exceptions.

The payloads that attack the language itself are `test_policy`'s; those that attack the kernel need raw Python and are
covered by `test_isolation`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from synthgym.sandbox import EnvFault, FaultKind, Pool, ResetResult, StepResult
from synthgym.spec import EnvRecord, Limits

FOLDER = Path(__file__).parent.parent / "redteam"
LIMITS = Limits(load_seconds=2.0, reset_seconds=0.3, step_seconds=0.3, memory_mb=256)
PAYLOADS = [
    item for item in json.loads((FOLDER / "manifest.json").read_text()) if item["layer"] == "sup"
]
KINDS = {
    "132_loop_init": FaultKind.TIMEOUT,
    "133_loop_reset": FaultKind.TIMEOUT,
    "137_regex_backtracking": FaultKind.TIMEOUT,
    "139_factorial_bomb": FaultKind.TIMEOUT,
    "140_itertools_sum_infinite": FaultKind.TIMEOUT,
    "149_memory_swallow": FaultKind.TIMEOUT,
    "161_huge_observation_utf8": FaultKind.BAD_VALUE,
    "169_reward_none": FaultKind.BAD_VALUE,
    "170_reward_str": FaultKind.BAD_VALUE,
    "176_tuple_generator": FaultKind.BAD_VALUE,
    "178_evil_dict_subclass": FaultKind.BAD_VALUE,
    "183_raise_keyboard_interrupt": FaultKind.ERROR,
    "186_raise_generator_exit": FaultKind.ERROR,
}
"""What must come of the payloads that cannot end well. The others may end in a fault or in clean replies."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2) as shared:
        yield shared


def record(source: str) -> EnvRecord:
    """A record of a payload, with the class attribute that the contract asks for."""
    head = "class PayloadEnv:\n"
    return EnvRecord(
        source=source.replace(head, head + "    max_turns = 10\n\n"),
        entry="PayloadEnv",
        max_turns=10,
    )


CALM = record("""
class PayloadEnv:
    def reset(self, seed):
        return f"seed {seed}", {}

    def step(self, action):
        return action, 0.0, False, False, {}
""")


def outcomes(pool: Pool, payload: EnvRecord) -> list[ResetResult | StepResult | EnvFault]:
    """What a reset and three steps come to."""
    with pool.open(payload, LIMITS) as session:
        return [session.reset(0), *(session.step(action) for action in ("a", "b"))]


@pytest.mark.parametrize("item", PAYLOADS, ids=lambda item: str(item["file"])[:-3])
def test_a_payload_ends_in_a_fault_or_a_clean_reply_and_the_pool_goes_on(
    pool: Pool, item: dict[str, str]
) -> None:
    name = item["file"].removesuffix(".py")
    found = outcomes(pool, record((FOLDER / item["file"]).read_text()))
    kinds = {result.kind for result in found if isinstance(result, EnvFault)}
    if name in KINDS:
        assert KINDS[name] in kinds, found
    for result in found:
        assert isinstance(result, EnvFault) or not result.observation.startswith("PWNED")
    assert not Path(item["marker"]).exists()
    assert outcomes(pool, CALM)[0] == ResetResult("seed 0", {})


def test_an_episode_of_an_environment_that_reseeds_is_the_same_every_time(pool: Pool) -> None:
    payload = record((FOLDER / "190_rng_coupling.py").read_text())
    assert outcomes(pool, payload) == outcomes(pool, payload)


@pytest.mark.parametrize("name", ["193_hash_order", "194_class_level_leak"])
def test_an_episode_does_not_depend_on_the_process_or_on_earlier_episodes(name: str) -> None:
    payload = record((FOLDER / f"{name}.py").read_text())
    with Pool() as one, Pool() as two, one.open(payload) as session:
        session.reset(0)
        session.step("earlier")
        again = [session.reset(0), *(session.step(action) for action in ("a", "b"))]
        assert again == outcomes(two, payload)
