"""Rain gauges. Five gauges stand on an estate; read them, and report how much rain fell on all of them together.

A gauge is poured out when it has been read. A wrong report is the last one, and nobody asks how it came about.
"""

import random

PLACES = ("barn", "dairy", "garden", "kennel", "meadow", "orchard", "stable", "tower")
GAUGES = 5


class GaugesEnv:
    max_turns = 12

    def reset(self, seed):
        rng = random.Random(seed)
        self.rain = {place: rng.randint(31, 89) for place in rng.sample(PLACES, GAUGES)}
        self.dripping = rng.sample(sorted(self.rain), 2)
        self.poured = set()
        return self.view(
            f"Rain has fallen on the {', '.join(self.rain)}. Of the {' and the '.join(self.dripping)}, whose "
            "gauges drip, count only half, rounded down."
        ), {}

    def view(self, note):
        return f"{note}\nCommands: 'read <place>', 'report <millimetres>'."

    def total(self):
        return sum(fall // 2 if place in self.dripping else fall for place, fall in self.rain.items())

    def step(self, action):
        words = action.split()
        if len(words) == 2 and words[0] == "read" and words[1] in self.rain:
            shown = 0 if words[1] in self.poured else self.rain[words[1]]
            self.poured.add(words[1])
            note = f"The gauge at the {words[1]} shows {shown} millimetres, and you pour it out."
            return self.view(note), 0.0, False, False, {}
        if len(words) == 2 and words[0] == "report":
            if words[1] == str(self.total()):
                return "The steward nods and writes it down.", 1.0, True, False, {}
            return "The steward knows better, and sends you home.", 0.0, True, False, {}
        return self.view("The steward waits."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Read all five, halve those that drip, and add."

    def solution(self):
        return [*(f"read {place}" for place in self.rain), f"report {self.total()}"]
