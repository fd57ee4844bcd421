"""Whether a solution passes the tests of a LiveCodeBench problem: one confined process for each test.

Judged as by the benchmark's own runner: the first test that fails decides; output is compared line by line without
spaces at its ends, numbers by value; what a function returns is compared as JSON, so that tuples are lists.
"""

from __future__ import annotations

import json
import math
import signal
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from spade_loop.evaluation.suites.children import (
    HERE,
    Crew,
    Limits,
    Run,
    own_faults,
    run_confined,
    scratch,
)
from spade_loop.evaluation.suites.livecodebench_data import Problem, Test

TIME: Final = "time-limit"
"""Failure: a test took too long."""
ERROR: Final = "run-time-error"
"""Failure: the solution raised, crashed or ran out of memory."""
WALL: Final = 5.0
"""Wall time allowed, in processor times: enough on a busy machine, and an end for a solution that waits."""
_SHOWN: Final = 200
_SPENT: Final = (-signal.SIGKILL, -signal.SIGXCPU)
"""How a process ends whose processor time is spent."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a solution did."""

    passed: int
    """Tests passed, in order, before the first that was not."""
    tests: int
    failure: str = ""
    """`TIME`, `ERROR`, or empty: right, or a wrong answer."""
    detail: str = ""

    @property
    def right(self) -> bool:
        """Whether all tests were passed."""
        return self.passed == self.tests


def limits_of(seconds: float, memory_mb: int) -> Limits:
    """Limits of one test. `seconds` are of processor time, rounded up, with one for the interpreter's start.

    Processor time, so that what else the machine does decides nothing.
    """
    whole = math.ceil(seconds) + 1
    return Limits(seconds=WALL * whole, memory_mb=memory_mb, cpu_seconds=whole)


def grade(problem: Problem, code: str, limits: Limits, crew: Crew) -> Verdict:
    """Run `code` against the tests in order, up to the first that fails."""
    for number, test in enumerate(problem.tests):
        failure, detail = _failed(problem, test, code, limits, crew)
        if failure or detail:
            detail = f"test {number + 1} of {len(problem.tests)}: {detail}"
            return Verdict(number, len(problem.tests), failure, detail)
    return Verdict(len(problem.tests), len(problem.tests))


@own_faults()
def _failed(problem: Problem, test: Test, code: str, limits: Limits, crew: Crew) -> tuple[str, str]:
    """(kind of failure, what was wrong); two empty texts for a test that is passed."""
    with scratch("spade-loop-solution-") as root:
        folder = root / "work"
        folder.mkdir()
        (folder / "solution.py").write_text(code, encoding="utf-8", errors="replace")
        command = [str(HERE / "solution_runner.py"), str(folder)]
        if test.functional:
            (folder / "arguments.json").write_text(json.dumps(test.arguments()), encoding="utf-8")
            run = run_confined(
                [*command, problem.function], folder, stdin="", limits=limits, crew=crew
            )
        else:
            run = run_confined(command, folder, stdin=test.input, limits=limits, crew=crew)
        if run.status is None or run.status in _SPENT:
            return TIME, f"more than {limits.cpu_seconds - 1} s of processor time"
        if run.status != 0:
            last = run.errors.strip().rpartition("\n")[2]
            return ERROR, f"{last[:_SHOWN] or f'exit status {run.status}'}"
        return "", _wrong_value(folder, test) if test.functional else _wrong_output(run, test)


def _wrong_value(folder: Path, test: Test) -> str:
    """What is wrong with what a function returned, or nothing. The file is the solution's: it may hold anything."""
    try:
        with (folder / "result.json").open(encoding="utf-8") as file:
            result = json.load(file)
    except (OSError, ValueError, RecursionError):
        return "the function returned nothing"
    expected = test.expected()
    return "" if result == expected else _difference(expected, result)


def _wrong_output(run: Run, test: Test) -> str:
    return "" if same_output(test.output, run.output) else _difference(test.output, run.output)


def same_output(expected: str, got: str) -> bool:
    """Whether two outputs are alike: as many lines, each the same text or the same numbers."""
    wanted, given = _trimmed(expected), _trimmed(got)
    return len(wanted) == len(given) and all(
        a == b or _same_numbers(a, b) for a, b in zip(wanted, given, strict=True)
    )


def _trimmed(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_numbers(expected: str, got: str) -> bool:
    try:
        wanted = [Decimal(word) for word in expected.split()]
        return wanted == [Decimal(word) for word in got.split()]
    except InvalidOperation:
        return False


def _difference(expected: Any, got: Any) -> str:
    return f"expected {str(expected).strip()[:_SHOWN]!r}, got {str(got).strip()[:_SHOWN]!r}"
