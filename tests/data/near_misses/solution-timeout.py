"""Sawmill. A beam must be sawn at seven marks; each cut costs as much as the piece is long that is cut.

The order of the cuts decides what they cost in all. Only the cheapest way is accepted.
"""

import random
from functools import cache


class SawmillEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.marks = sorted(rng.sample(range(5, 95), 7))
        self.cuts, self.cost = [], 0
        self.least = self.cheapest()[0]
        return self.view(
            f"A beam of 100 feet must be sawn at all marks for {self.least} pence, the least there is."
        ), {}

    def cheapest(self):
        """(cost, order): every way to cut every piece, of which there are many, but each is done once."""

        @cache
        def best(start, end):
            inside = [mark for mark in self.marks if start < mark < end]
            if not inside:
                return 0, ()
            found = []
            for mark in inside:
                left, right = best(start, mark), best(mark, end)
                found.append((end - start + left[0] + right[0], (mark, *left[1], *right[1])))
            return min(found)

        return best(0, 100)

    def view(self, note):
        left = [str(mark) for mark in self.marks if mark not in self.cuts]
        return (
            f"{note}\nMarks without a cut, in feet: {', '.join(left)}. Paid so far: {self.cost} pence. "
            "A cut costs a penny for each foot of the piece that is cut.\nCommand: saw and a mark."
        )

    def step(self, action):
        word, _, name = action.partition(" ")
        left = {str(mark): mark for mark in self.marks if mark not in self.cuts}
        if word != "saw" or name not in left:
            return self.view("The saw is quiet."), 0.0, False, False, {}
        mark, ends = left[name], [0, *self.cuts, 100]
        self.cost += min(at for at in ends if at > mark) - max(at for at in ends if at < mark)
        self.cuts.append(mark)
        if self.cost > self.least:
            return "That is already too dear.", 0.0, True, False, {}
        if len(self.cuts) == len(self.marks):
            return "The beam is sawn, at the least cost.", 1.0, True, False, {}
        return self.view("Sawdust."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The first cut is at {self.cheapest()[1][0]}."
        return "Work out the cheapest way for two neighbouring marks, then for three, and so on up."

    def solution(self):
        return [f"saw {mark}" for mark in self.cheapest()[1]]
