"""A model that many threads talk to at once: each waits for its own reply, and what was spent is counted.

Episodes of many turns, and answers to many questions, are threads that mostly wait. An endpoint is asked by each of
them directly. A model on this machine answers best in batches: one thread takes what is waiting and asks once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from spade_loop.completers import Reply, Writer
from spade_loop.errors import ConfigError, ContextError, ModelError
from spade_loop.types import Message

Item = TypeVar("Item")
Result = TypeVar("Result")
Chat = Sequence[Message]
_NO_MORE: Final = "the model is asked nothing more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How replies are drawn. `ConfigError` for a value out of its range."""

    max_tokens: int
    """Tokens of one reply at most."""
    temperature: float = 0.0
    """0: the likeliest token each time."""
    top_p: float = 1.0
    """Mass of the likeliest tokens among which one is drawn; 1: all of it."""
    top_k: int = 0
    """Number of the likeliest tokens among which one is drawn; 0: all of them."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if not 0.0 <= self.temperature <= 10.0:
            raise ConfigError(f"temperature must lie in [0, 10], got {self.temperature}")
        if not 0.0 < self.top_p <= 1.0:
            raise ConfigError(f"top_p must lie in (0, 1], got {self.top_p}")
        if self.top_k < 0:
            raise ConfigError(f"top_k must be at least 0 (off), got {self.top_k}")


@dataclass(frozen=True, slots=True)
class Usage:
    """What was asked of a model so far, as it counts."""

    calls: int = 0
    prompt_tokens: int = 0
    tokens: int = 0
    """Generated."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.tokens + other.tokens,
        )

    def cost(self, price_in: float, price_out: float) -> float:
        """What it cost, at prices of a million tokens read and written; in their currency."""
        return (self.prompt_tokens * price_in + self.tokens * price_out) / 1e6


@dataclass(slots=True)
class Tally:
    """Counts what one thread asks."""

    usage: Usage = Usage()


class Speaker:
    """A `Writer` for many threads. Owned by a `with`, or closed by hand."""

    def __init__(self, writer: Writer, *, rows: int) -> None:
        """At most `rows` chats are answered in one call where the model runs on this machine.

        The writer is the speaker's from now on, and is closed with it.
        """
        if rows < 1:
            raise ConfigError(f"at least one chat must be answered at a time, got {rows}")
        self.name = writer.name
        self._writer = writer
        self._lock = threading.Lock()
        self._usage = Usage()
        self._failed: ModelError | None = None
        self._own = threading.local()
        self._batches = None if writer.concurrent else _Batches(writer, rows)

    def say(self, chat: Chat, decoding: Decoding, seed: int) -> Reply:
        """The model's reply; blocks until it is there. Called from many threads at once.

        `ContextError` when the chat does not fit, which concerns no other chat. Any other `ModelError` is final: every
        caller gets it, those that wait and those that come later.
        """
        if self._failed is not None:
            raise ModelError(str(self._failed)) from self._failed
        ask = self._ask if self._batches is None else self._batches.ask
        try:
            reply = ask(chat, decoding, seed)
        except ContextError:
            raise
        except ModelError as error:
            self._failed = self._failed or error
            raise
        spent = Usage(1, reply.prompt_tokens, reply.tokens)
        with self._lock:
            self._usage += spent
        tally: Tally | None = getattr(self._own, "tally", None)
        if tally is not None:
            tally.usage += spent
        return reply

    @contextmanager
    def counting(self) -> Iterator[Tally]:
        """Count what the calling thread asks inside the block: what one episode cost. Blocks do not nest."""
        tally = Tally()
        self._own.tally = tally
        try:
            yield tally
        finally:
            self._own.tally = None

    @property
    def usage(self) -> Usage:
        """What was asked so far, in this process."""
        with self._lock:
            return self._usage

    def close(self) -> None:
        """Ask nothing more; callers that wait get a `ModelError`. A batch under way is waited for."""
        self._failed = self._failed or ModelError(_NO_MORE)
        if self._batches is not None:
            self._batches.close()
        self._writer.close()

    def __enter__(self) -> Speaker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, chat: Chat, decoding: Decoding, seed: int) -> Reply:
        return _write(self._writer, [chat], decoding, [seed])[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    chat: Chat
    decoding: Decoding
    seed: int
    answer: Future[Reply]


class _Batches:
    """One thread that answers what waits, in calls of chats with equal decoding."""

    def __init__(self, writer: Writer, rows: int) -> None:
        self._writer = writer
        self._rows = rows
        self._questions: queue.SimpleQueue[_Question | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._failure: ModelError | None = None
        self._thread = threading.Thread(target=self._run, name="speaking", daemon=True)
        self._thread.start()

    def ask(self, chat: Chat, decoding: Decoding, seed: int) -> Reply:
        question = _Question(chat, decoding, seed, Future())
        with self._lock:
            if self._closed:
                raise ModelError(_NO_MORE)
            self._questions.put(question)
        return question.answer.result()

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._questions.put(None)
        self._thread.join()

    def _run(self) -> None:
        waiting: list[_Question] = []
        while self._take(waiting):
            first = waiting[0].decoding
            batch = [q for q in waiting if q.decoding == first][: self._rows]
            taken = set(batch)
            waiting = [q for q in waiting if q not in taken]
            self._answer(batch)
        for question in waiting:
            question.answer.set_exception(ModelError(_NO_MORE))

    def _take(self, waiting: list[_Question]) -> bool:
        """Move all that was asked to `waiting`, at least one question; False when nothing more will be answered."""
        while True:
            try:
                question = self._questions.get(block=not waiting)
            except queue.Empty:
                return True
            if question is None:  # nothing follows it
                return False
            waiting.append(question)

    def _answer(self, batch: Sequence[_Question]) -> None:
        try:
            replies = self._replies(batch)
        except ContextError as error:
            if len(batch) == 1:
                batch[0].answer.set_exception(error)
                return
            # One of them is too long, and that concerns no other.
            for question in batch:
                self._answer([question])
        except Exception as error:  # noqa: BLE001 -- it is raised where the answer is waited for
            for question in batch:
                question.answer.set_exception(error)
        else:
            for question, reply in zip(batch, replies, strict=True):
                question.answer.set_result(reply)

    def _replies(self, batch: Sequence[_Question]) -> list[Reply]:
        if self._failure is not None:
            raise ModelError(str(self._failure))
        chats, seeds = [q.chat for q in batch], [q.seed for q in batch]
        try:
            return _write(self._writer, chats, batch[0].decoding, seeds)
        except ContextError:
            raise
        except ModelError as error:
            self._failure = error
            raise


def _write(
    writer: Writer, chats: Sequence[Chat], decoding: Decoding, seeds: Sequence[int]
) -> list[Reply]:
    return writer.write(
        chats,
        max_tokens=decoding.max_tokens,
        temperature=decoding.temperature,
        seeds=seeds,
        top_p=decoding.top_p,
        top_k=decoding.top_k,
    )


def run_all(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    *,
    threads: int,
    stop: Callable[[], None] | None = None,
) -> Generator[tuple[Item, Result]]:
    """(item, what `work` made of it) as each is done, from `threads` threads; `items` is read as they go.

    When `work` raises, nothing more is begun, `stop` is called (`Speaker.close`: it ends what waits for a model), what
    was finished meanwhile is still yielded, and then the first exception is raised. Ctrl-C, or closing the iterator
    early, ends it the same way but yields nothing more. No thread is left behind. Iterate inside
    `contextlib.closing(run_all(...))`, so that an exception of the loop's own body ends it at once, too.
    """
    crew = ThreadPoolExecutor(threads, thread_name_prefix="run")
    under_way: dict[Future[Result], Item] = {}
    source = iter(items)
    finished = False
    try:
        _begin(crew, under_way, source, work, 2 * threads)
        while under_way:
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            failed = [future for future in done if future.exception() is not None]
            if failed:
                break
            for future in done:
                yield under_way.pop(future), future.result()
                _begin(crew, under_way, source, work, 1)
        finished = not under_way
    finally:
        if not finished:
            for future in under_way:
                future.cancel()
            if stop is not None:
                stop()
        crew.shutdown(wait=True, cancel_futures=True)
    for future, item in under_way.items():
        if not future.cancelled() and future.exception() is None:
            yield item, future.result()
    if under_way:
        raise failed[0].exception() or AssertionError


def _begin(
    crew: ThreadPoolExecutor,
    under_way: dict[Future[Result], Item],
    source: Iterator[Item],
    work: Callable[[Item], Result],
    count: int,
) -> None:
    for item in islice(source, count):
        under_way[crew.submit(work, item)] = item
