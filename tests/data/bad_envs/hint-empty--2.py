"""Hidden ship. A ship of four squares lies straight in a sea of six by six; sink it with nine shots.

Each shot says whether it hit, and where the ship lies only its crew knows.
"""

import random

COLUMNS, ROWS = "abcdef", "123456"


class ShipEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        across = rng.random() < 0.5
        start, line = rng.randrange(3), rng.randrange(6)
        self.ship = [
            f"{COLUMNS[start + at]}{ROWS[line]}" if across else f"{COLUMNS[line]}{ROWS[start + at]}"
            for at in range(4)
        ]
        self.name = rng.choice(["Argo", "Beagle", "Fram", "Gjoa", "Vega", "Pinta", "Nina", "Dove"])
        self.shots = {}
        return self.view(f"The {self.name}, four squares long, hides in this sea. Sink her."), {}

    def view(self, note):
        rows = "\n".join(
            row + " " + "".join(self.shots.get(column + row, "~") for column in COLUMNS)
            for row in ROWS
        )
        return (
            f"{note}\n  {COLUMNS}\n{rows}\nShots left: {self.max_turns - len(self.shots)}. "
            "Command: fire and a square, its column and row."
        )

    def step(self, action):
        word, _, square = action.partition(" ")
        known = [column + row for row in ROWS for column in COLUMNS]
        if word != "fire" or square not in known or square in self.shots:
            return self.view("The gunner shrugs."), 0.0, False, False, {}
        self.shots[square] = "x" if square in self.ship else "o"
        if all(square in self.shots for square in self.ship):
            return f"The {self.name} sinks.", 1.0, True, False, {}
        note = "A hit!" if square in self.ship else "Water."
        return self.view(note), 0.0, False, False, {}

    def hint(self, level=2):
        parts = ["", "Go on beside a hit."[: 19 * (level > 1)], f" {self.ship[0]}?" * (level > 2)]
        return f"{''.join(parts).strip() or ''}\n\n"

    def solution(self):
        return [f"fire {square}" for square in self.ship]
