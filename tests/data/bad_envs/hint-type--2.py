"""Gears. Mount two pairs of wheels so that the last shaft turns at the speed that is asked for, then crank.

A pair `12-36` has the driving wheel first: it makes the next shaft three times slower. Each wheel is there once.
"""

import random
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

TEETH = (12, 15, 16, 18, 20, 24, 27, 30, 32, 36, 40, 45)


@dataclass
class Note:
    """What a hint is made of; it becomes text before it is returned."""

    text: str
    seal: str = ""

    def __str__(self):
        return f"{self.text}{self.seal}"


class GearsEnv:
    max_turns = 6

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.box = sorted(rng.sample(TEETH, 7))
            self.pairs = [tuple(rng.sample(self.box, 2)) for _ in range(2)]
            (a, b), (c, d) = self.pairs
            self.wanted = Fraction(a * c, b * d)
            if len({a, b, c, d}) == 4 and self.wanted not in self.single():
                break
        self.mounted = []
        return self.view(
            f"The last shaft must turn {self.wanted} times for a turn of the first."
        ), {}

    def single(self):
        """What one pair alone can do."""
        return {Fraction(a, b) for a, b in permutations(self.box, 2)}

    def view(self, note):
        mounted = ", ".join(f"{a}-{b}" for a, b in self.mounted) or "none"
        box = ", ".join(map(str, self.box))
        return (
            f"{note}\nWheels in the box, by their teeth: {box}. Mounted pairs: {mounted}.\n"
            "Commands: mount (driving wheel, a hyphen, driven wheel), clear, crank (two pairs)."
        )

    def step(self, action):
        word, _, rest = action.partition(" ")
        free = [n for n in self.box if not any(n in pair for pair in self.mounted)]
        pairs = {f"{a}-{b}": (a, b) for a, b in permutations(free, 2)}
        if word == "mount" and rest in pairs and len(self.mounted) < 2:
            self.mounted.append(pairs[rest])
            return self.view("They mesh."), 0.0, False, False, {}
        if action == "clear":
            self.mounted = []
            return self.view("The shafts are bare."), 0.0, False, False, {}
        if action != "crank" or len(self.mounted) != 2:
            return self.view("Nothing turns."), 0.0, False, False, {}
        (a, b), (c, d) = self.mounted
        if Fraction(a * c, b * d) == self.wanted:
            return "It turns as it should.", 1.0, True, False, {}
        return "It turns, and not as it should. The spring breaks.", 0.0, True, False, {}

    def hint(self, level=2):
        if level == 3:
            note = Note(
                "The driving wheels have ", f"{self.pairs[0][0]} and {self.pairs[1][0]} teeth."
            )
        elif level == 2:
            note = Note(
                "Take the fraction apart into prime factors",
                ", and look for wheels that bring them in.",
            )
        else:
            return None
        return str(note)

    def solution(self):
        return [*(f"mount {a}-{b}" for a, b in self.pairs), "crank"]
