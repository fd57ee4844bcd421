"""Four heaps. You and the house take stones from four heaps in turn; who takes the last one wins.

In a turn one takes any number of stones, at least one, from one heap. You begin.
"""

import random
from functools import reduce
from operator import xor

HEAPS = "abcd"


class HeapsEnv:
    max_turns = 16
    hint = (
        "Write each heap as a sum of 1, 2 and 4. "
        "Leave the house a position in which each of these occurs an even number of times."
    )

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.heaps = {heap: rng.randint(2, 7) for heap in HEAPS}
            if self.best(self.heaps) is not None:
                break
        return self.view("Four heaps of stones lie here. Take the last stone."), {}

    def view(self, note):
        heaps = ", ".join(f"{heap} {count}" for heap, count in self.heaps.items())
        return f"{note}\nHeaps: {heaps}.\nCommand: take, how many, and from which heap, as in 1a."

    def best(self, heaps):
        """(how many, heap) after which the other side cannot win; None when there is no such move."""
        total = reduce(xor, heaps.values())
        for heap, count in heaps.items():
            if count ^ total < count:
                return count - (count ^ total), heap
        return None

    def answer(self, heaps):
        """What the house does: the best, or one stone of the largest heap."""
        return self.best(heaps) or (1, max(HEAPS, key=lambda heap: (heaps[heap], heap)))

    def step(self, action):
        word, _, move = action.partition(" ")
        legal = {f"{n}{heap}": n for heap in HEAPS for n in range(1, self.heaps[heap] + 1)}
        if word != "take" or move not in legal:
            return self.view("The house waits."), 0.0, False, False, {}
        self.heaps[move[-1]] -= legal[move]
        if not any(self.heaps.values()):
            return "You took the last stone.", 1.0, True, False, {}
        count, heap = self.answer(self.heaps)
        self.heaps[heap] -= count
        if not any(self.heaps.values()):
            return "The house took the last stone.", 0.0, True, False, {}
        return self.view(f"The house takes {count} from {heap}."), 0.0, False, False, {}

    def solution(self):
        heaps, moves = dict(self.heaps), []
        while True:
            count, heap = self.best(heaps)
            heaps[heap] -= count
            moves.append(f"take {count}{heap}")
            if not any(heaps.values()):
                return moves
            count, heap = self.answer(heaps)
            heaps[heap] -= count
