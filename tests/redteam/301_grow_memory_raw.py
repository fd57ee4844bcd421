"""Red-team payload 301: mmap, mremap and brk through ctypes ask for twice the quota.

layer: os; category: memory; defence: RLIMIT_AS counts every mapping; seccomp allows private memory only
Signs of success: an observation that starts with PWNED, or the marker /tmp/synthgym-redteam/301_grow_memory_raw. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        libc.mmap.restype = libc.mremap.restype = libc.sbrk.restype = pointer
        libc.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_long]
        libc.mremap.argtypes = [pointer, size, size, number]
        libc.munmap.argtypes = [pointer, size]
        libc.sbrk.argtypes = [ctypes.c_ssize_t]
        failed, wanted, got = pointer(-1).value, 512 << 20, []
        for name, flags in ("private", 0x22), ("shared", 0x21):
            place = libc.mmap(None, wanted, 3, flags, -1, 0)
            if place != failed:
                got.append(name)
                libc.munmap(place, wanted)
        block = libc.mmap(None, 1 << 20, 3, 0x22, -1, 0)
        place = libc.mremap(block, 1 << 20, wanted, 1)
        if place != failed:
            got.append("mremap")
            libc.munmap(place, wanted)
        if libc.sbrk(wanted) != failed:
            got.append("brk")
            libc.sbrk(-wanted)
        return "PWNED " + " ".join(got) if got else "blocked"

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
