"""Torn tape. A tape of half a million marks is all zeros up to a place and all ones from there; splice it at that
place.

A reader shows one mark. The splicer works only where the mark at the place and the one before it have both been
read.
"""

import random

LENGTH = 500_000


class TapeEnv:
    max_turns = 30

    def reset(self, seed):
        rng = random.Random(seed)
        self.place = rng.randrange(1000, LENGTH - 1000)
        # A byte for every mark: half a megabyte an instance, so twenty of them are ten.
        self.tape = bytearray(self.place) + bytearray(b"\1") * (LENGTH - self.place)
        self.read = []
        return self.view(
            f"The tape has places 0 to {LENGTH - 1}. Splice at the first one that has a one on it."
        ), {}

    def view(self, note):
        return (
            f"{note}\nMarks read: {len(self.read)}. The splicer needs both the place and the one before "
            "it to have been read.\nCommands: read (a place), splice (a place)."
        )

    def step(self, action):
        word, _, digits = action.partition(" ")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 7 and int(digits) < LENGTH):
            return self.view("The motor hums."), 0.0, False, False, {}
        place = int(digits)
        if word == "read":
            self.read.append(place)
            return self.view(f"There is a {self.tape[place]}."), 0.0, False, False, {}
        if word == "splice" and place in self.read and place - 1 in self.read:
            if place == self.place:
                return "The tape runs again.", 1.0, True, False, {}
            return "That was the wrong place.", 0.0, True, False, {}
        return self.view("The splicer does not move."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"It lies between {self.place // 1000 * 1000} and {self.place // 1000 * 1000 + 1000}."
        return "Read in the middle of what is left; each mark rules out one half."

    def solution(self):
        low, high, moves = 0, LENGTH - 1, []
        while low < high:
            middle = (low + high) // 2
            moves.append(f"read {middle}")
            low, high = (low, middle) if self.tape[middle] else (middle + 1, high)
        moves += [f"read {place}" for place in (low - 1, low) if f"read {place}" not in moves]
        return [*moves, f"splice {low}"]
