"""Three pegs. Four discs stand on three pegs, no larger one on a smaller one, and all must come to peg C.

One disc is moved at a time, the topmost of its peg, and never onto a smaller disc.
"""

import random


class Pegs:
    """Has the reset that the environment is looked at for."""

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.peg_of = [rng.choice("ABC") for _ in range(4)]  # the smallest disc first
            if 8 <= len(self.plan()) <= 15:
                break
        return self.view("Goal: all four discs on peg C."), {}

    def plan(self):
        """The shortest way: (disc, from, to), the largest disc decides what the others must do."""
        moves, pegs = [], list(self.peg_of)

        def bring(disc, goal):
            if disc < 0:
                return
            if pegs[disc] == goal:
                bring(disc - 1, goal)
                return
            (spare,) = {"A", "B", "C"} - {pegs[disc], goal}
            bring(disc - 1, spare)
            moves.append((pegs[disc], goal))
            pegs[disc] = goal
            bring(disc - 1, goal)

        bring(3, "C")
        return moves


class Tower(Pegs):
    """One more step on the way up."""

    def top(self, peg):
        """The smallest disc on a peg; 9 when there is none."""
        return min((disc for disc in range(4) if self.peg_of[disc] == peg), default=9)


class PegsEnv:
    max_turns = 17

    def view(self, note):
        pegs = "; ".join(
            f"{peg}: {' '.join(str(d + 1) for d in range(4) if self.peg_of[d] == peg) or 'empty'}"
            for peg in "ABC"
        )
        return f"{note}\n{pegs} (1 is the smallest disc).\nCommands: move and two pegs, as in AB."

    def step(self, action):
        word, _, pair = action.partition(" ")
        if word != "move" or len(pair) != 2 or not set(pair) <= set("ABC"):
            return self.view("Name two pegs."), 0.0, False, False, {}
        disc = self.top(pair[0])
        if disc >= self.top(pair[1]):
            return self.view("That disc does not go there."), 0.0, False, False, {}
        self.peg_of[disc] = pair[1]
        if set(self.peg_of) == {"C"}:
            return "The tower stands.", 1.0, True, False, {}
        return self.view("Done."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{len(self.plan())} moves will do, and the first is from {self.plan()[0][0]}."
        return "The largest disc that is not on C moves once; all smaller ones must wait on the third peg."

    def solution(self):
        return [f"move {start}{goal}" for start, goal in self.plan()]
