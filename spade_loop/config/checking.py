"""What a recipe may not say: settings that do not go together, or that cannot be carried out."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from spade_loop.errors import ConfigError
from spade_loop.rewards import DESIGNER_REWARDS
from synthgym.contract import HINT_LEVELS, SKILLS, TOOL_SKILLS
from synthgym.ids import did_you_mean

if TYPE_CHECKING:
    from spade_loop.config.settings import Config, OtherDesigner

ALLOWABLE: Final = (
    "copying-agent-wins",
    "few-instances",
    "random-agent-wins",
    "scraping-agent-wins",
)
"""Reasons that speak of how much an environment teaches, and not of whether it is sound."""
_BY_REGRET: Final = ("gated_regret", "regret", "blend")
"""Designer rewards that need a hinted arm."""
CHOICES: Final = (
    "uniform",
    "without-replacement",
    "replay",
    "sliding-window",
    "learning-progress",
)
"""Curricula of this package."""
CURRICULA_GROUP: Final = "spade_loop.curricula"
"""Entry points of other packages' curricula: name -> a class that is a `spade_loop.curriculum.CurriculumPlugin`."""
MIN_GROUP: Final = 4
"""Designs of a skill an iteration, below which there is too little to compare."""
LORA_DELAY_RATE: Final = 1e-5
"""Learning rate above which a LoRA has moved too far for designs that waited (decision of our own: at such rates
pi_now / pi_sampler leaves the range in which truncated importance sampling helps)."""


def check(config: Config) -> None:
    """Refuse a recipe that cannot run as it says; `ConfigError` names the dotted key."""
    _check_numbers(config)
    _check_policy(config)
    _check_kl(config)
    _check_skills(config)
    _check_designers(config)
    _check_schedule(config)
    _check_choice(config.curriculum.choice)
    for reason in config.validation.allowed:
        if reason not in ALLOWABLE:
            raise ConfigError(
                f"validation.allowed: {reason!r} cannot be allowed{did_you_mean(reason, ALLOWABLE)} "
                f"(can be: {', '.join(ALLOWABLE)})"
            )
    if config.reward.designer not in DESIGNER_REWARDS:
        known = ", ".join(DESIGNER_REWARDS)
        raise ConfigError(f"reward.designer must be one of {known}, got {config.reward.designer!r}")


def _check_choice(choice: str) -> None:
    """Refuse a curriculum that nobody offers."""
    offered = sorted(point.name for point in entry_points(group=CURRICULA_GROUP))
    known = (*CHOICES, *(name for name in offered if name not in CHOICES))
    if choice not in known:
        raise ConfigError(
            f"curriculum.choice must be one of {', '.join(known)}, got {choice!r}{did_you_mean(choice, known)}"
        )


def _at_least(minimum: float, **values: float) -> None:
    for key, value in values.items():
        if not value >= minimum:
            raise ConfigError(
                f"{key.replace('__', '.')} must be at least {minimum:g}, got {value:g}"
            )


def _share(**values: float) -> None:
    for key, value in values.items():
        if not 0.0 <= value <= 1.0:
            raise ConfigError(f"{key.replace('__', '.')} must lie in [0, 1], got {value:g}")


def _check_numbers(config: Config) -> None:
    designer, agent, trainer = config.designer, config.agent, config.trainer
    _at_least(
        1,
        iterations=config.iterations,
        commit_every=config.commit_every,
        corpus__words=config.corpus.words,
        designer__skills_per_iteration=designer.skills_per_iteration,
        designer__max_tokens=designer.max_tokens,
        designer__best_of=designer.best_of,
        hints__max_tokens=config.hints.max_tokens,
        schedule__regenerate_every=config.schedule.regenerate_every,
        agent__environments=agent.environments,
        agent__plays=agent.plays,
        agent__turn_tokens=agent.turn_tokens,
        agent__batch_rows=agent.batch_rows,
        trainer__rows_per_step=trainer.rows_per_step,
        validation__seeds=config.validation.seeds,
        sandbox__max_workers=config.sandbox.max_workers,
        novelty__family_quota=config.novelty.family_quota,
        novelty__window=config.novelty.window,
    )
    _at_least(
        0,
        policy__lora_rank=config.policy.lora_rank,
        designer__candidates=designer.candidates,
        designer__repairs=designer.repairs,
        designer__exemplars=designer.exemplars,
        designer__warnings=designer.warnings,
        designer__near_misses=designer.near_misses,
        designer__rejections=designer.rejections,
        schedule__designer_delay=config.schedule.designer_delay,
        agent__half_width=agent.half_width,
        trainer__beta=trainer.beta,
        trainer__weight_decay=trainer.weight_decay,
        trainer__max_ratio=trainer.max_ratio,
    )
    # Regret over one seed has no standard error, and is not measured.
    _at_least(2, agent__seeds=agent.seeds, agent__max_turns=agent.max_turns)
    if agent.half_width > 0:
        _at_least(agent.seeds, agent__max_seeds=agent.max_seeds)
        if agent.repeats:
            raise ConfigError(
                "agent.repeats plays an environment on as many times the seeds as designs came to it, and "
                "agent.half_width plays on until its regret is known: set one of them"
            )
    _share(
        designer__initial_share=designer.initial_share,
        agent__pool_share=agent.pool_share,
        rehearsal__share=config.rehearsal.share,
        trainer__min_live_share=trainer.min_live_share,
        trainer__min_effective=trainer.min_effective,
        policy__vllm_memory=config.policy.vllm_memory,
    )
    if not 0 <= config.seed < 2**32:
        raise ConfigError(f"seed must lie in 0..{2**32 - 1}, got {config.seed}")
    if not config.hints.play and _needs_regret(config):
        raise ConfigError(
            "hints.play=false measures no regret, which reward.designer or curriculum.score pays by: choose others, or "
            "play hints"
        )
    if config.hints.train and config.hints.source != "designer":
        raise ConfigError(
            "hints.train needs hints.source=designer: the environment's own hints are no call of the model"
        )
    if config.hints.level not in HINT_LEVELS:
        raise ConfigError(f"hints.level must be one of {HINT_LEVELS}, got {config.hints.level}")
    if not trainer.temperature > 0:
        raise ConfigError(f"trainer.temperature must be above 0, got {trainer.temperature:g}")


def _needs_regret(config: Config) -> bool:
    """Whether something is decided by what a hint is worth."""
    paid = config.designer.candidates > 0 and config.reward.designer in _BY_REGRET
    curriculum = config.curriculum
    return paid or (curriculum.choice == "replay" and curriculum.score == "regret")


def _check_policy(config: Config) -> None:
    policy = config.policy
    if not policy.model:
        raise ConfigError("policy.model must name a model: a bundled one, a hub id or a directory")
    if config.designer.initial_share > 0 and policy.lora_rank == 0:
        raise ConfigError(
            "designer.initial_share needs LoRA, whose base model is the initial designer: "
            "set policy.lora_rank above 0 or designer.initial_share=0"
        )
    if policy.backend != "transformers":
        if config.designer.initial_share > 0:
            raise ConfigError(
                f"designer.initial_share: policy.backend={policy.backend} samples from the current weights alone; "
                "set designer.initial_share=0"
            )
        if config.designer.dialect == "blueprint":
            raise ConfigError(
                f"designer.dialect=blueprint is sampled under a grammar, which policy.backend={policy.backend} "
                "does not offer to the trainer: use the transformers backend, or the program dialect"
            )
    if policy.backend == "vllm-server" and not policy.vllm_server:
        raise ConfigError("policy.vllm_server must be the URL of a `vllm serve` (docs/scaling.md)")


def _check_kl(config: Config) -> None:
    if config.trainer.beta > 0 and config.designer.dialect == "blueprint":
        raise ConfigError(
            "trainer.beta must be 0 with designer.dialect=blueprint: the KL term is not defined under a grammar here"
        )


def _check_skills(config: Config) -> None:
    designer = config.designer
    known = TOOL_SKILLS if designer.task == "tools" else SKILLS
    if designer.cell == "blueprint" and designer.dialect != "blueprint":
        raise ConfigError(
            f"designer.cell=blueprint needs designer.dialect=blueprint, got {designer.dialect}: programs have no "
            "parameters"
        )
    if not designer.skills:
        raise ConfigError(
            f"designer.skills must name at least one skill (known: {', '.join(known)})"
        )
    for skill in designer.skills:
        if skill not in known:
            raise ConfigError(
                f"designer.skills: unknown skill {skill!r}{did_you_mean(skill, known)} "
                f"(designer.task={designer.task} knows: {', '.join(known)})"
            )
    if designer.candidates == 0 or not designer.train:
        return  # nothing is compared
    group = designer.candidates // min(designer.skills_per_iteration, len(designer.skills))
    if group < MIN_GROUP:
        raise ConfigError(
            f"designer.candidates must give every skill at least {MIN_GROUP} designs to compare: "
            f"{designer.candidates} designs over {designer.skills_per_iteration} skills give {group}"
        )


def _check_designers(config: Config) -> None:
    for name, count in Counter(other.name for other in config.designers).items():
        if count > 1:
            raise ConfigError(f"designers: {count} have the name {name!r}; names must differ")
    total = config.designer.initial_share + sum(other.share for other in config.designers)
    if total > 1 + 1e-9:
        raise ConfigError(
            f"designers: the shares and designer.initial_share add up to {total:g}, more than 1"
        )
    for other in config.designers:
        _check_designer(other, config.designer.dialect)


def _check_designer(other: OtherDesigner, dialect: str) -> None:
    where = f"designers ({other.name!r})"
    if other.name in ("", "policy", "initial"):
        raise ConfigError(
            f"{where}: give it a name of its own; `policy` and `initial` are the trained model's"
        )
    if not 0.0 < other.share <= 1.0:
        raise ConfigError(f"{where}: share must lie in (0, 1], got {other.share:g}")
    if other.kind in ("random", "mutation"):
        if dialect != "blueprint":
            raise ConfigError(
                f"{where}: kind={other.kind} draws blueprints, and designer.dialect is {dialect}"
            )
        return
    if not other.model:
        raise ConfigError(f"{where}: model must name the model that designs")
    if other.kind == "endpoint" and not other.base_url:
        raise ConfigError(
            f"{where}: base_url must be the endpoint's URL, such as http://localhost:8000/v1"
        )
    if not other.timeout > 0 or other.retries < 0 or other.concurrency < 1 or other.max_tokens < 1:
        raise ConfigError(
            f"{where}: timeout and max_tokens must be above 0, retries at least 0, concurrency at least 1"
        )


def _check_schedule(config: Config) -> None:
    delay = config.schedule.designer_delay
    rate = config.trainer.learning_rate
    if delay > 0 and config.policy.lora_rank > 0 and rate > LORA_DELAY_RATE:
        raise ConfigError(
            f"schedule.designer_delay={delay} with LoRA needs trainer.learning_rate of at most {LORA_DELAY_RATE:g}, "
            f"got {rate:g}: designs that waited would be trained on far from where they were sampled"
        )
