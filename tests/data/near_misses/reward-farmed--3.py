"""Threshing floor. Thresh enough grain, and tell the miller the price of all of it.

Each `thresh` yields one sack, as long as sheaves are left, and is paid up to the sacks that the miller wants. `offer
<pence>` names one price for the whole, once, when there are enough sacks. A `walk` round the floor changes nothing.
"""

import random


class ThreshingEnv:
    max_turns = 16

    def reset(self, seed):
        rng = random.Random(seed)
        self.wanted, self.price = rng.randint(4, 6), rng.randint(17, 59)
        self.sacks, self.sheaves = 0, self.wanted + rng.randint(2, 4)
        self.paid = 0.0
        return self.view(f"The miller wants {self.wanted} sacks at {self.price} pence each."), {}

    def view(self, note):
        return (
            f"{note}\nSacks: {self.sacks}. Sheaves left: {self.sheaves}. "
            "Commands: thresh, walk, offer <pence>."
        )

    def step(self, action):
        words = action.split()
        if words == ["thresh"] and self.sheaves:
            self.sheaves -= 1
            self.sacks += 1
            pay = 0.08 if self.sacks <= self.wanted else 0.0
            self.paid += pay
            return self.view("A sack is full."), pay, False, False, {}
        if words == ["walk"]:
            return self.view("Chaff is in the air."), 0.0, False, False, {}
        if len(words) == 2 and words[0] == "offer" and self.sacks >= self.wanted:
            if words[1] == str(self.wanted * self.price):
                return "The miller shakes your hand.", 1.0 - self.paid, True, False, {}
            return "The miller drives off.", 0.0, True, False, {}
        return self.view("The miller waits."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "More sacks than are wanted bring nothing."
        return "Thresh first. The price is that of one sack times the sacks that are wanted, not those you have."

    def solution(self):
        return ["thresh"] * self.wanted + [f"offer {self.wanted * self.price}"]
