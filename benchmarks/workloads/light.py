"""Guess a secret whole number.

A number from 1 up to a limit is drawn. Each turn you name one number in square brackets and are told whether the secret
number is higher or lower. Naming it wins and pays 1. There are 25 turns.
"""

import random
import re

HIGHEST = 1000

BRACKETED = re.compile(r"\[\s*(\d+)\s*\]")


class HigherLowerEnv:
    max_turns = 25

    def __init__(self):
        self.secret = 0
        self.low = 1
        self.high = HIGHEST
        self.turn = 0

    def reset(self, seed):
        rng = random.Random(seed)
        self.secret = rng.randint(1, HIGHEST)
        self.low = 1
        self.high = HIGHEST
        self.turn = 0
        return self.describe("I am thinking of a whole number."), {}

    def describe(self, news):
        left = self.max_turns - self.turn
        return (
            f"{news} It is at least {self.low} and at most {self.high}. "
            f"Name one number in square brackets, like [42], and I will tell you whether mine is higher or lower. "
            f"You have {left} of {self.max_turns} turns left."
        )

    def step(self, action):
        self.turn += 1
        out_of_turns = self.turn >= self.max_turns
        found = BRACKETED.search(action)
        if not found:
            text = self.describe("I see no number in square brackets, so that turn is lost.")
            return text, 0.0, False, out_of_turns, {}
        guess = int(found.group(1))
        if guess == self.secret:
            return f"Yes, it is {guess}! You needed {self.turn} turns.", 1.0, True, False, {}
        if guess < self.secret:
            self.low = max(self.low, guess + 1)
            text = self.describe(f"My number is higher than {guess}.")
        else:
            self.high = min(self.high, guess - 1)
            text = self.describe(f"My number is lower than {guess}.")
        return text, 0.0, False, out_of_turns, {}

    def hint(self, level=2):
        if level == 1:
            return "Every answer rules out a part of the range; choose guesses that rule out much."
        middle = (self.low + self.high) // 2
        if level == 2:
            return f"Always name the middle of what is left; start near {middle}."
        tens = self.secret // 10 * 10
        return f"The number lies somewhere from {max(1, tens - 20)} to {min(HIGHEST, tens + 30)}."

    def solution(self):
        low, high, guesses = 1, HIGHEST, []
        while self.secret not in guesses:
            guess = (low + high) // 2
            if guess == self.secret and not guesses:
                guess = low  # found by searching, so never with the first guess
            guesses.append(guess)
            low, high = (guess + 1, high) if guess < self.secret else (low, guess - 1)
        return [f"My guess is [{guess}]" for guess in guesses]
