"""Frost register. Read the old winters, stamp those in which the harbour froze, and hand the register in.

A page says the same whenever it is read, and the stamp makes the same sound on every page. The harbour froze when the
coldest morning was below -6 degrees and the wind did not come from the west. One wrong or missing stamp loses.
"""

import random


class FrostRegisterEnv:
    max_turns = 24

    def reset(self, seed):
        rng = random.Random(seed)
        self.years = sorted(rng.sample(range(1801, 1899), 8))
        self.frozen = []
        while not 3 <= len(self.frozen) <= 5:
            self.pages = {
                year: (-rng.randint(2, 11), rng.choice(("west", "east"))) for year in self.years
            }
            self.frozen = [
                y for y, (cold, wind) in self.pages.items() if cold < -6 and wind != "west"
            ]
        self.stamped = set()
        names = ", ".join(map(str, self.years))
        return f"Winters in the register: {names}. Goal: stamp those with ice.\n{self.ask()}", {}

    def ask(self):
        return "Commands: read <year>, stamp <year>, hand in."

    def step(self, action):
        if action == "hand in":
            if self.stamped == set(self.frozen):
                return "The harbour master nods.", 1.0, True, False, {}
            return "The harbour master shakes his head.", 0.0, True, False, {}
        verb, _, word = action.partition(" ")
        year = next((year for year in self.years if str(year) == word), None)
        if year is None or verb not in ("read", "stamp"):
            return self.ask(), 0.0, False, False, {}
        if verb == "stamp":
            self.stamped.add(year)
            return "Thump.", 0.0, False, False, {}
        cold, wind = self.pages[year]
        return f"Coldest morning {cold} degrees, wind from the {wind}.", 0.0, False, False, {}

    def hint(self, level=2):
        return "Read all eight pages first, and mind both conditions. A stamp cannot be taken back."

    def solution(self):
        return [*(f"read {y}" for y in self.years), *(f"stamp {y}" for y in self.frozen), "hand in"]
