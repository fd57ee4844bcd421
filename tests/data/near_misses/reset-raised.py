"""Knight among holes. Bring a knight over a board of six by six to a far square; some squares are holes.

A knight moves two squares along a row or column and one to the side, and may jump over holes, not into them.
"""

import random

SQUARES = tuple(f"{column}{row}" for row in "123456" for column in "uvwxyz")


class UnreachableError(Exception):
    """The goal cannot be reached, or it is too near."""


def jumps(square):
    """The squares that a knight can go to from one."""
    column, row = "uvwxyz".index(square[0]), int(square[1])
    for x, y in ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)):
        if 0 <= column + x < 6 and 1 <= row + y <= 6:
            yield f"{'uvwxyz'[column + x]}{row + y}"


class KnightEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        for share in range(100):
            try:
                self.lay_out(rng, holes=12 if share < 90 else 6)
            except UnreachableError:
                continue  # raised inside of reset, and it does not get out
            break
        return self.view(f"Bring the knight to {self.goal}."), {}

    def lay_out(self, rng, holes):
        """Draw a board; `UnreachableError` when it is no good."""
        self.at, self.goal, *rest = rng.sample(SQUARES, 2 + holes)
        self.holes = sorted(rest)
        self.way = self.search()
        if len(self.way) < 4:
            raise UnreachableError(f"{self.at} is too near")

    def search(self):
        ways = {self.at: []}
        queue = [self.at]
        for square in queue:
            for following in jumps(square):
                if following not in ways and following not in self.holes:
                    ways[following] = [*ways[square], following]
                    queue.append(following)
        try:
            return ways[self.goal]
        except KeyError as error:
            raise UnreachableError(self.goal) from error

    def view(self, note):
        return (
            f"{note}\nColumns u to z, rows 1 to 6. The knight is on {self.at}. "
            f"Holes: {' '.join(self.holes)}.\nCommand: jump and a square."
        )

    def step(self, action):
        word, _, square = action.partition(" ")
        if word != "jump" or square not in jumps(self.at):
            return self.view("The knight cannot do that."), 0.0, False, False, {}
        if square in self.holes:
            return "The knight is gone.", 0.0, True, False, {}
        self.at = square
        if square == self.goal:
            return "The knight is there.", 1.0, True, False, {}
        return self.view("Hop."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{len(self.way)} jumps will do; the first is to {self.way[0]}."
        return "Mark the squares from which one jump wins, then those from which two do, and so on back."

    def solution(self):
        return [f"jump {square}" for square in self.way]
