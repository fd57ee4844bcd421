"""Rolling die. Roll a die over a board of four by four, so that it comes to rest on a square with a number on top.

A roll turns the die over one edge onto the next square. Opposite sides add up to seven.
"""

import random
from enum import StrEnum


class Way(StrEnum):
    """The ways to roll; members of a StrEnum are not plain texts, and `solution` makes them so."""

    NORTH = "north"
    SOUTH = "south"
    WEST = "west"
    EAST = "east"


STEPS = {Way.NORTH: (0, -1), Way.SOUTH: (0, 1), Way.WEST: (-1, 0), Way.EAST: (1, 0)}


def rolled(state, way):
    """The state after a roll: column, row, and the sides on top, to the north and to the west."""
    column, row, top, north, west = state
    x, y = STEPS[way]
    if not (0 <= column + x < 4 and 0 <= row + y < 4):
        return None
    if way is Way.NORTH:
        top, north = 7 - north, top
    elif way is Way.SOUTH:
        top, north = north, 7 - top
    elif way is Way.WEST:
        top, west = 7 - west, top
    else:
        top, west = west, 7 - top
    return column + x, row + y, top, north, west


class DieEnv:
    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.state = (rng.randrange(4), rng.randrange(4), 1, 2, 3)
        ways = {self.state: ()}
        queue = [self.state]
        for state in queue:
            for way in Way:
                after = rolled(state, way)
                if after is not None and after not in ways:
                    ways[after] = (*ways[state], way)
                    queue.append(after)
        first = {}
        for state in queue:  # the nearest state for each square and top
            first.setdefault(state[:3], state)
        self.goal, state = rng.choice([one for one in first.items() if len(ways[one[1]]) >= 6])
        self.way = ways[state]
        column, row, top = self.goal
        return self.view(f"Rest on column {column + 1}, row {row + 1}, with {top} on top."), {}

    def view(self, note):
        column, row, top, north, west = self.state
        return (
            f"{note}\nThe die is on column {column + 1}, row {row + 1} of a board of four by four; "
            f"{top} is on top, {north} to the north, {west} to the west.\n"
            "Command: roll and south, east, north or west; row 1 is the northernmost."
        )

    def step(self, action):
        word, _, name = action.partition(" ")
        after = rolled(self.state, Way(name)) if word == "roll" and name in list(Way) else None
        if after is None:
            return self.view("The die does not move."), 0.0, False, False, {}
        self.state = after
        if after[:3] == self.goal:
            return "There it rests.", 1.0, True, False, {}
        return self.view("It tumbles."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{len(self.way)} rolls will do, the first to the {self.way[0]}."
        return "A way there and the same way back leave the die as it was; a small circle turns it."

    def solution(self):
        return list(map(str.strip, [f"roll {way} " for way in self.way]))
