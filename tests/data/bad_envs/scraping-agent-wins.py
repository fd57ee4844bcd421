"""Chest of drawers. A key lies in one of three drawers; find it, then unlock the door of the room."""

import random

COLOURS = ("amber", "brown", "crimson", "grey", "ivory", "olive", "purple", "white")


class DrawersEnv:
    """The handles are coloured, and a rhyme tells where the key is; but looking everywhere does as well."""

    max_turns = 14

    def reset(self, seed):
        rng = random.Random(seed)
        self.colours = rng.sample(COLOURS, 3)
        self.hiding = rng.choice(self.colours)
        self.has_key = False
        first, last = sorted(self.colours)[0], sorted(self.colours)[-1]
        place = {first: "comes first", last: "comes last"}.get(self.hiding, "stands between")
        return self.view(
            f"You are locked in. A rhyme over the chest says that in the alphabet of colours the key {place}."
        ), {}

    def view(self, note):
        drawers = ", ".join(f"'search {colour} drawer'" for colour in self.colours)
        return f"{note}\nCommands: {drawers}, 'unlock the door'."

    def step(self, action):
        words = action.split()
        if len(words) == 3 and words[0] == "search" and words[2] == "drawer":
            return self.search(words[1])
        if words == ["unlock", "the", "door"]:
            if self.has_key:
                return "The door swings open.", 1.0, True, False, {}
            return self.view("You have nothing that fits."), 0.0, False, False, {}
        return self.view("You look around, and do nothing."), 0.0, False, False, {}

    def search(self, colour):
        if colour not in self.colours:
            note = "There is no such drawer."
        elif colour != self.hiding or self.has_key:
            note = f"The {colour} drawer is empty."
        else:
            self.has_key = True
            note = "There it is, under a glove."
        return self.view(note), 0.0, False, False, {}

    def hint(self, level=2):
        return "Put the colours of the handles into the order of the alphabet, then read the rhyme."

    def solution(self):
        return [f"search {self.hiding} drawer", "unlock the door"]
