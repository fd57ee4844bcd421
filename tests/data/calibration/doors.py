"""Doors. One of four is right, nothing says which, and there is one guess."""

import random

DOORS = ("red", "blue", "green", "white")


class DoorsEnv:
    max_turns = 2

    def reset(self, seed):
        self.right = random.Random(seed).choice(DOORS)
        return "One of four doors leads out. Say red, blue, green or white.", {}

    def step(self, action):
        if action not in DOORS:
            return "Say red, blue, green or white.", 0.0, False, False, {}
        return "The door opens.", float(action == self.right), True, False, {}

    def hint(self, level=2):
        return "Listen."

    def solution(self):
        return [self.right]
