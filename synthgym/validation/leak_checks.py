"""Leaks: neither an observation nor a hint tells what is to be found out. How that is told: `telling`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from synthgym.validation.plays import Play, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding
from synthgym.validation.telling import (
    MIN_SEEDS,
    Case,
    Known,
    Odds,
    Reader,
    Secrets,
    Text,
    is_listed,
    is_script,
    told,
)

LISTED_SHARE: Final = 0.9
"""Of the seeds must show their witness in the first observation."""
SCRIPT_SHARE: Final = 0.5
"""Of the seeds must have a hint that is a script."""
_JUDGED_LEVELS: Final = (1, 2)
"""Levels that may not give the answer away."""
_SHOWN_LEVELS: Final = (2, 3)
"""Levels that no observation may show; level 1 may repeat a rule."""
_MIN_HINT_CHARS: Final = 20
_MIN_HINT_WORDS: Final = 4
"""A shorter hint must be a sentence of so many words to be looked for."""


def check_leaks(trial: Trial) -> Iterator[Finding]:
    """What observations tell before the end: the answer, the witness, the hint."""
    reader = _reader(trial)
    yield from _answers_told(trial, reader)
    yield from _witnesses_listed(trial, reader)
    yield from _hints_shown(trial)


def check_hint_texts(trial: Trial) -> Iterator[Finding]:
    """What hints of levels 1 and 2 tell: the answer, or the whole script."""
    reader = _reader(trial)
    for check in (_answers_hinted, _scripts_hinted):
        for level in _JUDGED_LEVELS:
            seeds = [seed for seed in reader.witnesses if (seed, level) in trial.hints]
            hints = {seed: trial.hints[seed, level] for seed in seeds}
            finding = check(trial, reader, level, hints)
            if finding is not None:
                yield finding
                break


def _reader(trial: Trial) -> Reader:
    docstring = "" if trial.loaded is None else trial.loaded.docstring
    if trial.reader is None:
        trial.reader = Reader({seed: trial.witnesses[seed] for seed in trial.wins}, docstring)
    return trial.reader


def _known(trial: Trial, reader: Reader, seed: int) -> Callable[[], Known]:
    """What is known before the first action on that seed, worked out when it is asked for."""
    return lambda: Known([reader(trial.first[seed].observation), reader.rules])


def _before_end(trial: Trial, play: Play) -> tuple[str, ...]:
    """The observations after which the episode went on."""
    seen = play.observations[: trial.record.max_turns]
    return seen[: len(play.steps)] if play.done else seen


# --- observations ---


def _answers_told(trial: Trial, reader: Reader) -> Iterator[Finding]:
    """Who sends nonsense is told of the answer: the last action that is not the same on every seed."""
    plays: dict[int, list[Play]] = {}
    for play in trial.idle:
        if play.actions and play.seed in reader.witnesses:
            plays.setdefault(play.seed, []).append(play)
    cases = []
    for seed, own in plays.items():
        lines = [
            line
            for play in own
            for seen in _before_end(trial, play)[1:]
            for line in seen.split("\n")
        ]
        said = reader("\n".join(dict.fromkeys(lines)))
        secrets = Secrets.of(_answer(reader.witnesses, seed))
        cases.append(Case(seed, said, secrets, _known(trial, reader, seed)))
    found = told(cases)
    places = {seed: _place(trial, reader, plays[seed], secret) for seed, secret in found.items()}
    shown = {seed: place for seed, place in places.items() if place is not None}
    if len(shown) >= MIN_SEEDS:
        seed, (play, turn) = next(iter(shown.items()))
        detail = f"on {len(shown)} of {len(cases)} seeds; here it names {found[seed]!r}"
        yield play.evidence(Reason.ANSWER_IN_OBSERVATION, detail, turn)


def _answer(witnesses: Mapping[int, Sequence[Text]], seed: int) -> Sequence[Text]:
    """The last action of the witness that is not the same, counted from the end, on every seed."""
    actions = witnesses[seed]
    for back in range(1, len(actions) + 1):
        others = {other[-back].flat for other in witnesses.values() if len(other) >= back}
        if len(others) > 1:
            return [actions[-back]]
    return []


def _place(
    trial: Trial, reader: Reader, plays: Sequence[Play], secret: str
) -> tuple[Play, int] | None:
    """Where one of `plays` is told the secret; None where the winner has read it as early.

    What the world shows to everybody as time passes is there to be remembered.
    """
    for play in plays:
        for turn, seen in enumerate(_before_end(trial, play)):
            if turn and reader(seen).tells(secret):
                winner = trial.wins[play.seed].observations[: turn + 1]
                if not any(reader(text).tells(secret) for text in winner):
                    return play, turn
                break
    return None


def _witnesses_listed(trial: Trial, reader: Reader) -> Iterator[Finding]:
    """First observations list the actions of their own seed's witness, and not those of others."""
    seeds = [seed for seed in trial.wins if len(trial.witnesses[seed]) >= 2]
    odds = Odds()
    for seed in seeds:
        texts = reader.readings(trial.first[seed].observation)
        odds.count(own=True, hit=any(is_listed(reader.witnesses[seed], text) for text in texts))
        if odds.cases - odds.hits > (1 - LISTED_SHARE) * len(seeds):
            return
        for other in seeds:
            if trial.witnesses[other] != trial.witnesses[seed]:
                hit = any(is_listed(reader.witnesses[other], text) for text in texts)
                odds.count(own=False, hit=hit)
    if odds.beaten and odds.compared:
        detail = f"on {odds.hits} of {len(seeds)} seeds"
        yield trial.wins[seeds[0]].evidence(Reason.WITNESS_IN_OBSERVATION, detail, 0)


def _hints_shown(trial: Trial) -> Iterator[Finding]:
    """An observation of any play, before its end, holds the hint of its seed."""
    hints = {
        place: _plain(hint) for place, hint in trial.hints.items() if place[1] in _SHOWN_LEVELS
    }
    words = {place: sorted(set(hint.split()), key=len)[::-1] for place, hint in hints.items()}
    for play in (*trial.wins.values(), *trial.kept, *trial.idle):
        seen = _before_end(trial, play)
        everything = "\n".join(seen).lower()
        for level in _SHOWN_LEVELS:
            place = play.seed, level
            # One of its words is missing, nearly always: that takes no time.
            if not hints.get(place) or not all(word in everything for word in words[place]):
                continue
            for turn, text in enumerate(seen):
                if hints[place] in " ".join(text.lower().split()):
                    detail = f"the hint of level {level}"
                    yield play.evidence(Reason.HINT_IN_OBSERVATION, detail, turn)
                    return


def _plain(hint: str) -> str:
    """The hint without differences of case and space; empty when it is too short to be looked for."""
    plain = " ".join(hint.lower().split())
    sentence = plain.endswith((".", "!", "?")) and len(plain.split()) >= _MIN_HINT_WORDS
    return plain.rstrip(".!?") if len(plain) >= _MIN_HINT_CHARS or sentence else ""


# --- hints ---


def _answers_hinted(
    trial: Trial, reader: Reader, level: int, hints: Mapping[int, str]
) -> Finding | None:
    """Hints name what their seed's witness names and the start does not show."""
    if len(set(hints.values())) < 2:
        return None
    cases = [
        Case(seed, reader(hint), Secrets.of(reader.witnesses[seed]), _known(trial, reader, seed))
        for seed, hint in hints.items()
    ]
    found = told(cases)
    for seed, secret in found.items():
        detail = f"level {level}, on {len(found)} of {len(hints)} seeds; here it names {secret!r}"
        actions = trial.witnesses[seed]
        return Finding(Reason.HINT_NAMES_ANSWER, detail, seed, None, actions, hints[seed])
    return None


def _scripts_hinted(
    trial: Trial, reader: Reader, level: int, hints: Mapping[int, str]
) -> Finding | None:
    """Hints spell out the actions of their seed's witness in order."""
    odds = Odds()
    scripts = []
    for seed, hint in hints.items():
        texts = reader.readings(hint)
        hit = any(is_script(reader.witnesses[seed], text) for text in texts)
        odds.count(own=True, hit=hit)
        if hit:
            scripts.append(seed)
            for other in hints:
                if trial.witnesses[other] != trial.witnesses[seed]:
                    found = any(is_script(reader.witnesses[other], text) for text in texts)
                    odds.count(own=False, hit=found)
    if len(scripts) < max(MIN_SEEDS, SCRIPT_SHARE * len(hints)):
        return None
    if odds.compared and not odds.beaten:
        return None
    detail = f"level {level}, on {len(scripts)} of {len(hints)} seeds"
    seed = scripts[0]
    return Finding(Reason.HINT_IS_SCRIPT, detail, seed, None, trial.witnesses[seed], hints[seed])
