"""Field book. Pace out a field in the shape of an L, write its area into the book, and seal the page.

It is a question with one number for an answer, but it is the seal that counts, and a seal on an empty page means
nothing. A sealed page cannot be changed.
"""

import random

SIDES = ("north", "east", "south", "west")


class FieldEnv:
    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.south, self.west = rng.randint(30, 60), rng.randint(30, 60)
        self.north, self.east = rng.randint(10, self.south - 10), rng.randint(10, self.west - 10)
        self.written = None
        return self.view(
            "The field has six sides and square corners; a corner in the north-east was sold. So its north "
            "side is shorter than its south side, and its east side shorter than its west side."
        ), {}

    def view(self, note):
        page = "empty" if self.written is None else f"{self.written} square paces"
        return f"{note}\nThe page: {page}. Commands: 'pace <side>', 'write <area>', 'seal'."

    def area(self):
        return self.south * self.west - (self.south - self.north) * (self.west - self.east)

    def step(self, action):
        words = action.split()
        if len(words) == 2 and words[0] == "pace" and words[1] in SIDES:
            return (
                self.view(f"The {words[1]} side is {getattr(self, words[1])} paces."),
                0.0,
                False,
                False,
                {},
            )
        if len(words) == 2 and words[0] == "write" and words[1].isascii() and words[1].isdigit():
            self.written = int(words[1][:9])
            return self.view("The ink dries."), 0.0, False, False, {}
        if words != ["seal"] or self.written is None:
            return self.view("The clerk sharpens a quill."), 0.0, False, False, {}
        if self.written == self.area():
            return "The court accepts the page.", 1.0, True, False, {}
        return "The court throws the page out.", 0.0, True, False, {}

    def hint(self, level=2):
        return "Take the whole rectangle of the two long sides, less the corner that was sold."

    def solution(self):
        return [*(f"pace {side}" for side in SIDES), f"write {self.area()}", "seal"]
