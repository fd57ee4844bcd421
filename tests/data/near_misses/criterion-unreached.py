"""The weir. Raise the pond to the mark of the miller, gate by gate; no single gate can do it.

Each gate moves the pond by its own measure and only once; together some of them do it exactly.
"""

import random
from itertools import combinations
from typing import Literal

from synthgym.contract import ToolEnv, ToolError

GATES = "ABCDEF"


class WeirEnv(ToolEnv):
    max_turns = 16

    def setup(self, seed):
        rng = random.Random(seed)
        while True:
            self.measures = dict(zip(GATES, rng.sample(range(3, 40), len(GATES)), strict=True))
            self.chosen = sorted(rng.sample(GATES, 3))
            self.mark = sum(self.measures[gate] for gate in self.chosen)
            ways = [
                gates
                for size in range(1, 7)
                for gates in combinations(GATES, size)
                if sum(self.measures[gate] for gate in gates) == self.mark
            ]
            if len(ways) == 1:
                break
        self.shut = []
        self.horn = 0
        self.instruct(
            f"Bring the pond up by {self.mark} inches, neither more nor less.",
            lambda: self.level() == self.mark,
        )
        self.instruct(
            "Good. Sound the horn, as often as gates are shut.",
            lambda: self.level() == self.mark and self.horn == len(self.shut),
        )
        return f"A weir with the gates {', '.join(GATES)}, all of them open."

    def level(self):
        return sum(self.measures[gate] for gate in self.shut)

    def tool_gauge(self) -> str:
        """Read how many inches the pond has come up."""
        return f"{self.level()} inches."

    def tool_plate(self, gate: Literal["A", "B", "C", "D", "E", "F"]) -> str:
        """Read the plate of a gate: by how many inches it brings the pond up."""
        return f"{self.measures[gate]} inches."

    def tool_shut(self, gate: Literal["A", "B", "C", "D", "E", "F"]) -> str:
        """Shut a gate. It needs the winch, and the winch works once for each gate: shut is shut."""
        if gate in self.shut:
            raise ToolError(f"gate {gate} is shut")
        self.shut.append(gate)
        return f"Gate {gate} drops."

    def tool_horn(self, times: int) -> str:
        """Sound the horn so many times."""
        self.horn = times
        return "It carries across the valley."

    def hint(self, level=2):
        return "Read all plates first, and add them up on paper: a gate that is shut stays shut."

    def solution(self):
        return [
            *(self.call("plate", gate=gate) for gate in GATES),
            *(self.call("shut", gate=gate) for gate in self.chosen),
            self.call("horn", times=len(self.chosen)),
        ]
