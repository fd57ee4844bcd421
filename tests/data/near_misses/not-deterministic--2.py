"""Drift. Row a boat to an island while a current sets it, each time another way; the pilot foretells only the next one.

A stroke moves the boat by one, and then the current moves it by one. `land` when it is beside the island; anywhere else
there are rocks. The currents are drawn while it is played.
"""

import random
import time
from collections import deque

COMPASS = {"north": (0, 1), "south": (0, -1), "west": (-1, 0), "east": (1, 0), "rest": (0, 0)}
CURRENTS = ("north", "south", "west", "east")
STROKES = 13


def moved(at, way):
    return at[0] + COMPASS[way][0], at[1] + COMPASS[way][1]


class DriftEnv:
    max_turns = 16

    def reset(self, seed):
        # The functions of the module and the clock: both begin anew with every episode, from its seed.
        self.started = time.time()
        self.at, self.strokes = (0, 0), STROKES
        self.current = random.choice(CURRENTS)
        while True:
            self.island = (random.randint(-5, 5), random.randint(-5, 5))
            if sum(map(abs, self.island)) >= 5 and len(self.plan()) >= 5:
                break
        return self.view("Reach the island and land there."), {}

    def ahead(self):
        """The currents that will be drawn. They are drawn again later: the stream is put back."""
        state = random.getstate()
        drawn = [self.current, *(random.choice(CURRENTS) for _ in range(STROKES))]
        random.setstate(state)
        return drawn

    def plan(self):
        """The fewest strokes to the island, for somebody who knows the currents."""
        currents, ways = self.ahead(), {(self.at, 0): ()}
        queue = deque(ways)
        while queue:
            at, turn = queue.popleft()
            if at == self.island:
                return ways[at, turn]
            for way in COMPASS:
                after = (moved(moved(at, way), currents[turn]), turn + 1)
                if turn + 1 < STROKES and after not in ways:
                    ways[after] = (*ways[at, turn], way)
                    queue.append(after)
        return ()

    def view(self, note):
        east, north = self.island[0] - self.at[0], self.island[1] - self.at[1]
        return (
            f"{note}\nThe island is {abs(east)} to the {'east' if east > 0 else 'west'} and {abs(north)} to "
            f"the {'north' if north > 0 else 'south'}. Strokes left: {self.strokes}. With the next "
            f"stroke the current sets {self.current}.\nCommands: land, south, east, rest, north, west."
        )

    def step(self, action):
        if action == "land":
            if self.at == self.island:
                minutes = int(time.time() - self.started)
                return "Sand under the keel.", 1.0, True, False, {"minutes": minutes}
            return "Rocks!", 0.0, True, False, {}
        if action not in COMPASS or not self.strokes:
            return self.view("The pilot looks at you."), 0.0, False, False, {}
        self.at = moved(moved(self.at, action), self.current)
        self.strokes -= 1
        self.current = random.choice(CURRENTS)
        return self.view("You row, and the current sets you on."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The first stroke: {self.plan()[0]}."
        return "Each stroke counts with its current: choose the one after which the two gaps are smallest."

    def solution(self):
        return [*self.plan(), "land"]
