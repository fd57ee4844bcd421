"""Dominoes. Lay all seven tiles in one line, so that ends that touch show the same number.

The line begins with the number that is named. A tile is turned round by itself if it must be; a line that cannot
be ended leads nowhere, as no tile can be taken up again.
"""

import random


class DeadEndError(Exception):
    """No tile fits. The witness is found by trying, and this is how it learns that it must go back."""


class DominoEnv:
    max_turns = 8

    def reset(self, seed):
        rng = random.Random(seed)
        self.end = rng.randint(0, 6)
        self.tiles, end = [], self.end
        for _ in range(100):
            other = rng.choice([n for n in range(7) if n != end])
            tile = (min(end, other), max(end, other))
            if tile not in self.tiles:
                self.tiles.append(tile)
                end = other
            if len(self.tiles) == 7:
                break
        self.tiles.sort()
        self.laid = []
        return self.view(f"Lay all the tiles in one line; it begins with {self.end}."), {}

    def view(self, note):
        tiles = " ".join(f"{a}|{b}" for a, b in self.tiles) or "none"
        return (
            f"{note}\nTiles: {tiles}. The open end shows {self.end}.\n"
            "Command: lay and the two numbers of a tile, the smaller one first, as in 06."
        )

    def step(self, action):
        word, _, name = action.partition(" ")
        fits = {f"{a}{b}": (a, b) for a, b in self.tiles if self.end in (a, b)}
        if word != "lay" or name not in fits:
            return self.view("It does not fit."), 0.0, False, False, {}
        a, b = fits[name]
        self.tiles.remove((a, b))
        self.end = a + b - self.end
        if not self.tiles:
            return "The line is complete.", 1.0, True, False, {}
        return self.view("It fits."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"Begin with {self.search(self.end, self.tiles)[0]}."
        return "Count how often each number occurs: one that is left an odd number of times must be an end."

    def search(self, end, tiles):
        """A way to lay the tiles; `DeadEndError` when there is none."""
        if not tiles:
            return []
        for tile in tiles:
            if end in tile:
                rest = [other for other in tiles if other != tile]
                try:
                    return [f"{tile[0]}{tile[1]}", *self.search(sum(tile) - end, rest)]
                except DeadEndError:
                    continue
        raise DeadEndError(f"nothing fits {end}")

    def solution(self):
        return [f"lay {name}" for name in self.search(self.end, self.tiles)]
