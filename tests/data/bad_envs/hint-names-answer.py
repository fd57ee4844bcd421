"""Opera house. Question the staff and accuse the one who took the score.

`staff` lists who was in the house, `question <name>` gives the hours that one was seen, and `accuse <name> <hour>` can
be said once, after at least two questions. The thief is the one who was seen at the hour of the theft and says not.
"""

import random

NAMES = ("Anselm", "Berta", "Cosima", "Dorian", "Elvira", "Falk", "Gilda", "Hagen")


class OperaHouseEnv:
    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.staff = rng.sample(NAMES, 5)
        self.hours = dict(zip(self.staff, rng.sample(range(1, 24), 5), strict=True))
        self.thief = rng.choice(self.staff)
        self.asked = set()
        return self.view("The score is gone. One of the staff has it."), {}

    def view(self, note):
        return f"{note}\nCommands: staff, question <name>, accuse <name> <hour>."

    def step(self, action):
        words = action.split()
        if words == ["staff"]:
            return self.view(f"In the house: {', '.join(self.staff)}."), 0.0, False, False, {}
        if len(words) == 2 and words[0] == "question" and words[1] in self.staff:
            self.asked.add(words[1])
            blush = " There is a blush." if words[1] == self.thief else ""
            return (
                self.view(f"{words[1]} was seen at {self.hours[words[1]]}.{blush}"),
                0.0,
                False,
                False,
                {},
            )
        if len(words) == 3 and words[0] == "accuse" and len(self.asked) > 1:
            if words[1:] == [self.thief, str(self.hours[self.thief])]:
                return "The score is found.", 1.0, True, False, {}
            return "The wrong one weeps.", 0.0, True, False, {}
        return self.view("The house is silent."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Watch how they answer, not only what."
        return f"Have an eye on {self.thief}, and remember the hour that you are told."

    def solution(self):
        others = [name for name in self.staff if name != self.thief]
        last = f"accuse {self.thief} {self.hours[self.thief]}"
        return ["staff", f"question {others[0]}", f"question {self.thief}", last]
