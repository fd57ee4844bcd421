"""Draw the hidden wiring of a mechanical theatre by pinning and pushing its figures.

Six figures move when the crank is turned. Five of them hang on one driver each, the crank or
another figure. The sixth has two figures for drivers, and either moves when any of the two does
(`or`) or only when both do (`and`). Watching the whole theatre tells nothing, since everything
moves at once: pin figures so that they stay still, push others by hand, and see what follows. Note
a driver for every figure and deliver the drawing. The second wrong drawing ends the job.
"""

import random

FIGURES = ["bear", "dancer", "drummer", "goose", "knight", "miller", "piper", "queen", "saint"]
CRANK = "crank"
DRAWINGS = 2
COMMANDS = (
    "Commands: pin <figures> (exactly these; 'pin none' frees all), push <figures>, crank, wire "
    "<figure> <driver>, wire <figure> <driver> or <driver>, wire <figure> <driver> and <driver>, "
    "deliver."
)

# A wiring rule is (gate, drivers). A single driver has the gate "or".
Rule = tuple[str, frozenset]


def read_rule(words: list[str]) -> Rule | None:
    """The rule that `x`, `x or y` or `x and y` spells; None for anything else."""
    match words:
        case [driver]:
            return "or", frozenset([driver])
        case [first, "or" | "and" as gate, second] if first != second:
            return gate, frozenset([first, second])
    return None


def spell_rule(rule: Rule) -> str:
    gate, drivers = rule
    return f" {gate} ".join(sorted(drivers))


class AutomatonTheatreEnv:
    max_turns = 40

    def reset(self, seed: int) -> tuple[str, dict]:
        rng = random.Random(seed)
        # In this order every figure hangs on the crank or on figures before it.
        self.order = rng.sample(FIGURES, 6)
        self.figures = rng.sample(self.order, 6)
        self.rules: dict[str, Rule] = {}
        for i, figure in enumerate(self.order):
            self.rules[figure] = "or", frozenset([rng.choice([CRANK, *self.order[:i]][-3:])])
        place = rng.randint(3, 5)
        drivers = frozenset(rng.sample(self.order[:place], 2))
        self.double = self.order[place]
        self.rules[self.double] = rng.choice(("or", "and")), drivers

        self.pinned: list[str] = []
        self.drawing: dict[str, Rule] = {}
        self.wrong = 0
        self.paid = 0.0
        self.over = False
        return (
            f"The figures of a mechanical theatre: {', '.join(self.figures)}. Behind the scenes "
            "each one is driven by the crank or by another figure, except for one, which has two "
            "figures for drivers and needs either of them (or) or both (and). Drivers never form "
            "a ring.\n"
            "Goal: wire every figure to its direct driver in your drawing and deliver it. "
            f"{DRAWINGS} wrong drawings end the job. A pinned figure does not move and passes "
            "nothing on.\n"
            f"{self._status()}"
        ), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        if self.over:
            return "The theatre is packed up.", 0.0, True, False, {}
        verb, *names = action.lower().split() or [""]
        reward = 0.0
        if verb == "pin" and (names == ["none"] or self._are_figures(names)):
            self.pinned = [figure for figure in self.figures if figure in names]
            text = "The pins are set."
        elif verb == "push" and self._are_figures(names):
            text = self._show(set(names))
        elif verb == CRANK and not names:
            text = self._show({CRANK})
        elif verb == "wire":
            text = self._wire(names)
        elif verb == "deliver" and not names:
            text, reward = self._deliver()
        else:
            text = "Nothing stirs. Check the command and the names of the figures."
        return f"{text}\n{self._status()}", reward, self.over, False, {}

    def _are_figures(self, names: list[str]) -> bool:
        return 0 < len(names) <= len(self.figures) and all(name in self.figures for name in names)

    def _show(self, pushed: set) -> str:
        moving = pushed - set(self.pinned)
        for figure in self.order:
            gate, drivers = self.rules[figure]
            driven = drivers <= moving if gate == "and" else bool(drivers & moving)
            if driven and figure not in self.pinned:
                moving.add(figure)
        moved = [figure for figure in self.figures if figure in moving]
        return f"Moving: {', '.join(moved) or 'nothing'}."

    def _wire(self, names: list[str]) -> str:
        figure, *drivers = names or [""]
        rule = read_rule(drivers)
        others = {CRANK, *self.figures} - {figure}
        if figure not in self.figures or rule is None or not rule[1] <= others:
            return "A wire runs from one figure to the crank or another figure, or to two of them."
        self.drawing[figure] = rule
        return "Drawn."

    def _deliver(self) -> tuple[str, float]:
        if len(self.drawing) < len(self.figures):
            return "The drawing still lacks figures.", 0.0
        right = sum(self.drawing[figure] == rule for figure, rule in self.rules.items())
        if right == len(self.figures):
            self.over = True
            return "The drawing is right in every wire.", 1.0 - self.paid
        self.wrong += 1
        self.over = self.wrong == DRAWINGS
        reward = 0.3 if right == len(self.figures) - 1 and not self.paid else 0.0
        self.paid += reward
        return "The theatre built from this drawing plays differently.", reward

    def _status(self) -> str:
        drawn = ", ".join(
            f"{figure} < {spell_rule(self.drawing[figure]) if figure in self.drawing else '?'}"
            for figure in self.figures
        )
        return (
            f"Pinned: {', '.join(self.pinned) or 'none'}. Drawing: {drawn}. "
            f"Wrong drawings: {self.wrong} of {DRAWINGS}. {COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "A figure that follows a push may be driven through others in between."
        if level == 2:
            return (
                f"The {self.double} is the one with two drivers. Push every figure once with no "
                "pins, then push again with the figures in between pinned: what still follows is "
                "driven directly."
            )
        single = [figure for figure in self.order if figure != self.double]
        wires = [f"the {figure} on the {spell_rule(self.rules[figure])}" for figure in single]
        return f"These hang on one driver: {', '.join(wires)}."

    def solution(self) -> list[str]:
        pushes = [f"push {figure}" for figure in self.figures]
        wires = [f"wire {figure} {spell_rule(self.rules[figure])}" for figure in self.figures]
        return [CRANK, *pushes, *wires, "deliver"]
