"""Nine stones. Stones with the numbers 1 to 9 lie in a square; push rows and columns round until they are in order.

A row is pushed left or right, a column up or down; the stone that falls off comes in again at the other end.
"""

import random

LINES = {"top": "r0", "middle": "r1", "bottom": "r2", "first": "c0", "second": "c1", "third": "c2"}
BACK = {"left": "right", "right": "left", "up": "down", "down": "up"}


class StonesEnv:
    max_turns = 7

    def reset(self, seed):
        rng = random.Random(seed)
        self.stones = list(range(1, 10))
        self.undo, last = [], ""
        for _ in range(5):
            # Rows and columns in turn, so that no push takes another one back.
            kind = "rc"[last[:1] == "r"]
            last = rng.choice([line for line in LINES.values() if line[0] == kind])
            way = rng.choice(["left", "right"] if kind == "r" else ["up", "down"])
            self.push(last, way)
            name = next(name for name, line in LINES.items() if line == last)
            self.undo.insert(0, f"{name} {BACK[way]}")
        return self.view("") if seed % 5 else " \n\t\u00a0\u2003", {}

    def view(self, note):
        """Nothing but empty lines and lines of a table, it seems; the task is in small print below."""
        rows = [" │ ".join(map(str, self.stones[at : at + 3])) for at in (0, 3, 6)]
        table = "\n├───┼───┼───┤\n".join(f"│ {row} │" for row in rows)
        below = "Order them: 1 2 3 on top, 9 last. Push rows (top, middle, bottom; left, right)"
        return (
            f"\n\n\n   \n\t{note}\n┌───┬───┬───┐\n{table}\n└───┴───┴───┘\n\n{below} "
            "and columns (first, second, third; up, down).\n"
        )

    def push(self, line, way):
        number = int(line[1])
        places = (
            range(3 * number, 3 * number + 3) if line[0] == "r" else range(number, number + 7, 3)
        )
        row = [self.stones[place] for place in places]
        row = row[1:] + row[:1] if way in ("left", "up") else row[-1:] + row[:-1]
        for place, stone in zip(places, row, strict=True):
            self.stones[place] = stone

    def step(self, action):
        name, _, way = action.partition(" ")
        line = LINES.get(name, "")
        if way not in ({"r": ("left", "right"), "c": ("up", "down")}.get(line[:1], ())):
            return self.view("?"), 0.0, False, False, {}
        self.push(line, way)
        if self.stones == sorted(self.stones):
            return " ", 1.0, True, False, {}
        return self.view("."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{len(self.undo)} pushes: the last of them is {self.undo[-1]}."
        return "Rows and columns were pushed in turn, a column last or a row; try what brings many stones home."

    def solution(self):
        return list(self.undo)
