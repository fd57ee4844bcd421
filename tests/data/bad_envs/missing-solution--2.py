"""Lamps. Twenty-five lamps in a square; pressing one switches it and its neighbours. All must be dark.

Neighbours are the lamps above, below, left and right of it.
"""

import random


class Solver:
    """Has the witness."""

    def solution(self):
        return [f"press {cell}" for cell in self.pressed]


class Square:
    side = 5

    def cells(self):
        return [f"{column}{row}" for row in "12345" for column in "abcde"]

    def around(self, cell):
        """A cell and its neighbours."""
        column, row = "abcde".index(cell[0]), "12345".index(cell[1])
        for x, y in ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)):
            if 0 <= column + x < self.side and 0 <= row + y < self.side:
                yield f"{'abcde'[column + x]}{'12345'[row + y]}"


class LampsEnv(Square):
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.pressed = rng.sample(self.cells(), rng.randint(4, 6))
        self.lit = set()
        for cell in self.pressed:
            self.lit ^= set(self.around(cell))
        note = "Make all lamps dark. A lamp that is pressed switches, and so do its neighbours."
        return self.view(note), {}

    def view(self, note):
        rows = "\n".join(
            row + " " + "".join("*" if column + row in self.lit else "." for column in "abcde")
            for row in "12345"
        )
        return f"{note}\n  abcde\n{rows}\nCommand: press and a lamp, its column and row as in b3."

    def step(self, action):
        word, _, cell = action.partition(" ")
        if word != "press" or cell not in self.cells():
            return self.view("Click. Nothing."), 0.0, False, False, {}
        self.lit ^= set(self.around(cell))
        if not self.lit:
            return "All is dark.", 1.0, True, False, {}
        return self.view("Clack."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{len(self.pressed)} lamps will do, {self.pressed[0]} among them."
        return "The order does not matter, and no lamp needs to be pressed twice."
