"""Sorting yard. Bring five wagons into the order of their numbers by turning the front part of the train.

`turn` takes how many wagons, from the left, are run round the loop and come back the other way round.
"""

import random
from itertools import pairwise


class SortingYardEnv:
    max_turns = 12

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.train = rng.sample(range(11, 99), 6)
            self.way = self.plan()
            if len(self.way) >= 6:
                break
        return self.view(
            "Goal: the lowest number on the left, the highest on the right."
        ), self.notes()

    def plan(self):
        """Bring the highest to the left and turn it into its place, then the next."""
        train, way = list(self.train), []
        for size in range(len(train), 1, -1):
            front = train.index(max(train[:size])) + 1
            if front == size:
                continue
            for count in (front, size):
                if count > 1:
                    train[:count] = train[:count][::-1]
                    way.append(count)
        return way

    def notes(self):
        """Everything that JSON can carry."""
        pairs = tuple(pairwise(self.train))
        return {
            "train": self.train,
            "pairs": pairs,
            "by place": dict(enumerate(self.train)),
            "share": sum(a < b for a, b in pairs) / len(pairs),
            "hash": sum(n * 100**place for place, n in enumerate(self.train)),
            "sorted": self.train == sorted(self.train),
            "driver": None,
            "Gleis": {"L\u00e4nge": [{"m": 12.5}]},
        }

    def view(self, note):
        return (
            f"{note}\nTrain: {' '.join(map(str, self.train))}.\nCommand: turn <how many>, 2 to 6."
        )

    def step(self, action):
        verb, _, word = action.partition(" ")
        if verb != "turn" or word not in ("2", "3", "4", "5", "6"):
            return self.view("The points stay as they are."), 0.0, False, False, self.notes()
        self.train[: int(word)] = self.train[: int(word)][::-1]
        if self.train == sorted(self.train):
            return "In order.", 1.0, True, False, self.notes()
        return self.view("Round the loop."), 0.0, False, False, self.notes()

    def hint(self, level=2):
        return "Bring the highest that is out of place to the left, then turn it into its place."

    def solution(self):
        return [f"turn {count}" for count in self.way]
