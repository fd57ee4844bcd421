"""Red-team payload 308: memory retained in a functools.lru_cache, 8 MB a call, past any reset.

layer: sup; category: memory; defence: RLIMIT_AS; the worker ends when the quota is used up
Signs of success: a worker that holds 2 GB. Harmless if it succeeds.
"""

import functools


@functools.lru_cache(maxsize=None)
def kept(number):
    return bytes([number]) * 8000000


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        for number in range(256):
            kept(number)
        return "kept"

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
