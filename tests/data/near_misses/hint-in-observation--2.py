"""Post road. Ride through four towns to the coast, asking ostlers for the way, and name the toll at the end.

`ask` gets a piece of advice that every ostler gives; `ride <town>` goes on. Wrong towns cost a turn. At the coast
`pay <pence>` must be the tolls of the four towns together, and there is one try.
"""

import random

TOWNS = ("Ash", "Birk", "Cole", "Dunn", "Esk", "Fell")


class PostRoadEnv:
    max_turns = 16

    def reset(self, seed):
        rng = random.Random(seed)
        self.route = rng.sample(TOWNS, 4)
        self.toll = {town: rng.randint(11, 80) for town in TOWNS}
        self.at = 0
        listed = ", ".join(f"{town} {self.toll[town]}" for town in TOWNS)
        return self.view(
            f"Towns and tolls: {listed}. Goal: pay at the coast for the towns you rode through."
        ), {}

    def view(self, note):
        place = self.route[self.at - 1] if self.at else "the inn"
        return f"{note}\nYou are at {place}. Commands: ask, ride <town>, pay <pence>."

    def step(self, action):
        words = action.split()
        if words == ["ask"]:
            if self.at == len(self.route):
                return self.view("You see the coast."), 0.0, False, False, {}
            return (
                self.view(f"Keep a count of the tolls. The next town is {self.route[self.at]}."),
                0.0,
                False,
                False,
                {},
            )
        if len(words) == 2 and words[0] == "ride" and self.at < len(self.route):
            if words[1] != self.route[self.at]:
                return self.view("That road is under water."), 0.0, False, False, {}
            self.at += 1
            return self.view(f"You ride to {words[1]}."), 0.0, False, False, {}
        if len(words) == 2 and words[0] == "pay" and self.at == len(self.route):
            if words[1] == str(sum(self.toll[town] for town in self.route)):
                return "The ferryman lets you aboard.", 1.0, True, False, {}
            return "The ferryman turns away.", 0.0, True, False, {}
        return self.view("The horse shakes its head."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Ask before you ride."
        if level == 3:
            return f"The tolls of the four towns make {sum(self.toll[town] for town in self.route)} pence."
        return "Ask in each town, and keep a count of the tolls as you ride, without those of other towns."

    def solution(self):
        rides = [step for town in self.route for step in ("ask", f"ride {town}")]
        return [*rides, f"pay {sum(self.toll[town] for town in self.route)}"]
