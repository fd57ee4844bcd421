"""False coin. One of nine coins is heavier than the others; find it with a balance and bring it to the judge.

Name the coins on both pans. The judge hears an accusation only after two weighings, and only one accusation.
"""

import random

COINS = "pqrstuvwx"


class CoinEnv:
    max_turns = 6

    def reset(self, seed):
        rng = random.Random(seed)
        self.heavy = rng.choice(COINS)
        self.town = rng.choice(["Lyme", "Bath", "York", "Ely", "Wells", "Truro", "Ripon", "Hull"])
        self.weighings = 0
        return self.view(f"In {self.town} one of the coins p to x is too heavy. Which?"), {}

    def view(self, note):
        return (
            f"{note}\nWeighings so far: {self.weighings}.\nCommands: weigh and the coins of both pans, as in "
            "pqr/stu; accuse and a coin, after two weighings."
        )

    def step(self, action):
        word, _, rest = action.partition(" ")
        left, slash, right = rest.partition("/")
        coins = left + right
        if word == "weigh" and slash and coins and len(set(coins)) == len(coins):
            if set(coins) <= set(COINS):
                self.weighings += 1
                return (
                    self.view(f"The balance: {self.balance(left, right)}."),
                    0.0,
                    False,
                    False,
                    {},
                )
        elif word == "accuse" and rest and rest in COINS and len(rest) == 1 and self.weighings > 1:
            won = rest == self.heavy
            return "The judge nods." if won else "It was another one.", float(won), True, False, {}
        return self.view("The judge yawns."), 0.0, False, False, {}

    def balance(self, left, right):
        weights = [10 * len(pan) + (self.heavy in pan) for pan in (left, right)]
        if weights[0] == weights[1]:
            return "level"
        return "left pan down" if weights[0] > weights[1] else "right pan down"

    def hint(self, level=2):
        # A table that raises for other levels; there are no others.
        return {
            1: "A balance has three answers.",
            2: "Divide the coins that are left into three groups of the same size.",
            3: f"It is one of {''.join(sorted({self.heavy, 'p', 'w'}))}.",
        }[level]

    def solution(self):
        at = COINS.index(self.heavy)
        three = COINS[at - at % 3 :][:3]
        return ["weigh pqr/stu", f"weigh {three[0]}/{three[1]}", f"accuse {self.heavy}"]
