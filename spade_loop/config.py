"""The recipe: frozen dataclasses, one for each consumer. Defaults stand here and nowhere else.

A recipe is a TOML file; `--set dotted.key=value` overrides one setting. A misspelt key is refused with the nearest
name, a wrong type with the type that was expected.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec

from spade_loop.errors import ConfigError
from spade_loop.rewards import DESIGNER_REWARDS, FAULT_FLOOR
from synthgym.contract import HINT_LEVELS, SKILLS
from synthgym.ids import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """The one model that plays both roles."""

    model: str = "smollm2-135m-instruct"
    """A bundled name, a Hugging Face model id, or a local directory."""
    revision: str = ""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """`auto` is bfloat16 on a GPU and on a CPU that computes in it, else float32."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    lora_rank: int = 16
    """0 trains all weights."""
    lora_alpha: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusConfig:
    """Documents that ground the designer."""

    path: str = ""
    """JSONL with `text` and optional `id`, `license`; empty means the bundled documents."""
    words: int = 120
    """A document is cut to this many words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignerConfig:
    """How environments are designed."""

    dialect: Literal["blueprint", "program", "edit"] = "blueprint"
    families: tuple[str, ...] = ()
    """Blueprint families; empty means all."""
    skills: tuple[str, ...] = SKILLS
    skills_per_iteration: int = 1
    candidates: int = 6
    """Designs an iteration, over all its skills."""
    max_tokens: int = 96
    exemplars: int = 1
    """Held environments shown as good examples."""
    warnings: int = 1
    """Held environments shown as too easy or too hard."""
    initial_share: float = 0.15
    """Share of proposals from the initial designer (the base model under LoRA): exploration, never trained on."""
    cell_bonus: float = 0.05
    """Weight of -log(recent share of the design's cell)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """How environments are played."""

    environments: int = 4
    """Environments played an iteration."""
    pool_share: float = 0.25
    """Share of them drawn from the registry snapshot and from earlier iterations."""
    seeds: int = 4
    plays: int = 2
    """Plays of a seed, in each arm."""
    max_turns: int = 4
    turn_tokens: int = 24
    context: int = 512
    """Tokens of one episode, prompt included; an episode that would grow beyond it is cut."""
    batch_rows: int = 64
    """Episodes that are played at once."""
    hint_level: int = 2
    score: Literal["sum", "terminal"] = "sum"
    """What an episode is worth: the sum of its rewards, or 1 for a success and 0 otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardConfig:
    """What the roles are paid."""

    designer: str = "gated_regret"
    valid_weight: float = 0.3
    fault_floor: float = FAULT_FLOOR
    designer_weight: float = 0.3
    agent_weight: float = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class NoveltyConfig:
    """When a design counts as one that is held already."""

    embedder: Literal["auto", "minilm", "hash"] = "auto"
    strictness: Literal["copy", "refactor", "sibling"] = "refactor"
    """What counts as a duplicate of a free program."""
    family_quota: int = 32
    window: int = 8
    """Iterations after which the gate forgets a blueprint, so that a finite space never saturates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConfig:
    """The update. Values are those of TRL's GRPOConfig where the names agree."""

    learning_rate: float = 1e-5
    rows_per_step: int = 4
    """Rows of one forward pass; they set memory, not the result."""
    temperature: float = 1.0
    max_grad_norm: float = 1.0
    epsilon: float = 0.2
    epsilon_high: float = 0.28
    min_live_share: float = 0.1
    """Below this share of rows with an advantage the optimiser step is skipped and counted."""
    max_logprob_gap: float = 0.25
    """Alarm when sampler and trainer disagree by more than this, on average, about a trained token."""


ALLOWABLE: Final = (
    "copying-agent-wins",
    "few-instances",
    "random-agent-wins",
    "scraping-agent-wins",
)
"""Reasons that speak of how much an environment teaches, and not of whether it is sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationConfig:
    """Admission."""

    seeds: int = 20
    allowed: tuple[str, ...] = ()
    """Reasons to refuse that do not count: a small model may need environments that luck wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """The processes that run environments."""

    require: Literal["none", "reduced", "partial", "full"] = "none"
    """Level of isolation below which nothing is run."""
    max_workers: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A whole run."""

    name: str = "run"
    seed: int = 0
    iterations: int = 3
    registry: str = ""
    """Directory of a registry snapshot; empty means the bundled one."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    designer: DesignerConfig = field(default_factory=DesignerConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    novelty: NoveltyConfig = field(default_factory=NoveltyConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)

    def __post_init__(self) -> None:
        check(self)

    def to_json(self) -> dict[str, Any]:
        """JSON object from which `from_mapping` rebuilds an equal config."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def _at_least(minimum: float, **values: float) -> None:
    for key, value in values.items():
        if value < minimum:
            raise ConfigError(
                f"{key.replace('__', '.')} must be at least {minimum:g}, got {value:g}"
            )


def _share(**values: float) -> None:
    for key, value in values.items():
        if not 0.0 <= value <= 1.0:
            raise ConfigError(f"{key.replace('__', '.')} must lie in [0, 1], got {value:g}")


def check(config: Config) -> None:
    """Refuse a recipe that cannot run as it says; `ConfigError` names the dotted key."""
    designer, agent = config.designer, config.agent
    _at_least(1, iterations=config.iterations, corpus__words=config.corpus.words)
    _at_least(
        1,
        designer__skills_per_iteration=designer.skills_per_iteration,
        designer__max_tokens=designer.max_tokens,
        agent__environments=agent.environments,
        agent__plays=agent.plays,
        agent__turn_tokens=agent.turn_tokens,
        agent__batch_rows=agent.batch_rows,
        trainer__rows_per_step=config.trainer.rows_per_step,
        validation__seeds=config.validation.seeds,
        sandbox__max_workers=config.sandbox.max_workers,
        novelty__family_quota=config.novelty.family_quota,
        novelty__window=config.novelty.window,
    )
    _at_least(
        0,
        policy__lora_rank=config.policy.lora_rank,
        designer__exemplars=designer.exemplars,
        designer__warnings=designer.warnings,
    )
    # Regret over one seed has no standard error, and is not measured.
    _at_least(2, agent__seeds=agent.seeds, agent__max_turns=agent.max_turns)
    _share(
        designer__initial_share=designer.initial_share,
        agent__pool_share=agent.pool_share,
        trainer__min_live_share=config.trainer.min_live_share,
    )
    if not 0 <= config.seed < 2**32:
        raise ConfigError(f"seed must lie in 0..{2**32 - 1}, got {config.seed}")
    if agent.hint_level not in HINT_LEVELS:
        raise ConfigError(f"agent.hint_level must be one of {HINT_LEVELS}, got {agent.hint_level}")
    if not config.trainer.temperature > 0:
        raise ConfigError(
            f"trainer.temperature must be above 0, got {config.trainer.temperature:g}"
        )
    if not config.policy.model:
        raise ConfigError("policy.model must name a model: a bundled one, a hub id or a directory")
    _check_skills(designer)
    for reason in config.validation.allowed:
        if reason not in ALLOWABLE:
            raise ConfigError(
                f"validation.allowed: {reason!r} cannot be allowed{did_you_mean(reason, ALLOWABLE)} "
                f"(can be: {', '.join(ALLOWABLE)})"
            )
    if config.reward.designer not in DESIGNER_REWARDS:
        known = ", ".join(DESIGNER_REWARDS)
        raise ConfigError(f"reward.designer must be one of {known}, got {config.reward.designer!r}")
    if designer.initial_share > 0 and config.policy.lora_rank == 0:
        raise ConfigError(
            "designer.initial_share needs LoRA, whose base model is the initial designer: "
            "set policy.lora_rank above 0 or designer.initial_share=0"
        )


def _check_skills(designer: DesignerConfig) -> None:
    if not designer.skills:
        raise ConfigError(
            f"designer.skills must name at least one skill (known: {', '.join(SKILLS)})"
        )
    for skill in designer.skills:
        if skill not in SKILLS:
            raise ConfigError(
                f"designer.skills: unknown skill {skill!r}{did_you_mean(skill, SKILLS)} (known: {', '.join(SKILLS)})"
            )
    group = designer.candidates // designer.skills_per_iteration
    if group < 4:
        raise ConfigError(
            "designer.candidates must give every skill at least 4 designs to compare: "
            f"{designer.candidates} designs over {designer.skills_per_iteration} skills give {group}"
        )


def recipes() -> dict[str, Path]:
    """Bundled recipes by name."""
    folder = Path(str(resources.files("spade_loop").joinpath("recipes")))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_config(recipe: str = "tiny", overrides: Sequence[str] = ()) -> Config:
    """The config of a bundled recipe or of a TOML file, with `dotted.key=value` overrides applied in order."""
    data = _read_recipe(recipe)
    for override in overrides:
        _apply(data, override)
    return from_mapping(data)


def from_mapping(data: Mapping[str, Any]) -> Config:
    """A config from nested plain data. `ConfigError` names the dotted key that is wrong."""
    _refuse_unknown(data, Config, "")
    try:
        return msgspec.convert(data, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(_dotted(str(error))) from error


def _read_recipe(recipe: str) -> dict[str, Any]:
    known = recipes()
    path = Path(recipe) if recipe.endswith(".toml") else known.get(recipe)
    if path is None:
        raise ConfigError(
            f"no recipe {recipe!r}{did_you_mean(recipe, known)} "
            f"(bundled: {', '.join(known)}; or give a path that ends in .toml)"
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"recipe file {path} does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"recipe file {path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"recipe file {path} is not valid TOML: {error}") from error


def _apply(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set takes dotted.key=value, got {override!r}")
    *parents, last = key.strip().split(".")
    target = data
    for parent in parents:
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise ConfigError(f"{key.strip()}: {parent} is a setting, not a section")
    target[last] = _value(text.strip())


def _value(text: str) -> Any:
    """TOML when it parses as TOML (numbers, booleans, lists, quoted strings), plain text otherwise."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _refuse_unknown(data: Mapping[str, Any], cls: type, prefix: str) -> None:
    hints = get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(cls)]
    for key, value in data.items():
        if key not in names:
            section = prefix.removesuffix(".") or "a recipe"
            raise ConfigError(
                f"unknown setting {prefix}{key}{did_you_mean(key, names)} ({section} has: {', '.join(names)})"
            )
        if dataclasses.is_dataclass(hints[key]):
            if not isinstance(value, Mapping):
                raise ConfigError(
                    f"{prefix}{key} is a section, expected [{prefix}{key}], got {value!r}"
                )
            _refuse_unknown(value, hints[key], f"{prefix}{key}.")
        elif get_origin(hints[key]) is Literal and value not in get_args(hints[key]):
            choices = get_args(hints[key])
            raise ConfigError(
                f"{prefix}{key} must be one of {', '.join(choices)}, got {value!r}"
                f"{did_you_mean(str(value), choices)}"
            )


def _dotted(message: str) -> str:
    """Msgspec says "Expected `int`, got `str` - at `$.agent.seeds`"; ours starts with the dotted key."""
    text, _, where = message.partition(" - at `$.")
    key = where.removesuffix("`")
    return f"{key}: {text[0].lower()}{text[1:]}" if key else text
