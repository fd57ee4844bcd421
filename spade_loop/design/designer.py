"""The designer: assignments from corpus and memory, completions from the model, candidates through admission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spade_loop.batch import initial_proposals
from spade_loop.completers import Sampler
from spade_loop.config import Config
from spade_loop.corpus import UNKNOWN_LICENSE, Corpus, CorpusCursor, excerpt
from spade_loop.design.dialects import Assignment, Dialect, Draft, Exhibit
from spade_loop.errors import BlueprintError
from spade_loop.library import Library
from spade_loop.parsing import ReplyError
from spade_loop.types import Candidate, Completion, Outcome
from synthgym.memory import NoveltyMemory, behaviour_trace, describe
from synthgym.sandbox import Pool
from synthgym.spec import Provenance, SynthEnvSpec
from synthgym.validation import validate


@dataclass(frozen=True, slots=True)
class Admission:
    """A candidate with its outcome, and the validation report when it got that far."""

    candidate: Candidate
    report: Mapping[str, Any] | None


class Designer:
    """Asks the model for environments."""

    def __init__(self, config: Config, dialect: Dialect, corpus: Corpus, model_name: str) -> None:
        self._config = config
        self._dialect = dialect
        self._corpus = corpus
        self._model_name = model_name

    def skills(self, iteration: int) -> tuple[str, ...]:
        """Skills of an iteration: a window that moves over the recipe's skills."""
        skills, width = self._config.designer.skills, self._config.designer.skills_per_iteration
        start = (iteration * width) % len(skills)
        return tuple(skills[(start + i) % len(skills)] for i in range(min(width, len(skills))))

    def assignments(
        self,
        iteration: int,
        cursor: CorpusCursor,
        library: Library,
        memory: NoveltyMemory,
        rng: np.random.Generator,
    ) -> tuple[list[Assignment], CorpusCursor]:
        """What each design of an iteration is to be about, and the corpus cursor after it."""
        skills = self.skills(iteration)
        assignments: list[Assignment] = []
        for i in range(self._config.designer.candidates):
            skill = skills[i % len(skills)]
            (document,), cursor = self._corpus.draw(cursor, 1, rng, skill)
            assignments.append(
                Assignment(
                    skill=skill,
                    document_id=document.id,
                    document_license=document.license,
                    excerpt=excerpt(document, self._config.corpus.words),
                    exemplars=_exhibits(
                        library, memory.exemplars(skill, self._config.designer.exemplars, rng)
                    ),
                    warnings=_exhibits(
                        library, memory.warnings(skill, self._config.designer.warnings, rng)
                    ),
                    parent=self._parent(skill, library, rng),
                )
            )
        return assignments, cursor

    def _parent(self, skill: str, library: Library, rng: np.random.Generator) -> Exhibit | None:
        """What an edit starts from: an environment of the skill when there is one."""
        if self._dialect.name != "edit":
            return None
        usable = [r for _, r in sorted(library.records.items()) if not r.quarantined]
        fitting = [r for r in usable if r.skill == skill] or usable
        if not fitting:
            return None
        record = fitting[int(rng.integers(len(fitting)))]
        return Exhibit(library.specs[record.digest], record.win_rate, record.regret)

    def propose(
        self, sampler: Sampler, assignments: Sequence[Assignment], seed: Sequence[int]
    ) -> list[tuple[Candidate, Draft | None]]:
        """One attempt for each assignment, the last ones by the initial designer; what each reply held."""
        first = len(assignments) - initial_proposals(self._config)
        prompts = [sampler.chat.prompt(self._dialect.messages(a)) for a in assignments]
        completions = self._complete(
            sampler, assignments[:first], prompts[:first], [*seed, 0], initial=False
        )
        completions += self._complete(
            sampler, assignments[first:], prompts[first:], [*seed, 1], initial=True
        )
        attempts = []
        for i, (assignment, prompt, completion) in enumerate(
            zip(assignments, prompts, completions, strict=True)
        ):
            candidate = Candidate(
                skill=assignment.skill,
                document_id=assignment.document_id,
                document_license=assignment.document_license,
                prompt_ids=tuple(prompt),
                completion=completion,
                reply=sampler.chat.decode(completion.ids),
                initial=i >= first,
            )
            attempts.append(self._read(candidate, assignment))
        return attempts

    def _complete(
        self,
        sampler: Sampler,
        assignments: Sequence[Assignment],
        prompts: Sequence[Sequence[int]],
        seed: Sequence[int],
        *,
        initial: bool,
    ) -> list[Completion]:
        """Completions in order. Rows that share a schema are sampled together."""
        if not prompts:
            return []
        dialogue = sampler.open(prompts, seed=seed, initial=initial)
        out: dict[int, Completion] = {}
        for skill in dict.fromkeys(a.skill for a in assignments):
            rows = [i for i, a in enumerate(assignments) if a.skill == skill]
            schema = self._dialect.schema(assignments[rows[0]])
            out |= dialogue.generate(rows, self._config.designer.max_tokens, schema)
        return [out[i] for i in range(len(prompts))]

    def _read(self, candidate: Candidate, assignment: Assignment) -> tuple[Candidate, Draft | None]:
        if not candidate.completion.stopped:
            return candidate.settled(
                Outcome.UNPARSED, "cut", detail="the token limit cut the reply"
            ), None
        try:
            draft = self._dialect.read(candidate.reply, assignment)
        except (ReplyError, BlueprintError) as error:
            return candidate.settled(Outcome.UNPARSED, "no-source", detail=str(error)), None
        return replace(candidate, cell=draft.cell), draft

    def admit(
        self,
        attempts: Sequence[tuple[Candidate, Draft | None]],
        memory: NoveltyMemory,
        pool: Pool,
        iteration: int,
    ) -> list[Admission]:
        """Validation, then the novelty decision; what is admitted enters the memory before the next is looked at."""
        return [self._admit(c, draft, memory, pool, iteration) for c, draft in attempts]

    def _admit(
        self,
        candidate: Candidate,
        draft: Draft | None,
        memory: NoveltyMemory,
        pool: Pool,
        iteration: int,
    ) -> Admission:
        if draft is None:
            return Admission(candidate, None)
        report = validate(draft.source, pool=pool, seeds=self._config.validation.seeds)
        allowed = self._config.validation.allowed
        refusals = [item for item in report.refusals if str(item.reason) not in allowed]
        if report.record is None or refusals:
            codes = sorted(str(finding.reason) for finding in refusals)
            detail = "; ".join(finding.detail for finding in refusals[:3])
            return Admission(
                candidate.settled(Outcome.REFUSED, *codes, detail=detail), report.to_json()
            )
        description = describe(
            draft.source,
            report.first_observation,
            docstring=report.docstring,
            family=draft.family,
            parameters=draft.vector,
            behaviour=None if draft.family else behaviour_trace(report.record, pool),
        )
        decision = memory.check(description, iteration=iteration)
        if not decision.accepted:
            settled = candidate.settled(
                Outcome.DUPLICATE, str(decision.reason), detail=decision.detail
            )
            return Admission(settled, report.to_json())
        spec = SynthEnvSpec(
            record=report.record,
            # Content in the name: the same id never stands for two sources, whichever runs they come from.
            name=draft.stem + report.record.digest.removeprefix("sha256:")[:8],
            title=report.docstring.strip().splitlines()[0][:120]
            if report.docstring.strip()
            else draft.stem,
            skills=(candidate.skill,),
            license=draft.license or _license(candidate.document_license),
            provenance=self._provenance(candidate, draft, iteration),
        )
        memory.add(
            spec.digest, description, name=spec.name, skill=candidate.skill, iteration=iteration
        )
        return Admission(replace(candidate, spec=spec).settled(Outcome.ADMITTED), report.to_json())

    def _provenance(self, candidate: Candidate, draft: Draft, iteration: int) -> Provenance:
        return Provenance(
            author=self._model_name,
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


def _license(document: str) -> str:
    """A program is licensed as the document it is grounded in; `NOASSERTION` is SPDX for "nobody said"."""
    return document if document != UNKNOWN_LICENSE else "NOASSERTION"


def _exhibits(library: Library, digests: Sequence[Any]) -> tuple[Exhibit, ...]:
    exhibits = []
    for item in digests:
        record = library.records.get(item.digest)
        if record is not None:
            exhibits.append(Exhibit(library.specs[item.digest], record.win_rate, record.regret))
    return tuple(exhibits)
