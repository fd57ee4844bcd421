"""Letter case. A printer sets whatever you say, and has three orders for texts with so many e and so many spaces.

Every text is an order tried: no text is wrong as such. The orders are filled one after the other; the first two pay
a quarter each, the last one the rest.
"""

import random


class LetterCaseEnv:
    max_turns = 8

    def reset(self, seed):
        rng = random.Random(seed)
        pairs = [(letters, spaces) for letters in range(4, 14) for spaces in range(2, 7)]
        self.orders = rng.sample([(e, s) for e, s in pairs if e > 2 * s], 3)
        self.filled = 0
        return self.view("Say any text, and the printer counts.", "", ""), {}

    def view(self, note, letters, spaces):
        e, s = self.orders[self.filled]
        counted = f" Counted: e {letters}, spaces {spaces}." if letters != "" else ""
        return f"{note}{counted}\nOrder {self.filled + 1} of 3: a text with {e} times e and {s} spaces."

    def step(self, action):
        letters, spaces = action.count("e"), action.count(" ")
        if (letters, spaces) != self.orders[self.filled]:
            return self.view("Set, and taken apart again.", letters, spaces), 0.0, False, False, {}
        self.filled += 1
        if self.filled == len(self.orders):
            return "The last order is printed.", 0.5, True, False, {}
        return self.view("Printed.", letters, spaces), 0.25, False, False, {}

    def hint(self, level=2):
        return (
            "A text need not mean anything. Begin with the spaces and put the letters around them."
        )

    def solution(self):
        return ["e" * (e - s) + " e" * s for e, s in self.orders]
