"""Clock shop. One of five clocks is right; find it by two comparisons, and set the tower by it.

`compare <clock> <clock>` tells how many minutes the first is ahead of the second. `set <clock> <minute>` can be sent
once, after two comparisons, with the minute that the right clock shows.
"""

import random

CLOCKS = ("oak", "brass", "marble", "cuckoo", "ship")


class ClockShopEnv:
    max_turns = 12

    def reset(self, seed):
        rng = random.Random(seed)
        self.right = rng.choice(CLOCKS)
        self.wrong = rng.choice([clock for clock in CLOCKS if clock != self.right])
        shift = dict(zip(CLOCKS, rng.sample(range(-9, 10), len(CLOCKS)), strict=True))
        now = rng.randint(20, 50)
        self.minute = {clock: now + shift[clock] - shift[self.right] for clock in CLOCKS}
        self.known = rng.choice(
            [clock for clock in CLOCKS if clock not in (self.right, self.wrong)]
        )
        self.off = self.minute[self.known] - now
        self.compared = 0
        return self.view(
            f"Clocks: {', '.join(CLOCKS)}. The {self.known} clock shows minute {self.minute[self.known]}, and it is "
            f"{abs(self.off)} minutes {'fast' if self.off > 0 else 'slow'}. Goal: set the tower by the right clock."
        ), {}

    def view(self, note):
        return f"{note}\nCommands: compare <clock> <clock>, set <clock> <minute>."

    def step(self, action):
        words = action.split()
        if len(words) == 3 and words[0] == "compare" and words[1] in CLOCKS and words[2] in CLOCKS:
            self.compared += 1
            ahead = self.minute[words[1]] - self.minute[words[2]]
            return (
                self.view(f"The {words[1]} is {ahead} minutes ahead of the {words[2]}."),
                0.0,
                False,
                False,
                {},
            )
        if len(words) == 3 and words[0] == "set" and self.compared > 1:
            if words[1:] == [self.right, str(self.minute[self.right])]:
                return "The tower strikes, and all is well.", 1.0, True, False, {}
            return "The train has left.", 0.0, True, False, {}
        return self.view("It ticks."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Compare each clock with the one whose error you know."
        if level == 3:
            return f"The {self.right} clock is right, and it shows {self.minute[self.right]}."
        return (
            f"The {self.wrong} clock is not the right one. The right one differs from the {self.known} by just "
            "the error that you were told."
        )

    def solution(self):
        first = f"compare {self.known} {self.right}"
        return [
            first,
            f"compare {self.right} {self.wrong}",
            f"set {self.right} {self.minute[self.right]}",
        ]
