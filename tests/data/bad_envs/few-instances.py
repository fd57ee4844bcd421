"""Tile vault. Walk over the tiles of a vault, row by row, from a plan of which there are four.

Each row has five tiles, a to e, and the plan on the wall tells how far the safe tile lies to the right of the one
in the row before, counting on from a after e. The first safe tile is told. A wrong tile closes the vault.
"""

import random

TILES = "abcde"


class TileVaultEnv:
    max_turns = 8

    def reset(self, seed):
        rng = random.Random(seed % 4)
        self.safe = [rng.randrange(5)]
        self.shifts = [rng.randint(1, 4) for _ in range(5)]
        for shift in self.shifts:
            self.safe.append((self.safe[-1] + shift) % 5)
        self.row = 0
        plan = ", ".join(map(str, self.shifts))
        return self.view(f"The first safe tile is {TILES[self.safe[0]]}, then on by {plan}."), {}

    def view(self, note):
        return f"{note}\nRow {self.row + 1} of 6 lies ahead.\nCommand: tread <tile>, a to e."

    def step(self, action):
        verb, _, tile = action.partition(" ")
        if verb != "tread" or len(tile) != 1 or tile not in TILES:
            return self.view("You stand still."), 0.0, False, False, {}
        if tile != TILES[self.safe[self.row]]:
            return "The vault closes.", 0.0, True, False, {}
        self.row += 1
        if self.row == len(self.safe):
            return "You are through.", 1.0, True, False, {}
        return self.view("The tile holds."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Add the numbers up as you go, and take away five whenever the sum passes it."

    def solution(self):
        return [f"tread {TILES[at]}" for at in self.safe]
