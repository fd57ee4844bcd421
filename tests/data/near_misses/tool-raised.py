"""The lending desk. A book is found by its call number, and lent on the card of a reader.

Call numbers stand in the catalogue; cards in the file of readers. A reader who owes a fine gets nothing
before it is paid, to the penny.
"""

import random

from synthgym.contract import ToolEnv, ToolError

TITLES = ("Comets", "Ferns", "Glaciers", "Harbours", "Knots", "Mosses", "Owls", "Sundials")
READERS = ("Abel", "Birk", "Cora", "Dina", "Egon", "Fenja")


class UnknownError(ToolError):
    """What is asked for stands in no file."""


class LendingDeskEnv(ToolEnv):
    max_turns = 12

    def setup(self, seed):
        rng = random.Random(seed)
        titles, readers = rng.sample(TITLES, 4), rng.sample(READERS, 3)
        self.books = {f"{rng.randint(10, 99)}.{i}": title for i, title in enumerate(titles)}
        cards = rng.sample(range(300, 900), 3)
        self.readers = {
            card: {"name": name, "fine": rng.randint(15, 290)}
            for card, name in zip(cards, readers, strict=True)
        }
        self.card = rng.choice(cards)
        self.number = rng.choice(sorted(self.books))
        self.lent, self.returned = {}, []
        who = self.readers[self.card]["name"]
        self.instruct(
            f"I am {who}. I should like to have {self.books[self.number]!r}.",
            lambda: self.lent.get(self.number) == self.card,
        )
        self.instruct(
            "Thank you. And back it goes: it is the wrong one.",
            lambda: self.number in self.returned,
        )
        return "You keep the lending desk of a small library."

    def tool_catalogue(self, title: str) -> str:
        """Find the call number of a title."""
        try:
            return {title: number for number, title in self.books.items()}[title]
        except KeyError as error:
            raise UnknownError(f"we have {', '.join(self.books.values())}") from error

    def tool_card_of(self, name: str) -> int:
        """Find the number of a reader's card."""
        for card, reader in self.readers.items():
            if reader["name"] == name:
                return card
        raise UnknownError("nobody of that name has a card")

    def tool_card(self, number: int) -> dict:
        """Read a card: the name, and the fine that is owed, in pennies."""
        return self.reader(number)

    def reader(self, number):
        if number not in self.readers:
            raise UnknownError(f"there is no card {number}")
        return self.readers[number]

    def tool_pay(self, card: int, pennies: str) -> str:
        """Pay the fine of a card, written as on a cheque, like 1-05 for one hundred and five pennies."""
        reader = self.reader(card)
        try:
            hundreds, rest = (int(part) for part in pennies.split("-"))
        except ValueError:
            raise ToolError("a cheque reads like 1-05") from None
        if 100 * hundreds + rest != reader["fine"]:
            raise ToolError("that is not what is owed")
        reader["fine"] = 0
        return "Paid."

    def tool_lend(self, call_number: str, card: int) -> str:
        """Lend a book on a card that owes nothing."""
        if call_number not in self.books or self.reader(card)["fine"]:
            raise ToolError("no such call number, or a fine is owed")
        self.lent[call_number] = card
        return "Stamped."

    def tool_return(self, call_number: str) -> str:
        """Take a book back."""
        if self.lent.pop(call_number, None) is None:
            raise ToolError("that book is not lent")
        self.returned.append(call_number)
        return "Back on the shelf."

    def hint(self, level=2):
        return "Errors here are advice: read the card for what is owed, and pay before you lend."

    def solution(self):
        fine = self.readers[self.card]["fine"]
        return [
            self.call("card_of", name=self.readers[self.card]["name"]),
            self.call("card", number=self.card),
            self.call("pay", card=self.card, pennies=f"{fine // 100}-{fine % 100:02}"),
            self.call("catalogue", title=self.books[self.number]),
            self.call("lend", call_number=self.number, card=self.card),
            self.call("return", call_number=self.number),
        ]
