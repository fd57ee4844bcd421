from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from synthgym.memory.behaviour import (
    ACTIONS,
    FIXED,
    SEEDS,
    Moment,
    Trace,
    actions_for,
    behaviour_equal,
    behaviour_trace,
    trace_of,
)
from synthgym.sandbox import EnvFault, Pool
from synthgym.spec import EnvRecord

SOURCE = '''
"""Pay the toll."""
import random


class TollEnv:
    max_turns = 30

    def reset(self, seed):
        self.rng = random.Random(seed)
        self.toll = self.rng.randint(10, 90)
        self.crowns = self.rng.randint(2, 9)
        self.street = self.rng.sample(["ash", "oak", "elm", "fir", "yew"], 3)
        return self._view("You stand at a bridge."), {}

    def _view(self, text):
        return (
            f"{text} The toll is {self.toll} and you have {self.crowns} of 100 crowns in a bag of "
            f"{' and '.join(self.street)}. Commands: `beg`, `pay`, `wait`."
        )

    def step(self, action):
        if action == "beg":
            self.crowns += self.rng.randint(1, 30)
            return self._view("A crown or more."), 0.0, False, False, {}
        if action == "pay":
            won = self.crowns >= self.toll
            return "You cross." if won else "Too little.", float(won), True, False, {}
        return self._view("Nothing."), 0.0, False, False, {}
'''
RESKIN = (
    SOURCE.replace("Pay the toll", "Fill the jar").replace("bridge", "very old jar of 7 litres")
    .replace("toll", "mark").replace("crown", "drop").replace("beg", "pour").replace("pay", "seal")
    .replace("wait", "look").replace("ash", "tin").replace("oak", "zinc")
)  # fmt: skip
OTHER = SOURCE.replace("randint(1, 30)", "randint(1, 20)")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=20) as pool:
        yield pool


def record(source: str) -> EnvRecord:
    return EnvRecord(source=source, entry="TollEnv", max_turns=30)


def traced(source: str, pool: Pool) -> Trace:
    found = behaviour_trace(record(source), pool)
    assert isinstance(found, Trace), found
    return found


def test_another_story_behaves_the_same_and_another_mechanism_does_not(pool: Pool) -> None:
    one, other = traced(SOURCE, pool), traced(RESKIN, pool)
    assert one == other
    assert behaviour_equal(one, other)
    assert one.numbers
    assert one.pattern
    assert not behaviour_equal(one, traced(OTHER, pool))


def test_a_trace_is_the_same_in_another_pool(pool: Pool) -> None:
    with Pool(hash_seed=7) as other:
        assert behaviour_trace(record(SOURCE), other) == traced(SOURCE, pool)


def test_other_rewards_are_another_behaviour(pool: Pool) -> None:
    other = traced(SOURCE.replace("float(won), True", "float(won) - 0.5, True"), pool)
    assert other.numbers == traced(SOURCE, pool).numbers
    assert not behaviour_equal(other, traced(SOURCE, pool))


def test_the_amount_of_a_reward_makes_no_difference(pool: Pool) -> None:
    half = SOURCE.replace("float(won), True", "float(won) / 2, True")
    assert traced(half, pool) == traced(SOURCE, pool)


def test_a_fault_of_a_reset_is_returned_and_one_of_a_step_is_an_outcome(pool: Pool) -> None:
    broken = SOURCE.replace("        self.toll =", "        1 / (seed - 2)\n        self.toll =")
    found = behaviour_trace(record(broken), pool)
    assert isinstance(found, EnvFault)
    assert found.call == "reset"
    fragile = SOURCE.replace(
        'if action == "beg"', 'if action == "1":\n            1 / 0\n        if action == "beg"'
    )
    assert traced(fragile, pool).outcomes != traced(SOURCE, pool).outcomes


def test_offered_commands_come_first_and_keep_their_places() -> None:
    ours = actions_for("Commands: `beg`, `pay <crowns>`, `wait`. The street: ash, oak and elm.")
    theirs = actions_for("Commands: `pour`, `seal <drops>`, `look`. The shelf: tin, zinc and iron.")
    assert len(ours) == len(theirs) == ACTIONS
    assert ours[:3] == ("beg", ours[1], "wait")
    assert theirs[:3] == ("pour", theirs[1], "look")
    words = dict(zip(("ash", "oak", "elm"), ("tin", "zinc", "iron"), strict=True))
    assert ours[1].split()[0] == "pay"
    assert words[ours[1].split()[1]] == theirs[1].split()[1]
    assert ours[12:] == theirs[12:] == FIXED[:4]
    assert actions_for("A wall.") == FIXED


def episodes(texts: list[str], outcome: str = "0") -> list[list[Moment]]:
    return [[Moment(text), Moment("", outcome)] for text in texts]


def test_numbers_of_the_text_itself_are_left_out() -> None:
    one = trace_of(episodes(["From 1 to 9: 12 and 15", "From 1 to 9: 31 and 7", "From 1 to 9: 8"]))
    other = trace_of(episodes(["15 beside 12 (of 50)", "7 beside 31 (of 50)", "only 08 (of 50)"]))
    assert one.numbers == other.numbers != ""


@pytest.mark.parametrize("texts", [["5"] * 3, ["1", "2", "2"], ["Go.", "Go.", "Go."]])
def test_what_hardly_differs_between_seeds_is_no_evidence(texts: list[str]) -> None:
    trace = trace_of(episodes(texts))
    assert trace.numbers == trace.pattern == ""
    assert not behaviour_equal(trace, trace)


def test_words_count_only_where_there_are_no_numbers() -> None:
    words = trace_of(episodes(["red blue", "blue green", "grey red"]))
    same = trace_of(episodes(["oak elm", "elm ash", "fir oak"]))
    other = trace_of(episodes(["oak elm", "ash elm", "fir oak"]))
    assert words.pattern == same.pattern != other.pattern
    assert behaviour_equal(words, same)
    assert not behaviour_equal(words, other)
    assert not behaviour_equal(words, replace(same, numbers="0" * 32))


def test_the_digest_covers_every_part() -> None:
    trace = trace_of(episodes(["red 1 2", "blue 3 4", "green grey 5"]))
    assert trace.digest.startswith("trace/1:")
    parts = ("outcomes", "numbers", "pattern")
    assert len({trace.digest, *(replace(trace, **{part: "x"}).digest for part in parts)}) == 4


def test_there_are_three_seeds() -> None:
    assert SEEDS == (0, 1, 2)
    assert len(FIXED) == len(set(FIXED)) == ACTIONS
