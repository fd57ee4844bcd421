"""The environments that a run admitted, each with its source, its numbers and one pair of episodes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from spade_loop.report.formats import clip, count, visible
from spade_loop.report.reading import DesignRow, EpisodeRow, Run, TurnRow
from spade_loop.types import Arm, Outcome
from synthgym.errors import SynthGymError
from synthgym.registry import Snapshot

MAX_EXHIBITS = 40
MAX_CHARS = 2_500_000
"""Escaped characters of the whole gallery: with them the page stays under about three megabytes."""
SOURCE_CHARS = 16_000
TEXT_CHARS = 2_000
"""Characters shown of one observation, reply or action."""
MAX_TURNS_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One arm of a pair, its texts cut to what is shown."""

    arm: str
    episode_return: float | None
    stop: str
    success: bool
    tokens: int
    turns: tuple[TurnRow, ...]
    more_turns: int
    """Turns that are left out at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same play of the same seed, without and with the hint."""

    seed: int
    iteration: int
    episodes: tuple[Episode, Episode]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What the snapshot knows of an environment."""

    name: str
    title: str
    code: str
    facts: tuple[tuple[str, str], ...]
    """Label and value; unknown ones are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One admitted environment."""

    design: DesignRow
    source: Source | None
    why_no_source: str
    pair: Pair | None

    @property
    def name(self) -> str:
        """The environment's name, or its id when the snapshot does not hold it."""
        return self.design.env_id or "unnamed" if self.source is None else self.source.name

    @property
    def weight(self) -> int:
        """Escaped characters that this exhibit adds to the page, roughly."""
        texts = [] if self.source is None else [self.source.code, *sum(self.source.facts, ())]
        if self.pair is not None:
            turns = [turn for episode in self.pair.episodes for turn in episode.turns]
            texts += [text for t in turns for text in (t.observation, t.reply, t.action, t.status)]
        return 2_000 + sum(len(escape(visible(text))) for text in texts)


@dataclass(frozen=True, slots=True)
class Gallery:
    """What is shown of the admitted environments."""

    exhibits: tuple[Exhibit, ...]
    left_out: int
    """Admitted environments for which there was no room."""


def build_gallery(run: Run, *, limit: int = MAX_EXHIBITS, max_chars: int = MAX_CHARS) -> Gallery:
    """At most `limit` admitted environments, and as many as fit into `max_chars`: measured first, newest first."""
    admitted = [d for d in run.designs if d.outcome == Outcome.ADMITTED and d.digest]
    chosen = sorted(admitted, key=lambda d: (d.measured is None, -d.iteration, d.index))[:limit]
    pairs = choose_pairs(run.episodes(), {d.digest for d in chosen if d.digest})
    exhibits: list[Exhibit] = []
    used = 0
    for exhibit in _exhibits(run.path / "snapshot", chosen, pairs):
        used += exhibit.weight
        if used > max_chars:
            break
        exhibits.append(exhibit)
    return Gallery(tuple(exhibits), len(admitted) - len(exhibits))


def choose_pairs(episodes: Iterable[EpisodeRow], digests: set[str]) -> dict[str, Pair]:
    """For each digest the pair whose returns differ most; the earliest one among equals. Faulty episodes never pair."""
    waiting: dict[tuple[str, int, int, int], EpisodeRow] = {}
    best: dict[str, tuple[float, EpisodeRow, EpisodeRow]] = {}
    for episode in episodes:
        if episode.digest not in digests or episode.fault is not None:
            continue
        key = (episode.digest, episode.iteration, episode.seed, episode.play)
        other = waiting.pop(key, None)
        if other is None or other.arm is episode.arm:
            waiting[key] = episode
            continue
        plain, hinted = (episode, other) if episode.arm is Arm.PLAIN else (other, episode)
        gap = abs((hinted.episode_return or 0.0) - (plain.episode_return or 0.0))
        if episode.digest not in best or gap > best[episode.digest][0]:
            best[episode.digest] = (gap, plain, hinted)
    return {
        digest: Pair(
            seed=plain.seed, iteration=plain.iteration, episodes=(_shown(plain), _shown(hinted))
        )
        for digest, (_, plain, hinted) in best.items()
    }


def _shown(row: EpisodeRow) -> Episode:
    return Episode(
        arm=str(row.arm),
        episode_return=row.episode_return,
        stop=row.stop,
        success=row.success,
        tokens=row.tokens,
        turns=tuple(_shown_turn(turn) for turn in row.turns[:MAX_TURNS_SHOWN]),
        more_turns=max(0, len(row.turns) - MAX_TURNS_SHOWN),
    )


def _shown_turn(turn: TurnRow) -> TurnRow:
    return TurnRow(
        observation=clip(turn.observation, TEXT_CHARS),
        reply=clip(turn.reply, TEXT_CHARS),
        action=clip(turn.action, TEXT_CHARS),
        status=clip(turn.status, 80),
        reward=turn.reward,
    )


def _exhibits(
    path: Path, designs: Sequence[DesignRow], pairs: Mapping[str, Pair]
) -> Iterator[Exhibit]:
    snapshot, problem = None, ""
    try:
        snapshot = Snapshot.open(path)
    except (SynthGymError, OSError) as error:
        problem = str(error)
    for design in designs:
        source, why = _source(snapshot, design, problem)
        yield Exhibit(
            design=design, source=source, why_no_source=why, pair=pairs.get(design.digest or "")
        )


def _source(
    snapshot: Snapshot | None, design: DesignRow, problem: str
) -> tuple[Source | None, str]:
    """The environment as the snapshot has it, or why it has not. A damaged one leaves the rest of the page alone."""
    if snapshot is None or design.digest is None:
        return None, clip(problem, 400)
    try:
        spec = snapshot.spec(design.digest)
    except (SynthGymError, OSError) as error:
        return None, clip(str(error), 400)
    p = spec.provenance
    facts = {
        "document": p.document_id,
        "document licence": p.document_license,
        "family": p.family,
        "parameters": _json(p.parameters) if p.parameters else "",
        "written by": p.author,
        "dialect": p.dialect,
        "edited from": p.parent,
        "turns": str(spec.record.max_turns),
        "licence": spec.license,
        "over the whole run": _whole_run(spec.metrics),
    }
    shown = tuple((label, clip(value, TEXT_CHARS)) for label, value in facts.items() if value)
    return Source(
        name=spec.name,
        title=clip(spec.title, 200),
        code=clip(spec.record.source, SOURCE_CHARS),
        facts=shown,
    ), ""


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), ensure_ascii=False, sort_keys=True, default=str)


def _whole_run(metrics: Mapping[str, Any]) -> str:
    """What the snapshot says of all plain episodes, also those after the iteration that admitted it."""
    episodes, rate = metrics.get("episodes"), metrics.get("solve_rate")
    if not isinstance(episodes, int) or not isinstance(rate, int | float):
        return ""
    quarantined = "; quarantined for its faults" if metrics.get("quarantined") is True else ""
    return f"{count(episodes, 'plain episode')}, {100 * rate:.0f} % solved{quarantined}"
