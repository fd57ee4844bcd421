"""Great ledger. Three pages of a ledger have one wrong line each; strike it out on every page, from the first to the
last.

A line gives a price, a number of sacks and what they cost together; in the wrong one that is not their product.
The pages are long, so there is much to read, and all of it is to the purpose.
"""

import random

LINES = 120
CLERKS = ("Abel", "Beth", "Carl", "Dora", "Emil", "Fay", "Gwen", "Hugo")


class LedgerEnv:
    max_turns = 5

    def reset(self, seed):
        rng = random.Random(seed)
        self.wrong = [rng.randrange(LINES) for _ in range(3)]
        self.pages = [self.write(rng, wrong) for wrong in self.wrong]
        self.page = 0
        return self.view("Strike out the one line of each page whose sum is wrong."), {}

    def write(self, rng, wrong):
        """The lines of one page."""
        lines = []
        for line in range(LINES):
            price, sacks = rng.randint(11, 99), rng.randint(11, 99)
            cost = price * sacks + (rng.choice([-10, 10]) if line == wrong else 0)
            lines.append(
                f"{line + 300}: {price} pence, {sacks} sacks, {cost} ({rng.choice(CLERKS)})"
            )
        return lines

    def view(self, note):
        page = "\n".join(self.pages[self.page])
        return (
            f"{note}\nPage {self.page + 1} of 3.\n{page}\nCommand: strike and the number of a line."
        )

    def step(self, action):
        word, _, number = action.partition(" ")
        if word != "strike" or number not in [str(line + 300) for line in range(LINES)]:
            return self.view("The ink dries."), 0.0, False, False, {}
        if number != str(self.wrong[self.page] + 300):
            return "That line was right.", 0.0, True, False, {}
        self.page += 1
        if self.page == 3:
            return "The ledger is correct.", 1.0, True, False, {}
        return self.view("You turn the page."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"On the first page it is one of the lines from {self.wrong[0] // 10 * 10 + 300} on."
        return "Check the last digits and the order of magnitude first, and the digit before the last one with care."

    def solution(self):
        return [f"strike {wrong + 300}" for wrong in self.wrong]
