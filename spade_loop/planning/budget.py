"""How much a run designs, plays, samples and trains on, at most: counted from the recipe alone."""

from __future__ import annotations

from dataclasses import dataclass, fields

from spade_loop.batch import BatchShape, proposals
from spade_loop.config import Config
from spade_loop.hints import TRIES
from spade_loop.schedule import Schedule
from spade_loop.types import INITIAL, POLICY, JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One iteration, at most. Tokens are those that the policy samples; prompts and observations are not among them."""

    replies: int
    """With a design, of the policy and of the model that it was: draws and repairs."""
    hint_calls: int
    episodes_plain: int
    episodes_hinted: int
    episodes_placebo: int
    tokens_designs: int
    tokens_hints: int
    tokens_episodes: int

    @property
    def episodes(self) -> int:
        """Of all arms."""
        return self.episodes_plain + self.episodes_hinted + self.episodes_placebo

    @property
    def tokens(self) -> int:
        """Of designs, hints and episodes."""
        return self.tokens_designs + self.tokens_hints + self.tokens_episodes

    def to_json(self) -> JsonRow:
        """Plain data."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"tokens": self.tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A whole run, at most."""

    design: Step
    """An iteration that designs, or chooses another field to play."""
    replay: Step
    """One that plays the same field again."""
    iterations: int
    regenerations: int
    """Iterations of the first kind."""
    steps: int
    """Optimiser steps."""
    drain_steps: int
    """Of these, steps after the last iteration, for designs that still wait."""
    trained_designer: int
    """Tokens of the designer's rows of one regeneration that carry a gradient."""
    trained_agent: int
    """The same of the agent's rows of an iteration."""

    @property
    def designs(self) -> int:
        """Replies with a design in the whole run."""
        return self.regenerations * self.design.replies

    @property
    def episodes_plain(self) -> int:
        """In the whole run."""
        return self._total("episodes_plain")

    @property
    def episodes_hinted(self) -> int:
        """In the whole run."""
        return self._total("episodes_hinted")

    @property
    def sampled(self) -> int:
        """Tokens in the whole run."""
        return self._total("tokens")

    @property
    def trained(self) -> int:
        """Tokens in the whole run: every design is trained on once."""
        return self.regenerations * self.trained_designer + self.iterations * self.trained_agent

    def _total(self, name: str) -> int:
        replays = self.iterations - self.regenerations
        total: int = self.regenerations * getattr(self.design, name)
        return total + replays * int(getattr(self.replay, name))

    def to_json(self) -> JsonRow:
        """Plain data."""
        return {
            "iterations": self.iterations,
            "regenerations": self.regenerations,
            "steps": self.steps,
            "drain_steps": self.drain_steps,
            "iteration_at_most": self.design.to_json(),
            "replay_at_most": self.replay.to_json(),
            "trained_tokens_at_most": {
                "designer": self.trained_designer,
                "agent": self.trained_agent,
            },
            "run_at_most": {
                "designs": self.designs,
                "episodes_plain": self.episodes_plain,
                "episodes_hinted": self.episodes_hinted,
                "sampled_tokens": self.sampled,
                "trained_tokens": self.trained,
            },
        }


def budget_of(config: Config) -> Budget:
    """What a recipe plans."""
    schedule, shape = Schedule.of(config), BatchShape.of(config)
    hint_rows = config.agent.environments * TRIES * config.hints.train
    designing = range(0, config.iterations, config.schedule.regenerate_every)
    return Budget(
        design=_step(config, designs=True, hinted=config.hints.play),
        replay=_step(
            config, designs=False, hinted=config.hints.play and config.schedule.hinted_replays
        ),
        iterations=config.iterations,
        regenerations=len(designing),
        steps=schedule.steps,
        drain_steps=schedule.drain_steps,
        trained_designer=(shape.designer - hint_rows) * config.designer.max_tokens
        + hint_rows * config.hints.max_tokens,
        trained_agent=shape.agent * episode_tokens(config),
    )


def episode_tokens(config: Config) -> int:
    """Tokens that the agent writes in one episode at most."""
    agent = config.agent
    return min(agent.max_turns * agent.turn_tokens, agent.context)


def seeds_at_most(config: Config) -> int:
    """Seeds of an environment in one iteration, those that are played to measure among them."""
    agent = config.agent
    seeds = agent.seeds
    if agent.half_width > 0 and config.reward.paired:
        while 2 * seeds <= agent.max_seeds:
            seeds *= 2
    return seeds


def _step(config: Config, *, designs: bool, hinted: bool) -> Step:
    agent, designer = config.agent, config.designer
    own = proposals(config)
    # One thread of a design is mended, whatever the number of draws.
    replies = (own[POLICY] + own[INITIAL]) * (designer.best_of + designer.repairs) * designs
    calls = agent.environments * TRIES * (designs and config.hints.source == "designer")
    played = agent.environments * agent.plays * (seeds_at_most(config) if hinted else agent.seeds)
    placebo = played * (hinted and config.hints.placebo)
    arms = 1 + hinted
    return Step(
        replies=replies,
        hint_calls=calls,
        episodes_plain=played,
        episodes_hinted=played * hinted,
        episodes_placebo=placebo,
        tokens_designs=replies * designer.max_tokens,
        tokens_hints=calls * config.hints.max_tokens,
        tokens_episodes=(arms * played + placebo) * episode_tokens(config),
    )
