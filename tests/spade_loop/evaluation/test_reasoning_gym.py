"""Reasoning Gym: the list of tasks, the items, the grading; with the package where it is installed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from spade_loop.completers import Reply
from spade_loop.errors import ConfigError
from spade_loop.evaluation.grading import Graders, GradingError
from spade_loop.evaluation.suite import Failure
from spade_loop.evaluation.suites.reasoning_gym import (
    DATASET_SEED,
    ITEMS,
    SIZE,
    UNGENERATED,
    ReasoningGym,
    hard_settings,
    indices,
)

FIXED = (432, 68, 489, 121, 120, 318, 406, 165)
"""Items of every dataset in the SPADE evaluation."""
NO_ORACLE = {"graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
"""Datasets that keep no answer: they judge what is proposed."""
GRADER = "spade_loop.evaluation.graders.reasoning_gym"


@pytest.fixture(scope="module")
def graders() -> Iterator[Graders]:
    pytest.importorskip("reasoning_gym", reason="needs the extra `eval`", exc_type=ImportError)
    with Graders(processes=2, seconds=60.0) as made:
        yield made


def asked(name: str, index: int = FIXED[0]) -> dict:
    (parameters,) = [names[name] for names in hard_settings().values() if name in names]
    return {
        "name": name, "parameters": parameters, "size": SIZE, "seed": DATASET_SEED, "index": index,
    }  # fmt: skip


def test_there_are_a_hundred_datasets_in_four_categories() -> None:
    counts = {category: len(names) for category, names in hard_settings().items()}
    assert counts == {"math": 31, "algorithmic": 36, "cognition": 24, "logic": 9}
    names = [name for names in hard_settings().values() for name in names]
    assert len(set(names)) == 100


def test_items_are_those_that_the_seeding_rule_draws() -> None:
    # The rule as it is meant: the global generator, seeded with the number of the episode, chooses an item.
    state = random.getstate()
    try:
        drawn = []
        for episode in range(ITEMS):
            random.seed(episode)
            drawn.append(random.choice(range(SIZE)))
    finally:
        random.setstate(state)
    assert indices(ITEMS) == tuple(drawn) == FIXED


def test_more_items_begin_with_the_eight_and_none_comes_twice() -> None:
    assert indices(100)[:ITEMS] == FIXED
    assert sorted(indices(SIZE)) == list(range(SIZE))


def scored(graders: Graders, name: str, answer: str) -> float:
    """A score; 0 where the scorer raises, as some do on what is no answer at all."""
    try:
        return float(graders.call(f"{GRADER}:score", **asked(name, 68), answer=answer))
    except GradingError:
        return 0.0


@pytest.mark.slow
def test_every_dataset_takes_its_settings_and_scores_its_own_answer(graders: Graders) -> None:
    names = [name for names in hard_settings().values() for name in names]
    for name in names:
        assert graders.call(f"{GRADER}:question", **asked(name, 68)).strip()
        answer = graders.call(f"{GRADER}:oracle", **asked(name, 68))
        assert (answer is None) == (name in NO_ORACLE), name
        if answer is not None:
            assert graders.call(f"{GRADER}:score", **asked(name, 68), answer=answer) == 1.0, name
            assert scored(graders, name, "mist") < 1.0, name


@pytest.mark.slow
def test_items_that_depend_on_the_order_of_a_set_are_the_same_for_everyone(
    graders: Graders,
) -> None:
    names = ("isomorphic_strings", "ransom_note", "word_ladder", "polynomial_multiplication")
    with Graders(processes=1) as fresh:
        for name in names:
            said = [g.call(f"{GRADER}:question", **asked(name)) for g in (graders, fresh)]
            assert said[0] == said[1], name


@pytest.mark.parametrize("name", ["string_insertion", "spiral_matrix", "n_queens", "countdown"])
@pytest.mark.parametrize(
    "attack",
    [
        "__import__('os')._exit(9)",
        "[].__class__.__base__.__subclasses__()",
        "exit(9)",
        "print.__self__.exit()",
    ],
)
def test_an_answer_that_is_a_program_is_not_run(graders: Graders, name: str, attack: str) -> None:
    # A dead grader would be a GradingError, and end the test.
    assert graders.call(f"{GRADER}:score", **asked(name), answer=attack) < 1.0


def test_an_answer_that_is_a_list_is_still_read(graders: Graders) -> None:
    answer = graders.call(f"{GRADER}:oracle", **asked("spiral_matrix"))
    listed = f"[{', '.join(answer.split())}]"
    assert (
        graders.call(f"{GRADER}:score", **asked("spiral_matrix"), answer=listed) == 0.1
    )  # what it gives for the right numbers in another form
    answer = graders.call(f"{GRADER}:oracle", **asked("string_insertion"))
    assert (
        graders.call(f"{GRADER}:score", **asked("string_insertion"), answer=str(list(answer))) > 0.0
    )


@pytest.fixture(scope="module")
def suite() -> Iterator[ReasoningGym]:
    pytest.importorskip("reasoning_gym", reason="needs the extra `eval`", exc_type=ImportError)
    made = ReasoningGym(per_task=2, tasks=("chain_sum", "number_sequence"), processes=1)
    yield made
    made.close()


def test_items_are_listed_by_dataset_and_a_limit_takes_of_each(suite: ReasoningGym) -> None:
    assert [item.id for item in suite.items(None)] == [
        "chain_sum/432", "chain_sum/68", "number_sequence/432", "number_sequence/68",
    ]  # fmt: skip
    assert [i.id for i in suite.items(2)] == ["chain_sum/432", "number_sequence/432"]
    assert [i.category for i in suite.items(2)] == ["math", "cognition"]


@pytest.mark.parametrize(
    ("reply", "correct", "failure"),
    [
        ("<think><answer>1</answer></think>I get <answer>0</answer>, no: <answer>26728</answer>", True, ""),
        (r"It is \boxed{26728}.", True, ""),
        (r"<answer>26728</answer> or \boxed{5}", True, ""),
        ("<answer>26729</answer>", False, ""),
        ("It is 26728.", False, Failure.UNPARSED),
        ("", False, Failure.EMPTY),
    ],
)  # fmt: skip
def test_the_last_answer_counts_then_the_last_box(
    suite: ReasoningGym, reply: str, correct: bool, failure: str
) -> None:
    item = suite.items(None)[0]
    asked: list[str] = []

    def say(chat):
        asked.append(chat[-1].content)
        return Reply(reply.replace("26728", str(answer)), 1, True)

    answer = suite._graders.call(f"{GRADER}:oracle", **item.content.arguments())
    attempt = suite.play(item, say, 0)
    assert (attempt.correct, attempt.failure) == (correct, failure)
    assert attempt.score == 1.0 if correct else attempt.score < 1.0
    assert "<answer>" in asked[0]
    assert [m.role for m in attempt.transcript] == ["user", "assistant"]


def test_a_question_that_cannot_be_made_is_wrong_for_everyone(suite: ReasoningGym) -> None:
    # Item 121 squares a number again and again: it would take hours.
    suite_121 = ReasoningGym(per_task=4, tasks=("number_sequence",), processes=1)
    suite_121._graders.close()
    suite_121._graders = Graders(processes=1, seconds=2.0)
    try:
        item = suite_121.items(None)[3]
        assert item.id == "number_sequence/121"
        attempt = suite_121.play(item, lambda chat: pytest.fail("was asked"), 0)
    finally:
        suite_121.close()
    assert (attempt.failure, attempt.counted, attempt.score) == (UNGENERATED, True, 0.0)


def test_a_scorer_that_fails_is_counted(
    suite: ReasoningGym, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = suite._graders.call

    def call(target, /, **arguments):
        if target.endswith(":score"):
            raise GradingError("late")
        return real(target, **arguments)

    monkeypatch.setattr(suite._graders, "call", call)
    attempt = suite.play(suite.items(None)[0], lambda chat: Reply("<answer>1</answer>", 1, True), 0)
    assert (attempt.failure, attempt.detail) == (Failure.CHECKER, "late")
    assert len(attempt.transcript) == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tasks": ("chainsum",)}, "no task 'chainsum'; did you mean 'chain_sum'"),
        ({"categories": ("maths",)}, "no category 'maths'; did you mean 'math'"),
        ({"per_task": 0}, r"1\.\.500, got 0"),
    ],
)
def test_what_does_not_exist_is_refused(options: dict, told: str) -> None:
    pytest.importorskip("reasoning_gym", reason="needs the extra `eval`", exc_type=ImportError)
    with pytest.raises(ConfigError, match=told):
        ReasoningGym(**options)
