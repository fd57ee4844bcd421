"""Ice maze. Slide over a frozen pond to the hut without falling into one of the holes.

`go north`, `go east`, `go south` and `go west` move one field; fields are told by letters from west to east and numbers
from south to north. `knock` at the hut wins. Falling in, or leaving the ice, ends it.
"""

import random

WAYS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
SIZE = 5


class IceMazeEnv:
    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.path = ["north"] * 3 + ["east"] * 3
        rng.shuffle(self.path)
        self.start = self.at = (rng.randint(0, 1), rng.randint(0, 1))
        fields, at = [self.start], self.start
        for way in self.path:
            at = at[0] + WAYS[way][0], at[1] + WAYS[way][1]
            fields.append(at)
        self.hut = at
        self.holes = {(x, y) for x in range(SIZE) for y in range(SIZE)} - set(fields)
        told = " ".join(sorted(map(self.name, self.holes)))
        return self.view(
            f"Holes: {told}. The hut stands at {self.name(self.hut)}. Goal: knock at the hut."
        ), {}

    def name(self, field):
        return f"{'ABCDE'[field[0]]}{field[1] + 1}"

    def view(self, note):
        return f"{note}\nYou stand at {self.name(self.at)}. Commands: go <north, east, south or west>, knock."

    def step(self, action):
        words = action.split()
        if len(words) == 2 and words[0] == "go" and words[1] in WAYS:
            x, y = WAYS[words[1]]
            self.at = self.at[0] + x, self.at[1] + y
            if self.at in self.holes or not (0 <= self.at[0] < SIZE and 0 <= self.at[1] < SIZE):
                return "You break in.", 0.0, True, False, {}
            return self.view("You slide."), 0.0, False, False, {}
        if words == ["knock"] and self.at == self.hut:
            return "The door opens.", 1.0, True, False, {}
        return self.view("You stand still."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Strike out the holes, and see which fields are left."
        return f"Here is the way: {', then '.join(self.solution())}."

    def solution(self):
        return [*(f"go {way}" for way in self.path), "knock"]
