"""Bridge at night. Five people cross a bridge with one lamp; at most two go at once, at the pace of the slower one.

The lamp must be carried: two cross, one comes back, until all are over. The lamp burns just long enough for the
best way.
"""

import random
from typing import Generic, TypeVar

Who = TypeVar("Who")


class Crossing(Generic[Who]):
    """Has the reset; its subclass names it with a type in brackets."""

    def reset(self, seed):
        rng = random.Random(seed)
        names = rng.sample(["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus"], 5)
        self.minutes = dict(zip(names, rng.sample(range(1, 20), 5), strict=True))
        self.here, self.there = list(names), []
        self.lamp_here = True
        _, self.left = self.plan()
        return self.view(
            "All five must get over the bridge, at most two at once and never without the lamp."
        ), {}


class BridgeEnv(Crossing[str]):
    max_turns = 9

    def view(self, note):
        people = ", ".join(f"{name} {minutes}" for name, minutes in self.minutes.items())
        return (
            f"{note}\nMinutes: {people}. Here: {' '.join(self.here) or 'nobody'}. "
            f"There: {' '.join(self.there) or 'nobody'}. The lamp is "
            f"{'here' if self.lamp_here else 'there'} and burns {self.left} minutes more.\n"
            "Command: cross and one name or two."
        )

    def step(self, action):
        start, goal = (self.here, self.there) if self.lamp_here else (self.there, self.here)
        word, *names = action.split()[:4] or [""]
        if word != "cross" or not 0 < len(set(names)) == len(names) < 3 or set(names) - set(start):
            return self.view("Nobody moves."), 0.0, False, False, {}
        for name in names:
            start.remove(name)
            goal.append(name)
        self.lamp_here = not self.lamp_here
        self.left -= max(self.minutes[name] for name in names)
        if self.left < 0:
            return "The lamp goes out on the bridge.", 0.0, True, False, {}
        if not self.here:
            return "All are over.", 1.0, True, False, {}
        return self.view("They cross."), 0.0, False, False, {}

    def plan(self):
        """The best way, and how long it takes: the two slowest together, or each with the fastest."""
        people, moves = sorted(self.minutes, key=self.minutes.get), []
        a, b = people[:2]
        while len(people) > 3:
            c, d = people[-2:]
            together = self.minutes[a] + 2 * self.minutes[b] + self.minutes[d]
            alone = 2 * self.minutes[a] + self.minutes[c] + self.minutes[d]
            moves += [[a, b], [a], [c, d], [b]] if together < alone else [[a, d], [a], [a, c], [a]]
            people = people[:-2]
        moves += [[a, people[2]], [a], [a, b]]
        return moves, sum(max(self.minutes[name] for name in names) for names in moves)

    def hint(self, level=2):
        if level == 3:
            return "First the two fastest go, or the fastest takes the slowest: count both."
        return "Two slow ones should share a crossing, if somebody fast is waiting to bring the lamp back."

    def solution(self):
        return ["cross " + " ".join(names) for names in self.plan()[0]]
