"""The sorting office. Fetch the bag of a train, stamp what is in it by its weight, and send the bag on.

Before the bag is fetched the table is empty; every letter of an empty table is stamped, but that is not
what was asked for.
"""

import random

from synthgym.contract import ToolEnv, ToolError

TOWNS = ("Aire", "Brig", "Chur", "Dole", "Gien", "Sion")


class SortingOfficeEnv(ToolEnv):
    max_turns = 14

    def setup(self, seed):
        rng = random.Random(seed)
        numbers = rng.sample(range(100, 1000), 4)
        self.bags = {
            number: {
                f"{letter}{rng.randint(10, 99)}": {"to": rng.choice(TOWNS), "grams": grams}
                for letter, grams in zip("abc", rng.sample(range(5, 90), 3), strict=True)
            }
            for number in numbers
        }
        self.trains = dict(zip(rng.sample(TOWNS, 4), numbers, strict=True))
        self.town = rng.choice(sorted(self.trains))
        self.rates = sorted(rng.sample(range(2, 30), 3))
        self.table, self.stamps, self.gone = {}, {}, False
        self.instruct(
            f"The bag of the train from {self.town} is in. Stamp all that is in it.",
            lambda: bool(self.table) and self.table == self.bag() and self.is_stamped(),
        )
        self.instruct("Send it on, please.", lambda: self.gone and not self.table)
        return (
            f"You sort letters. Up to 20 grams a letter takes {self.rates[0]} cents, up to 50 grams "
            f"{self.rates[1]}, and above that {self.rates[2]}."
        )

    def bag(self):
        return self.bags[self.trains[self.town]]

    def rate(self, grams):
        return self.rates[(grams > 20) + (grams > 50)]

    def is_stamped(self):
        return all(
            self.stamps.get(name) == self.rate(row["grams"]) for name, row in self.table.items()
        )

    def tool_trains(self) -> dict:
        """List the trains that are in, by town, with the numbers of their bags."""
        return self.trains

    def tool_fetch(self, bag: int) -> dict:
        """Empty a bag onto the table, in place of what lies there."""
        if bag not in self.bags:
            raise ToolError(f"there is no bag {bag}")
        self.table = self.bags[bag]
        return self.table

    def tool_stamp(self, letter: str, cents: int) -> str:
        """Put a stamp on a letter that lies on the table, over one that it has."""
        if letter not in self.table:
            raise ToolError("no such letter lies on the table")
        self.stamps[letter] = cents
        return "Stamped."

    def tool_send(self) -> str:
        """Put what lies on the table back into its bag and send it on; all of it must be stamped rightly."""
        if not (self.table and self.is_stamped()):
            raise ToolError("the inspector frowns at a stamp, or at the empty table")
        self.table, self.gone = {}, True
        return "The bag is on its way."

    def hint(self, level=2):
        return (
            "The number of the bag stands with the trains. Weigh up each letter against 20 and 50."
        )

    def solution(self):
        stamps = [
            self.call("stamp", letter=name, cents=self.rate(row["grams"]))
            for name, row in self.bag().items()
        ]
        fetch = self.call("fetch", bag=self.trains[self.town])
        return [self.call("trains"), fetch, *stamps, self.call("send")]
