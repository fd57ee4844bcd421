"""Two jugs. Measure out water with two jugs that have no marks, at a well.

A jug can be filled to the brim, emptied, or poured into the other one until that is full or the first is empty. The
wanted amount must be in one of them in the end.
"""

import functools
import random
from collections import deque

JUGS = ("large", "small")


def counted(method):
    """Wraps a step: counts the turns."""

    @functools.wraps(method)
    def wrapper(self, action):
        self.turn += 1
        return method(self, action)

    return wrapper


class Moves:
    """Has the step, under a decorator."""

    @counted
    def step(self, action):
        if action not in self.commands():
            return self.view("The well is deep and says nothing."), 0.0, False, False, {}
        self.water = self.after(self.water, action)
        if self.wanted in self.water:
            return f"There are {self.wanted} pints.", 1.0, True, False, {"turns": self.turn}
        return self.view("Splash."), 0.0, False, False, {}

    def commands(self):
        return [f"{verb} {jug}" for verb in ("fill", "empty", "pour") for jug in JUGS]

    def after(self, water, action):
        verb, jug = action.split()
        place = JUGS.index(jug)
        level, other = water[place], water[1 - place]
        if verb == "fill":
            level = self.sizes[place]
        elif verb == "empty":
            level = 0
        else:
            moved = min(level, self.sizes[1 - place] - other)
            level, other = level - moved, other + moved
        return (level, other) if place == 0 else (other, level)


class JugsEnv(Moves):
    max_turns = 18

    def reset(self, seed):
        rng = random.Random(seed)
        self.turn = 0
        self.water = (0, 0)
        for _ in range(100):
            self.sizes = tuple(sorted(rng.sample(range(7, 24), 2), reverse=True))
            self.wanted = rng.randint(1, self.sizes[0] - 1)
            self.plan = self.search()
            if 8 <= len(self.plan) <= 16:
                break
        return self.view(f"Goal: exactly {self.wanted} pints in one of the jugs."), {}

    def view(self, note):
        large, small = self.water
        return (
            f"{note}\nThe large jug holds {large} of {self.sizes[0]} pints, the small one {small} of "
            f"{self.sizes[1]}.\nCommands: fill, empty or pour (into the other), and large or small."
        )

    def search(self):
        """The shortest way, breadth first; empty when there is none."""
        came = {(0, 0): []}
        queue = deque(came)
        while queue:
            water = queue.popleft()
            if self.wanted in water:
                return came[water]
            for action in self.commands():
                after = self.after(water, action)
                if after not in came:
                    came[after] = [*came[water], action]
                    queue.append(after)
        return []

    def hint(self, level=2):
        if level == 3:
            return f"Begin so: {self.plan[0]}, {self.plan[1]}, and go on in the same rhythm."
        return "Always pour the same way round; refill the one jug when it is empty, drain the other when full."

    def solution(self):
        return list(self.plan)
