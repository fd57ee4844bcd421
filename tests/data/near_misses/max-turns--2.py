"""Sandglasses. Two glasses run for known minutes; call out at the very minute that is asked for.

Glasses can be turned at any moment when one has just run out, and at the beginning. `wait` lets time pass until
the next glass runs out, `call` ends the game.
"""

import random
from collections import deque

TURNS = ("turn left", "turn right")


class Game:
    max_turns = 100


class SandglassEnv(Game):
    max_turns: int  # the number is that of the base, and it is the largest that there may be

    def reset(self, seed):
        rng = random.Random(seed)
        for _ in range(200):
            self.size = tuple(rng.sample(range(4, 16), 2))
            self.wanted = rng.randint(5, 40)
            self.plan = self.search()
            if 6 <= len(self.plan) <= 12:
                break
        self.state = (0, 0, 0)
        left, right = self.size
        return self.view(
            f"The left glass runs {left} minutes, the right one {right}. Call at minute {self.wanted}."
        ), {}

    def view(self, note):
        minute, *sand = self.state
        return (
            f"{note}\nIt is minute {minute}. Above in the left glass: {sand[0]}, in the right: {sand[1]}.\n"
            "Commands: turn (left or right), wait, call."
        )

    def after(self, state, action):
        """The state that follows; None when nothing can happen."""
        minute, *sand = state
        if action in TURNS:
            place = TURNS.index(action)
            sand[place] = self.size[place] - sand[place]
            return (minute, *sand)
        running = [above for above in sand if above]
        if action != "wait" or not running:
            return None
        passed = min(running)
        return (minute + passed, *(max(above - passed, 0) for above in sand))

    def search(self):
        """The shortest way to the minute, and the call; empty when there is none."""
        came = {(0, 0, 0): []}
        queue = deque(came)
        while queue:
            state = queue.popleft()
            if state[0] == self.wanted:
                return [*came[state], "call"]
            for action in (*TURNS, "wait"):
                after = self.after(state, action)
                if after and after[0] <= self.wanted and after not in came:
                    came[after] = [*came[state], action]
                    queue.append(after)
        return []

    def step(self, action):
        if action == "call":
            won = self.state[0] == self.wanted
            return "It is the minute." if won else "Wrong.", float(won), True, False, {}
        after = self.after(self.state, action)
        if after is None:
            return self.view("The sand does not care."), 0.0, False, False, {}
        if after[0] > self.wanted:
            return "Too late.", 0.0, True, False, {}
        self.state = after
        return self.view("So be it."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"It can be done with {self.plan.count('wait')} times waiting."
        return (
            "Sand that is left when the other glass ends is a new length: turn the glass to use it."
        )

    def solution(self):
        return list(self.plan)
