"""Sledge. Load crates that weigh exactly what the ice bears, then drive.

`load <crate>` and `unload <crate>` move one crate. Each right crate on the sledge is paid a little, and taking it off
takes that back. `drive` with any other weight ends the day.
"""

import random

CRATES = ("apples", "books", "candles", "dates", "eggs", "flour", "glass", "hooks")


class SledgeEnv:
    max_turns = 18

    def reset(self, seed):
        rng = random.Random(seed)
        self.weight = dict(zip(CRATES, rng.sample(range(11, 60), len(CRATES)), strict=True))
        self.right = sorted(rng.sample(CRATES, 4))
        self.bears = sum(self.weight[crate] for crate in self.right)
        self.on = []
        self.paid = 0.0
        listed = ", ".join(f"{crate} {self.weight[crate]}" for crate in CRATES)
        return self.view(
            f"Crates and their pounds: {listed}. The ice bears {self.bears} pounds, no more, no less."
        ), {}

    def view(self, note):
        on = ", ".join(self.on) or "nothing"
        return f"{note}\nOn the sledge: {on}. Commands: load <crate>, unload <crate>, drive."

    def step(self, action):
        words = action.split()
        if words == ["drive"] and self.on:
            if sum(self.weight[crate] for crate in self.on) == self.bears:
                return "The sledge reaches the far shore.", 1.0 - self.paid, True, False, {}
            return "It breaks in, or the wind takes it.", 0.0, True, False, {}
        if (
            len(words) == 2
            and words[0] == "load"
            and words[1] in CRATES
            and words[1] not in self.on
        ):
            self.on.append(words[1])
            return self.view("Loaded."), self.settle(), False, False, {}
        if len(words) == 2 and words[0] == "unload" and words[1] in self.on:
            self.on.remove(words[1])
            return self.view("Unloaded."), self.settle(), False, False, {}
        return self.view("Nothing is moved."), 0.0, False, False, {}

    def settle(self):
        """What the crates on the sledge are worth, less what has been paid."""
        change = 0.1 * sum(crate in self.right for crate in self.on) - self.paid
        self.paid += change
        return change

    def hint(self, level=2):
        if level == 1:
            return "Not every heavy crate belongs to it."
        return "Begin with the heaviest that can belong to the load, and look for what is then still lacking."

    def solution(self):
        return [*(f"load {crate}" for crate in self.right), "drive"]
