"""LiveCodeBench, code generation: problems of programming contests, solved in Python and judged by hidden tests.

Jain et al., "LiveCodeBench: Holistic and Contamination Free Evaluation of Large Language Models for Code" (ICLR 2025),
release_v6: 1,055 problems, of which the last version added 175 (`release=v6`). The tests run what the model wrote, in
confined processes (`children`), and only where that was allowed: it is weaker than the sandbox of environments.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from spade_loop.errors import ConfigError, ModelError
from spade_loop.evaluation.suite import Attempt, Item, Say, answered, spread, unread
from spade_loop.evaluation.suites.calls import spoken
from spade_loop.evaluation.suites.children import Crew, check_confinement
from spade_loop.evaluation.suites.livecodebench_data import (
    LATEST,
    Line,
    Problem,
    find_files,
    index,
    read_problem,
)
from spade_loop.evaluation.suites.livecodebench_grading import grade, limits_of
from spade_loop.parsing import ReplyError, last_code_block
from spade_loop.speaking import Decoding
from spade_loop.types import Message

SECONDS: Final = 6.0
"""For one test, as in the benchmark's runner; here of processor time."""
MEMORY_MB: Final = 4096
"""Address space of a solution, as in the benchmark's runner."""
_GRADING: Final = "1"
_SYSTEM: Final = (
    "You solve problems of programming contests in Python 3. Your program must be correct and fast enough for every "
    "input within the stated limits; it is judged by hidden tests."
)
_PROGRAM: Final = (
    "Write a complete program that reads the input from standard input and prints the output to standard output, and "
    "nothing else. Give the whole program in one fenced code block:\n\n```python\n# your program\n```"
)
_FUNCTION: Final = (
    "Complete this code; keep its names and signatures. It is called by the tests: read no input and print nothing. "
    "Give the whole code in one fenced code block.\n\n```python\n{starter}\n```"
)


def suite(
    *,
    data: Path | None = None,
    release: str = f"release_v{LATEST}",
    allow_code: bool = False,
    seconds: float = SECONDS,
    memory_mb: int = MEMORY_MB,
) -> LiveCodeBench:
    """The suite. `data` is a file of JSON lines, or a folder with the files of the release; without it the Hub's.

    `ConfigError` unless `allow_code` is set, `ResourceError` on a machine that cannot confine the code.
    """
    if not allow_code:
        raise ConfigError(
            "livecodebench runs programs that the model writes, as this user, in processes that the kernel confines: "
            "no network, no other processes, no files but their own and Python's. That is weaker than the sandbox of "
            "environments: if it is fine, give --suite-option allow_code=true"
        )
    if not 0.0 < seconds <= 3600.0:
        raise ConfigError(f"livecodebench: seconds must lie in (0, 3600], got {seconds}")
    if memory_mb < 64:
        raise ConfigError(f"livecodebench: memory_mb must be at least 64, got {memory_mb}")
    check_confinement()
    source = data.name if data is not None and data.is_file() else release
    return LiveCodeBench(find_files(data, release), source, seconds, memory_mb)


class LiveCodeBench:
    """Suite `livecodebench`; see the module."""

    name = "livecodebench"
    decoding = Decoding(max_tokens=16_384, temperature=0.2, top_p=0.95)
    samples = 1

    def __init__(self, files: Sequence[Path], source: str, seconds: float, memory_mb: int) -> None:
        self.version = f"{_GRADING}+{source}"
        self._files = tuple(files)
        self._limits = limits_of(seconds, memory_mb)
        self._crew = Crew()
        self._items: tuple[Item, ...] = ()
        self._processes = threading.Semaphore(os.cpu_count() or 1)

    def items(self, limit: int | None) -> Sequence[Item]:
        """All problems, in the order of the files, by difficulty. The first call reads the files once."""
        if not self._items:
            self._items = tuple(
                Item(id=name, category=difficulty, content=line)
                for line, name, difficulty in index(self._files)
            )
        return spread(self._items, limit)

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        """Ask for a solution; run the last code block of the reply against the tests, public ones first.

        `ModelError` for a problem that cannot be read: that is no answer of the model.
        """
        del seed  # nothing is drawn
        line: Line = item.content
        try:
            problem = read_problem(line)
        except ConfigError as error:
            raise ModelError(f"livecodebench: {error}") from error
        chat = prompt(problem)
        reply = say(chat)
        transcript = answered(chat, reply)
        try:
            code = last_code_block(spoken(reply.text))
        except ReplyError as error:
            return unread(reply, transcript, str(error))
        with self._processes:
            verdict = grade(problem, code, self._limits, self._crew)
        if verdict.failure:
            return Attempt.failed(verdict.failure, transcript, verdict.detail)
        return Attempt(
            score=float(verdict.right),
            correct=verdict.right,
            transcript=transcript,
            detail=verdict.detail or f"{verdict.tests} tests passed",
        )

    def close(self) -> None:
        """End what is under way."""
        self._crew.close()


def prompt(problem: Problem) -> tuple[Message, ...]:
    """What the model is asked: the statement, and how to answer. The wording is ours."""
    task = (
        _FUNCTION.format(starter=problem.starter.rstrip()) if problem.starter.strip() else _PROGRAM
    )
    return (
        Message("system", _SYSTEM),
        Message(
            "user", f"# {problem.title}\n\n{problem.statement.strip()}\n\n# How to answer\n\n{task}"
        ),
    )
