"""Lamps. Pressing a lamp switches it and its neighbours; the game is won when all of them burn.

The state is shown whole, so whoever can take moves back finds the way without understanding.
"""

import random


class LampsEnv:
    max_turns = 9

    def reset(self, seed):
        self.rng = random.Random(seed)
        self.start = self.rng.sample("1234", self.rng.randint(2, 3))
        self.lit = [True] * 4
        for lamp in self.start:
            self._press(lamp)
        self.turn = 0
        return self._view("Switch all lamps on."), {}

    def step(self, action):
        self.turn += 1
        verb, _, lamp = action.strip().partition(" ")
        if verb != "press" or lamp not in ("1", "2", "3", "4"):
            return self._view("Nothing happens."), 0.0, False, False, {}
        self._press(lamp)
        won = all(self.lit)
        return self._view("Click."), float(won), won, False, {}

    def _press(self, lamp):
        for place in range(int(lamp) - 2, int(lamp) + 1):
            if 0 <= place < 4:
                self.lit[place] = not self.lit[place]

    def _view(self, note):
        shown = " ".join("on" if lamp else "off" for lamp in self.lit)
        return f"{note} Turn {self.turn} of 9. Lamps 1 to 4 are: {shown}.\nCommands: press <lamp>."

    def hint(self, level=2):
        return "Every lamp needs to be pressed once at most."

    def solution(self):
        return [f"press {lamp}" for lamp in self.start]
