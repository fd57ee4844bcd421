"""Apothecary. Mix a draught from two bottles: so many grams in all, with so much poppy in them, and seal it.

The label of a bottle says how many parts in a hundred are poppy. Pour tenths of grams, at most 50 at a time. What is
poured is poured. A draught that is not as ordered (to a tenth of a gram) is poured away, and that is the end of it.
"""

import math
import random


class ApothecaryEnv:
    max_turns = 10

    def reset(self, seed):
        rng = random.Random(seed)
        self.parts = dict(zip(("red", "blue"), rng.sample(range(5, 60, 5), 2), strict=True))
        self.recipe = {bottle: rng.randint(41, 490) / 10 for bottle in self.parts}
        self.cup = {"red": 0.0, "blue": 0.0}
        self.order = self.measure(self.recipe)
        labels = ", ".join(f"{bottle} {parts}" for bottle, parts in self.parts.items())
        return self.view(f"Labels, parts in a hundred: {labels}."), {}

    def measure(self, cup):
        """(grams in all, grams of poppy)."""
        return sum(cup.values()), sum(
            grams * self.parts[bottle] / 100 for bottle, grams in cup.items()
        )

    def view(self, note):
        grams, poppy = self.order
        return (
            f"{note}\nOrdered: {grams:.1f} grams with {poppy:.3f} of poppy. In the cup: "
            f"{sum(self.cup.values()):.1f}.\nCommands: pour <bottle> <grams>, seal."
        )

    def step(self, action):
        words = action.split()
        if words == ["seal"]:
            right = all(
                abs(a - b) < 0.05 for a, b in zip(self.measure(self.cup), self.order, strict=True)
            )
            return "Sealed." if right else "Poured away.", float(right), True, False, {}
        try:
            verb, bottle, grams = words[0], words[1], float(words[2])
        except (IndexError, ValueError):
            return self.view("Say what to pour, and how much."), 0.0, False, False, {}
        if (
            verb != "pour"
            or bottle not in self.cup
            or not (math.isfinite(grams) and 0 < grams <= 50)
        ):
            return self.view("That cannot be poured."), 0.0, False, False, {}
        self.cup[bottle] += grams
        return self.view(f"You pour {grams:.1f} grams."), 0.0, False, False, {}

    def hint(self, level=2):
        return (
            "Two equations: one for all the grams, one for the poppy. Solve them before you pour."
        )

    def solution(self):
        return [*(f"pour {bottle} {grams}" for bottle, grams in self.recipe.items()), "seal"]
