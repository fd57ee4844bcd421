"""Bakehouse. Put three loaves into the oven so that all are done at the same moment, then open it.

Take the slow loaf first: the guild's rule is known to everybody. `bake <loaf>` puts a loaf in and passes one quarter of
an hour, `wait` passes one, `open` takes out what is in the oven, once. Each loaf must then have had just its time.
"""

import random

LOAVES = ("rye", "oat", "spelt", "wheat")


class BakehouseEnv:
    max_turns = 24

    def reset(self, seed):
        rng = random.Random(seed)
        self.orders = rng.sample(LOAVES, 3)
        self.needs = dict(zip(self.orders, rng.sample(range(3, 12), 3), strict=True))
        self.clock, self.since = 0, {}
        listed = ", ".join(f"{loaf} {self.needs[loaf]}" for loaf in self.orders)
        return self.view(
            f"Quarters of an hour that each loaf needs: {listed}. Goal: all three done when you open."
        ), {}

    def view(self, note):
        return (
            f"{note}\nIn the oven: {', '.join(self.since) or 'nothing'}. Take the slow loaf first, says the guild. "
            "Commands: bake <loaf>, wait, open."
        )

    def step(self, action):
        words = action.split()
        if words == ["open"] and self.since:
            times = {loaf: self.clock - start for loaf, start in self.since.items()}
            if times == self.needs:
                return "Three golden loaves.", 1.0, True, False, {}
            return (
                f"Coal or dough. The guild's advice would have been: {self.hint()}",
                0.0,
                True,
                False,
                {},
            )
        if (
            len(words) == 2
            and words[0] == "bake"
            and words[1] in self.orders
            and words[1] not in self.since
        ):
            self.since[words[1]] = self.clock
            self.clock += 1
            return self.view("The door shuts."), 0.0, False, False, {}
        if words == ["wait"]:
            self.clock += 1
            return self.view("It smells of bread."), 0.0, False, False, {}
        return self.view("The apprentice does not understand."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Take the slow loaf first."
        return "The difference between two times is what must pass between putting these two loaves in."

    def solution(self):
        slow, middle, quick = sorted(self.orders, key=lambda loaf: -self.needs[loaf])
        gap = self.needs[slow] - self.needs[middle] - 1
        gap2 = self.needs[middle] - self.needs[quick] - 1
        waits = self.needs[quick] - 1
        return [
            f"bake {slow}",
            *["wait"] * gap,
            f"bake {middle}",
            *["wait"] * gap2,
            f"bake {quick}",
            *["wait"] * waits,
            "open",
        ]
