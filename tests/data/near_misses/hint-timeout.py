"""Two safes. Each opens to four colours in the right order, and the second stands inside of the first.

A try says how many colours are in their right place. Every colour occurs once in each code.
"""

import random
from collections import Counter
from itertools import permutations

COLOURS = "RGBY"
CODES = tuple("".join(code) for code in permutations(COLOURS))


def matches(one, other):
    """How many places are alike."""
    return sum(a == b for a, b in zip(one, other, strict=True))


class SafesEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.codes = rng.sample(CODES, 2)
        self.inside = 0
        self.maker = rng.choice(["Chubb", "Bramah", "Yale", "Milner", "Tann", "Kromer", "Fichet"])
        return self.view(f"Two safes by {self.maker}, one in the other. Open both."), {}

    def view(self, note):
        return (
            f"{note}\nYou stand before the {'inner' if self.inside else 'outer'} safe.\n"
            "Command: dial and four letters (B blue, G green, R red, Y yellow), each once."
        )

    def step(self, action):
        word, _, code = action.partition(" ")
        if word != "dial" or code not in CODES:
            return self.view("The dial does not move."), 0.0, False, False, {}
        if code != self.codes[self.inside]:
            right = matches(code, self.codes[self.inside])
            return self.view(f"In the right place: {right}."), 0.0, False, False, {}
        self.inside += 1
        if self.inside == 2:
            return "The inner safe opens.", 0.5, True, False, {}
        return self.view("It opens, and there is another one."), 0.5, False, False, {}

    def hint(self, level=2):
        # Every try against every code, and for each the largest group that it leaves: much, but bounded.
        groups = {
            code: max(Counter(matches(code, other) for other in CODES).values()) for code in CODES
        }
        if level == 1:
            return "Each answer rules out codes; keep a list of those that are left."
        if level == 2:
            return f"A first try leaves {min(groups.values())} codes at the worst, whichever it is; then choose well."
        first = [code[0] for code in self.codes]
        return f"They begin with {first[0]} and {first[1]}."

    def solution(self):
        return [f"dial {code}" for code in self.codes]
