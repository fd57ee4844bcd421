"""Parcels. A cart on a street of six houses brings three parcels to where they belong, before its battery is empty.

The cart holds one parcel. It loads at the house where a parcel lies and unloads where one belongs; driving costs
charge.
"""

import random

HOUSES = ("mill", "bakery", "school", "farm", "smithy", "church")


class RefusedError(Exception):
    """What the cart says when it will not do something."""


class CartEnv:
    max_turns = 40

    def reset(self, seed):
        rng = random.Random(seed)
        self.lies = rng.sample(range(6), 3)
        self.goal = [rng.choice([house for house in range(6) if house != at]) for at in self.lies]
        self.at, self.load, self.done = rng.randrange(6), None, 0
        self.order = self.plan()
        self.charge = sum(word in ("east", "west") for word in self.order) + 1
        text = "; ".join(
            f"a parcel at the {HOUSES[at]} for the {HOUSES[goal]}"
            for at, goal in zip(self.lies, self.goal, strict=True)
        )
        return self.view(f"Bring all three: {text}."), {}

    def view(self, note):
        street = ", ".join(HOUSES)
        load = "empty" if self.load is None else f"for the {HOUSES[self.goal[self.load]]}"
        return (
            f"{note}\nThe street from west to east: {street}. The cart is at the {HOUSES[self.at]}, "
            f"{load}, charge {self.charge}.\nCommands: unload, west, load, east."
        )

    def step(self, action):
        try:
            note = self.orders()[action]()
        except KeyError:
            return self.view("The cart does not understand."), 0.0, False, False, {}
        except RefusedError as refusal:
            return self.view(f"The cart refuses: {refusal}."), 0.0, False, False, {}
        except ValueError:
            return self.view("The cart finds nothing to load."), 0.0, False, False, {}
        if self.done == 3:
            return "All are delivered.", 1.0, True, False, {}
        if self.charge < 0:
            return "The battery is empty.", 0.0, True, False, {}
        return self.view(note), 0.0, False, False, {}

    def orders(self):
        return {
            "east": lambda: self.drive(1),
            "west": lambda: self.drive(-1),
            "load": self.take,
            "unload": self.give,
        }

    def drive(self, way):
        if not 0 <= self.at + way < 6:
            raise RefusedError("the street ends here")
        self.at += way
        self.charge -= 1
        return "It rolls."

    def take(self):
        if self.load is not None:
            raise RefusedError("it is full")
        self.load = self.lies.index(self.at)  # a ValueError where nothing lies
        self.lies[self.load] = None
        return "Loaded."

    def give(self):
        if self.load is None or self.goal[self.load] != self.at:
            raise RefusedError("nothing belongs here")
        self.load, self.done = None, self.done + 1
        return "Unloaded."

    def plan(self):
        """One parcel after the other."""
        words, at = [], self.at
        for start, goal in zip(self.lies, self.goal, strict=True):
            for stop, word in ((start, "load"), (goal, "unload")):
                words += ["east" if stop > at else "west"] * abs(stop - at) + [word]
                at = stop
        return words

    def hint(self, level=2):
        if level == 3:
            return f"It can be done with {self.charge - 1} drives, taking the parcels as they are listed."
        return "Work out the length of each order of the parcels before you drive."

    def solution(self):
        return list(self.order)
