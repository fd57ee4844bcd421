"""Lamp rooms. Nine rooms in a square, some of them lit; a rope in a room changes its lamp and those beside it.

The game is won when all lamps are out. Rooms have the letters a to i, row by row.
"""

import random

ROOMS = "abcdefghi"


class LampRoomsEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.ropes = rng.sample(ROOMS, rng.randint(4, 6))
        self.lit = set()
        for room in self.ropes:
            self.pull(room)
        return self.view("Goal: all lamps out."), {"lit": sorted(self.lit)}

    def pull(self, room):
        at = ROOMS.index(room)
        for other, name in enumerate(ROOMS):
            if abs(at // 3 - other // 3) + abs(at % 3 - other % 3) <= 1:
                self.lit ^= {name}

    def view(self, note):
        rows = [
            " ".join("O" if room in self.lit else "." for room in ROOMS[at : at + 3])
            for at in (0, 3, 6)
        ]
        return "\n".join([note, *rows, "Command: pull <letter>, a to i."])

    def step(self, action):
        verb, _, room = action.partition(" ")
        if verb != "pull" or len(room) != 1 or room not in ROOMS:
            return self.view("No such rope."), 0.0, False, False, {"lit": self.lit}
        self.pull(room)
        if not self.lit:
            return "Dark.", 1.0, True, False, {"lit": self.lit}
        return self.view("The lamps change."), 0.0, False, False, {"lit": self.lit}

    def hint(self, level=2):
        return (
            "Settle the first row, then only the second one can mend it. No rope is needed twice."
        )

    def solution(self):
        return [f"pull {room}" for room in self.ropes]
