"""Red-team payload 310: busy wait until the clock has moved by a year, half by sleeping, half by looking.

layer: sup; category: hang; defence: virtual clock: sleeping costs nothing, looking costs a millisecond; parent deadline for the rest
Signs of success: a call that does not come back. Harmless if it succeeds.
"""

import time


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        start = time.monotonic()
        for _ in range(1000):
            time.sleep(86400 * 365 / 2000)
        while time.monotonic() < start + 86400 * 365:
            pass
        return "waited"

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
