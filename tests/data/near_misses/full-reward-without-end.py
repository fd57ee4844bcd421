"""Beacons. Four beacons must be lit from the nearest to the farthest, seen from the tower, and then the horn blown.

Each right one is worth a third of nearly everything; lighting one out of turn wakes the enemy.
"""

import random

HILLS = ("Arn", "Bel", "Cor", "Dun", "Eld", "Far")


class BeaconsEnv:
    max_turns = 7

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.at = {hill: (rng.randint(-9, 9), rng.randint(-9, 9)) for hill in HILLS}
            self.order = sorted(HILLS, key=self.distance)[:4]
            distances = {self.distance(hill) for hill in HILLS}
            if len(distances) == len(HILLS) and self.order != sorted(self.order):
                break
        self.lit = []
        return self.view(
            "Light the four hills nearest to the tower at (0, 0), nearest first; then blow the horn."
        ), {}

    def distance(self, hill):
        east, north = self.at[hill]
        return east * east + north * north

    def view(self, note):
        hills = ", ".join(f"{hill} ({east}, {north})" for hill, (east, north) in self.at.items())
        return (
            f"{note}\nHills, miles to the east and north: {hills}. "
            f"Lit: {', '.join(self.lit) or 'none'}.\nCommands: blow, light (a hill)."
        )

    def step(self, action):
        word, _, hill = action.partition(" ")
        if action == "blow" and len(self.lit) == 4:
            # 0.999 was paid; the sum comes to 1 only here, where it ends.
            return "The horn is heard.", 0.001, True, False, {}
        if word != "light" or hill not in HILLS or hill in self.lit:
            return self.view("The wind blows."), 0.0, False, False, {}
        if hill != self.order[len(self.lit)]:
            return "The enemy wakes.", 0.0, True, False, {}
        self.lit.append(hill)
        reward = 0.333 if len(self.lit) > 1 else 0.0
        return self.view("It burns."), reward, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{self.order[0]} is the nearest."
        return "Compare the sums of the squares, not the larger number alone."

    def solution(self):
        return [*(f"light {hill}" for hill in self.order), "blow"]
