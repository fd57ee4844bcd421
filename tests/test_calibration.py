from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.calibration import AGENTS, Calibration, Search, Tried, calibrate, wilson
from synthgym.calibration.commands import MAX_COMMANDS, fillers, fillings, offer, without_turns
from synthgym.calibration.scores import mean_and_se
from synthgym.errors import ConfigError
from synthgym.ids import is_name
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, SynthEnvSpec

SOURCES = Path(__file__).parent / "data" / "calibration"


def spec(name: str, max_turns: int) -> SynthEnvSpec:
    assert is_name(name)
    source = (SOURCES / f"{name.lower()}.py").read_text()
    record = EnvRecord(source=source, entry=f"{name}Env", max_turns=max_turns)
    return SynthEnvSpec(record=record, name=name)


LAMPS = spec("Lamps", 9)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2) as pool:
        yield pool


@pytest.fixture(scope="module")
def lamps(pool: Pool) -> Calibration:
    return calibrate(LAMPS, episodes=24, pool=pool)


# --- what the agents come to ---


def test_each_agent_fares_as_the_rules_of_the_game_say(lamps: Calibration) -> None:
    rates = {score.agent: score.solve_rate for score in lamps.scores}
    assert tuple(rates) == AGENTS
    assert rates["null"] == 0.0
    assert rates["search"] == rates["witness"] == 1.0
    scraper = rates["scraper"]
    assert scraper is not None
    assert 0.0 < scraper < 1.0
    assert lamps.score("null").mean_turns == 9.0
    assert lamps.score("search").mean_turns == lamps.score("witness").mean_turns


def test_a_guess_among_four_is_won_as_often_as_chance_has_it(pool: Pool) -> None:
    found = calibrate(spec("Doors", 2), episodes=200, agents=("scraper", "search"), pool=pool)
    scraper = found.score("scraper")
    # The environment seeds `random.Random` with the instance's seed: an agent that drew from the same
    # stream would win always or never.
    assert scraper.interval.low < 0.25 < scraper.interval.high
    assert scraper.mean_return == scraper.solve_rate
    assert found.score("search").wins == 200


def test_a_fault_is_neither_won_nor_lost(pool: Pool) -> None:
    found = calibrate(spec("Brittle", 4), episodes=6, pool=pool)
    null, witness, search = (found.score(name) for name in ("null", "witness", "search"))
    assert (null.episodes, null.faults, null.wins) == (6, 1, 0)
    assert (null.mean_return, null.mean_turns) == (0.0, 4.0)
    # Of 0 to 5: 1 and 5 break on the way, 3 cannot be reset, 4 gives no solution.
    assert (witness.faults, witness.wins, witness.played) == (4, 2, 2)
    assert (witness.solve_rate, witness.mean_return) == (1.0, 1.0)
    # The search needs no solution.
    assert (search.faults, search.wins) == (3, 3)


def test_without_a_single_outcome_there_are_no_rates(pool: Pool) -> None:
    found = calibrate(spec("Brittle", 4), episodes=1, first_seed=3, agents=("null",), pool=pool)
    (score,) = found.scores
    assert (score.faults, score.played, score.interval) == (1, 0, (0.0, 1.0))
    assert score.solve_rate is score.solve_rate_se is score.mean_return is score.mean_turns is None
    json.dumps(found.to_json(), allow_nan=False)


def test_a_search_without_budget_says_that_it_decided_nothing(pool: Pool) -> None:
    found = calibrate(LAMPS, episodes=4, agents=("search",), search_budget=3, pool=pool)
    (score,) = found.scores
    assert (score.wins, score.undecided) == (0, 4)
    assert score.settings == {"budget": 3}


# --- the same figures everywhere ---


def test_the_instances_are_those_of_the_seeds_named(pool: Pool, lamps: Calibration) -> None:
    halves = [
        calibrate(LAMPS, episodes=12, first_seed=first, agents=("scraper", "search"), pool=pool)
        for first in (0, 12)
    ]
    for name in ("scraper", "search"):
        wins = sum(half.score(name).wins for half in halves)
        assert wins == lamps.score(name).wins
    assert halves[1].score("search").to_json()["first_seed"] == 12


def test_another_process_comes_to_the_same_figures(lamps: Calibration) -> None:
    code = (
        "import json, pathlib, sys\n"
        "from synthgym import EnvRecord, SynthEnvSpec\n"
        "from synthgym.calibration import calibrate\n"
        "source = pathlib.Path(sys.argv[1]).read_text()\n"
        "record = EnvRecord(source=source, entry='LampsEnv', max_turns=9)\n"
        "spec = SynthEnvSpec(record=record, name='Lamps')\n"
        "print(json.dumps(calibrate(spec, episodes=24).to_json()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(SOURCES / "lamps.py")],
        env=os.environ | {"PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == json.dumps(lamps.to_json())


def test_what_is_noted_suffices_to_measure_again_and_holds_no_clock(lamps: Calibration) -> None:
    noted = lamps.to_json()["search"]
    assert set(noted) == {
        *("episodes", "first_seed", "settings", "synthgym", "faults", "wins", "undecided"),
        *("solve_rate", "solve_rate_se", "interval_95"),
        *("mean_return", "mean_return_se", "mean_turns"),
    }
    assert noted["settings"] == {"budget": 2000}


def test_a_bundled_environment_is_for_its_witness_alone(pool: Pool) -> None:
    snapshot = Snapshot.open(bundled_root())
    entry = snapshot.entry("synthgym/MineSurvey-v0")
    found = calibrate(snapshot.spec(entry.digest), episodes=10, search_budget=200, pool=pool)
    assert {score.agent: score.wins for score in found.scores} == {
        "null": 0,
        "random": 0,
        "scraper": 0,
        "search": 0,
        "witness": 10,
    }
    assert found.score("search").undecided == 10


WRONG = {
    "an agent that there is not": ({"agents": ("sraper",)}, "mean 'scraper'"),
    "an agent twice": ({"agents": ("null", "null")}, "each once"),
    "no agent": ({"agents": ()}, "got none"),
    "no episode": ({"episodes": 0}, "episodes must be at least 1"),
    "no budget": ({"search_budget": 0}, "search_budget must be at least 1"),
}


@pytest.mark.parametrize(("settings", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_setting_is_refused(settings: dict[str, object], message: str, pool: Pool) -> None:
    with pytest.raises(ConfigError, match=message):
        calibrate(LAMPS, pool=pool, **settings)  # type: ignore[arg-type]


# --- figures ---


@pytest.mark.parametrize(
    ("wins", "played", "low", "high"),
    # as scipy.stats.binomtest(wins, played).proportion_ci(method="wilson") has them
    [(0, 100, 0.0, 0.036993), (5, 10, 0.236593, 0.763407), (10, 10, 0.722467, 1.0), (0, 0, 0, 1)],
)
def test_the_interval_is_wilsons(wins: int, played: int, low: float, high: float) -> None:
    assert wilson(wins, played) == pytest.approx((low, high), abs=1e-6)


def test_a_mean_comes_with_its_error() -> None:
    assert mean_and_se([]) == (None, None)
    assert mean_and_se([0.5]) == (0.5, None)
    assert mean_and_se([0.0, 1.0]) == (0.5, 0.5)
    assert mean_and_se([0.25] * 9) == (0.25, 0.0)


# --- what is tried ---


def test_blanks_are_filled_by_their_own_choices_or_by_what_was_named() -> None:
    first = "On the bench: saw, plane, awl. Commands: take <tool>, turn <left|right>, rest."
    found = offer("You rest.", first)
    assert found.commands == (
        *("take saw", "take plane", "take awl"),
        *("turn left", "turn right"),
        "rest",
    )
    assert found.complete


def test_numbers_come_from_ranges() -> None:
    assert offer("", "Levers 1 to 4. Commands: throw <lever>.").commands == tuple(
        f"throw {lever}" for lever in range(1, 5)
    )
    assert fillings("put <1 to 3>", [], 128).commands == ("put 1", "put 2", "put 3")
    assert fillers(["From 1 to 500."]) == ["1", "500"]  # too many to be listed


def test_too_many_fillings_are_cut_evenly_and_the_search_is_told() -> None:
    found = fillings("plan <a> <b> <c>", list("pqrstuvw"), 64)
    assert (len(found.commands), found.complete) == (64, False)
    assert {command[-1] for command in found.commands} == set("pqrs")
    assert {command[5] for command in found.commands} == set("pqrs")
    assert fillings("plan <a>", ["x"], 64) == (("plan x",), True)


def test_what_is_on_offer_last_is_not_crowded_out() -> None:
    words = ", ".join(f"w{n}" for n in range(90))
    found = offer("", f"There are {words}.\nCommands: put <word> <word>, take <word>, rest.")
    assert "rest" in found.commands
    assert len(found.commands) <= MAX_COMMANDS
    assert not found.complete


def test_text_without_commands_offers_nothing_and_that_is_not_everything() -> None:
    assert offer("A dark room", "A dark room") == ((), False)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("On: a. Turn 3 of 60.", "On: a. Turn 12 of 60.", True),
        ("Turns left: 3", "Turns left: 2", True),
        ("3 turns left", "12 turns left", True),
        ("Seasons used: 3 of 12", "Seasons used: 4 of 12", False),
        ("Lever 3 of 8", "Lever 4 of 8", False),
    ],
)
def test_only_a_counter_of_turns_is_not_part_of_the_state(
    first: str, second: str, same: bool
) -> None:
    assert (without_turns(first) == without_turns(second)) is same


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece", ["a", "a, ", "1 to ", "x: ab, cd ", "'", "a-", "turn ", "9", "< "]
)
def test_long_text_of_whatever_kind_is_read_quickly(piece: str) -> None:
    text = piece * (65_536 // len(piece))
    offer(text, text)
    without_turns(text)


# --- the search itself ---

Graph = dict[str, dict[str, str]]


def play(graph: Graph, plan: tuple[str, ...]) -> Tried:
    """Walk a graph whose nodes are observations; `goal` wins, `pit` loses."""
    place = "start"
    for action in plan:
        place = graph[place][action]
    return Tried(
        shown(graph, place),
        float(place == "goal"),
        place == "goal",
        place in ("goal", "pit"),
        False,
    )


def shown(graph: Graph, place: str) -> str:
    return f"You are at {place}. Commands: {'; '.join(graph.get(place, {}))}."


def solve(graph: Graph, budget: int, limit: int) -> Search:
    search = Search(shown(graph, "start"), budget=budget)
    while plans := search.tries(limit):
        for plan in plans:
            search.take(plan, play(graph, plan))
    return search


MAZE: Graph = {
    "start": {"up": "attic", "down": "cellar", "wait": "start"},
    "attic": {"up": "pit", "down": "start", "wait": "attic"},
    "cellar": {"up": "start", "down": "cave", "wait": "cellar"},
    "cave": {"up": "cellar", "down": "pit", "wait": "goal"},
}


def test_the_shortest_way_is_found_in_as_few_steps_as_it_takes() -> None:
    search = solve(MAZE, budget=100, limit=1)
    assert (search.won, search.plan) == (True, ("down", "down", "wait"))
    # 3 ways from the start, 3 and 3 of two steps, and of three steps 3 from the cave.
    needed = 3 * 1 + 6 * 2 + 3 * 3
    assert solve(MAZE, budget=needed, limit=1).won
    short = solve(MAZE, budget=needed - 1, limit=1)
    assert (short.won, short.undecided, short.plan) == (False, True, ())


def test_a_game_that_cannot_be_won_is_searched_to_its_end() -> None:
    closed = MAZE | {"cave": {**MAZE["cave"], "wait": "cave"}}
    search = solve(closed, budget=1000, limit=5)
    assert (search.won, search.undecided, search.plan) == (False, False, ())


@given(
    limit=st.integers(1, 70),
    budget=st.integers(1, 60),
    ways=st.lists(
        st.sampled_from(["start", "attic", "cellar", "cave", "pit", "goal"]),
        min_size=12,
        max_size=12,
    ),
)
def test_how_many_plans_are_tried_at_once_makes_no_difference(
    limit: int, budget: int, ways: list[str]
) -> None:
    graph = {
        place: dict(zip(("up", "down", "wait"), ways[at * 3 :], strict=False))
        for at, place in enumerate(MAZE)
    }
    one, many = solve(graph, budget, 1), solve(graph, budget, limit)
    assert (one.won, one.plan, one.undecided) == (many.won, many.plan, many.undecided)


def test_the_plan_that_was_paid_most_is_kept_when_none_wins() -> None:
    search = Search("Commands: a; b.", budget=2)
    for plan, paid in zip(search.tries(2), (0.25, 0.5), strict=True):
        search.take(plan, Tried("Commands: a; b.", paid, False, True, False))
    assert search.tries(2) == []
    assert (search.won, search.plan, search.paid) == (False, ("b",), 0.5)


def test_the_same_sight_with_another_sum_paid_is_another_state() -> None:
    search = Search("Commands: a; b.", budget=100)
    first, second = search.tries(2)
    assert search.take(first, Tried("Commands: a; b.", 0.0, False, False, False)) is False
    assert search.take(second, Tried("Commands: a; b.", 0.25, False, False, False)) is True


def test_a_fault_ends_the_search() -> None:
    search = Search("Commands: a; b.", budget=100)
    first, second = search.tries(2)
    search.take(first, Tried("", 0.0, False, True, True))
    search.take(second, Tried("", 1.0, True, True, False))
    assert (search.failed, search.won, search.undecided) == (True, False, False)
    assert search.tries(1) == []
