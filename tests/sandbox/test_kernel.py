"""The tables and programs of the kernel's layers: numbers and bits against the headers, the filter run on paper."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from syscalls import NUMBERS

from synthgym.sandbox import kernel

linux = pytest.mark.skipif(sys.platform != "linux", reason="layers of the Linux kernel")
MACHINES = ("x86_64", "aarch64")
HEADERS = {
    "x86_64": (
        "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
        "/usr/x86_64-linux-gnu/include/asm/unistd_64.h",
        "/usr/include/asm/unistd_64.h",
    ),
    "aarch64": (
        "/usr/aarch64-linux-gnu/include/asm/unistd_64.h",
        "/usr/include/aarch64-linux-gnu/asm/unistd_64.h",
        "/usr/aarch64-linux-gnu/include/asm-generic/unistd.h",
        "/usr/include/asm-generic/unistd.h",  # the table that aarch64 uses
    ),
}
DEFINED = re.compile(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", re.MULTILINE)
RENAMED = re.compile(r"^#define __NR_(\w+) __NR3264_(\w+)", re.MULTILINE)


def header_numbers(machine: str) -> Mapping[str, int]:
    """System calls of a machine by name, from the first header that is installed."""
    for name in HEADERS[machine]:
        if Path(name).is_file():
            text = Path(name).read_text()
            found = {call: int(number) for call, number in DEFINED.findall(text)}
            assert len(found) > 200, name
            aliases = {new: found[old] for new, old in RENAMED.findall(text) if old in found}
            return aliases | found
    pytest.skip(f"NO KERNEL HEADERS FOR {machine}: install linux-libc-dev to check the table")


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_of_system_calls_are_those_of_the_kernels_headers(machine: str) -> None:
    headers = header_numbers(machine)
    for name, number in ({**kernel.CALLS[machine], **NUMBERS[machine]}).items():
        assert headers[name] == number, name


def test_both_machines_allow_the_same_calls() -> None:
    assert set(kernel.CALLS["x86_64"]) == set(kernel.CALLS["aarch64"])
    assert set(kernel.CONDITIONS) <= set(kernel.CALLS["x86_64"])


# --- the filter, run on paper for both machines ---

ALLOW, DENY, KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000


def answer(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the program says to a call: classic BPF, as much of it as the program may use."""
    arch = kernel.AUDIT_ARCH[machine] if arch is None else arch
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, arch, 0, *padded)
    program = list(struct.iter_unpack("<HBBI", kernel.seccomp_program(machine)))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:
            accumulator &= operand
        elif code == 0x15:
            at += if_true if accumulator == operand else if_false
        elif code == 0x35:
            at += if_true if accumulator >= operand else if_false
        else:
            assert code == 0x06, code
            return int(operand)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_outside_the_table_is_denied(machine: str) -> None:
    unconditional = set(kernel.CALLS[machine]) - set(kernel.CONDITIONS)
    allowed = {number for number in range(2048) if answer(machine, number) == ALLOW}
    wanted = {kernel.CALLS[machine][name] for name in unconditional}
    # With arguments of zero most of the others take a form that is allowed.
    zeros = {
        kernel.CALLS[machine][name] for name in kernel.CONDITIONS if name not in ("mmap", "mremap")
    }
    assert allowed == wanted | zeros
    assert all(answer(machine, number) in (ALLOW, DENY) for number in range(2048))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 0, 0x4022), ALLOW),
        ("mmap", (0, 4096, 7, 0x22), DENY),  # executable
        ("mmap", (0, 4096, 4, 0x22), DENY),
        ("mmap", (0, 4096, 3, 0x21), DENY),  # shared
        ("mmap", (0, 4096, 3, 0x2, 3), DENY),  # of a file
        ("mmap", (4096, 4096, 3, 0x32), DENY),  # at a fixed address
        ("mmap", (0, 1 << 21, 3, 0x40022), DENY),  # huge pages
        ("mprotect", (4096, 4096, 3), ALLOW),
        ("mprotect", (4096, 4096, 5), DENY),
        ("mprotect", (4096, 4096, 0x100000004), DENY),
        ("mremap", (4096, 1 << 20, 1 << 21, 1), ALLOW),
        ("mremap", (4096, 128 << 10, 1 << 21, 1), ALLOW),
        ("mremap", (4096, 1 << 20, 1 << 21, 3, 8192), DENY),  # to a fixed address
        ("mremap", (4096, 4096, 8192, 1), DENY),  # a single page: it may be shared
        ("mremap", (4096, 0, 8192, 1), DENY),
        ("sendto", (3, 4096, 10, 0), ALLOW),
        ("sendto", (3, 4096, 10, 0x4000), ALLOW),
        ("sendto", (3, 4096, 10, 1), DENY),  # out of band
        ("recvfrom", (3, 4096, 10, 0x100), ALLOW),
        ("recvfrom", (3, 4096, 10, 1), DENY),
        ("recvfrom", (3, 4096, 10, 2), DENY),  # a look ahead
        ("futex", (4096, 128), ALLOW),
        ("futex", (4096, 129), ALLOW),
        ("futex", (4096, 128 | 256 | 9), ALLOW),
        ("futex", (4096, 128 | 10), ALLOW),
        ("futex", (4096, 3), DENY),  # requeue
        ("futex", (4096, 128 | 6), DENY),  # priority inheritance
        ("futex", (4096, 11), DENY),
        ("clock_gettime", (0,), ALLOW),
        ("clock_gettime", (7,), ALLOW),
        ("clock_gettime", (0xFFFFFFFE,), DENY),  # the clock of another process
        ("clock_nanosleep", (1, 0), ALLOW),
        ("clock_nanosleep", (0xFFFFFFFE, 0), DENY),
    ],
)
def test_dangerous_arguments_of_an_allowed_call_are_denied(
    machine: str, name: str, arguments: tuple[int, ...], verdict: int
) -> None:
    assert answer(machine, kernel.CALLS[machine][name], *arguments) == verdict


@pytest.mark.parametrize("machine", MACHINES)
def test_a_call_of_another_architecture_ends_the_process(machine: str) -> None:
    for arch in (0x40000003, 0x40000028, kernel.AUDIT_ARCH[MACHINES[machine == "x86_64"]]):
        assert answer(machine, kernel.CALLS[machine]["read"], arch=arch) == KILL


def test_the_x32_numbers_end_the_process() -> None:
    for number in (0x40000000, 0x40000000 | 1, 0xFFFFFFFF):
        assert answer("x86_64", number) == KILL


def test_a_machine_without_a_table_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(OSError, match="no table of system calls for 'riscv64'"):
        kernel.forbid_syscalls()


# --- a layer that is accepted and does nothing is not on ---


def test_a_filter_that_does_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(kernel, "_prctl", lambda *_arguments: 0)
    with pytest.raises(OSError, match="without effect"):
        kernel.forbid_syscalls()


def test_a_ruleset_that_does_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def accept(number: int, *arguments: object) -> int:
        if number == kernel._LANDLOCK_CREATE and arguments[0] is not None:
            opened.append(os.open("/dev/null", os.O_RDONLY))
            return opened[0]
        return 7

    monkeypatch.setattr(kernel, "_syscall", accept)
    with pytest.raises(OSError, match="without effect"):
        kernel.forbid_files_and_network()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_a_ruleset_that_cannot_be_put_on_is_an_error_and_leaves_no_descriptor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[int] = []

    def refuse(number: int, *arguments: object) -> int:
        if number == kernel._LANDLOCK_RESTRICT:
            raise OSError(errno.E2BIG, "too many rulesets")
        if arguments[0] is not None:
            opened.append(os.open("/dev/null", os.O_RDONLY))
            return opened[0]
        return 7

    monkeypatch.setattr(kernel, "_syscall", refuse)
    with pytest.raises(OSError, match="too many rulesets"):
        kernel.forbid_files_and_network()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


@pytest.mark.parametrize("switch", ["hide_from_debuggers", "forbid_new_privileges"])
def test_a_switch_that_does_nothing_is_an_error(
    switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays = {"hide_from_debuggers": 1, "forbid_new_privileges": 0}
    monkeypatch.setattr(kernel, "_prctl", lambda *_arguments: stays[switch])
    with pytest.raises(OSError, match="without effect"):
        getattr(kernel, switch)()


# --- Landlock ---

SINCE = {"REFER": 2, "TRUNCATE": 3, "IOCTL_DEV": 5}
BASIC = (1 << 13) - 1


@pytest.mark.parametrize(
    ("abi", "rights"),
    [
        (1, (BASIC, 0, 0, 8)),
        (2, (BASIC | 1 << 13, 0, 0, 8)),
        (3, (BASIC | 3 << 13, 0, 0, 8)),
        (4, (BASIC | 3 << 13, 3, 0, 16)),
        (5, (BASIC | 7 << 13, 3, 0, 16)),
        (6, (BASIC | 7 << 13, 3, 3, 24)),
        (7, (BASIC | 7 << 13, 3, 3, 24)),
        (99, (BASIC | 7 << 13, 3, 3, 24)),
    ],
)
def test_a_ruleset_handles_what_its_abi_knows(abi: int, rights: tuple[int, ...]) -> None:
    assert kernel.landlock_rights(abi) == rights


def test_the_bits_of_landlock_are_those_of_the_kernels_header() -> None:
    header = Path("/usr/include/linux/landlock.h")
    if not header.is_file():
        pytest.skip("NO KERNEL HEADERS: install linux-libc-dev to check the bits of Landlock")
    found = re.findall(
        r"define LANDLOCK_ACCESS_(FS|NET)_(\w+)\s+\(1ULL << (\d+)\)", header.read_text()
    )
    assert len(found) >= 14
    for kind, name, bit in found:
        for abi in range(1, 8):
            rights = kernel.landlock_rights(abi)
            if kind == "FS" and int(bit) < 16:  # what later ABIs add is not used
                assert bool(rights.files >> int(bit) & 1) == (abi >= SINCE.get(name, 1)), name
            if kind == "NET" and name.endswith("TCP"):
                assert bool(rights.network >> int(bit) & 1) == (abi >= 4), name


@linux
def test_this_kernel_takes_the_rights_of_every_abi_up_to_its_own_and_no_more() -> None:
    try:
        newest = kernel._syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError as error:
        pytest.skip(f"NO LANDLOCK ON THIS KERNEL: {error}")
    for abi in range(1, newest + 1):
        os.close(create(kernel.landlock_rights(abi)))
    beyond = kernel.landlock_rights(newest)._replace(files=1 << 40)
    with pytest.raises(OSError, match="Invalid argument"):
        create(beyond)
    if newest <= 7:  # every right that this kernel knows is handled
        for index, field in enumerate(("files", "network", "scoped")):
            value = kernel.landlock_rights(newest)[index]
            more = kernel.landlock_rights(newest)._replace(**{field: value | (value + 1)})
            with pytest.raises(OSError, match="Invalid argument"):
                create(more)


def create(rights: kernel.LandlockRights) -> int:
    """The descriptor of a ruleset that is not put on."""
    ruleset = kernel._Ruleset(rights.files, rights.network, rights.scoped)
    size = ctypes.c_size_t(rights.size)
    return kernel._syscall(444, ctypes.byref(ruleset), size, ctypes.c_uint32(0))
