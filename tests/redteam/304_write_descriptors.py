"""Red-team payload 304: bytes to descriptors 0 to 9: to the terminal, into a log, or between the frames of the channel.

layer: os; category: protocol; defence: 0 to 2 are /dev/null, everything but the channel is closed; the parent decodes what comes over the channel, or kills
Signs of success: PWNED on the standard output of the process, or an observation that starts with PWNED. Harmless if it succeeds.
"""


class PayloadEnv:
    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return "ready", {}

    def attack(self, action=""):
        import os
        for descriptor in range(10):
            try:
                os.write(descriptor, b"\nPWNED descriptor\n")
            except OSError:
                pass
        return "done"

    def step(self, action):
        r = self.attack(action)
        return str(r)[:300], 0.0, True, False, {}
