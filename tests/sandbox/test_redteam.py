"""Hostile sources against the whole boundary: language layer, lock-down, deadlines and checked values."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pool_sources import children_of
from redteam import FOLDER, PAYLOADS, Payload, aimed, open_folder

from synthgym.sandbox import EnvFault, FaultKind, Pool, ResetResult, StepResult
from synthgym.spec import EnvRecord, Limits

LIMITS = Limits(load_seconds=10.0, reset_seconds=0.3, step_seconds=0.3, memory_mb=256)
PATIENT = Limits(load_seconds=10.0, reset_seconds=10.0, step_seconds=10.0, memory_mb=256)
"""For payloads that do not hang: what they come to must not depend on how fast the machine is."""
PROMPT_SECONDS = 0.5
"""How late the fault of a call that hangs may come."""
MARGIN_SECONDS = 15.0
"""For a busy machine, on what a call takes as seen by its caller: new worker and replay included."""
LATE = re.compile(r"no reply in (?P<took>[\d.]+) s \(limit (?P<limit>[\d.]+) s\)")

Outcome = ResetResult | StepResult | EnvFault


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2) as shared:
        yield shared


@pytest.fixture(scope="module")
def markers() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


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
CALM_OUTCOMES = [
    ResetResult("seed 0", {}),
    StepResult("a", 0.0, terminated=False, truncated=False, info={}),
    StepResult("b", 0.0, terminated=False, truncated=False, info={}),
]


def outcomes(pool: Pool, payload: EnvRecord, limits: Limits = PATIENT) -> list[Outcome]:
    """What a reset and two steps come to, each within its time."""
    found: list[Outcome] = []
    with pool.open(payload, limits) as session:
        calls = [lambda: session.reset(0), lambda: session.step("a"), lambda: session.step("b")]
        for call in calls:
            start = time.monotonic()
            found.append(call())
            assert time.monotonic() - start < limits.step_seconds + MARGIN_SECONDS
    return found


def kinds(found: list[Outcome]) -> set[str]:
    """The kinds of fault among the outcomes, or `reply` when there is none."""
    return {str(item.kind) for item in found if isinstance(item, EnvFault)} or {"reply"}


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: str(payload["file"])[:-3])
def test_a_payload_comes_to_what_the_manifest_says_and_the_pool_goes_on(
    pool: Pool, markers: Path, payload: Payload
) -> None:
    limits = LIMITS if "timeout" in payload["full"] else PATIENT
    found = outcomes(pool, record(aimed(payload, markers)), limits)
    assert kinds(found) <= set(payload["full"]), found
    for result in found:
        if isinstance(result, EnvFault):
            assert_prompt(result)
        else:
            assert not result.observation.startswith("PWNED")
    assert not list(markers.iterdir())
    assert outcomes(pool, CALM) == CALM_OUTCOMES


def assert_prompt(fault: EnvFault) -> None:
    """That a call was not left to hang for longer than its limit and a bit."""
    late = LATE.search(fault.detail)
    assert (fault.kind == FaultKind.TIMEOUT) == bool(late), fault
    if late:
        assert float(late["took"]) <= float(late["limit"]) + PROMPT_SECONDS


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


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_of_payloads_are_gone_when_their_sessions_are(markers: Path) -> None:
    (hanging,) = [item for item in PAYLOADS if item["file"].startswith("132_")]
    with Pool(max_workers=2) as pool:
        outcomes(pool, CALM)
        outcomes(pool, record(aimed(hanging, markers)), LIMITS)
        assert not children_of(pool)


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: str(payload["file"])[:-3])
def test_a_payload_says_what_it_is(payload: Payload) -> None:
    number = payload["file"][:3]
    head = (FOLDER / payload["file"]).read_text().split('"""')[1]
    assert head.startswith(f"Red-team payload {number}: ")
    assert f"layer: {payload['layer']}; category: {payload['category']}; defence: " in head
    assert payload["layer"] in ("lang", "os", "sup")
    assert payload["raw"]
    assert set(payload["full"]) <= {*map(str, FaultKind), "reply"}
