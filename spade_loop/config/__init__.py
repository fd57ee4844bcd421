"""The recipe of a run: every setting, what may not be said, and how a recipe is read."""

from __future__ import annotations

from spade_loop.config.checking import ALLOWABLE
from spade_loop.config.loading import from_mapping, load_config, recipes
from spade_loop.config.settings import (
    AgentConfig,
    Config,
    CorpusConfig,
    CurriculumConfig,
    DesignerConfig,
    HintConfig,
    NoveltyConfig,
    OtherDesigner,
    PolicyConfig,
    RehearsalConfig,
    RewardConfig,
    SandboxConfig,
    ScheduleConfig,
    TrainerConfig,
    ValidationConfig,
)

__all__ = [
    "ALLOWABLE",
    "AgentConfig",
    "Config",
    "CorpusConfig",
    "CurriculumConfig",
    "DesignerConfig",
    "HintConfig",
    "NoveltyConfig",
    "OtherDesigner",
    "PolicyConfig",
    "RehearsalConfig",
    "RewardConfig",
    "SandboxConfig",
    "ScheduleConfig",
    "TrainerConfig",
    "ValidationConfig",
    "from_mapping",
    "load_config",
    "recipes",
]
