"""Mirror gate. Four doors ask for a word, and each one tells it; but a door wants to hear it turned round.

Every door says how: its word backwards, or with its first letter brought to the end, or without its first letter.
"""

import random

WORDS = [
    *("parsley", "marble", "thunder", "copper", "winter", "basket", "candle", "orchid"),
    *("saddle", "timber", "velvet", "walnut", "bridge", "cobalt", "fennel", "gravel"),
]
WAYS = {
    "backwards": lambda word: word[::-1],
    "with its first letter at the end": lambda word: word[1:] + word[0],
    "without its first letter": lambda word: word[1:],
}
DOORS = 4


class MirrorEnv:
    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.doors = [(word, rng.choice(sorted(WAYS))) for word in rng.sample(WORDS, DOORS)]
        self.passed = 0
        return self.view(
            "Four doors stand one behind the other, and the hall is behind the last."
        ), {}

    def view(self, note):
        word, way = self.doors[self.passed]
        return (
            f"{note}\nDoor {self.passed + 1} of {DOORS} says: the word is {word}. Say it {way}.\n"
            "Commands: say <word>."
        )

    def step(self, action):
        if action.split() != self.solution()[self.passed].split():
            return self.view("The door is silent."), 0.0, False, False, {}
        self.passed += 1
        if self.passed == DOORS:
            return "You stand in the hall.", 1.0, True, False, {}
        return self.view("The door swings open."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Spell the word letter by letter, then do with the letters what the door asks for."

    def solution(self):
        return [f"say {WAYS[way](word)}" for word, way in self.doors]
