"""What a suite's child process may do, put on from inside: limits, no network, no other processes, few files.

Run as a script by `children`, in any interpreter: it uses the standard library alone. It confines itself and then
becomes another program, which inherits all of it. It stands beside the sandbox of synthgym, which lets nothing but its
own language run: here any Python runs, with every module of the interpreter, so what is refused is told to the kernel
and the rest is allowed. It is the weaker of the two. Linux on x86-64 and ARM64.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

UNCONFINED: Final = 97
"""Exit status of a child that could not be confined as it was asked to be; why stands in its stderr."""


class _Calls(NamedTuple):
    """Numbers of system calls on one machine."""

    audit: int
    """How the kernel names the machine."""
    clone: int
    clone3: int
    prlimit64: int
    refused: tuple[int, ...]


# Refused, in this order: socket; fork, vfork; kill, tkill, tgkill and signals with data; ptrace, memory of others;
# io_uring; namespaces, mounts, bpf, keys; modes, owners, times and attributes of files, which Landlock leaves open.
_CALLS: Final[Mapping[str, _Calls]] = {
    "x86_64": _Calls(
        0xC000003E, 56, 435, 302,
        (41, 57, 58, 62, 200, 234, 129, 297, 424, 101, 310, 311, 425, 272, 308, 165, 321, 248, 249, 250,
         90, 91, 268, 452, 92, 93, 94, 260, 132, 235, 261, 280, 188, 189, 190, 197, 198, 199),
    ),
    "aarch64": _Calls(
        0xC00000B7, 220, 435, 261,
        (198, 129, 130, 131, 138, 240, 424, 117, 270, 271, 425, 97, 268, 40, 280, 217, 218, 219,
         52, 53, 452, 54, 55, 88, 5, 6, 7, 14, 15, 16),
    ),
}  # fmt: skip
_CLONE_THREAD: Final = 0x10000
_X32: Final = 0x40000000
"""Calls of the other convention of x86-64 have this bit."""
_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_REFUSE: Final = 0x00050000
"""With the error number in the low bits."""
_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06
_NUMBER, _MACHINE, _ARGUMENT = 0, 4, 16
"""Offsets in `struct seccomp_data`; the first argument's low word, as both machines are little-endian."""

_PDEATHSIG, _NO_NEW_PRIVS, _SECCOMP, _FILTER = 1, 38, 22, 2
_CAPABILITY_VERSION: Final = 0x20080522
_RULESET, _RULE, _RESTRICT = 444, 445, 446
_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = (1 << 0) | (1 << 2)
"""And run it (linux/landlock.h)."""
_READS: Final = _READ_FILE | (1 << 3)
_WRITES: Final = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""To write a file, to remove and to make anything in a folder; ABI 1."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_INTERPRETER: Final = (
    *(
        "/usr",
        "/lib",
        "/lib32",
        "/lib64",
        "/bin",
        "/nix/store",
        "/etc/ld.so.cache",
        "/etc/localtime",
    ),
    *(
        "/dev/zero",
        "/dev/random",
        "/dev/urandom",
        "/sys/devices/system/cpu",
        "/proc/cpuinfo",
        "/proc/meminfo",
    ),
)
"""What Python and the libraries that come with it read, beside their own folders. Not the files of other processes in
/proc: the environment of the parent is there, with its keys."""

_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def main(arguments: Sequence[str]) -> None:
    """`confinement.py LIMITS PROGRAM [ARGUMENT ...]`: confine this process as LIMITS (JSON) says, become PROGRAM.

    Limits: `memory_mb` of address space, `cpu_seconds`, `file_mb` for each file written, `folder` in which alone files
    may be written, `reads`: whether files elsewhere than there and where the interpreter lies may be read, `parent`
    whose end is this process's end, `required`: whether a layer that is not to be had ends it.
    """
    limits = json.loads(arguments[0])
    _die_with(int(limits["parent"]))
    for which, value in (
        (resource.RLIMIT_AS, int(limits["memory_mb"]) << 20),
        (resource.RLIMIT_CPU, int(limits["cpu_seconds"])),
        (resource.RLIMIT_FSIZE, int(limits["file_mb"]) << 20),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        _limit(which, value)
    layers: tuple[tuple[str, Callable[[], None]], ...] = (
        ("no new privileges", lambda: _prctl(_NO_NEW_PRIVS, 1)),
        ("no capabilities", _drop_capabilities),
        ("files (Landlock)", lambda: _close_files(limits["folder"], limits["reads"])),
        ("network and processes (seccomp)", _refuse_calls),
    )
    for name, put_on in layers:
        try:
            put_on()
        except OSError as error:
            if limits["required"]:
                sys.stderr.write(f"{name}: {error}")
                sys.exit(UNCONFINED)
    os.execv(arguments[1], list(arguments[1:]))


def _limit(which: int, value: int) -> None:
    """Lower a limit; one that is lower already stays."""
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def _die_with(parent: int) -> None:
    _prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before this was set
        sys.exit(UNCONFINED)


def seccomp_program(machine: str) -> bytes:
    """The filter for a machine: a list of what is refused. `OSError` for a machine without one."""
    if machine not in _CALLS:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine!r}")
    calls = _CALLS[machine]
    deny = _line(_RETURN, 0, 0, _REFUSE | errno.EPERM)
    allow = _line(_RETURN, 0, 0, _ALLOW)
    lines = [
        _line(_LOAD, 0, 0, _MACHINE),
        _line(_EQUAL, 1, 0, calls.audit),
        _line(_RETURN, 0, 0, _KILL),
        _line(_LOAD, 0, 0, _NUMBER),
        _line(_AT_LEAST, 0, 1, _X32),
        deny,
        # ENOSYS: the C library then starts threads with clone, whose flags can be read
        _line(_EQUAL, 0, 1, calls.clone3),
        _line(_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        # threads, but no processes
        _line(_EQUAL, 0, 4, calls.clone),
        _line(_LOAD, 0, 0, _ARGUMENT),
        _line(_ANY_BIT, 0, 1, _CLONE_THREAD),
        allow,
        deny,
        # limits of this process, not of others
        _line(_EQUAL, 0, 4, calls.prlimit64),
        _line(_LOAD, 0, 0, _ARGUMENT),
        _line(_EQUAL, 0, 1, 0),
        allow,
        deny,
    ]
    for number in calls.refused:
        lines += [_line(_EQUAL, 0, 1, number), deny]
    return b"".join([*lines, allow])


def _refuse_calls() -> None:
    code = seccomp_program(platform.machine())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    held = ctypes.create_string_buffer(program, len(program))
    _prctl(_SECCOMP, _FILTER, ctypes.addressof(held))


def _drop_capabilities() -> None:
    """What root may do beyond others. Without new privileges the next program does not get it back."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if _LIBC.capset(header, (ctypes.c_uint32 * 6)()):
        raise _last_error()


def _close_files(folder: str, reads: bool) -> None:
    """Writing stays allowed in one folder and to /dev/null; reading everywhere, or where the interpreter lies."""
    abi = _syscall(_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    rights = _WRITES | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    rights |= 0 if reads else _READS
    granted = {folder: rights, os.devnull: rights}
    if not reads:
        own = (sys.prefix, sys.base_prefix, str(Path(__file__).parent))
        granted |= dict.fromkeys((*_INTERPRETER, *own), _READS)
    handled = ctypes.c_uint64(rights)
    ruleset = _syscall(_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    try:
        for path, allowed in granted.items():
            if Path(path).exists():
                _grant(ruleset, path, allowed)
        _syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _grant(ruleset: int, path: str, rights: int) -> None:
    if not Path(path).is_dir():
        rights &= _READ_FILE | _WRITE_FILE | _TRUNCATE
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor), 12)
        arguments = (ctypes.c_int(ruleset), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0))
        _syscall(_RULE, *arguments)
    finally:
        os.close(descriptor)


def _line(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, operand)


def _prctl(option: int, *arguments: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    if _LIBC.prctl(ctypes.c_int(option), *padded):
        raise _last_error()


def _syscall(number: int, *arguments: Any) -> int:
    result: int = _LIBC.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise _last_error()
    return result


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


if __name__ == "__main__":
    main(sys.argv[1:])
