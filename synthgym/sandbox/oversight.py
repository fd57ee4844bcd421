"""What the parent asks about its workers from outside: the level reached, and the memory they hold.

Nothing here runs in a worker.
"""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final, get_args

from synthgym.errors import ConfigError, SandboxError
from synthgym.ids import did_you_mean
from synthgym.sandbox.isolation import LINUX, IsolationReport, Level

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""From the best to the worst."""
_PS_SECONDS: Final = 5.0
_RECYCLE_AFTER: Final = 1_000_000
"""Rows after which a worker is replaced: what leaks in an interpreter does so slowly."""
_RECYCLE_MEMORY: Final = 0.75
"""Share of the memory quota that may be resident between two calls, in a worker that has had
`_WARM_ROWS` rows. In a younger one a replacement would soon hold as much."""
_WARM_ROWS: Final = 5_000
_CPU_CLOCK: Final = 2
"""CPUCLOCK_SCHED of the kernel: with the inverted pid it names the CPU clock of a process."""
_REMEDIES: Final = {
    "memory": "mount /proc in the container, and use a kernel that enforces RLIMIT_AS",
    "own-descriptors": "mount /proc and /dev in the container",
    "not-root": "do not run as root in a container that may not change its user",
    "capabilities": "do not run as root in a container that may not change its user",
    "processes": "do not run as root in a container that may not change its user",
    "no-new-privileges": "run on Linux 3.5 or later",
    "landlock": "run on Linux 5.13 or later with Landlock among its security modules, and with a "
    "container profile that allows the system calls 444 and 446",
    "seccomp": "use an x86-64 or aarch64 machine whose kernel has seccomp filters, and a container "
    "profile that allows prctl(PR_SET_SECCOMP)",
}
"""What to do about a layer that is off."""


def known_level(require: str | None) -> Level | None:
    """Return `require` when it is a level or None; `ConfigError` names the nearest level otherwise."""
    if require is None:
        return None
    for level in LEVELS:
        if level == require:
            return level
    near = did_you_mean(require, LEVELS) if isinstance(require, str) else ""
    raise ConfigError(f"unknown isolation level {require!r}, expected one of {LEVELS}{near}")


def check_level(report: IsolationReport, require: str | None) -> None:
    """`SandboxError` when `report` is below the level `require`; it says what is missing, and why.

    None asks for nothing. `ConfigError` when there is no such level.
    """
    wanted = known_level(require)
    if wanted is None or LEVELS.index(report.level) <= LEVELS.index(wanted):
        return
    missing = [layer for layer in report.layers if not layer.ok]
    lines = [f"isolation on this machine is {report.level!r}, and {wanted!r} is required"]
    lines += [f"  missing: {layer.name} ({layer.detail})" for layer in missing]
    if LINUX:
        remedies = dict.fromkeys(
            _REMEDIES[layer.name] for layer in missing if layer.name in _REMEDIES
        )
        lines += [f"  to do: {remedy}" for remedy in remedies]
    else:
        lines.append("  to do: run on Linux 5.13 or later; other systems have resource limits only")
    lines.append(
        f"  or accept less: require={report.level!r} (`synthgym isolation` shows the layers)"
    )
    raise SandboxError("\n".join(lines))


def shortcoming(report: IsolationReport) -> str:
    """Say what is missing from a level that is not `full`."""
    off = ", ".join(layer.name for layer in report.layers if not layer.ok)
    return (
        f"environments run at isolation level {report.level!r}, without: {off}; "
        "`synthgym isolation` says why, require='full' refuses to go on"
    )


def worn(pid: int, memory_mb: int, rows: int) -> bool:
    """Whether a worker is to be replaced between two calls: it has grown old, or too large."""
    if rows < _WARM_ROWS:
        return False
    resident = resident_bytes(pid)
    heavy = resident is not None and resident > _RECYCLE_MEMORY * (memory_mb << 20)
    return heavy or rows > _RECYCLE_AFTER


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory of a process in bytes, or None when it is gone or cannot be asked.

    What a worker shares with the zygote counts as well.
    """
    try:
        if LINUX:
            return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * mmap.PAGESIZE
        done = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(pid)],
            capture_output=True,
            check=True,
            timeout=_PS_SECONDS,
        )
        return int(done.stdout) * 1024 or None
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU time of a process, or None where it cannot be read."""
    if not LINUX:
        return None
    try:
        return time.clock_gettime((~pid << 3) | _CPU_CLOCK)
    except OSError:
        return None


def how_it_ended(status: int) -> str:
    """Say what the wait status of a worker means."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = {item.value: item.name for item in signal.Signals}
        return f"the worker was ended by {known.get(number, f'signal {number}')}"
    return f"the worker ended with status {os.waitstatus_to_exitcode(status)}"
