"""Which environments an iteration plays, and how they come out: both arms on the same seeds, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

import numpy as np

from spade_loop.completers import Sampler
from spade_loop.config import Config
from spade_loop.curriculum import (
    SCORES,
    Curriculum,
    Held,
    LearningProgress,
    Replay,
    SlidingWindow,
    Uniform,
    WithoutReplacement,
    plugin,
    rungs,
)
from spade_loop.episodes import Play, Player
from spade_loop.library import STARTING, Library
from spade_loop.measurement import Arms, Measured, fault_reproduces, measure
from spade_loop.progress import Progress
from spade_loop.rewards import CONFIDENCE, Decision, StoppingRule, decide, next_look
from spade_loop.types import Arm, Trajectory
from synthgym.spec import SynthEnvSpec

Streams = Callable[[str], list[int]]
"""Purpose -> what a random stream is derived from."""


def make_curriculum(config: Config, library: Library) -> Curriculum:
    """The recipe's choice among the pool, as a run begins with it."""
    settings, agent = config.curriculum, config.agent
    if settings.choice == "without-replacement":
        return WithoutReplacement(seed=config.seed)
    if settings.choice == "replay":
        return Replay(
            score=settings.score,
            temperature=settings.temperature,
            staleness=settings.staleness,
            replay_probability=settings.replay_probability,
            robust=settings.robust,
        )
    if settings.choice == "sliding-window":
        return SlidingWindow(
            rungs=rungs(library.specs.values()),
            plays=agent.seeds * agent.plays,
            tau_num=settings.attempts,
            hardest=settings.hardest,
        )
    if settings.choice == "learning-progress":
        return LearningProgress()
    other = None if settings.choice == Uniform.kind else plugin(settings.choice)
    return Uniform() if other is None else other.begin(library.specs.values(), config.seed)


def choose(
    config: Config,
    library: Library,
    curriculum: Curriculum,
    proposed: Sequence[str],
    rng: np.random.Generator,
) -> list[str]:
    """Digests to play: a share from the pool, the rest new; each fills in where the other falls short.

    An environment that is in quarantine is never among them. With `agent.repeats` one that was proposed several times
    may be there as often, else once. The same stream and library give the same choice.
    """
    agent = config.agent
    pool = [d for d in library.playable(exclude=proposed) if _offered(config, library, d)]
    usable = set(library.playable())
    wanted = proposed if agent.repeats else dict.fromkeys(proposed)
    new = [digest for digest in wanted if digest in usable]
    from_pool = min(round(agent.pool_share * agent.environments), len(pool))
    from_new = min(agent.environments - from_pool, len(new))
    from_pool = min(agent.environments - from_new, len(pool))
    picked_new = sorted(rng.choice(len(new), size=from_new, replace=False))
    picked_old = curriculum.choose([_held(library, d) for d in pool], from_pool, rng)
    return [*(new[i] for i in picked_new), *picked_old]


def _offered(config: Config, library: Library, digest: str) -> bool:
    return config.agent.pool == "all" or library.records[digest].iteration == STARTING


def observe(curriculum: Curriculum, measured: Sequence[Measured], iteration: int) -> Curriculum:
    """The curriculum after an iteration's plays."""
    score = SCORES[curriculum.score]
    for m in measured:
        curriculum = curriculum.observe(m.spec.digest, score(m), iteration)
    return curriculum


def plays_hints(config: Config, *, regenerates: bool) -> bool:
    """Whether an iteration has a hinted arm."""
    return config.hints.play and (regenerates or config.schedule.hinted_replays)


def trains_on(curriculum: Curriculum, digest: str) -> bool:
    """Whether the agent's episodes in an environment are trained on; Robust PLR only trains on replays."""
    return not isinstance(curriculum, Replay) or curriculum.trains_on(digest)


def _held(library: Library, digest: str) -> Held:
    record = library.records[digest]
    return Held(
        digest=digest,
        skill=record.skill,
        iteration=record.iteration,
        regret=record.regret,
        solve_rate=record.win_rate,
        episodes=record.episodes,
    )


class Field:
    """Plays environments and measures them."""

    def __init__(self, config: Config, player: Player, progress: Progress) -> None:
        self._config = config
        self._player = player
        self._progress = progress

    def play(
        self,
        sampler: Sampler,
        specs: Sequence[SynthEnvSpec],
        *,
        iteration: int,
        hinted: bool,
        streams: Streams,
    ) -> list[Measured]:
        """Every environment on the same seeds in all arms; more seeds, untrained, until its regret is known well.

        One that is there c times is measured once, on c times the seeds.
        """
        agent, reward = self._config.agent, self._config.reward
        counts = Counter(spec.digest for spec in specs)
        specs = list({spec.digest: spec for spec in specs}.values())
        trained = [agent.seeds * counts[spec.digest] for spec in specs]
        most = max([*trained, agent.max_seeds if agent.half_width > 0 and hinted else 0])
        drawn = distinct_seeds(np.random.default_rng(streams("seeds")), 2 * most)
        # Unpaired arms are an ablation: the hinted arm then has seeds that nobody else has.
        second = drawn if reward.paired else drawn[most:]
        reproduces = asked_once(partial(fault_reproduces, hint_level=self._config.hints.level))
        rule = self._rule(hinted)
        arms = [Arms(plain=()) for _ in specs]
        measured: dict[int, Measured] = {}
        going, start, stops = list(range(len(specs))), 0, trained
        while going:
            plays = [
                Play(specs[e], seed, index, arm)
                for e in going
                for arm in self._arms(hinted)
                for seed in (drawn if arm is Arm.PLAIN else second)[start : stops[e]]
                for index in range(agent.plays)
            ]
            self._progress.phase("play", len(plays))
            trajectories = self._player.play(
                sampler,
                plays,
                stream=[*streams("episodes"), start],
                tick=self._progress.advance,
            )
            own = iter(trajectories)
            for e in going:
                played = len(self._arms(hinted)) * (stops[e] - start) * agent.plays
                arms[e] += _arms_of(list(islice(own, played)))
                look = stops[e] * agent.plays
                measured[e] = measure(
                    specs[e],
                    arms[e],
                    reproduces,
                    iteration=iteration,
                    paired=reward.paired,
                    trained_seeds=trained[e],
                    confidence=CONFIDENCE if rule is None else rule.confidence(look),
                )
            if rule is None:
                break
            # With a rule no environment is there twice: all have the same looks.
            start, look = stops[going[0]], stops[going[0]] * agent.plays
            going = [e for e in going if _goes_on(measured[e], look, rule)]
            stops = [(next_look(look, rule) or look) // agent.plays] * len(specs)
        return [measured[e] for e in range(len(specs))]

    def _arms(self, hinted: bool) -> tuple[Arm, ...]:
        if not hinted:
            return (Arm.PLAIN,)
        placebo = (Arm.PLACEBO,) if self._config.hints.placebo else ()
        return (Arm.PLAIN, Arm.HINTED, *placebo)

    def _rule(self, hinted: bool) -> StoppingRule | None:
        """When to stop playing an environment; None when every environment is played once.

        One looks at the recipe's seeds, and then at twice as many each time.
        """
        agent = self._config.agent
        if not hinted or not self._config.reward.paired or agent.half_width == 0:
            return None
        looks, seeds = [], agent.seeds
        while seeds <= agent.max_seeds:
            looks.append(seeds * agent.plays)
            seeds *= 2
        return StoppingRule(looks=tuple(looks), target=agent.half_width)


def _goes_on(measured: Measured, look: int, rule: StoppingRule) -> bool:
    """Whether an environment's regret is not known well enough yet."""
    interval = measured.interval
    return interval is not None and decide(look, interval, rule) is Decision.CONTINUE


def distinct_seeds(rng: np.random.Generator, count: int) -> list[int]:
    """Seeds, each once: one that came twice would have twice the plays. More of them begin with the same."""
    seeds: dict[int, None] = {}
    while len(seeds) < count:
        seeds[int(rng.integers(2**31))] = None
    return list(seeds)


def _arms_of(trajectories: Sequence[Trajectory]) -> Arms:
    by_arm = {arm: tuple(t for t in trajectories if t.arm is arm) for arm in Arm}
    return Arms(plain=by_arm[Arm.PLAIN], hinted=by_arm[Arm.HINTED], placebo=by_arm[Arm.PLACEBO])


def asked_once(
    reproduces: Callable[[SynthEnvSpec, Trajectory], bool],
) -> Callable[[SynthEnvSpec, Trajectory], bool]:
    """Ask once about each fault, however often an environment is measured."""
    known: dict[tuple[str, int, Arm, tuple[str, ...]], bool] = {}

    def ask(spec: SynthEnvSpec, trajectory: Trajectory) -> bool:
        key = (spec.digest, trajectory.seed, trajectory.arm, trajectory.actions)
        if key not in known:
            known[key] = reproduces(spec, trajectory)
        return known[key]

    return ask
