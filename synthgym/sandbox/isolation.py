"""The lock-down of a worker, layer by layer: each is tried, none is assumed, all are reported.

No layer needs root. What a machine lacks is off and says why; `IsolationReport.level` sums it up.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

from synthgym.sandbox import kernel

Level = Literal["full", "partial", "reduced", "none"]
LINUX: Final = sys.platform == "linux"

CPU_SECONDS: Final = 6 * 3600
"""Backstop for an orphan. It counts the whole life of a worker; deadlines are the parent's
business."""
_UID_BASE: Final = 2_000_000_000
"""Above every range that systemd hands out, so that no account has these numbers."""
_UIDS: Final = 1 << 22
"""As many as Linux has pids, so that two living workers never share one."""
_NOBODY: Final = 65_534
_MAX_DESCRIPTORS: Final = 65_536
_BOUNDARY: Final = frozenset(
    {"memory", "own-descriptors", "descriptors", "no-new-privileges", "seccomp"}
)
"""What `full` asks for. Landlock cannot stand in for seccomp: it leaves modes and times of files,
System V memory and queues, and the user's keys within reach."""


class Layer(msgspec.Struct, frozen=True):
    """One layer of protection, as tried in a worker."""

    name: str
    ok: bool
    detail: str = ""
    """What was reached, or why it is off."""


class IsolationReport(msgspec.Struct, frozen=True):
    """What protects a worker on this machine, beside the language policy and the process itself."""

    level: Level
    """`full`: seccomp, and memory and descriptors are bounded; `partial`: some layer of the kernel;
    `reduced`: resource limits only; `none`."""
    layers: tuple[Layer, ...]


class Confinement(msgspec.Struct, frozen=True):
    """What `lock_down` needs to know."""

    memory_mb: int
    """Address space beyond what the process has already."""
    parent: int
    """Pid of the process that must outlive this one."""


def report(layers: Iterable[Layer]) -> IsolationReport:
    """Return the layers with the level that they come to."""
    known = tuple(layers)
    on = {layer.name for layer in known if layer.ok}
    level: Level
    if on >= _BOUNDARY:
        level = "full"
    elif on & {"seccomp", "landlock"}:
        level = "partial"
    elif "descriptors" in on:
        level = "reduced"
    else:
        level = "none"
    return IsolationReport(level, known)


def lock_down(channel: int, confinement: Confinement) -> tuple[Layer, ...]:
    """Take from this process all it does not need, for good; return what was tried.

    Of its descriptors only `channel`, which must not be one of the standard three, stays. Memory
    that is mapped stays as it is, files included. Afterwards the process can use its channel without
    a timeout, compute, allocate, read clocks, sleep and end with `os._exit`: nothing else, not even
    close a descriptor.

    The order matters: a change of user clears the parent-death signal, Landlock needs a descriptor,
    and seccomp forbids the calls that the other layers are made of. Call it in a process with one
    thread: some of the layers hold for the calling thread.
    """
    steps: list[tuple[str, Callable[[], str | None]]] = [
        # While /proc can still be read.
        ("private-memory", _linux(lambda: _limit_private_memory(confinement.memory_mb))),
        ("memory", _linux(lambda: _limit_memory(confinement.memory_mb))),
        ("own-descriptors", lambda: _close_all_but(channel)),
        ("core-files", lambda: _limit(resource.RLIMIT_CORE, 0)),
        ("file-size", lambda: _limit(resource.RLIMIT_FSIZE, 0)),
        ("cpu-time", lambda: _limit(resource.RLIMIT_CPU, CPU_SECONDS)),
        ("not-root", _drop_root),
        ("capabilities", _linux(kernel.drop_capabilities)),
        ("processes", _limit_processes),
        ("dies-with-parent", _linux(lambda: _die_with(confinement.parent))),
        ("hidden", _linux(kernel.hide_from_debuggers)),
        ("no-new-privileges", _linux(kernel.forbid_new_privileges)),
        ("landlock", _linux(kernel.forbid_files_and_network)),
        ("descriptors", lambda: _limit(resource.RLIMIT_NOFILE, 0)),
        ("seccomp", _linux(kernel.forbid_syscalls)),
    ]
    return tuple(_try(name, action) for name, action in steps)


def _linux(action: Callable[[], str | None]) -> Callable[[], str | None]:
    """Return `action`, or on other systems what says that they do not have it."""
    return action if LINUX else _not_here


def _not_here() -> None:
    raise OSError(errno.ENOTSUP, f"only Linux has it, this is {sys.platform}")


def _try(name: str, action: Callable[[], str | None]) -> Layer:
    try:
        return Layer(name, True, action() or "")
    except (
        OSError,
        ValueError,
        AttributeError,  # a function that this libc does not have
    ) as error:  # setrlimit raises ValueError for what the system refuses
        return Layer(name, False, f"{type(error).__name__}: {error}")


def _die_with(parent: int) -> None:
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel was told
        os._exit(1)


def _close_all_but(channel: int) -> None:
    """Closes every other descriptor, points 0 to 2 at /dev/null, and leaves the current folder."""
    if channel < 3:
        raise ValueError(f"descriptor {channel} cannot be the channel")
    for descriptor in _open_descriptors():
        if descriptor > 2 and descriptor != channel:
            _close(descriptor)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    if null > 2:
        os.close(null)
    os.chdir("/")
    for descriptor in _open_descriptors():
        if descriptor > 2 and descriptor != channel and _is_open(descriptor):
            raise OSError(errno.EBUSY, f"descriptor {descriptor} stays open")


def _open_descriptors() -> list[int]:
    """Return the descriptors that are open, and perhaps some that are not."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return [int(name) for name in os.listdir(folder)]  # noqa: PTH208 - half the time
        except OSError:
            continue
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = soft == resource.RLIM_INFINITY
    return list(range(_MAX_DESCRIPTORS if endless else min(soft, _MAX_DESCRIPTORS)))


def _close(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # it was that of the listing
        os.close(descriptor)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))
    if resource.getrlimit(which) != (value, value):
        raise OSError(errno.ENOTSUP, "the limit was accepted, and is not there")


def _limit_private_memory(memory_mb: int) -> str:
    """Bound what is private and writable: a second fence, where address space is not counted."""
    quota = memory_mb << 20
    _limit(resource.RLIMIT_DATA, _mapped_now(5) + quota)
    _check_enforced(quota, mmap.PROT_READ | mmap.PROT_WRITE)
    return f"{memory_mb} MB beyond the empty worker"


def _limit_memory(memory_mb: int) -> str:
    """Bound the address space to what is mapped now plus the quota.

    A bomb gets MemoryError, not the OOM killer.
    """
    quota = memory_mb << 20
    _limit(resource.RLIMIT_AS, _mapped_now(0) + quota)
    _check_enforced(quota, mmap.PROT_READ)  # not writable: the other fence does not count it
    return f"{memory_mb} MB beyond the empty worker"


def _mapped_now(field: int) -> int:
    """Return bytes of address space (field 0 of statm) or of data and stack (field 5)."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - see the zygote on what it loads
        return int(statm.read().split()[field]) * mmap.PAGESIZE


def _check_enforced(quota: int, protection: int) -> None:
    """`OSError` when more than the quota can be mapped: some systems take a limit and ignore it."""
    too_much = quota + (1 << 20)
    try:
        mmap.mmap(-1, too_much, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, protection).close()
    except OSError:
        return
    raise OSError(errno.ENOTSUP, "the limit was accepted, and is not enforced")


def _limit_processes() -> None:
    _limit(resource.RLIMIT_NPROC, 0)
    if os.geteuid() == 0:
        raise OSError(errno.ENOTSUP, "the limit does not bind root")


def _drop_root() -> str:
    """Becomes a user that owns nothing, one a worker, so that workers cannot signal each other."""
    if os.getuid() != 0 and os.geteuid() != 0:
        return f"uid {os.geteuid()}"
    try:
        return _become(_UID_BASE + os.getpid() % _UIDS)
    except OSError:  # a user namespace may map only a few numbers
        return _become(_NOBODY)


def _become(uid: int) -> str:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    try:
        os.setuid(0)
    except OSError:
        return f"uid {uid}"
    raise OSError(errno.ENOTSUP, "the change of user can be taken back")
