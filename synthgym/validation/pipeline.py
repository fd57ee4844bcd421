"""The pipeline: a source goes in, a report comes out. Static checks, then a run, then play."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace

from synthgym.contract import (
    ACTION_FORMATS,
    BASE,
    MAX_TURNS,
    SPADE_BASE,
    SPADE_TOOLS_BASE,
    TOOLS_BASE,
)
from synthgym.errors import ConfigError
from synthgym.sandbox import Pool, default_pool
from synthgym.sandbox.results import EnvFault, FaultKind, Loaded
from synthgym.spec import EnvRecord, Limits, sha256_digest
from synthgym.validation.dialects import base_of
from synthgym.validation.gates import FATAL, GATES, STATIC_GATE
from synthgym.validation.plays import Trial, Undecided
from synthgym.validation.reasons import Reason, Severity
from synthgym.validation.report import Finding, Report, Verdict, reason_of
from synthgym.validation.static_checks import Outline, check_static, check_text, outline


def validate(
    source: str,
    *,
    pool: Pool | None = None,
    seeds: int = 20,
    limits: Limits | None = None,
    dialect: str = "program",
) -> Report:
    """Whether `source` meets the contract, and if not, why: the report names every reason.

    Nothing of the source runs outside of a worker, nor is it parsed before a worker has parsed it.
    The same source gives the same report. Whatever
    cannot be decided is refused. `seeds` is how many instances are tried (0, 1, ...). `dialect` is
    `program` for the contract, `spade` for sources of the SPADE pools, `auto` for whichever of the
    two the text looks like. `SandboxError` when no worker can be started.
    """
    if seeds < 2:
        raise ConfigError(f"seeds must be at least 2 (one instance proves nothing), got {seeds}")
    source_digest = sha256_digest(source.encode("utf-8", "surrogatepass"))
    pool = pool if pool is not None else default_pool()
    limits = limits if limits is not None else Limits()
    base = base_of(source, dialect)
    findings = tuple(check_text(source))
    if findings:
        return _refused(source_digest, findings)
    candidate = _read(source, base, pool, limits)
    if isinstance(candidate, Outline) and base == TOOLS_BASE and not candidate.extends("ToolEnv"):
        candidate = _read(source, BASE, pool, limits)  # it only speaks of ToolEnv
    if isinstance(candidate, Finding):
        return _refused(source_digest, [candidate])
    findings = check_static(candidate)
    if findings:
        return _refused(source_digest, findings)
    guess = _guess_record(candidate)
    with closing(pool.open(guess, limits)) as session:
        loaded = session.load()
        record = _record(guess, loaded)
        if isinstance(record, Finding):
            return _refused(source_digest, [record])
        with Trial(record, pool, range(seeds), limits) as trial:
            findings, verdicts = _try(trial)
            return _report(trial, source_digest, findings, verdicts)


def _read(source: str, base: str, pool: Pool, limits: Limits) -> Outline | Finding:
    """What can be read off the text, once a worker has parsed it; or why it cannot be parsed."""
    violations = pool.check(source, limits, base)
    if isinstance(violations, EnvFault):
        return Finding(reason_of(violations), f"{violations.kind}: {violations.detail}")
    return outline(source, violations, base)


def _try(trial: Trial) -> tuple[tuple[Finding, ...], dict[str, Verdict]]:
    """Take `trial` through the gates: one finding a reason, and what each gate came to.

    After a finding that is fatal the rest of the gates are skipped.
    """
    findings: dict[Reason, Finding] = {}
    verdicts = {STATIC_GATE: Verdict.PASSED} | {gate.name: Verdict.SKIPPED for gate in GATES}
    for gate in GATES:
        found: list[Finding] = []
        try:
            found += gate.check(trial)
        except Undecided as undecided:
            found.append(Finding(Reason.UNDECIDED, f"{gate.name}: {undecided}"))
        found += trial.against()
        new = [finding for finding in found if finding.reason not in findings]
        for finding in new:
            findings.setdefault(finding.reason, finding)
        # A fault that shows whoever plays fails the gate that came upon it first.
        refused = any(finding.severity is Severity.REFUSED for finding in new)
        verdicts[gate.name] = Verdict.FAILED if refused else Verdict.PASSED
        if any(finding.reason in FATAL for finding in found):
            break
    return tuple(findings.values()), verdicts


def _report(
    trial: Trial, source_digest: str, findings: tuple[Finding, ...], gates: Mapping[str, Verdict]
) -> Report:
    return Report(
        source_digest=source_digest,
        digest=trial.record.digest,
        findings=findings,
        gates=gates,
        record=trial.record,
        docstring="" if trial.loaded is None else trial.loaded.docstring,
        first_observation=trial.first_observation,
        seeds=trial.seeds,
        witness_turns=tuple(len(play.steps) for play in trial.wins.values()),
        wins=trial.tally,
    )


def _refused(source_digest: str, findings: Iterable[Finding]) -> Report:
    """The report on a source that does not get as far as being played."""
    gates = {STATIC_GATE: Verdict.FAILED} | {gate.name: Verdict.SKIPPED for gate in GATES}
    return Report(source_digest=source_digest, findings=tuple(findings), gates=gates, wins={})


def _guess_record(candidate: Outline) -> EnvRecord:
    """The record as the text gives it; nearly always right, and then one worker serves all."""
    base = candidate.base
    return EnvRecord(
        source=candidate.source,
        entry=candidate.env_classes()[0].name,
        max_turns=candidate.literal_max_turns() or MAX_TURNS,
        base=base,
        reward_min_u=-1_000_000 if base in (SPADE_BASE, SPADE_TOOLS_BASE) else 0,
        action_format=ACTION_FORMATS[base],
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
