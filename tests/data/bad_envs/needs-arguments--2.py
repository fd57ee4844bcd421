"""Frogs and toads. Frogs hop to the right and toads to the left on a row of stones; they must change sides.

An animal steps onto the empty stone before it, or jumps over one of the other kind onto it. None goes back.
"""

import random


class Pond:
    """A base that needs arguments, and nobody gives them to it."""

    def __init__(self, frogs, toads, /, *, letters):
        self.frogs, self.toads, self.letters = frogs, toads, letters

    def moves(self, row):
        """The places from which something can move."""
        hole = row.index("_")
        for place in range(max(hole - 2, 0), min(hole + 3, len(row))):
            kind, step = row[place], hole - place
            ahead = step > 0 if kind == "F" else step < 0
            over = abs(step) == 1 or row[(place + hole) // 2] != kind
            if kind != "_" and ahead and over:
                yield place

    def moved(self, row, place):
        row, hole = list(row), row.index("_")
        row[hole], row[place] = row[place], "_"
        return "".join(row)


class PondEnv(Pond):
    max_turns = 18

    def reset(self, seed):
        rng = random.Random(seed)
        self.row = "F" * self.frogs + "_" + "T" * self.toads
        self.goal = self.row[::-1]
        # Some moves are made already; all that is left to find is the way from there.
        for _ in range(rng.randint(1, 5)):
            places = [p for p in self.moves(self.row) if self.search(self.moved(self.row, p))]
            self.row = self.moved(self.row, rng.choice(places))
        self.stones = rng.sample(self.letters, len(self.row))
        self.pond = rng.choice(["mill", "abbey", "castle", "village", "forest", "moor", "farm"])
        return self.view(f"In the {self.pond} pond frogs (F) go right, toads (T) left."), {}

    def search(self, row):
        """The places to move from, until the sides are changed; None when it cannot be done."""
        if row == self.goal:
            return []
        for place in self.moves(row):
            rest = self.search(self.moved(row, place))
            if rest is not None:
                return [place, *rest]
        return None

    def view(self, note):
        return (
            f"{note} They must change sides.\nStones: {' '.join(self.stones)}\n"
            f"On them: {' '.join(self.row)}\nCommand: hop and the stone of the animal."
        )

    def step(self, action):
        word, _, stone = action.partition(" ")
        legal = {self.stones[place]: place for place in self.moves(self.row)}
        if word != "hop" or stone not in legal:
            return self.view("Croak."), 0.0, False, False, {}
        self.row = self.moved(self.row, legal[stone])
        if self.row == self.goal:
            return "They have changed sides.", 1.0, True, False, {}
        return self.view("Splash."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{len(self.search(self.row))} hops are left."
        return "Never bring two of a kind together before the others are past: jump when you can."

    def solution(self):
        return [f"hop {self.stones[place]}" for place in self.search(self.row)]
