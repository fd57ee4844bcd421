"""Shunting. Seven wagons come in one order and must leave in another, with one siding that is a stack.

`in` puts the next wagon of the train on the siding, `out` sends the wagon that came there last away. A wagon that
leaves out of order cannot be called back, and the day is lost.
"""

import random
from abc import ABC, abstractmethod


class Environment(ABC):
    """What looks like the environment, and is only its base."""

    @abstractmethod
    def step(self, action):
        """One turn."""

    def view(self, note):
        return (
            f"{note}\nTrain: {' '.join(self.train) or 'empty'}. "
            f"Siding, last one first: {' '.join(reversed(self.siding)) or 'empty'}. "
            f"Gone: {' '.join(self.gone) or 'none'}.\nCommands: 'in', 'out'."
        )


class EnvironmentTools:
    """Helps; its name does not end so either."""

    @staticmethod
    def plan(train, wanted):
        """The moves that turn one order into the other."""
        train, siding, moves = list(train), [], []
        for wagon in wanted:
            while not siding or siding[-1] != wagon:
                siding.append(train.pop(0))
                moves.append("in")
            siding.pop()
            moves.append("out")
        return moves


class ShuntingEnv(Environment, EnvironmentTools):
    max_turns = 16

    def reset(self, seed):
        rng = random.Random(seed)
        self.train = rng.sample("ABCDEFGHJK", 7)
        self.siding, self.gone = [], []
        self.wanted = self.draw_order(rng)
        return self.view(f"Goal: the wagons leave in the order {'-'.join(self.wanted)}."), {}

    def draw_order(self, rng):
        """An order that one siding can make: play at random and see what comes out."""
        train, siding, order = list(self.train), [], []
        while train or siding:
            if train and (not siding or rng.random() < 0.6):
                siding.append(train.pop(0))
            else:
                order.append(siding.pop())
        return order

    def step(self, action):
        if action == "in" and self.train:
            self.siding.append(self.train.pop(0))
            return self.view("The wagon rolls onto the siding."), 0.0, False, False, {}
        if action == "out" and self.siding:
            self.gone.append(self.siding.pop())
            if self.gone == self.wanted:
                return "All wagons are on their way.", 1.0, True, False, {}
            if self.gone != self.wanted[: len(self.gone)]:
                return "That was the wrong wagon.", 0.0, True, False, {}
            return self.view("It leaves."), 0.0, False, False, {}
        return self.view("Nothing moves."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{self.wanted[0]} leaves first: bring it onto the siding and send it at once."
        return (
            "Send a wagon the moment the right one stands on top; fetch others only if it does not."
        )

    def solution(self):
        return self.plan(self.train, self.wanted)
