"""Weaver's count. A thread changes its colour after so many knots; find the length, then cut at the right knot.

`look <knot>` tells the colour at a knot, 1 to 60, by its number. After three looks `cut <knot>` can be sent once: cut
where the fourth stretch ends. All stretches have the same length.
"""

import random

COLOURS = ("blue", "red", "white", "green")


class WeaversCountEnv:
    max_turns = 20

    def reset(self, seed):
        rng = random.Random(seed)
        self.length = rng.randint(5, 14)
        self.colours = rng.sample(COLOURS, len(COLOURS))
        self.looks = 0
        return self.view(
            "The thread has four stretches of one colour each, all of one length. Cut at its last knot."
        ), {}

    def view(self, note):
        return f"{note}\nLooks so far: {self.looks}. Commands: look <knot>, cut <knot>."

    def step(self, action):
        words = action.split()
        number = (
            int(words[1]) if len(words) == 2 and words[1].isascii() and words[1].isdigit() else 0
        )
        if words[:1] == ["look"] and 0 < number <= 60:
            self.looks += 1
            stretch = (number - 1) // self.length
            what = self.colours[stretch] if stretch < 4 else "no thread"
            return self.view(f"At knot {number}: {what}."), 0.0, False, False, {}
        if words[:1] == ["cut"] and number and self.looks > 2:
            if number == 4 * self.length:
                return "A clean cut.", 1.0, True, False, {}
            return "The thread is spoilt.", 0.0, True, False, {}
        return self.view("The loom stands still."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Find the first knot of the second colour."
        least = self.length // 3 * 3
        return (
            f"A stretch is {least} knots or a little more: begin to look there, and halve what is left. "
            "Four times the length is the last knot."
        )

    def solution(self):
        return [
            "look 1",
            f"look {self.length}",
            f"look {self.length + 1}",
            f"cut {4 * self.length}",
        ]
