"""Hailstones. A machine halves an even number, and makes three times it and one of an odd number, until it comes to 1.

Choose a number below 100 with `set <number>`, then `run`. First a run of one length is wanted, then one of another.
"""

import random

NUMBERS = {str(number): number for number in range(2, 100)}


def hail(number):
    """How many steps to 1; the loop has no bound that one could see, but every number below 100 ends it."""
    steps = 0
    while True:
        if number == 1:
            return steps
        number = 3 * number + 1 if number % 2 else number // 2
        steps += 1


class HailEnv:
    max_turns = 10

    def reset(self, seed):
        rng = random.Random(seed)
        self.numbers = rng.sample(range(10, 100), 2)
        while hail(self.numbers[0]) == hail(self.numbers[1]):
            self.numbers[1] = self.numbers[1] % 97 + 2  # walks over all numbers, so this ends
        self.wanted = [hail(number) for number in self.numbers]
        self.number, self.met = None, 0
        return self.view(
            f"Two runs are wanted: one of {self.wanted[0]} steps, then one of {self.wanted[1]}."
        ), {}

    def view(self, note):
        number = "no number" if self.number is None else f"the number {self.number}"
        return (
            f"{note}\nThe machine holds {number}. Runs that were right: {self.met} of 2.\n"
            "Commands: set (a number from 2 to 99), run."
        )

    def step(self, action):
        word, _, number = action.partition(" ")
        if word == "set" and number in NUMBERS:
            self.number = NUMBERS[number]
            return self.view("The number drops in."), 0.0, False, False, {}
        if action != "run" or self.number is None:
            return self.view("The machine hums."), 0.0, False, False, {}
        steps, self.number = hail(self.number), None
        if steps != self.wanted[self.met]:
            return self.view(f"It ran {steps} steps."), 0.0, False, False, {}
        self.met += 1
        if self.met == 2:
            return "The machine stops with a chime.", 1.0, True, False, {}
        return self.view(f"It ran {steps} steps, as wanted."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"Try a number near {self.numbers[0] // 10 * 10} first."
        return "Work backwards from 1: double, or take away one and divide by three where that leaves an odd number."

    def solution(self):
        first, second = self.numbers
        return [f"set {first}", "run", f"set {second}", "run"]
