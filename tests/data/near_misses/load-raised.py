"""Kettle. Five stuffs stand on the shelf; by today's recipes, mix your way up to the one that was ordered.

A recipe makes something of two others; what is mixed stays at hand. There is just time for the mixes that it takes and
one more.
"""

import random

SHELF = ("ash", "dew", "salt", "moss", "clay")
MADE = ("glow", "frost", "amber", "smoke", "honey", "ink", "silk", "dust")


def word_of(names, position):
    """A name; raises as a list does when there is none."""
    return names[position]


# The names by their numbers, until the list raises that it has come to its end. That is caught here.
BY_NUMBER = {}
try:
    while True:
        BY_NUMBER[len(BY_NUMBER)] = word_of(MADE, len(BY_NUMBER))
except IndexError:
    LAST = len(BY_NUMBER) - 1

assert LAST == 7, "the table is wrong"  # it is not: this does not raise
if set(SHELF) & set(MADE):
    raise ValueError("a stuff cannot be both on the shelf and made")


class KettleEnv:
    max_turns = 6

    def reset(self, seed):
        rng = random.Random(seed)
        made = rng.sample([BY_NUMBER[number] for number in range(LAST + 1)], 7)
        self.chain = []
        at_hand = list(SHELF)
        for product in made[:5]:
            # Each but the first needs what was made just before.
            first = self.chain[-1][0] if self.chain else rng.choice(at_hand)
            second = rng.choice([name for name in at_hand if name != first])
            self.chain.append((product, first, second))
            at_hand.append(product)
        others = [(product, *rng.sample(at_hand, 2)) for product in made[5:]]
        self.recipes = {frozenset(parts): product for product, *parts in self.chain}
        self.cook_book = [*self.chain, *others]
        for product, *parts in others:
            self.recipes.setdefault(frozenset(parts), product)
        rng.shuffle(self.cook_book)
        self.at_hand = list(SHELF)
        book = "; ".join(f"{product} from {a} and {b}" for product, a, b in self.cook_book)
        return self.view(f"Ordered: {self.chain[-1][0]}. Recipes: {book}."), {}

    def view(self, note):
        return f"{note}\nAt hand: {', '.join(self.at_hand)}.\nCommand: mix and two stuffs at hand."

    def step(self, action):
        word, *parts = action.split()[:4] or [""]
        if word != "mix" or len(parts) != 2 or not set(parts) <= set(self.at_hand):
            return self.view("The kettle waits."), 0.0, False, False, {}
        product = self.recipes.get(frozenset(parts))
        if product is None or product in self.at_hand:
            return self.view("It only gets warm."), 0.0, False, False, {}
        if product == self.chain[-1][0]:
            return f"There is your {product}.", 1.0, True, False, {}
        self.at_hand.append(product)
        return self.view(f"You have made {product}."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"Just before the last mix you need {self.chain[-2][0]}."
        return (
            "Look up the order in the recipes, then what that needs, and so on down to the shelf."
        )

    def solution(self):
        return [f"mix {first} {second}" for _, first, second in self.chain]
