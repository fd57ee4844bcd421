"""Canal lock. Lift a barge from the lower pound to the upper one.

`open gate` lets the barge in, `close gate` shuts the lock behind it, `fill <inches>` lets water in, and `sail` leaves
through the upper gate. The water must rise by exactly the step between the pounds, and the lock is filled only once.
"""

import random


class CanalLockEnv:
    max_turns = 20

    def reset(self, seed):
        rng = random.Random(seed)
        self.lower, self.rise = rng.randint(110, 190), rng.randint(31, 95)
        self.open, self.inside, self.filled = False, False, 0
        self.paid = 0.0
        return self.view("A barge waits below the lock. Goal: sail on the upper pound."), {}

    def view(self, note):
        gate = "open" if self.open else "closed"
        place = "in the lock" if self.inside else "below it"
        return (
            f"{note}\nLower pound at {self.lower} inches, upper pound at {self.lower + self.rise}. "
            f"The gate is {gate}, the barge {place}. "
            "Commands: open gate, close gate, fill <inches>, sail."
        )

    def step(self, action):
        words = action.split()
        if words == ["open", "gate"] and not self.open and not self.filled:
            self.open = self.inside = True
            pay = 0.1 if self.paid < 0.75 else 0.0  # every time that it opens
            self.paid += pay
            return self.view("The barge glides in."), pay, False, False, {}
        if words == ["close", "gate"] and self.open:
            self.open = False
            return self.view("The gate is shut."), 0.0, False, False, {}
        if len(words) == 2 and words[0] == "fill" and self.inside and not self.open:
            if words[1] == str(self.rise):
                self.filled = self.rise
                return (
                    self.view("The water stands level with the upper pound."),
                    0.0,
                    False,
                    False,
                    {},
                )
            return "The lock spills over, or the barge runs aground.", 0.0, True, False, {}
        if words == ["sail"] and self.filled:
            return "The barge sails on.", 1.0 - self.paid, True, False, {}
        return self.view("That cannot be done now."), 0.0, False, False, {}

    def hint(self, level=2):
        return "Shut the gate before you fill, and fill by the difference of the two pounds."

    def solution(self):
        return ["open gate", "close gate", f"fill {self.rise}", "sail"]
