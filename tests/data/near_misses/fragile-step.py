"""Worn crane. Swing the crane over a crate, lift it, swing it over the barge and lower it.

`swing` takes whole degrees, clockwise or, below zero, the other way. The gear is worn: for each degree named the crane
turns by two to five, always the same number. Lowering beside the barge drowns the crate.
"""

import random


class WornCraneEnv:
    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.gear = rng.choice((2, 3, 4, 5))
        first, second = rng.sample(range(5, 34), 2)
        self.crate, self.barge = 2 * first * self.gear % 360, 2 * second * self.gear % 360
        self.bearing, self.loaded = 0, False
        self.way = [f"swing {2 * first}", "lift", f"swing {2 * (second - first)}", "lower"]
        return self.view(
            f"Crate at {self.crate}, barge at {self.barge}. Goal: the crate aboard."
        ), {}

    def view(self, note):
        hook = "a crate" if self.loaded else "nothing"
        return (
            f"{note}\nThe crane stands at {self.bearing}; on the hook: {hook}.\n"
            "Commands: swing <degrees>, lift, lower."
        )

    def step(self, action):
        if action == "lift" and self.bearing == self.crate:
            self.loaded = True
            return self.view("Up it goes."), 0.0, False, False, {}
        if action == "lower" and self.loaded:
            aboard = self.bearing == self.barge
            return "Aboard." if aboard else "Splash.", float(aboard), True, False, {}
        verb, _, word = action.partition(" ")
        if verb != "swing":
            return self.view("The hook sways."), 0.0, False, False, {}
        try:
            degrees = int(word)  # takes digits of any script, and raises for all else
        except ValueError:
            return self.view("Degrees are a whole number."), 0.0, False, False, {}
        if abs(degrees) > 180:
            return self.view("Not more than half a turn."), 0.0, False, False, {}
        self.bearing = (self.bearing + degrees * self.gear) % 360
        return self.view("The crane swings."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Swing by one degree first, and see how far the crane really goes."

    def solution(self):
        return list(self.way)
