"""GPQA-Diamond (Rein et al. 2023, arXiv 2311.12022): 198 questions with four options each."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spade_loop.evaluation.hub import HubData, digest_of, field_of, rows_of
from spade_loop.evaluation.suite import Attempt, Item, Say, answered, spread, unread
from spade_loop.speaking import Decoding
from spade_loop.types import Message
from synthgym.envs import ActionFormat, ParseStatus, parse_action

SHUFFLE_SEED: Final = 42
"""The options of all questions are shuffled once, in the order of the data, by one generator with this seed."""
LETTERS: Final = "ABCD"
HUB: Final = HubData(
    repository="Idavidrein/gpqa",
    config="gpqa_diamond",
    access=(
        "its authors give access to those who agree, on that page, not to publish the questions; do so, make a token "
        "at https://huggingface.co/settings/tokens, and run `hf auth login`"
    ),
)
_OPTIONS: Final = (
    "Correct Answer",
    "Incorrect Answer 1",
    "Incorrect Answer 2",
    "Incorrect Answer 3",
)
_ASKED: Final = (
    "{question}\n\n{options}\n\nThink step by step. Put the letter of the right option, and nothing else, into "
    "\\boxed{{}}."
)
_LETTER: Final = re.compile(r"\(?\s*([A-D])\s*(?:[).:].*)?", re.IGNORECASE | re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    options: tuple[str, ...]
    right: str
    """The letter."""


class GpqaDiamond:
    """The suite `gpqa-diamond`."""

    name = "gpqa-diamond"
    decoding = Decoding(max_tokens=32_768, temperature=0.7, top_p=0.95)
    """Of the SPADE evaluation."""
    samples = 8

    def __init__(self, *, data: Path | None = None) -> None:
        """Load the questions: from `data` (the CSV of the authors, or JSON lines with its columns), or from the Hub.

        `ConfigError`, `ModelError` and `MissingExtraError` as `rows_of` has them.
        """
        generator = random.Random(SHUFFLE_SEED)
        items = []
        for number, row in enumerate(rows_of(data, HUB), start=1):
            options = [field_of(row, number, name) for name in _OPTIONS]
            order = generator.sample(range(len(options)), len(options))
            question = _Question(
                text=field_of(row, number, "Question"),
                options=tuple(options[i] for i in order),
                right=LETTERS[order.index(0)],
            )
            items.append(
                Item(
                    id=field_of({"number": number, **row}, number, "Record ID", "number"),
                    category=field_of(
                        {"none": "all", **row}, number, "High-level domain", "none"
                    ).lower(),
                    content=question,
                )
            )
        self._items = tuple(items)
        contents: list[_Question] = [item.content for item in items]
        self.version = f"1 (data {digest_of([(q.text, q.options, q.right) for q in contents])})"

    def items(self, limit: int | None) -> Sequence[Item]:
        """The questions, in the order of the data."""
        return spread(self._items, limit)

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        """One question, one letter: that of the last box outside of thinking, or of the last answer element."""
        del seed  # one answer, drawn by `say`
        question: _Question = item.content
        options = "\n".join(
            f"{letter}) {text}" for letter, text in zip(LETTERS, question.options, strict=True)
        )
        chat = [Message("user", _ASKED.format(question=question.text, options=options))]
        reply = say(chat)
        transcript = answered(chat, reply)
        parsed = parse_action(reply.text, [ActionFormat.BOXED, ActionFormat.ANSWER])
        letter = _LETTER.fullmatch(parsed.action) if parsed.status is ParseStatus.OK else None
        if letter is None:
            return unread(reply, transcript, f"{parsed.status}: {parsed.action[:200]!r}")
        right = letter[1].upper() == question.right
        return Attempt(
            score=float(right),
            correct=right,
            transcript=transcript,
            detail=f"answer {letter[1].upper()}, expected {question.right}",
        )

    def close(self) -> None:
        """Nothing is held."""
