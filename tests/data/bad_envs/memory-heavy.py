"""Locker room. Take the key, then open the locker whose number is the sum of the two on the note."""

import random


class LockerEnv:
    """The note shows two numbers; only their sum opens a locker."""

    max_turns = 8

    def reset(self, seed):
        rng = random.Random(seed)
        self.plan = bytearray(b"#") * 3_400_000
        self.left, self.right = rng.randint(11, 49), rng.randint(11, 49)
        self.has_key = False
        self.paid = 0.0
        return (
            f"A note says {self.left} and {self.right}. Lockers are numbered 20 to 99.\n"
            "Open the locker whose number is their sum. Commands: 'take key', 'open <number>'.",
            {},
        )

    def step(self, action):
        words = action.split()
        if words == ["take", "key"]:
            return self._take()
        if words == ["open", str(self.left + self.right)] and self.has_key:
            return "The locker opens.", 1.0 - self.paid, True, False, {}
        return "Nothing happens. Commands: 'take key', 'open <number>'.", 0.0, False, False, {}

    def _take(self):
        if self.has_key:
            return "You have the key already.", 0.0, False, False, {}
        self.has_key = True
        self.paid = 0.25
        return "You take the key.", 0.25, False, False, {}

    def hint(self, level=2):
        return "Take the key first, and add before you open."

    def solution(self):
        return ["take key", f"open {self.left + self.right}"]
