"""Three dials. Read the dials of a mill in the order of the list, then report the sum.

`read <dial>` shows a dial; the miller looks over your shoulder and lets nobody report who has not read all three in
order. `report <number>` can be sent once.
"""

import random

DIALS = ("steam", "water", "wind", "wheel", "belt")


class ThreeDialsEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.order = rng.sample(DIALS, 3)
        self.shows = {dial: rng.randint(101, 399) for dial in DIALS}
        self.read = []
        self.sum = sum(self.shows[dial] for dial in self.order)
        return self.view(
            f"Dials: {', '.join(DIALS)}. Goal: report the sum of {', '.join(self.order)}, read in that order."
        ), {}

    def view(self, note):
        return f"{note}\nCommands: read <dial>, report <number>."

    def step(self, action):
        words = action.split()
        if len(words) == 2 and words[0] == "read" and words[1] in DIALS:
            self.read.append(words[1])
            return (
                self.view(f"The {words[1]} dial shows {self.shows[words[1]]}."),
                0.0,
                False,
                False,
                {},
            )
        if len(words) == 2 and words[0] == "report" and self.read[-3:] == self.order:
            if words[1] == str(self.sum):
                return "The miller nods.", 1.0, True, False, {}
            return "The miller sends you home.", 0.0, True, False, {}
        return (
            self.view(f"The miller frowns; in his book stands {self.sum}."),
            0.0,
            False,
            False,
            {},
        )

    def hint(self, level=2):
        return "Note each dial as you read it, in the order of the list, and add them up."

    def solution(self):
        return [*(f"read {dial}" for dial in self.order), f"report {self.sum}"]
