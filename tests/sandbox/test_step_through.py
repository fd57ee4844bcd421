"""Many turns in one go: what each session comes to is what it would have come to turn by turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pool_sources import ACTIONS, LIMITS, game, kill_worker, told, walk

from synthgym.errors import ConfigError, ResetNeeded
from synthgym.sandbox import EnvFault, FaultKind, Pool, Session, StepResult
from synthgym.sandbox.batch import in_turns
from synthgym.sandbox.protocol import fits
from synthgym.spec import Limits

pytestmark = pytest.mark.timeout(60)
SLOW = Limits(memory_mb=64, step_seconds=10.0, reset_seconds=10.0, load_seconds=10.0)
EPISODES = st.lists(
    st.tuples(st.integers(0, 40), st.lists(st.sampled_from(ACTIONS), max_size=8)),
    min_size=1,
    max_size=5,
)
Told = tuple[object, ...]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4, max_strikes=1_000_000) as shared:
        yield shared


def over(result: StepResult | EnvFault) -> bool:
    return isinstance(result, EnvFault) or result.terminated or result.truncated


def one_by_one(session: Session, script: Sequence[str]) -> list[Told]:
    """What the script comes to up to its end."""
    found = []
    for action in script:
        result = session.step(action)
        found.append(told(result))
        if over(result):
            break
    return found


def through(
    pool: Pool, sessions: Sequence[Session], scripts: Sequence[Sequence[str]], at_once: int
) -> list[list[Told]]:
    """The same of many sessions, in as many goes as it takes."""
    found: list[list[Told]] = [[] for _ in sessions]
    live = [number for number, script in enumerate(scripts) if script]
    while live:
        rest = [scripts[number][len(found[number]) :] for number in live]
        results = pool.step_through([sessions[number] for number in live], rest, at_once)
        assert all(results)  # each of them gets on
        for number, new in zip(live, results, strict=True):
            assert not any(map(over, new[:-1]))
            found[number] += map(told, new)
        live = [
            number
            for number, new in zip(live, results, strict=True)
            if not over(new[-1]) and len(found[number]) < len(scripts[number])
        ]
    return found


@settings(max_examples=25, deadline=None)
@given(episodes=EPISODES, at_once=st.integers(1, 30), killed=st.booleans())
def test_turns_in_one_go_come_to_what_they_come_to_one_by_one(
    pool: Pool, episodes: list[tuple[int, list[str]]], at_once: int, killed: bool
) -> None:
    """And afterwards the sessions stand where they would stand, also when they have to be replayed."""
    sessions = [pool.open(game(), SLOW) for _ in range(2 * len(episodes))]
    ours, theirs = sessions[::2], sessions[1::2]
    for number, (seed, _) in enumerate(episodes):
        assert told(ours[number].reset(seed)) == told(theirs[number].reset(seed))
    scripts = [script for _, script in episodes]
    expected = [one_by_one(*pair) for pair in zip(theirs, scripts, strict=True)]
    assert through(pool, ours, scripts, at_once) == expected
    if killed and ours[0].source.link is not None:
        kill_worker(ours[0])
    for one, other in zip(ours, theirs, strict=True):
        assert told(one.step("go")) == told(other.step("go"))
        assert one.actions == other.actions
    for session in sessions:
        session.close()


@pytest.mark.parametrize(
    ("deed", "kind"), [("loop", FaultKind.TIMEOUT), ("bomb", FaultKind.MEMORY)]
)
def test_a_step_that_costs_the_worker_its_life_costs_the_others_nothing(
    deed: str, kind: FaultKind
) -> None:
    scripts = [["a", "b", "c", "d"], ["a", deed, "c", "d"], ["a"], ["a", "b", "c"]]
    with Pool() as pool:
        sessions = [pool.open(walk(), LIMITS) for _ in scripts]
        alone = pool.open(walk(), LIMITS)
        pool.reset_many([(session, 7) for session in sessions])
        found = pool.step_through(sessions, scripts, 100)
        assert [len(results) for results in found] == [4, 2, 1, 3]
        fault = found[1][1]
        assert isinstance(fault, EnvFault)
        assert (fault.kind, fault.call) == (kind, "step")
        for script, results in zip(scripts, found, strict=True):
            alone.reset(7)
            steps = [result for result in results if isinstance(result, StepResult)]
            assert steps == [alone.step(action) for action in script[: len(steps)]]
        assert sum(len(results) - len(set(map(repr, results))) for results in found) == 0


def test_only_so_many_whole_turns_are_taken_as_allowed() -> None:
    scripts = [["a", "b", "c"], [], ["d"], ["e", "f"]]
    assert in_turns(scripts, 1) == ([0, 2, 3], ["a", "d", "e"])
    assert in_turns(scripts, 4) == ([0, 2, 3], ["a", "d", "e"])
    assert in_turns(scripts, 5) == ([0, 2, 3, 0, 3], ["a", "d", "e", "b", "f"])
    assert in_turns(scripts, 100) == ([0, 2, 3, 0, 3, 0], ["a", "d", "e", "b", "f", "c"])
    assert in_turns([[], []], 9) == ([], [])


def test_turns_that_do_not_fit_into_one_message_wait() -> None:
    long = "x" * 4000
    speakers, actions = in_turns([[long] * 9] * 9, 100)
    assert speakers == list(range(9)) * 3
    assert fits(actions)
    assert not fits([long] * 9 * 4)
    assert in_turns([[long] * 2] * 99, 1000)[0] == list(range(99))  # the first one always


def test_a_turn_too_large_for_a_message_is_answered(pool: Pool) -> None:
    scripts = [[("x" * 4000) + str(number), "go"] for number in range(80)]
    sessions = [pool.open(game(), SLOW) for _ in scripts]
    pool.reset_many([(session, 1) for session in sessions])
    found = pool.step_through(sessions, scripts, 1000)
    assert [len(results) for results in found] == [1] * 80
    assert all(isinstance(result, StepResult) for (result,) in found)
    for session in sessions:
        session.close()


def test_misuse_raises(pool: Pool) -> None:
    with pool.open(game(), SLOW) as session, pytest.raises(ResetNeeded):
        pool.step_through([session], [["go"]], 1)
    with pool.open(game(), SLOW) as session:
        session.reset(0)
        with pytest.raises(ConfigError, match="once"):
            pool.step_through([session, session], [["go"], ["go"]], 1)
        with pytest.raises(ConfigError, match="one argument a session"):
            pool.step_through([session], [], 1)
        assert pool.step_through([session], [[]], 1) == [[]]
        assert pool.step_through([], [], 1) == []
