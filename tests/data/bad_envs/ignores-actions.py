"""Coast radio. Six calls come in, one a turn, and each is answered with the lamp of its wind.

The table on the wall says which lamp belongs to which wind. The watch is won when all answers were right.
"""

import random

WINDS = ("north", "east", "south", "west")
LAMPS = ("red", "green", "white", "amber", "blue", "violet")


class CoastRadioEnv:
    max_turns = 6

    def reset(self, seed):
        rng = random.Random(seed)
        self.lamp = dict(zip(WINDS, rng.sample(LAMPS, 4), strict=True))
        self.calls = rng.sample(WINDS * 2, self.max_turns)
        self.turn = 0
        self.right = 0
        table = ", ".join(f"{wind} {lamp}" for wind, lamp in self.lamp.items())
        return f"On the wall: {table}. Goal: six right answers.\n{self.call()}", {}

    def call(self):
        return f"Call {self.turn + 1}: wind from {self.calls[self.turn]}.\nCommand: show <lamp>."

    def step(self, action):
        self.right += action == f"show {self.lamp[self.calls[self.turn]]}"
        self.turn += 1
        if self.turn == self.max_turns:
            return "The watch is over.", float(self.right == self.turn), True, False, {}
        return self.call(), 0.0, False, False, {}

    def hint(self, level=2):
        return "Look each wind up in the table that you were shown first."

    def solution(self):
        return [f"show {self.lamp[wind]}" for wind in self.calls]
