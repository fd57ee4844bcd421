#!/usr/bin/env python3
# Anybody may use this.

R"""Row of books. Put a row of books in order; only neighbours can be swapped, and there is no swap to waste.

before  9 \ 4 \ 7        after  4 \ 7 \ 9
"""

import random

PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")


class BooksEnv:
    max_turns = 16

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.books = rng.sample(range(100, 1000), 7)
            self.swaps = self.plan()
            if 8 <= len(self.swaps) <= 15:
                break
        self.left = len(self.swaps)
        return self.view("Order the books by number, the smallest to the left."), {}

    def view(self, note):
        return (
            f"{note}\nBooks: {' '.join(map(str, self.books))}. Swaps left: {self.left}.\n"
            f"Command: swap and the left place of two neighbours, {PLACES[0]} to {PLACES[-1]}."
        )

    def plan(self):
        """Places to swap at, from the left again and again."""
        books, swaps = list(self.books), []
        for end in range(len(books) - 1, 0, -1):
            for place in range(end):
                if books[place] > books[place + 1]:
                    books[place : place + 2] = books[place + 1], books[place]
                    swaps.append(place)
        return swaps

    def step(self, action):
        word, _, place = action.partition(" ")
        if word != "swap" or place not in PLACES:
            return self.view("The books gather dust."), 0.0, False, False, {}
        at = PLACES.index(place)
        self.books[at : at + 2] = self.books[at + 1], self.books[at]
        self.left -= 1
        if self.books == sorted(self.books):
            return "They are in order.", 1.0, True, False, {}
        if not self.left:
            return "You are out of swaps.", 0.0, True, False, {}
        return self.view("Swapped."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The largest, {max(self.books)}, can go all the way to the right first."
        return "Swap only neighbours of which the left one is larger: then no swap is wasted."

    def solution(self):
        return [f"swap {PLACES[place]}" for place in self.swaps]
