"""Valve room. Open the valves from the highest pressure to the lowest, then ring the bell.

`open <valve>` opens one, `ring bell` ends the shift. A valve out of order bursts the pipe.
"""

import random

VALVES = ("amber", "bronze", "copper", "dusky", "ebony")


class ValveRoomEnv:
    max_turns = 10

    def reset(self, seed):
        rng = random.Random(seed)
        self.pressure = dict(zip(VALVES, rng.sample(range(20, 99), len(VALVES)), strict=True))
        self.order = sorted(VALVES, key=lambda valve: -self.pressure[valve])
        self.opened = []
        shown = ", ".join(f"{valve} {self.pressure[valve]}" for valve in VALVES)
        log = ", ".join(self.solution()[:-1])
        return self.view(f"Pressures: {shown}. Log of the night shift: {log}, then ring bell."), {}

    def view(self, note):
        return f"{note}\nOpened: {', '.join(self.opened) or 'none'}. Commands: open <valve>, ring bell."

    def step(self, action):
        words = action.split()
        closed = [valve for valve in self.order if valve not in self.opened]
        if len(words) == 2 and words[0] == "open" and words[1] in closed:
            if words[1] != closed[0]:
                return "The pipe bursts.", 0.0, True, False, {}
            self.opened.append(words[1])
            return self.view("It hisses."), 0.0, False, False, {}
        if words == ["ring", "bell"] and not closed:
            return "The shift is over.", 1.0, True, False, {}
        return self.view("Nobody does that here."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Rank the valves by their pressure before you touch one."

    def solution(self):
        return [*(f"open {valve}" for valve in self.order), "ring bell"]
