"""The pipeline: a source goes in, a report comes out. Static checks, then a run, then play."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from synthgym.contract import MAX_TURNS
from synthgym.errors import ConfigError
from synthgym.sandbox import Pool, default_pool
from synthgym.sandbox.results import EnvFault, FaultKind, Loaded
from synthgym.spec import EnvRecord, Limits, sha256_digest
from synthgym.validation.play_checks import (
    check_null_agent,
    check_random_agent,
    check_repeating_agent,
    check_witness,
)
from synthgym.validation.plays import Trial
from synthgym.validation.reasons import Finding, Reason, Report, reason_of
from synthgym.validation.runtime_checks import (
    Check,
    check_determinism,
    check_hints,
    check_instances,
    check_load,
    check_reset,
)
from synthgym.validation.static_checks import Outline, check_static, outline

RUN: Final[tuple[Check, ...]] = (
    check_load,
    check_reset,
    check_witness,
    check_hints,
    check_null_agent,
    check_repeating_agent,
    check_random_agent,
    check_instances,
    check_determinism,
)
"""In order: each relies on what those before it found out."""

FATAL: Final = frozenset(
    {
        Reason.LOAD_RAISED,
        Reason.LOAD_TIMEOUT,
        Reason.POLICY,
        Reason.MAX_TURNS,
        Reason.RESET_RAISED,
        Reason.RESET_TYPE,
        Reason.RESET_EMPTY,
        Reason.RESET_TIMEOUT,
        Reason.STEP_TIMEOUT,
        Reason.SOLUTION_TIMEOUT,
        Reason.HINT_TIMEOUT,
        Reason.MEMORY,
        Reason.CRASH,
    }
)
"""After one of these nothing more is tried: it would fail in the same way, or take too long."""


def validate(
    source: str, *, pool: Pool | None = None, seeds: int = 20, limits: Limits | None = None
) -> Report:
    """Whether `source` meets the contract, and if not, why: the report names every reason.

    Nothing of the source runs outside of a worker, nor is it parsed before a worker has parsed it.
    The same source gives the same report. Whatever
    cannot be decided is refused. `seeds` is how many instances are tried (0, 1, ...).
    `SandboxError` when no worker can be started.
    """
    if seeds < 2:
        raise ConfigError(f"seeds must be at least 2 (one instance proves nothing), got {seeds}")
    source_digest = sha256_digest(source.encode("utf-8", "surrogatepass"))
    pool = pool if pool is not None else default_pool()
    limits = limits if limits is not None else Limits()
    violations = pool.check(source, limits)
    if isinstance(violations, EnvFault):
        finding = Finding(reason_of(violations), f"{violations.kind}: {violations.detail}")
        return Report(source_digest=source_digest, findings=(finding,))
    candidate = outline(source, violations)
    static = check_static(candidate)
    if static:
        return Report(source_digest=source_digest, findings=static)
    guess = _guess_record(candidate)
    with closing(pool.open(guess, limits)) as session:
        loaded = session.load()
        record = _record(guess, loaded)
        if isinstance(record, Finding):
            return Report(source_digest=source_digest, findings=(record,))
        with Trial(record, pool, range(seeds), limits) as trial:
            return _try(trial, source_digest)


def _try(trial: Trial, source_digest: str) -> Report:
    findings = _run_checks(trial, RUN)
    return Report(
        source_digest=source_digest,
        digest=trial.record.digest,
        findings=findings,
        record=trial.record,
        docstring="" if trial.loaded is None else trial.loaded.docstring,
        first_observation=trial.first_observation,
        seeds=trial.seeds,
        witness_turns=trial.witness_turns,
        random_wins=trial.random_wins,
    )


def _run_checks(trial: Trial, checks: Sequence[Check]) -> tuple[Finding, ...]:
    """The findings of `checks`, one a reason, up to the first check that finds something fatal."""
    findings: dict[Reason, Finding] = {}
    for check in checks:
        for finding in check(trial):
            findings.setdefault(finding.reason, finding)
        if findings.keys() & FATAL:
            break
    return tuple(findings.values())


def _guess_record(candidate: Outline) -> EnvRecord:
    """The record as the text gives it; nearly always right, and then one worker serves all."""
    return EnvRecord(
        source=candidate.source,
        entry=candidate.env_classes()[0].name,
        max_turns=candidate.literal_max_turns() or MAX_TURNS,
        requires=candidate.import_roots(),
    )


def _record(guess: EnvRecord, loaded: Loaded | EnvFault) -> EnvRecord | Finding:
    """The record with what only running the source could tell, or why there is none."""
    if isinstance(loaded, Loaded):
        return replace(guess, max_turns=loaded.max_turns, requires=tuple(sorted(loaded.requires)))
    detail = f"{loaded.kind}: {loaded.detail}"
    if loaded.kind is FaultKind.REFUSED and "max_turns" in loaded.detail:
        # Only a computed `max_turns` gets past the static checks. The text only decides between
        # two refusals.
        return Finding(Reason.MAX_TURNS, detail)
    return Finding(reason_of(loaded), detail)
