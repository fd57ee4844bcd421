"""Tasks as one-turn episodes: three ways of grading, and whose fault a failure is."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence

import pytest

from spade_loop.completers import JsonSchema, Reply
from spade_loop.episodes import Play
from spade_loop.errors import ConfigError, ContextError, MissingExtraError
from spade_loop.gap.grading import MAX_REPLY, TaskPlayer, prompt_of
from spade_loop.speaking import Decoding, Speaker
from spade_loop.tasks import Task
from spade_loop.types import Arm, Message, StopReason, Trajectory
from synthgym.sandbox import Pool

needs_math = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None, reason="math-verify is not installed"
)


class Saying:
    """A writer that says one thing. No model."""

    concurrent = True
    name = "saying"

    def __init__(self, text: str) -> None:
        self.text = text
        self.chats: list[list[Message]] = []

    def write(
        self,
        chats: Sequence[Sequence[Message]],
        *,
        max_tokens: int,
        temperature: float,
        seeds: Sequence[int],
        schema: JsonSchema | None = None,
        top_p: float = 1.0,
        top_k: int = 0,
    ) -> list[Reply]:
        self.chats += [list(chat) for chat in chats]
        if self.text == "FULL":
            raise ContextError("full")
        return [Reply(self.text, 1, True)] * len(chats)

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2) as pool:
        yield pool


Grade = Callable[[Task, str], Trajectory]


@pytest.fixture
def grade(pool: Pool) -> Grade:
    def grade(task: Task, reply: str) -> Trajectory:
        with TaskPlayer(
            Speaker(Saying(reply), rows=1), pool, [task], Decoding(max_tokens=8)
        ) as player:
            return player.play(Play(task.spec, 5, 0, Arm.PLAIN), 0)

    return grade


def task(check: str = "exact", answer: str = "", checker: str = "") -> Task:
    return Task(  # type: ignore[arg-type]
        id="t",
        prompt="P?",
        hint="H.",
        check=check,
        answer=answer,
        checker=checker,
        where="f, line 1",
    )


@pytest.mark.parametrize(
    ("answer", "reply", "score", "status"),
    [
        ("Canberra", "It is \\boxed{ canberra. }", 1.0, "ok"),
        ("Canberra", "<answer>Canberra</answer>", 1.0, "ok"),
        ("Canberra", "\\boxed{Sydney}", 0.0, "ok"),
        ("Canberra", "\\boxed{Canberra} or \\boxed{Sydney}", 0.0, "ok"),
        ("Canberra", "Canberra", 0.0, "no-action"),
        ("Canberra", "<think>\\boxed{Canberra}</think>", 0.0, "no-action"),
        ("Canberra", "", 0.0, "empty"),
        ("Canberra", " \n", 0.0, "empty"),
        ("Canberra", "\\boxed{Canb", 0.0, "unbalanced"),
    ],
)
def test_an_exact_answer(grade: Grade, answer: str, reply: str, score: float, status: str) -> None:
    found = grade(task(answer=answer), reply)
    assert (found.episode_return, found.success) == (score, score == 1.0)
    (turn,) = found.turns
    assert (turn.status, turn.reply, turn.reward) == (status, reply, score)
    assert found.stop is (StopReason.SUCCESS if score else StopReason.FAILURE)


@needs_math
def test_a_numeric_answer(pool: Pool) -> None:
    half, whole = task("numeric", "0.5"), task("numeric", "42")
    writer = Saying("")
    with TaskPlayer(Speaker(writer, rows=1), pool, [half, whole], Decoding(max_tokens=8)) as player:
        for own, reply, score in (
            (half, "\\boxed{\\frac{1}{2}}", 1.0),
            (whole, "<answer>42.0</answer>", 1.0),
            (whole, "\\boxed{43}", 0.0),
            (whole, "\\boxed{forty-two}", 0.0),
            (whole, "42", 0.0),
        ):
            writer.text = reply
            found = player.play(Play(own.spec, 5, 0, Arm.PLAIN), 0)
            assert found.episode_return == score, reply


@needs_math
def test_a_numeric_answer_that_is_none_is_told_at_once(grade: Grade) -> None:
    with pytest.raises(ConfigError, match=r"f, line 1: a numeric answer must be a number"):
        grade(task("numeric", "?"), "x")


def test_without_math_verify_the_extra_is_named(
    grade: Grade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"f, line 1: .*synthgym\[eval\]"):
        grade(task("numeric", "4"), "x")


CHECK = "def check(reply):\n    {}"


@pytest.mark.parametrize(
    ("body", "reply", "score"),
    [
        ("return 'yes' in reply", "oh yes", 1.0),
        ("return 'yes' in reply", "no", 0.0),
        ("return len(reply) / 10", "12345", 0.5),
        ("return reply == ''", "", 1.0),
        ("return len(reply) == 10000", "x" * 10_000, 1.0),
        ("return reply == 'ab' * 4095", "ab" * 4095, 1.0),
        ("return len(reply) == 4095", "x" * 4095, 1.0),
        ("return reply == '+='", "+=", 1.0),
        ("return reply == ' a\\n'", " a\n", 1.0),
        ("return 1", "x" * (MAX_REPLY + 1), 0.0),
    ],
)
def test_a_checker_sees_the_whole_reply(grade: Grade, body: str, reply: str, score: float) -> None:
    assert grade(task("python", checker=CHECK.format(body)), reply).episode_return == score


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return 1 / 0", "error"),
        ("return 2", "error"),
        ("return None", "error"),
        ("return float('nan')", "error"),
    ],
)
def test_a_checker_that_fails_is_not_the_agents_fault(pool: Pool, body: str, kind: str) -> None:
    own = task("python", checker=CHECK.format(body))
    with TaskPlayer(Speaker(Saying("x"), rows=1), pool, [own], Decoding(max_tokens=8)) as player:
        found = player.play(Play(own.spec, 5, 0, Arm.PLAIN), 0)
        assert found.stop is StopReason.FAULT
        assert found.fault is not None
        assert found.fault.kind == kind
        assert player.fails_again(found)


@pytest.mark.parametrize(
    ("checker", "told"),
    [
        ("x = 1", "must be Python that defines check"),
        ("def check(:", "its line 1: syntax error"),
        ("import os\ndef check(reply): return 1", "module 'os'"),
        ("1 / 0\ndef check(reply): return 1", "ZeroDivisionError"),
        ("#" * 70_000, "the checker is too long"),
        ("def check(reply): return open('/etc/passwd').read()", "open"),
    ],
)
def test_a_checker_that_cannot_be_loaded_is_told_before_anything_is_asked(
    grade: Grade, checker: str, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        grade(task("python", checker=checker), "x")
    assert str(caught.value).startswith("f, line 1: ")
    assert told in str(caught.value)


def test_a_full_context_is_no_answer(grade: Grade) -> None:
    found = grade(task(answer="x"), "FULL")
    assert (found.stop, found.turns, found.success) == (StopReason.CONTEXT, (), False)


def test_what_is_asked_in_each_arm() -> None:
    exact, checked = task(answer="x"), task("python", checker=CHECK.format("return 1"))
    box = "Write your final answer in \\boxed{}."
    assert prompt_of(exact, Arm.PLAIN) == f"P?\n\n{box}"
    assert prompt_of(exact, Arm.HINTED) == f"P?\n\nHint: H.\n\n{box}"
    assert prompt_of(checked, Arm.HINTED) == "P?\n\nHint: H."
    filler = prompt_of(checked, Arm.PLACEBO)
    assert filler.startswith("P?\n\nHint: ")
    assert "H." not in filler
