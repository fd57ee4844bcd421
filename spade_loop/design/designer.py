"""The designer: first replies of every author, then turns in which what was refused may be mended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from spade_loop.batch import proposals
from spade_loop.completers import Sampler
from spade_loop.config import Config
from spade_loop.design.admission import Admission, Admitter, Judged
from spade_loop.design.assignments import Assignment
from spade_loop.design.authors import Authors
from spade_loop.design.conversations import Conversation, Spoken
from spade_loop.design.dialects import Dialect, Draft
from spade_loop.design.repair import repair_message
from spade_loop.errors import BlueprintError
from spade_loop.parsing import ReplyError
from spade_loop.types import Candidate, Outcome
from synthgym.memory import NoveltyMemory


@dataclass(slots=True)
class _Thread:
    """One chat about one design, and what came of its last reply."""

    slot: int
    draw: int
    author: str
    conversation: Conversation
    row: int
    assignment: Assignment
    attempt: int = 0
    judged: Judged | None = None


class Designer:
    """Asks for environments, and admits them."""

    def __init__(
        self, config: Config, dialect: Dialect, admitter: Admitter, authors: Authors
    ) -> None:
        self._config = config
        self._dialect = dialect
        self._admitter = admitter
        self._authors = authors

    def design(
        self,
        sampler: Sampler,
        assignments: Sequence[Assignment],
        memory: NoveltyMemory,
        iteration: int,
        stream: Sequence[int],
    ) -> list[Admission]:
        """Every attempt at every assignment with its outcome, in the order in which they were made.

        What is admitted enters `memory` before the next attempt is judged.
        """
        threads = list(self._threads(sampler, assignments, stream))
        admissions: list[Admission] = []
        open_threads = threads
        for attempt in range(self._config.designer.repairs + 1):
            if attempt:
                open_threads = self._ask(open_threads, admissions)
            if not open_threads:
                break
            candidates = self._listen(open_threads)
            admissions += self._settle(open_threads, candidates, memory, iteration)
        return admissions

    def _threads(
        self, sampler: Sampler, assignments: Sequence[Assignment], stream: Sequence[int]
    ) -> Iterator[_Thread]:
        """Chats of every author, in the order of the designs."""
        authors = [a for a, count in proposals(self._config).items() for _ in range(count)]
        if len(assignments) > len(authors):
            raise ValueError(
                f"the recipe plans {len(authors)} designs, got {len(assignments)} assignments"
            )
        for author in dict.fromkeys(authors):
            rows = [
                (slot, draw)
                for slot, own in enumerate(authors[: len(assignments)])
                for draw in range(self._config.designer.best_of)
                if own == author
            ]
            if not rows:
                continue
            conversation = self._authors.open(
                author,
                sampler,
                [assignments[slot] for slot, _ in rows],
                [[*stream, slot, draw] for slot, draw in rows],
            )
            for row, (slot, draw) in enumerate(rows):
                yield _Thread(slot, draw, author, conversation, row, assignments[slot])

    def _listen(self, threads: Sequence[_Thread]) -> list[tuple[Candidate, Draft | None]]:
        """The next reply of each thread, read."""
        groups: dict[int, list[_Thread]] = {}
        for thread in threads:
            groups.setdefault(id(thread.conversation), []).append(thread)
        spoken: dict[int, Spoken] = {}
        for members in groups.values():
            by_row = {thread.row: thread for thread in members}
            replies = members[0].conversation.speak(
                list(by_row),
                lambda row, by_row=by_row: self._dialect.schema(by_row[row].assignment),  # type: ignore[misc]
            )
            spoken |= {id(by_row[row]): reply for row, reply in replies.items()}
        return [self._read(thread, spoken[id(thread)]) for thread in threads]

    def _read(self, thread: _Thread, spoken: Spoken) -> tuple[Candidate, Draft | None]:
        assignment = thread.assignment
        candidate = Candidate(
            skill=assignment.skill,
            document_id=assignment.document_id,
            document_license=assignment.document_license,
            prompt_ids=spoken.prompt_ids,
            completion=spoken.completion,
            reply=spoken.text,
            author=thread.author,
            slot=thread.slot,
            draw=thread.draw,
            attempt=thread.attempt,
        )
        if not spoken.stopped:
            cut = candidate.settled(Outcome.UNPARSED, "cut", detail="the token limit cut the reply")
            return cut, None
        try:
            draft = self._dialect.read(spoken.text, assignment)
        except (ReplyError, BlueprintError) as error:
            return candidate.settled(Outcome.UNPARSED, "no-source", detail=str(error)), None
        return replace(candidate, cell=draft.cell, title=draft.stem), draft

    def _settle(
        self,
        threads: Sequence[_Thread],
        candidates: Sequence[tuple[Candidate, Draft | None]],
        memory: NoveltyMemory,
        iteration: int,
    ) -> list[Admission]:
        """Judge the draws of each design, keep the one farthest from everything held, say why the others are not."""
        admissions: list[Admission] = []
        pairs = list(zip(threads, candidates, strict=True))
        for slot in dict.fromkeys(thread.slot for thread in threads):
            own = [(thread, *pair) for thread, pair in pairs if thread.slot == slot]
            for thread, candidate, draft in own:
                thread.judged = self._admitter.judge(candidate, draft, memory, iteration)
            judged = [thread.judged for thread, _, _ in own if thread.judged is not None]
            sound = [j for j in judged if j.sound]
            kept = max(sound, key=lambda j: j.distance, default=None)
            for j in judged:
                if j is kept or not j.sound:
                    admissions.append(self._admitter.admit(j, memory, iteration))
                else:
                    admissions.append(j.settled(Outcome.SURPASSED))
        return admissions

    def _ask(self, threads: Sequence[_Thread], admissions: Sequence[Admission]) -> list[_Thread]:
        """Tell the designers of what was refused what was wrong; the threads that go on."""
        done = {a.candidate.slot for a in admissions if a.candidate.outcome is Outcome.ADMITTED}
        going: dict[int, _Thread] = {}
        for thread in threads:
            if thread.slot in done or not thread.conversation.mends or thread.judged is None:
                continue
            best = going.get(thread.slot)
            if best is None or _closeness(thread) > _closeness(best):
                going[thread.slot] = thread
        questions: dict[int, tuple[Conversation, dict[int, str]]] = {}
        for thread in going.values():
            thread.attempt += 1
            key = id(thread.conversation)
            questions.setdefault(key, (thread.conversation, {}))[1][thread.row] = self._question(
                thread
            )
        for conversation, texts in questions.values():
            conversation.ask(texts)
        return list(going.values())

    def _question(self, thread: _Thread) -> str:
        judged = thread.judged
        assert judged is not None
        candidate = judged.candidate
        message = repair_message(
            self._dialect.name,
            candidate.reasons,
            judged.findings,
            candidate.detail,
            source="" if judged.draft is None else judged.draft.source,
        )
        return message.content


def _closeness(thread: _Thread) -> tuple[int, int]:
    """How near a refused reply came: a repetition before a refusal with few reasons before what could not be read."""
    judged = thread.judged
    if judged is None or judged.draft is None:
        return 0, 0
    return 1, -len(judged.findings)
