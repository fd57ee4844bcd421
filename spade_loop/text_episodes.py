"""Episodes with a model that is not trained: messages in, text out, one thread an episode."""

from __future__ import annotations

from typing import Literal

from spade_loop.episodes import Episode, Opener, Play, Stage
from spade_loop.errors import ConfigError, ContextError
from spade_loop.speaking import Decoding, Speaker
from spade_loop.types import Message, StopReason, Trajectory
from synthgym.sandbox import Pool

SEED_BITS = 31
"""Seeds of replies lie below 2^31: every server takes those."""


class TextPlayer:
    """Plays episodes with a `Speaker`, by the rules and with the prompts of `episodes.Player`.

    Nothing is counted in tokens here: an episode ends for want of context when the model says so.
    """

    def __init__(  # noqa: PLR0913 -- how it is played, all by name
        self,
        speaker: Speaker,
        pool: Pool,
        *,
        decoding: Decoding,
        max_turns: int,
        hint_level: int,
        opener: Opener | None = None,
        score: Literal["sum", "terminal", "reference"] = "sum",
    ) -> None:
        """Episodes run in workers of `pool`, or in what `opener` opens; `score` is that of a recipe's agent.score.

        `decoding.max_tokens` is the limit of one turn. `ConfigError` when no turn is allowed.
        """
        if max_turns < 1:
            raise ConfigError(f"max_turns must be at least 1, got {max_turns}")
        self._speaker = speaker
        self._stage = Stage(pool, hint_level=hint_level, opener=opener)
        self._decoding = decoding
        self._max_turns = max_turns
        self._score = score

    def play(self, play: Play, seed: int) -> Trajectory:
        """One episode, with no token in it; called from many threads at once.

        Reply i is drawn with the seed (`seed` + i) modulo 2^31. A `ModelError` other than a full context is raised: the
        episode then never was.
        """
        episode = self._stage.open(play)
        try:
            chat = list(self._stage.begin(episode))
            while episode.stop is None:
                self._turn(episode, chat, seed + len(episode.turns))
        finally:
            episode.env.close()
        return episode.finish(self._score)

    def _turn(self, episode: Episode, chat: list[Message], seed: int) -> None:
        try:
            reply = self._speaker.say(chat, self._decoding, seed % 2**SEED_BITS)
        except ContextError:
            episode.stop = StopReason.CONTEXT
            return
        self._stage.act(episode, reply.text, self._max_turns)
        chat.append(Message("assistant", reply.text))
        chat.append(Message("user", episode.observation))
