"""Water clock. Four basins stand in a row under taps; let each run so long that all are full at the same stroke.

`open <basin>` starts a basin and passes one stroke; `wait` passes one; `sound gong` ends the trial, which is won when
every basin has had just the strokes that it needs.
"""

import random

BASINS = ("clay", "glass", "stone", "tin")


class WaterClockEnv:
    max_turns = 26

    def reset(self, seed):
        rng = random.Random(seed)
        self.needs = dict(zip(BASINS, rng.sample(range(2, 16), len(BASINS)), strict=True))
        self.order = sorted(BASINS, key=lambda basin: -self.needs[basin])
        self.clock, self.since = 0, {}
        listed = ", ".join(f"{basin} {self.needs[basin]}" for basin in BASINS)
        return self.view(
            f"Strokes that each basin needs: {listed}. Goal: sound the gong when all are just full."
        ), {}

    def view(self, note):
        running = ", ".join(self.since) or "none"
        return f"{note}\nRunning: {running}. Commands: open <basin>, wait, sound gong."

    def step(self, action):
        words = action.split()
        if words == ["sound", "gong"] and self.since:
            if {basin: self.clock - start for basin, start in self.since.items()} == self.needs:
                return "All four are full.", 1.0, True, False, {}
            return "One is dry, or one runs over.", 0.0, True, False, {}
        if (
            len(words) == 2
            and words[0] == "open"
            and words[1] in BASINS
            and words[1] not in self.since
        ):
            self.since[words[1]] = self.clock
        elif words != ["wait"]:
            return self.view("The water does not stop for that."), 0.0, False, False, {}
        self.clock += 1
        return self.view(f"Stroke {self.clock}."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "The last basin is opened when few strokes are left."
        return (
            f"The {self.order[-1]} basin is the last to be opened. Begin with 'open {self.order[0]}', then wait by the "
            "differences, and end with 'sound gong'."
        )

    def solution(self):
        actions = []
        for basin, after in zip(self.order, [*self.order[1:], ""], strict=True):
            pause = self.needs[basin] - self.needs.get(after, 0) - 1
            actions += [f"open {basin}", *["wait"] * pause]
        return [*actions, "sound gong"]
