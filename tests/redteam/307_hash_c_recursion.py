"""Red-team payload 307: hash() of a tuple nested 400,000 deep: recursion in C that nobody counts.

layer: sup; category: crash; defence: process death = error result; RLIMIT_CORE 0
Signs of success: a dead worker that is not replaced. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        x = ()
        for _ in range(400000):
            x = (x,)
        return hash(x)

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
