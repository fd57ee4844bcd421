"""A locked process, from inside: what the kernel refuses it, what Python can still do, what stays mapped."""

from __future__ import annotations

import array
import ctypes
import datetime
import decimal
import errno
import gc
import json
import mmap
import os
import platform
import random
import re
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable

import pytest
from locked import MEMORY_MB, fork, run_free, run_locked
from syscalls import NUMBERS

from synthgym.sandbox import Pool
from synthgym.sandbox.isolation import Confinement, lock_down

MACHINE = platform.machine()

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="layers of the Linux kernel"),
    pytest.mark.skipif(MACHINE not in NUMBERS, reason="no table of system calls"),
]


@pytest.fixture(scope="module", autouse=True)
def _full() -> None:
    with Pool(max_workers=1) as pool:
        found = pool.isolation()
    if found.level != "full":
        pytest.skip(f"ISOLATION IS NOT FULL ON THIS MACHINE ({found.level}): not tested")


# --- raw system calls ---

BAD = -1
HUGE = 1 << 20
CALLS: dict[str, tuple[int, ...]] = {
    # processes and signals
    "clone": (0x800,), "clone3": (0, 0), "execve": (0, 0, 0), "execveat": (BAD, 0, 0, 0, 0),
    "kill": (os.getpid(), 0), "tkill": (BAD, 0), "tgkill": (BAD, BAD, 0), "pidfd_open": (BAD, 0),
    "pidfd_send_signal": (BAD, 0, 0, 0), "pidfd_getfd": (BAD, 0, 0), "rt_sigaction": (0, 0, 0, 8),
    "rt_sigprocmask": (9, 0, 0, 8), "sigaltstack": (0, 0), "getppid": (), "setpriority": (9, 0, 0),
    "sched_setaffinity": (0, 0, 0), "unshare": (0,), "setns": (BAD, 0), "personality": (0xFFFFFFFF,),
    # other processes' memory
    "ptrace": (2, BAD), "process_vm_readv": (BAD, 0, 0, 0, 0, 0), "kcmp": (BAD, BAD, 99, 0, 0),
    "process_vm_writev": (BAD, 0, 0, 0, 0, 0), "process_madvise": (BAD, 0, 0, 0, 0),
    # the lock-down itself
    "prctl": (16, 0), "seccomp": (99, 0, 0), "setrlimit": (4, 0), "prlimit64": (0, 4, 0, 0),
    "landlock_restrict_self": (BAD, 0), "capset": (0, 0), "setuid": (BAD,), "setgid": (BAD,),
    # descriptors
    "dup": (BAD,), "dup3": (BAD, BAD, 0), "pipe2": (0, 1 << 30), "fcntl": (BAD, 0), "ioctl": (BAD, 0),
    "close": (BAD,), "close_range": (1, 0, 0), "eventfd2": (0, BAD), "epoll_create1": (BAD,),
    "signalfd4": (BAD, 0, 0, 0), "timerfd_create": (BAD, 0), "inotify_init1": (BAD,), "lseek": (BAD,),
    "memfd_create": (0, 0), "userfaultfd": (0xFFFFFFFF,), "io_uring_setup": (0, 0), "fstat": (BAD, 0),
    "io_uring_enter": (BAD, 0, 0, 0, 0, 0), "io_uring_register": (BAD, 0, 0, 0), "bpf": (9999, 0, 0),
    "perf_event_open": (0, 0, BAD, BAD, 0), "fsopen": (0, 0), "sendfile": (BAD, BAD, 0, 0),
    "splice": (BAD, 0, BAD, 0, 1, 0), "ftruncate": (BAD, 0), "fallocate": (BAD, 0, 0, 1),
    # files by path
    "openat": (BAD, 0, 0), "openat2": (BAD, 0, 0, 0), "newfstatat": (BAD, 0, 0, 0), "mkdirat": (BAD, 0, 0),
    "statx": (BAD, 0, 0, 0, 0), "unlinkat": (BAD, 0, 0), "linkat": (BAD, 0, BAD, 0, 0), "chdir": (0,),
    "symlinkat": (0, BAD, 0), "renameat2": (BAD, 0, BAD, 0, 0), "fchmodat": (BAD, 0, 0),
    "fchownat": (BAD, 0, 0, 0, 0), "utimensat": (BAD, 0, 0, 0), "setxattr": (0, 0, 0, 0, 0),
    "mknodat": (BAD, 0, 0, 0), "faccessat": (BAD, 0, 0), "readlinkat": (BAD, 0, 0, 0), "statfs": (0, 0),
    # network
    "socket": (1, 1, 0), "socketpair": (1, 1, 0, 0), "connect": (BAD, 0, 0), "bind": (BAD, 0, 0),
    "listen": (BAD, 0), "accept4": (BAD, 0, 0, 0), "sendmsg": (BAD, 0, 0), "recvmsg": (BAD, 0, 0),
    "sendmmsg": (BAD, 0, 0, 0), "recvmmsg": (BAD, 0, 0, 0, 0), "setsockopt": (BAD, 0, 0, 0, 0),
    "shutdown": (BAD, 0), "getsockname": (BAD, 0, 0),
    # what outlives a process
    "shmget": (0, 0, 0), "msgget": (BAD, 0), "semget": (0, BAD, 0), "mq_open": (0, 0, 0, 0),
    "add_key": (0, 0, 0, 0, 0), "request_key": (0, 0, 0, 0), "keyctl": (9999, 0, 0, 0, 0),
    # memory
    "madvise": (0, 0, 0), "mlock": (0, 0), "mlockall": (0,), "remap_file_pages": (0, 0, 1, 0, 0),
    "pkey_mprotect": (0, 0, 0, 9999), "mincore": (1, 0, 0), "msync": (1, 0, 0),
    # by argument: (address, old size, new size, flags) and so on
    "mmap": (0, 4096, 5, 0x22, BAD, 0), "mprotect": (0, 0, 4), "mremap": (1, HUGE, HUGE, 3, 1),
    "sendto": (BAD, 0, 0, 1, 0, 0), "recvfrom": (BAD, 0, 0, 1, 0, 0), "futex": (1, 3, 0, 0, 0, 0),
    "clock_gettime": (0xFFFFFFFE, 0), "clock_nanosleep": (0xFFFFFFFE, 0, 0, 0),
}  # fmt: skip
"""Each fails, or does nothing, where it is allowed: for want of arguments, never with EPERM."""
RESERVED = (
    *(
        "bpf",
        "perf_event_open",
        "io_uring_setup",
        "userfaultfd",
        "keyctl",
        "add_key",
        "request_key",
    ),
    *("fsopen", "landlock_restrict_self"),
)
"""The only ones that a machine may refuse to everybody, or to all but root, with the same EPERM that a
filter gives."""


def call_raw() -> str:
    """Every call of the table, raw; the number of the error by name, 0 for none."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = {}
    for name, arguments in CALLS.items():
        if name in NUMBERS[MACHINE]:
            ctypes.set_errno(0)
            words = [ctypes.c_long(word) for word in (NUMBERS[MACHINE][name], *arguments)]
            failed = libc.syscall(*words) == -1
            found[name] = ctypes.get_errno() if failed else 0
    return json.dumps(found)


@pytest.fixture(scope="module")
def refused() -> dict[str, int]:
    answers: dict[str, int] = json.loads(run_locked(call_raw))
    return answers


@pytest.fixture(scope="module")
def free() -> dict[str, int]:
    answers: dict[str, int] = json.loads(run_free(call_raw))
    return answers


@pytest.mark.parametrize("name", CALLS)
def test_a_raw_system_call_is_refused_and_would_not_be_without_the_lock_down(
    name: str, refused: dict[str, int], free: dict[str, int]
) -> None:
    if name not in NUMBERS[MACHINE]:
        pytest.skip(f"{MACHINE} has no {name}")
    assert refused[name] == errno.EPERM
    if name in RESERVED and free[name] in (errno.EPERM, errno.EACCES):
        pytest.skip(f"{name} IS REFUSED ON THIS MACHINE ANYWAY: the filter's part is not seen")
    assert free[name] != errno.EPERM


# --- the process is ended ---


def call_x32() -> str:
    ctypes.CDLL(None).syscall(0x40000000 | 39)
    return "went on"


@pytest.mark.skipif(MACHINE != "x86_64", reason="x86-64 has a second table")
def test_a_call_by_a_number_of_x32_ends_the_process() -> None:
    assert run_free(call_x32) == "went on"
    assert run_locked(call_x32) == f"died: {int(signal.SIGSYS)}"


@pytest.mark.skipif(MACHINE != "x86_64", reason="x86-64 has a gate for 32-bit programs")
def test_a_call_through_the_gate_of_32_bit_programs_ends_the_process() -> None:
    """From a page of machine code that was made before: afterwards there is no way to make one."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("53 b8 14 00 00 00 cd 80 5b c3"))  # getpid of i386: int 0x80
    getpid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    if run_free(lambda: str(getpid() > 0)) != "True":
        pytest.skip("THIS KERNEL RUNS NO 32-BIT CALLS: the filter's part is not seen")
    assert run_locked(lambda: str(getpid() > 0)) == f"died: {int(signal.SIGSYS)}"


# --- memory that is mapped before ---


def shared_pages() -> tuple[mmap.mmap, mmap.mmap]:
    """The parent's view of a file of three pages, and a view of the page in the middle."""
    file = os.memfd_create("pages", os.MFD_CLOEXEC)
    os.ftruncate(file, 3 * mmap.PAGESIZE)
    whole = mmap.mmap(file, 3 * mmap.PAGESIZE)
    middle = mmap.mmap(file, mmap.PAGESIZE, offset=mmap.PAGESIZE)
    os.close(file)
    return whole, middle


def test_a_page_that_was_mapped_before_can_be_written_behind_the_lock_down() -> None:
    whole, middle = shared_pages()

    def count() -> str:
        counter = memoryview(middle).cast("Q")
        for _ in range(1000):
            counter[0] += 1
        return str(counter[0])

    assert run_locked(count) == "1000"
    assert int.from_bytes(whole[mmap.PAGESIZE : mmap.PAGESIZE + 8], sys.byteorder) == 1000
    assert not any(whole[: mmap.PAGESIZE])
    assert not any(whole[2 * mmap.PAGESIZE :])


def test_a_shared_page_cannot_be_grown_over_its_neighbours() -> None:
    whole, middle = shared_pages()
    whole[2 * mmap.PAGESIZE] = 77

    def grow() -> str:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mremap.restype = ctypes.c_void_p
        start = ctypes.addressof(ctypes.c_char.from_buffer(middle))
        size = mmap.PAGESIZE
        for old in (size, 0):
            place = libc.mremap(
                ctypes.c_void_p(start), ctypes.c_size_t(old), ctypes.c_size_t(2 * size), 1
            )
            if place not in (None, ctypes.c_void_p(-1).value):
                return str(ctypes.c_ubyte.from_address(place + size).value)
        return os.strerror(ctypes.get_errno())

    assert run_free(grow) == "77"
    assert run_locked(grow) == "Operation not permitted"


# --- what CPython needs ---


def grow_and_shrink() -> str:
    numbers = list(range(400_000))
    numbers += numbers
    block = bytearray()
    for _ in range(200):
        block += bytes(50_000)
    del block[1000:]
    return str(len(numbers) + len(block) + len({i: str(i) for i in range(50_000)}))


def survive_memory_errors() -> str:
    count = 0
    for _ in range(3):
        held = []
        try:
            while True:
                held.append(bytearray(1 << 20))
        except MemoryError:
            count += 1
    del held
    return f"{count} {len(bytearray(8 << 20))}"


def wait_on_a_lock() -> str:
    lock = threading.Lock()
    return f"{lock.acquire()} {lock.acquire(timeout=0.01)} {time.sleep(0.001)}"


def raise_and_show() -> str:
    try:
        try:
            json.loads("{")
        except ValueError:
            return str(1 / 0)
    except ZeroDivisionError:
        return str(len(traceback.format_exc().splitlines()) > 8)


def write_to_the_standard_streams() -> str:
    for stream in (sys.__stdout__, sys.__stderr__):
        assert stream is not None
        print("nobody reads this", file=stream, flush=True)
    return "written"


def recurse() -> str:
    def deeper(level: int) -> int:
        return deeper(level + 1)

    try:
        return str(deeper(0))
    except RecursionError as error:
        return type(error).__name__


def use_the_library() -> str:
    moment = datetime.datetime.strptime("2024-02-29 12:30 +0000", "%Y-%m-%d %H:%M %z")
    with decimal.localcontext(prec=30):
        third = decimal.Decimal(1) / 3
    words = re.findall(r"\w+", "täglich ist ein Wort")
    draw = random.Random(7).sample(range(1000), 3)
    gc.collect()
    text = json.dumps(
        [moment.isoformat(), str(third), words, draw, array.array("d", [1.5]).tolist()]
    )
    return f"{len(text)} {len(os.urandom(8))} {type(random.Random().random()).__name__}"


ABILITIES: dict[str, tuple[Callable[[], str], str]] = {
    "grow and shrink": (grow_and_shrink, "851000"),
    "survive MemoryError": (survive_memory_errors, f"3 {8 << 20}"),
    "wait on a lock": (wait_on_a_lock, "True False None"),
    "raise and show": (raise_and_show, "True"),
    "write to the standard streams": (write_to_the_standard_streams, "written"),
    "recurse": (recurse, "RecursionError"),
    "use the library": (use_the_library, "129 8 float"),
    "read every clock": (
        lambda: str(all(read() > 0 for read in (time.time, time.monotonic, time.process_time))),
        "True",
    ),
}


@pytest.mark.parametrize("ability", ABILITIES)
def test_python_works_behind_the_lock_down(ability: str) -> None:
    action, wanted = ABILITIES[ability]
    use_the_library()  # what it imports lazily is loaded before, as in the zygote
    assert run_locked(action) == wanted


def test_a_thread_is_refused_with_an_error_of_python() -> None:
    def start() -> str:
        threading.Thread(target=time.time).start()
        return "started"

    assert run_free(start) == "started"
    assert run_locked(start) == "RuntimeError: can't start new thread"


def test_memory_ends_at_the_quota_and_not_before() -> None:
    def allocate(megabytes: int) -> Callable[[], str]:
        return lambda: str(len(bytearray(megabytes << 20)) >> 20)

    assert run_locked(allocate(40), memory_mb=64) == "40"
    # Far above, because a fork of this process may have freed memory at hand that is mapped already.
    assert run_locked(allocate(2048), memory_mb=64).startswith("MemoryError")


def test_a_locked_process_dies_with_its_parent() -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    middle = fork()
    if not middle:
        try:
            ours.close()
            fork_and_wait(theirs)
        finally:
            os._exit(1)
    theirs.close()
    with ours:
        orphan = int(ours.recv(16))
        os.kill(middle, signal.SIGKILL)
        os.waitpid(middle, 0)
        try:
            assert ours.recv(16) == b""  # nobody holds the other end any more
        except TimeoutError:
            os.kill(orphan, signal.SIGKILL)
            raise


def fork_and_wait(channel: socket.socket) -> None:
    """A child that locks itself down, says its pid and spins; and a parent that does not look after it."""
    parent = os.getpid()
    if fork():
        signal.pause()
    own = b"%d" % os.getpid()
    lock_down(channel.fileno(), Confinement(MEMORY_MB, parent))
    channel.sendall(own)
    while True:
        pass
