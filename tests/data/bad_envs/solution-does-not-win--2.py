"""Number machine. Seven operations, one after the other, must turn one number into another; then the machine stops.

The witness has an action more than there are turns.
"""

import random

OPERATIONS = {
    "halve": lambda n: n // 2,
    "triple": lambda n: n * 3,
    "mirror": lambda n: int(str(n)[::-1]),
    "lower": lambda n: abs(n - 17),
    "raise": lambda n: n + 26,
}


class MachineEnv:
    max_turns = 6
    operations = 7

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.start = self.number = rng.randint(10, 99)
            self.program = [rng.choice(list(OPERATIONS)) for _ in range(self.operations)]
            numbers = [self.start]
            for name in self.program:
                numbers.append(OPERATIONS[name](numbers[-1]))
            self.wanted = numbers[-1]
            if len(set(numbers)) == 8 and max(numbers) < 10_000:
                break
        self.done = 0
        return self.view(
            f"Make {self.wanted} of {self.start} in exactly seven operations. halve rounds down; mirror "
            "writes the digits backwards; lower takes 17 away and drops the sign; raise adds 26."
        ), {}

    def view(self, note):
        return (
            f"{note}\nThe number is {self.number}; operations left: {self.operations - self.done}.\n"
            "Commands: halve, lower, mirror, raise, triple."
        )

    def step(self, action):
        self.done += 1
        if action in OPERATIONS:
            self.number = OPERATIONS[action](self.number)
        if self.done == self.operations:
            won = self.number == self.wanted and action in OPERATIONS
            return f"The machine stops at {self.number}.", 1.0 if won else 0.0, True, False, {}
        return (
            self.view("Clunk." if action in OPERATIONS else "A lamp blinks."),
            0.0,
            False,
            False,
            {},
        )

    def hint(self, level=2):
        if level == 3:
            return f"The last operation is {self.program[-1]}."
        return "Go back from the wanted number: undo each operation, and see which number can have come before."

    def solution(self):
        return list(self.program)
