"""Red-team payload 303: signal 0 to the parent, and to every small pid but its own.

layer: os; category: os; defence: seccomp: no kill; Landlock ABI 6 scopes signals; another user
Signs of success: an observation that starts with PWNED, or the marker /tmp/synthgym-redteam/303_signal_parent. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        import os
        try:
            pids = [os.getppid()]
        except OSError:
            pids = list(range(1, 5000))
        for pid in pids:
            try:
                os.kill(pid, 0)
            except OSError:
                continue
            return "PWNED can signal %d" % pid
        return "blocked"

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
