"""Buried chest. A chest is buried somewhere on a moor, at least six paces from where you stand, and only warmth tells.

Each pace says whether the chest is nearer than before. Dig where it is; the spade lasts for two holes.
"""

import random

COMPASS = {"north": (0, 1), "south": (0, -1), "west": (-1, 0), "east": (1, 0)}


class MoorEnv:
    max_turns = 24

    def reset(self, seed):
        rng = random.Random(seed // 1000)
        while True:
            self.chest = (rng.randint(-8, 8), rng.randint(-8, 8))
            if 6 <= abs(self.chest[0]) + abs(self.chest[1]) <= 14:
                break
        self.at, self.holes = (0, 0), 0
        return self.view("Somewhere on this moor lies a chest, six paces away or more."), {}

    def view(self, note):
        return f"{note}\nCommands: dig, walk (south, east, north or west)."

    def away(self):
        return abs(self.chest[0] - self.at[0]) + abs(self.chest[1] - self.at[1])

    def step(self, action):
        word, _, way = action.partition(" ")
        if action == "dig":
            if self.at == self.chest:
                return "The spade strikes wood.", 1.0, True, False, {}
            self.holes += 1
            if self.holes == 2:
                return "The spade breaks.", 0.0, True, False, {}
            return self.view("Nothing but peat."), 0.0, False, False, {}
        if word != "walk" or way not in COMPASS:
            return self.view("Fog."), 0.0, False, False, {}
        before = self.away()
        self.at = (self.at[0] + COMPASS[way][0], self.at[1] + COMPASS[way][1])
        return self.view("Warmer." if self.away() < before else "Colder."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"It is {self.away()} paces away, {abs(self.chest[0])} of them along one line."
        return "Go on in a line while it gets warmer; one pace back when it turns cold, and then across."

    def solution(self):
        east, north = self.chest
        ways = ["east" if east > 0 else "west"] * abs(east)
        ways += ["north" if north > 0 else "south"] * abs(north)
        return [*(f"walk {way}" for way in ways), "dig"]
