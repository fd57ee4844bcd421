"""Numbers, tests and charts of the micro experiment, from what run.py left.

Usage: `python benchmarks/micro/analyse.py runs/micro --seeds 0 1 2 3 4 5 6 7 --out results --page docs/evidence.md`

Writes runs.csv (a row each run), comparisons.csv (full against every other condition, Holm-corrected), gates.csv and a
chart for each measure over the updates; with `--page` the tables and charts also replace what stands between the two
marks of a page. Runs that are missing are named and left out of what needs them.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from spade_loop.evaluation.statistics import difference_with_interval, holm, sign_flip
from spade_loop.report.charts import Chart, Point, Series, draw

LOWEST: Final = 4
"""Levels from here on are scored: those below are taught, or next to it."""
CHANCE: Final = 5.0**-3
"""Success of guessing: three states of five."""
MASTERED: Final = 0.8
FULL: Final = "full"
BIN: Final = 25
"""Updates that a point of a chart stands for."""
BEGIN: Final = "<!-- micro: begin -->"
END: Final = "<!-- micro: end -->"
COLOURS: Final = ["#1b6ca8", "#c2571a"]


@dataclass(frozen=True, slots=True)
class Result:
    """One run, or the start of a seed (`base`)."""

    condition: str
    seed: int
    score: float
    """Mean unhinted success over the levels from `LOWEST` on, sampled at T = 1, chance-corrected."""
    greedy: float
    pass_at_8: float
    mastered: float
    """Levels with a success above `MASTERED`, of all 16, mean over the ladders."""
    frontier_gain: float
    """Hinted minus plain success at each ladder's frontier, mean over the ladders that have one."""
    beyond_gain: float
    """The same three levels above it."""


def corrected(rate: float) -> float:
    """0 at chance, 1 at certainty."""
    return (rate - CHANCE) / (1.0 - CHANCE)


def frontier(rates: Sequence[float]) -> int:
    """The first level that is not mastered; `len(rates)` when all are."""
    return next((level for level, rate in enumerate(rates) if rate <= MASTERED), len(rates))


def result(condition: str, seed: int, probe: Mapping[str, Any]) -> Result:
    """The numbers of one probe."""
    plays = int(probe["plays"])
    plain_LVS = {ladder: np.asarray(won) / plays for ladder, won in probe["plain"].items()}
    hinted_LVS = {ladder: np.asarray(won, dtype=float) for ladder, won in probe["hinted"].items()}
    greedy = np.mean([np.asarray(won)[LOWEST:].mean() for won in probe["greedy"].values()])
    gains: dict[int, list[float]] = {0: [], 3: []}
    for ladder, plain_VS in plain_LVS.items():
        at = frontier(plain_VS.mean(axis=1).tolist())
        for above, found in gains.items():
            if at + above < len(plain_VS):
                found.append(float((hinted_LVS[ladder] - plain_VS)[at + above].mean()))
    return Result(
        condition=condition,
        seed=seed,
        score=corrected(float(np.mean([rates[LOWEST:].mean() for rates in plain_LVS.values()]))),
        greedy=corrected(float(greedy)),
        pass_at_8=float(np.mean([(rates[LOWEST:] > 0).mean() for rates in plain_LVS.values()])),
        mastered=float(np.mean([(r.mean(axis=1) > MASTERED).sum() for r in plain_LVS.values()])),
        frontier_gain=_mean(gains[0]),
        beyond_gain=_mean(gains[3]),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def read_results(root: Path, seeds: Sequence[int]) -> list[Result]:
    """Every run of these seeds that is finished, the starts as condition `base`."""
    found = []
    for path in sorted(root.glob("*.probe.json")):
        name, _, number = path.name.removesuffix(".probe.json").rpartition("-")
        if number.isdigit() and int(number) in seeds:
            probe = json.loads(path.read_text(encoding="utf-8"))
            found.append(result("base" if name == "start" else name, int(number), probe))
    return found


def compare(results: Sequence[Result], rng: np.random.Generator) -> list[dict[str, Any]]:
    """Full against each other condition on the seeds that both have: difference, interval, test; Holm over all."""
    scores = {(r.condition, r.seed): r.score for r in results}
    others = sorted({r.condition for r in results} - {FULL, "base", "oracle"})
    rows: list[dict[str, Any]] = []
    for other in others:
        seeds = [s for c, s in scores if c == other and (FULL, s) in scores]
        estimate = difference_with_interval(
            [scores[FULL, s] - scores[other, s] for s in seeds], rng
        )
        if estimate is None:
            continue
        rows.append(
            {
                "comparison": f"{FULL} - {other}",
                "seeds": len(seeds),
                "difference": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "p": sign_flip([scores[FULL, s] - scores[other, s] for s in seeds], rng),
            }
        )
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
    return rows


def gates(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The gates that come before any comparison; one whose runs are missing says so."""
    mean = {
        c: _mean([r.score for r in results if r.condition == c])
        for c in {r.condition for r in results}
    }
    base = [r for r in results if r.condition == "base"]
    nothing = float("nan")
    rows = [
        ("oracle - base", mean.get("oracle", nothing) - mean.get("base", nothing), 0.20, True),
        ("oracle - frozen", mean.get("oracle", nothing) - mean.get("frozen", nothing), 0.10, True),
        ("hinted - plain at the frontier", _mean([r.frontier_gain for r in base]), 0.5, True),
        ("hinted - plain three above", _mean([r.beyond_gain for r in base]), 0.1, False),
    ]
    return [
        {
            "gate": name,
            "value": value,
            "goal": f"{'at least' if least else 'at most'} {goal}",
            "met": "missing" if np.isnan(value) else (value >= goal if least else value <= goal),
        }
        for name, value, goal, least in rows
    ]


def course(run: Path, of: str) -> dict[int, float]:
    """A measure over the updates of a run, by the first update of each bin."""
    bins: dict[int, list[float]] = {}
    for line in (run / ("designs" if of == "level" else "metrics")).with_suffix(".jsonl").open():
        row = json.loads(line)
        value = _value(row, of)
        if value is not None:
            bins.setdefault(row["iteration"] // BIN * BIN, []).append(value)
    return {at: _mean(values) for at, values in sorted(bins.items())}


def _value(row: Mapping[str, Any], of: str) -> float | None:
    if of == "level":  # of what the policy designed, or stands in for it
        blueprint = row["reply"] if row["author"] not in ("anchors", "explorers") else ""
        return float(json.loads(blueprint)["level"][1:]) if blueprint else None
    if of == "live":
        agent = row["roles"]["agent"]
        return agent["live_rows"] / agent["rows"] if agent["rows"] else None
    found: float | None = row["regret"]["mean"] if of == "regret" else row["solve_rate"]["plain"]
    return found


MEASURES: Final = {
    "level": "Level that is designed",
    "regret": "Regret",
    "solved": "Plain solve rate",
    "live": "Share of live rows of the agent",
}


def chart(root: Path, seeds: Sequence[int], of: str, pair: Sequence[str]) -> str:
    """A measure over the updates, mean over the seeds, of two conditions; empty when there is nothing."""
    series = []
    for condition in pair:
        runs = [root / f"{condition}-{s}" for s in seeds if (root / f"{condition}-{s}").is_dir()]
        courses = [course(run, of) for run in runs]
        points = tuple(
            Point(at, _mean([c[at] for c in courses if at in c]))
            for at in sorted({at for c in courses for at in c})
        )
        if points:
            series.append(Series(condition, points))
    if not series:
        return ""
    made = Chart(
        ident=f"{of}-{pair[1]}",
        title=f"{MEASURES[of]}: {' and '.join(s.label for s in series)}",
        description=f"Means over the seeds {', '.join(map(str, seeds))}, {BIN} updates a point.",
        series=tuple(series),
        floor=0.0,
        x_label="update",
    )
    style = "".join(
        f".series-{i} polyline{{stroke:{c};fill:none}}.series-{i} .mark,.series-{i} .band{{fill:{c}}}"
        for i, c in enumerate(COLOURS)
    )
    style += ".band{opacity:.2}"
    style += "text{font:11px sans-serif}.grid{stroke:#ddd}.zero{stroke:#888}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg"><style>{style}</style>'
    return f"{head}{draw(made)}</svg>\n"


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """A CSV file; without rows there is none."""
    if rows:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table."""
    if not rows:
        return "Nothing was measured.\n"
    shown = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    lines = [list(rows[0]), ["---"] * len(rows[0]), *shown]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def by_condition(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Means over the seeds, and the standard deviation of the score."""
    rows = []
    for condition in sorted({r.condition for r in results}):
        own = [r for r in results if r.condition == condition]
        scores = [r.score for r in own]
        rows.append(
            {
                "condition": condition,
                "seeds": len(own),
                "score": _mean(scores),
                "sd": float(np.std(scores, ddof=1)) if len(own) > 1 else float("nan"),
                "greedy": _mean([r.greedy for r in own]),
                "pass@8": _mean([r.pass_at_8 for r in own]),
                "mastered levels": _mean([r.mastered for r in own]),
            }
        )
    return rows


def write_page(page: Path, text: str) -> None:
    """Put `text` between the marks. `SystemExit` for a page that does not have both, once each."""
    old = page.read_text(encoding="utf-8")
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        raise SystemExit(f"{page} must hold the line {BEGIN} and, behind it, the line {END}, once")
    head, tail = old.partition(BEGIN)[0], old.partition(END)[2]
    page.write_text(f"{head}{BEGIN}\n{text}{END}{tail}", encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    """Write everything, and print the comparisons and gates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args(arguments)
    results = read_results(asked.runs, asked.seeds)
    if not results:
        raise SystemExit(
            f"{asked.runs} holds no finished run of the seeds {asked.seeds}: see run.py"
        )
    asked.out.mkdir(parents=True, exist_ok=True)
    compared = compare(results, np.random.default_rng(0))
    write_table(
        asked.out / "runs.csv", [{f: getattr(r, f) for f in Result.__slots__} for r in results]
    )
    write_table(asked.out / "comparisons.csv", compared)
    write_table(asked.out / "gates.csv", gates(results))
    charts = []
    for other in sorted({r.condition for r in results} - {FULL, "base"}):
        for of in MEASURES:
            text = chart(asked.runs, asked.seeds, of, (FULL, other))
            if text:
                charts.append(asked.out / f"{of}-{other}.svg")
                charts[-1].write_text(text, encoding="utf-8")
    text = "\n".join(map(table, (by_condition(results), gates(results), compared)))
    print(text)
    if asked.page is not None:
        places = [os.path.relpath(path, asked.page.parent) for path in charts]
        shown = "".join(f"![{Path(p).stem}]({Path(p).as_posix()})\n" for p in places)
        write_page(asked.page, f"{text}\n{shown}")


if __name__ == "__main__":
    main(sys.argv[1:])
