"""Pieces roll by on a belt in an order that has a pattern; the player names the piece that comes next.

Each turn shows the last pieces and a few to choose from. The right piece rolls in and the belt moves on; a wrong one
costs the turn and the belt stands still. The episode is won when the asked number of pieces has been named in time. The
pattern (two in turn, three in turn, each twice, there and back, or ever longer runs), how many pieces are shown, how
many to choose from, how many to name and how many turns there are to spare are set by PARAMS; the seed chooses the
pieces and where the belt stands.
"""

import random

PARAMS = {
    "theme": "sky",
    "rule": "two",
    "shown": 5,
    "choices": 2,
    "steps": 3,
    "spare": 2,
}

THEMES = {
    "sky": ["sun", "moon", "star", "cloud", "rain", "wind"],
    "farm": ["cow", "pig", "hen", "goat", "duck", "horse"],
    "fruit": ["apple", "pear", "plum", "lemon", "grape", "peach"],
    "tools": ["saw", "nail", "rope", "brush", "drill", "file"],
}
BLOCKS = {"two": "ab", "three": "abc", "double": "aabb", "back": "abcb"}
RULES = {
    "two": "Two pieces take turns.",
    "three": "Three pieces take turns.",
    "double": "Each of two pieces comes twice.",
    "back": "The pieces go there and back.",
    "grow": "The runs of the first piece grow by one: one, two, three, four, five.",
}
HINTS = {
    "two": "After <a> comes <b>, after <b> comes <a>.",
    "three": "After <a> comes <b>, after <b> comes <c>, after <c> comes <a>.",
    "double": "After the second <a> comes <b>, after the second <b> comes <a>.",
    "back": "From <a> over <b> to <c>, then back over <b> to <a>.",
    "grow": "<a> once, then <b>; <a> twice, then <b>; each time one <a> more.",
}
LENGTH = 48


def letters():
    """The belt from its beginning, as letters."""
    if PARAMS["rule"] == "grow":
        return "".join("a" * run + "b" for run in range(1, 10))[:LENGTH]
    block = BLOCKS[PARAMS["rule"]]
    return (block * LENGTH)[:LENGTH]


def read(action, options):
    """The option that the action names, whatever its case and the marks around it; otherwise nothing."""
    word = str(action).strip(" \t\r\n.,:;!\"'").lower()
    return word if word in options else ""


class RollingBeltEnv:
    max_turns = PARAMS["steps"] + PARAMS["spare"]

    def __init__(self):
        self.reset(0)

    def reset(self, seed=0):
        rng = random.Random(seed)
        pool = list(THEMES[PARAMS["theme"]])
        rng.shuffle(pool)
        self.piece = dict(zip("abc", pool, strict=False))
        belt = letters()
        self.start = rng.choice(self.starts(belt))
        self.belt = [self.piece[letter] for letter in belt]
        self.pieces = sorted(set(self.belt))
        spare = [name for name in pool if name not in self.pieces]
        self.offers = []
        for number in range(PARAMS["steps"]):
            answer = self.belt[self.start + number]
            others = [name for name in self.pieces if name != answer]
            rng.shuffle(others)
            options = [answer, *(others + spare)[: PARAMS["choices"] - 1]]
            rng.shuffle(options)
            self.offers.append(options)
        self.named = 0
        self.turn = 0
        self.paid = 0.0
        intro = f"Pieces roll by in a pattern. Name the next one, {len(self.offers)} times."
        return f"{intro} {self.ask()}", {}

    def starts(self, belt):
        """Where the belt may stand: the pattern can be seen, and what comes next is not one piece only."""
        shown, steps = PARAMS["shown"], PARAMS["steps"]
        return [
            at
            for at in range(shown, shown + 8)
            if len(set(belt[at : at + steps])) > 1 and belt[at - shown : at].count("b") > 1
        ]

    def ask(self):
        at = self.start + self.named
        window = " ".join(self.belt[at - PARAMS["shown"] : at])
        return f"Belt: {window}. What is next? Reply with one of: {', '.join(self.offers[self.named])}."

    def step(self, action):
        self.turn += 1
        if self.named == len(self.offers):
            return "The belt has stopped.", 0.0, True, False, {}
        answer = self.belt[self.start + self.named]
        command = read(action, self.offers[self.named])
        late = self.turn >= self.max_turns
        if not command:
            return f"That is no choice. {self.ask()}", 0.0, False, late, {}
        if command != answer:
            return f"Not the next one. {self.ask()}", 0.0, False, late, {}
        self.named += 1
        if self.named == len(self.offers):
            return "Right. The belt stops.", 1.0 - self.paid, True, False, {}
        reward = self.named / len(self.offers) - self.paid
        self.paid += reward
        return f"Right. {self.ask()}", reward, False, late, {}

    def hint(self, level=2):
        if level == 1:
            return RULES[PARAMS["rule"]]
        if level == 3:
            return f"Next come: {', '.join(self.solution())}."
        how = HINTS[PARAMS["rule"]]
        for letter, name in self.piece.items():
            how = how.replace(f"<{letter}>", name)
        return how

    def solution(self):
        return self.belt[self.start : self.start + len(self.offers)]
