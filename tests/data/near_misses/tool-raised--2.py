"""The apothecary's scale. Balance a powder with stones, then sell it by the price list.

Tools take any number and any text; what makes no sense is answered with a text, and nothing is raised.
"""

import random
from fractions import Fraction

from synthgym.contract import ToolEnv

POWDERS = ("alum", "borax", "camphor", "ginger", "nutmeg", "sulphur")


class ScaleEnv(ToolEnv):
    max_turns = 14

    def setup(self, seed):
        rng = random.Random(seed)
        self.powder, *_ = names = rng.sample(POWDERS, 4)
        self.grains = {name: rng.randint(150, 950) for name in names}
        self.prices = {name: Fraction(rng.randint(3, 19), 4) for name in names}
        self.stones = []
        self.instruct(
            f"Lay stones until they balance the jar of {self.powder}.",
            lambda: sum(self.stones) == self.grains[self.powder],
        )
        self.instruct(
            f"What does all of the {self.powder} cost? To two decimals, please.",
            answer=f"{float(self.cost()):.2f}",
        )
        return f"On the scale stands one jar. The jars hold {', '.join(sorted(names))}."

    def cost(self):
        return self.prices[self.powder] * self.grains[self.powder]

    def tool_compare(self, jar: str) -> str:
        """Tell which side goes down: the jar, or the stones that lie on the scale."""
        if jar not in self.grains:
            return "There is no such jar."
        left = self.grains[jar] - sum(self.stones)
        return "They balance." if not left else ("The jar." if left > 0 else "The stones.")

    def tool_estimate(self, jar: str, within: float) -> str:
        """Guess the grains in a jar by eye, within so many grains (20 at best)."""
        if jar not in self.grains:
            return "There is no such jar."
        step = max(20, min(int(abs(within)), 1000))
        low = self.grains[jar] // step * step
        return f"From {low} to {low + step}."

    def tool_lay(self, stones: list[int]) -> str:
        """Lay these stones on the scale, in grains, and take away those that lie there."""
        self.stones = [stone for stone in stones if 1 <= stone <= 500][:12]
        return f"On the scale: {self.stones or 'nothing'}."

    def tool_price(self, jar: str) -> dict:
        """Look up what a grain of a powder costs."""
        price = self.prices.get(jar)
        return {"jar": jar, "price": None if price is None else str(price)}

    def tool_divide(self, dividend: float, divisor: float) -> str:
        """Divide, on the slate."""
        return "?" if divisor == 0 else str(round(dividend / divisor, 3))

    def hint(self, level=2):
        return "Estimate within twenty grains, then halve what is left; grains times price is the cost."

    def solution(self):
        grains = self.grains[self.powder]
        stones = [500] * (grains // 500) + [grains % 500] * (grains % 500 > 0)
        return [
            self.call("estimate", jar=self.powder, within=20),
            self.call("lay", stones=stones),
            self.call("price", jar=self.powder),
            self.answer(f"{float(self.cost()):.2f}"),
        ]
