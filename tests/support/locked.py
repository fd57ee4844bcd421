"""Runs a function in a forked child, behind the lock-down of a worker or, as a control, without it."""

from __future__ import annotations

import gc
import os
import socket
import warnings
from collections.abc import Callable

from synthgym.sandbox.isolation import Confinement, lock_down

MEMORY_MB = 64


def fork() -> int:
    """`os.fork`, of a process that may have threads: the child uses nothing that they could hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on
        return os.fork()


def run_locked(action: Callable[[], str], memory_mb: int = MEMORY_MB) -> str:
    """What `action` returns, or `died: <signal number>`, or the type and text of its exception."""

    def locked(channel: socket.socket) -> str:
        lock_down(channel.fileno(), Confinement(memory_mb, os.getppid()))
        return action()

    return run_child(locked)


def run_free(action: Callable[[], str]) -> str:
    """The same without the lock-down."""
    return run_child(lambda _channel: action())


def run_child(action: Callable[[socket.socket], str]) -> str:
    """The same, with the channel for an action that locks itself down."""
    ours, theirs = socket.socketpair()
    gc.collect()  # a finalizer that runs in the child may call what is forbidden there
    pid = fork()
    if not pid:
        outcome = "nothing"
        try:
            ours.close()
            outcome = action(theirs)
        except BaseException as error:  # noqa: BLE001 - whatever it is, is the result
            outcome = f"{type(error).__name__}: {error}"
        finally:
            theirs.sendall(outcome.encode("utf-8", "replace"))
            os._exit(0)  # never back into pytest
    theirs.close()
    received = bytearray()
    with ours:
        while data := ours.recv(1 << 16):
            received += data
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return f"died: {os.WTERMSIG(status)}"
    return received.decode()
