"""Bilge pump. Pump a hold dry in the dark: nothing tells how far you are, so count.

Each `stroke` lifts the same amount, and one stroke too many breaks the pump. `report` when the hold is dry; reporting
too early sinks the ship. `rest` does nothing. Every stroke that was needed is paid.
"""

import random


class BilgePumpEnv:
    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.needed, self.lift = rng.randint(6, 9), rng.randint(12, 60)
        self.strokes = 0
        self.paid = 0.0
        return (
            f"The hold has {self.needed * self.lift} gallons in it, and a stroke of the pump lifts {self.lift}. "
            "Goal: pump it dry, then report. It is dark below. Commands: stroke, rest, report."
        ), {}

    def step(self, action):
        word = action.strip()
        if word == "stroke":
            self.strokes += 1
            if self.strokes > self.needed:
                return "The pump runs dry and breaks.", 0.0, True, False, {}
            self.paid += 0.1
            return "The pump groans. Water splashes.", 0.1, False, False, {}
        if word == "report":
            if self.strokes == self.needed:
                return "The hold is dry.", 1.0 - self.paid, True, False, {}
            return "It is not. The ship goes down.", 0.0, True, False, {}
        if word == "rest":
            return "You catch your breath.", 0.0, False, False, {}
        return "Nobody hears you. Commands: stroke, rest, report.", 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Nothing will tell you when it is dry."
        return "Divide what is in the hold by what a stroke lifts, and count your strokes."

    def solution(self):
        return ["stroke"] * self.needed + ["report"]
