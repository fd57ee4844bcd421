from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import gymnasium
import pytest
from gymnasium.wrappers import TimeLimit

from synthgym.agents import offered
from synthgym.calibration import calibrate
from synthgym.envs import HintWrapper, SynthEnv
from synthgym.envs.episode import Transition
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, SynthEnvSpec
from synthgym.testing import (
    NullAgent,
    RandomAgent,
    ScraperAgent,
    ScriptedAgent,
    SearchAgent,
    WitnessAgent,
    check_synth_env,
)

DATA = Path(__file__).parent / "data"
LAMPS = SynthEnvSpec(
    record=EnvRecord(
        source=(DATA / "calibration" / "lamps.py").read_text(), entry="LampsEnv", max_turns=9
    ),
    name="Lamps",
)


class Agent(Protocol):
    def play(self, env: gymnasium.Env[str, str], seed: int) -> list[Transition]: ...


AGENTS: dict[str, Agent] = {
    "null": NullAgent(),
    "random": RandomAgent(),
    "scraper": ScraperAgent(),
    "search": SearchAgent(budget=500),
    "witness": WitnessAgent(),
}
each_agent = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2) as pool:
        yield pool


@pytest.fixture
def lamps(pool: Pool) -> Iterator[SynthEnv]:
    env = SynthEnv(LAMPS, pool=pool)
    yield env
    env.close()


class Listening(gymnasium.Wrapper[str, str, str, str]):
    """Notes the actions that go through it."""

    def __init__(self, env: gymnasium.Env[str, str]) -> None:
        super().__init__(env)
        self.actions: list[str] = []

    def step(self, action: str) -> Transition:
        self.actions.append(action)
        return Transition(*super().step(action))


def actions_of(agent: Agent, env: SynthEnv, seed: int) -> list[str]:
    listening = Listening(env)
    agent.play(listening, seed)
    return listening.actions


def spec(path: Path) -> SynthEnvSpec:
    record = EnvRecord(source=path.read_text(), entry="LockerEnv", max_turns=8)
    return SynthEnvSpec(record=record, name="Locker")


def test_a_good_environment_passes() -> None:
    check_synth_env(spec(DATA / "good_envs" / "locker.py"))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("solution-does-not-win", "does not win"),
        ("reward-out-of-range", "bad_value"),
        ("reset-empty", "first observation is empty"),
    ],
)
def test_a_bad_environment_is_an_assertion_error(code: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_synth_env(spec(DATA / "bad_envs" / f"{code}.py"))


def test_something_else_is_an_assertion_error() -> None:
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(AssertionError, match="expected a SynthEnv"):
        check_synth_env(env)  # type: ignore[arg-type]
    env.close()


@each_agent
def test_an_agent_plays_the_same_episode_again(agent: Agent, lamps: SynthEnv) -> None:
    first = agent.play(lamps, 2)
    agent.play(lamps, 3)
    assert agent.play(lamps, 2) == first
    assert first[-1].terminated or first[-1].truncated
    assert [transition.info["turn"] for transition in first] == list(range(1, len(first) + 1))


@each_agent
def test_an_agent_plays_in_wrappers_as_it_does_without(agent: Agent, lamps: SynthEnv) -> None:
    wrapped = TimeLimit(Listening(lamps), max_episode_steps=9)
    for seed in (0, 1):
        assert agent.play(wrapped, seed) == agent.play(lamps, seed)


def test_what_the_agents_send(lamps: SynthEnv) -> None:
    first, _ = lamps.reset(seed=0)
    assert actions_of(NullAgent(), lamps, 0) == [""] * 9
    solution = lamps.solution()
    assert actions_of(WitnessAgent(), lamps, 0) == list(solution)
    assert actions_of(ScriptedAgent(["press 1", "wait"]), lamps, 0) == ["press 1", "wait"]
    scraped = actions_of(ScraperAgent(), lamps, 0)
    assert offered(first) == ("press <lamp>",)
    assert {action.split()[0] for action in scraped} == {"press"}
    for action in actions_of(RandomAgent(), lamps, 0):
        assert 1 <= len(action.split()) <= 3


@pytest.mark.parametrize("kind", [RandomAgent, ScraperAgent])
def test_an_agent_of_another_seed_does_something_else(
    kind: type[RandomAgent | ScraperAgent], lamps: SynthEnv
) -> None:
    assert actions_of(kind(), lamps, 0) == actions_of(kind(seed=0), lamps, 0)
    assert actions_of(kind(seed=1), lamps, 0) != actions_of(kind(seed=0), lamps, 0)
    assert actions_of(kind(seed=0), lamps, 1) != actions_of(kind(seed=0), lamps, 0)


def test_the_search_finds_the_shortest_way_and_plays_it_through_the_wrappers(
    lamps: SynthEnv,
) -> None:
    for seed in range(4):
        found = SearchAgent().find(lamps, seed)
        assert found.won
        assert len(found.plan) <= len(WitnessAgent().play(lamps, seed))
        wrapped = Listening(HintWrapper(lamps))
        assert SearchAgent().play(wrapped, seed)[-1].info["success"]
        assert tuple(wrapped.actions) == found.plan


def test_a_search_that_finds_nothing_plays_nothing(lamps: SynthEnv) -> None:
    assert SearchAgent(budget=1).play(lamps, 0) == []


@pytest.mark.parametrize(("name", "agent"), AGENTS.items())
def test_measured_in_batches_an_agent_fares_as_it_does_here(
    name: str, agent: Agent, lamps: SynthEnv, pool: Pool
) -> None:
    played = [agent.play(lamps, seed) for seed in range(10)]
    (score,) = calibrate(LAMPS, episodes=10, agents=(name,), search_budget=500, pool=pool).scores
    assert score.wins == sum(episode[-1].info["success"] for episode in played)
    assert score.mean_turns == sum(map(len, played)) / 10
    paid = [sum(transition.reward for transition in episode) for episode in played]
    assert score.mean_return == pytest.approx(sum(paid) / 10)


@pytest.mark.parametrize("agent", [WitnessAgent(), SearchAgent()])
def test_an_agent_that_needs_a_synth_env_says_so(agent: Agent) -> None:
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(AssertionError, match="expected a SynthEnv inside, got CartPoleEnv"):
        agent.play(env, 0)
    env.close()
