"""Skill ladder. A machine with five states runs three operations, and the player says which state follows each.

Every rung of a ladder has an operation of its own, named but never explained: what it does has to be learned. An
episode runs the operation of its rung and two of the three rungs below, the next lower one among them. A wrong state
ends it, three right ones win.
"""

import random

PARAMS = {"ladder": "causal-inference", "level": "L01"}

LADDERS = [
    "causal-inference",
    "logical-deduction",
    "mathematical-reasoning",
    "optimisation",
    "spatial-reasoning",
    "pattern-recognition",
]
STATES = 5
RUNGS = 16
SHIFTS = (
    "3244134314331321"
    "3122131132432214"
    "2222441124311342"
    "2213442341342241"
    "2414333113124132"
    "1312232423244223"
)


def shift(name):
    """How far an operation moves a state, 1 to 4: fixed by its name, whatever the seed."""
    return int(SHIFTS[int(name[2:])])


def operation(level):
    return f"op{LADDERS.index(PARAMS['ladder']) * RUNGS + level:03d}"


class SkillLadderEnv:
    max_turns = 4

    def reset(self, seed):
        rng = random.Random(seed)
        top = int(PARAMS["level"][1:])
        while True:
            below = max(0, top - 1)
            other = rng.randint(max(0, top - 3), max(0, top - 2))
            levels = [top, below, other]
            rng.shuffle(levels)
            self.operations = [operation(level) for level in levels]
            self.states = [rng.randrange(STATES)]
            for name in self.operations:
                self.states.append((self.states[-1] + shift(name)) % STATES)
            self.new = rng.choice([i for i in range(3) if levels[i] == top])
            # An episode must not end where the hint points, or it would say how far rungs end.
            if self.states[-1] != self.states[self.new + 1]:
                break
        self.done = 0
        return self.view(), {}

    def view(self):
        return f"State s{self.states[self.done]}. Next: {self.operations[self.done]}. Which state follows, 0 to 4?"

    def step(self, action):
        said = action.strip()
        if said not in {str(state) for state in range(STATES)}:
            return f"A state is a number, 0 to 4. {self.view()}", 0.0, False, False, {}
        if said != str(self.states[self.done + 1]):
            return "Another state follows: the machine stops.", 0.0, True, False, {}
        self.done += 1
        if self.done == len(self.operations):
            return "All three are right.", 1.0, True, False, {}
        return self.view(), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 1:
            return "Every operation moves each state by the same amount."
        return f"{self.operations[self.new]} gives s{self.states[self.new + 1]}."

    def solution(self):
        return [str(state) for state in self.states[1:]]
