"""Red-team payload 302: a thread through _thread, to go on after the reply.

layer: os; category: os; defence: RLIMIT_NPROC and seccomp: no clone
Signs of success: an observation that starts with PWNED, or the marker /tmp/synthgym-redteam/302_thread_raw. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        import _thread, time
        ran = []
        _thread.start_new_thread(ran.append, (1,))
        for _ in range(100):
            if ran:
                return "PWNED a second thread ran"
            time.sleep(0.02)
        return "blocked"

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
