# The rules are told by the class.
import random

BEASTS = ("wolf", "lynx", "bear", "fox", "lion")
PREY = ("goat", "hen", "hare", "lamb", "goose")
FOOD = ("cabbage", "grain", "clover", "beans", "lettuce")


class RiverEnv:
    """   """

    max_turns = 9

    def reset(self, seed):
        rng = random.Random(seed)
        self.names = [rng.choice(kind) for kind in (BEASTS, PREY, FOOD)]
        self.over = set()
        self.boat_over = False
        beast, prey, food = self.names
        return self.view(
            f"Bring {beast}, {prey} and {food} across; the boat holds one of them beside you. "
            f"Left alone, the {beast} eats the {prey}, and the {prey} eats the {food}."
        ), {}

    def view(self, note):
        here = [name for name in sorted(self.names) if name not in self.over]
        return (
            f"{note}\nHere: {', '.join(here) or 'nothing'}. "
            f"Over there: {', '.join(sorted(self.over)) or 'nothing'}. "
            f"The boat is {'over there' if self.boat_over else 'here'}.\n"
            "Commands: row with and what goes along, row alone."
        )

    def step(self, action):
        load = action.removeprefix("row with ")
        if action != "row alone":
            if load == action or load not in self.names or (load in self.over) != self.boat_over:
                return self.view("The river flows."), 0.0, False, False, {}
            self.over ^= {load}
        self.boat_over = not self.boat_over
        alone = set(self.names) - self.over if self.boat_over else self.over
        if self.names[1] in alone and len(alone) > 1:
            return "From the other bank you hear somebody eat.", 0.0, True, False, {}
        if len(self.over) == 3:
            return "All are across.", 1.0, True, False, {}
        return self.view("You row."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The {self.names[1]} goes first, and comes back once."
        return "Something may have to come back with you once."

    def solution(self):
        beast, prey, food = (f"row with {name}" for name in self.names)
        return [prey, "row alone", beast, prey, food, "row alone", prey]
