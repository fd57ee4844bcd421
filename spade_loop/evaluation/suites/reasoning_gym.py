"""Reasoning Gym at its hard settings: 100 generators in four categories, each item one question and one answer.

Settings and categories are in `reasoning_gym_hard.toml`. Datasets have 500 items from seed 42; item numbers are those
that the SPADE evaluation draws. There, a task that raises is left out of the rates; here, it counts as wrong. There,
the prompt asks for a box and for an answer element; here, for an answer element, and a box is read where there is none.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata, resources
from typing import Any, Final

from spade_loop.errors import ConfigError, MissingExtraError
from spade_loop.evaluation.grading import Graders, GradingError
from spade_loop.evaluation.suite import Attempt, Failure, Item, Say, answered, spread, unread
from spade_loop.speaking import Decoding
from spade_loop.types import Message
from synthgym.envs import ActionFormat, ParseStatus, parse_action
from synthgym.ids import did_you_mean

SIZE: Final = 500
"""Items of each dataset."""
DATASET_SEED: Final = 42
ITEMS: Final = 8
"""Items of each dataset that are asked."""
SECONDS: Final = 30.0
"""What a dataset may take to make one question, or to score one answer."""
UNGENERATED: Final = "ungenerated"
"""The dataset could not make the question in time; such an item is wrong for every model."""
DISTRIBUTION: Final = "reasoning-gym"
_DATA: Final = "reasoning_gym_hard.toml"
_GRADER: Final = "spade_loop.evaluation.graders.reasoning_gym"
_ASKED: Final = (
    "{question}\n\nThink about it as long as you need. Then give your final answer, and nothing else, between <answer> "
    "and </answer>."
)
_FORMATS: Final = (ActionFormat.ANSWER, ActionFormat.BOXED)


@dataclass(frozen=True, slots=True)
class _Question:
    """Which item of which dataset."""

    name: str
    parameters: dict[str, Any]
    index: int

    def arguments(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "parameters": self.parameters,
            "size": SIZE,
            "seed": DATASET_SEED,
            "index": self.index,
        }


class ReasoningGym:
    """The suite `reasoning-gym`."""

    name = "reasoning-gym"
    decoding = Decoding(max_tokens=8192, temperature=0.6, top_p=0.8, top_k=20)
    """Of the SPADE evaluation."""
    samples = 1

    def __init__(
        self,
        *,
        per_task: int = ITEMS,
        categories: tuple[str, ...] = (),
        tasks: tuple[str, ...] = (),
        processes: int = 2,
    ) -> None:
        """`per_task` items of each dataset: of all, or of some categories and tasks. `processes` make and score them.

        `ConfigError` for a name that does not exist, `MissingExtraError` without the package.
        """
        if not 1 <= per_task <= SIZE:
            raise ConfigError(f"per_task must lie in 1..{SIZE}, got {per_task}")
        try:
            installed = metadata.version(DISTRIBUTION)
        except metadata.PackageNotFoundError as error:
            raise MissingExtraError(
                f"the suite needs the package {DISTRIBUTION}: pip install 'synthgym[eval]'"
            ) from error
        self.version = f"1 ({DISTRIBUTION} {installed})"
        self._per_task = per_task
        self._settings = _chosen(hard_settings(), categories, tasks)
        self._graders = Graders(processes=processes, seconds=SECONDS)

    def items(self, limit: int | None) -> Sequence[Item]:
        """Dataset by dataset; a limit takes from all datasets in turn."""
        listed = [
            Item(
                id=f"{name}/{index}",
                category=category,
                content=_Question(name, parameters, index),
            )
            for category, tasks in self._settings.items()
            for name, parameters in tasks.items()
            for index in indices(self._per_task)
        ]
        return spread(listed, limit, by=lambda item: item.id.partition("/")[0])

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        """One question, one answer; correct when the dataset's own score reaches 1."""
        del seed  # one answer, drawn by `say`
        asked: _Question = item.content
        try:
            text = self._graders.call(f"{_GRADER}:question", **asked.arguments())
        except GradingError as error:
            return Attempt.failed(UNGENERATED, detail=str(error))
        chat = [Message("user", _ASKED.format(question=text))]
        reply = say(chat)
        transcript = answered(chat, reply)
        parsed = parse_action(reply.text, _FORMATS)
        if parsed.status is not ParseStatus.OK:
            return unread(reply, transcript, str(parsed.status))
        try:
            score = self._graders.call(
                f"{_GRADER}:score", **asked.arguments(), answer=parsed.action
            )
        except GradingError as error:
            return Attempt.failed(Failure.CHECKER, transcript, str(error))
        return Attempt(
            score=min(1.0, max(0.0, score)),
            correct=score >= 1.0,
            transcript=transcript,
            detail=f"answer: {parsed.action[:200]}",
        )

    def close(self) -> None:
        """End the graders."""
        self._graders.close()


def indices(count: int) -> tuple[int, ...]:
    """Numbers of the first `count` items that are asked.

    Episode i of the SPADE evaluation seeds the global generator with i and chooses one of the 500; here, without the
    global generator, and an item that was chosen before is left out.
    """
    chosen: dict[int, None] = {}
    episode = 0
    while len(chosen) < count:
        chosen.setdefault(random.Random(episode).choice(range(SIZE)))
        episode += 1
    return tuple(chosen)


def hard_settings() -> dict[str, dict[str, dict[str, Any]]]:
    """Parameters of each dataset, by category."""
    file = resources.files("spade_loop.evaluation.suites").joinpath(_DATA)
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _chosen(
    settings: dict[str, dict[str, dict[str, Any]]],
    categories: Sequence[str],
    tasks: Sequence[str],
) -> dict[str, dict[str, dict[str, Any]]]:
    known = {name for names in settings.values() for name in names}
    for what, wanted, there in (("category", categories, settings), ("task", tasks, known)):
        for name in wanted:
            if name not in there:
                raise ConfigError(
                    f"reasoning-gym: no {what} {name!r}{did_you_mean(name, there)} "
                    f"(there are: {', '.join(sorted(there))})"
                )
    return {
        category: {name: p for name, p in names.items() if not tasks or name in tasks}
        for category, names in settings.items()
        if not categories or category in categories
    }
