"""Envelopes. A pile of six envelopes must be ordered by size, the smallest on top, by turning parts of it over.

`flip 4` takes the four topmost envelopes and puts them back the other way round.
"""

import random

SIZES = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
PaperEnv = "a name that ends like a class, and is a text"


class EnvelopeBase:
    """Not an environment: the name ends otherwise."""

    max_turns = 10

    def view(self, note):
        return (
            f"{note}\nPile from the top: {' '.join(map(str, self.pile))}.\n"
            "Commands: flip two, flip three and so on to flip six."
        )


class Envoy:
    """Nor is this one."""

    def __init__(self, pile):
        self.pile = list(pile)

    def flip(self, count):
        self.pile[:count] = self.pile[:count][::-1]


def makeEnv(pile):
    return Envoy(pile)


class PileEnv(EnvelopeBase):
    class InnerEnv(Envoy):
        """A class inside of the class: it is not at the top level."""

        def plan(self):
            """Largest first: bring it to the top, then down to its place."""
            flips = []
            for size in range(len(self.pile), 1, -1):
                largest = sorted(self.pile)[size - 1]
                place = self.pile.index(largest) + 1
                if place == size:
                    continue
                for count in (place, size):
                    if count > 1:
                        self.flip(count)
                        flips.append(count)
            return flips

    def reset(self, seed):
        rng = random.Random(seed)
        for _ in range(50):
            self.pile = rng.sample(range(10, 40), 6)
            if 5 <= len(self.InnerEnv(self.pile).plan()) <= 8:
                break
        return self.view("Goal: the numbers on the envelopes grow from the top to the bottom."), {}

    def step(self, action):
        word, _, count = action.partition(" ")
        if word != "flip" or count not in SIZES:
            return self.view("The pile stays as it is."), 0.0, False, False, {}
        envoy = makeEnv(self.pile)
        envoy.flip(SIZES[count])
        self.pile = envoy.pile
        if self.pile == sorted(self.pile):
            return "The pile is in order.", 1.0, True, False, {}
        return self.view("You turn them over."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The largest, {max(self.pile)}, goes to the top first, then to the bottom."
        return "Care for the largest that is out of place: up first, then down to where it belongs."

    def solution(self):
        names = {count: name for name, count in SIZES.items()}
        return [f"flip {names[count]}" for count in self.InnerEnv(self.pile).plan()]
