"""A whole measurement as JSON, and as a table for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.table import Table
from rich.text import Text

from spade_loop.gap.results import Rate, Result
from spade_loop.gap.settings import GapSettings
from spade_loop.gap.zones import Zone
from spade_loop.report.formats import MISSING, count, decimal, percent, visible
from spade_loop.speaking import Usage
from spade_loop.types import JsonRow

FORMAT: Final = "spade-loop.gap/1"
WIDE: Final = 120
"""Columns from which the table shows every interval."""
EACH: Final = 20
"""Columns that each further condition needs for it."""
STYLES: Final = {
    Zone.MASTERED: "green",
    Zone.FRONTIER: "bold cyan",
    Zone.OUT_OF_REACH: "red",
    Zone.HINT_USELESS: "yellow",
    Zone.UNMEASURED: "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GapReport:
    """Everything that was measured, and how."""

    place: JsonRow
    """Kind, name and digest of what was measured."""
    model: JsonRow
    settings: GapSettings
    results: Sequence[Result]
    usage: Usage = field(default_factory=Usage)
    prices: tuple[float, float] = (0.0, 0.0)
    """Of a million tokens read, and generated."""
    version: str = ""
    """Of synthgym."""

    @property
    def zones(self) -> dict[Zone, int]:
        """Environments in each zone, in the order of `Zone`."""
        counts = Counter(result.zone for result in self.results)
        return {zone: counts[zone] for zone in Zone}

    @property
    def unusable_share(self) -> float | None:
        """Replies without a usable action among all; None when nobody spoke."""
        turns = sum(result.turns for result in self.results)
        return sum(self.unusable.values()) / turns if turns else None

    @property
    def unusable(self) -> dict[str, int]:
        """Replies without a usable action, by kind."""
        counts: Counter[str] = Counter()
        for result in self.results:
            counts.update(result.unusable)
        return dict(sorted(counts.items()))

    @property
    def cost(self) -> float | None:
        """What was spent; None where no price was given."""
        return self.usage.cost(*self.prices) if any(self.prices) else None

    def sentences(self) -> list[str]:
        """What there is to say in a few lines."""
        found = ", ".join(f"{number} {zone}" for zone, number in self.zones.items() if number)
        what = "task" if self.place["kind"] == "tasks" else "environment"
        spent = f"{count(self.usage.prompt_tokens, 'token')} read, {self.usage.tokens:,} generated"
        cost = "" if self.cost is None else f", cost {self.cost:.4g}"
        told = [
            f"{count(len(self.results), what)}: {found}.",
            f"{count(self.usage.calls, 'reply', 'replies')}, {spent}{cost}.",
        ]
        if self.unusable:
            kinds = ", ".join(f"{kind} {number}" for kind, number in self.unusable.items())
            told.append(
                f"{percent(self.unusable_share)} of the replies held no usable answer ({kinds}); they count as played."
            )
        return told

    def to_json(self) -> JsonRow:
        """Every number, and what it takes to measure it again. No clock and no machine."""
        rules = self.settings.zones
        return {
            "format": FORMAT,
            "synthgym": self.version,
            "field": self.place,
            "model": self.model,
            "settings": self.settings.to_json(),
            "zone_rules": {
                "mastered": rules.mastered,
                "solvable": rules.solvable,
                "helps": rules.helps,
            },
            "zones": {str(zone): number for zone, number in self.zones.items()},
            "replies": {"unusable_share": self.unusable_share, "unusable": self.unusable},
            "spent": {
                "calls": self.usage.calls,
                "prompt_tokens": self.usage.prompt_tokens,
                "tokens": self.usage.tokens,
                "cost": self.cost,
            },
            "environments": [result.to_json() for result in self.results],
        }

    def table(self, width: int) -> Table:
        """For a terminal with `width` columns: intervals stand in brackets, where there is room for them."""
        names = list(self.results[0].others) if self.results else []
        wide = width >= WIDE + EACH * len(names)
        rate, regret = (rate_text, regret_text) if wide else (_rate_alone, _regret_alone)
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column(
            "task" if self.place["kind"] == "tasks" else "environment",
            overflow="fold",
            min_width=12,
        )
        table.add_column("zone", no_wrap=True)
        for name in ("plain", "hinted", "regret", *names, "pairs", "faults"):
            table.add_column(name, justify="right", no_wrap=True)
        for result in self.results:
            table.add_row(
                Text(visible(result.name)),
                Text(str(result.zone), style=STYLES[result.zone]),
                rate(result.plain),
                rate(result.hinted),
                regret(result),
                *(rate(result.others[name]) for name in names),
                str(result.pairs),
                str(result.faults),
            )
        return table


def rate_text(rate: Rate) -> str:
    """`0.25 [0.10, 0.49]`."""
    if rate.value is None:
        return MISSING
    low, high = rate.interval
    return f"{decimal(rate.value)} [{decimal(low)}, {decimal(high)}]"


def regret_text(result: Result) -> str:
    """`+0.25 ± 0.11 [+0.02, +0.47]`."""
    if result.regret is None:
        return MISSING
    low, high = (decimal(end, sign=True) for end in result.regret_interval)
    error = "" if result.regret_error is None else f" ± {decimal(result.regret_error)}"
    return f"{decimal(result.regret, sign=True)}{error} [{low}, {high}]"


def _rate_alone(rate: Rate) -> str:
    return decimal(rate.value)


def _regret_alone(result: Result) -> str:
    if result.regret is None:
        return MISSING
    low, high = (decimal(end, sign=True) for end in result.regret_interval)
    return f"{decimal(result.regret, sign=True)} [{low}, {high}]"
