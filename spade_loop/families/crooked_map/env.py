"""A walker passes junctions with a map that may be held the wrong way; how it is held is not told.

At each junction the map shows a direction, and a few ways are open. The right way leads to the next junction; a
wrong way is a dead end and leads back to the junction before, so that it must be passed again. The episode is won
when the last junction is passed in time. How the map is to be read, the number of junctions, of open ways and
of turns to spare are set by PARAMS. With rule `facing` the map says left or right, seen from the direction in which
one walks. An earlier junction shows what the map said and which way was right.
"""

import random

PARAMS = {"theme": "mine", "rule": "plain", "choices": 2, "steps": 3, "spare": 2}

WAYS = ["north", "east", "south", "west"]
THEMES = {
    "mine": ("mine", "tunnel"),
    "forest": ("forest", "path"),
    "city": ("city", "street"),
    "castle": ("castle", "hall"),
}
RULES = {
    "plain": "The map is right: go the way that it shows.",
    "swap": "East and west are swapped on the map.",
    "flip": "The map is upside down.",
    "turn": "The map is turned by a quarter.",
    "facing": "Left and right are seen from the direction in which you walk.",
}


def real(shown, heading):
    """The way that is right, when the map shows `shown` to someone who walks towards `heading`."""
    rule = PARAMS["rule"]
    if rule == "facing":
        return WAYS[(WAYS.index(heading) + (1 if shown == "right" else 3)) % 4]
    turn = 0
    if rule == "flip" or (rule == "swap" and shown in ("east", "west")):
        turn = 2
    if rule == "turn":
        turn = 1
    return WAYS[(WAYS.index(shown) + turn) % 4]


def read(action, options):
    """The option that the action names, whatever its case and the marks around it; otherwise nothing."""
    word = str(action).strip(" \t\r\n.,:;!\"'").lower()
    return word if word in options else ""


class CrookedMapEnv:
    max_turns = PARAMS["steps"] + PARAMS["spare"]

    def __init__(self):
        self.reset(0)

    def reset(self, seed=0):
        rng = random.Random(seed)
        place, road = THEMES[PARAMS["theme"]]
        heading = rng.choice(WAYS)
        example_heading = heading
        junctions = []
        for number in range(PARAMS["steps"] + 1):
            if PARAMS["rule"] == "facing":
                shown = rng.choice(["left", "right"])
            else:
                # the example must tell a mirrored map from a right one
                telling = ["east", "west"] if PARAMS["rule"] == "swap" and not number else WAYS
                shown = rng.choice([way for way in telling if real(way, heading) != heading])
            answer = real(shown, heading)
            junctions.append((shown, heading, answer, self.open_ways(rng, shown, answer)))
            heading = answer
        shown, _unused, answer, _options = junctions[0]
        self.junctions = junctions[1:]
        self.passed = 0
        self.furthest = 0
        self.turn = 0
        self.paid = 0.0
        before = f", walking {example_heading}," if PARAMS["rule"] == "facing" else ""
        intro = (
            f"Cross the {place}. The map may be wrong. Last time{before} it showed {shown} "
            f"and the right {road} went {answer}. Pass {len(self.junctions)} junctions."
        )
        return f"{intro} {self.ask()}", {}

    def open_ways(self, rng, shown, answer):
        """The right way among others, the way that the map shows always among them."""
        wrong = [way for way in WAYS if way not in (answer, shown)]
        rng.shuffle(wrong)
        if shown in WAYS and shown != answer:
            wrong.insert(0, shown)
        options = [answer, *wrong[: PARAMS["choices"] - 1]]
        rng.shuffle(options)
        return options

    def ask(self):
        shown, heading, _answer, options = self.junctions[self.passed]
        walk = f"You walk {heading}. " if PARAMS["rule"] == "facing" else ""
        return f"Reply with one of: {', '.join(options)}. {walk}The map shows {shown}."

    def step(self, action):
        self.turn += 1
        if self.passed == len(self.junctions):
            return "You are out.", 0.0, True, False, {}
        _shown, _heading, answer, options = self.junctions[self.passed]
        command = read(action, options)
        late = self.turn >= self.max_turns
        if not command:
            return f"There is no such way. {self.ask()}", 0.0, False, late, {}
        if command != answer:
            self.passed = max(0, self.passed - 1)
            return f"Dead end, you go back. {self.ask()}", 0.0, False, late, {}
        self.passed += 1
        if self.passed == len(self.junctions):
            return "You are out.", 1.0 - self.paid, True, False, {}
        self.furthest = max(self.furthest, self.passed)
        reward = self.furthest / len(self.junctions) - self.paid
        self.paid += reward
        return f"Junction {self.passed} passed. {self.ask()}", reward, False, late, {}

    def hint(self, level=2):
        if level == 1:
            return "Compare what the map showed at the last junction with the way that was right."
        if level == 3:
            ways = ", ".join(answer for shown, heading, answer, options in self.junctions)
            return f"The right ways are, one after another: {ways}."
        if PARAMS["rule"] == "plain":
            return RULES["plain"]
        if PARAMS["rule"] == "facing":
            table = "; ".join(
                f"walking {way}, left is {real('left', way)} and right is {real('right', way)}"
                for way in WAYS
            )
        else:
            table = ", ".join(f"{way} means {real(way, way)}" for way in WAYS)
        return f"{RULES[PARAMS['rule']]} {table.capitalize()}."

    def solution(self):
        return [answer for shown, heading, answer, options in self.junctions]
