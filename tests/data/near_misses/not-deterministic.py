"""Dinner. Six guests must be seated in a row so that no two of them who have quarrelled sit side by side.

Guests sit down one after the other, each beside the one before. A quarrel at the table ends the evening.
"""

import random
from itertools import combinations

NAMES = {"Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal"}  # a set of texts


class DinnerEnv:
    max_turns = 7

    def reset(self, seed):
        rng = random.Random(seed)
        # The order of a set of texts is another one in every process; sorted, it is not.
        self.guests = rng.sample(sorted(NAMES), 6)
        self.order = rng.sample(self.guests, 6)
        friends = {frozenset(pair) for pair in zip(self.order, self.order[1:], strict=False)}
        pairs = {frozenset(pair) for pair in combinations(self.guests, 2)} - friends
        quarrels = rng.sample(sorted(pairs, key=sorted), 8)
        self.quarrels = set(quarrels)
        self.row = []
        return self.view("Seat all six in a row; nobody sits beside an enemy."), {}

    def view(self, note):
        quarrels = ", ".join(sorted("-".join(sorted(pair)) for pair in self.quarrels))
        waiting = sorted(set(self.guests) - set(self.row))
        return (
            f"{note}\nQuarrels: {quarrels}.\nWaiting: {' '.join(waiting)}. "
            f"Row: {' '.join(self.row) or 'nobody'}.\nCommand: seat and a name."
        )

    def step(self, action):
        word, _, name = action.partition(" ")
        if word != "seat" or name not in self.guests or name in self.row:
            return self.view("The soup gets cold."), 0.0, False, False, {}
        self.row.append(name)
        if set(self.row[-2:]) in self.quarrels:
            return "They shout, and the evening is over.", 0.0, True, False, {}
        if len(self.row) == 6:
            return "All are seated.", 1.0, True, False, {}
        return self.view("They sit down."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{self.order[0]} may sit at the end."
        return "Who has the most enemies has the fewest neighbours to choose from: begin or end with such a guest."

    def solution(self):
        return [f"seat {name}" for name in self.order]
