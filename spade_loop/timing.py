"""Where an iteration's time goes. Clock values go to `timings.jsonl` alone, so that other rows can be resumed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from spade_loop.chat import ChatFormat
from spade_loop.completers import Dialogue, JsonSchema, Sampler
from spade_loop.types import Completion

GENERATE, UPDATE = "generate", "update"
"""Sampling from the policy; whatever happens outside of the loop, which is the trainer's update."""


class Clock:
    """Seconds by part. A part inside another is taken out of it, so that all parts add up to the whole."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = time.monotonic()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time of the block for `name`."""
        self._turn()
        self._open.append(name)
        try:
            yield
        finally:
            self._turn()
            self._open.pop()

    def take(self) -> dict[str, float]:
        """What was counted since the last call, in seconds; counting begins anew."""
        self._turn()
        taken, self.seconds = self.seconds, {}
        return taken

    def _turn(self) -> None:
        """Book the time since the last turn on the innermost part."""
        now = time.monotonic()
        name = self._open[-1] if self._open else UPDATE
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now


class TimedSampler:
    """A sampler whose time is counted as `generate`."""

    def __init__(self, inner: Sampler, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock

    @property
    def chat(self) -> ChatFormat:
        """The inner sampler's."""
        return self._inner.chat

    def open(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        streams: Sequence[Sequence[int]],
        initial: bool = False,
    ) -> Dialogue:
        """The inner sampler's conversations, timed."""
        with self._clock.part(GENERATE):
            inner = self._inner.open(prompts, streams=streams, initial=initial)
        return _TimedDialogue(inner, self._clock)

    def score(self, prompt_ids: Sequence[int], completion: Completion) -> list[float]:
        """The inner sampler's, timed."""
        with self._clock.part(GENERATE):
            return self._inner.score(prompt_ids, completion)


class _TimedDialogue:
    def __init__(self, inner: Dialogue, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock

    def generate(
        self, rows: Sequence[int], max_tokens: int, schema: JsonSchema | None = None
    ) -> dict[int, Completion]:
        with self._clock.part(GENERATE):
            return self._inner.generate(rows, max_tokens, schema)

    def feed(self, chunks: Mapping[int, Sequence[int]]) -> None:
        with self._clock.part(GENERATE):
            self._inner.feed(chunks)

    def drop(self, rows: Sequence[int]) -> None:
        with self._clock.part(GENERATE):
            self._inner.drop(rows)
