"""The one play loop: plain and hinted episodes, batched, token-exact, with environment tokens masked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from spade_loop.completers import Dialogue, Sampler
from spade_loop.config import AgentConfig
from spade_loop.hints import LABEL, placebo
from spade_loop.prompts import load_prompt
from spade_loop.rewards import EPISODE_RETURNS, EpisodeOutcome
from spade_loop.types import Arm, Completion, StopReason, Trajectory, Turn
from synthgym.envs import (
    GAME_FORMATS,
    TOOL_FORMATS,
    ActionFormat,
    ParseStatus,
    SynthEnv,
    parse_action,
)
from synthgym.errors import EnvFaultError
from synthgym.sandbox import EnvFault, FaultKind, Pool
from synthgym.spec import SynthEnvSpec

MAX_LENGTH_RATIO = 1.5
"""Longest prompt of a batch over its shortest."""
Tick = Callable[[int, int], None]
"""(episodes that are over, tokens generated since the last call)."""


@dataclass(frozen=True, slots=True)
class Play:
    """One episode to be played."""

    spec: SynthEnvSpec
    seed: int
    index: int
    arm: Arm


class PlayedEnv(Protocol):
    """What is used of an environment; a `SynthEnv` is one."""

    def reset(self, *, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """First observation."""

    def hint_at(self, level: int) -> str:
        """Its hint for the state just after that reset."""

    def step(self, action: str, /) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, truncated, info; `success` or `fault` among the info."""

    def close(self) -> None:
        """Free it."""


Opener = Callable[[Play], PlayedEnv]
"""Opens the environment of an episode."""


@dataclass(slots=True)
class _Episode:
    """An episode in progress."""

    play: Play
    env: PlayedEnv
    stream: tuple[int, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    observation: str = ""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    success: bool = False
    stop: StopReason | None = None
    fault: EnvFault | None = None

    @property
    def length(self) -> int:
        return len(self.prompt_ids) + len(self.ids)

    def take(self, completion: Completion) -> None:
        self.ids += completion.ids
        self.logprobs += completion.logprobs
        self.mask += completion.mask

    def take_masked(self, ids: Sequence[int]) -> None:
        self.ids += ids
        self.logprobs += [0.0] * len(ids)
        self.mask += [0] * len(ids)

    def finish(self, score: str) -> Trajectory:
        outcome = EpisodeOutcome(
            [turn.reward for turn in self.turns if turn.status == "ok"],
            self.stop in (StopReason.SUCCESS, StopReason.FAILURE),
            self.success,
        )
        return Trajectory(
            digest=self.play.spec.digest,
            seed=self.play.seed,
            play=self.play.index,
            arm=self.play.arm,
            prompt_ids=self.prompt_ids,
            completion=Completion(tuple(self.ids), tuple(self.logprobs), tuple(self.mask)),
            turns=tuple(self.turns),
            episode_return=EPISODE_RETURNS[score](outcome),
            success=self.success,
            stop=self.stop or StopReason.TURNS,
            fault=self.fault,
        )


class Player:
    """Plays episodes with one model. Both arms go through here, in one batch, with the same decoding."""

    def __init__(
        self, config: AgentConfig, pool: Pool, *, hint_level: int, opener: Opener | None = None
    ) -> None:
        """Episodes run in workers of `pool`, or in what `opener` opens."""
        self._config = config
        self._hint_level = hint_level
        self._open = opener or (lambda play: SynthEnv(play.spec, pool=pool))
        self._prompts = {
            tools: load_prompt("agent_tools" if tools else "agent") for tools in (False, True)
        }
        self._reminders = {
            tools: load_prompt("agent_no_call" if tools else "agent_no_box").messages[0].content
            for tools in (False, True)
        }

    def play(
        self,
        sampler: Sampler,
        plays: Sequence[Play],
        *,
        stream: Sequence[int],
        tick: Tick | None = None,
    ) -> list[Trajectory]:
        """One trajectory for each play, in order. A fault ends its own episode and no other.

        Each episode has a random stream of its own, derived from `stream` and its place among `plays`.
        """
        episodes: list[_Episode] = []
        try:
            for number, play in enumerate(plays):
                episode = _Episode(play, self._open(play), (*stream, number))
                episodes.append(episode)  # closed below, whatever happens
                self._begin(sampler, episode)
            over = sum(e.stop is not None for e in episodes)
            if tick is not None and over:
                tick(over, 0)
            for batch in _batches(episodes, self._config.batch_rows):
                dialogue = sampler.open(
                    [e.prompt_ids for e in batch], streams=[e.stream for e in batch]
                )
                self._run(sampler, dialogue, batch, tick)
        finally:
            for episode in episodes:
                episode.env.close()
        return [episode.finish(self._config.score) for episode in episodes]

    def _begin(self, sampler: Sampler, episode: _Episode) -> None:
        """Reset, and put the chat together; an episode that cannot begin gets its reason to stop."""
        try:
            episode.observation, _ = episode.env.reset(seed=episode.play.seed)
            if episode.play.arm is not Arm.PLAIN:
                hint = episode.env.hint_at(self._hint_level)
                shown = hint if episode.play.arm is Arm.HINTED else placebo(hint)
                episode.observation += f"\n\n{LABEL}{shown}"
        except EnvFaultError as error:
            episode.stop = StopReason.FAULT
            episode.fault = EnvFault(FaultKind(error.kind), error.call, str(error))
            return
        episode.prompt_ids = sampler.chat.prompt(
            self._prompts[_has_tools(episode.play.spec)].render(observation=episode.observation)
        )
        if len(episode.prompt_ids) + self._config.turn_tokens > self._config.context:
            episode.stop = StopReason.CONTEXT

    def _run(
        self,
        sampler: Sampler,
        dialogue: Dialogue,
        episodes: Sequence[_Episode],
        tick: Tick | None,
    ) -> None:
        alive = list(range(len(episodes)))
        for _ in range(self._config.max_turns):
            replies = dialogue.generate(alive, self._config.turn_tokens)
            for i in alive:
                episodes[i].take(replies[i])
                self._step(episodes[i], sampler.chat.reply(replies[i].ids))
            chunks = self._next_turns(sampler, episodes, alive, replies)
            over = [i for i in alive if i not in chunks]
            alive = [i for i in alive if i in chunks]
            if tick is not None:
                tick(len(over), sum(len(c.ids) for c in replies.values()))
            if not alive:
                return
            dialogue.drop(over)
            dialogue.feed(chunks)

    def _next_turns(
        self,
        sampler: Sampler,
        episodes: Sequence[_Episode],
        alive: Sequence[int],
        replies: Mapping[int, Completion],
    ) -> dict[int, tuple[int, ...]]:
        """Ids that open the next turn of each episode that goes on; the others get their reason to stop."""
        chunks: dict[int, tuple[int, ...]] = {}
        for i in alive:
            episode = episodes[i]
            if episode.stop is not None:
                continue
            # A reply without a box never reached the environment, which cannot have counted it.
            if len(episode.turns) >= min(
                self._config.max_turns, episode.play.spec.record.max_turns
            ):
                episode.stop = StopReason.TURNS
                continue
            ids = sampler.chat.next_turn(
                episode.observation, stopped=replies[i].stopped, last=replies[i].ids[-1]
            )
            if episode.length + len(ids) + self._config.turn_tokens > self._config.context:
                episode.stop = StopReason.CONTEXT
                continue
            episode.take_masked(ids)
            chunks[i] = ids
        return chunks

    def _step(self, episode: _Episode, reply: str) -> None:
        """Let one reply act. A reply without a usable action does not reach the environment; the turn counts."""
        parsed = parse_action(reply, formats_of(episode.play.spec))
        shown = episode.observation
        if parsed.status is not ParseStatus.OK:
            episode.observation = self._reminders[_has_tools(episode.play.spec)]
            episode.turns.append(Turn(shown, reply, "", str(parsed.status), 0.0))
            return
        observation, reward, terminated, truncated, info = episode.env.step(parsed.action)
        episode.observation = observation
        episode.turns.append(Turn(shown, reply, parsed.action, "ok", float(reward)))
        if "fault" in info:
            fault = info["fault"]
            episode.stop = StopReason.FAULT
            episode.fault = EnvFault(FaultKind(fault["kind"]), fault["call"])
        elif terminated:
            episode.success = bool(info["success"])
            episode.stop = StopReason.SUCCESS if episode.success else StopReason.FAILURE
        elif truncated:
            episode.stop = StopReason.TURNS


def _has_tools(spec: SynthEnvSpec) -> bool:
    return spec.record.action_format == "tools"


def formats_of(spec: SynthEnvSpec) -> tuple[ActionFormat, ...]:
    """In which forms an environment's actions are looked for in a reply."""
    return TOOL_FORMATS if _has_tools(spec) else GAME_FORMATS


def _batches(episodes: Sequence[_Episode], rows: int) -> list[list[_Episode]]:
    """Episodes that begin, in batches of like prompt length: every row is padded to the longest of its batch."""
    waiting = sorted((e for e in episodes if e.stop is None), key=lambda e: len(e.prompt_ids))
    batches: list[list[_Episode]] = []
    for episode in waiting:
        fits = batches and len(batches[-1]) < rows
        if fits and len(episode.prompt_ids) <= MAX_LENGTH_RATIO * len(batches[-1][0].prompt_ids):
            batches[-1].append(episode)
        else:
            batches.append([episode])
    return batches
