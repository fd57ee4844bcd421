"""Running suites: many attempts at once, each a line of a journal, so that what was killed goes on where it was.

OUT/
  eval.json                 all results (`results`)
  eval.md                   the same as tables
  attempts/<suite>.jsonl    every attempt with its transcript (`journal`)
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from spade_loop.completers import Reply
from spade_loop.errors import (
    ContextError,
    MissingExtraError,
    ModelError,
    ResourceError,
    RunStateError,
)
from spade_loop.evaluation.results import (
    FILE,
    Evaluation,
    SuiteResult,
    failures_of,
    groups_of,
    item_results,
    read_evaluation,
    stable_seed,
    write_evaluation,
)
from spade_loop.evaluation.suite import Attempt, Failure, Item, Suite, answered
from spade_loop.journal import Journal
from spade_loop.progress import Progress
from spade_loop.report.formats import count, duration
from spade_loop.speaking import Decoding, Speaker, Usage, run_all
from spade_loop.types import JsonRow, Message
from synthgym.errors import EnvFaultError, SandboxError

NOTE_SECONDS: Final = 30.0
"""Between two lines that say how far a suite is."""
_ENDING: Final = (ModelError, MissingExtraError, ResourceError, RunStateError, SandboxError)
"""What ends an evaluation: no attempt can do better until it is mended."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One suite of an evaluation, and how it is played."""

    suite: Suite
    options: Mapping[str, str]
    decoding: Decoding
    samples: int
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What all suites of an evaluation have in common."""

    model: JsonRow
    seed: int
    concurrency: int
    spent: Callable[[Usage], str]
    """What was used so far, for a line of progress."""


@dataclass(slots=True)
class _Voice:
    """The model, as one attempt talks to it."""

    speaker: Speaker
    decoding: Decoding
    seed: int
    usage: Usage = field(default_factory=Usage)
    transcript: tuple[Message, ...] = ()

    def say(self, chat: Sequence[Message]) -> Reply:
        """Ask with the next seed, and keep what was said."""
        self.transcript = tuple(chat)
        reply = self.speaker.say(chat, self.decoding, (self.seed + self.usage.calls) % 2**31)
        self.usage += Usage(1, reply.prompt_tokens, reply.tokens)
        self.transcript = answered(chat, reply)
        return reply


def evaluate(
    asked: Sequence[Asked],
    speaker: Speaker,
    out: Path,
    conditions: Conditions,
    progress: Progress,
) -> Evaluation:
    """Play all attempts that the directory does not hold yet, suite by suite; write and return the results.

    Results of other suites with the same model stay in `eval.json`. Suites are closed. `RunStateError` when the
    directory holds results of another model, or of a suite with other settings; `ModelError` when the model cannot be
    reached: what was finished is kept.
    """
    before = _held(out, conditions.model)
    names = [one.suite.name for one in asked]
    if len(set(names)) < len(names):
        raise RunStateError(f"a suite was asked for twice: {', '.join(names)}")
    done: list[SuiteResult] = []
    with contextlib.ExitStack() as stack:
        closers = {one.suite.name: _Once(one.suite.close) for one in asked}
        for closer in closers.values():
            stack.callback(closer)
        for one in asked:
            result = _play(one, speaker, out, conditions, progress, closers[one.suite.name])
            done.append(result)
            kept = [old for old in before if old.name not in {new.name for new in done}]
            found = Evaluation(model=conditions.model, suites=(*kept, *done))
            write_evaluation(found, out)
            closers[one.suite.name]()
    return found


def journal_path(out: Path, name: str) -> Path:
    """Where the attempts of a suite lie."""
    slug = _UNSAFE.sub("-", name)
    # Names that differ only in what was replaced must not share a file.
    return out / "attempts" / f"{slug if slug == name else f'{slug}-{stable_seed(name):08x}'}.jsonl"


class _Once:
    """Calls a function the first time only; from any thread."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function: Callable[[], None] | None = function
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            function, self._function = self._function, None
        if function is not None:
            function()


def _held(out: Path, model: JsonRow) -> tuple[SuiteResult, ...]:
    if not (out / FILE).exists():
        return ()
    found = read_evaluation(out)
    if found.model != model:
        raise RunStateError(
            f"{out} holds results of {_named(found.model)}, not of {_named(model)}: give another --out"
        )
    return found.suites


def _named(model: JsonRow) -> str:
    return f"{model.get('name')} (backend {model.get('backend')})"


def _play(
    one: Asked,
    speaker: Speaker,
    out: Path,
    conditions: Conditions,
    progress: Progress,
    close: Callable[[], None],
) -> SuiteResult:
    suite = one.suite
    wanted = [(item, sample) for sample in range(one.samples) for item in suite.items(one.limit)]
    header = {
        "suite": suite.name,
        "version": suite.version,
        "options": dict(one.options),
        "model": conditions.model,
        "decoding": asdict(one.decoding),
        "seed": conditions.seed,
    }
    progress.phase(suite.name, len(wanted))

    def work(piece: tuple[Item, int]) -> JsonRow:
        return _attempt(one, speaker, conditions.seed, *piece)

    def stop() -> None:
        speaker.close()
        close()

    with Journal.open(journal_path(out, suite.name), header) as journal:
        rows = {(row["item"], row["sample"]): _compact(row) for row in reversed(journal.rows)}
        missing = [(item, n) for item, n in wanted if (item.id, n) not in rows]
        if len(missing) < len(wanted):
            progress.note(
                f"{suite.name}: {count(len(wanted) - len(missing), 'attempt')} of {len(wanted):,} done before"
            )
        progress.advance(len(wanted) - len(missing))
        finished = run_all(missing, work, threads=conditions.concurrency, stop=stop)
        told = _Teller(suite.name, len(wanted), conditions.spent, progress)
        with contextlib.closing(finished):
            for _, row in finished:
                journal.append(row)
                rows[row["item"], row["sample"]] = _compact(row)
                progress.advance(1, row["tokens"])
                told.tell(rows, speaker.usage)
    return _result(one, conditions, [rows[item.id, n] for item, n in _by_item(wanted)])


@dataclass(slots=True)
class _Teller:
    """A line now and then: how far a suite is, and what it has cost."""

    name: str
    planned: int
    spent: Callable[[Usage], str]
    progress: Progress
    began: float = 0.0
    last: float = 0.0

    def __post_init__(self) -> None:
        self.began = self.last = time.monotonic()

    def tell(self, rows: Mapping[Any, JsonRow], usage: Usage) -> None:
        """Say it, if it is time."""
        now = time.monotonic()
        if now - self.last < NOTE_SECONDS:
            return
        self.last = now
        right = sum(row["correct"] for row in rows.values())
        self.progress.note(
            f"{self.name}: {len(rows):,} of {count(self.planned, 'attempt')}, {right:,} correct, "
            f"{self.spent(usage)}, {duration(now - self.began)}"
        )


def _by_item(wanted: Sequence[tuple[Item, int]]) -> Iterator[tuple[Item, int]]:
    """Attempts in the order of the items, all of one item together."""
    places = {item.id: place for place, item in reversed(list(enumerate(i for i, _ in wanted)))}
    yield from sorted(wanted, key=lambda pair: (places[pair[0].id], pair[1]))


def _attempt(one: Asked, speaker: Speaker, seed: int, item: Item, sample: int) -> JsonRow:
    """One attempt, as a row."""
    own = stable_seed(seed, one.suite.name, item.id, sample)
    voice = _Voice(speaker, one.decoding, own)
    try:
        attempt = one.suite.play(item, voice.say, own)
    except ContextError as error:
        attempt = Attempt.failed(Failure.CONTEXT, voice.transcript, str(error))
    except EnvFaultError as error:
        attempt = Attempt.failed(Failure.FAULT, voice.transcript, str(error))
    except _ENDING:
        raise
    except Exception as error:  # noqa: BLE001 -- a suite's own failure is counted, and ends nothing
        told = f"{type(error).__name__}: {error}"
        attempt = Attempt.failed(Failure.CHECKER, voice.transcript, told)
    return {
        "item": item.id,
        "category": item.category,
        "sample": sample,
        "score": attempt.score,
        "correct": attempt.correct,
        "counted": attempt.counted,
        "failure": str(attempt.failure),
        "detail": attempt.detail,
        "calls": voice.usage.calls,
        "prompt_tokens": voice.usage.prompt_tokens,
        "tokens": voice.usage.tokens,
        "transcript": msgspec.to_builtins(attempt.transcript),
    }


def _compact(row: Mapping[str, Any]) -> JsonRow:
    """A row without what is only kept for people."""
    return {key: value for key, value in row.items() if key not in ("transcript", "detail")}


def _result(one: Asked, conditions: Conditions, rows: Sequence[JsonRow]) -> SuiteResult:
    items = item_results(rows)
    usage = sum(
        (Usage(row["calls"], row["prompt_tokens"], row["tokens"]) for row in rows), start=Usage()
    )
    return SuiteResult(
        name=one.suite.name,
        version=one.suite.version,
        options=dict(one.options),
        decoding=one.decoding,
        samples=one.samples,
        seed=conditions.seed,
        groups=groups_of(items, seed=conditions.seed),
        failures=failures_of(rows),
        usage=usage,
        items=items,
    )
