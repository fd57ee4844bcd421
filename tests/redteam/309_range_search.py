"""Red-team payload 309: object() in range(2 ** 62): one search in C that never looks for signals.

layer: sup; category: hang; defence: parent deadline -> SIGKILL -> respawn
Signs of success: a call that does not come back. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        numbers = range(-(2 ** 31), 2 ** 62)
        return object() in numbers

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
