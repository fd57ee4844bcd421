"""Stepping stones. Cross a river on stones that lie in rows of three; one stone of each row is firm.

Firm is the stone whose number, with the two that the boatman named, makes a multiple of five. A loose stone throws you
back to the bank.
"""

import random


class SteppingStonesEnv:
    max_turns = 12

    def reset(self, seed):
        rng = random.Random(seed)
        self.named = rng.sample(range(2, 40), 2)
        self.rows = []
        for _ in range(5):
            firm = 5 * rng.randint(18, 30) - sum(self.named)
            row = [firm, firm + rng.choice((1, 2)), firm + rng.choice((3, 4, 6))]
            self.rows.append((firm, rng.sample(row, 3)))
        self.row = 0
        one, other = self.named
        return f"The boatman names {one} and {other}. Goal: cross five rows.\n{self.view()}", {}

    def view(self):
        stones = ", ".join(map(str, self.rows[self.row][1]))
        return f"Row {self.row + 1} of 5. Stones: {stones}.\nCommand: hop <number>."

    def step(self, action):
        firm, stones = self.rows[self.row]
        verb, _, stone = action.partition(" ")
        if verb != "hop" or stone not in map(str, stones):
            return "", 0.0, False, False, {}
        self.row = self.row + 1 if stone == str(firm) else 0
        if self.row == len(self.rows):
            return "The far bank.", 1.0, True, False, {}
        return self.view(), 0.0, False, False, {}

    def hint(self, level=2):
        return "Add the two named numbers once, and look only at last digits from then on."

    def solution(self):
        return [f"hop {firm}" for firm, _ in self.rows]
