"""The mill. Air the loft for as long as the miller's table asks, grind, and leave all as it was.

At the end everything stands as at the beginning: shutters closed, stones at rest. Only what has happened
in between is another story, and that is what the last wish is about.
"""

import random

from synthgym.contract import ToolEnv, ToolError

GRAINS = ("barley", "oats", "rye", "spelt", "wheat")


class MillEnv(ToolEnv):
    max_turns = 12

    def setup(self, seed):
        rng = random.Random(seed)
        self.table = {
            grain: {"damp": rng.randint(2, 9), "gap": rng.randint(11, 60)} for grain in GRAINS
        }
        self.grain = rng.choice(GRAINS)
        self.factor = rng.randint(3, 7)
        self.open = self.running = False
        self.aired = 0
        self.ground = []
        self.instruct(
            f"The {self.grain} is damp. Air the loft first, {self.factor} minutes for each degree.",
            lambda: self.aired == self.factor * self.table[self.grain]["damp"],
        )
        self.instruct(
            f"Now grind the {self.grain}, with the gap that is right for it.",
            lambda: (self.grain, self.table[self.grain]["gap"]) in self.ground,
        )
        self.instruct(
            "Leave it as you found it: shutters closed, stones at rest.",
            lambda: bool(self.ground) and not (self.open or self.running),
        )
        return "You mind a windmill. The shutters are closed, the stones are at rest."

    def tool_table(self, grain: str) -> dict:
        """Look up the degrees of damp of a grain, and the gap of the stones that it wants."""
        if grain not in self.table:
            raise ToolError(f"the table has {', '.join(GRAINS)}")
        return self.table[grain]

    def tool_shutters(self, open: bool) -> str:
        """Open or close the shutters of the loft."""
        self.open = open
        return "They are open." if open else "They are closed."

    def tool_wait(self, minutes: int) -> str:
        """Let minutes pass. Open shutters air the loft, and too much air cannot be taken back."""
        if not 1 <= minutes <= 200:
            raise ToolError("from 1 to 200 minutes")
        self.aired += minutes if self.open else 0
        return "The sails creak."

    def tool_grind(self, grain: str, gap: int) -> str:
        """Set the stones to a gap and start them with a grain."""
        if grain not in self.table or self.running:
            raise ToolError("no such grain, or the stones are running")
        self.running = True
        self.ground.append((grain, gap))
        return "The stones turn."

    def tool_rest(self) -> str:
        """Bring the stones to rest."""
        self.running = False
        return "It is quiet."

    def hint(self, level=2):
        return "The table has both numbers. Air only with open shutters, and close up at the end."

    def solution(self):
        row = self.table[self.grain]
        return [
            self.call("table", grain=self.grain),
            self.call("shutters", open=True),
            self.call("wait", minutes=self.factor * row["damp"]),
            self.call("grind", grain=self.grain, gap=row["gap"]),
            self.call("rest"),
            self.call("shutters", open=False),
        ]
