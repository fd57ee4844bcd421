"""Two bells. Nine bells hang in a tower; strike the two that the letter means, the heavier one first.

Two strokes are all it takes, and the first stroke of a wrong bell wakes the town. The letter gives the sum of the two
weights and their difference.
"""

import random

METALS = ("brass", "copper", "gilt", "iron", "lead", "silver", "steel", "tin", "zinc")


class TowerEnv:
    max_turns = 6

    def reset(self, seed):
        rng = random.Random(seed)
        weights = rng.sample(range(11, 60), len(METALS))
        self.weights = dict(zip(METALS, weights, strict=True))
        while True:
            pair = rng.sample(METALS, 2)
            self.heavy, self.light = sorted(pair, key=self.weights.get, reverse=True)
            if self.weights[self.heavy] - self.weights[self.light] > 4:
                break
        self.struck = 0
        table = ", ".join(f"{metal} {weight}" for metal, weight in self.weights.items())
        heavy, light = self.weights[self.heavy], self.weights[self.light]
        return self.view(
            f"The bells and their weights: {table}. The letter says: two bells, together {heavy + light}, the "
            f"one {heavy - light} more than the other. First the heavy one."
        ), {}

    def view(self, note):
        return f"{note}\nStrokes: {self.struck} of 2. Commands: `strike <bell>`, `listen`."

    def step(self, action):
        words = action.split()
        if words == ["listen"]:
            return self.view("Only the wind."), 0.0, False, False, {}
        if len(words) != 2 or words[0] != "strike" or words[1] not in self.weights:
            return self.view("The ropes hang still."), 0.0, False, False, {}
        if words[1] != (self.heavy, self.light)[self.struck]:
            return "Windows light up all over the town.", 0.0, True, False, {}
        self.struck += 1
        if self.struck == 2:
            return "In the wall a small door opens.", 1.0, True, False, {}
        return self.view("The stroke dies away, and something clicks."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Half of the sum and half of the difference: added they are the one weight, subtracted the other."

    def solution(self):
        return [f"strike {self.heavy}", f"strike {self.light}"]
