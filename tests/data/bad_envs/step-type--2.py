"""Bread. Share out an exact part of a loaf in slices of one third, one fourth and so on, no two of them alike.

A slice that is given is given: whoever gives too much has lost, and so has who gives four slices without meeting
the part.
"""

import random
from fractions import Fraction


class BreadEnv:
    max_turns = 6

    def reset(self, seed):
        rng = random.Random(seed)
        self.slices = rng.sample(range(3, 13), 3)
        self.wanted = sum(Fraction(1, n) for n in self.slices)
        self.given = []
        return self.view(f"Give exactly {self.wanted} of a loaf, in at most four slices."), {}

    def view(self, note):
        given = ", ".join(f"1/{n}" for n in self.given) or "nothing"
        return (
            f"{note}\nGiven so far: {given}; wanted {self.wanted}.\n"
            "Command: cut and a number from 3 to 12; 3 stands for a third of a loaf."
        )

    def step(self, action):
        word, _, number = action.partition(" ")
        legal = {str(n): n for n in range(3, 13) if n not in self.given}
        if word != "cut" or number not in legal:
            return self.view("The knife waits."), 0, False, False, {}
        self.given.append(legal[number])
        total = sum(Fraction(1, n) for n in self.given)
        share = Fraction(1, legal[number]) / self.wanted
        if total == self.wanted:
            return "That is the part.", str(share), True, False, {}
        if total > self.wanted or len(self.given) == 4:
            return "That was wrong.", Fraction(0), True, False, {}
        return self.view("A slice is cut."), share, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The thickest slice is 1/{min(self.slices)}."
        return "Bring the part to a common denominator, and ask which slices can add up to its numerator."

    def solution(self):
        return [f"cut {n}" for n in sorted(self.slices, reverse=True)]
