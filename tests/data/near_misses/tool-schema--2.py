"""The seed drawer. Find out which packets are still good, sow one, and say when it will be ripe.

A packet keeps for the years of its kind from the year on its label. What is sown is ripe after the days
of its kind.
"""

# Types are spelled as generated code spells them.
# ruff: noqa: UP006, UP007, UP035

from __future__ import annotations

import random
import typing
from typing import Annotated, Any, Dict, List, Union

from synthgym.contract import ToolEnv, ToolError

KINDS = ("bean", "chard", "leek", "onion", "parsnip", "radish")


class SeedDrawerEnv(ToolEnv):
    max_turns = 12

    def setup(self, seed):
        rng = random.Random(seed)
        self.year = rng.randint(1950, 1990)
        self.kinds = {
            kind: {"keeps": rng.randint(2, 5), "days": rng.randint(30, 170)} for kind in KINDS
        }
        self.kind = rng.choice(KINDS)
        ages = rng.sample(range(self.kinds[self.kind]["keeps"] + 1, 12), 3)
        ages.append(rng.randint(0, self.kinds[self.kind]["keeps"] - 1))
        rng.shuffle(ages)
        numbers = rng.sample(range(10, 100), 4)
        self.packets = {n: self.year - age for n, age in zip(numbers, ages, strict=True)}
        self.good = next(n for n, year in self.packets.items() if self.keeps(year))
        self.today = rng.randint(60, 120)
        self.sown = []
        self.instruct(
            f"Only one of our {self.kind} packets is still good. Sow it, and none of the others.",
            lambda: self.sown == [self.good],
        )
        self.instruct(
            f"If it is day {self.today} of the year, on which day will it be ripe?",
            answer=self.today + self.kinds[self.kind]["days"],
        )
        return f"A gardener's drawer of seeds, in the year {self.year}."

    def keeps(self, year):
        return self.year - year < self.kinds[self.kind]["keeps"]

    def tool_packets(self, kind: str) -> List[int]:
        """List the numbers of the packets of a kind."""
        return list(self.packets) if kind == self.kind else []

    def tool_labels(self, packets: typing.List[int]) -> Dict[str, Any]:
        """Read the years on the labels of packets, by number."""
        return {str(number): self.packets.get(number) for number in packets}

    def tool_book(self, kind: Annotated[str, "a vegetable"]) -> dict:
        """Look a kind up in the garden book: the years that seed keeps, and the days until it is ripe."""
        if kind not in self.kinds:
            raise ToolError(f"the book has {', '.join(self.kinds)}")
        return self.kinds[kind]

    @staticmethod
    def tool_difference(later: Union[int, float], earlier: float = 0) -> float:
        """Subtract, on paper."""
        return later - earlier

    def tool_sow(self, packet: int) -> str:
        """Sow a packet."""
        if packet not in self.packets or len(self.sown) == 2:
            raise ToolError("no such packet, or no bed that is free")
        self.sown.append(packet)
        return "It lies in the earth."

    def hint(self, level=2):
        return "Take the year on each label from this year, and see how long such seed keeps."

    def solution(self):
        return [
            self.call("packets", kind=self.kind),
            self.call("labels", packets=list(self.packets)),
            self.call("book", kind=self.kind),
            self.call("sow", packet=self.good),
            self.answer(self.today + self.kinds[self.kind]["days"]),
        ]
