"""Put six ships through one dry dock in the order that costs the harbour least.

Each ship needs some days in the dock and costs her owner a fee for every day until she floats
again, the days of waiting included. Both figures are hidden until the ship is surveyed. One ship is
moored behind another and can only be docked after it. Build the order ship by ship and sign it; the
harbour board pays no bill above the lowest possible one. The third refused order ends the contract.
"""

import random
from collections.abc import Sequence
from itertools import permutations

SHIPS = ["avocet", "curlew", "dunlin", "fulmar", "gannet", "heron", "petrel", "plover", "tern"]
REFUSALS = 3
COMMANDS = "Commands: survey <ship>, dock <ship> (next in the order), undock (the last one), sign."


class DryDockEnv:
    max_turns = 32

    def reset(self, seed: int) -> tuple[str, dict]:
        rng = random.Random(seed)
        self.ships = rng.sample(SHIPS, 6)
        while True:
            self.days = {ship: rng.randint(1, 9) for ship in self.ships}
            self.fee = {ship: rng.randint(1, 9) for ship in self.ships}
            # An urgent ship is moored behind one that can wait: the mooring always matters.
            urgent_first = sorted(self.ships, key=lambda ship: self.days[ship] / self.fee[ship])
            self.blocked = rng.choice(urgent_first[:3])
            self.blocker = rng.choice(urgent_first[3:])
            bills = sorted(
                (self._bill(order), order)
                for order in permutations(self.ships)
                if self._allowed(order)
            )
            if bills[0][0] < bills[1][0] and self._bill(urgent_first) < bills[0][0]:
                break
        self.best_bill, self.best_order = bills[0]
        self.order: list[str] = []
        self.surveyed: list[str] = []
        self.refusals = 0
        self.paid = 0.0
        self.over = False
        return (
            f"Six ships wait for your only dry dock: {', '.join(self.ships)}. The dock takes one "
            "ship at a time. Each ship costs a fee for every day until she floats again, waiting "
            f"included; a survey tells her days in dock and her daily fee. The {self.blocked} is "
            f"moored behind the {self.blocker} and can only be docked after her.\n"
            "Goal: sign an order of all six whose bill (the sum of fee x day of floating) is the "
            f"lowest possible, {self.best_bill}. {REFUSALS} refused orders end your contract.\n"
            f"{self._status()}"
        ), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        if self.over:
            return "The dock office is closed.", 0.0, True, False, {}
        reward = 0.0
        match action.lower().split():
            case ["survey", ship] if ship in self.ships:
                text = self._survey(ship)
            case ["dock", ship] if ship in self.ships:
                text = self._dock(ship)
            case ["survey" | "dock", *_]:
                text = "Name one of the six ships."
            case ["undock"]:
                text = (
                    f"The {self.order.pop()} is taken out of the order."
                    if self.order
                    else "The order is empty."
                )
            case ["sign"]:
                text, reward = self._sign()
            case _:
                text = "The dock master shrugs."
        return f"{text}\n{self._status()}", reward, self.over, False, {}

    def _survey(self, ship: str) -> str:
        if ship not in self.surveyed:
            self.surveyed.append(ship)
        days, fee = self.days[ship], self.fee[ship]
        return f"The {ship} needs {days} days in dock and costs {fee} a day until she floats."

    def _dock(self, ship: str) -> str:
        if ship in self.order:
            return f"The {ship} is in the order already."
        if ship == self.blocked and self.blocker not in self.order:
            return f"The {ship} cannot get out while the {self.blocker} lies before her."
        self.order.append(ship)
        return f"The {ship} is number {len(self.order)} in the order."

    def _sign(self) -> tuple[str, float]:
        if len(self.order) < len(self.ships):
            return "Only an order of all six ships can be signed.", 0.0
        bill = self._bill(self.order)
        if bill == self.best_bill:
            self.over = True
            return f"The bill is {bill}. The board has never paid less.", 1.0 - self.paid
        self.refusals += 1
        self.over = self.refusals == REFUSALS
        reward = 0.2 if bill <= 1.03 * self.best_bill and not self.paid else 0.0
        self.paid += reward
        self.order = []
        return f"The bill would be {bill}: refused. The order is torn up.", reward

    def _bill(self, order: Sequence[str]) -> int:
        day = total = 0
        for ship in order:
            day += self.days[ship]
            total += self.fee[ship] * day
        return total

    def _allowed(self, order: Sequence[str]) -> bool:
        return order.index(self.blocker) < order.index(self.blocked)

    def _status(self) -> str:
        return (
            f"Order: {', '.join(self.order) or 'empty'}. Not surveyed: "
            f"{', '.join(ship for ship in self.ships if ship not in self.surveyed) or 'none'}. "
            f"Refused: {self.refusals} of {REFUSALS}. Goal: a bill of {self.best_bill}. {COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "A short job hardly holds up the others; a dear ship should not wait long."
        if level == 2:
            return (
                "Without the mooring, rank the ships by fee divided by days, highest first. "
                f"With it, treat the {self.blocker} and the {self.blocked} as one ship with their "
                "days and fees added, and rank again."
            )
        return f"The best order begins with {', '.join(self.best_order[:4])}."

    def solution(self) -> list[str]:
        surveys = [f"survey {ship}" for ship in self.ships]
        return [*surveys, *(f"dock {ship}" for ship in self.best_order), "sign"]
