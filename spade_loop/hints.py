"""Hints that the model writes from the source, and placebos.

A written hint is an annotation: the digest of the environment stays, and the hint stands in for `hint()` at level 2. It
is checked as the environment's own hints are; one that tells too much is asked for once more, and then the
environment's own stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from spade_loop.completers import Sampler
from spade_loop.parsing import strip_thinking
from spade_loop.prompts import load_prompt
from spade_loop.types import Completion
from synthgym.spec import SynthEnvSpec

MAX_WORDS: Final = 100
"""A longer hint is refused (the rule that the paper's hint prompt states, and no code of it checks)."""
TRIES: Final = 2
LABEL: Final = "Hint: "
_FILLER: Final = (
    "This is a game in which what you do matters and what you read is all there is to go by. "
    "Take the time that you need and answer in the form that was asked for. "
    "Every turn begins with what was said before it and ends with what you say. "
    "The words on the page are there for everybody and mean what they usually mean. "
)
"""True of every game, and of no use in any."""

CheckHint = Callable[[SynthEnvSpec, str], str]
"""(environment, hint) -> what is wrong with it; empty when nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenHint:
    """One call in which the model wrote a hint."""

    digest: str
    text: str
    prompt_ids: tuple[int, ...]
    completion: Completion
    refused: str = ""
    """What was wrong with it; empty for one that is used."""


class HintWriter:
    """Asks the policy for hints."""

    def __init__(self, max_tokens: int, check: CheckHint) -> None:
        self._prompt = load_prompt("hint")
        self._max_tokens = max_tokens
        self._check = check

    def write(
        self, sampler: Sampler, specs: Sequence[SynthEnvSpec], stream: Sequence[int]
    ) -> list[WrittenHint]:
        """Every call, in order; the last one of each environment decides."""
        written: list[WrittenHint] = []
        waiting = list(specs)
        for attempt in range(TRIES):
            if not waiting:
                break
            prompts = [
                sampler.chat.prompt(self._prompt.render(source=spec.record.source.strip()))
                for spec in waiting
            ]
            streams = [[*stream, attempt, i] for i in range(len(waiting))]
            dialogue = sampler.open(prompts, streams=streams)
            replies = dialogue.generate(range(len(waiting)), self._max_tokens)
            refused = []
            for i, spec in enumerate(waiting):
                text = _tidy(sampler.chat.reply(replies[i].ids))
                problem = self._problem(spec, text, stopped=replies[i].stopped)
                written.append(
                    WrittenHint(
                        digest=spec.digest,
                        text=text,
                        prompt_ids=tuple(prompts[i]),
                        completion=replies[i],
                        refused=problem,
                    )
                )
                if problem:
                    refused.append(spec)
            waiting = refused
        return written

    def _problem(self, spec: SynthEnvSpec, text: str, *, stopped: bool) -> str:
        if not stopped:
            return "the token limit cut it"
        if len(text.split()) > MAX_WORDS:
            return f"it has {len(text.split())} words, more than {MAX_WORDS}"
        return self._check(spec, text)


def placebo(hint: str) -> str:
    """A text with as many words as `hint` that says nothing about any game."""
    filler = _FILLER.split()
    count = len(hint.split())
    words = [filler[i % len(filler)] for i in range(count)]
    text = " ".join(words)
    return text if not text or text.endswith(".") else text.rstrip(",") + "."


def _tidy(reply: str) -> str:
    """The hint without thinking, without a label of its own, on one line."""
    text = " ".join(strip_thinking(reply).split())
    return text.removeprefix(LABEL).strip().strip('"').strip()
