"""How diverse the environments of a snapshot are, at equal size and with intervals."""

from __future__ import annotations

from synthgym.diversity.collecting import Collection, Member, Unmeasured, collect
from synthgym.diversity.figures import FIGURES, Figure
from synthgym.diversity.page import render_page, write_page
from synthgym.diversity.report import (
    DEFAULT_SAMPLE,
    Diversity,
    Family,
    Measured,
    NearPair,
    compare,
    measure,
)
from synthgym.diversity.resampling import Estimate
from synthgym.diversity.vendi import vendi_score

__all__ = [
    "DEFAULT_SAMPLE",
    "FIGURES",
    "Collection",
    "Diversity",
    "Estimate",
    "Family",
    "Figure",
    "Measured",
    "Member",
    "NearPair",
    "Unmeasured",
    "collect",
    "compare",
    "measure",
    "render_page",
    "vendi_score",
    "write_page",
]
