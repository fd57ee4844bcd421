"""The audit itself: sources in, rows out, each text validated once."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from synthgym.audit.crew import Crew, Job
from synthgym.audit.places import Source, check_places, find_sources
from synthgym.audit.row_file import RowFile
from synthgym.audit.rows import Judgement, Row, Status, shared
from synthgym.audit.settings import AuditSettings
from synthgym.errors import ConfigError
from synthgym.spec import sha256_digest

MAX_WAITING: Final = 1000
"""Copies that may wait for the judgement of their text before the next source is read."""


def audit(
    paths: Sequence[Path],
    *,
    out: Path | None = None,
    limit: int | None = None,
    settings: AuditSettings | None = None,
) -> Generator[Row, None, None]:
    """Validate every source in `paths` and yield a row for each, as they are done.

    A path is a folder (its `.py` files), a snapshot, a `.py` file, or a `.jsonl` or `.jsonl.gz`
    file. `limit` is how many sources are taken, the first ones. With `out` the rows are written
    there, and those that are there already are yielded without validating anything again.

    `ConfigError` at once when there is nothing to audit, and while it runs when `out` cannot be
    written; `SandboxError` when this machine cannot run a sandbox. Closing the iterator ends every
    process. Processes are spawned, so a script calls this under `if __name__ == "__main__":`.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit must be at least 1, got {limit}")
    check_places(paths)
    settings = settings if settings is not None else AuditSettings()
    return _rows(_first(find_sources(paths), limit), settings, out)


def _first(sources: Iterator[Source], limit: int | None) -> Iterator[Source]:
    for number, source in enumerate(sources, 1):
        yield source
        if number == limit:
            return


def _rows(
    sources: Iterable[Source], settings: AuditSettings, out: Path | None
) -> Generator[Row, None, None]:
    with ExitStack() as stack:
        file = None if out is None else stack.enter_context(RowFile(out, settings.validator))
        crew = stack.enter_context(Crew(settings))
        yield from _Audit(crew, file, settings).rows(sources)


class _Audit:
    """What is under way, and what is known already."""

    def __init__(self, crew: Crew, file: RowFile | None, settings: AuditSettings) -> None:
        self._crew = crew
        self._file = file
        self._settings = settings
        self._validator = settings.validator
        self._known: dict[str, Row] = {} if file is None else file.known
        """By digest; without findings."""
        self._waiting: dict[str, list[tuple[str, str]]] = {}
        """(name, title) of the copies of each text that is being judged, by its digest."""

    def rows(self, sources: Iterable[Source]) -> Iterator[Row]:
        """The rows of all sources; at most one text a process is held."""
        for source in sources:
            yield from self._take(source)
            while not self._crew.has_room or self._copies() >= MAX_WAITING:
                yield from self._collect(block=True)
            yield from self._collect(block=False)
        while self._crew.busy:
            yield from self._collect(block=True)

    def _take(self, source: Source) -> Iterator[Row]:
        """Yield the row of `source` when it needs no validation, and begin with it when it does."""
        row = Row(
            name=source.name,
            title=source.title,
            status=Status.UNREADABLE,
            detail=source.problem,
            validator=self._validator,
        )
        if source.text is None:
            yield self._stored(row) or self._written(row)
            return
        digest = sha256_digest(source.text.encode("utf-8", "surrogatepass"))
        row = replace(row, status=Status.NOT_AUDITED, digest=digest)
        stored = self._stored(row)
        if stored is not None:
            yield stored
        elif digest in self._known:
            yield self._written(self._known[digest].copy(source.name, source.title))
        elif digest in self._waiting:
            self._waiting[digest].append((source.name, source.title))
        else:
            self._waiting[digest] = []
            self._crew.give(Job(source.name, source.title, digest, source.text))

    def _collect(self, *, block: bool) -> Iterator[Row]:
        """Yield what has been judged, and what has the same text."""
        for job, judgement in self._crew.wait(block=block) if self._crew.busy else []:
            row = self._written(self._row(job, judgement))
            # Of what was not audited the next run knows nothing, and this one does not try again.
            self._known[job.digest] = replace(row, findings=())
            yield row
            for name, title in self._waiting.pop(job.digest):
                yield self._written(row.copy(name, title))

    def _row(self, job: Job, judgement: Judgement) -> Row:
        return Row(
            name=job.name,
            title=job.title,
            status=judgement.status,
            digest=job.digest,
            base=judgement.base,
            env_digest=judgement.env_digest,
            reasons=tuple(dict.fromkeys(str(item.reason) for item in judgement.findings)),
            gates=shared(judgement.gates),
            findings=judgement.findings,
            detail=judgement.detail,
            seconds=judgement.seconds,
            validator=self._validator,
        )

    def _copies(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _stored(self, row: Row) -> Row | None:
        return None if self._file is None else self._file.find(row)

    def _written(self, row: Row) -> Row:
        if self._file is not None:
            self._file.append(row)
        return row
