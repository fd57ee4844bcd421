"""Agent rows: the witness of an environment, replayed through the environment as the chat that an episode is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np

from spade_loop.demonstrations import HELD_OUT, TRAIN, Demonstration
from spade_loop.episodes import Episode, Play, PlayedEnv, Stage, formats_of
from spade_loop.types import Arm, Message, Role
from spade_loop.warmstart.settings import WarmStart
from synthgym.contract import MAX_TURNS
from synthgym.envs import parse_action
from synthgym.errors import EnvFaultError
from synthgym.spec import SynthEnvSpec

DRAWN_SEEDS: Final = 2**31
"""Seeds lie below this, as those that an environment draws for itself."""
Dropped = Callable[[str], None]
"""Told why a row was not made."""


class _Witnessed(Protocol):
    def solution(self) -> tuple[str, ...]:
        """Actions that win from the state just after the last reset."""


def episode_seeds(settings: WarmStart, digest: str) -> list[tuple[int, str, Arm]]:
    """(seed, split, arm) of each episode of an environment.

    They derive from the settings' seed and the environment's digest: the other environments of a snapshot do not move
    them. At least one seed is held out, and one is not; each split has its share of hints.
    """
    rng = stream(settings.seed, digest, "episodes")
    seeds = rng.choice(DRAWN_SEEDS, size=settings.seeds, replace=False).tolist()
    held_out = held_out_of(settings.seeds, settings.held_out)
    parts = [(HELD_OUT, seeds[:held_out]), (TRAIN, seeds[held_out:])]
    found = []
    for split, own in parts:
        hinted = _rounded(len(own) * settings.hinted, rng)
        arms = [Arm.HINTED] * hinted + [Arm.PLAIN] * (len(own) - hinted)
        found += [
            (seed, split, arms[i]) for seed, i in zip(own, rng.permutation(len(own)), strict=True)
        ]
    return found


def held_out_of(count: int, share: float) -> int:
    """How many of `count` are held out: the share, rounded; at least one, and never all."""
    return min(max(1, int(count * share + 0.5)), count - 1)


def stream(seed: int, digest: str, purpose: str) -> np.random.Generator:
    """A generator of its own for each environment and use."""
    return np.random.default_rng([seed, *digest.encode(), *purpose.encode()])


def witness_rows(
    stage: Stage, spec: SynthEnvSpec, settings: WarmStart, dropped: Dropped
) -> Iterator[Demonstration]:
    """A row for each seed on which the witness wins within the environment's own turns.

    A fault, a witness that does not win, an action that no reply can say: told to `dropped`, and no row.
    """
    for seed, split, arm in episode_seeds(settings, spec.digest):
        episode = stage.open(Play(spec, seed, 0, arm))
        try:
            row = _row(stage, episode, split, dropped)
        finally:
            episode.env.close()
        if row is not None:
            yield row


def _row(stage: Stage, episode: Episode, split: str, dropped: Dropped) -> Demonstration | None:
    play = episode.play
    prompt = stage.begin(episode)
    replies = [] if episode.stop is not None else _replies(episode.env, play.spec)
    if replies is None or not prompt:
        dropped("the environment failed")
        return None
    said: list[Message] = []
    for reply in replies:
        if reply is None:
            dropped("no reply can say the witness's action")
            return None
        if said:
            said.append(Message("user", episode.observation))
        said.append(Message("assistant", reply))
        stage.act(episode, reply, MAX_TURNS)
        if episode.stop is not None:
            break
    if not episode.success:
        dropped("the environment failed" if episode.fault else "the witness does not win")
        return None
    return Demonstration(
        id=f"{play.spec.env_id} {play.seed} {play.arm}",
        role=Role.AGENT,
        split="train" if split == TRAIN else "held-out",
        environment=play.spec.env_id,
        digest=play.spec.digest,
        seed=play.seed,
        arm=play.arm,
        prompt=prompt,
        completion=tuple(said),
    )


def _replies(env: PlayedEnv, spec: SynthEnvSpec) -> list[str | None] | None:
    """What a model would say for each action of the witness; None when there is no witness."""
    witnessed: _Witnessed = env  # type: ignore[assignment]  # `Stage` opens a SynthEnv
    try:
        actions = witnessed.solution()
    except EnvFaultError:
        return None
    return [reply_of(action, spec) for action in actions]


# --- from an action to the reply that means it ---


def reply_of(action: str, spec: SynthEnvSpec) -> str | None:
    """A reply in the form of the agent's prompt from which exactly `action` is read; None when no form holds it."""
    formats = formats_of(spec)
    forms = _tool_forms(action) if spec.record.action_format == "tools" else _game_forms(action)
    for reply in forms:
        parsed = parse_action(reply, formats)
        if parsed.status == "ok" and parsed.action == action:
            return reply
    return None


def _game_forms(action: str) -> Sequence[str]:
    escaped = action.replace("{", r"\{").replace("}", r"\}")
    return (f"\\boxed{{{action}}}", f"\\boxed{{{escaped}}}")


def _tool_forms(action: str) -> Sequence[str]:
    try:
        said = json.loads(action)
    except ValueError:
        return ()
    if not isinstance(said, dict):
        return ()
    if isinstance(said.get("answer"), str):
        return (f"<answer>{said['answer']}</answer>", action)
    calls = said.get("calls")
    if not isinstance(calls, list):
        return ()
    # Name before arguments, as the prompt's example has it: a model says what it calls first.
    tags = [
        json.dumps({k: call[k] for k in ("name", "arguments") if k in call}, ensure_ascii=False)
        for call in calls
        if isinstance(call, dict)
    ]
    return ("\n".join(f"<tool_call>{tag}</tool_call>" for tag in tags), action)


def _rounded(value: float, rng: np.random.Generator) -> int:
    """A whole number whose mean is `value`: shares of few episodes are right over many environments."""
    whole = int(value)
    return whole + int(rng.random() < value - whole)
