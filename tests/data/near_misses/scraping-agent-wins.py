"""Paint shop. Mix what the card asks for, drop by drop, out of three pure paints, and show it.

Orange is one drop of red and one of yellow, green one of yellow and one of blue, purple one of red and one of blue. All
commands are on offer all the time, and none of them does harm, except for showing a wrong mixture.
"""

import random

PAINTS = ("red", "yellow", "blue")
MIXED = {"orange": ("red", "yellow"), "green": ("yellow", "blue"), "purple": ("red", "blue")}


class PaintEnv:
    max_turns = 20

    def reset(self, seed):
        rng = random.Random(seed)
        one, other = rng.sample(sorted(MIXED), 2)
        self.card = {one: rng.randint(1, 4), other: rng.randint(2, 3)}
        self.wanted = dict.fromkeys(PAINTS, 0)
        for colour, drops in self.card.items():
            for paint in MIXED[colour]:
                self.wanted[paint] += drops
        self.cup = dict.fromkeys(PAINTS, 0)
        parts = " and ".join(f"{drops} of {colour}" for colour, drops in self.card.items())
        return self.view(
            f"The card of the customer asks for {parts}, all in one cup, and nothing else."
        ), {}

    def view(self, note):
        held = sum(self.cup.values())
        return (
            f"{note}\nDrops in the cup: {held}.\n"
            "Commands: `drip red`, `drip yellow`, `drip blue`, `rinse` (empties the cup), `show`."
        )

    def step(self, action):
        words = action.split()
        if len(words) == 2 and words[0] == "drip" and words[1] in PAINTS:
            self.cup[words[1]] += 1
            return self.view("Plop."), 0.0, False, False, {}
        if words == ["rinse"]:
            self.cup = dict.fromkeys(PAINTS, 0)
            return self.view("The cup is clean."), 0.0, False, False, {}
        if words != ["show"]:
            return self.view("The brush is not for that."), 0.0, False, False, {}
        if self.cup == self.wanted:
            return "The customer takes the cup.", 1.0, True, False, {}
        return "The customer leaves.", 0.0, True, False, {}

    def hint(self, level=2):
        return "Split each colour of the card into its two paints, and add up what both need of the same one."

    def solution(self):
        drops = [f"drip {paint}" for paint in PAINTS for _ in range(self.wanted[paint])]
        return [*drops, "show"]
