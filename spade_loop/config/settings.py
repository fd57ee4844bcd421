"""Every setting with its default: frozen dataclasses, one for each consumer. Defaults stand here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from spade_loop.config.checking import check
from spade_loop.rewards import FAULT_FLOOR, SOLVE_RATE_GATE, BlendParameters, LearningRates
from synthgym.contract import SKILLS


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """The one model that plays both roles."""

    model: str = "smollm2-135m-instruct"
    """A bundled name, a Hugging Face model id, or a local directory."""
    revision: str = ""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """`auto` is bfloat16 under LoRA on a GPU and on a CPU that computes in it, else float32."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    lora_rank: int = 16
    """0 trains all weights."""
    lora_alpha: int = 32
    thinking: Literal["template", "on", "off"] = "template"
    """Whether a chat template that knows `enable_thinking` is asked to think; `template` leaves it to its default."""
    backend: Literal["transformers", "vllm-colocate", "vllm-server"] = "transformers"
    """Where the policy samples: in the trainer's own model, or in vLLM as TRL drives it."""
    vllm_memory: float = 0.3
    """Share of the GPU's memory that a colocated vLLM takes."""
    vllm_server: str = ""
    """URL of a `vllm serve`, for `vllm-server` (docs/scaling.md says with which flags)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusConfig:
    """Documents that ground the designer."""

    use: bool = True
    """False designs without documents: the skill's ideas stand in for them."""
    path: str = ""
    """JSONL with `text` and optional `id`, `license`; empty means the bundled documents."""
    words: int = 120
    """A document is cut to this many words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignerConfig:
    """How environments are designed."""

    dialect: Literal["blueprint", "program", "edit"] = "blueprint"
    task: Literal["game", "tools"] = "game"
    """Games of boxed commands, or environments with tools."""
    families: tuple[str, ...] = ()
    """Blueprint families, bundled ones by name, others by their folder, with a slash in it; empty means all bundled."""
    skills: tuple[str, ...] = SKILLS
    skills_per_iteration: int = 1
    candidates: int = 6
    """Designs an iteration, over all its skills."""
    best_of: int = 1
    """Replies drawn for each design, of which the one farthest from everything held is kept."""
    repairs: int = 0
    """Turns in which a refused design may be mended; each is a row of its own."""
    train: bool = True
    """False leaves the designer's rows out of the update."""
    max_tokens: int = 96
    exemplars: int = 1
    """Held environments shown as good examples."""
    warnings: int = 1
    """Held environments shown as too easy or too hard."""
    near_misses: int = 0
    """Held environments nearest to the document, shown as what not to write again."""
    rejections: int = 0
    """Recent refusals of the skill, shown with their reasons."""
    parents: Literal["uniform", "regret"] = "uniform"
    """How the `edit` dialect picks what it starts from: any held environment, or one of high regret."""
    initial_share: float = 0.15
    """Share of proposals from the initial designer (the base model under LoRA): exploration, never trained on."""
    cell_bonus: float = 0.05
    """Weight of -log(recent share of the design's cell)."""
    cell: Literal["family", "blueprint"] = "family"
    """What counts as one kind of design: a family, or a blueprint with all its parameters; for programs, the skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherDesigner:
    """A designer beside the trained one. It is never trained; its designs are played like all others."""

    name: str
    kind: Literal["endpoint", "transformers", "vllm", "random", "mutation"]
    """An OpenAI-compatible endpoint, a frozen model here, random blueprints, or mutations of high regret."""
    share: float
    """Share of an iteration's designs."""
    model: str = ""
    base_url: str = ""
    """Of an endpoint, `/v1` included."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key of an endpoint; empty when it needs none."""
    temperature: float = 0.6
    max_tokens: int = 4096
    timeout: float = 120.0
    """Seconds that one request may take."""
    retries: int = 5
    concurrency: int = 8
    """Requests under way at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HintConfig:
    """The privileged hint of the second arm."""

    play: bool = True
    """False plays no hinted arm: for pools that nobody is paid regret for."""
    source: Literal["environment", "designer"] = "environment"
    """Written by the environment's `hint()`, or by the model from the source, in a call of its own."""
    level: int = 2
    """Of `hint()`: 1 a nudge, 2 a strategy, 3 near to the answer."""
    max_tokens: int = 128
    """Of a hint that the model writes."""
    train: bool = False
    """Whether the call that writes a hint is trained on, by the regret it brought."""
    placebo: bool = False
    """A third arm, whose hint is as long and says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """When environments are designed anew, and when their designer is paid."""

    regenerate_every: int = 1
    """Iterations for which a field of environments is kept; between two designs the agent plays it again."""
    designer_delay: int = 0
    """Iterations after which a design is trained on, with everything measured of it by then."""
    regret: Literal["window", "matched"] = "window"
    """Plain plays that regret looks at: of all iterations so far, or of the one in which the hint was played."""
    hinted_replays: bool = False
    """Whether the hinted arm is played again in iterations without new designs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """How environments are played."""

    environments: int = 4
    """Environments played an iteration."""
    pool_share: float = 0.25
    """Share of them drawn from the registry snapshot and from earlier iterations."""
    pool: Literal["all", "starting"] = "all"
    """What that share is drawn from: everything held, or the starting snapshot alone."""
    repeats: bool = False
    """Whether an environment that several designs of an iteration came to is played on as many times the seeds."""
    seeds: int = 4
    plays: int = 2
    """Plays of a seed, in each arm."""
    max_turns: int = 4
    turn_tokens: int = 24
    context: int = 512
    """Tokens of one episode, prompt included; an episode that would grow beyond it is cut."""
    batch_rows: int = 64
    """Episodes that are played at once."""
    half_width: float = 0.0
    """Play on, untrained, until the 95 % interval of an environment's regret is this narrow; 0 plays no more."""
    max_seeds: int = 64
    """Seeds an environment gets at most when `half_width` asks for more."""
    score: Literal["sum", "terminal", "reference"] = "sum"
    """What an episode is worth: the sum of its rewards; 1 for a success, else 0; or, as the released code of the paper
    has it, the last reward of an episode that terminated, cut to [-1, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurriculumConfig:
    """How environments are chosen from the pool (docs/baselines.md)."""

    choice: str = "uniform"
    """One of `checking.CHOICES`, or what another package offers under `checking.CURRICULA_GROUP`."""
    score: Literal["regret", "l1_advantage", "positive_advantage"] = "regret"
    """What `replay` ranks by."""
    temperature: float = 0.1
    """beta of `replay`."""
    staleness: float = 0.1
    """rho of `replay`."""
    replay_probability: float | None = None
    """p of `replay`; left out it is the share of the pool that was played."""
    robust: bool = False
    """Whether `replay` trains on replays only."""
    rlve: tuple[str, ...] = ()
    """Environments of the package rlve-gym that join the pool, at every difficulty up to `hardest`."""
    hardest: int = 20
    attempts: int = 8
    """Episodes at its highest difficulty after which `sliding-window` judges an environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardConfig:
    """What the roles are paid."""

    designer: str = "gated_regret"
    gate: float = SOLVE_RATE_GATE
    """Plain solve rate from which `gated_regret` counts regret in full."""
    floored: bool = False
    """`regret` pays max(0, R): the formula of the paper's figure, which pays for noise as well."""
    repaired_factor: float = 1.0
    """What is left of the reward of a design that had to be mended; 1 takes nothing away."""
    blend: BlendParameters = field(default_factory=BlendParameters)
    learning: LearningRates = field(default_factory=LearningRates)
    valid_weight: float = 0.3
    fault_floor: float = FAULT_FLOOR
    paired: bool = True
    """False plays the two arms on different seeds: an ablation."""
    reference: bool = False
    """Centre and scale as the released code of the paper does (docs/spade.md)."""
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
    gate: bool = True
    """False admits duplicates: an ablation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalConfig:
    """Demonstrations that every update imitates, beside what was sampled (docs/warmstart.md)."""

    rows: str = ""
    """JSONL as `spade-loop warmstart` writes it; empty rehearses nothing."""
    share: float = 0.1
    """Weight of the supervised loss, and their number for each row that the roles plan; none without `rows`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConfig:
    """The update. Values are those of TRL's GRPOConfig where the names agree."""

    learning_rate: float = 1e-5
    rows_per_step: int = 4
    """Rows of one forward pass; they set memory, not the result."""
    temperature: float = 1.0
    max_grad_norm: float = 1.0
    weight_decay: float = 0.0
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    beta: float = 0.0
    """Weight of the KL term against the initial policy."""
    epsilon: float = 0.2
    epsilon_high: float = 0.28
    min_live_share: float = 0.1
    """Below this share of rows with an advantage the optimiser step is skipped and counted."""
    max_logprob_gap: float = 0.25
    """Alarm when sampler and trainer disagree by more than this, on average, about a trained token."""
    max_ratio: float = 2.0
    """Cap of pi_now / pi_sampler, by which a token of a delayed design counts (truncated importance sampling)."""
    min_effective: float = 0.3
    """Below this effective share of its tokens a delayed design is dropped and counted."""
    report_to: tuple[str, ...] = ()
    """Trackers that TRL reports to: tensorboard, wandb, trackio, ..."""


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
    commit_every: int = 1
    """Iterations after which the run is committed; a kill loses at most these."""
    registry: str = ""
    """Directory of a registry snapshot; empty means the bundled one."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    designer: DesignerConfig = field(default_factory=DesignerConfig)
    designers: tuple[OtherDesigner, ...] = ()
    hints: HintConfig = field(default_factory=HintConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    novelty: NoveltyConfig = field(default_factory=NoveltyConfig)
    rehearsal: RehearsalConfig = field(default_factory=RehearsalConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)

    def __post_init__(self) -> None:
        check(self)

    def to_json(self) -> dict[str, Any]:
        """JSON object from which `from_mapping` rebuilds an equal config."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain
