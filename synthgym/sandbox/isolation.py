"""The lock-down of a worker, layer by layer: each is tried, none is assumed, all are reported.

No layer needs root. What a machine lacks is off and says why; `IsolationReport.level` sums it up.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from synthgym.sandbox import kernel

Level = Literal["full", "partial", "reduced", "none"]
LINUX: Final = sys.platform == "linux"

CPU_SECONDS: Final = 6 * 3600
"""Backstop for an orphan. It counts the whole life of a worker; deadlines are the parent's
business."""
_UID_BASE: Final = 2_000_000_000
"""Above every range that systemd hands out, so that no account has these numbers."""
_UIDS: Final = 65_536
_NOBODY: Final = 65_534
_MAX_DESCRIPTORS: Final = 65_536


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of protection, as tried in a worker."""

    name: str
    ok: bool
    detail: str = ""
    """What was reached, or why it is off."""


@dataclass(frozen=True, slots=True)
class IsolationReport:
    """What protects a worker on this machine, beside the language policy and the process itself."""

    level: Level
    """`full`: seccomp, or Landlock with signals (ABI 6) as a user without processes and
    descriptors; `partial`: some layer of the kernel; `reduced`: resource limits only; `none`."""
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class Confinement:
    """What `lock_down` needs to know."""

    memory_mb: int
    """Address space beyond what the process has already."""
    parent: int
    """Pid of the process that must outlive this one."""


def report(layers: Iterable[Layer]) -> IsolationReport:
    """Return the layers with the level that they come to."""
    known = tuple(layers)
    on = {layer.name for layer in known if layer.ok}
    abi = next((layer.detail for layer in known if layer.name == "landlock" and layer.ok), "ABI 0")
    bounded = {"memory", "descriptors"} <= on
    without_seccomp = int(abi.removeprefix("ABI ")) >= 6 and {"processes", "not-root"} <= on
    level: Level
    if bounded and "no-new-privileges" in on and ("seccomp" in on or without_seccomp):
        level = "full"
    elif on & {"seccomp", "landlock"}:
        level = "partial"
    elif bounded or "descriptors" in on:
        level = "reduced"
    else:
        level = "none"
    return IsolationReport(level, known)


def lock_down(channel: int, confinement: Confinement) -> tuple[Layer, ...]:
    """Take from this process all it does not need, for good; return what was tried.

    Of its descriptors only `channel` stays.

    The order matters: a change of user clears the parent-death signal, Landlock needs a descriptor,
    and seccomp forbids the calls that the other layers are made of.
    """
    steps: list[tuple[str, Callable[[], str | None]]] = [
        ("own-descriptors", lambda: _close_all_but(channel)),
        ("core-files", lambda: _limit(resource.RLIMIT_CORE, 0)),
        ("file-size", lambda: _limit(resource.RLIMIT_FSIZE, 0)),
        ("cpu-time", lambda: _limit(resource.RLIMIT_CPU, CPU_SECONDS)),
        ("not-root", _drop_root),
        ("processes", lambda: _limit(resource.RLIMIT_NPROC, 0)),
    ]
    if LINUX:
        # While /proc can still be read.
        steps.insert(0, ("memory", lambda: _limit_memory(confinement.memory_mb)))
        steps += [
            ("dies-with-parent", lambda: _die_with(confinement.parent)),
            ("hidden", kernel.hide_from_debuggers),
            ("no-new-privileges", kernel.forbid_new_privileges),
            ("landlock", kernel.forbid_files_and_network),
        ]
    steps.append(("descriptors", lambda: _limit(resource.RLIMIT_NOFILE, 0)))
    if LINUX:
        steps.append(("seccomp", kernel.forbid_syscalls))
    return tuple(_try(name, action) for name, action in steps)


def _try(name: str, action: Callable[[], str | None]) -> Layer:
    try:
        return Layer(name, True, action() or "")
    except (
        OSError,
        ValueError,
    ) as error:  # setrlimit raises ValueError for what the system refuses
        return Layer(name, False, f"{type(error).__name__}: {error}")


def _die_with(parent: int) -> None:
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel was told
        os._exit(1)


def _close_all_but(channel: int) -> None:
    """Points 0 to 2 at /dev/null, closes every other descriptor, and leaves the current folder."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    top = _MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, _MAX_DESCRIPTORS)
    os.closerange(3, channel)
    os.closerange(channel + 1, top)
    os.chdir("/")


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def _limit_memory(memory_mb: int) -> str:
    """Bound the address space to what is mapped now plus the quota.

    A bomb gets MemoryError, not the OOM killer.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + (memory_mb << 20))
    return f"{memory_mb} MB beyond the empty worker"


def _drop_root() -> str:
    """Becomes a user that owns nothing, one a worker, so that workers cannot signal each other."""
    if os.geteuid() != 0:
        return f"uid {os.geteuid()}"
    try:
        return _become(_UID_BASE + os.getpid() % _UIDS)
    except OSError:  # a user namespace may map only a few numbers
        return _become(_NOBODY)


def _become(uid: int) -> str:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    return f"uid {uid}"
