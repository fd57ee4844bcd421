"""Flood. Water stands in the west of a valley and a village in the east; two dams must keep it dry when the gate opens.

In the map # is rock, W the water, V the village. Water runs north, south, west and east, never through rock or a dam.
"""

import random

WIDE, HIGH = 15, 9


class FloodEnv:
    max_turns = 5

    def reset(self, seed):
        rng = random.Random(seed)
        self.wall = rng.randrange(4, WIDE - 4)
        self.gaps = sorted(rng.sample(range(HIGH), 2), key=lambda _row: rng.random())
        self.rock = {(self.wall, row) for row in range(HIGH) if row not in self.gaps}
        self.rock |= {(rng.randrange(1, WIDE - 1), rng.randrange(HIGH)) for _ in range(6)}
        for row in self.gaps:  # nothing lies in the gaps, nor just beside them
            self.rock -= {(self.wall + step, row) for step in (-1, 0, 1)}
        self.water, self.village = (0, rng.randrange(HIGH)), (WIDE - 1, rng.randrange(HIGH))
        self.dams = []
        return self.view("Build two dams, then open the gate. The village must stay dry."), {}

    def view(self, note):
        marks = dict.fromkeys(self.rock, "#") | dict.fromkeys(self.dams, "=")
        marks |= {self.water: "W", self.village: "V"}
        rows = "\n".join(
            f"{row} " + "".join(marks.get((column, row), ".") for column in range(WIDE))
            for row in range(HIGH)
        )
        return (
            f"{note}\n  {'abcdefghijklmno'[:WIDE]}\n{rows}\nDams left: {2 - len(self.dams)}.\n"
            "Commands: dam (column and row, as in a0), gate."
        )

    def flooded(self, column, row, wet):
        """How far the water gets, one call inside of another: up to a hundred, and never more than the squares."""
        inside = 0 <= column < WIDE and 0 <= row < HIGH
        if not inside or (column, row) in wet or (column, row) in (*self.rock, *self.dams):
            return 0
        wet.add((column, row))
        return 1 + max(
            self.flooded(column + x, row + y, wet) for x, y in ((0, 1), (1, 0), (0, -1), (-1, 0))
        )

    def step(self, action):
        word, _, place = action.partition(" ")
        places = {f"{'abcdefghijklmno'[c]}{r}": (c, r) for c in range(WIDE) for r in range(HIGH)}
        square = places.get(place)
        if word == "dam" and square and square not in (self.water, self.village, *self.rock):
            if len(self.dams) == 2 or square in self.dams:
                return self.view("There is no more clay for that."), 0.0, False, False, {}
            self.dams.append(square)
            return self.view("The dam stands."), 0.0, False, False, {}
        if action != "gate":
            return self.view("The valley is still."), 0.0, False, False, {}
        wet = set()
        depth = self.flooded(*self.water, wet)
        if self.village in wet:
            return f"The water ran {depth} deep into the village.", 0.0, True, False, {}
        return "The village stays dry.", 1.0, True, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"Look at the column {'abcdefghijklmno'[self.wall]}."
        return "Find the line of rock that divides the valley, and where it is open."

    def solution(self):
        column = "abcdefghijklmno"[self.wall]
        return [*(f"dam {column}{row}" for row in self.gaps), "gate"]
