"""Locker room. Open the locker whose number is the sum of the two on the note; the key is in your hand."""

import random


class LockerEnv:
    """The note shows two numbers; only their sum opens a locker."""

    max_turns = 8

    def reset(self, seed):
        rng = random.Random(seed)
        self.left, self.right = rng.randint(11, 49), rng.randint(11, 49)
        self.tries = 3
        return self.view(f"A note says {self.left} and {self.right}."), {}

    def view(self, note):
        return (
            f"{note} Lockers are numbered 20 to 99; the third wrong one raises the alarm.\n"
            f"Open the one whose number is their sum. Tries left: {self.tries}. Commands: 'open <number>'."
        )

    def step(self, action):
        words = action.split()
        if words == ["open", str(self.left + self.right)]:
            return "The locker opens.", 1.0, True, False, {}
        if len(words) != 2 or words[0] != "open":
            return self.view("Nothing happens."), 0.0, False, False, {}
        self.tries -= 1
        if not self.tries:
            return "The alarm goes off.", 0.0, True, False, {}
        return self.view("The key does not turn."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Add before you open."

    def solution(self):
        return [f"open {self.left + self.right}"]
