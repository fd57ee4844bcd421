"""AIME 2025 and 2026: thirty problems each, whose answers are whole numbers from 0 to 999."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from spade_loop.errors import ConfigError, MissingExtraError
from spade_loop.evaluation.grading import Graders, GradingError
from spade_loop.evaluation.hub import HubData, digest_of, field_of, rows_of
from spade_loop.evaluation.suite import Attempt, Failure, Item, Say, answered, spread, unread
from spade_loop.speaking import Decoding
from spade_loop.types import Message
from synthgym.envs import ActionFormat, ParseStatus, parse_action

SECONDS: Final = 20.0
"""What math-verify may take for one answer."""
_GRADER: Final = "spade_loop.evaluation.graders.math_answers:equal"
_ASKED: Final = (
    "{problem}\n\nThink step by step. Put your final answer, which is a whole number from 0 to 999, into "
    "\\boxed{{}}."
)
_WHOLE: Final = re.compile(r"0*([0-9]{1,3})", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Problem:
    text: str
    answer: str


class Aime:
    """One year of the contest."""

    decoding = Decoding(max_tokens=32_768, temperature=1.0, top_p=0.95, top_k=20)
    """Of the SPADE evaluation."""
    samples = 64

    def __init__(self, year: int, data: Path | None) -> None:
        """Load the problems. `ConfigError`, `ModelError` and `MissingExtraError` as `rows_of` has them."""
        try:
            installed = metadata.version("math-verify")
        except metadata.PackageNotFoundError as error:
            raise MissingExtraError(
                "answers are compared by math-verify: pip install 'synthgym[eval]'"
            ) from error
        self.name = f"aime-{year}"
        self._items = _items(self.name, data, HubData(repository=f"MathArena/aime_{year}"))
        content = digest_of([(i.content.text, i.content.answer) for i in self._items])
        self.version = f"1 (data {content}, math-verify {installed})"
        self._graders = Graders(seconds=SECONDS)

    def items(self, limit: int | None) -> Sequence[Item]:
        """The problems, in the order of the data."""
        return spread(self._items, limit)

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        """One problem, one answer: the last box outside of thinking."""
        del seed  # one answer, drawn by `say`
        problem: _Problem = item.content
        chat = [Message("user", _ASKED.format(problem=problem.text))]
        reply = say(chat)
        transcript = answered(chat, reply)
        parsed = parse_action(reply.text, [ActionFormat.BOXED])
        if parsed.status is not ParseStatus.OK:
            return unread(reply, transcript, str(parsed.status))
        whole = _WHOLE.fullmatch(parsed.action)
        try:
            # Numbers that are written as such need no algebra.
            right = (
                int(parsed.action) == int(problem.answer)
                if whole
                else self._graders.call(_GRADER, expected=problem.answer, answer=parsed.action)
            )
        except GradingError as error:
            return Attempt.failed(Failure.CHECKER, transcript, str(error))
        return Attempt(
            score=float(right),
            correct=bool(right),
            transcript=transcript,
            detail=f"answer {parsed.action[:200]}, expected {problem.answer}",
        )

    def close(self) -> None:
        """End the graders."""
        self._graders.close()


def aime_2025(*, data: Path | None = None) -> Aime:
    """The suite `aime-2025`; `data` is a file of JSON lines with `problem` and `answer`, in place of the Hub."""
    return Aime(2025, data)


def aime_2026(*, data: Path | None = None) -> Aime:
    """The suite `aime-2026`, likewise."""
    return Aime(2026, data)


def _items(name: str, data: Path | None, hub: HubData) -> tuple[Item, ...]:
    items = []
    for number, row in enumerate(rows_of(data, hub), start=1):
        answer = field_of(row, number, "answer", "label", "Answer")
        if not _WHOLE.fullmatch(answer):
            raise ConfigError(
                f"row {number} of the data: expected an answer from 0 to 999, got {answer!r}"
            )
        text = field_of(row, number, "problem", "question", "Problem")
        items.append(
            Item(id=f"{name}/{number}", category=name, content=_Problem(text, str(int(answer))))
        )
    return tuple(items)
