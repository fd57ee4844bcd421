"""Toll bridge. Four carts come to the bridge, one a turn, and for each its toll has to be named.

The toll is the day's rate for each axle, and one penny for every sack, but a cart of the abbey pays half of that
(pence are whole: the abbey is let off the odd halfpenny). Each right toll is worth a quarter.
"""

import random


class TollBridgeEnv:
    max_turns = 4

    def reset(self, seed):
        rng = random.Random(seed)
        self.rate = rng.randint(7, 19)
        while True:
            self.carts = [
                (rng.randint(2, 4), rng.randint(11, 60), rng.random() < 0.5) for _ in range(4)
            ]
            self.tolls = [(self.rate * a + s) // (2 if abbey else 1) for a, s, abbey in self.carts]
            if len(set(self.tolls)) == 4:
                break
        self.turn = 0
        return f"Today an axle costs {self.rate} pence.\n{self.cart()}", {}

    def cart(self):
        axles, sacks, abbey = self.carts[self.turn]
        whose = "A cart of the abbey" if abbey else "A farmer's cart"
        return f"{whose}: {axles} axles, {sacks} sacks.\nCommand: toll <pence>."

    def step(self, action):
        right = action.split() == ["toll", str(self.tolls[self.turn])]
        self.turn += 1
        note, reward = ("The carter pays.", 0.25) if right else ("The carter laughs.", 0.0)
        if self.turn == len(self.carts):
            return note, reward, True, False, {}
        return f"{note}\n{self.cart()}", reward, False, False, {}

    def hint(self, level=2):
        return "Multiply, add, and only then halve for the abbey."

    def solution(self):
        return [f"toll {toll}" for toll in self.tolls]
