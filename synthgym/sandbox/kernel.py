"""The Linux layers of a worker's protection: prctl, seccomp and Landlock, by ctypes, without root.

Each function either puts its layer on for good or raises `OSError`. Nothing here decides anything:
`isolation` does.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_SECCOMP: Final = 22
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_MODE_FILTER: Final = 2

# Classic BPF: code of an instruction, and what the filter may answer (linux/seccomp.h).
_LOAD_WORD: Final = 0x20
_JUMP_EQUAL: Final = 0x15
_JUMP_AT_LEAST: Final = 0x35
_JUMP_BITS: Final = 0x45
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_DENY: Final = 0x00050000 | errno.EPERM
# Offsets in struct seccomp_data.
_AT_NUMBER: Final = 0
_AT_ARCH: Final = 4
_AT_PROT: Final = 32
"""Low word of the third argument: the protection bits of mmap and mprotect."""
_PROT_EXEC: Final = 4
_X32_BIT: Final = 0x40000000

_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_ALLOWED: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "munmap": 11, "brk": 12,
        "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "readv": 19, "writev": 20,
        "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35, "getpid": 39, "sendto": 44,
        "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "exit": 60, "gettimeofday": 96, "getrusage": 98,
        "sigaltstack": 131, "gettid": 186, "futex": 202, "restart_syscall": 219, "clock_gettime": 228,
        "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "ppoll": 271,
        "set_robust_list": 273, "getrandom": 318, "membarrier": 324, "rseq": 334,
    },
    "aarch64": {
        "close": 57, "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "ppoll": 73,
        "fstat": 80, "exit": 93, "exit_group": 94, "futex": 98, "set_robust_list": 99,
        "nanosleep": 101, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115,
        "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134,
        "rt_sigprocmask": 135, "rt_sigreturn": 139, "getrusage": 165, "gettimeofday": 169,
        "getpid": 172, "gettid": 178, "sendto": 206, "recvfrom": 207, "sendmsg": 211, "recvmsg": 212,
        "brk": 214, "munmap": 215, "mremap": 216, "madvise": 233, "getrandom": 278,
        "membarrier": 283, "rseq": 293,
    },
}  # fmt: skip
_WITHOUT_EXEC: Final = {
    "x86_64": {"mmap": 9, "mprotect": 10},
    "aarch64": {"mmap": 222, "mprotect": 226},
}
"""Allowed as long as they ask for no executable memory."""

_LANDLOCK_CREATE: Final = 444
_LANDLOCK_RESTRICT: Final = 446
_LANDLOCK_VERSION: Final = 1


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]  # ctypes' form


class _Ruleset(ctypes.Structure):
    _fields_ = [  # ctypes' form
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


def die_with_parent(signal: int) -> None:
    """Has the kernel send `signal` to this process when the thread that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal)


def hide_from_debuggers() -> None:
    """Close /proc/<pid>/{mem,maps,environ} and ptrace to other processes of the same user."""
    _prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """Make set-user-id programs powerless; seccomp and Landlock ask for it."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def forbid_syscalls() -> str:
    """Put the seccomp allow-list on; return how many calls it allows.

    Everything else fails with EPERM.
    """
    machine = platform.machine()
    if machine not in _ALLOWED:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine!r}")
    code = _seccomp_program(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _FilterProgram(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program))
    return f"{len(_ALLOWED[machine]) + len(_WITHOUT_EXEC[machine])} system calls"


def forbid_files_and_network() -> str:
    """Put on a Landlock ruleset that handles everything and grants nothing.

    Returns the ABI version.
    """
    abi = _syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_LANDLOCK_VERSION))
    files = (1 << 13) - 1
    for since, bit in ((2, 13), (3, 14), (5, 15)):  # refer, truncate, ioctl on devices
        files |= (1 << bit) if abi >= since else 0
    ruleset = _Ruleset(files, 0b11 if abi >= 4 else 0, 0b11 if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    descriptor = _syscall(
        _LANDLOCK_CREATE, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0)
    )
    try:
        _syscall(_LANDLOCK_RESTRICT, ctypes.c_int(descriptor), ctypes.c_uint32(0))
    finally:
        os.close(descriptor)
    return f"ABI {abi}"


def _seccomp_program(machine: str) -> bytes:
    """Return the allow-list as BPF.

    First the right architecture, then one comparison a call, then mmap without PROT_EXEC.
    """
    lines = [
        _line(_LOAD_WORD, 0, 0, _AT_ARCH),
        _line(_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        _line(_RETURN, 0, 0, _KILL_PROCESS),
        _line(_LOAD_WORD, 0, 0, _AT_NUMBER),
    ]
    if machine == "x86_64":  # the x32 numbers would go round the table
        lines += [_line(_JUMP_AT_LEAST, 0, 1, _X32_BIT), _line(_RETURN, 0, 0, _KILL_PROCESS)]
    for number in sorted(_ALLOWED[machine].values()):
        lines += [_line(_JUMP_EQUAL, 0, 1, number), _line(_RETURN, 0, 0, _ALLOW)]
    memory = _WITHOUT_EXEC[machine]
    lines += [
        _line(_JUMP_EQUAL, 1, 0, memory["mmap"]),
        _line(_JUMP_EQUAL, 0, 3, memory["mprotect"]),
        _line(_LOAD_WORD, 0, 0, _AT_PROT),
        _line(_JUMP_BITS, 1, 0, _PROT_EXEC),
        _line(_RETURN, 0, 0, _ALLOW),
        _line(_RETURN, 0, 0, _DENY),
    ]
    return b"".join(lines)


def _line(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(*arguments: int) -> None:
    padded = [*arguments, 0, 0, 0, 0][:5]
    if _libc().prctl(ctypes.c_int(padded[0]), *(ctypes.c_ulong(value) for value in padded[1:])):
        raise _last_error()


def _syscall(number: int, *arguments: object) -> int:
    result = int(_libc().syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise _last_error()
    return result


def _last_error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
