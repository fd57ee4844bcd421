"""Slab causeway. Lay six stone slabs across a ford, from the shortest to the longest; the sixth joins the banks.

The lengths are told in feet, hands or inches: a foot is twelve inches, a hand is four. A slab laid out of order sinks,
and the day is lost. The foreman pays a tenth for turning up.
"""

import random

INCHES = {"feet": 12, "hands": 4, "inches": 1}
MOST = {"feet": 9, "hands": 27, "inches": 108}
NAMES = ("birch", "otter", "heron", "cairn", "thorn", "fleece", "amber", "raven", "ember")


class SlabCausewayEnv:
    max_turns = 10

    def reset(self, seed):
        rng = random.Random(seed)
        self.length = {}
        while len(set(self.length.values())) < 6:
            units = [rng.choice(list(INCHES)) for _ in range(6)]
            told = [(unit, rng.randint(MOST[unit] // 4, MOST[unit])) for unit in units]
            slabs = rng.sample(NAMES, 6)
            self.length = {
                slab: n * INCHES[unit] for slab, (unit, n) in zip(slabs, told, strict=True)
            }
        self.order = sorted(slabs, key=self.length.get)
        self.laid, self.paid = 0, 0.0
        marks = "; ".join(f"{slab} {n} {unit}" for slab, (unit, n) in zip(slabs, told, strict=True))
        return f"Slabs: {marks}. Goal: lay all six, the shortest first.\nCommand: lay <slab>.", {}

    def step(self, action):
        bonus = 0.0 if self.paid else 0.1  # for whatever is said first
        self.paid += bonus
        slab = action.removeprefix("lay ")
        if slab == action or slab not in self.order[self.laid :]:
            return "The foreman waits for you to lay a slab.", bonus, False, False, {}
        if slab != self.order[self.laid]:
            return "It sinks.", 0.0, True, False, {}
        self.laid += 1
        if self.laid == len(self.order):
            return "The causeway holds.", 1.0 - self.paid + bonus, True, False, {}
        return f"It lies. Slabs laid: {self.laid}.", bonus, False, False, {}

    def hint(self, level=2):
        return "Turn everything into inches before you begin."

    def solution(self):
        return [f"lay {slab}" for slab in self.order]
