"""A designer whose model answers from a list: for unit tests, and no model at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spade_loop.chat import ChatFormat
from spade_loop.completers import JsonSchema, ScriptedDialogue, ScriptedSampler
from spade_loop.config import (
    ALLOWABLE,
    Config,
    DesignerConfig,
    PolicyConfig,
    ValidationConfig,
)
from spade_loop.corpus import Corpus
from spade_loop.design.admission import Admission, Admitter
from spade_loop.design.assignments import Assignment
from spade_loop.design.authors import Authors
from spade_loop.design.designer import Designer
from spade_loop.design.dialects import make_dialect
from spade_loop.types import Completion
from synthgym.memory import NoveltyMemory
from synthgym.sandbox import Pool

PLENTY = 100_000


class Bench:
    """A designer whose model answers from a list; it keeps how the model was asked."""

    def __init__(self, chat: ChatFormat, stop_id: int, corpus: Corpus, pool: Pool) -> None:
        self.chat, self.stop_id, self.corpus, self.pool = chat, stop_id, corpus, pool
        self.opened: list[tuple[bool, int]] = []
        """(initial, prompts) of each dialogue."""
        self.asked: list[tuple[int, JsonSchema | None]] = []
        """(rows, schema) of each call of `generate`."""

    def designer(
        self, dialect: str, allowed: tuple[str, ...] = ALLOWABLE, **settings: Any
    ) -> Designer:
        plain: dict[str, Any] = {
            "max_tokens": PLENTY,
            "initial_share": 0.0,
            "dialect": dialect,
            "candidates": 8,
        }
        config = Config(
            seed=5,
            policy=PolicyConfig(model="recorded"),
            designer=DesignerConfig(**plain | settings),
            validation=ValidationConfig(allowed=allowed),
        )
        chosen = make_dialect(config.designer)
        return Designer(
            config, chosen, Admitter(config, chosen, self.pool), Authors(config, chosen, {})
        )

    def sampler(self, replies: Sequence[str]) -> ScriptedSampler:
        left = iter(replies)
        bench = self

        class Dialogue(ScriptedDialogue):
            def generate(
                self, rows: Sequence[int], max_tokens: int, schema: JsonSchema | None = None
            ) -> dict[int, Completion]:
                bench.asked.append((len(rows), schema))
                return super().generate(rows, max_tokens, schema)

        class Sampler(ScriptedSampler):
            def open(
                self,
                prompts: Sequence[Sequence[int]],
                *,
                streams: Sequence[Sequence[int]],
                initial: bool = False,
            ) -> ScriptedDialogue:
                bench.opened.append((initial, len(prompts)))
                return Dialogue(self, [tuple(p) for p in prompts])

        return Sampler(self.chat, lambda row, turn, text: next(left), self.stop_id)

    def run(
        self,
        designer: Designer,
        memory: NoveltyMemory,
        attempts: Sequence[tuple[Assignment, str]],
        iteration: int = 0,
    ) -> list[Admission]:
        """Admissions of replies to assignments, one each, asked for in this order."""
        given, replies = zip(*attempts, strict=True)
        return designer.design(self.sampler(replies), given, memory, iteration, (5, iteration))
