"""Herb garden. Brew a draught of three herbs whose virtues add up to what the patient needs.

`pick <herb>` puts one into the pot, `empty` throws all away, and `serve` gives the draught to the patient, once.
"""

import random

HERBS = ("sage", "mint", "rue", "thyme", "fennel", "borage", "lovage")


class HerbGardenEnv:
    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.virtue = dict(zip(HERBS, rng.sample(range(12, 70), len(HERBS)), strict=True))
        self.right = rng.sample(HERBS, 3)
        self.need = sum(self.virtue[herb] for herb in self.right)
        self.pot = []
        listed = ", ".join(f"{herb} {self.virtue[herb]}" for herb in HERBS)
        return self.view(f"Virtues: {listed}. The patient needs {self.need}, from three herbs."), {}

    def view(self, note):
        return f"{note}\nIn the pot: {', '.join(self.pot) or 'water'}. Commands: pick <herb>, empty, serve."

    def step(self, action):
        words = action.split()
        if (
            len(words) == 2
            and words[0] == "pick"
            and words[1] in HERBS
            and words[1] not in self.pot
        ):
            self.pot.append(words[1])
            return self.view("In it goes."), 0.0, False, False, {}
        if words == ["empty"]:
            self.pot = []
            return self.view("The hens get it."), 0.0, False, False, {}
        if words == ["serve"] and self.pot:
            if len(self.pot) == 3 and sum(self.virtue[herb] for herb in self.pot) == self.need:
                return "The patient sits up.", 1.0, True, False, {}
            return "The patient sinks back.", 0.0, True, False, {}
        return self.view(f"The herbalist whispers: {self.hint()}"), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Not every herb can be in it."
        return "Take one herb off what is needed, then look for two that make up the rest."

    def solution(self):
        return [*(f"pick {herb}" for herb in self.right), "serve"]
