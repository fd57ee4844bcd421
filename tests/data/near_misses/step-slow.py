"""Slow doors. Three doors open to words that are hidden in the inscriptions over them, and each door takes its time.

The word of a door is made of the last letters of the words over it, read from the last one to the first. A door
stretches what is said to it a thousand times before it compares, as locks should.
"""

import random
from hashlib import sha256

WORDS = (  # noqa: SIM905
    "amber birch cloud delta eagle fable giant hotel ivory jolly karma lemon mango noble ocean "
    "piano quilt river solar tempo ultra vapor wharf yacht zebra quick brown vivid storm pearl"
).split()


def stretched(word):
    """A digest that costs something: far below what would be too slow for training."""
    digest = word.encode()
    for _ in range(1000):
        digest = sha256(digest).digest()
    return digest


class DoorsEnv:
    max_turns = 7

    def reset(self, seed):
        rng = random.Random(seed)
        self.signs = [rng.sample(WORDS, rng.randint(5, 7)) for _ in range(3)]
        self.passed = 0
        return self.view(
            "Three doors. The word for each is made of the last letters of the words over it, from "
            "the last word to the first."
        ), {}

    def word_of(self, sign):
        return "".join(word[-1] for word in reversed(sign))

    def view(self, note):
        sign = " ".join(self.signs[self.passed])
        return f"{note}\nOver door {self.passed + 1}: {sign}.\nCommand: say and the word."

    def step(self, action):
        verb, _, word = action.partition(" ")
        digest = stretched(word[:40])
        if verb != "say" or digest != stretched(self.word_of(self.signs[self.passed])):
            return (
                self.view("The door is silent for a while, and stays shut."),
                0.0,
                False,
                False,
                {},
            )
        self.passed += 1
        if self.passed == 3:
            return "The last door opens.", 1.0, True, False, {}
        return self.view("It opens."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The first word begins with {self.word_of(self.signs[0])[:3]}."
        return (
            "Write down the last letters in the order in which they stand, then turn the row round."
        )

    def solution(self):
        return [f"say {self.word_of(sign)}" for sign in self.signs]
