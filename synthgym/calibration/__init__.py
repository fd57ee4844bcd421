"""How hard an environment is for agents that know no language."""

from __future__ import annotations

from synthgym.calibration.measure import AGENTS, Calibration, agent_of, calibrate, check_settings
from synthgym.calibration.scores import Interval, Score, wilson
from synthgym.calibration.search import DEFAULT_BUDGET, Plan, Search, Tried

__all__ = [
    "AGENTS",
    "DEFAULT_BUDGET",
    "Calibration",
    "Interval",
    "Plan",
    "Score",
    "Search",
    "Tried",
    "agent_of",
    "calibrate",
    "check_settings",
    "wilson",
]
