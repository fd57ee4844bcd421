from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from synthgym.sandbox import Pool
from synthgym.sandbox.results import ResetResult, StepResult
from synthgym.validation import Report, pipeline, validate
from synthgym.validation.gates import GATES
from synthgym.validation.interaction_checks import _keeping_at_any_turn, _telling
from synthgym.validation.plays import Cast, Play, Trial

DATA = Path(__file__).parents[1] / "data"
LOCKER = (DATA / "good_envs" / "locker.py").read_text()
RADIO = (DATA / "bad_envs" / "ignores-actions.py").read_text()
BRIDGE = (DATA / "bad_envs" / "no-state.py").read_text()
MINE = {"load", "reset", "witness", "robustness", "interaction"}
CODE = '''
"""Code. Find a code of four different digits, 1 to 6, by asking for digits and by guessing."""
import random


class CodeEnv:
    max_turns = 12

    def reset(self, seed):
        self.code = "".join(random.Random(seed).sample("123456", 4))
        self.turn = self.asked = 0
        return "Four different digits, 1 to 6. Commands: guess <digits>, ask <digit>.", {}

    def step(self, action):
        self.turn += 1
        verb, _, digits = action.partition(" ")
        legal = len(digits) == {"ask": 1, "guess": 4}.get(verb) and set(digits) <= set("123456")
        self.asked += legal
        LIMIT
        note, over = "Ask or guess.", False
        if legal and verb == "ask":
            note = "It is in it." if digits in self.code else "It is not in it."
        elif legal:
            over = digits == self.code
            note = f"In their places: {sum(a == b for a, b in zip(digits, self.code))}."
        return f"{note} COUNT", float(over), over, False, {}

    def hint(self, level=2):
        return "Ask first."

    def solution(self):
        return [*(f"ask {digit}" for digit in "123456"), f"guess {self.code}"]
'''
Run = Callable[..., Report]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=100) as pool:
        yield pool


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps each call of a trial has played."""
    counted: list[int] = []
    played = Trial.play

    def play(self: Trial, cast: Sequence[Cast], *, judged: bool = True) -> list[Play]:
        plays = played(self, cast, judged=judged)
        counted.append(sum(len(play.steps) for play in plays))
        return plays

    monkeypatch.setattr(Trial, "play", play)
    return counted


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, pool: Pool) -> Run:
    """Validates with the gates up to the witness, robustness and interaction."""

    def run(source: str, dialect: str = "program") -> Report:
        monkeypatch.setattr(pipeline, "GATES", tuple(gate for gate in GATES if gate.name in MINE))
        return validate(source, pool=pool, dialect=dialect)

    return run


def code(count: str = "", limit: str = "pass") -> str:
    return CODE.replace("COUNT", count).replace("LIMIT", limit)


def radio(before: str = "", after: str = "") -> str:
    """The coast radio, with something said around each call."""
    source = RADIO.replace("self.turn = 0\n", "self.turn = 0\n        self.log = []\n")
    source = source.replace(
        "return self.call(), 0.0",
        f'self.log.append(action)\n        return f"{before}{{self.call()}}{after}", 0.0',
    )
    assert source.count("self.log") >= 2
    return source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("You said: {action}. ", ""),
        ("You said {action.upper()!r}. ", ""),
        ("Your word, {(action.split() or [''])[-1]}, is noted. ", ""),
        ("", " So far: {'; '.join(self.log)}."),
        ("", " Turn {self.turn}, {6 - self.turn} left."),
    ],
)
def test_echoes_and_counters_do_not_make_up_for_ignoring_actions(
    before: str, after: str, run: Run
) -> None:
    report = run(radio(before, after))
    assert report.reasons == {"ignores-actions"}, [str(finding) for finding in report.findings]
    (finding,) = report.findings
    assert finding.actions
    assert finding.seed == 0


@pytest.mark.parametrize(
    "before",
    [
        "{'Right' if self.right == self.turn else 'Wrong'}. ",
        "{self.right} right answers. ",
        "{'' if self.right else 'The line is bad. '}",
        "{'A ship hoots. ' if 'show south' in self.log else ''}",
    ],
)
def test_one_word_that_tells_what_was_done_is_enough(before: str, run: Run) -> None:
    report = run(radio(before))
    assert report.findings == (), [str(finding) for finding in report.findings]


def test_a_look_that_alone_tells_something_is_found_among_the_commands_on_offer(run: Run) -> None:
    source = RADIO.replace("Command: show <lamp>.", "Commands: look, show <lamp>.").replace(
        "return self.call(), 0.0",
        "text = f'{self.right} right. ' if action == 'look' else ''\n"
        "        return text + self.call(), 0.0",
    )
    assert run(source).findings == ()


@pytest.mark.parametrize(
    "count",
    [
        "",
        "Turn {self.turn}.",
        "{12 - self.turn} turns left, this was number {self.turn}.",
        "{self.asked} questions so far.",
        "{30 - self.asked} questions left.",
    ],
)
def test_counting_does_not_make_up_for_having_no_state(count: str, run: Run) -> None:
    report = run(code(count))
    assert report.reasons == {"no-state"}, [str(finding) for finding in report.findings]


@pytest.mark.parametrize(
    "limit",
    [
        "if self.asked > 7: return 'Nobody answers any more.', 0.0, False, False, {}",
        "if self.asked > 7: return 'That was too much.', 0.0, True, False, {}",
        "legal = legal and (verb == 'ask' or self.asked > 4)",
        "legal = legal and (self.asked + self.turn) % 3 > 0",
    ],
)
def test_a_limit_that_decides_what_follows_is_state(limit: str, run: Run) -> None:
    report = run(code("", limit))
    assert report.findings == (), [str(finding) for finding in report.findings]


def test_numbers_that_depend_on_the_way_are_state(run: Run) -> None:
    """A place on a line: two ways of its own actions differ in nothing but a number."""
    source = code(
        "Dial at {self.dial}.", "self.dial = (self.dial * 3 + ord(action[-1:] or ' ')) % 7"
    )
    source = source.replace("self.turn = self.asked = 0", "self.turn = self.asked = self.dial = 0")
    assert run(source).findings == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return note, reward, True", "return f'{note} {self.right}', reward, True"),
        (
            'return f"{note}\\n{self.cart()}"',
            "return f\"{note} {'o' * self.right}\\n{self.cart()}\"",
        ),
        (
            "self.turn == len(self.carts)",
            "self.turn == len(self.carts) or self.right < self.turn - 1",
        ),
        (
            "self.turn == len(self.carts)",
            "self.turn == len(self.carts) or (action and self.right < self.turn - 2)",
        ),
    ],
)
def test_answers_that_are_remembered_are_state(old: str, new: str, run: Run) -> None:
    source = BRIDGE.replace("self.turn = 0", "self.turn = self.right = 0").replace(
        "        self.turn += 1\n", "        self.turn += 1\n        self.right += right\n"
    )
    assert old in source
    assert run(source).reasons == {"no-state"}
    report = run(source.replace(old, new))
    assert report.findings == (), [str(finding) for finding in report.findings]


def test_one_action_that_wins_is_left_to_its_own_reason(run: Run) -> None:
    source = code().replace(
        '[*(f"ask {digit}" for digit in "123456"), f"guess {self.code}"]', "[X]"
    )
    assert run(source.replace("[X]", '[f"guess {self.code}"]')).findings == ()


def test_tools_that_only_look_things_up_need_no_state(run: Run) -> None:
    shelves = (DATA / "spade" / "game_00001_000_data_retrieval.py").read_text()
    report = run(shelves, dialect="spade")
    assert report.findings == (), [str(finding) for finding in report.findings]


def test_where_whatever_is_wrong_ends_the_episode_nothing_is_refused(run: Run) -> None:
    source = LOCKER.replace(
        "return \"Nothing happens. Commands: 'take key', 'open <number>'.\", 0.0, False",
        'return "The guard comes.", 0.0, True',
    )
    assert source != LOCKER
    report = run(source)
    assert report.findings == (), [str(finding) for finding in report.findings]


def test_a_lasting_blank_is_told_from_an_end(run: Run) -> None:
    """Everything but the witness ends it at once, and the witness reads the same line throughout."""
    source = RADIO.replace(
        "return self.call(), 0.0, False", "return 'Go on.', 0.0, self.right < self.turn"
    )
    report = run(source)
    assert report.findings == (), [str(finding) for finding in report.findings]


def test_one_short_play_settles_it_for_an_ordinary_environment(run: Run, steps: list[int]) -> None:
    assert run(LOCKER).ok
    assert steps[-1] == 2  # as many as the witness has


def test_a_fault_on_an_ordinary_action_is_noted(run: Run) -> None:
    """The last action of the witness before the others."""
    source = LOCKER.replace(
        "words = action.split()\n", "words = action.split()\n        self.look(words)\n"
    )
    source += """
    def look(self, words):
        assert self.has_key or words != ["open", str(self.left + self.right)]
"""
    assert run(source).reasons == {"step-raised"}


def play(actions: str, seen: str, ends: str = "") -> Play:
    """A play by hand: a letter for each action and for each observation, `x` where it ended."""
    results = tuple(
        StepResult(text, 0.0, ends[at : at + 1] == "x", False, {}) for at, text in enumerate(seen)
    )
    return Play(0, ResetResult("start", {}), tuple(actions), results)


def test_plays_are_compared_from_the_first_different_action_to_the_first_end() -> None:
    one = play("abc", "123")
    assert _telling([[one, play("abc", "129")]]) == (
        False,
        0,
        False,
    )  # the environment's own affair
    assert _telling([[one, play("axc", "193")]]).differ
    assert _telling([[one, play("axc", "123")]]) == (False, 2, False)
    assert _telling([[one, play("axc", "129", "  x")]]) == (False, 1, True)
    assert _telling([[one, play("xbc", "a23")]]).differ
    assert _telling([[play("q", "q"), play("r", "r")]]) == (False, 1, False)  # echoes


def test_without_a_common_turn_an_action_is_compared_wherever_it_stands() -> None:
    assert _keeping_at_any_turn([[play("ab", "12"), play("b", "2")]]) == (False, 1, False)
    assert _keeping_at_any_turn([[play("ab", "1z"), play("b", "y")]]).differ
    assert (
        _keeping_at_any_turn([[play("ab", "12"), play("b", "7")]]).alike == 1
    )  # numbers may count
    assert _keeping_at_any_turn([[play("ab", "12", " x"), play("b", "2")]]).differ
    assert _keeping_at_any_turn([[play("a", "1")]]) == (False, 0, False)
