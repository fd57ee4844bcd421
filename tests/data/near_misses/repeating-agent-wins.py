"""Shunting lamp. Push a wagon over eight sections of a yard; before each one a lamp asks for something.

What the colours ask for stands in the book of this yard, which is another one every night. Nearly always it is a push,
but a single wrong move puts the wagon off the rails.
"""

import random

COLOURS = ("red", "green", "white", "blue", "violet")
MOVES = ("push", "wait", "whistle")
SECTIONS = 8


class YardEnv:
    max_turns = 20

    def reset(self, seed):
        rng = random.Random(seed)
        colours = rng.sample(COLOURS, len(COLOURS))
        wanted = ["push", "push", "push", "wait", "whistle"]
        self.book = dict(zip(colours, wanted, strict=True))
        self.lamps = []
        for _ in range(SECTIONS):
            halts = rng.sample(
                [colour for colour in colours if self.book[colour] != "push"], rng.randint(0, 1)
            )
            self.lamps += [*halts, rng.choice([c for c in colours if self.book[c] == "push"])]
        halt = rng.choice([colour for colour in colours if self.book[colour] != "push"])
        self.lamps.insert(rng.randrange(2, len(self.lamps)), halt)
        self.at = 0
        rules = "; ".join(f"{colour}: {self.book[colour]}" for colour in sorted(self.book))
        return self.view(
            f"The book of this yard says: {rules}. Bring the wagon out of the yard."
        ), {}

    def view(self, note):
        left = sum(self.book[colour] == "push" for colour in self.lamps[self.at :])
        return (
            f"{note}\nSections to go: {left}. The lamp shows {self.lamps[self.at]}.\n"
            f"Reply with one of: {', '.join(MOVES)}."
        )

    def step(self, action):
        move = action.strip().lower()
        if move not in MOVES:
            return self.view("Nothing moves."), 0.0, False, False, {}
        if move != self.book[self.lamps[self.at]]:
            return "A crunch, and the wagon is off the rails.", 0.0, True, False, {}
        self.at += 1
        if self.at == len(self.lamps):
            return "The wagon rolls out of the yard.", 1.0, True, False, {}
        return (
            self.view("The wagon rolls on." if move == "push" else "The lamp changes."),
            0.0,
            False,
            False,
            {},
        )

    def hint(self, level=2):
        return "Look the colour up in the book each time, and never push out of habit."

    def solution(self):
        return [self.book[colour] for colour in self.lamps]
