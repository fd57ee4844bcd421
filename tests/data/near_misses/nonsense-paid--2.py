"""Glaze kiln. Load one wood, light it, and draw the pots at the very heat that the glaze asks for.

Once it is lit the kiln gets hotter every turn, whatever is said. Reaching the heat pays a quarter; drawing the pots at
that heat, not a turn too soon or too late, wins. A wood that does not meet the heat exactly spoils the pots.
"""

import random

WOODS = ("ash", "beech", "larch", "pine", "willow", "yew")


class GlazeKilnEnv:
    max_turns = 12

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.start = rng.randint(20, 90)
            self.rise = dict(zip(WOODS, rng.sample(range(71, 199), len(WOODS)), strict=True))
            self.best, turns = rng.choice(WOODS), rng.randint(4, 7)
            self.asked = self.start + turns * self.rise[self.best]
            if sum((self.asked - self.start) % rise == 0 for rise in self.rise.values()) == 1:
                break
        self.way = [f"load {self.best}", "light", *["wait"] * turns, "draw"]
        self.heat, self.wood, self.lit, self.paid = self.start, None, False, 0.0
        woods = ", ".join(f"{wood} {rise}" for wood, rise in self.rise.items())
        return self.view(f"Degrees a turn: {woods}. The glaze asks for {self.asked}."), {}

    def view(self, note):
        return f"{note}\nHeat: {self.heat}.\nCommands: load <wood>, light, wait, draw."

    def step(self, action):
        if action == "draw":
            right = self.lit and self.heat == self.asked
            note = "Glass-clear glaze." if right else "Spoilt."
            return note, 1.0 - self.paid if right else 0.0, True, False, {}
        verb, _, wood = action.partition(" ")
        if self.lit:
            self.heat += self.rise[self.wood]
            if self.heat == self.asked:
                self.paid = 0.25
                return self.view("The cone bends."), self.paid, False, False, {}
            return self.view("It roars."), 0.0, False, False, {}
        if verb == "load" and wood in self.rise:
            self.wood = wood
            return self.view("Stacked."), 0.0, False, False, {}
        if action == "light" and self.wood is not None:
            self.lit = True
            return self.view("It burns."), 0.0, False, False, {}
        return self.view("The kiln is cold."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Only one wood divides what is missing without a rest. Count the turns, or watch the heat."

    def solution(self):
        return list(self.way)
