"""Sandbars. Pole a barge over four bars; tide and current come and go, whatever you do.

A bar is crossed when the mark shows at least as many feet as that bar needs, and by poling to the side that the
current does not set to. Any other push runs the barge aground, and the tow back begins before the first bar.
"""

import random

SIDES = {"port": "starboard", "starboard": "port"}


class SandbarsEnv:
    max_turns = 18

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.needs = [rng.randint(4, 7) for _ in range(4)]
            self.sea = [(rng.randint(2, 8), rng.choice(list(SIDES))) for _ in range(19)]
            self.bar = self.turn = 0
            self.way = self.plan()
            if self.way.count("wait") >= 3:
                break
        needs = ", ".join(map(str, self.needs))
        return f"Goal: cross all four bars. In order they need {needs} feet.\n{self.view()}", {}

    def plan(self):
        """Wait for water at each bar; empty when the tide leaves no time for it."""
        way, bar = [], 0
        for mark, current in self.sea[: self.max_turns - 2]:
            deep = mark >= self.needs[bar]
            way.append(f"pole {SIDES[current]}" if deep else "wait")
            bar += deep
            if bar == len(self.needs):
                return way
        return []

    def view(self):
        mark, current = self.sea[self.turn]
        return (
            f"The mark shows {mark} feet and the current sets to {current}. Gulls cry over the sand. "
            f"Bars behind you: {self.bar}.\nCommands: wait, pole port, pole starboard."
        )

    def step(self, action):
        mark, current = self.sea[self.turn]
        self.turn += 1
        if action in ("pole port", "pole starboard"):
            afloat = mark >= self.needs[self.bar] and action == f"pole {SIDES[current]}"
            self.bar = self.bar + 1 if afloat else 0
        if self.bar == len(self.needs):
            return "Open water.", 1.0, True, False, {}
        return self.view(), 0.0, False, False, {}

    def hint(self, level=2):
        return "Keep the four numbers in mind, wait for water, and push against the current."

    def solution(self):
        return list(self.way)
