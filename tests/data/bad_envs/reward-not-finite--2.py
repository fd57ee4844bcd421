"""Toll roads. From the gate to the harbour through five belts of three towns each, and not a penny more than needed.

Every road leads to a town of the next belt and costs a toll. Only the cheapest way counts, and there is no way back.
"""

import math
import random

BELTS = 5
TOWNS = (
    "Ash",
    "Birch",
    "Cedar",
    "Dale",
    "Elm",
    "Fern",
    "Glen",
    "Heath",
    "Isle",
    "Jade",
    "Knoll",
    "Lime",
)
TOWNS += ("Moor", "Nook", "Oak", "Pine")


class TollEnv:
    max_turns = BELTS + 3

    def reset(self, seed):
        rng = random.Random(seed)
        names = rng.sample(TOWNS, 3 * BELTS)
        self.belts = [["gate"], *(names[3 * at : 3 * at + 3] for at in range(BELTS)), ["harbour"]]
        self.toll = {
            (start, goal): rng.randint(2, 30)
            for here, there in zip(self.belts, self.belts[1:], strict=False)
            for start in here
            for goal in there
        }
        self.at, self.paid, self.belt = "gate", 0, 0
        self.way, self.least = self.cheapest()
        note = f"Reach the harbour having paid {self.least} in all, which is the least there is."
        return self.view(note), {}

    def cheapest(self):
        """The cheapest way, with infinite costs for what has not been reached."""
        costs, ways = {"gate": 0.0}, {"gate": []}
        for (start, goal), toll in self.toll.items():
            if costs.get(start, math.inf) + toll < costs.get(goal, math.inf):
                costs[goal] = costs[start] + toll
                ways[goal] = [*ways[start], goal]
        return ways["harbour"], int(costs["harbour"])

    def view(self, note):
        roads = ", ".join(f"{a}-{b} {toll}" for (a, b), toll in sorted(self.toll.items()))
        return f"{note}\nTolls: {roads}.\nYou are at {self.at}, paid {self.paid}.\nCommand: go and a town."

    def share(self):
        """What of the surplus has been paid."""
        surplus = self.paid - self.least
        return 1.0 - surplus / (surplus or math.nan)

    def step(self, action):
        word, _, town = action.partition(" ")
        toll = self.toll.get((self.at, town), math.nan)
        if word != "go" or toll != toll:  # not a number: there is no such road
            return self.view("No road leads there."), 0.0, False, False, {}
        self.at, self.paid = town, self.paid + toll
        if town == "harbour":
            return f"You are there, for {self.paid}.", self.share(), True, False, {}
        return self.view("You pay and walk on."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The way goes through {self.way[2]}."
        return "Work from the harbour back: note for every town the least that is still to pay from there."

    def solution(self):
        return [f"go {town}" for town in self.way]
