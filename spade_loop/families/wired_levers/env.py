"""Every lever of a machine starts one part of it, by wires that nobody sees; a log tells of earlier pulls.

Each turn names a part to be started and a few levers. Pulling its lever starts it and brings the next part; another
lever starts another part for a moment, which is seen, and costs the turn. The episode is won when all the parts
asked for have been started in time. The wiring, what the log holds (each time the lever that matters, all pulls, all
but one, pulls of two levers at once with one control pull for each pair, or nothing), the number of levers to choose
from, of parts and of turns to spare are set by PARAMS; the seed chooses the parts and the order of the log.
"""

import random

PARAMS = {
    "theme": "mill",
    "wiring": 1,
    "log": "each",
    "choices": 2,
    "steps": 3,
    "spare": 2,
}

LEVERS = ["red", "blue", "green", "white"]
THEMES = {
    "mill": ["bell", "fan", "lamp", "pump"],
    "ship": ["horn", "sail", "crane", "light"],
    "stage": ["drum", "smoke", "curtain", "snow"],
    "house": ["oven", "mixer", "kettle", "timer"],
}
WIRINGS = [(0, 1, 2, 3), (1, 0, 3, 2), (1, 2, 3, 0), (2, 3, 0, 1), (3, 2, 1, 0), (3, 0, 1, 2)]


def read(action, options):
    """The option that the action names, whatever its case and the marks around it; otherwise nothing."""
    word = str(action).strip(" \t\r\n.,:;!\"'").lower()
    return word if word in options else ""


class WiredLeversEnv:
    max_turns = PARAMS["steps"] + PARAMS["spare"]

    def __init__(self):
        self.reset(0)

    def reset(self, seed=0):
        rng = random.Random(seed)
        parts = THEMES[PARAMS["theme"]]
        order = WIRINGS[PARAMS["wiring"] - 1]
        self.part_of = {lever: parts[at] for lever, at in zip(LEVERS, order, strict=False)}
        self.goals = []
        lever = ""
        for _number in range(PARAMS["steps"]):
            lever = rng.choice([name for name in LEVERS if name != lever])
            others = rng.sample([name for name in LEVERS if name != lever], PARAMS["choices"] - 1)
            options = [lever, *others]
            rng.shuffle(options)
            self.goals.append((self.part_of[lever], lever, options))
        self.started = 0
        self.turn = 0
        self.paid = 0.0
        intro = f"Each lever starts one part. Start {len(self.goals)} parts."
        return f"{intro} {self.log(rng)}{self.ask()}", {}

    def log(self, rng):
        """What earlier pulls did; the seed sets the order."""
        levers = rng.sample(LEVERS, len(LEVERS))
        kind = PARAMS["log"]
        if kind in ("none", "each"):
            return ""
        if kind == "pairs":
            lines = []
            for one, two in (levers[:2], levers[2:]):
                seen = sorted([self.part_of[one], self.part_of[two]])
                lines.append(f"{one} and {two} started {seen[0]} and {seen[1]}")
                lines.append(f"{one} alone started {self.part_of[one]}")
            return f"Log: {'; '.join(lines)}. "
        kept = levers if kind == "all" else levers[1:]
        return f"Log: {', '.join(f'{lever} started {self.part_of[lever]}' for lever in kept)}. "

    def ask(self):
        part, lever, options = self.goals[self.started]
        if PARAMS["log"] == "each":
            return f"Reply with one of: {', '.join(options)}. The {part} needs {lever}."
        return f"Start the {part}. Reply with one of: {', '.join(options)}."

    def step(self, action):
        self.turn += 1
        if self.started == len(self.goals):
            return "Everything runs.", 0.0, True, False, {}
        _part, lever, options = self.goals[self.started]
        command = read(action, options)
        late = self.turn >= self.max_turns
        if not command:
            return f"No such lever here. {self.ask()}", 0.0, False, late, {}
        if command != lever:
            seen = f"The {command} lever started the {self.part_of[command]}."
            return f"{seen} {self.ask()}", 0.0, False, late, {}
        self.started += 1
        if self.started == len(self.goals):
            return "It starts. Everything runs.", 1.0 - self.paid, True, False, {}
        reward = self.started / len(self.goals) - self.paid
        self.paid += reward
        return f"It starts, {self.started} done. {self.ask()}", reward, False, late, {}

    def hint(self, level=2):
        if level == 1:
            return "A lever always starts the same part. Remember what each pull did."
        if level == 3:
            return f"Pull, one after another: {', '.join(self.solution())}."
        wires = ", ".join(f"{part} {lever}" for lever, part in self.part_of.items())
        return f"Levers: {wires}."

    def solution(self):
        return [lever for part, lever, options in self.goals]
