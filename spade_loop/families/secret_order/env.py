"""A clerk answers every order with a number, by a rule that is not told; two earlier orders show it at work.

Each turn gives one order and a few numbers to choose from. Replying with the number that the clerk would give fills the
order and brings the next one; a wrong number costs the turn, and the clerk says whether it was too many or too few. The
episode is won when all orders are filled in time. The rule, the length, the number of choices and the turns to spare
are set by PARAMS. Rule `total` counts on: the clerk gives the sum of all orders of the day so far.
"""

import random

PARAMS = {"theme": "shop", "rule": "same", "choices": 2, "steps": 3, "spare": 2}

THEMES = {
    "shop": ("baker", "loaves"),
    "port": ("captain", "crates"),
    "farm": ("gardener", "seeds"),
    "library": ("keeper", "books"),
}
RULES = {
    "same": "Give exactly the number that was asked.",
    "more": "Give one more than was asked.",
    "less": "Give one less than was asked.",
    "double": "Give twice the number that was asked.",
    "total": "Add the new order to all orders before it, and give the sum.",
}


def given(asked, before):
    """What the clerk gives for an order, when the orders before it add up to `before`."""
    rule = PARAMS["rule"]
    if rule == "more":
        return asked + 1
    if rule == "less":
        return asked - 1
    if rule == "double":
        return asked * 2
    if rule == "total":
        return before + asked
    return asked


class SecretOrderEnv:
    max_turns = PARAMS["steps"] + PARAMS["spare"]

    def __init__(self):
        self.reset(0)

    def reset(self, seed=0):
        rng = random.Random(seed)
        clerk, goods = THEMES[PARAMS["theme"]]
        numbers = rng.sample(range(2, 10), PARAMS["steps"] + 2)
        examples, asked = numbers[:2], numbers[2:]
        self.goods = goods
        self.rounds = []
        total = 0
        for number in asked:
            answer = given(number, total)
            total += number
            self.rounds.append((number, answer, self.offer(rng, number, answer)))
        self.filled = 0
        self.turn = 0
        self.paid = 0.0
        first, second = examples
        shown = f"{first} asked, {given(first, 0)} given; then {second} asked, {given(second, first)} given"
        intro = (
            f"The {clerk} has a secret rule. Yesterday: {shown}. "
            f"Today is a new day with {len(asked)} orders."
        )
        return f"{intro} {self.ask()}", {}

    def offer(self, rng, number, answer):
        """The answer among wrong numbers, the number that was asked always among them."""
        near = [answer + 1, answer - 1, answer + 2, answer + 3, number * 2, number + 1]
        wrong = sorted({value for value in near if value > 0 and value not in (answer, number)})
        rng.shuffle(wrong)
        if number != answer:
            wrong.insert(0, number)
        options = [answer, *wrong[: PARAMS["choices"] - 1]]
        rng.shuffle(options)
        return [str(value) for value in options]

    def ask(self):
        number, _answer, options = self.rounds[self.filled]
        return f"Reply with one of: {', '.join(options)}. Order: {number} {self.goods}."

    def step(self, action):
        self.turn += 1
        if self.filled == len(self.rounds):
            return "All orders are filled.", 0.0, True, False, {}
        _number, answer, options = self.rounds[self.filled]
        words = [word.strip(".,:;!\"'") for word in str(action).lower().split()[:3]]
        command = " ".join(word for word in words if word != self.goods)
        late = self.turn >= self.max_turns
        if command not in options:
            return f"That is not on offer. {self.ask()}", 0.0, False, late, {}
        if command != str(answer):
            wrong = "many" if int(command) > answer else "few"
            return f"No, too {wrong}. {self.ask()}", 0.0, False, late, {}
        self.filled += 1
        if self.filled == len(self.rounds):
            return "Right. All orders are filled.", 1.0 - self.paid, True, False, {}
        reward = self.filled / len(self.rounds) - self.paid
        self.paid += reward
        return f"Right, {self.filled} filled. {self.ask()}", reward, False, late, {}

    def hint(self, level=2):
        if level == 1:
            return "Compare what was asked yesterday with what was given. The same happens to every number."
        if level == 3:
            answers = ", ".join(str(answer) for number, answer, options in self.rounds)
            return f"The clerk gives, one after another: {answers}."
        if PARAMS["rule"] == "same":
            return RULES["same"]
        if PARAMS["rule"] == "total":
            table = "Orders of 3, 4 and 2 give 3, then 7, then 9."
        else:
            table = ", ".join(f"{n} gives {given(n, 0)}" for n in range(2, 10)) + "."
        return f"{RULES[PARAMS['rule']]} {table}"

    def solution(self):
        return [str(answer) for number, answer, options in self.rounds]
