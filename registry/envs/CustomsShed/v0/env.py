"""Find out what is in five sealed crates from labels of which some lie.

Five crates stand in a row, numbered 1 to 5 from the left, and each holds a different one of five
goods. On each crate hangs a label of two sentences, written by one of three clerks. Every clerk is
either honest, and then all the sentences he wrote are true, or a smuggler's friend, and then all of
them are false. At least one clerk is of either kind; nobody says which.

`read` shows a label, `open` breaks a seal and shows the goods, but only two seals may be broken.
The labels alone leave several orders of the goods possible; two seals settle which, if the second
is broken where the orders still possible differ. `file` hands in the manifest of all five crates,
once, after at least one crate was opened. The right manifest wins; a wrong one ends the day, and
pays 0.2 if three of its goods stand in the right place.
"""

import random
from itertools import combinations, permutations, product

GOODS = ("tea", "silk", "salt", "pepper", "rum", "ivory", "amber", "wool", "copper")
CLERKS = ("Abel", "Boas", "Cyril", "Dorn", "Edwin", "Felix", "Gregor", "Hugo")
CRATES = 5
SEALS = 2
PART_PAY = 0.2
HONESTIES = [kinds for kinds in product((True, False), repeat=3) if len(set(kinds)) == 2]
COMMANDS = (
    "Commands: `read <crate>` shows a label; `open <crate>` breaks its seal; "
    "`file <goods> <goods> <goods> <goods> <goods>` hands in the manifest, crate 1 first."
)


def holds(sentence: tuple, order: tuple) -> bool:
    """Whether a sentence is true of the goods in their order from the left."""
    kind, goods, other = sentence
    place = order.index(goods) + 1
    if kind == "in":
        return place == other
    if kind == "not in":
        return place != other
    if kind == "even":
        return place % 2 == 0
    there = order.index(other) + 1
    return place < there if kind == "left of" else abs(place - there) == 1


def say(sentence: tuple) -> str:
    """The sentence as it stands on a label."""
    kind, goods, other = sentence
    if kind == "even":
        return f"The {goods} is in a crate with an even number."
    if kind in ("in", "not in"):
        return f"The {goods} is {kind} crate {other}."
    where = "somewhere to the left of" if kind == "left of" else "next to"
    return f"The {goods} stands {where} the {other}."


class CustomsShedEnv:
    max_turns = 20

    def reset(self, seed: int) -> tuple[str, dict]:
        self.rng = random.Random(seed)
        self.goods = self.rng.sample(GOODS, CRATES)
        self.clerks = self.rng.sample(CLERKS, 3)
        self._write_labels()
        while not self._is_fair():
            self._write_labels()
        self.opened = []
        self.turn = 0
        story = (
            "You are the customs officer. Five sealed crates stand in a row, 1 to 5 from the left; "
            f"each holds one of {', '.join(sorted(self.goods))}, all different. Each label has two "
            f"sentences by one of the clerks {', '.join(self.clerks)}. A clerk is either honest, "
            "and all his sentences are true, or crooked, and all his sentences are false; at least "
            f"one is honest and at least one crooked. You may break {SEALS} seals. Goal: file what "
            "is in the five crates, in order. You file once, after you opened at least one crate."
        )
        return self._view(story), {}

    def _write_labels(self) -> None:
        """Fill the crates and let each clerk write sentences that are all true or all false."""
        self.order = tuple(self.rng.sample(self.goods, CRATES))
        self.honest = dict(zip(self.clerks, self.rng.choice(HONESTIES), strict=True))
        self.writers = [*self.clerks, *self.rng.sample(self.clerks, CRATES - 3)]
        self.rng.shuffle(self.writers)
        self.labels = []
        for writer in self.writers:
            label = []
            while len(label) < 2:
                sentence = self._draw_sentence()
                fresh = all(sentence not in other for other in (*self.labels, label))
                if fresh and holds(sentence, self.order) == self.honest[writer]:
                    label.append(sentence)
            self.labels.append(label)

    def _draw_sentence(self) -> tuple:
        kind = self.rng.choice(("in", "not in", "even", "left of", "left of", "beside"))
        goods, other = self.rng.sample(self.goods, 2)
        if kind == "even":
            return (kind, goods, None)
        return (kind, goods, self.rng.randint(1, CRATES) if kind in ("in", "not in") else other)

    def _possible_orders(self) -> list[tuple]:
        """Every order of the goods that some choice of honest clerks allows."""
        return [order for order in permutations(self.goods) if self._clerks_agree(order)]

    def _clerks_agree(self, order: tuple) -> bool:
        """Whether each clerk is either honest or crooked if this is the order, and not all alike."""
        verdicts = {}
        for writer, label in zip(self.writers, self.labels, strict=True):
            for sentence in label:
                verdict = holds(sentence, order)
                if verdicts.setdefault(writer, verdict) != verdict:
                    return False
        return len(set(verdicts.values())) == 2

    def _is_fair(self) -> bool:
        """Whether the labels leave orders open, and two seals settle them if broken with thought.

        At most one crate may settle the order alone. From all but one of the crates, whatever it
        holds, some second crate must tell the orders still possible apart.
        """
        orders = self._possible_orders()
        alone = sum(self._settles(orders, [crate]) for crate in range(CRATES))
        starts = sum(self._starts_well(orders, crate) for crate in range(CRATES))
        return len(orders) > 2 and alone <= 1 and starts >= CRATES - 1

    def _settles(self, orders: list[tuple], crates: list[int]) -> bool:
        """Whether opening these crates leaves only the true order."""
        return all(
            order == self.order or any(order[crate] != self.order[crate] for crate in crates)
            for order in orders
        )

    def _starts_well(self, orders: list[tuple], first: int) -> bool:
        """Whether, whatever the first crate holds, some second crate settles the order."""
        for goods in self.goods:
            left = [order for order in orders if order[first] == goods]
            if all(len({order[second] for order in left}) < len(left) for second in range(CRATES)):
                return False
        return True

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        self.turn += 1
        words = action.lower().split()[: CRATES + 2]
        note = "That is no customs business. Crates are numbered 1 to 5."
        if len(words) == 2 and words[1] in tuple("12345"):
            crate = int(words[1]) - 1
            acts = {"read": self._read, "open": self._open}
            note = acts[words[0]](crate) if words[0] in acts else note
        elif words and words[0] == "file":
            if sorted(words[1:]) == sorted(self.goods) and self.opened:
                return self._file(tuple(words[1:]))
            note = "The office wants each of the five goods once, and a crate opened before."
        return self._result(note)

    def _read(self, crate: int) -> str:
        first, second = self.labels[crate]
        return f"Crate {crate + 1}, label by {self.writers[crate]}: {say(first)} {say(second)}"

    def _open(self, crate: int) -> str:
        if crate not in self.opened:
            if len(self.opened) == SEALS:
                return "You may not break another seal."
            self.opened.append(crate)
        return f"Crate {crate + 1} holds {self.order[crate]}."

    def _file(self, order: tuple):
        right = sum(filed == true for filed, true in zip(order, self.order, strict=True))
        if right == CRATES:
            return self._result("The manifest is right. The ship may sail.", 1.0, over=True)
        pay = PART_PAY if right >= 3 else 0.0
        return self._result(f"The manifest is wrong: only {right} crates fit.", pay, over=True)

    def _result(self, note: str, reward: float = 0.0, over: bool = False):
        """What a step returns: the note, and unless the episode is over the state below it."""
        return note if over else self._view(note), reward, over, False, {}

    def _view(self, note: str) -> str:
        known = ", ".join(f"crate {crate + 1} {self.order[crate]}" for crate in sorted(self.opened))
        return (
            f"{note}\nOpened: {known or 'none'}; seals left to break: {SEALS - len(self.opened)}. "
            f"Turn {self.turn} of {self.max_turns}.\n{COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "Read all labels first. One false sentence makes all of that clerk's false."
        kinds = {True: "honest", False: "crooked"}
        told = ", ".join(f"{clerk} is {kinds[honest]}" for clerk, honest in self.honest.items())
        if level == 2:
            return (
                f"{told}. So turn every sentence of a crooked clerk into its opposite, keep the "
                "others, and list the orders of goods that fit all of them before you break a seal."
            )
        return f"{told}. Crate 1 holds {self.order[0]} and crate 5 holds {self.order[-1]}."

    def solution(self) -> list[str]:
        orders = self._possible_orders()
        pairs = combinations(range(CRATES), SEALS)
        first, second = next(pair for pair in pairs if self._settles(orders, list(pair)))
        reads = [f"read {crate + 1}" for crate in range(CRATES)]
        return [*reads, f"open {first + 1}", f"open {second + 1}", "file " + " ".join(self.order)]
