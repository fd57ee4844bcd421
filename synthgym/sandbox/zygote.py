"""The zygote: a small process of its own from which every worker is forked.

It is started by `process.Zygote` through exec, with an environment and a module search path of its
own, so nothing of the parent (memory, variables, descriptors, main script) can reach a worker. It
has one thread, loads what generated code may use, and then only forks, kills and reaps. It owns the
pids of its workers: nobody else may kill them, since a pid stays valid for as long as the zygote
has not reaped it.

It must never import gymnasium, numpy or torch: every worker would carry them. What it imports of our
own keeps to what starts fast (`msgspec.Struct` and not `dataclass`, `open` and not `pathlib`): where few
sources are validated, starting the two zygotes is a tenth of the work.
"""

from __future__ import annotations

import gc
import importlib
import mmap
import os
import select
import signal
import socket
import warnings
from typing import Final, NoReturn

from synthgym.sandbox.isolation import Confinement
from synthgym.sandbox.protocol import (
    RECV_BYTES,
    Answer,
    Control,
    FrameDecoder,
    Spawn,
    decode_control,
    encode,
    frame,
)
from synthgym.sandbox.runtime import Runtime
from synthgym.sandbox.worker import serve

PRELOADED: Final = (
    "_strptime",
    "calendar",
    "encodings.ascii",
    "encodings.base64_codec",
    "encodings.cp1252",
    "encodings.cp437",
    "encodings.hex_codec",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.punycode",
    "encodings.raw_unicode_escape",
    "encodings.rot_13",
    "encodings.unicode_escape",
    "encodings.utf_16",
    "encodings.utf_16_be",
    "encodings.utf_16_le",
    "encodings.utf_32",
    "encodings.utf_8",
    "encodings.utf_8_sig",
    "linecache",
    "locale",
    "stringprep",
    "traceback",
    "unicodedata",
)
"""What the standard library imports only when first used: a locked worker cannot open a file any
more."""
_PARENT_CHECK_SECONDS: Final = 1.0
"""How often the zygote looks whether its parent lives. The end of the control channel says so at
once, unless a fork of the parent holds a copy of it."""


def main(control_fd: int, parent: int) -> NoReturn:
    """Serve the control channel until it closes or process `parent` ends.

    Then every worker is killed and this process exits.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    warnings.simplefilter("ignore")  # showing one would open source files
    for name in PRELOADED:
        importlib.import_module(name)
    runtime = Runtime()
    gc.collect()
    gc.freeze()  # or the collector would touch, and so copy, every shared page in every worker
    gc.enable()  # `bootstrap` turned it off
    control = socket.socket(fileno=control_fd)
    os.set_inheritable(control_fd, False)
    control.sendall(frame(encode(Answer(os.getpid()))))
    _Nursery(control, parent, runtime).run()
    os._exit(0)  # there is nothing to put away, and to take all modules apart takes its time


class _Nursery:
    """The workers that were forked and not yet reaped."""

    def __init__(self, control: socket.socket, parent: int, runtime: Runtime) -> None:
        self._control = control
        self._parent = parent
        self._runtime = runtime
        self._children: set[int] = set()

    def run(self) -> None:
        decoder = FrameDecoder()
        try:
            while os.getppid() == self._parent:
                ready, _, _ = select.select([self._control], [], [], _PARENT_CHECK_SECONDS)
                if not ready:
                    continue
                data, descriptors, _, _ = socket.recv_fds(self._control, RECV_BYTES, 2)
                if not data:
                    break
                for body in decoder.feed(data):
                    answer = self._answer(decode_control(body), descriptors)
                    self._control.sendall(frame(encode(answer)))
        except OSError:
            pass  # the parent is gone
        finally:
            for pid in list(self._children):
                self._kill(pid)

    def _answer(self, message: Control, descriptors: list[int]) -> Answer:
        if isinstance(message, Spawn):
            try:
                if len(descriptors) != 2:
                    return Answer(0, "a request for a worker needs two descriptors")
                return Answer(self._spawn(descriptors[0], descriptors[1], message))
            except OSError as error:
                return Answer(0, f"fork: {error}")
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
        return Answer(self._kill(message.pid)) if message.pid in self._children else Answer(0)

    def _spawn(self, channel: int, progress: int, message: Spawn) -> int:
        zygote = os.getpid()
        pid = os.fork()
        if pid:
            self._children.add(pid)
            return pid
        status = 1
        try:
            page = mmap.mmap(progress, mmap.PAGESIZE, offset=message.slot * mmap.PAGESIZE)
            serve(
                socket.socket(fileno=channel),
                Confinement(message.memory_mb, zygote),
                self._runtime,
                memoryview(page).cast("Q"),
            )
            status = 0
        finally:
            os._exit(status)  # whatever happened: a child must never go on as a second zygote

    def _kill(self, pid: int) -> int:
        """Kill and reap one worker.

        Returns its wait status, which is that of its own end when it had ended before.
        """
        os.kill(pid, signal.SIGKILL)
        self._children.discard(pid)
        return os.waitpid(pid, 0)[1]
