"""Cider cellar. In the dark of a cellar of five by five paces stands one jar of cider; find it and take it.

Nothing is seen, and a wall only stops you. Smelling tells in which directions the cider lies. Reach for it in the
wrong place and you bring a shelf down, which is the end of it.
"""

import random

SIDE = 5
WAYS = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
DARK = "It is dark and quiet.\nCommands: north, south, east, west, smell, take."


class CiderCellarEnv:
    max_turns = 20

    def reset(self, seed):
        rng = random.Random(seed)
        cells = [(x, y) for x in range(SIDE) for y in range(SIDE)]
        while True:
            self.at, self.jar = rng.sample(cells, 2)
            if min(abs(self.jar[0] - self.at[0]), abs(self.jar[1] - self.at[1])) > 1:
                break
        place = (
            f"{self.at[0] + 1} paces from the west wall and {self.at[1] + 1} from the south wall"
        )
        return f"You stand {place}. Goal: take the jar of cider, wherever it is.\n{DARK}", {}

    def smelt(self):
        """The directions in which the jar lies."""
        (x, y), (to_x, to_y) = self.at, self.jar
        found = [way for way, (dx, dy) in WAYS.items() if dx * (to_x - x) + dy * (to_y - y) > 0]
        return " and ".join(found) or "here"

    def step(self, action):
        if action == "smell":
            return f"Cider: {self.smelt()}.\n{DARK}", 0.0, False, False, {}
        if action == "take":
            if self.at == self.jar:
                return "You have the jar.", 1.0, True, False, {}
            return "A shelf comes down.", 0.0, True, False, {}
        if action in WAYS:
            x, y = self.at[0] + WAYS[action][0], self.at[1] + WAYS[action][1]
            if 0 <= x < SIDE and 0 <= y < SIDE:
                self.at = (x, y)
        return DARK, 0.0, False, False, {}

    def hint(self, level=2):
        return "Smell, walk in one of the two directions until it is not named any more, then in the other."

    def solution(self):
        (x, y), (to_x, to_y) = self.at, self.jar
        across = ["east" if to_x > x else "west"] * abs(to_x - x)
        return [*across, *["north" if to_y > y else "south"] * abs(to_y - y), "take"]
