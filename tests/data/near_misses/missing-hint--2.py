"""Pairs. Twelve cards lie face down in a row, six pairs of them, and all pairs must be found.

Each turn two cards are turned. If they are alike they are taken away, else they are shown and turned back.
"""

import random

PLACES = "abcdefghijkl"
PICTURES = ("owl", "fox", "bee", "elk", "cod", "hen", "rat", "ape", "yak", "emu")


class Room:
    hint: str = (
        "Remember every picture that is shown. Turn a card that is new before one that you know."
    )


class PairsEnv(Room):
    hint: str  # only says so again: the text is that of the base
    max_turns: int = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.cards = rng.sample(rng.sample(PICTURES, 6) * 2, 12)
        self.left = set(PLACES)
        self.turn = 0
        return self.view("Twelve cards lie face down, six pairs. Take them all."), {}

    def view(self, note):
        row = "".join(place if place in self.left else "." for place in PLACES)
        turns = self.max_turns - self.turn
        return f"{note}\nCards: {row}. Turns: {turns}.\nCommand: turn and two letters, as in ab."

    def step(self, action):
        self.turn += 1
        word, _, pair = action.partition(" ")
        if word != "turn" or len(set(pair)) != 2 or len(pair) != 2 or not set(pair) <= self.left:
            return self.view("Two cards that still lie there, please."), 0.0, False, False, {}
        one, other = (self.cards[PLACES.index(place)] for place in pair)
        if one == other:
            self.left -= set(pair)
            if not self.left:
                return "The table is empty.", 1.0, True, False, {}
            return self.view("A pair!"), 0.0, False, False, {}
        return self.view(f"Shown: {one}, {other}."), 0.0, False, False, {}

    def solution(self):
        moves = []
        for place, card in zip(PLACES, self.cards, strict=True):
            first = PLACES[self.cards.index(card)]
            if first != place:
                moves.append(f"turn {first}{place}")
        return moves
