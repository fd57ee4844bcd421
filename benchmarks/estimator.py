"""How sure one may be of a regret: coverage of its intervals, and what paired seeds save.

    python benchmarks/estimator.py                       # 2,000 environments of each kind, about five minutes
    python benchmarks/estimator.py --environments 200    # a look
    python benchmarks/estimator.py --out estimator.csv   # every number of every kind

An environment is simulated, so that its regret is known. A seed s has a plain rate p_s from a beta
distribution with mean m and intra-class correlation rho: alpha + beta = (1 - rho) / rho, hence
Var(p) = rho m (1 - m). With the hint a play is won also where it would have been lost, r times in
one: h_s = p_s + (1 - p_s) r. So the regret is (1 - m) r; r = 0 is a useless hint. Kinds are all
combinations of m (hard to easy), r and rho.

**Coverage.** `regret_interval` at 95 % after a fixed number of pairs, and the interval at which
`StoppingRule` stops; a pair is a plain and a hinted play of one seed. The goal holds for all kinds
together, and the kind that is covered least is shown.

**Variance.** A play of seed s is a Bernoulli variable with rate p_s or h_s, drawn independently of
all others given the seed. With K plays a seed in each arm, and E over seeds,

    Var(mean of a seed's plain plays)  = Var(p) + E[p (1 - p)] / K = Var(p) + W_p / K
    Var(mean of a seed's hinted plays) = Var(h) + E[h (1 - h)] / K = Var(h) + W_h / K

What both arms share of a seed is Cov(h, p). Paired seeds take it out of the difference; seeds of
each arm's own leave it in:

    n Var(paired regret)   = Var(h) + Var(p) - 2 Cov(h, p) + (W_h + W_p) / K
    n Var(unpaired regret) = Var(h) + Var(p)               + (W_h + W_p) / K

and their ratio is 1 - 2 Cov / (Var(h) + Var(p) + (W_h + W_p) / K). Here Var(h) = (1 - r)^2 Var(p),
Cov = (1 - r) Var(p), W = mean (1 - mean) - Var. For a useless hint the ratio is
(1 - rho) / (1 + (K - 1) rho): 0.27 for rho = 0.4 and K = 4.

The intra-class correlation of both arms together (the class is the seed) is the shared component
over a play's variance, 2 Cov / (Var(h) + W_h + Var(p) + W_p). It is rho for a useless hint and
falls as the hint wins everywhere: then nothing is left that a seed could share.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from harness import Goal, machine, positive, table

from spade_loop.rewards import (
    DEFAULT_RULE,
    Decision,
    decide,
    next_look,
    paired_regret,
    regret_interval,
    unpaired_regret,
)

Floats = npt.NDArray[np.float64]
RATES: Final = (0.05, 0.3, 0.6, 0.9)
RESCUED: Final = (0.0, 0.3, 0.8)
CORRELATIONS: Final = (0.0, 0.2, 0.4, 0.6, 0.8)
PLAYS: Final = (1, 4)
PAIRS: Final = (8, 16, 32, 64)
STOPPED: Final = "stopping rule"
COVERAGE: Final = Goal(0.93, unit="")
DEVIATION: Final = Goal(0.10, at_most=True, unit="")
"""Of the measured ratio of variances from theory, relative."""
RATIO: Final = Goal(0.5, at_most=True, unit="")
SHARED: Final = 0.4
"""Intra-class correlation of both arms from which `RATIO` is asked for, with the most plays a seed."""
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Kind:
    """Environments that are alike in everything but luck."""

    rate: float
    """m: mean plain rate."""
    rescued: float
    """r: share of the lost plays that the hint wins."""
    correlation: float
    """rho: of two plain plays of one seed."""
    plays: int
    """K, of a seed in each arm."""

    @property
    def regret(self) -> float:
        """What the interval should cover."""
        return (1.0 - self.rate) * self.rescued

    @property
    def _parts(self) -> tuple[float, float, float]:
        """(shared component 2 Cov, variance between seeds, variance within them), both arms together."""
        plain = self.correlation * self.rate * (1.0 - self.rate)
        hinted = (1.0 - self.rescued) ** 2 * plain
        mean = self.rate + self.regret
        within = self.rate * (1.0 - self.rate) - plain + mean * (1.0 - mean) - hinted
        return 2.0 * (1.0 - self.rescued) * plain, plain + hinted, within

    @property
    def ratio(self) -> float:
        """Paired over unpaired variance, by theory."""
        shared, between, within = self._parts
        return 1.0 - shared / (between + within / self.plays)

    @property
    def shared(self) -> float:
        """Intra-class correlation of both arms together."""
        shared, between, within = self._parts
        return shared / (between + within)

    def rates(self, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Plain rates of seeds, [environments, seeds]."""
        if self.correlation == 0.0:
            return np.full(shape, self.rate)
        total = (1.0 - self.correlation) / self.correlation
        return rng.beta(self.rate * total, (1.0 - self.rate) * total, shape)

    def hinted(self, rate_ES: Floats, rng: np.random.Generator) -> Floats:
        """Wins with the hint, [environments, seeds, plays]."""
        return self.plain(rate_ES + (1.0 - rate_ES) * self.rescued, rng)

    def plain(self, rate_ES: Floats, rng: np.random.Generator) -> Floats:
        """Wins of `plays` plays at each rate, [environments, seeds, plays]."""
        drawn = rng.random((*rate_ES.shape, self.plays))
        return (drawn < rate_ES[..., None]).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Covered:
    """How one kind's intervals came out under one rule."""

    rule: str
    """Number of pairs, or `STOPPED`."""
    share: float
    """Of environments whose interval holds the true regret."""
    width: float
    """Mean half-width."""
    pairs: float
    """Mean number played."""


@dataclass(frozen=True, slots=True)
class Variances:
    """Mean squared standard errors of one kind, and the variance of the estimates themselves."""

    paired: float
    unpaired: float
    actual: float
    """Variance of the paired estimates over environments, divided by the mean squared standard error: 1 by theory."""

    @property
    def ratio(self) -> float:
        """Paired over unpaired, as measured."""
        return self.paired / self.unpaired


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything of one kind."""

    kind: Kind
    environments: int
    covered: tuple[Covered, ...]
    variances: Variances

    @property
    def deviation(self) -> float:
        """Of the ratio from theory, relative."""
        return abs(self.variances.ratio / self.kind.ratio - 1.0)


def kinds() -> Iterator[Kind]:
    """All of them."""
    for plays, correlation, rate, rescued in itertools.product(PLAYS, CORRELATIONS, RATES, RESCUED):
        yield Kind(rate, rescued, correlation, plays)


def measure(kind: Kind, environments: int, seed: int) -> Measured:
    """Simulate a kind. The same arguments give the same numbers."""
    numbers = [round(100 * n) for n in (kind.rate, kind.rescued, kind.correlation)]
    rng = np.random.default_rng([seed, kind.plays, *numbers])
    shape = (environments, DEFAULT_RULE.looks[-1] // kind.plays)
    rate_ES = kind.rates(shape, rng)
    hinted, plain = kind.hinted(rate_ES, rng), kind.plain(rate_ES, rng)
    covered = [fixed(kind, hinted, plain, pairs) for pairs in PAIRS]
    covered.append(stopped(kind, hinted, plain))
    elsewhere = kind.plain(kind.rates(shape, rng), rng)
    return Measured(kind, environments, tuple(covered), variances(hinted, plain, elsewhere))


def fixed(kind: Kind, hinted_ESK: Floats, plain_ESK: Floats, pairs: int) -> Covered:
    """95 % intervals after so many pairs."""
    seeds = pairs // kind.plays
    found = [
        regret_interval(hinted[:seeds], plain[:seeds])
        for hinted, plain in zip(hinted_ESK, plain_ESK, strict=True)
    ]
    inside = [one.low <= kind.regret <= one.high for one in found]
    width = float(np.mean([one.half_width for one in found]))
    return Covered(str(pairs), float(np.mean(inside)), width, float(pairs))


def stopped(kind: Kind, hinted_ESK: Floats, plain_ESK: Floats) -> Covered:
    """Intervals at which the rule stops."""
    inside, width, pairs = [], [], []
    for hinted_SK, plain_SK in zip(hinted_ESK, plain_ESK, strict=True):
        look = next_look(0)
        while look is not None:
            seeds, confidence = look // kind.plays, DEFAULT_RULE.confidence(look)
            found = regret_interval(hinted_SK[:seeds], plain_SK[:seeds], confidence)
            if decide(look, found) is Decision.STOP:
                inside.append(found.low <= kind.regret <= found.high)
                width.append(found.half_width)
                pairs.append(look)
                break
            look = next_look(look)
    return Covered(STOPPED, *(float(np.mean(values)) for values in (inside, width, pairs)))


def variances(hinted_ESK: Floats, plain_ESK: Floats, elsewhere_ESK: Floats) -> Variances:
    """Of the estimators themselves; `elsewhere` are plain plays of seeds of their own."""
    paired, unpaired, values = [], [], []
    for hinted, plain, other in zip(hinted_ESK, plain_ESK, elsewhere_ESK, strict=True):
        one = paired_regret(hinted, plain, hinted, plain)
        paired.append(one.standard_error**2)
        values.append(one.value)
        unpaired.append(unpaired_regret(hinted, other, hinted, other).standard_error ** 2)
    error = float(np.mean(paired))
    return Variances(error, float(np.mean(unpaired)), float(np.var(values, ddof=1)) / error)


# --- what is printed ---


def coverage_table(results: Sequence[Measured]) -> tuple[str, bool]:
    """A row for each rule and number of plays, over all kinds; and whether the goal is met everywhere."""
    rows, enough = [], True
    for plays, place in itertools.product(PLAYS, range(len(PAIRS) + 1)):
        own = [m for m in results if m.kind.plays == plays]
        covered = [m.covered[place] for m in own]
        share = float(np.mean([c.share for c in covered]))
        least = min(own, key=lambda m: m.covered[place].share)
        enough &= share >= COVERAGE.value
        rows.append(
            [
                covered[0].rule,
                str(plays),
                f"{sum(m.environments for m in own):,}",
                f"{share:.3f}",
                f"{COVERAGE}: {COVERAGE.verdict(share)}",
                f"{least.covered[place].share:.3f} ({_named(least.kind)})",
                f"{np.mean([c.width for c in covered]):.3f}",
                f"{np.mean([c.pairs for c in covered]):.0f}",
            ]
        )
    head = ["pairs", "plays", "environments", "covered", "goal", "least", "half-width", "played"]
    return table(head, rows), enough


def variance_table(results: Sequence[Measured]) -> tuple[str, bool]:
    """A row for each correlation and number of plays; and whether the goals are met everywhere."""
    rows, enough = [], True
    for plays, correlation in itertools.product(PLAYS, CORRELATIONS):
        own = [m for m in results if (m.kind.plays, m.kind.correlation) == (plays, correlation)]
        sharing = [m for m in own if plays == max(PLAYS) and m.kind.shared >= SHARED - ROUNDING]
        deviation = max(m.deviation for m in own)
        highest = max((m.variances.ratio for m in sharing), default=0.0)
        enough &= deviation <= DEVIATION.value and highest <= RATIO.value
        useless = next(m for m in own if m.kind.rescued == 0.0)
        ratios = [m.variances.ratio for m in own]
        actual = [m.variances.actual for m in own]
        rows.append(
            [
                f"{correlation:g}",
                str(plays),
                f"{useless.kind.ratio:.3f}",
                f"{min(ratios):.3f} to {max(ratios):.3f}",
                f"{deviation:.3f}",
                f"{DEVIATION}: {DEVIATION.verdict(deviation)}",
                f"{highest:.3f} of {len(sharing)}, {RATIO}: {RATIO.verdict(highest)}"
                if sharing
                else "",
                f"{min(actual):.2f} to {max(actual):.2f}",
            ]
        )
    head = [
        "correlation",
        "plays",
        "theory, useless hint",
        "measured, all hints",
        "off theory by at most",
        "goal",
        f"highest where both arms share {SHARED:g}",
        "variance / squared error",
    ]
    return table(head, rows), enough


def _named(kind: Kind) -> str:
    return f"rate {kind.rate:g}, rescued {kind.rescued:g}, correlation {kind.correlation:g}"


def to_csv(results: Sequence[Measured]) -> str:
    """A line for each kind and rule; variances stand in every line of their kind."""
    text = io.StringIO()
    names = [f.name for f in fields(Kind)]
    own = ["regret", "environments", "rule", "covered", "half_width", "pairs_played"]
    ratio = ["shared", "ratio", "ratio_in_theory", "variance_over_squared_error"]
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*names, *own, *ratio])
    for m in results:
        kind = list(asdict(m.kind).values())
        variance = [m.kind.shared, m.variances.ratio, m.kind.ratio, m.variances.actual]
        for c in m.covered:
            numbers = [m.kind.regret, m.environments, c.rule, c.share, c.width, c.pairs]
            lines.writerow([_short(value) for value in [*kind, *numbers, *variance]])
    return text.getvalue()


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def main(arguments: Sequence[str]) -> int:
    """Measure, print, write; 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--environments", type=positive, default=2000, help="simulated of each kind (default 2000)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="CSV with every number of every kind")
    wanted = parser.parse_args(arguments)
    if wanted.environments < 2:
        parser.error("--environments must be at least 2: one has no variance")
    if wanted.out is not None and not wanted.out.parent.is_dir():
        parser.error(f"--out: there is no directory {wanted.out.parent}")
    results = []
    for kind in kinds():
        results.append(measure(kind, wanted.environments, wanted.seed))
        print(f"{_named(kind)}, {kind.plays} plays", file=sys.stderr, flush=True)
    coverage, covered = coverage_table(results)
    variance, as_theory = variance_table(results)
    print(f"## Coverage of 95 % intervals\n\n{coverage}")
    print(f"## Paired over unpaired variance\n\n{variance}\n{machine()}")
    if wanted.out is not None:
        wanted.out.write_text(to_csv(results), encoding="utf-8")
    return 0 if covered and as_theory else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
