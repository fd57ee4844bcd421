"""Find out what really makes tomatoes wilt, from a ledger that misleads and two fair trials.

Five treatments were given as the gardener saw fit, so frail plants got some of them more often than
hardy ones, and the plain comparison of treated with untreated plants is wrong. The ledger also
holds four facts about every plant. Splitting a comparison by the one fact that steered both the
gardener and the wilting sets it right; two facts change nothing, and one is itself a consequence of
wilting. Only two fair trials, on plants drawn by lot, can be paid for. Judge all five treatments
and send the report; the second wrong report closes the case.
"""

import random

TREATMENTS = ["feed", "lamp", "mist", "peat", "soot", "straw", "vents"]
FACTS_AT_PLANTING = {
    "side": ("north side", "south side"),
    "age": ("old stock", "young stock"),
    "pot": ("clay pot", "wooden pot"),
    "bench": ("high bench", "low bench"),
    "batch": ("early batch", "late batch"),
}
FACTS_AT_HARVEST = {
    "ants": ("ants found", "no ants"),
    "mould": ("mould found", "no mould"),
    "spots": ("leaf spots", "no leaf spots"),
}
VERDICTS = ["harms", "helps", "nothing"]
TRIALS = 2
REPORTS = 2
FRAIL, HARDY = 0.68, 0.32  # how often a plant of either kind wilts when a treatment plays no part
COMMANDS = (
    "Commands: compare <treatment>, compare <treatment> by <fact>, trial <treatment>, "
    "judge <treatment> <harms or helps or nothing>, report."
)


def among(rate: float, if_wilted: float, if_healthy: float) -> float:
    """The wilting rate among plants with a mark, from how often each kind bears it (Bayes)."""
    return rate * if_wilted / (rate * if_wilted + (1 - rate) * if_healthy)


class GreenhouseLedgerEnv:
    max_turns = 32

    def reset(self, seed: int) -> tuple[str, dict]:
        self.rng = random.Random(seed)
        rng = self.rng
        self.treatments = rng.sample(TREATMENTS, 5)
        at_planting = rng.sample(sorted(FACTS_AT_PLANTING), 3)
        self.steering = at_planting[0]
        self.harmless = at_planting[1]
        self.consequence = rng.choice(sorted(FACTS_AT_HARVEST))
        self.facts = sorted([*at_planting, self.consequence])

        truths = [*VERDICTS, *rng.choices(VERDICTS, k=2)]
        rng.shuffle(truths)
        self.truth = dict(zip(self.treatments, truths, strict=True))
        self.plain: dict[str, str] = {}
        self.split: dict[tuple[str, str], str] = {}
        self.fair: dict[str, str] = {}
        for treatment in self.treatments:
            self._write_tables(treatment)

        self.verdict: dict[str, str] = {}
        self.trials_left = TRIALS
        self.reports_left = REPORTS
        self.paid = 0.0
        self.over = False
        return (
            "Half of the tomatoes wilted. Five treatments were in use, each on the plants the "
            f"gardener chose: {', '.join(self.treatments)}. The ledger notes for every plant, at "
            f"planting, {', '.join(sorted(at_planting))}; at the end of the season, "
            f"{self.consequence}. Differences of up to four points are luck.\n"
            "Goal: judge for each treatment whether it harms (causes wilting), helps (prevents "
            "it) or does nothing, and send a report in which all five are right. You can pay for "
            f"{TRIALS} fair trials, where the lot decides who is treated; {REPORTS} reports may be "
            "sent.\n"
            f"{self._status()}"
        ), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        if self.over:
            return "The case is closed.", 0.0, True, False, {}
        reward = 0.0
        match action.lower().split():
            case ["compare", treatment] if treatment in self.treatments:
                text = f"Ledger, all plants: {self.plain[treatment]}"
            case ["compare", treatment, "by", fact] if (treatment, fact) in self.split:
                text = f"Ledger, split by {fact}: {self.split[treatment, fact]}"
            case ["trial", treatment] if treatment in self.treatments:
                text = self._trial(treatment)
            case ["judge", treatment, ("harms" | "helps" | "nothing") as verdict] if (
                treatment in self.treatments
            ):
                self.verdict[treatment] = verdict
                text = "Your judgement is noted."
            case ["report"]:
                text, reward = self._report()
            case _:
                text = f"The clerk needs a command as below. Facts: {', '.join(self.facts)}."
        return f"{text}\n{self._status()}", reward, self.over, False, {}

    def _trial(self, treatment: str) -> str:
        if self.trials_left == 0:
            return "There is no money left for a trial."
        self.trials_left -= 1
        return f"Fair trial: {self.fair[treatment]}"

    def _report(self) -> tuple[str, float]:
        if len(self.verdict) < len(self.treatments):
            return "A report needs a judgement on all five treatments.", 0.0
        right = sum(self.verdict[treatment] == truth for treatment, truth in self.truth.items())
        if right == len(self.treatments):
            self.over = True
            return "Next season bears the report out in every point.", 1.0 - self.paid
        self.reports_left -= 1
        self.over = self.reports_left == 0
        reward = 0.2 if right == len(self.treatments) - 1 and not self.paid else 0.0
        self.paid += reward
        return "The report does not hold: at least one judgement is wrong.", reward

    def _write_tables(self, treatment: str) -> None:
        size = self.rng.uniform(0.18, 0.26)
        effect = {"harms": size, "helps": -size, "nothing": 0.0}[self.truth[treatment]]
        # The gardener's habit: how many of the treated plants were frail ones.
        frail_share = self.rng.choice((0.15, 0.2, 0.8, 0.85))

        def line(with_it: float, without: float) -> str:
            luck = self.rng.uniform(-0.015, 0.015)
            return f"wilted with {treatment} {with_it + luck:.0%}, without {without - luck:.0%}"

        mixed = frail_share * FRAIL + (1 - frail_share) * HARDY
        treated, untreated = plain = (mixed + effect / 2, FRAIL + HARDY - mixed - effect / 2)
        self.plain[treatment] = line(*plain) + "."
        self.fair[treatment] = line(0.5 + effect / 2, 0.5 - effect / 2) + "."
        for fact in self.facts:
            if fact == self.steering:
                rates = [(base + effect / 2, base - effect / 2) for base in (FRAIL, HARDY)]
            elif fact == self.consequence:
                rates = [
                    (among(treated, *odds), among(untreated, *odds))
                    for odds in ((0.8, 0.15), (0.2, 0.85))  # marked, unmarked
                ]
            else:
                rates = [plain, plain]
            first, second = (FACTS_AT_PLANTING | FACTS_AT_HARVEST)[fact]
            lines = f"{first}: {line(*rates[0])}; {second}: {line(*rates[1])}."
            self.split[treatment, fact] = lines

    def _status(self) -> str:
        verdicts = ", ".join(f"{t}: {self.verdict.get(t, '?')}" for t in self.treatments)
        return (
            f"Judged so far: {verdicts}. Facts: {', '.join(self.facts)}. Trials left: "
            f"{self.trials_left}. Reports left: {self.reports_left}. {COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "The gardener did not treat plants at random: ask what decided who was treated."
        if level == 2:
            return (
                "Spend a trial on one treatment, then look which way of splitting the ledger "
                "agrees with it: that split can be trusted for the other four as well. It is "
                f"neither {self.consequence}, which comes after the wilting, nor {self.harmless}."
            )
        return f"Split every comparison by {self.steering}; those differences are true."

    def solution(self) -> list[str]:
        first, *others = self.treatments
        return [
            f"trial {first}",
            *(f"compare {first} by {fact}" for fact in self.facts),
            *(f"compare {treatment} by {self.steering}" for treatment in others),
            *(f"judge {treatment} {truth}" for treatment, truth in self.truth.items()),
            "report",
        ]
