"""A tea room. Blend what the card of the guest asks for, then pour it into the cups of the table.

The card gives each leaf in parts; the tin takes whole grams, and the parts must be kept. The pot gives
one cup for every twelve grams.
"""

# Types are spelled as generated code spells them.
# ruff: noqa: UP045

import random
from typing import Literal, Optional

from synthgym.contract import ToolEnv, ToolError

LEAVES = ("assam", "keemun", "lapsang", "rose")
GUESTS = ("Amin", "Bodil", "Chen", "Dora", "Efe")


class Cards:
    """A base whose tools are inherited."""

    def tool_read_card(self, guest: str, leaf: Optional[str] = None) -> "dict[str, int] | int":
        """Read what a guest likes, in parts of each leaf; or the parts of one leaf."""
        if guest not in self.cards:
            raise ToolError(f"the guests are {', '.join(self.cards)}")
        return self.cards[guest] if leaf is None else self.cards[guest].get(leaf, 0)

    def helper(self, *numbers):
        return sum(numbers)


class TeaRoomEnv(Cards, ToolEnv):
    max_turns = 12

    def setup(self, seed):
        rng = random.Random(seed)
        self.guest, *_ = guests = rng.sample(GUESTS, 4)
        self.cards = {
            guest: {leaf: rng.randint(1, 9) for leaf in rng.sample(LEAVES, 3)} for guest in guests
        }
        self.times = 12 * rng.randint(2, 5)
        self.tin, self.cups = {}, []
        self.instruct(
            f"{self.guest} wants {self.grams()} grams of the usual blend. Fill the tin with it.",
            lambda: self.tin == self.wanted(),
        )
        self.instruct(
            "Now pour it, one cup for every twelve grams, the cups numbered from 1.",
            lambda: self.cups == list(range(1, self.grams() // 12 + 1)),
        )
        return "You keep a tea room with four guests."

    def wanted(self):
        return {leaf: parts * self.times for leaf, parts in self.cards[self.guest].items()}

    def grams(self):
        return self.helper(*self.wanted().values())

    def toolbox(self, anything):  # no tool: the name only begins like one
        return anything

    def tool_fill(self, leaf: Literal["assam", "keemun", "lapsang", "rose"], *, grams: int) -> str:
        """Put so many grams of a leaf into the tin, in place of what was there of it."""
        if not 0 <= grams <= 2000:
            raise ToolError("the tin takes 0 to 2000 grams of a leaf")
        self.tin = {name: held for name, held in self.tin.items() if name != leaf}
        self.tin |= {leaf: grams} if grams else {}
        return f"In the tin: {self.tin}."

    def tool_pour(self, cups: list[int], note: str | None = None) -> str:
        """Pour into cups, by their numbers.

        Args:
            cups (list of int): The numbers of the cups,
                each once.
            note: What to say to the guest.
        """
        self.cups = sorted(set(cups))
        return note or f"{len(self.cups)} cups steam."

    def hint(self, level=2):
        return "The parts of the card add up; divide the grams by that sum before you fill the tin."

    def solution(self):
        fill = [self.call("fill", leaf=leaf, grams=n) for leaf, n in self.wanted().items()]
        cups = list(range(1, self.grams() // 12 + 1))
        return [self.call("read_card", guest=self.guest), *fill, self.call("pour", cups=cups)]
