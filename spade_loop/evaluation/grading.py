"""Graders: what reads a model's answer with other people's code runs in confined processes, not in this one.

Libraries that grade evaluate formulas, may never finish on some, seed the global random stream, print, and want to be
on the main thread. In a child (`suites.children`) each call has a time limit; there is no key among its environment
variables, and, where the kernel can, no network and no file to write to but its own. Children hash as
`PYTHONHASHSEED=0` says, so that a library whose items depend on the order of a set gives everyone the same ones.
"""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from spade_loop.errors import MissingExtraError, ResourceError
from spade_loop.evaluation.suites.children import Child, ChildError, Crew, Limits

WORKER: Final = Path(__file__).with_name("grading_worker.py")
START_SECONDS: Final = 120.0
"""What a child may take to import a library, beyond the limit of the call."""
_UNBOUNDED: Final = 10**7
"""Seconds of processor time: calls are limited one by one, children are not."""


class GradingError(Exception):
    """A grader raised, did not finish in time, or died: a failure of the attempt, not of the evaluation."""


class Graders:
    """At most so many children, started when they are first needed. Owned by whoever made it; `close` ends them."""

    def __init__(self, *, processes: int = 2, seconds: float = 30.0, memory_mb: int = 8192) -> None:
        """`seconds` is the limit of one call, `memory_mb` the address space of a child."""
        self._seconds = seconds
        self._limits = Limits(
            seconds=seconds + START_SECONDS,
            memory_mb=memory_mb,
            cpu_seconds=_UNBOUNDED,
            reads=True,
            required=False,
        )
        self._crew = Crew()
        self._own = threading.local()
        self._children: set[Child] = set()
        # A child ends with the thread that started it, so children have threads of their own.
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="grader")

    def call(self, target: str, /, **arguments: Any) -> Any:
        """What the function `module:name` returns for arguments that JSON keeps; called from many threads at once.

        `GradingError` says what went wrong in the child. `MissingExtraError` comes where its module cannot be
        imported, `ResourceError` where no child can be started, and `ModelError` after `close`, as from a model that
        is asked nothing more.
        """
        self._crew.check()
        question = {"call": target, "with": arguments, "seconds": self._seconds}
        try:
            return self._threads.submit(self._ask, question).result()
        except (CancelledError, RuntimeError) as error:
            self._crew.check()
            if isinstance(error, ChildError):
                raise GradingError(str(error)) from error
            raise  # of ours: it is told as it is

    def close(self) -> None:
        """End all children, those that are at work too."""
        self._crew.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        while self._children:
            self._children.pop().close()

    def __enter__(self) -> Graders:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, question: dict[str, Any]) -> Any:
        child = getattr(self._own, "child", None) or self._start()
        try:
            answer = child.ask(question)
        except ChildError:
            # Late or dead: the next call gets another one.
            self._own.child = None
            self._children.discard(child)
            child.close()
            raise
        if "absent" in answer:
            raise MissingExtraError(
                f"grading needs a package that cannot be imported: {answer['absent']}"
            )
        if "raised" in answer:
            raise ChildError(str(answer["raised"]))
        return answer["value"]

    def _start(self) -> Child:
        """A child of this thread that has answered once: if it cannot, no model is to blame."""
        child = Child((str(WORKER), json.dumps(sys.path)), self._limits, self._crew)
        self._children.add(child)
        try:
            child.ask({"call": "os:getpid", "with": {}, "seconds": START_SECONDS})
        except ChildError as error:
            raise ResourceError(f"a grader cannot be started: {error}") from error
        self._own.child = child
        return child
