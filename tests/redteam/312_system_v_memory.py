"""Red-team payload 312: shared memory and keys of the kernel that outlive the process and need no descriptor.

layer: os; category: os; defence: seccomp: neither Landlock nor a limit covers them
Signs of success: an observation that starts with PWNED, or the marker /tmp/synthgym-redteam/312_system_v_memory. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        got = []
        segment = libc.shmget(0, ctypes.c_size_t(4096), 0o1600)
        if segment >= 0:
            got.append("shmget")
            libc.shmctl(segment, 0, None)
        queue = libc.msgget(0, 0o1600)
        if queue >= 0:
            got.append("msgget")
            libc.msgctl(queue, 0, None)
        return "PWNED " + " ".join(got) if got else "blocked"

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
