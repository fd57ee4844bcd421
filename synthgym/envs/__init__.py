"""Environments of the contract as Gymnasium environments, and the action layer in front of them."""

from __future__ import annotations

from synthgym.envs.actions import Parsed, ParseStatus, parse_action
from synthgym.envs.synth_env import SavedState, SynthEnv
from synthgym.envs.vector_env import SynthVectorEnv
from synthgym.envs.wrappers import HintWrapper

__all__ = [
    "HintWrapper",
    "ParseStatus",
    "Parsed",
    "SavedState",
    "SynthEnv",
    "SynthVectorEnv",
    "parse_action",
]
