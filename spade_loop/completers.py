"""The seams between the loop and whatever generates text.

A `Sampler` is the model in training: token-exact, it opens a `Dialogue` over a batch of prompts. A `Writer` is any
other model: messages in, text out, nothing of it is trained on.

`ScriptedSampler` answers from a list. It is for tests of the loop's own logic and says so; it is never a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spade_loop.chat import ChatFormat
from spade_loop.types import Completion, Message

JsonSchema = Mapping[str, Any]
SCORED_AT_ONCE = 512
"""Tokens whose logits are held together when a completion is scored."""


class Dialogue(Protocol):
    """A batch of conversations in progress. Rows are numbered as the prompts were."""

    def generate(
        self, rows: Sequence[int], max_tokens: int, schema: JsonSchema | None = None
    ) -> dict[int, Completion]:
        """Let the model speak in `rows`, each for at most `max_tokens` tokens; under a JSON schema if one is given."""

    def feed(self, chunks: Mapping[int, Sequence[int]]) -> None:
        """Append ids that the model did not choose."""

    def drop(self, rows: Sequence[int]) -> None:
        """Forget rows that are over; their memory is freed."""


class Sampler(Protocol):
    """A model to talk to."""

    @property
    def chat(self) -> ChatFormat:
        """How this model writes a chat."""

    def open(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        streams: Sequence[Sequence[int]],
        initial: bool = False,
    ) -> Dialogue:
        """Start conversations.

        `streams[i]` derives the random stream of conversation i, so that what it says does not depend on which others
        are under way beside it, nor on which process it runs in. `initial` asks for the model before training.
        """

    def score(self, prompt_ids: Sequence[int], completion: Completion) -> list[float]:
        """Log-probability of each token of `completion` under the current weights, as the sampler would draw it.

        At a grammar's choice it is the one among what the grammar allowed; where the mask is 0 it is 0.
        """


@dataclass(frozen=True, slots=True)
class Reply:
    """What a `Writer` answered."""

    text: str
    tokens: int
    """Tokens of the reply, as the model counts them."""
    stopped: bool
    """False when the token limit cut it."""
    prompt_tokens: int = 0
    """Tokens of the chat, as the model counts them; 0 where they are not counted."""


class Writer(Protocol):
    """A model that is not trained here: an endpoint, or frozen weights."""

    name: str
    concurrent: bool
    """Whether several threads may ask at once; a model on this machine answers a batch from one thread."""

    def write(  # noqa: PLR0913 -- how a reply is drawn, all by name
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
        """One reply to each chat, in order; `seeds[i]` is for chat i.

        At a temperature of 0 the likeliest token is taken. `top_p` below 1 and `top_k` above 0 (Holtzman et al. 2020,
        "The Curious Case of Neural Text Degeneration"; Fan et al. 2018) leave out unlikely tokens. `ModelError` when
        the model cannot be reached, `ContextError` when a chat does not fit into its context.
        """

    def close(self) -> None:
        """Free what it holds. What is under way elsewhere ends with a `ModelError`."""


Script = Callable[[int, int, str], str]
"""(row, turn, text so far) -> reply."""


class ScriptedSampler:
    """Replies from a function instead of a model. For tests: log-probabilities are zero because nothing was sampled."""

    def __init__(self, chat: ChatFormat, script: Script, stop_id: int) -> None:
        self.chat = chat
        self._script = script
        self._stop_id = stop_id

    def open(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        streams: Sequence[Sequence[int]],
        initial: bool = False,
    ) -> ScriptedDialogue:
        """Conversations that `script` answers; the streams are not needed."""
        del initial
        if len(streams) != len(prompts):
            raise ValueError(f"{len(prompts)} prompts need as many streams, got {len(streams)}")
        return ScriptedDialogue(self, [tuple(p) for p in prompts])

    def score(self, prompt_ids: Sequence[int], completion: Completion) -> list[float]:
        """Zero for every token: nothing was sampled, and nothing has changed since."""
        del prompt_ids
        return [0.0] * len(completion.ids)

    def reply(self, row: int, turn: int, ids: Sequence[int]) -> tuple[int, ...]:
        """Ids of the scripted reply, the stop token included."""
        text = self._script(row, turn, self.chat.decode(ids))
        return (*self.chat.encode_text(text), self._stop_id)


class ScriptedDialogue:
    """Conversations of a `ScriptedSampler`."""

    def __init__(self, sampler: ScriptedSampler, prompts: Sequence[tuple[int, ...]]) -> None:
        self._sampler = sampler
        self._ids = [list(p) for p in prompts]
        self._turns = [0] * len(prompts)

    def generate(
        self, rows: Sequence[int], max_tokens: int, schema: JsonSchema | None = None
    ) -> dict[int, Completion]:
        """Scripted replies, cut at `max_tokens` as a model's would be."""
        del schema
        out: dict[int, Completion] = {}
        for row in rows:
            ids = self._sampler.reply(row, self._turns[row], self._ids[row])
            self._turns[row] += 1
            kept = ids[:max_tokens]
            self._ids[row] += kept
            out[row] = Completion(
                kept,
                (0.0,) * len(kept),
                (1,) * len(kept),
                stopped=len(kept) == len(ids),
            )
        return out

    def feed(self, chunks: Mapping[int, Sequence[int]]) -> None:
        """Append ids."""
        for row, ids in chunks.items():
            self._ids[row] += ids

    def drop(self, rows: Sequence[int]) -> None:
        """Forget rows."""
        for row in rows:
            self._ids[row] = []
