"""Queue. Six people stand in a dark corridor; call them in the order in which they stand, by their own remarks.

Each says only whom he has behind him. One wrong name, and you begin again with the first of them.
"""

import random

NAMES = (
    "Abel",
    "Bruno",
    "Clara",
    "Doris",
    "Edgar",
    "Frida",
    "Gregor",
    "Hanna",
    "Ida",
    "Jonas",
    "Klara",
    "Ludwig",
)


class QueueEnv:
    max_turns = 16

    def reset(self, seed):
        rng = random.Random(seed)
        self.line = rng.sample(NAMES, 6)
        self.called = 0
        remarks = [
            f"{a} says: {b} is behind me." for a, b in zip(self.line, self.line[1:], strict=False)
        ]
        rng.shuffle(remarks)
        return self.view(
            "Call the people from the front of the queue to its end, one name a turn. "
            + " ".join(remarks)
        ), {}

    def view(self, note):
        names = ", ".join(sorted(self.line))
        return f"{note}\nCalled in a row: {self.called} of {len(self.line)}. Reply with one of: {names}."

    def step(self, action):
        name = action.strip().title()
        if name not in self.line:
            return self.view("Nobody stirs."), 0.0, False, False, {}
        if name != self.line[self.called]:
            self.called = 0
            return self.view("Murmurs. All go back to their places."), 0.0, False, False, {}
        self.called += 1
        if self.called == len(self.line):
            return "The corridor is empty.", 1.0, True, False, {}
        return self.view("Somebody comes out."), 0.0, False, False, {}

    def hint(self, level=2):
        return "The front is the one whom nobody has behind him; go on from remark to remark."

    def solution(self):
        return list(self.line)
