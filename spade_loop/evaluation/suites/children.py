"""Child processes of suites, from the parent's side: a program run once under limits, or one that answers requests.

Each child is confined as `confinement` says, has a folder of its own that goes with it, an empty environment but for
what Python needs, and a deadline; it ends with the thread that started it. What a child does is a value: a `Run`, or a
`ChildError` that the suite counts. Only that a child cannot be started or confined is an exception of ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from spade_loop.errors import ModelError, ResourceError, SpadeLoopError
from spade_loop.evaluation.suites.confinement import UNCONFINED

HERE: Final = Path(__file__).parent
_LINE_MB: Final = 256
"""The longest answer of a child: all items of a category are one line."""
_SHOWN: Final = 2000
"""Characters of a child's stderr that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a child may use."""

    seconds: float
    """Wall time of one run, or of one answer."""
    memory_mb: int = 4096
    """Address space; 4 GB as in LiveCodeBench's runner."""
    file_mb: int = 64
    """Size of each file that it writes, its output among them."""
    cpu_seconds: int = 600
    """Processor time of its whole life: the backstop of the deadline."""
    reads: bool = False
    """Whether it may read files elsewhere than in its folder and where its interpreter lies."""
    required: bool = True
    """Whether it must not run where the kernel cannot confine it."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a program ended."""

    status: int | None
    """Exit status, negative for a signal; None when the time ran out."""
    output: str
    errors: str
    """The end of what it wrote to stderr."""


class ChildError(SpadeLoopError, RuntimeError):
    """A child did not answer: it took too long, ended, or broke the protocol. Not an error of the evaluation."""

    def __init__(self, message: str, *, slow: bool = False) -> None:
        super().__init__(message)
        self.slow = slow
        """Whether its time ran out."""


class ConfinementError(ResourceError):
    """This machine cannot confine a child."""


@contextlib.contextmanager
def own_faults() -> Iterator[None]:
    """Has a lack of memory or room here end the evaluation (`ResourceError`), and not count against the model."""
    try:
        yield
    except OSError as error:
        raise ResourceError(
            f"child processes need memory, and room in {tempfile.gettempdir()}: {error}"
        ) from error


class Crew:
    """The living children of a suite, so that they can be ended from another thread when an evaluation ends early."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def enter(self, process: subprocess.Popen[bytes]) -> None:
        """Count a child in. Where the crew is closed, the child is ended and a `ModelError` raised."""
        with self._lock:
            if not self._closed:
                self._living.add(process)
                return
        _end(process)
        self.check()

    def leave(self, process: subprocess.Popen[bytes]) -> None:
        """Count a child out."""
        with self._lock:
            self._living.discard(process)

    def check(self) -> None:
        """Refuse to go on after `close`: `ModelError`, as from a model that is asked nothing more.

        A child that was ended says nothing of the model, so no attempt may come of it.
        """
        if self._closed:
            raise ModelError("the suite is closed: its child processes were ended")

    def close(self) -> None:
        """End all children; those who wait for them get a `ModelError`."""
        with self._lock:
            self._closed = True
            for process in self._living:
                process.kill()  # it has no processes of its own


@own_faults()
def run_confined(
    command: Sequence[str], folder: Path, *, stdin: str, limits: Limits, crew: Crew
) -> Run:
    """Run Python with `command` (script, arguments) once, in `folder`, where alone it may write.

    `stdin` is its input; its output goes through files in the folder's parent, so that nothing can block. Where the
    kernel cannot confine it, it does not run: `check_confinement` tells so beforehand.
    """
    streams = Path(tempfile.mkdtemp(prefix="streams-", dir=folder.parent))
    try:
        (streams / "in").write_text(stdin, encoding="utf-8", errors="surrogatepass")
        with (
            (streams / "in").open("rb") as source,
            (streams / "out").open("wb") as output,
            (streams / "err").open("wb") as errors,
        ):
            process = _start(sys.executable, command, folder, limits, (source, output, errors))
            try:
                crew.enter(process)
                status: int | None = process.wait(limits.seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                _end(process)
                crew.leave(process)
        crew.check()
        told = (streams / "err").read_text(encoding="utf-8", errors="replace")
        said = (streams / "out").read_text(encoding="utf-8", errors="replace")
        return Run(status, said, told[-_SHOWN:])
    finally:
        shutil.rmtree(streams, ignore_errors=True)


def check_confinement() -> None:
    """Refuse, with `ConfinementError`, a machine whose kernel cannot confine a child."""
    with scratch("spade-loop-probe-") as root:
        (root / "work").mkdir()
        run = run_confined(
            ("-c", "pass"), root / "work", stdin="", limits=Limits(seconds=60.0), crew=Crew()
        )
    if run.status != 0:
        raise ConfinementError(_cannot(run.errors))


class Child:
    """A program that answers each line of JSON with one. Owned by a `with`; used by the thread that started it."""

    def __init__(
        self, command: Sequence[str], limits: Limits, crew: Crew, *, python: str = sys.executable
    ) -> None:
        """Start Python with `command` (script, arguments) in a folder of its own.

        `ChildError` without that Python, `ResourceError` without memory or room for it.
        """
        self._limits = limits
        self._crew = crew
        self._folder = Path(tempfile.mkdtemp(prefix="spade-loop-child-"))
        self._rest = b""
        (self._folder / "work").mkdir()
        self._errors = (self._folder / "err").open("w+b")
        try:
            self._process = _start(
                python,
                command,
                self._folder / "work",
                limits,
                (subprocess.PIPE, subprocess.PIPE, self._errors),
            )
        except OSError as error:
            self._forget()
            if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
                raise ChildError(f"{python} cannot be started: {error}") from error
            raise
        try:
            crew.enter(self._process)
        except ModelError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What the child answers. `ChildError` when it does not, or says that the request failed (`error`)."""
        try:
            answer = self._exchange(json.dumps(request).encode() + b"\n")
        except ChildError:
            self._crew.check()
            raise
        if not isinstance(answer, dict) or "error" in answer:
            told = answer["error"] if isinstance(answer, dict) else answer
            raise ChildError(str(told)[:_SHOWN])
        return answer

    def _exchange(self, line: bytes) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            return json.loads(self._line())
        except (OSError, ValueError) as error:
            raise ChildError(self._told(f"broke off: {error}")) from error

    def close(self) -> None:
        """End the child, whatever it does, and remove its folder."""
        _end(self._process)
        self._crew.leave(self._process)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._forget()

    def _forget(self) -> None:
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _line(self) -> bytes:
        """The next line, read up to the deadline."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + self._limits.seconds
        pieces = [self._rest]
        size = len(self._rest)
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in pieces[-1]:
                if size > _LINE_MB << 20:
                    raise ChildError(f"an answer of more than {_LINE_MB} MB")
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise ChildError(f"no answer within {self._limits.seconds:g} s", slow=True)
                piece = os.read(self._process.stdout.fileno(), 1 << 20)
                if not piece:
                    self._process.wait(self._limits.seconds)
                    if self._process.returncode == UNCONFINED:
                        raise ConfinementError(_cannot(self._stderr()))
                    raise ChildError(self._told(f"ended with status {self._process.returncode}"))
                pieces.append(piece)
                size += len(piece)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line

    def _told(self, what: str) -> str:
        stderr = self._stderr().strip()
        return f"the child process {what}" + (f"; it said: {stderr}" if stderr else "")

    def _stderr(self) -> str:
        self._errors.flush()
        return (self._folder / "err").read_text(encoding="utf-8", errors="replace")[-_SHOWN:]


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A folder for as long as it is needed."""
    path = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _start(
    python: str, command: Sequence[str], folder: Path, limits: Limits, streams: tuple[Any, Any, Any]
) -> subprocess.Popen[bytes]:
    told = {
        "memory_mb": limits.memory_mb,
        "cpu_seconds": limits.cpu_seconds,
        "file_mb": limits.file_mb,
        "folder": str(folder),
        "reads": limits.reads,
        "parent": os.getpid(),
        "required": limits.required,
    }
    flags = ("-I", "-B", "-X", "utf8")
    return subprocess.Popen(
        (python, *flags, str(HERE / "confinement.py"), json.dumps(told), python, *flags, *command),
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        cwd=folder,
        env={"HOME": str(folder), "TMPDIR": str(folder), "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"},
        start_new_session=True,
    )  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a child and reap it. It has no children of its own: it cannot start any where it is confined."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _cannot(reason: str) -> str:
    return (
        f"a child process cannot be confined on this machine ({reason.strip() or 'no reason given'}): "
        "expected a Linux kernel with seccomp and Landlock (5.13 or later), on x86-64 or ARM64"
    )
