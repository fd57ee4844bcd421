"""A hint that was written for an environment from outside: the same questions that its own hints are asked."""

from __future__ import annotations

from collections.abc import Iterator

from synthgym.errors import ConfigError
from synthgym.sandbox import Pool, default_pool
from synthgym.spec import EnvRecord, Limits
from synthgym.validation.leak_checks import check_hint_texts, check_leaks
from synthgym.validation.plays import Trial, Undecided
from synthgym.validation.reasons import Reason, Severity
from synthgym.validation.report import Finding
from synthgym.validation.run_checks import check_load, check_reset
from synthgym.validation.witness_checks import check_witness

_LEAKS = (Reason.HINT_NAMES_ANSWER, Reason.HINT_IS_SCRIPT, Reason.HINT_IN_OBSERVATION)


def check_hint(
    record: EnvRecord,
    hint: str,
    *,
    pool: Pool | None = None,
    seeds: int = 8,
    limits: Limits | None = None,
) -> tuple[Finding, ...]:
    """Why `hint` may not stand in for the environment's own; nothing when it may.

    The environment is reset and won by its witness on `seeds` instances; the hint must not name what its witnesses
    name, nor spell them out, and no observation may hold it. An environment that cannot be asked is refused, too: its
    own findings are returned. `ConfigError` for fewer than two seeds.
    """
    if seeds < 2:
        raise ConfigError(f"seeds must be at least 2 (one instance proves nothing), got {seeds}")
    text = hint.strip()
    if not text:
        return (Finding(Reason.HINT_EMPTY, "the text is empty"),)
    pool = pool if pool is not None else default_pool()
    with Trial(record, pool, range(seeds), limits if limits is not None else Limits()) as trial:
        try:
            return tuple(_findings(trial, text))
        except Undecided as undecided:
            return (Finding(Reason.UNDECIDED, f"hint: {undecided}"),)


def _findings(trial: Trial, text: str) -> Iterator[Finding]:
    for check in (check_load, check_reset, check_witness):
        found = [f for f in (*check(trial), *trial.against()) if f.severity is Severity.REFUSED]
        if found:
            yield from found
            return
    trial.hints = {(seed, level): text for seed in trial.seeds for level in (1, 2)}
    for check in (check_hint_texts, check_leaks):
        yield from (finding for finding in check(trial) if finding.reason in _LEAKS)
