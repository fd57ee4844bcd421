"""A trader takes one offer a day and must take the best one; what counts as best is not told, yesterday shows it.

Each turn lists a few goods with a number each. Taking the best of them closes the day and brings the next; any
other costs the turn. The episode is won when every day is closed in time. What counts (the largest number, the
smallest, the largest gain after costs, the largest that the purse can pay, or number times price), the number of
offers, of days and of turns to spare are set by PARAMS. With rule `cash` every trade is paid from one purse, which
shrinks from day to day. With rule `tip` there are no numbers: a crier praises the best offer.
"""

import random

PARAMS = {"theme": "market", "rule": "tip", "choices": 2, "steps": 3, "spare": 2}

THEMES = {
    "market": ["red", "blue", "green", "black", "white"],
    "mine": ["gold", "silver", "iron", "copper", "coal"],
    "farm": ["corn", "oats", "milk", "eggs", "hay"],
    "port": ["fish", "rope", "oil", "wine", "tea"],
}
RULES = {
    "tip": "The crier always praises the best offer, so take what the crier praises.",
    "most": "Take the one with the largest number: of 3 and 8 take the 8.",
    "least": "Take the one with the smallest number: of 3 and 8 take the 3.",
    "net": "A gain and a cost are listed. Take the largest difference: 7-2 leaves 5 and beats 9-6.",
    "cash": "Leave out what costs more than the purse holds. Of the others take the largest number.",
    "value": "Multiply the number of each by its price and take the largest: 2 at 4 make 8 and beat 5 at 1.",
}


def read(action, options):
    """The option that the action names, whatever its case and the marks around it; otherwise nothing."""
    word = str(action).strip(" \t\r\n.,:;!\"'").lower()
    return word if word in options else ""


class BestTradeEnv:
    max_turns = PARAMS["steps"] + PARAMS["spare"]

    def __init__(self):
        self.reset(0)

    def reset(self, seed=0):
        rng = random.Random(seed)
        goods = list(THEMES[PARAMS["theme"]])
        self.prices = dict(zip(goods, rng.sample(range(1, 6), len(goods)), strict=False))
        spend = [rng.randint(3, 6) for number in range(PARAMS["steps"] + 1)]
        self.days = []
        last = ""
        for number in range(PARAMS["steps"] + 1):
            purse = rng.randint(0, 2) + sum(spend[number:])
            if number == 0:
                purse = spend[0] + 2
            elif number > 1:
                purse = self.days[-1][1] - spend[number - 1]
            best = rng.choice([name for name in goods if name != last])
            others = rng.sample([name for name in goods if name != best], PARAMS["choices"] - 1)
            self.days.append(self.day(rng, best, others, purse, spend[number]))
            last = best
        best, purse, listed = self.days.pop(0)
        self.closed = 0
        self.turn = 0
        self.paid = 0.0
        intro = f"Take the best offer, {len(self.days)} days. {self.facts()}"
        names = ", ".join(text for name, text in listed)
        held = f"purse {purse}, " if PARAMS["rule"] == "cash" else ""
        praised = f"the crier praised {best}, " if PARAMS["rule"] == "tip" else ""
        return f"{intro}Yesterday: {held}{names}; {praised}best was {best}. {self.ask()}", {}

    def facts(self):
        """What a trader knows from the start."""
        if PARAMS["rule"] != "value":
            return ""
        return "Prices: " + ", ".join(f"{name} {cost}" for name, cost in self.prices.items()) + ". "

    def day(self, rng, best, others, purse, spend):
        """(best, purse, listed offers) of one day on which `best` is better than all `others`."""
        numbers = getattr(self, "deal_" + PARAMS["rule"])(rng, best, others, purse, spend)
        listed = [(name, f"{name} {numbers[name]}".strip()) for name in [best, *others]]
        rng.shuffle(listed)
        return best, purse, listed

    def deal_tip(self, rng, best, others, purse, spend):
        return dict.fromkeys([best, *others], "")

    def deal_most(self, rng, best, others, purse, spend):
        numbers = sorted(rng.sample(range(1, 10), len(others) + 1), reverse=True)
        return dict(zip([best, *others], numbers, strict=False))

    def deal_least(self, rng, best, others, purse, spend):
        numbers = sorted(rng.sample(range(1, 10), len(others) + 1))
        return dict(zip([best, *others], numbers, strict=False))

    def deal_net(self, rng, best, others, purse, spend):
        rests = sorted(rng.sample(range(1, 8), len(others) + 1), reverse=True)
        numbers = {}
        for name, rest in zip([best, *others], rests, strict=False):
            cost = rng.randint(1, 6)
            numbers[name] = f"{rest + cost}-{cost}"
        return numbers

    def deal_cash(self, rng, best, others, purse, spend):
        above = rng.sample(range(purse + 1, purse + 6), 2)
        below = rng.sample(range(1, spend), 2)
        wrong = [above[0], below[0], above[1]]
        if rng.random() < 0.5:
            wrong = [below[0], above[0], below[1]]
        return dict(zip([best, *others], [spend, *wrong], strict=False))

    def deal_value(self, rng, best, others, purse, spend):
        """Redrawn until `best` is worth most; taken to the largest number it always can be."""
        names = [best, *others]
        for _attempt in range(40):
            numbers = {name: rng.randint(1, 9) for name in names}
            worth = {name: numbers[name] * self.prices[name] for name in names}
            if all(worth[best] > worth[name] for name in others):
                return numbers
        numbers = dict.fromkeys(others, 1)
        numbers[best] = 9
        return numbers

    def ask(self):
        best, purse, listed = self.days[self.closed]
        names = ", ".join(name for name, text in listed)
        offers = ", ".join(text for name, text in listed)
        held = f"Purse {purse}. " if PARAMS["rule"] == "cash" else ""
        if PARAMS["rule"] == "tip":
            return f"Reply with one of: {names}. The crier praises {best}."
        return f"{held}Offers: {offers}. Reply with one of: {names}."

    def step(self, action):
        self.turn += 1
        if self.closed == len(self.days):
            return "Trading is over.", 0.0, True, False, {}
        best, _purse, listed = self.days[self.closed]
        command = read(action, [name for name, text in listed])
        late = self.turn >= self.max_turns
        if not command:
            return f"Nobody offers that. {self.ask()}", 0.0, False, late, {}
        if command != best:
            return f"Not the best. {self.ask()}", 0.0, False, late, {}
        self.closed += 1
        if self.closed == len(self.days):
            return "A good trade, the last one.", 1.0 - self.paid, True, False, {}
        reward = self.closed / len(self.days) - self.paid
        self.paid += reward
        return f"Right, day {self.closed} done. {self.ask()}", reward, False, late, {}

    def hint(self, level=2):
        if level == 1:
            return "See which numbers yesterday's best offer had, and the others."
        if level == 3:
            return f"The best are, one after another: {', '.join(self.solution())}."
        return RULES[PARAMS["rule"]]

    def solution(self):
        return [best for best, purse, listed in self.days]
