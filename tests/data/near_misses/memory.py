"""Relay code. Three words of seven bits came in, each with one bit wrong; flip the wrong ones, then acknowledge.

In a word that is right, the bits 4567, the bits 2367 and the bits 1357 have an even number of ones each (1 is the
first).
"""

import random

# How many ones there are in every number of 16 bits: 64 kilobytes, once, and less than it looks like.
ONES = bytearray(1 << 16)
for bit in range(16):
    half = 1 << bit
    ONES[half : 2 * half] = bytes(count + 1 for count in ONES[:half])
ONES = bytes(ONES)
CHECKS = {4: 0b0001111, 2: 0b0110011, 1: 0b1010101}
RIGHT = [
    word for word in range(1 << 7) if not any(ONES[word & mask] % 2 for mask in CHECKS.values())
]


class RelayEnv:
    max_turns = 6

    def reset(self, seed):
        rng = random.Random(seed)
        self.wrong = [rng.randint(1, 7) for _ in range(3)]
        self.words = [rng.choice(RIGHT) ^ 1 << (7 - bit) for bit in self.wrong]
        return self.view("One bit of each word is wrong. Put them right, then acknowledge."), {}

    def view(self, note):
        words = ", ".join(
            f"{name} {word:07b}" for name, word in zip("XYZ", self.words, strict=True)
        )
        return (
            f"{note}\nWords: {words}. In a right word the bits 4567, 2367 and 1357 each have an even "
            "number of ones.\nCommands: flip (word and bit, as in X0), ack."
        )

    def step(self, action):
        word, _, place = action.partition(" ")
        places = {f"{'XYZ'[at]}{bit}": (at, bit) for at in range(3) for bit in range(1, 8)}
        if word == "flip" and place in places:
            at, bit = places[place]
            self.words[at] ^= 1 << (7 - bit)
            return self.view("The relay clicks."), 0.0, False, False, {}
        if action != "ack":
            return self.view("Static."), 0.0, False, False, {}
        if all(one in RIGHT for one in self.words):
            return "Received.", 1.0, True, False, {}
        return "The other side hangs up.", 0.0, True, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"In word Z it is bit {self.wrong[2]}."
        return "Add 4, 2 and 1 for those of the three counts that are odd: the sum says which bit is wrong."

    def solution(self):
        return [
            *(f"flip {name}{bit}" for name, bit in zip("ZYX", self.wrong[::-1], strict=True)),
            "ack",
        ]
