"""Grain market. The prices of ten days are known; buy and sell one sack a day, and end with all the money there can be.

Each day you `buy` a sack, `sell` one, or `wait`. You may hold one sack at most, and begin with none.
"""

import random
from collections import defaultdict
from io import StringIO
from itertools import pairwise

DAYS = 10


class MarketEnv:
    max_turns = 12

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            prices = rng.sample(range(20, 100), DAYS)
            self.prices = prices
            self.best = self.plan()
            if 2 <= self.best.count("buy") <= 4:
                break
        self.day = self.money = 0
        self.bought = None
        self.profit = sum(max(b - a, 0) for a, b in pairwise(prices))
        # Inside they are a StringIO and a defaultdict; what is returned is a str and a dict.
        text = StringIO(self.view("Make as much money as these ten days allow."))
        info = defaultdict(list, prices=prices, book={"day": 0, "sack": None}, open=[True, 1.5])
        info["seen"].append("nothing")
        return text.getvalue(), dict(info)

    def view(self, note):
        days = ", ".join(f"day {day} {price}" for day, price in enumerate(self.prices, 1))
        return (
            f"{note}\nPrices: {days}. It is day {self.day + 1}. Money: {self.money}. "
            f"Sacks: {int(self.bought is not None)}.\nCommands: buy, sell, wait."
        )

    def plan(self):
        """Hold a sack over every night in which the price rises."""
        moves, holds = [], False
        for today, tomorrow in zip(self.prices, [*self.prices[1:], 0], strict=True):
            rises = tomorrow > today
            moves.append("wait" if rises == holds else ("buy" if rises else "sell"))
            holds = rises
        return moves

    def step(self, action):
        price = self.prices[self.day]
        if action == "buy" and self.bought is None:
            self.money, self.bought = self.money - price, price
        elif action == "sell" and self.bought is not None:
            self.money, self.bought = self.money + price, None
        elif action != "wait":
            return self.view("The market shakes its head."), 0.0, False, False, {}
        self.day += 1
        if self.day < DAYS:
            return self.view("The bell rings, a day is over."), 0.0, False, False, {}
        won = self.money == self.profit
        return f"You have made {self.money}.", 1.0 if won else 0.0, True, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{self.best.count('buy')} sacks are bought in all; the profit is {self.profit}."
        return "Hold a sack over every night in which the price rises, and over no other."

    def solution(self):
        return list(self.best)
