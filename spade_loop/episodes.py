"""The one play loop: plain and hinted episodes, batched, token-exact, with environment tokens masked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from spade_loop.completers import Dialogue, Sampler
from spade_loop.config import AgentConfig
from spade_loop.hints import LABEL, placebo
from spade_loop.prompts import load_prompt
from spade_loop.rewards import EPISODE_RETURNS, EpisodeOutcome
from spade_loop.types import NOTHING, Arm, Completion, Message, StopReason, Trajectory, Turn
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


Step = tuple[str, Any, bool, bool, dict[str, Any]]
"""Observation, reward, terminated, truncated, info; `success` or `fault` among the info."""
Opener = Callable[[Play], PlayedEnv]
"""Opens the environment of an episode."""


@dataclass(slots=True)
class Episode:
    """An episode in progress, as text; the same for tokens and for text."""

    play: Play
    env: PlayedEnv
    observation: str = ""
    turns: list[Turn] = field(default_factory=list)
    success: bool = False
    stop: StopReason | None = None
    fault: EnvFault | None = None

    def finish(
        self, score: str, prompt_ids: tuple[int, ...] = (), completion: Completion = NOTHING
    ) -> Trajectory:
        """What came of it; `score` is a name of `EPISODE_RETURNS`."""
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
            prompt_ids=prompt_ids,
            completion=completion,
            turns=tuple(self.turns),
            episode_return=EPISODE_RETURNS[score](outcome),
            success=self.success,
            stop=self.stop or StopReason.TURNS,
            fault=self.fault,
        )


class Stage:
    """What an agent is shown, and how its replies act: one set of rules for whoever speaks."""

    def __init__(self, pool: Pool, *, hint_level: int, opener: Opener | None = None) -> None:
        """Episodes run in workers of `pool`, or in what `opener` opens."""
        self._hint_level = hint_level
        self._open = opener or (lambda play: SynthEnv(play.spec, pool=pool))
        self._prompts = {
            tools: load_prompt("agent_tools" if tools else "agent") for tools in (False, True)
        }
        self._reminders = {
            tools: load_prompt("agent_no_call" if tools else "agent_no_box").messages[0].content
            for tools in (False, True)
        }

    def open(self, play: Play) -> Episode:
        """An episode that has not begun; its environment is closed by whoever opened it."""
        return Episode(play, self._open(play))

    def begin(self, episode: Episode) -> tuple[Message, ...]:
        """Reset, and put the chat together; an episode that cannot begin gets its reason to stop, and has none."""
        return self.begin_all([episode])[0]

    def begin_all(self, episodes: Sequence[Episode]) -> list[tuple[Message, ...]]:
        """`begin` of each, in one round where the environments can play one."""
        for episode, started in zip(episodes, _reset_all(episodes), strict=True):
            if isinstance(started, EnvFaultError):
                _fail(episode, started)
            else:
                episode.observation = started
        hinted = [e for e in episodes if e.stop is None and e.play.arm is not Arm.PLAIN]
        for episode, hint in zip(hinted, _hints_all(hinted, self._hint_level), strict=True):
            if isinstance(hint, EnvFaultError):
                _fail(episode, hint)
            else:
                shown = hint if episode.play.arm is Arm.HINTED else placebo(hint)
                episode.observation += f"\n\n{LABEL}{shown}"
        return [() if e.stop is not None else self._prompt(e) for e in episodes]

    def _prompt(self, episode: Episode) -> tuple[Message, ...]:
        prompt = self._prompts[_has_tools(episode.play.spec)]
        return prompt.render(observation=episode.observation)

    def act(self, episode: Episode, reply: str, max_turns: int) -> None:
        """Let one reply act. A reply without a usable action does not reach the environment; the turn counts."""
        self.act_all([episode], [reply], max_turns)

    def act_all(self, episodes: Sequence[Episode], replies: Sequence[str], max_turns: int) -> None:
        """`act` of each, in one round where the environments can play one."""
        acting: list[tuple[Episode, str, str]] = []
        for episode, reply in zip(episodes, replies, strict=True):
            parsed = parse_action(reply, formats_of(episode.play.spec))
            if parsed.status is ParseStatus.OK:
                acting.append((episode, reply, parsed.action))
                continue
            turn = Turn(episode.observation, reply, "", str(parsed.status), 0.0)
            episode.turns.append(turn)
            episode.observation = self._reminders[_has_tools(episode.play.spec)]
        steps = _step_all([e for e, _, _ in acting], [action for _, _, action in acting])
        for (episode, reply, action), step in zip(acting, steps, strict=True):
            _take(episode, reply, action, step)
        for episode in episodes:
            # A reply without a box never reached the environment, which cannot have counted it.
            most = min(max_turns, episode.play.spec.record.max_turns)
            if episode.stop is None and len(episode.turns) >= most:
                episode.stop = StopReason.TURNS


def _fail(episode: Episode, error: EnvFaultError) -> None:
    episode.stop = StopReason.FAULT
    episode.fault = EnvFault(FaultKind(error.kind), error.call, str(error))


def _take(episode: Episode, reply: str, action: str, step: Step) -> None:
    """Note what an action brought about."""
    shown = episode.observation
    episode.observation, reward, terminated, truncated, info = step
    episode.turns.append(Turn(shown, reply, action, "ok", float(reward)))
    if "fault" in info:
        fault = info["fault"]
        episode.stop = StopReason.FAULT
        episode.fault = EnvFault(FaultKind(fault["kind"]), fault["call"])
    elif terminated:
        episode.success = bool(info["success"])
        episode.stop = StopReason.SUCCESS if episode.success else StopReason.FAILURE
    elif truncated:
        episode.stop = StopReason.TURNS


def _synthetic(episodes: Sequence[Episode]) -> list[SynthEnv] | None:
    """Their environments, where all of them are of ours and can play in one round."""
    envs = [e.env for e in episodes if isinstance(e.env, SynthEnv)]
    return envs if len(envs) == len(episodes) else None


def _reset_all(episodes: Sequence[Episode]) -> list[str | EnvFaultError]:
    envs = _synthetic(episodes)
    if envs is None:
        return [_tried(partial(_reset, e)) for e in episodes]
    started = SynthEnv.reset_all(envs, [e.play.seed for e in episodes])
    return [s if isinstance(s, EnvFaultError) else s[0] for s in started]


def _reset(episode: Episode) -> str:
    return episode.env.reset(seed=episode.play.seed)[0]


def _hints_all(episodes: Sequence[Episode], level: int) -> list[str | EnvFaultError]:
    envs = _synthetic(episodes)
    if envs is None:
        return [_tried(partial(e.env.hint_at, level)) for e in episodes]
    return SynthEnv.hints_all(envs, level)


def _step_all(episodes: Sequence[Episode], actions: Sequence[str]) -> Sequence[Step]:
    envs = _synthetic(episodes)
    if envs is None:
        return [e.env.step(action) for e, action in zip(episodes, actions, strict=True)]
    return SynthEnv.step_all(envs, actions)


def _tried(call: Callable[[], str]) -> str | EnvFaultError:
    try:
        return call()
    except EnvFaultError as error:
        return error


@dataclass(slots=True)
class _Tokens:
    """An episode in progress, token by token."""

    episode: Episode
    stream: tuple[int, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)

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
        completion = Completion(tuple(self.ids), tuple(self.logprobs), tuple(self.mask))
        return self.episode.finish(score, self.prompt_ids, completion)


class Player:
    """Plays episodes with one model. Both arms go through here, in one batch, with the same decoding."""

    def __init__(
        self, config: AgentConfig, pool: Pool, *, hint_level: int, opener: Opener | None = None
    ) -> None:
        """Episodes run in workers of `pool`, or in what `opener` opens."""
        self._config = config
        self._stage = Stage(pool, hint_level=hint_level, opener=opener)

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
        rows: list[_Tokens] = []
        try:
            for number, play in enumerate(plays):
                # Closed below, whatever happens.
                rows.append(_Tokens(self._stage.open(play), (*stream, number)))
            self._begin(sampler, rows)
            over = sum(row.episode.stop is not None for row in rows)
            if tick is not None and over:
                tick(over, 0)
            for batch in _batches(rows, self._config.batch_rows):
                dialogue = sampler.open(
                    [row.prompt_ids for row in batch], streams=[row.stream for row in batch]
                )
                self._run(sampler, dialogue, batch, tick)
        finally:
            for row in rows:
                row.episode.env.close()
        return [row.finish(self._config.score) for row in rows]

    def _begin(self, sampler: Sampler, rows: Sequence[_Tokens]) -> None:
        """Reset; an episode that cannot begin gets its reason to stop."""
        prompts = self._stage.begin_all([row.episode for row in rows])
        for row, messages in zip(rows, prompts, strict=True):
            if row.episode.stop is not None:
                continue
            row.prompt_ids = sampler.chat.prompt(messages)
            if len(row.prompt_ids) + self._config.turn_tokens > self._config.context:
                row.episode.stop = StopReason.CONTEXT

    def _run(
        self,
        sampler: Sampler,
        dialogue: Dialogue,
        rows: Sequence[_Tokens],
        tick: Tick | None,
    ) -> None:
        alive = list(range(len(rows)))
        for _ in range(self._config.max_turns):
            replies = dialogue.generate(alive, self._config.turn_tokens)
            for i in alive:
                rows[i].take(replies[i])
            self._stage.act_all(
                [rows[i].episode for i in alive],
                [sampler.chat.reply(replies[i].ids) for i in alive],
                self._config.max_turns,
            )
            chunks = self._next_turns(sampler, rows, alive, replies)
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
        rows: Sequence[_Tokens],
        alive: Sequence[int],
        replies: Mapping[int, Completion],
    ) -> dict[int, tuple[int, ...]]:
        """Ids that open the next turn of each episode that goes on and has room for it."""
        chunks: dict[int, tuple[int, ...]] = {}
        for i in alive:
            row = rows[i]
            if row.episode.stop is not None:
                continue
            ids = sampler.chat.next_turn(
                row.episode.observation, stopped=replies[i].stopped, last=replies[i].ids[-1]
            )
            if row.length + len(ids) + self._config.turn_tokens > self._config.context:
                row.episode.stop = StopReason.CONTEXT
                continue
            row.take_masked(ids)
            chunks[i] = ids
        return chunks


def _has_tools(spec: SynthEnvSpec) -> bool:
    return spec.record.action_format == "tools"


def formats_of(spec: SynthEnvSpec) -> tuple[ActionFormat, ...]:
    """In which forms an environment's actions are looked for in a reply."""
    return TOOL_FORMATS if _has_tools(spec) else GAME_FORMATS


def _batches(rows: Sequence[_Tokens], size: int) -> list[list[_Tokens]]:
    """Episodes that begin, in batches of like prompt length: every row is padded to the longest of its batch."""
    begun = (row for row in rows if row.episode.stop is None)
    batches: list[list[_Tokens]] = []
    for row in sorted(begun, key=lambda row: len(row.prompt_ids)):
        fits = batches and len(batches[-1]) < size
        if fits and len(row.prompt_ids) <= MAX_LENGTH_RATIO * len(batches[-1][0].prompt_ids):
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches
