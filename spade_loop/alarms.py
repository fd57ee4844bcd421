"""What a person should look at: signs that a run has left the ground it stands on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spade_loop.measurement import Measured
from spade_loop.rewards import CELL_WINDOW, few_kinds, only_hints_solve
from spade_loop.state import RunState


def alarms(state: RunState, measured: Sequence[Measured]) -> tuple[str, ...]:
    """One line for each alarm that this step's state and measurements give."""
    found = []
    if only_hints_solve([m.regret for m in measured if m.measurable]):
        found.append("alarm: regret is high while almost nothing is solved without its hint")
    counts = Counter(cell for cells in state.cells for cell in cells)
    if few_kinds(list(counts.values()), len(state.cells)):
        found.append(
            f"alarm: designs of the last {CELL_WINDOW} regenerations fall into fewer than four kinds"
        )
    return tuple(found)
