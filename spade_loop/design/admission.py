"""From a draft to an environment that may be played: validation, the novelty decision, the spec."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from spade_loop.config import Config
from spade_loop.corpus import UNKNOWN_LICENSE
from spade_loop.design.dialects import Dialect, Draft
from spade_loop.types import INITIAL, POLICY, Candidate, Outcome
from synthgym.memory import Description, NoveltyMemory, behaviour_trace, describe
from synthgym.sandbox import Pool
from synthgym.spec import Provenance, SynthEnvSpec
from synthgym.validation import Finding, Report, validate

MAX_TITLE = 120
KEPT_REPORTS: Final = 512
"""Sound sources that are remembered with what is known of them: of a small space each is validated once."""


@dataclass(frozen=True, slots=True)
class Admission:
    """A candidate with its outcome, and the validation report when it got that far."""

    candidate: Candidate
    report: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is known of a draft before anything is decided by it."""

    candidate: Candidate
    """Settled, unless it is sound and new."""
    draft: Draft | None
    report: Report | None = None
    findings: tuple[Finding, ...] = ()
    """What it was refused for."""
    description: Description | None = None
    """Given when the candidate is sound and new."""
    distance: float = 0.0
    """1 - cosine similarity of its rules to the nearest held ones; 1 when nothing is held."""

    @property
    def sound(self) -> bool:
        """Whether it may be admitted."""
        return self.description is not None

    def settled(self, outcome: Outcome, *reasons: str, detail: str = "") -> Admission:
        """The admission that this came to."""
        return Admission(self.candidate.settled(outcome, *reasons, detail=detail), self.json)

    @property
    def json(self) -> dict[str, Any] | None:
        """The report as JSON."""
        return None if self.report is None else self.report.to_json()


class Admitter:
    """Judges drafts, and admits them."""

    def __init__(self, config: Config, dialect: Dialect, pool: Pool) -> None:
        self._config = config
        self._dialect = dialect
        self._pool = pool
        self._models = {POLICY: config.policy.model, INITIAL: config.policy.model}
        self._models |= {other.name: other.model or other.kind for other in config.designers}
        self._sound: OrderedDict[str, tuple[Report, Description]] = OrderedDict()

    def judge(
        self, candidate: Candidate, draft: Draft | None, memory: NoveltyMemory, iteration: int
    ) -> Judged:
        """Validate a draft and compare it with what is held. Nothing is stored."""
        if draft is None:
            return Judged(candidate=candidate, draft=None)
        settings = self._config.validation
        report, description = self._sound.get(draft.source, (None, None))
        if report is None:
            report = validate(draft.source, pool=self._pool, seeds=settings.seeds)
        refusals = tuple(f for f in report.refusals if str(f.reason) not in settings.allowed)
        if report.record is None or refusals:
            codes = sorted(str(finding.reason) for finding in refusals)
            detail = "; ".join(finding.detail for finding in refusals[:3])
            settled = candidate.settled(Outcome.REFUSED, *codes, detail=detail)
            return Judged(candidate=settled, draft=draft, report=report, findings=refusals)
        if description is None:
            description = describe(
                draft.source,
                report.first_observation,
                docstring=report.docstring,
                family=draft.family,
                parameters=draft.vector,
                behaviour=None if draft.family else behaviour_trace(report.record, self._pool),
            )
        self._remember(draft.source, report, description)
        decision = memory.check(description, iteration=iteration)
        if not decision.accepted and self._config.novelty.gate:
            settled = candidate.settled(
                Outcome.DUPLICATE, str(decision.reason), detail=decision.detail
            )
            return Judged(candidate=settled, draft=draft, report=report)
        nearest = decision.nearest[0].similarity if decision.nearest else 0.0
        return Judged(
            candidate=candidate,
            draft=draft,
            report=report,
            description=description,
            distance=1.0 - nearest,
        )

    def _remember(self, source: str, report: Report, description: Description) -> None:
        """Keep what is known of a sound source. A refusal is not kept: the machine may have had too little time."""
        self._sound[source] = report, description
        self._sound.move_to_end(source)
        if len(self._sound) > KEPT_REPORTS:
            self._sound.popitem(last=False)

    def admit(self, judged: Judged, memory: NoveltyMemory, iteration: int) -> Admission:
        """The environment of a sound draft; it enters the memory. Others keep their outcome."""
        candidate, draft, report = judged.candidate, judged.draft, judged.report
        if draft is None or report is None or report.record is None or judged.description is None:
            return Admission(candidate, judged.json)
        docstring = report.docstring.strip()
        spec = SynthEnvSpec(
            record=report.record,
            # Content in the name: the same id never stands for two sources, whichever runs they come from.
            name=draft.stem + report.record.digest.removeprefix("sha256:")[:8],
            title=docstring.splitlines()[0][:MAX_TITLE] if docstring else draft.stem,
            skills=(candidate.skill,),
            license=draft.license or _license(candidate.document_license),
            provenance=self._provenance(candidate, draft, iteration),
        )
        memory.add(
            spec.digest,
            judged.description,
            name=spec.name,
            skill=candidate.skill,
            iteration=iteration,
        )
        return Admission(replace(candidate, spec=spec).settled(Outcome.ADMITTED), judged.json)

    def _provenance(self, candidate: Candidate, draft: Draft, iteration: int) -> Provenance:
        return Provenance(
            author=self._models[candidate.author],
            dialect=self._dialect.name,
            prompt_digest=self._dialect.prompt.digest,
            document_id=candidate.document_id,
            document_license=candidate.document_license,
            parent=draft.parent,
            family=draft.family,
            parameters=draft.parameters,
            iteration=iteration,
            seed=self._config.seed,
        )


def shown_specs(dialect: Dialect, pool: Pool) -> list[SynthEnvSpec]:
    """The environments that a dialect's prompt shows, for the memory to hold."""
    records = [validate(source, pool=pool, seeds=2).record for source in dialect.shown]
    return [
        SynthEnvSpec(record=record, name=f"Shown{i}")
        for i, record in enumerate(records, start=1)
        if record is not None
    ]


def _license(document: str) -> str:
    """A program is licensed as the document it is grounded in; `NOASSERTION` is SPDX for "nobody said"."""
    return document if document not in ("", UNKNOWN_LICENSE) else "NOASSERTION"
