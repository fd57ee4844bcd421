"""Numbers of system calls that no worker may make, for tests that make them.

`test_kernel.py` compares them with the kernel's headers.
"""

from __future__ import annotations

from typing import Final

NUMBERS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        "accept4": 288, "add_key": 248, "bind": 49, "bpf": 321, "capset": 126, "chdir": 80,
        "clock_gettime": 228, "clock_nanosleep": 230, "clone": 56, "clone3": 435, "close": 3,
        "close_range": 436, "connect": 42, "dup": 32, "dup3": 292, "epoll_create1": 291,
        "eventfd2": 290, "execve": 59, "execveat": 322, "faccessat": 269, "fallocate": 285,
        "fchmodat": 268, "fchownat": 260, "fcntl": 72, "fsopen": 430, "fstat": 5, "ftruncate": 77,
        "futex": 202, "getppid": 110, "getsockname": 51, "inotify_init1": 294,
        "io_uring_enter": 426, "io_uring_register": 427, "io_uring_setup": 425, "ioctl": 16,
        "kcmp": 312, "keyctl": 250, "kill": 62, "landlock_restrict_self": 446, "linkat": 265,
        "listen": 50, "lseek": 8, "madvise": 28, "memfd_create": 319, "mincore": 27, "mkdirat": 258,
        "mknodat": 259, "mlock": 149, "mlockall": 151, "mmap": 9, "mprotect": 10, "mq_open": 240,
        "mremap": 25, "msgget": 68, "msync": 26, "newfstatat": 262, "openat": 257, "openat2": 437,
        "perf_event_open": 298, "personality": 135, "pidfd_getfd": 438, "pidfd_open": 434,
        "pidfd_send_signal": 424, "pipe2": 293, "pkey_mprotect": 329, "prctl": 157,
        "prlimit64": 302, "process_madvise": 440, "process_vm_readv": 310, "process_vm_writev": 311,
        "ptrace": 101, "readlinkat": 267, "recvfrom": 45, "recvmmsg": 299, "recvmsg": 47,
        "remap_file_pages": 216, "renameat2": 316, "request_key": 249, "rt_sigaction": 13,
        "rt_sigprocmask": 14, "sched_setaffinity": 203, "seccomp": 317, "semget": 64,
        "sendfile": 40, "sendmmsg": 307, "sendmsg": 46, "sendto": 44, "setgid": 106, "setns": 308,
        "setpriority": 141, "setrlimit": 160, "setsockopt": 54, "setuid": 105, "setxattr": 188,
        "shmget": 29, "shutdown": 48, "sigaltstack": 131, "signalfd4": 289, "socket": 41,
        "socketpair": 53, "splice": 275, "statfs": 137, "statx": 332, "symlinkat": 266,
        "tgkill": 234, "timerfd_create": 283, "tkill": 200, "unlinkat": 263, "unshare": 272,
        "userfaultfd": 323, "utimensat": 280,
    },
    "aarch64": {
        "accept4": 242, "add_key": 217, "bind": 200, "bpf": 280, "capset": 91, "chdir": 49,
        "clock_gettime": 113, "clock_nanosleep": 115, "clone": 220, "clone3": 435, "close": 57,
        "close_range": 436, "connect": 203, "dup": 23, "dup3": 24, "epoll_create1": 20,
        "eventfd2": 19, "execve": 221, "execveat": 281, "faccessat": 48, "fallocate": 47,
        "fchmodat": 53, "fchownat": 54, "fcntl": 25, "fsopen": 430, "fstat": 80, "ftruncate": 46,
        "futex": 98, "getppid": 173, "getsockname": 204, "inotify_init1": 26, "io_uring_enter": 426,
        "io_uring_register": 427, "io_uring_setup": 425, "ioctl": 29, "kcmp": 272, "keyctl": 219,
        "kill": 129, "landlock_restrict_self": 446, "linkat": 37, "listen": 201, "lseek": 62,
        "madvise": 233, "memfd_create": 279, "mincore": 232, "mkdirat": 34, "mknodat": 33,
        "mlock": 228, "mlockall": 230, "mmap": 222, "mprotect": 226, "mq_open": 180, "mremap": 216,
        "msgget": 186, "msync": 227, "newfstatat": 79, "openat": 56, "openat2": 437, "perf_event_open": 241,
        "personality": 92, "pidfd_getfd": 438, "pidfd_open": 434, "pidfd_send_signal": 424,
        "pipe2": 59, "pkey_mprotect": 288, "prctl": 167, "prlimit64": 261, "process_madvise": 440,
        "process_vm_readv": 270, "process_vm_writev": 271, "ptrace": 117, "readlinkat": 78,
        "recvfrom": 207, "recvmmsg": 243, "recvmsg": 212, "remap_file_pages": 234, "renameat2": 276,
        "request_key": 218, "rt_sigaction": 134, "rt_sigprocmask": 135, "sched_setaffinity": 122,
        "seccomp": 277, "semget": 190, "sendfile": 71, "sendmmsg": 269, "sendmsg": 211,
        "sendto": 206, "setgid": 144, "setns": 268, "setpriority": 140, "setrlimit": 164,
        "setsockopt": 208, "setuid": 146, "setxattr": 5, "shmget": 194, "shutdown": 210,
        "sigaltstack": 132, "signalfd4": 74, "socket": 198, "socketpair": 199, "splice": 76,
        "statfs": 43, "statx": 291, "symlinkat": 36, "tgkill": 131, "timerfd_create": 85,
        "tkill": 130, "unlinkat": 35, "unshare": 97, "userfaultfd": 282, "utimensat": 88,
    },
}  # fmt: skip
