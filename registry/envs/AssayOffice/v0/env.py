"""Fill two orders of an alloy at an assay office, from bars of unknown fineness.

In this little world gold weighs 20 grams a cubic centimetre and silver 10. Five bars lie on the
bench. Four are honest alloys of gold and silver and nothing else, whose volumes add up; one is
false, base metal under a gilt skin, and lighter than silver itself. `weigh` gives a bar's weight in
air, `sink` its weight in water, which is less by one gram for every cubic centimetre of the bar.
From the two follows how much gold is in it: twice the weight in air less twenty times the loss in
water.

An order asks for so many grams of alloy with so many grams of gold in it, both exactly. `cut` puts
pieces of 20 grams from one bar into the crucible, `return` puts all of them back, and `cast` melts
and delivers. Any honest mixture that meets the order will do; a wrong cast, or one with metal of
the false bar in it, ends the day. The second order is told when the first is filled. The first pays
0.4, the second the rest.
"""

import random

MARKS = ("swan", "anchor", "thistle", "key", "crown", "heron", "rose", "bell", "stag", "wheel")
GOLD, SILVER = 20, 10  # grams a cubic centimetre
PIECE = 20  # grams
FIRST_PAY = 0.4
COMMANDS = (
    "Commands: `weigh <bar>` in air; `sink <bar>` weighs it in water; `cut <bar> <grams>` moves "
    "that much (a multiple of 20) into the crucible; `return` empties the crucible back; `cast` "
    "delivers it."
)


def honest_bars() -> list[tuple[int, int, int]]:
    """Every (grams, per cent of gold, volume) whose volume is a whole number."""
    bars = []
    for grams in range(400, 820, PIECE):
        for percent in range(15, 100, 5):
            gold = grams * percent // 100  # exact, as grams is a multiple of 20
            size = gold / GOLD + (grams - gold) / SILVER
            if size == int(size):
                bars.append((grams, percent, int(size)))
    return bars


class AssayOfficeEnv:
    max_turns = 40

    def reset(self, seed: int) -> tuple[str, dict]:
        self.rng = random.Random(seed)
        self.marks = self.rng.sample(MARKS, 5)
        self.false = self.rng.choice(self.marks)
        self.grams, self.percent, self.volume = {}, {}, {}
        self._forge_bars()
        self.stock = dict(self.grams)
        self.crucible = dict.fromkeys(self.marks, 0)
        self.recipes = [self._draw_order(), self._draw_order()]
        self.filled = 0
        self.turn = 0
        story = (
            "You keep an assay office. Gold weighs 20 grams a cubic centimetre, silver 10; in "
            "water a bar weighs one gram less for every cubic centimetre of it. On the bench lie "
            "five bars, marked "
            + ", ".join(self.marks)
            + ". Four are alloys of gold and silver only, their volumes simply added; one is false and "
            "lighter than silver. Goal: fill two orders, one after the other, exactly in weight "
            "and in gold, without metal of the false bar. Any mixture that fits will do. A wrong "
            "cast ends the day."
        )
        return self._view(story), {}

    def _forge_bars(self) -> None:
        shapes = honest_bars()
        finenesses = self.rng.sample(sorted({percent for _, percent, _ in shapes}), 4)
        for mark in self.marks:
            if mark == self.false:
                grams = self.rng.randrange(400, 820, PIECE)
                shape = (grams, 0, grams // SILVER + self.rng.randint(6, 15))
            else:
                fineness = finenesses.pop()
                shape = self.rng.choice([shape for shape in shapes if shape[1] == fineness])
            self.grams[mark], self.percent[mark], self.volume[mark] = shape

    def _draw_order(self) -> dict[str, int]:
        """A mixture of three honest bars, whose fineness is not that of any single bar."""
        honest = [mark for mark in self.marks if mark != self.false]
        while True:
            bars = self.rng.sample(honest, 3)
            recipe = {mark: PIECE * self.rng.randint(1, 6) for mark in bars}
            grams, gold = sum(recipe.values()), self._gold(recipe)
            if all(100 * gold != grams * self.percent[mark] for mark in honest):
                return recipe

    def _gold(self, recipe: dict[str, int]) -> int:
        return sum(grams * self.percent[mark] for mark, grams in recipe.items()) // 100

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        self.turn += 1
        words = action.lower().split()[:4]
        if words == ["return"]:
            self._empty_crucible()
            return self._result("The pieces lie beside their bars again.")
        if words == ["cast"]:
            return self._cast()
        note = "The apprentice is puzzled. The bars are marked " + ", ".join(self.marks) + "."
        if len(words) in (2, 3) and words[1] in self.marks:
            note = self._handle(words[0], words[1], words[2:]) or note
        return self._result(note)

    def _handle(self, verb: str, mark: str, rest: list[str]) -> str:
        """Weigh, sink or cut one bar; an empty note where the command makes no sense."""
        grams = self.grams[mark]
        if verb == "weigh" and not rest:
            return f"When whole, the {mark} bar weighs {grams} grams in air."
        if verb == "sink" and not rest:
            return f"When whole, the {mark} bar weighs {grams - self.volume[mark]} grams in water."
        if verb != "cut" or not rest:
            return ""
        text = rest[0]
        cut = int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0
        if cut == 0 or cut % PIECE or cut > self.stock[mark]:
            return f"The shears cut pieces of {PIECE} grams, and no more than is left of the bar."
        self.stock[mark] -= cut
        self.crucible[mark] += cut
        return f"Cut. The crucible now holds {self.crucible[mark]} grams of the {mark} bar."

    def _empty_crucible(self) -> None:
        for mark, grams in self.crucible.items():
            self.stock[mark] += grams
        self.crucible = dict.fromkeys(self.marks, 0)

    def _cast(self):
        if not any(self.crucible.values()):
            return self._result("The crucible is empty.")
        order = self.recipes[self.filled]
        right = (
            not self.crucible[self.false]
            and sum(self.crucible.values()) == sum(order.values())
            and self._gold(self.crucible) == self._gold(order)
        )
        if not right:
            return self._result("The casting is not what was ordered.", over=True)
        self.crucible = dict.fromkeys(self.marks, 0)
        self.filled += 1
        if self.filled == len(self.recipes):
            return self._result("Both orders are filled.", 1.0 - FIRST_PAY, over=True)
        return self._result("The mint takes the casting.", FIRST_PAY)

    def _result(self, note: str, reward: float = 0.0, over: bool = False):
        """What a step returns: the note, and unless the episode is over the state below it."""
        return note if over else self._view(note), reward, over, False, {}

    def _view(self, note: str) -> str:
        order = self.recipes[self.filled]
        return (
            f"{note}\nOrder {self.filled + 1} of 2: {sum(order.values())} grams with "
            f"{self._gold(order)} grams of gold. In the crucible: {sum(self.crucible.values())} "
            f"grams. Turn {self.turn} of {self.max_turns}.\n{COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "A bar's two weights give its volume, weight and volume together its gold."
        honest = sorted((mark for mark in self.marks if mark != self.false), key=self.percent.get)
        if level == 2:
            return (
                f"The {self.false} bar is the false one; from poorest to richest in gold the "
                f"others are {', '.join(honest)}. A bar's gold is twice its weight in air less "
                "twenty times what it loses in water. Start from one bar and swap pieces for a "
                "richer or poorer one."
            )
        parts = "; ".join(", ".join(recipe) for recipe in self.recipes)
        told = ", ".join(f"{mark} {self.percent[mark]} per cent" for mark in honest)
        return f"Gold in the honest bars: {told}. Bars that serve for the two orders: {parts}."

    def solution(self) -> list[str]:
        used = sorted({mark for recipe in self.recipes for mark in recipe})
        actions = [f"{verb} {mark}" for mark in used for verb in ("weigh", "sink")]
        for recipe in self.recipes:
            actions += [f"cut {mark} {grams}" for mark, grams in recipe.items()]
            actions.append("cast")
        return actions
