"""Knights and knaves. Of five villagers each always tells the truth (a knight) or always lies (a knave).

Each has said one thing about another. Mark every villager, then `submit`; there is one submission.
"""

import itertools
import random

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve")


class VillageEnv:
    max_turns = 8

    def reset(self, seed):
        rng = random.Random(seed)
        # Draw until only one answer is left, but not for ever: the village after the loop has one.
        for _ in range(60):
            self.said = [(rng.choice(self.others(name)), rng.random() < 0.5) for name in NAMES]
            second = rng.sample(NAMES, 2)
            self.more = (*second, rng.random() < 0.5)
            found = self.answers()
            if len(found) == 1:
                break
        else:
            self.said = [(NAMES[(at + 1) % 5], at % 2 == 0) for at in range(5)]
            self.more = ("Ada", "Ben", True)
            found = self.answers()
        self.truth = dict(zip(NAMES, found[0], strict=True))
        self.marks = {}
        self.order = rng.sample(NAMES, 5)
        return self.view("Who tells the truth?"), {}

    def others(self, name):
        return [other for other in NAMES if other != name]

    def answers(self):
        """All ways to be knight or knave that fit what was said, and what the bell-ringer knows."""
        found = []
        for kinds in itertools.product([True, False], repeat=5):
            truth = dict(zip(NAMES, kinds, strict=True))
            fits = all(
                truth[name] == (truth[of] == knight)
                for name, (of, knight) in zip(NAMES, self.said, strict=True)
            )
            one, other, alike = self.more
            if fits and (truth[one] == truth[other]) == alike and any(kinds):
                found.append(kinds)
        # Of two villages that differ in every villager the one with more knights is meant.
        most = max((sum(kinds) for kinds in found), default=0)
        return [kinds for kinds in found if sum(kinds) == most]

    def view(self, note):
        lines = [
            f"{name}: {of} is a {'knight' if knight else 'knave'}."
            for name, (of, knight) in zip(NAMES, self.said, strict=True)
        ]
        one, other, alike = self.more
        lines.append(f"It is certain that {one} and {other} are {'' if alike else 'not '}alike.")
        lines.append("If several answers fit, the one with the most knights is right.")
        marks = ", ".join(f"{name} {kind}" for name, kind in self.marks.items()) or "none"
        return (
            "\n".join([note, *lines])
            + f"\nMarks: {marks}.\nCommands: mark (a name, knight or knave), submit."
        )

    def step(self, action):
        words = action.split()
        if len(words) == 3 and words[0] == "mark" and words[1] in NAMES:
            if words[2] in ("knight", "knave"):
                self.marks[words[1]] = words[2]
                return self.view("Noted."), 0.0, False, False, {}
        elif action == "submit" and len(self.marks) == 5:
            won = all((self.marks[name] == "knight") == self.truth[name] for name in NAMES)
            return "That is right." if won else "No.", float(won), True, False, {}
        return self.view("The villagers wait."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"{sum(self.truth.values())} of them are knights."
        return "Suppose one is a knight, follow what that makes of the others, and look for a contradiction."

    def solution(self):
        kinds = {True: "knight", False: "knave"}
        return [*(f"mark {name} {kinds[self.truth[name]]}" for name in self.order), "submit"]
