"""Music box. Turning a wheel turns its neighbours along, and the box says "Click." to everything.

Five wheels in a ring show 0, 1 or 2 when you get the box, and are covered from then on. `turn` moves a wheel and the
two beside it on by one, from 2 back to 0. `play` opens the lid when all wheels show 0; else the spring breaks.
"""

import random

WHEELS = "abcde"


class MusicBoxEnv:
    max_turns = 24

    def reset(self, seed):
        rng = random.Random(seed)
        self.way = []
        while len(self.way) < 4:
            times = [rng.randint(0, 2) for _ in WHEELS]
            self.way = [
                f"turn {wheel}" for wheel, n in zip(WHEELS, times, strict=True) for _ in range(n)
            ]
        self.wheels = [-(times[at - 1] + times[at] + times[(at + 1) % 5]) % 3 for at in range(5)]
        shown = ", ".join(f"{wheel} {n}" for wheel, n in zip(WHEELS, self.wheels, strict=True))
        return f"The wheels show {shown}, and the cover snaps shut. Goal: all 0.\n{self.ask()}", {}

    def ask(self):
        return "Commands: turn <wheel>, with a to e; play."

    def step(self, action):
        if action == "play":
            if any(self.wheels):
                return "The spring breaks.", 0.0, True, False, {}
            return "The box plays.", 1.0, True, False, {}
        verb, _, wheel = action.partition(" ")
        if verb != "turn" or len(wheel) != 1 or wheel not in WHEELS:
            return self.ask(), 0.0, False, False, {}
        middle = WHEELS.index(wheel)
        for at in (middle - 1, middle, (middle + 1) % 5):
            self.wheels[at] = (self.wheels[at] + 1) % 3
        return "Click.", 0.0, False, False, {}

    def hint(self, level=2):
        return "The order does not matter, only how often each wheel is turned; write the five sums down."

    def solution(self):
        return [*self.way, "play"]
