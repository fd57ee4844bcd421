"""Everything measured of an environment over its window: the one argument of every designer reward."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from spade_loop.rewards.regret import Regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One environment, from the iteration in which it was designed to the one in which its designer is paid."""

    regret: Regret
    """Over the whole window."""
    matched: Regret
    """Of offset 0 alone: both arms were played by the agent of one iteration."""
    returns: tuple[tuple[float, ...], ...]
    """Plain returns by offset, iterations since it was designed; empty where it was not played. Measured ones only."""
    hinted_mean: float
    """Mean hinted return; NaN without hinted plays."""
    skill: str

    def __post_init__(self) -> None:
        """Refuse returns that are not finite: plays that are not measurable are to be left out."""
        if not all(isfinite(value) for value in self.plays):
            raise ValueError(
                f"returns of a window must be finite, got {self.returns}: leave out unmeasured plays"
            )

    @property
    def plays(self) -> tuple[float, ...]:
        """All plain returns, the order of offsets kept."""
        return tuple(value for returns in self.returns for value in returns)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets at which it was played."""
        return tuple(j for j, returns in enumerate(self.returns) if returns)

    @property
    def mean_return(self) -> float:
        """Mean of all plain returns, NaN without any."""
        return mean(self.plays)

    @property
    def gain(self) -> float:
        """Mean of the late half minus mean of the early half of the measured offsets; 0 with fewer than two.

        A middle offset counts as late; a mean is over plays, not over offsets.
        """
        offsets = self.offsets
        if len(offsets) < 2:
            return 0.0
        middle = offsets[len(offsets) // 2]
        early = [value for returns in self.returns[:middle] for value in returns]
        late = [value for returns in self.returns[middle:] for value in returns]
        return mean(late) - mean(early)

    @property
    def trend(self) -> float:
        """Slope of weighted least squares of mean(S_j) on j, weights |S_j|, times (last j - first j); 0 with one j.

        The fitted gain over the window: in the units of `gain`, from every offset, so that it is less noisy.
        """
        offsets = self.offsets
        if len(offsets) < 2:
            return 0.0
        weight_J = np.asarray([len(self.returns[j]) for j in offsets], dtype=np.float64)
        weight_J /= weight_J.sum()
        mean_J = np.asarray([mean(self.returns[j]) for j in offsets])
        offset_J = np.asarray(offsets, dtype=np.float64)
        centred_J = offset_J - weight_J @ offset_J
        slope = (weight_J * centred_J) @ mean_J / ((weight_J * centred_J) @ centred_J)
        return float(slope * (offsets[-1] - offsets[0]))

    @property
    def mean_regret(self) -> float:
        """R_h - mean(S): the arms' means, whatever their seeds. NaN when either arm was not played."""
        return self.hinted_mean - self.mean_return

    @property
    def matched_mean_regret(self) -> float:
        """R_h - mean(S_0): the same at offset 0."""
        return self.hinted_mean - (mean(self.returns[0]) if self.returns else float("nan"))


def mean(values: tuple[float, ...] | list[float]) -> float:
    """Mean; NaN of nothing, without a warning."""
    return float(np.mean(values)) if values else float("nan")
