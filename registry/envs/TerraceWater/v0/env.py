"""Share twelve hours of spring water among five terraces for the largest possible harvest.

Nobody has written down what each crop does with water. On most terraces every further hour brings
less than the one before. On two of them the crop is thirsty: nothing at all until it has had
several hours, then a good harvest at once. One thirsty crop is worth its water, the other is not.
Write a plan, open the gates, see what each terrace yields, and plan again. A season with the best
possible harvest wins; there are twelve seasons.
"""

import random

HOURS = 12
SEASONS = 12
CROPS = ["barley", "beans", "cress", "figs", "flax", "hemp", "lentils", "olives", "rice", "vines"]
COMMANDS = (
    f"Commands: plan <h1> <h2> <h3> <h4> <h5> (whole hours in that order, {HOURS} in all at most), "
    "open."
)


def steady_crop(rng: random.Random) -> list[int]:
    """Sacks after 0, 1, 2 ... hours where each hour brings less than the one before."""
    first, fall = rng.randint(7, 12), rng.randint(2, 3)
    gains = [max(0, first - fall * hour) for hour in range(HOURS)]
    return [sum(gains[:hours]) for hours in range(HOURS + 1)]


def thirsty_crop(rng: random.Random) -> list[int]:
    """Sacks after 0, 1, 2 ... hours where nothing grows until the crop has had its fill."""
    need, sacks = rng.randint(3, 5), rng.randint(12, 28)
    return [0 if hours < need else sacks + hours - need for hours in range(HOURS + 1)]


def best_plan(crops: list[list[int]]) -> tuple[int, ...]:
    """The hours that yield most in all, by dynamic programming over the terraces."""
    best = {0: (0, ())}  # hours used -> (sacks, plan)
    for sacks in crops:
        options = {}
        for used, (total, plan) in best.items():
            for hours in range(HOURS - used + 1):
                option = (total + sacks[hours], (*plan, hours))
                options[used + hours] = max(option, options.get(used + hours, option))
        best = options
    return max(best.values())[1]


def hourly_plan(crops: list[list[int]]) -> tuple[int, ...]:
    """The plan of a steward who gives each hour to the terrace that gains most from it."""
    plan = [0] * len(crops)
    for _ in range(HOURS):
        gains = [sacks[hours + 1] - sacks[hours] for sacks, hours in zip(crops, plan, strict=True)]
        plan[gains.index(max(gains))] += 1
    return tuple(plan)


class TerraceWaterEnv:
    max_turns = 36

    def reset(self, seed: int) -> tuple[str, dict]:
        rng = random.Random(seed)
        self.names = rng.sample(CROPS, 5)
        thirsty = rng.sample(range(5), 2)
        while True:
            self.crops = [thirsty_crop(rng) if i in thirsty else steady_crop(rng) for i in range(5)]
            self.best = best_plan(self.crops)
            watered = [i for i in thirsty if self.best[i] > 0]
            self.steward = self._total(hourly_plan(self.crops))
            self.target = self._total(self.best)
            if len(watered) == 1 and self.steward + 4 <= self.target:
                break
        self.prize = self.names[watered[0]]
        self.plan: tuple[int, ...] | None = None
        self.seasons = 0
        self.paid = 0.0
        self.over = False
        return (
            f"Five terraces share a spring that runs {HOURS} hours a season: "
            f"{', '.join(self.names)}. On most of them each further hour brings less than the one "
            "before; two crops are thirsty and give nothing until they have had several hours.\n"
            f"Goal: a season of {self.target} sacks, the most this valley can bear. The old "
            f"steward reached {self.steward}. You have {SEASONS} seasons.\n"
            f"{self._status()}"
        ), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        if self.over:
            return "The spring has run dry.", 0.0, True, False, {}
        words = action.lower().split()
        reward = 0.0
        if words[:1] == ["plan"]:
            text = self._write(words[1:])
        elif words != ["open"]:
            text = "The water carriers do not understand."
        elif self.plan is None:
            text = "The gates stay shut: there is no plan for this season yet."
        else:
            text, reward = self._open(self.plan)
        return f"{text}\n{self._status()}", reward, self.over, False, {}

    def _write(self, words: list[str]) -> str:
        if len(words) != 5 or not all(word in [str(h) for h in range(HOURS + 1)] for word in words):
            return f"A plan is five whole numbers from 0 to {HOURS}, one a terrace."
        hours = tuple(int(word) for word in words)
        if sum(hours) > HOURS:
            return f"That plan needs {sum(hours)} hours; the spring runs {HOURS}."
        self.plan = hours
        return "The plan hangs at the gates."

    def _open(self, plan: tuple[int, ...]) -> tuple[str, float]:
        self.seasons += 1
        self.plan = None
        total = self._total(plan)
        yields = [
            f"{name} {sacks[hours]} from {hours} h"
            for name, sacks, hours in zip(self.names, self.crops, plan, strict=True)
        ]
        text = f"Season {self.seasons}, sacks: {', '.join(yields)}. In all {total}."
        reward = 0.0
        if total == self.target:
            reward = 1.0 - self.paid
        elif total > (self.steward + self.target) // 2 and not self.paid:
            reward = 0.2
        self.paid += reward
        self.over = total == self.target or self.seasons == SEASONS
        return text, reward

    def _total(self, plan: tuple[int, ...]) -> int:
        return sum(sacks[hours] for sacks, hours in zip(self.crops, plan, strict=True))

    def _status(self) -> str:
        plan = "none" if self.plan is None else ", ".join(str(hours) for hours in self.plan)
        return (
            f"Plan: {plan}. Order: {', '.join(self.names)}. Seasons used: {self.seasons} of "
            f"{SEASONS}. Goal: {self.target} sacks. {COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "A terrace that shows nothing after a little water may still be the best one."
        if level == 2:
            return (
                f"The {self.prize} crop repays a long soak: find the fewest hours at which it "
                "bears and give it those. The other thirsty crop is not worth its water. Share "
                "the rest so that no hour would bring more elsewhere."
            )
        hours = ", ".join(f"{name} {h}" for name, h in zip(self.names, self.best, strict=True) if h)
        return f"The best hours are: {hours}."

    def solution(self) -> list[str]:
        best = " ".join(str(hours) for hours in self.best)
        return ["plan 2 2 2 2 2", "open", f"plan {best}", "open"]
