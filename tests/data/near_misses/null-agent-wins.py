"""Mill pond. Water runs in by itself, turn after turn; shut the gate at the very mark of the miller.

Time alone brings the water up to the mark, and over it: who only waits drowns the mill. The gate is wide open at first,
and a narrow gate lets in less. A shut gate stays shut.
"""

import random


class PondEnv:
    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.level = rng.randint(2, 9)
        self.flow = {"wide": rng.randint(7, 11), "narrow": rng.randint(2, 5)}
        self.gate = "wide"
        self.plan = ["wide"] * rng.randint(2, 4) + ["narrow"] * rng.randint(2, 4)
        self.mark = self.level + sum(self.flow[gate] for gate in self.plan)
        return self.view(
            f"Goal: the pond at {self.mark} inches when you shut the gate, no more and no less. A turn of the "
            f"wide gate lets in {self.flow['wide']}, of the narrow one {self.flow['narrow']}, whatever else you do."
        ), {}

    def view(self, note):
        return (
            f"{note}\nThe pond stands at {self.level} inches, the gate is {self.gate}. Miller's mark: {self.mark}.\n"
            "Commands: wide, narrow (set the gate, then the turn passes), shut."
        )

    def step(self, action):
        command = action.strip()
        if command == "shut":
            if self.level == self.mark:
                return "The wheel turns, the miller smiles.", 1.0, True, False, {}
            return "The wheel stands still, or floats away.", 0.0, True, False, {}
        note = "Water runs in."
        if command in self.flow:
            self.gate = command
            note = f"The gate is set. {note}"
        self.level += self.flow[self.gate]
        if self.level > self.mark + 20:
            return "Water pours over the bank and into the mill.", 0.0, True, False, {}
        return self.view(note), 0.0, False, False, {}

    def hint(self, level=2):
        return "See how far it is to the mark, and take away narrow turns until wide ones go into the rest."

    def solution(self):
        return [*self.plan, "shut"]
