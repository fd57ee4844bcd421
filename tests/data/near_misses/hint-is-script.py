"""Salt works. Boil brine down to the strength that the buyer asks for, and sell it under the right name.

The steps of the work are the same every day: `draw brine`, `light fire`, `boil <hours>`, `weigh salt`, `sell <grade>`.
Each hour of boiling adds two grades. Boiling and selling can be done once.
"""

import random


class SaltWorksEnv:
    max_turns = 12

    def reset(self, seed):
        rng = random.Random(seed)
        self.start, self.hours, self.boiled = rng.randint(10, 30), rng.randint(4, 28), 0
        self.wanted = self.start + 2 * self.hours
        self.stage = 0
        return self.view(
            f"Today's brine is of grade {self.start}; the buyer asks for grade {self.wanted}."
        ), {}

    def view(self, note):
        return f"{note}\nCommands: draw brine, light fire, boil <hours>, weigh salt, sell <grade>."

    def step(self, action):
        words = action.split()
        number = words[1] if len(words) == 2 else ""
        if words == ["draw", "brine"] and self.stage == 0:
            self.stage = 1
            return self.view("The pan is full."), 0.0, False, False, {}
        if words == ["light", "fire"] and self.stage == 1:
            self.stage = 2
            return self.view("It crackles."), 0.0, False, False, {}
        if (
            words[:1] == ["boil"]
            and self.stage == 2
            and number.isascii()
            and number.isdigit()
            and len(number) < 4
        ):
            self.stage, self.boiled = 3, int(number)
            return self.view("Steam rises."), 0.0, False, False, {}
        if words == ["weigh", "salt"] and self.stage == 3:
            self.stage = 4
            return self.view("It fills the sacks."), 0.0, False, False, {}
        if words[:1] == ["sell"] and self.stage == 4:
            if number == str(self.wanted) and self.boiled == self.hours:
                return "The buyer pays.", 1.0, True, False, {}
            return "The buyer spits it out.", 0.0, True, False, {}
        return self.view("Not now."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"Say {', then '.join(self.solution())}."
        return "Draw brine, then light fire; boil half as many hours as grades lack; then weigh salt, and sell."

    def solution(self):
        return [
            "draw brine",
            "light fire",
            f"boil {self.hours}",
            "weigh salt",
            f"sell {self.wanted}",
        ]
