"""`synthgym calibrate`: how agents that know no language fare in the environments of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from synthgym.calibration import Calibration, Score, calibrate, check_settings
from synthgym.cli.entries import check_own, find_entry, open_snapshot
from synthgym.cli.output import print_json, print_table, print_text
from synthgym.registry import Snapshot
from synthgym.registry.annotate import check_writable, write_metrics

_HEADERS = ("agent", "solve rate", "95 %", "return", "turns", "faults", "undecided")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `calibrate` is asked for."""

    episodes: int
    first_seed: int
    agents: Sequence[str]
    search_budget: int


def run(
    path: str | None, wanted: Sequence[str], settings: Settings, *, write: bool, as_json: bool
) -> None:
    """Measure environments one after the other, all of the snapshot when none is named.

    What is to be written is written after each of them, so an interruption loses the one under way.
    """
    check_settings(
        settings.agents, episodes=settings.episodes, search_budget=settings.search_budget
    )
    snapshot = open_snapshot(path)
    if write:
        check_own(snapshot.path)
        check_writable(snapshot.path)
    entries = [find_entry(snapshot, name) for name in wanted] if wanted else list(snapshot)
    outputs: list[dict[str, Any]] = []
    for digest in dict.fromkeys(entry.digest for entry in entries):
        found = _measure(snapshot, digest, settings)
        if write:
            snapshot = _write(snapshot, found)
        if as_json:
            outputs.append({"id": found.env_id, "digest": found.digest, "agents": found.to_json()})
        else:
            _print(found, settings)
    if as_json:
        print_json(outputs)


def _measure(snapshot: Snapshot, digest: str, settings: Settings) -> Calibration:
    return calibrate(
        snapshot.spec(digest),
        episodes=settings.episodes,
        agents=settings.agents,
        search_budget=settings.search_budget,
        first_seed=settings.first_seed,
    )


def _write(snapshot: Snapshot, found: Calibration) -> Snapshot:
    """Note the scores; those of agents that were not asked this time stay."""
    now = Snapshot.open(snapshot.path)  # somebody else may have written since
    noted = now.spec(found.digest).metrics.get("agents")
    kept = noted if isinstance(noted, dict) else {}
    return write_metrics(now.path, {found.digest: {"agents": kept | found.to_json()}})


def _print(found: Calibration, settings: Settings) -> None:
    last = settings.first_seed + settings.episodes - 1
    print_text(f"{found.env_id}  seeds {settings.first_seed} to {last}")
    print_table(_HEADERS, [_row(score) for score in found.scores])
    print_text("")


def _row(score: Score) -> tuple[str, ...]:
    low, high = score.interval
    return (
        score.agent,
        _with_error(score.solve_rate, score.solve_rate_se),
        f"{low:.3f} to {high:.3f}",
        _with_error(score.mean_return, score.mean_return_se),
        "-" if score.mean_turns is None else f"{score.mean_turns:.1f}",
        str(score.faults),
        str(score.undecided) if "budget" in score.settings else "",
    )


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if error is None else f"{value:.3f} +- {error:.3f}"
