"""Red-team payload 306: environment, memory map, memory and descriptors through /proc/self, command line of the parent.

layer: os; category: os; defence: Landlock, seccomp and RLIMIT_NOFILE: nothing opens
Signs of success: an observation that starts with PWNED, or the marker /tmp/synthgym-redteam/306_proc_self. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        import os
        got = []
        for path in "/proc/self/environ", "/proc/self/maps", "/proc/self/mem", "/proc/1/cmdline":
            try:
                with open(path, "rb", buffering=0) as file:
                    if path.endswith("mem") or file.read(16):
                        got.append(path)
            except OSError:
                pass
        try:
            got += os.listdir("/proc/self/fd")
        except OSError:
            pass
        return "PWNED " + " ".join(got) if got else "blocked"

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
