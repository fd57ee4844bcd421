"""The dynamic comparison: the same source, seeds and answers in plain Python and under the policy, byte for byte.

The corpora are public packages and are run in this process, with no sandbox around it: run this on packages that you
would import.
"""

from __future__ import annotations

import gc
import random
import signal
import sys
import time
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bundles import NotComparable, bundle

from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.runtime import Runtime


class OutOfTimeError(BaseException):
    """A run took too long; not an `Exception`, which a player would report as a result."""


@dataclass(slots=True)
class Comparison:
    """What became of the files of one corpus that could be run."""

    identical: int = 0
    different: dict[str, str] = field(default_factory=dict)
    """File and what differs."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Why files could not be compared."""
    cpu: list[tuple[float, float]] = field(default_factory=list)
    """CPU seconds of every file that was compared, plain and under the policy; the better of two runs."""


def compare(
    package: str, files: list[Path], site: Path, seeds: list[int], seconds: float
) -> Comparison:
    """Run every file that can be run, for every seed, in both ways."""
    found = Comparison()
    for path in files:
        name = path.relative_to(site).as_posix()
        try:
            source = bundle(package, path, site)
            plain, sandboxed = _both(source, seeds, seconds, found)
        except NotComparable as error:
            found.left_out[str(error)] += 1
            continue
        if plain == sandboxed:
            found.identical += 1
        else:
            found.different[name] = _difference(plain, sandboxed)
    return found


def _both(
    source: str, seeds: list[int], seconds: float, found: Comparison
) -> tuple[list[str], list[str]]:
    """What both ways of running give, a text a seed; plain Python first, and twice, to know that it can be compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(source, "<plain>", "exec", dont_inherit=True)
        compiled = compile_source(source)
        if compiled.code is None:
            raise NotComparable("refused by the policy")
        checked, runtime = compiled.code, Runtime()
        plain, plain_cpu = _timed(lambda: [_plain(code, seed) for seed in seeds], seconds)
        again, again_cpu = _timed(lambda: [_plain(code, seed) for seed in seeds], seconds)
        if plain != again:
            raise NotComparable(
                "not reproducible in plain Python (clock, addresses, unseeded random)"
            )
        run = partial(_sandboxed, runtime, checked)
        sandboxed, cpu = _timed(lambda: [run(seed) for seed in seeds], seconds * 3)
        _, second_cpu = _timed(lambda: [run(seed) for seed in seeds], seconds * 3)
    found.cpu.append((min(plain_cpu, again_cpu), min(cpu, second_cpu)))
    return plain, sandboxed


def _timed(run: Callable[[], list[str]], seconds: float) -> tuple[list[str], float]:
    gc.collect()  # what was left by compilation must not be paid for by this run
    start = (
        time.thread_time()
    )  # with an interval timer set, the clock of the process moves in steps of 4 ms
    try:
        with _deadline(seconds):
            texts = run()
    except OutOfTimeError:
        raise NotComparable(f"takes longer than {seconds:g} s") from None
    finally:
        signal.setitimer(
            signal.ITIMER_VIRTUAL, 0
        )  # once more: the alarm may have rung in `_deadline`'s own cleanup
    return texts, time.thread_time() - start


def _plain(code: types.CodeType, seed: int) -> str:
    module = types.ModuleType("env")
    sys.modules["env"] = module  # where `dataclasses` looks a class' module up
    random.seed(seed)
    try:
        exec(code, module.__dict__)  # noqa: S102
        return str(module.__dict__["play"](seed))
    except Exception as error:  # noqa: BLE001 - a file that does not run in plain Python cannot be compared
        raise NotComparable(f"does not run in plain Python: {type(error).__name__}") from None
    finally:
        del sys.modules["env"]


def _sandboxed(runtime: Runtime, code: types.CodeType, seed: int) -> str:
    try:
        return str(runtime.instantiate(code, seed)["play"](seed))
    except Exception as error:  # noqa: BLE001 - a difference to report, whatever it is
        return f"raised {type(error).__name__}: {error}"


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` after `seconds` of CPU time, and again each second: sources catch everything."""

    def expire(_signum: int, _frame: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGVTALRM, expire)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _difference(plain: list[str], sandboxed: list[str]) -> str:
    left, right = next(pair for pair in zip(plain, sandboxed, strict=False) if pair[0] != pair[1])
    at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    start = max(0, at - 30)
    return f"plain ...{left[start : at + 60]!r}, sandboxed ...{right[start : at + 60]!r}"
