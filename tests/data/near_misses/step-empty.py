"""Night post. Carry three letters to their doors along a street of nine houses; at night nobody speaks much.

Each letter names its door by the doors beside it. A letter at a wrong door is lost, and the round with it. When the
round is over nothing more is said.
"""

import random

NAMES = (
    "Ames",
    "Birk",
    "Cole",
    "Dorn",
    "Esk",
    "Fane",
    "Gill",
    "Hoy",
    "Ives",
    "Judd",
    "Kerr",
    "Lind",
)


class NightPostEnv:
    max_turns = 30

    def reset(self, seed):
        rng = random.Random(seed)
        self.street = rng.sample(NAMES, 9)
        self.doors = rng.sample(range(1, 8), 3)
        self.at, self.sent = rng.randrange(9), 0
        self.first = self.at
        return f"A street of nine doors, some to the left, some to the right.\n{self.view()}", {}

    def view(self):
        door = self.doors[self.sent]
        one, other = sorted((self.street[door - 1], self.street[door + 1]))
        return (
            f"On this door: {self.street[self.at]}. Letter {self.sent + 1} of 3 is for the door between "
            f"{one} and {other}.\nCommands: left, right, post."
        )

    def step(self, action):
        if action == "post":
            if self.at != self.doors[self.sent]:
                return "", 0.0, True, False, {}
            self.sent += 1
            if self.sent == len(self.doors):
                return "", 1.0, True, False, {}
        elif action in ("left", "right"):
            self.at = min(8, max(0, self.at + (1 if action == "right" else -1)))
        else:
            return "...", 0.0, False, False, {}
        return self.view(), 0.0, False, False, {}

    def hint(self, level=2):
        return "Write the names down in order while you walk, and do not post before you saw both neighbours."

    def solution(self):
        actions, at = [], self.first
        for door in self.doors:
            actions += ["right" if door > at else "left"] * abs(door - at)
            actions.append("post")
            at = door
        return actions
