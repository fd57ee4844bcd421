"""Counterweights. Hang weights on the rope until they hold the bell, then ring it.

Eight weights lie there and exactly four of them together are as heavy as the bell. Ring with any other load and the
rope snaps.
"""

import random
from itertools import combinations


class CounterweightsEnv:
    max_turns = 12

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.weights = rng.sample(range(11, 60), 8)
            self.load = rng.sample(self.weights, 4)
            fits = [four for four in combinations(self.weights, 4) if sum(four) == sum(self.load)]
            if len(fits) == 1:
                break
        self.bell, self.hung = sum(self.load), []
        return self.view(f"Goal: hang four weights of {self.bell} pounds in all, then ring."), {}

    def view(self, note):
        left = ", ".join(str(weight) for weight in self.weights if weight not in self.hung)
        return f"{note}\nBell: {self.bell}. On the floor: {left}.\nCommands: hang <pounds>, ring."

    def step(self, action):
        verb, _, word = action.partition(" ")
        if action == "ring":
            if len(self.hung) == 4 and sum(self.hung) == self.bell:
                return "The bell rings.", 1.0, True, False, {}
            return "The rope snaps.", 0.0, True, False, {}
        if verb == "hang" and word.isdigit():
            pounds = int(word)  # "\u00b2" is a digit to str.isdigit, and no number to int
            if pounds in self.weights and pounds not in self.hung:
                self.hung.append(pounds)
                return self.view("It hangs."), 0.0, False, False, {}
            return self.view("There is no such weight."), 0.0, False, False, {}
        return self.view("Hang a weight, or ring."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Take the last digits first: few sets of four end like the bell's weight."

    def solution(self):
        return [*(f"hang {pounds}" for pounds in self.load), "ring"]
