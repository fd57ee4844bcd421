"""A gem lies in one of several boxes and a note says something about where; whether to believe it is not told.

Each turn shows one note and the boxes that are still shut. Opening the box with the gem brings the next search; an
empty box costs the turn and is out of this search, unless only two are left. The episode is won when every search has
been ended in time. How far notes can be believed (always, never, every other note, or only those that the owl signs),
how they are worded, the number of boxes, searches and turns to spare are set by PARAMS. The search of yesterday shows
one note and where the gem really was.
"""

import random

PARAMS = {
    "theme": "castle",
    "rule": "truth",
    "form": "is",
    "choices": 2,
    "steps": 3,
    "spare": 2,
}

THEMES = {
    "castle": ("gem", "box", ["red", "blue", "green", "black", "white"]),
    "forest": ("nut", "tree", ["oak", "pine", "ash", "elm", "birch"]),
    "school": ("key", "desk", ["north", "south", "east", "west", "middle"]),
    "house": ("ring", "jar", ["salt", "rice", "tea", "sugar", "flour"]),
}
RULES = {
    "truth": "Every note is true.",
    "lies": "Every note is false, so believe the opposite.",
    "change": "Notes take turns: after a true note comes a false one, after a false note a true one.",
    "owl": "Notes of the owl are true. Notes of the fox are false.",
}


def said(true, right, wrong):
    """What a note says, when `right` holds the gem and `wrong` are the other places."""
    if PARAMS["form"] == "is":
        return right if true else " or ".join(wrong)
    return "not " + (" or ".join(wrong) if true else right)


def read(action, options):
    """The option that the action names, whatever its case and the marks around it; otherwise nothing."""
    word = str(action).strip(" \t\r\n.,:;!\"'").lower()
    return word if word in options else ""


class SealedNotesEnv:
    max_turns = PARAMS["steps"] + PARAMS["spare"]

    def __init__(self):
        self.reset(0)

    def reset(self, seed=0):
        rng = random.Random(seed)
        self.thing, self.place, self.names = THEMES[PARAMS["theme"]]
        count = PARAMS["choices"]
        true = rng.random() < 0.5
        right = ""
        searches = []
        for _number in range(PARAMS["steps"] + 1):
            true = self.believed(rng, true)
            right = rng.choice([name for name in self.names if name != right])
            wrong = rng.sample([name for name in self.names if name != right], count - 1)
            options = [right, *wrong]
            rng.shuffle(options)
            author = f" of the {'owl' if true else 'fox'}" if PARAMS["rule"] == "owl" else ""
            searches.append((right, options, f"Note{author}: {said(true, right, wrong)}"))
        self.example = searches[0]
        self.searches = searches[1:]
        self.found = 0
        self.turn = 0
        self.paid = 0.0
        self.shut = list(self.searches[0][1])
        old_right, old_options, old_note = self.example
        intro = (
            f"Find the {self.thing} {len(self.searches)} times. Notes may be true or false. "
            f"Yesterday: {', '.join(old_options)}. {old_note}. It was in {old_right}."
        )
        return f"{intro} {self.ask()}", {}

    def believed(self, rng, last):
        """Whether the next note is true."""
        rule = PARAMS["rule"]
        if rule == "change":
            return not last
        if rule == "owl":
            return rng.random() < 0.5
        return rule == "truth"

    def ask(self):
        return f"Reply with one of: {', '.join(self.shut)}. {self.searches[self.found][2]}."

    def step(self, action):
        self.turn += 1
        if self.found == len(self.searches):
            return "Every search is over.", 0.0, True, False, {}
        right = self.searches[self.found][0]
        command = read(action, self.shut)
        late = self.turn >= self.max_turns
        if not command:
            return f"No such {self.place} to open. {self.ask()}", 0.0, False, late, {}
        if command != right:
            if len(self.shut) > 2:
                self.shut.remove(command)
            return f"The {self.place} is empty. {self.ask()}", 0.0, False, late, {}
        self.found += 1
        if self.found == len(self.searches):
            return f"The last {self.thing} is found.", 1.0 - self.paid, True, False, {}
        self.shut = list(self.searches[self.found][1])
        reward = self.found / len(self.searches) - self.paid
        self.paid += reward
        return f"Found, {self.found} so far. {self.ask()}", reward, False, late, {}

    def hint(self, level=2):
        if level == 1:
            return "Ask whether yesterday's note was true, and what that means for the next one."
        if level == 3:
            places = ", ".join(right for right, options, note in self.searches)
            return f"The {self.thing} is, one after another, in: {places}."
        named = f"open the {self.place} that it names"
        other = f"open the {self.place} that it does not name"
        if PARAMS["form"] == "not":
            named, other = other, named
        if PARAMS["rule"] == "truth":
            return f"Every note is true: {named}."
        if PARAMS["rule"] == "lies":
            return f"Every note is false: {other}."
        return f"{RULES[PARAMS['rule']]} True: {named}. False: {other}."

    def solution(self):
        return [right for right, options, note in self.searches]
