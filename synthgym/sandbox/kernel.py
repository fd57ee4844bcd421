"""The Linux layers of a worker's protection: prctl, seccomp and Landlock, by ctypes, without root.

Each function either puts its layer on for good, and has seen that it holds, or raises `OSError`.
Nothing here decides anything: `isolation` does.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
"""Loaded before workers are forked: it costs more than all that is done with it."""

_PR_SET_PDEATHSIG: Final = 1
_PR_GET_DUMPABLE: Final = 3
_PR_SET_DUMPABLE: Final = 4
_PR_GET_SECCOMP: Final = 21
_PR_SET_SECCOMP: Final = 22
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_GET_NO_NEW_PRIVS: Final = 39
_SECCOMP_MODE_FILTER: Final = 2
_CAPABILITY_VERSION: Final = 0x20080522

# Classic BPF: code of an instruction, and what the filter may answer (linux/seccomp.h).
_LOAD_WORD: Final = 0x20
_AND: Final = 0x54
_JUMP_EQUAL: Final = 0x15
_JUMP_AT_LEAST: Final = 0x35
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_DENY: Final = 0x00050000 | errno.EPERM
# Offsets in struct seccomp_data.
_AT_NUMBER: Final = 0
_AT_ARCH: Final = 4
_AT_ARGUMENTS: Final = 16
_X32_BIT: Final = 0x40000000

AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS: Final[Mapping[str, Mapping[str, int]]] = {
    "x86_64": {
        "read": 0, "write": 1, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "mremap": 25,
        "sendto": 44, "recvfrom": 45, "futex": 202, "restart_syscall": 219, "clock_gettime": 228,
        "clock_nanosleep": 230, "exit_group": 231, "getrandom": 318,
    },
    "aarch64": {
        "read": 63, "write": 64, "exit_group": 94, "futex": 98, "clock_gettime": 113,
        "clock_nanosleep": 115, "restart_syscall": 128, "sendto": 206, "recvfrom": 207, "brk": 214,
        "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226, "getrandom": 278,
    },
}  # fmt: skip
"""What a locked worker may still ask of the kernel: to use the descriptors that it has, to get and
give back memory, to wait, to read clocks, to end. CPython needs no more (tests/sandbox/test_kernel.py
runs it); glibc and CPython have other ways where one fails (`madvise`, `sigaltstack`, `getpid`)."""


class Condition(NamedTuple):
    """A call is allowed only when the low word of an argument, masked, has one of these values."""

    argument: int
    mask: int
    values: tuple[int, ...] = (0,)


class AtLeast(NamedTuple):
    """A call is allowed only when the low word of an argument is not below this."""

    argument: int
    value: int


_WORD: Final = 0xFFFFFFFF
_PROT_EXEC: Final = 0x4
_MAP_PRIVATE_ANONYMOUS: Final = 0x22
_MAP_NORESERVE: Final = 0x4000
_MREMAP_MAYMOVE: Final = 0x1
_MSG_DONTWAIT: Final = 0x40
_MSG_WAITALL: Final = 0x100
_MSG_NOSIGNAL: Final = 0x4000
_FUTEX_WAITS_AND_WAKES: Final = (0, 1, 9, 10)
_FUTEX_FLAGS: Final = 128 | 256
_ORDINARY_CLOCKS: Final = _WORD & ~0xF
_NO_EXECUTABLE: Final = Condition(2, _PROT_EXEC)

CONDITIONS: Final[Mapping[str, tuple[Condition | AtLeast, ...]]] = {
    # Private memory of no file; not at a given address, not locked, not of huge pages.
    "mmap": (_NO_EXECUTABLE, Condition(3, _WORD & ~_MAP_NORESERVE, (_MAP_PRIVATE_ANONYMOUS,))),
    "mprotect": (_NO_EXECUTABLE,),
    # Large blocks of the allocator. A page that is shared with the parent cannot grow over what lies
    # behind it in its file.
    "mremap": (AtLeast(1, 128 << 10), Condition(3, _WORD & ~_MREMAP_MAYMOVE)),
    # Neither out-of-band bytes nor a look ahead: rare paths of the kernel that were exploited before.
    "sendto": (Condition(3, _WORD & ~(_MSG_DONTWAIT | _MSG_NOSIGNAL)),),
    "recvfrom": (Condition(3, _WORD & ~(_MSG_DONTWAIT | _MSG_WAITALL)),),
    # What locks are made of; none of the requeueing and priority-inheriting operations.
    "futex": (Condition(1, _WORD & ~_FUTEX_FLAGS, _FUTEX_WAITS_AND_WAKES),),
    # Clocks with other numbers are those of other processes, or of devices.
    "clock_gettime": (Condition(0, _ORDINARY_CLOCKS),),
    "clock_nanosleep": (Condition(0, _ORDINARY_CLOCKS),),
}
"""The flags have the same values on both machines."""

_LANDLOCK_CREATE: Final = 444
_LANDLOCK_RESTRICT: Final = 446
_LANDLOCK_VERSION: Final = 1


class LandlockRights(NamedTuple):
    """What a ruleset handles, as bits of linux/landlock.h, and the size of the structure."""

    files: int
    network: int
    scoped: int
    size: int


_CapabilityHeader: Final = ctypes.c_uint32 * 2
_Capabilities: Final = ctypes.c_uint32 * 6
"""Effective, permitted, inheritable: the low words, then the high ones."""


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
    if _prctl(_PR_GET_DUMPABLE) != 0:
        raise OSError(errno.ENOTSUP, "accepted, and without effect")


def forbid_new_privileges() -> None:
    """Make set-user-id programs powerless; seccomp and Landlock ask for it."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if _prctl(_PR_GET_NO_NEW_PRIVS) != 1:
        raise OSError(errno.ENOTSUP, "accepted, and without effect")


def drop_capabilities() -> None:
    """Give up every capability. A change of user does it as well, where one was possible."""
    header = _CapabilityHeader(_CAPABILITY_VERSION, 0)  # 0 is the calling thread
    none = _Capabilities()
    if _LIBC.capset(header, none) or _LIBC.capget(header, none):
        raise _last_error()
    if any(none):
        raise OSError(errno.ENOTSUP, "accepted, and without effect")


def forbid_syscalls() -> str:
    """Put the seccomp allow-list on; return how many calls it allows.

    Everything else fails with EPERM. It holds for the calling thread and what it starts: a worker
    has one thread.
    """
    machine = platform.machine()
    if machine not in CALLS:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine!r}")
    code = seccomp_program(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _FilterProgram(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program))
    try:
        _prctl(_PR_GET_SECCOMP)
    except OSError as error:
        if error.errno == errno.EPERM:  # asking is one of the calls that are forbidden now
            return f"{len(CALLS[machine])} system calls"
    raise OSError(errno.ENOTSUP, "the filter was accepted, and without effect")


def forbid_files_and_network() -> str:
    """Put on a Landlock ruleset that handles everything and grants nothing.

    Returns the ABI version. No descriptor stays open.
    """
    abi = _syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_LANDLOCK_VERSION))
    files, network, scoped, size = landlock_rights(abi)
    ruleset = _Ruleset(files, network, scoped)
    descriptor = _syscall(
        _LANDLOCK_CREATE, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0)
    )
    try:
        _syscall(_LANDLOCK_RESTRICT, ctypes.c_int(descriptor), ctypes.c_uint32(0))
    finally:
        os.close(descriptor)
    try:
        os.close(os.open("/", os.O_RDONLY))
    except OSError as error:
        if error.errno == errno.EACCES:
            return f"ABI {abi}"
    raise OSError(errno.ENOTSUP, "the ruleset was accepted, and without effect")


def landlock_rights(abi: int) -> LandlockRights:
    """Return what a kernel with this ABI can be told to refuse.

    Later versions than 7 know all of it; what they add is not used.
    """
    files = (1 << 13) - 1  # execute to make_sym
    for since, bit in ((2, 13), (3, 14), (5, 15)):  # refer, truncate, ioctl on devices
        files |= (1 << bit) if abi >= since else 0
    return LandlockRights(
        files,
        network=0b11 if abi >= 4 else 0,  # bind and connect TCP
        scoped=0b11 if abi >= 6 else 0,  # abstract sockets and signals of others
        size=8 if abi < 4 else 16 if abi < 6 else 24,
    )


def seccomp_program(machine: str) -> bytes:
    """Return the allow-list as BPF.

    First the right architecture, then one block a call, in the order of the table.
    """
    lines = [
        _line(_LOAD_WORD, 0, 0, _AT_ARCH),
        _line(_JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        _line(_RETURN, 0, 0, _KILL_PROCESS),
        _line(_LOAD_WORD, 0, 0, _AT_NUMBER),
    ]
    if machine == "x86_64":  # the x32 numbers would go round the table
        lines += [_line(_JUMP_AT_LEAST, 0, 1, _X32_BIT), _line(_RETURN, 0, 0, _KILL_PROCESS)]
    for name, number in CALLS[machine].items():
        block = [line for item in CONDITIONS.get(name, ()) for line in _condition(item)]
        block.append(_line(_RETURN, 0, 0, _ALLOW))
        lines += [_line(_JUMP_EQUAL, 0, len(block), number), *block]
    return b"".join([*lines, _line(_RETURN, 0, 0, _DENY)])


def _condition(condition: Condition | AtLeast) -> list[bytes]:
    """Return lines that deny the call unless the condition holds, and else go on behind them."""
    # Little-endian machines both: the low word comes first. The high words of flags mean nothing.
    load = _line(_LOAD_WORD, 0, 0, _AT_ARGUMENTS + 8 * condition.argument)
    deny = _line(_RETURN, 0, 0, _DENY)
    if isinstance(condition, AtLeast):
        return [load, _line(_JUMP_AT_LEAST, 1, 0, condition.value), deny]
    tests = [
        _line(_JUMP_EQUAL, len(condition.values) - index, 0, value)
        for index, value in enumerate(condition.values)
    ]
    return [load, _line(_AND, 0, 0, condition.mask), *tests, deny]


def _line(code: int, if_true: int, if_false: int, operand: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _prctl(*arguments: int) -> int:
    padded = [*arguments, 0, 0, 0, 0][:5]
    result = _LIBC.prctl(ctypes.c_int(padded[0]), *(ctypes.c_ulong(value) for value in padded[1:]))
    if result < 0:
        raise _last_error()
    return int(result)


def _syscall(number: int, *arguments: object) -> int:
    result = int(_LIBC.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        raise _last_error()
    return result


def _last_error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
