"""Old charts. One of eight charts tells how to steer through a reef, leg by leg; the water has to be read as well.

A leg of the chart is a heading in points of the compass (thirty-two to the round), and the set of the tide, told on
board, has to be taken off it. Eight charts and nine tides make all the passages there are.
"""

import random

CHARTS = 8


class OldChartsEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.chart, self.tide = rng.randrange(CHARTS), rng.randint(1, 9)
        legs = random.Random(self.chart)
        self.legs = [legs.randrange(32) for _ in range(6)]
        self.leg = 0
        chart = ", ".join(map(str, self.legs))
        story = f"Chart {self.chart + 1}: {chart}. The tide sets {self.tide} points to starboard."
        return self.view(f"{story} Goal: through the reef."), {}

    def view(self, note):
        return f"{note}\nLegs behind you: {self.leg}.\nCommand: steer <points>, 0 to 31."

    def step(self, action):
        verb, _, points = action.partition(" ")
        if verb != "steer" or points not in map(str, range(32)):
            return self.view("The helmsman waits."), 0.0, False, False, {}
        if int(points) != (self.legs[self.leg] - self.tide) % 32:
            return "The reef.", 0.0, True, False, {}
        self.leg += 1
        if self.leg == len(self.legs):
            return "Open sea.", 1.0, True, False, {}
        return self.view("Deep water."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Take the tide off each heading; below nought go on from the end of the round."

    def solution(self):
        return [f"steer {(heading - self.tide) % 32}" for heading in self.legs]
