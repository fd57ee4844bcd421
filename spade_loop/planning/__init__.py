"""What a recipe would take, without a GPU, weights or a network: `spade-loop plan`."""

from __future__ import annotations

from spade_loop.planning.memory import SHARDINGS, Sharding
from spade_loop.planning.plan import Plan, make_plan
from spade_loop.planning.table import as_text

__all__ = ["SHARDINGS", "Plan", "Sharding", "as_text", "make_plan"]
