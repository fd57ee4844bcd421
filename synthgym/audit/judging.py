"""A process of an audit: texts come in, judgements go out. It ends with the process that started it."""

from __future__ import annotations

import os
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import multiprocess

from synthgym.audit.rows import Judgement, Status
from synthgym.audit.settings import AuditSettings
from synthgym.errors import SandboxError
from synthgym.sandbox import Pool
from synthgym.validation import validate
from synthgym.validation.dialects import base_of

SANDBOX_WORKERS: Final = 2
"""Of the pool of one process: the candidate's, and one that is being replaced."""
_TAIL: Final = 3
"""Frames of a traceback that are kept: where in our code it was."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The process has started."""


@dataclass(frozen=True, slots=True)
class Failed:
    """No sandbox could be had for the text, and none can be had in this process any more."""

    detail: str


def serve(channel: Any, settings: AuditSettings) -> None:
    """Judge texts until the other end closes or sends None."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with (
        suppress(ConnectionError),  # who started this process is gone
        channel,
        Pool(
            max_workers=SANDBOX_WORKERS,
            sources_per_worker=settings.sources_per_worker,
            require=settings.require,
        ) as pool,
    ):
        channel.send(Ready())
        while (text := _next(channel)) is not None:
            try:
                message: Judgement | Failed = judge(text, pool, settings)
            except SandboxError as error:
                message = Failed(str(error))
            channel.send(message)
            if isinstance(message, Failed):
                return


def judge(text: str, pool: Pool, settings: AuditSettings) -> Judgement:
    """What validation comes to for `text`. `SandboxError` when there is no worker to be had."""
    began = time.perf_counter()
    with _Boundary() as boundary:
        report = validate(text, pool=pool, seeds=settings.seeds, dialect=settings.dialect)
        return Judgement(
            status=Status.OK if report.ok else Status.REFUSED,
            base=base_of(text, settings.dialect),
            env_digest=report.digest,
            gates={name: str(verdict) for name, verdict in report.gates.items()},
            findings=report.findings,
            seconds=time.perf_counter() - began,
        )
    return Judgement(status=Status.NOT_AUDITED, detail=boundary.detail)


class _Boundary:
    """Where a defect of ours, met by one source of thousands, becomes a value: the audit goes on and tells it."""

    detail = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, SandboxError):
            return False
        frames = traceback.extract_tb(at)[-_TAIL:]
        where = ", ".join(
            f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"  # noqa: PTH119
            for frame in frames
        )
        self.detail = f"validation failed on it: {type(error).__name__}: {error} ({where})"[:2000]
        return True


def _next(channel: Any) -> str | None:
    try:
        text: str | None = channel.recv()
    except EOFError:
        return None
    return text


def _end_with_parent() -> None:
    """End this process, and with it its sandbox, when the one that started it is no more.

    The channel alone would tell only between two texts.
    """
    parent = multiprocess.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
