"""Neither one action nor an agent that understands nothing may win: what is refused, what is not, at what cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from math import comb
from pathlib import Path

import pytest

from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, Limits
from synthgym.validation.easy_checks import (
    COPYING,
    LUCK,
    RANDOM_WORDS,
    SCRAPING,
    check_one_action,
    check_unthinking_agents,
)
from synthgym.validation.plays import Cast, Play, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding
from synthgym.validation.run_checks import check_load, check_reset
from synthgym.validation.witness_checks import check_witness

LOCKER = (Path(__file__).parents[1] / "data" / "good_envs" / "locker.py").read_text()
Start = Callable[..., Trial]

GAME = '''
"""A game for a test."""
import random


class GameEnv:
    max_turns = {turns}

    def reset(self, seed):
        self.seed = seed
        self.rng = random.Random(seed)
        self.done = []
        self.start()
        return self.view("Begin."), {{}}

    def start(self):
        self.right = self.rng.choice({words!r})

    def view(self, note):
        return note + " {offer}"

    def step(self, action):
        self.done.append(action)
        if self.wins(action):
            return "Won.", 1.0, True, False, {{}}
        return self.view("Step " + str(len(self.done)) + "."), 0.0, False, False, {{}}

    def wins(self, action):
        return {wins}

    def hint(self, level=2):
        return "None."

    def solution(self):
        return {solution}
'''


def game(
    wins: str,
    solution: str,
    *,
    offer: str = "Reply with one of: red, blue, green, white.",
    turns: int = 8,
    words: tuple[str, ...] = ("red", "blue", "green", "white"),
) -> str:
    """A source in which `wins` and `solution` are expressions."""
    return GAME.format(wins=wins, solution=solution, offer=offer, turns=turns, words=words)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=100) as pool:
        yield pool


@pytest.fixture
def start(pool: Pool) -> Iterator[Start]:
    """Makes a trial in which the witness has won already."""
    opened = ExitStack()

    def make(source: str, seeds: int = 20) -> Trial:
        name = source.split("class ")[1].split(":")[0]
        turns = int(source.split("max_turns = ")[1].split("\n")[0])
        record = EnvRecord(source=source, entry=name, max_turns=turns)
        trial = opened.enter_context(Trial(record, pool, range(seeds), Limits()))
        assert not list(check_load(trial))
        assert not list(check_reset(trial))
        assert not list(check_witness(trial))
        assert not trial.against()
        return trial

    with opened:
        yield make


def only(findings: Iterator[Finding]) -> Finding:
    (finding,) = findings
    return finding


# one action


def test_a_solution_of_one_action_is_refused_on_any_seed(start: Start) -> None:
    source = game(
        "self.done[-2:] == ['look', self.right] or (self.seed == 13 and action == 'look')",
        "['look'] if self.seed == 13 else ['look', self.right]",
    )
    finding = only(check_one_action(start(source)))
    assert finding.reason is Reason.ONE_ACTION_WIN
    assert (finding.seed, finding.actions) == (13, ("look",))


def test_only_the_actions_count_that_the_win_takes(start: Start) -> None:
    source = game("action == self.right", "[self.right, 'look', 'look']")
    assert only(check_one_action(start(source))).actions != ()


@pytest.mark.parametrize(
    ("wins", "refused"),
    [
        ("action == 'blue'", True),
        ("action == 'blue' and self.seed % 5", True),
        ("action == 'blue' and self.seed % 2", False),
        ("action == self.right", False),
    ],
)
def test_one_and_the_same_command_may_not_win_on_most_seeds(
    start: Start, wins: str, refused: bool
) -> None:
    source = game(f"({wins}) or self.done[-2:] == ['look', 'up']", "['look', 'up']")
    found = list(check_one_action(start(source)))
    assert [finding.reason for finding in found] == [Reason.ONE_ACTION_WIN] * refused
    assert all(finding.actions == ("blue",) for finding in found)


def test_the_same_place_in_what_is_on_offer_is_the_same_choice(start: Start) -> None:
    source = game(
        "action == self.right or self.done[-2:] == ['look', 'up']",
        "['look', 'up']",
        words=tuple(f"word{number}" for number in range(40)),
    ).replace(
        'return note + " Reply with one of: red, blue, green, white."',
        "return note + f' Reply with one of: wait, {self.right}, stop.'",
    )
    trial = start(source)
    finding = only(check_one_action(trial))
    assert finding.reason is Reason.ONE_ACTION_WIN
    assert "20 of 20 seeds" in finding.detail
    assert trial.tally["once"] == (20, 20)


def test_blanks_of_commands_are_filled_to_try_them(start: Start) -> None:
    source = game(
        "action == 'open 7' or self.done[-2:] == ['look', 'up']",
        "['look', 'up']",
        offer="Doors 7 to 7. Commands: open <door>.",
    )
    assert only(check_one_action(start(source))).actions == ("open 7",)


def test_where_the_last_action_alone_wins_there_is_a_warning(start: Start) -> None:
    source = game(
        "action == 'say ' + str(self.right)",
        "['look', 'say ' + str(self.right)]",
        offer="Commands: look, say <number>.",
        words=tuple(map(str, range(1000, 1900))),
    )
    finding = only(check_one_action(start(source)))
    assert finding.reason is Reason.ANSWERABLE_AT_ONCE
    assert len(finding.actions) == 1


def test_there_is_none_where_it_wins_on_some_seeds_only(start: Start) -> None:
    source = game(
        "action == 'say ' + str(self.right) and (self.seed % 4 or 'look' in self.done)",
        "['look', 'say ' + str(self.right)]",
        offer="Commands: look, say <number>.",
        words=tuple(map(str, range(1000, 1900))),
    )
    assert not list(check_one_action(start(source)))


# agents


def test_a_good_environment_passes_and_tells_how_often_each_agent_won(start: Start) -> None:
    trial = start(LOCKER)
    assert not [*check_one_action(trial), *check_unthinking_agents(trial)]
    assert trial.tally == {
        "once": (0, 6),
        "null": (0, 3),
        "repeating": (0, 6),
        "random": (0, RANDOM_WORDS.looks[0].episodes),
        "scraping": (0, SCRAPING.looks[0].episodes),
        "copying": (0, COPYING.looks[0].episodes),
    }
    assert not trial.against()


def test_plays_are_kept_for_the_checks_that_follow(start: Start) -> None:
    trial = start(LOCKER)
    list(check_unthinking_agents(trial))
    assert len(trial.idle) == 3
    assert all(set(play.actions) == {""} for play in trial.idle)
    assert 12 <= len(trial.kept) <= 20
    assert set(trial.first) == set(trial.seeds)


def test_doing_nothing_is_tried_with_all_turns_there_are(start: Start) -> None:
    source = game(
        "(len(self.done) == 15 and not any(self.done)) or self.done[-2:] == ['look', 'up']",
        "['look', 'up']",
        turns=16,
    )
    trial = start(source)
    assert trial.horizon < 15
    finding = only(check_unthinking_agents(trial))
    assert finding.reason is Reason.NULL_AGENT_WINS
    assert finding.actions == ("",) * 15


@pytest.mark.parametrize(("share", "refused"), [("True", True), ("self.seed % 2", False)])
def test_a_command_may_not_win_by_being_repeated(start: Start, share: str, refused: bool) -> None:
    source = game(
        f"(self.done == ['red'] * 4 and {share}) or self.done[-2:] == ['look', 'up']",
        "['look', 'up']",
    )
    found = list(check_unthinking_agents(start(source)))
    assert [finding.reason for finding in found] == [Reason.REPEATING_AGENT_WINS] * refused
    assert all(finding.actions == ("red",) * 4 for finding in found)


def test_random_words_may_not_win(start: Start) -> None:
    source = game(
        "len({word for text in self.done for word in text.split()}) > 9 or self.done[-2:] == ['look', 'up']",
        "['look', 'up']",
        offer="Say yes.",
    )
    trial = start(source)
    finding = only(check_unthinking_agents(trial))
    assert finding.reason is Reason.RANDOM_AGENT_WINS
    won, played = trial.tally["random"]
    assert f"{won} of {played}" in finding.detail


@pytest.mark.parametrize(
    ("wins", "refused"),
    [
        ("'pull ' + self.right in self.done[1:]", True),  # 0.87 of plays at random
        ("self.done.count('pull ' + self.right) > 1", True),  # 0.63
        ("self.done.count('pull ' + self.right) > 3", False),  # 0.11
        ("self.done[-3:] == ['pull ' + self.right] * 3", False),  # 0.07
    ],
)
def test_choosing_at_random_among_commands_on_offer_may_not_win(
    start: Start, wins: str, refused: bool
) -> None:
    source = game(
        f"{wins} and set(self.done) != {{self.done[0]}} or self.done == ['look', 'up', 'in']",
        "['look', 'up', 'in']",
        offer="Commands: pull red, pull blue, pull green, pull white.",
    )
    trial = start(source)
    found = list(check_unthinking_agents(trial))
    assert [finding.reason for finding in found] == [Reason.SCRAPING_AGENT_WINS] * refused
    assert ("copying" in trial.tally) is not refused


def test_copying_what_was_read_may_not_win(start: Start) -> None:
    """What is to be said is told: `the word is`, a quotation, and a bare last word of a clause."""
    source = game(
        "self.done[-3:] == [str(self.seed + number) * 3 for number in range(3)]",
        "[str(self.seed + number) * 3 for number in range(3)]",
    ).replace(
        'return note + " Reply with one of: red, blue, green, white."',
        "return note + f' The word is {str(self.seed + len(self.done) % 3) * 3}. Say it.'",
    )
    finding = only(check_unthinking_agents(start(source, seeds=10)))
    assert finding.reason is Reason.COPYING_AGENT_WINS


def test_where_one_action_wins_the_agents_are_not_asked(start: Start) -> None:
    wins = "action == 'blue' or self.done[-2:] == ['look', 'up']"
    trial = start(game(wins, "['look', 'up']"))
    assert len(list(check_one_action(trial))) == 1
    assert not list(check_unthinking_agents(trial))


def test_an_environment_that_offers_nothing_is_tried_all_the_same(start: Start) -> None:
    source = game("self.done[-2:] == ['look', 'up']", "['look', 'up']", offer="Hm.")
    trial = start(source)
    assert not [*check_one_action(trial), *check_unthinking_agents(trial)]
    assert trial.tally["repeating"] == (0, 0)
    assert trial.tally["scraping"][0] == 0


def test_a_broken_step_is_noted_and_nothing_is_made_of_it(start: Start) -> None:
    source = game(
        "self.done[-2:] == ['look', 'up'] or (action == 'white' and 1 / 0)", "['look', 'up']"
    )
    trial = start(source)
    assert not [*check_one_action(trial), *check_unthinking_agents(trial)]
    assert {finding.reason for finding in trial.against()} == {Reason.STEP_RAISED}


def test_a_lost_worker_ends_the_search(start: Start) -> None:
    source = game(
        "self.done[-2:] == ['look', 'up'] or (action == '' and len([0] * 10**9))", "['look', 'up']"
    )
    trial = start(source)
    assert not list(check_unthinking_agents(trial))
    assert Reason.MEMORY in {finding.reason for finding in trial.against()}


def test_two_seeds_will_do(start: Start) -> None:
    trial = start(LOCKER, seeds=2)
    assert not [*check_one_action(trial), *check_unthinking_agents(trial)]
    assert set(trial.first) == {0, 1}


def test_the_same_source_gives_the_same_findings_and_tallies(start: Start) -> None:
    source = game(
        "self.done.count(self.right) > 1 or self.done == ['look', 'up', 'in']",
        "['look', 'up', 'in']",
    )
    runs = []
    for _ in range(2):
        trial = start(source)
        found = [*check_one_action(trial), *check_unthinking_agents(trial)]
        runs.append(([finding.to_json() for finding in found], trial.tally))
    assert runs[0] == runs[1]
    assert runs[0][0]


def test_where_actions_are_tool_calls_text_is_said_as_an_answer(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = start(LOCKER)
    trial.record = replace(trial.record, action_format="tools")
    said: list[str] = []
    play = Trial.play

    def listen(self: Trial, cast: list[Cast]) -> list[Play]:
        plays = play(self, cast)
        said.extend(action for each in plays for action in each.actions)
        return plays

    monkeypatch.setattr(Trial, "play", listen)
    assert not list(check_unthinking_agents(trial))
    assert "scraping" not in trial.tally
    assert all(text == "" or text.startswith('{"answer":"') for text in said)
    assert any(text.startswith('{"answer":"') for text in said)


# how sure the verdicts are


def refusal(looks: tuple[tuple[int, int, int], ...], rate: float) -> float:
    """The probability that an agent that wins at that rate has its environment refused."""
    going, refused, before = {0: 1.0}, 0.0, 0
    for episodes, passes, limit in looks:
        more = episodes - before
        after: dict[int, float] = {}
        for wins, share in going.items():
            for new in range(more + 1):
                luck = comb(more, new) * rate**new * (1 - rate) ** (more - new)
                after[wins + new] = after.get(wins + new, 0.0) + share * luck
        refused += sum(share for wins, share in after.items() if wins >= limit)
        going = {wins: share for wins, share in after.items() if passes < wins < limit}
        before = episodes
    assert not going
    return refused


def test_the_verdict_on_scraping_is_as_sure_as_it_says() -> None:
    assert refusal(SCRAPING.looks, LUCK) <= 0.05
    assert refusal(SCRAPING.looks, 0.15) <= 0.005
    assert refusal(SCRAPING.looks, 0.4) >= 0.85
    assert refusal(SCRAPING.looks, 0.5) >= 0.98


def test_the_verdicts_on_random_words_and_on_copying_are_as_sure() -> None:
    assert refusal(RANDOM_WORDS.looks, 0.002) <= 0.005
    assert refusal(RANDOM_WORDS.looks, 0.2) >= 0.97
    assert refusal(COPYING.looks, 0.05) <= 0.003
    assert refusal(COPYING.looks, 0.5) >= 0.97
