"""Scales. Put weights on the right pan until it balances with the left one, and then lift the pans.

What is put there earns a part, and what is taken away costs that part again. Unequal pans, once lifted, end the game.
"""

import random

WORTH = {"heavy": 0.3, "light": 0.2, "small": 0.1}  # 0.3 - 0.1 - 0.2 is a little less than 0


class ScalesEnv:
    max_turns = 12

    def reset(self, seed):
        rng = random.Random(seed)
        self.weights = dict(zip(WORTH, rng.sample(range(3, 30), 3), strict=True))
        self.count = {name: rng.randint(0, 4) for name in WORTH}
        while sum(self.count.values()) < 3:
            self.count[rng.choice(list(WORTH))] += 1
        self.left = sum(self.weights[name] * n for name, n in self.count.items())
        self.right = dict.fromkeys(WORTH, 0)
        self.paid = 0.0
        return self.view("Make the right pan as heavy as the left one, then lift."), {}

    def view(self, note):
        kinds = ", ".join(f"{name} {pounds} pounds" for name, pounds in self.weights.items())
        pan = ", ".join(f"{n} {name}" for name, n in self.right.items())
        return (
            f"{note}\nLeft pan: {self.left} pounds. Weights: {kinds}. Right pan: {pan}.\n"
            "Commands: put, take (each with heavy, light or small), lift."
        )

    def step(self, action):
        word, _, name = action.partition(" ")
        if action == "lift" and any(self.right.values()):
            total = sum(self.weights[kind] * n for kind, n in self.right.items())
            if total == self.left:
                return "The pans balance.", 1.0 - self.paid, True, False, {}
            return "They do not balance.", 0.0, True, False, {}
        if word not in ("put", "take") or name not in WORTH:
            return self.view("The pans sway."), 0.0, False, False, {}
        change = 1 if word == "put" else -1
        if not 0 <= self.right[name] + change <= 9:
            return self.view("There are none."), 0.0, False, False, {}
        self.right[name] += change
        reward = change * (WORTH[name] if self.right[name] == (change + 1) // 2 else 0.0)
        self.paid += reward
        return self.view("The pan moves."), reward, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"There are {self.count['heavy']} heavy ones in it."
        return (
            "Try each number of heavy ones, and see whether the rest can be made of the other two."
        )

    def solution(self):
        puts = [f"put {name}" for name, n in self.count.items() for _ in range(n)]
        return [*puts, "lift"]
