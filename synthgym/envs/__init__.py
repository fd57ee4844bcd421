"""Environments of the contract as Gymnasium environments, and the action layer in front of them."""

from __future__ import annotations

from synthgym.envs.actions import (
    GAME_FORMATS,
    TOOL_FORMATS,
    ActionFormat,
    Parsed,
    ParseStatus,
    encode_action,
    encode_answer,
    parse_action,
)
from synthgym.envs.synth_env import SavedState, SynthEnv
from synthgym.envs.vector_env import SynthVectorEnv
from synthgym.envs.wrappers import HintWrapper

__all__ = [
    "GAME_FORMATS",
    "TOOL_FORMATS",
    "ActionFormat",
    "HintWrapper",
    "ParseStatus",
    "Parsed",
    "SavedState",
    "SynthEnv",
    "SynthVectorEnv",
    "encode_action",
    "encode_answer",
    "parse_action",
]
