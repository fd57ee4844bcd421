"""Darn three rows of a moth-eaten cloth by finding the rule that it was woven by.

The cloth has twelve rows of fourteen yarns in four colours. One order of yarns repeats along each
row; every row starts the same order a fixed step further on; and on every third or fourth row two
colours trade places. Moths ate three whole rows. A lens shows six neighbouring yarns of an intact
row at a time, so the order, the step and the odd rows have to be pieced together from small views.
A row is darned by naming its first eight yarns. The third darned row wins; the third wrong one
ruins the cloth.
"""

import random

ROWS = 12
COLUMNS = 14
LENS = 6
PATCH = 8
COLOURS = {"B": "blue", "G": "green", "K": "black", "R": "red", "W": "white", "Y": "yellow"}
NUMBER_WORDS = {3: "third", 4: "fourth", 5: "five", 6: "six", 7: "seven"}
COMMANDS = (
    f"Commands: look <row> <column> (shows {LENS} yarns from that column on, columns 1 to "
    f"{COLUMNS - LENS + 1}), darn <row> <letters> (the first {PATCH} yarns of an eaten row, as "
    "letters)."
)


def number(word: str) -> int:
    """The number that a word spells in plain digits, 0 for anything else."""
    return int(word) if word.isascii() and word.isdecimal() and len(word) <= 2 else 0


class LoomDarnEnv:
    max_turns = 40

    def reset(self, seed: int) -> tuple[str, dict]:
        rng = random.Random(seed)
        self.yarns = sorted(rng.sample(sorted(COLOURS), 4))
        self.period = rng.choice((5, 6, 7))
        self.order = self.yarns + [rng.choice(self.yarns) for _ in range(self.period - 4)]
        rng.shuffle(self.order)
        self.drop = rng.randint(1, self.period - 1)
        self.every = rng.choice((3, 4))
        self.first_odd = rng.randint(1, self.every)
        self.traded = rng.sample(self.yarns, 2)

        # The eaten odd row is the first or the last one: the others still show the spacing.
        odd = [row for row in range(1, ROWS + 1) if self._is_odd(row)]
        even = [row for row in range(1, ROWS + 1) if not self._is_odd(row)]
        self.eaten = sorted([rng.choice((odd[0], odd[-1])), *rng.sample(even, 2)])
        self.darned: list[int] = []
        self.mistakes = 0
        self.paid = 0.0
        self.over = False

        colours = ", ".join(f"{letter} {COLOURS[letter]}" for letter in self.yarns)
        return (
            f"A cloth of {ROWS} rows and {COLUMNS} columns hangs before you. Its yarns: {colours}. "
            "The weaver kept to one rule from the first row to the last. Moths ate some rows "
            "bare; every other row is intact, but your lens shows only a few yarns at a time.\n"
            "Goal: darn every eaten row just as the weaver had it. Three wrong darns ruin the "
            "cloth.\n"
            f"{self._status()}"
        ), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        if self.over:
            return "The cloth has been taken down.", 0.0, True, False, {}
        words = action.split()
        verb = words[0].lower() if words else ""
        row = number(words[1]) if len(words) > 1 else 0
        reward = 0.0
        if verb == "look" and len(words) == 3:
            text = self._look(row, number(words[2]))
        elif verb == "darn" and len(words) > 2:
            text, reward = self._darn(row, "".join(words[2:]).upper())
        else:
            text = "Nobody at the loom knows that command."
        return f"{text}\n{self._status()}", reward, self.over, False, {}

    def _look(self, row: int, column: int) -> str:
        if not (1 <= row <= ROWS and 1 <= column <= COLUMNS - LENS + 1):
            return f"The lens reaches rows 1 to {ROWS} and columns 1 to {COLUMNS - LENS + 1}."
        if row in self.eaten and row not in self.darned:
            return f"Row {row} is eaten bare: nothing to see."
        seen = " ".join(self._yarn(row, column + i) for i in range(LENS))
        return f"Row {row}, columns {column} to {column + LENS - 1}: {seen}"

    def _darn(self, row: int, letters: str) -> tuple[str, float]:
        if row not in self.eaten or row in self.darned:
            return "That row needs no darning.", 0.0
        if len(letters) != PATCH or not set(letters) <= set(self.yarns):
            return f"A darn is {PATCH} letters out of {' '.join(self.yarns)}.", 0.0
        if letters != self._patch(row):
            self.mistakes += 1
            self.over = self.mistakes == 3
            return "The new yarns do not fit in; you pull them out again.", 0.0
        self.darned.append(row)
        self.over = len(self.darned) == len(self.eaten)
        reward = 1.0 - self.paid if self.over else 0.25
        self.paid += reward
        return "The darn cannot be told from the old cloth.", reward

    def _is_odd(self, row: int) -> bool:
        return row % self.every == self.first_odd % self.every

    def _yarn(self, row: int, column: int) -> str:
        letter = self.order[(column + self.drop * row) % self.period]
        if self._is_odd(row) and letter in self.traded:
            return self.traded[1 - self.traded.index(letter)]
        return letter

    def _patch(self, row: int) -> str:
        return "".join(self._yarn(row, column) for column in range(1, PATCH + 1))

    def _status(self) -> str:
        left = [str(row) for row in self.eaten if row not in self.darned]
        return (
            f"Eaten rows left: {', '.join(left) or 'none'}. Wrong darns: {self.mistakes} of 3. "
            f"{COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return (
                "Write neighbouring rows under each other and look for what moves and what stays."
            )
        if level == 2:
            return (
                f"Along a row the yarns repeat every {NUMBER_WORDS[self.period]} columns, and each "
                "row starts that repeat a fixed step further on. Beware of every "
                f"{NUMBER_WORDS[self.every]} row: there two colours trade places."
            )
        return (
            f"The repeat is {' '.join(self.order)}; each row starts {self.drop} further along it; "
            f"{' and '.join(self.traded)} trade places on every {NUMBER_WORDS[self.every]} row."
        )

    def solution(self) -> list[str]:
        intact = [row for row in range(1, ROWS + 1) if row not in self.eaten]
        looks = [f"look {row} {column}" for row in intact[:6] for column in (1, LENS + 1)]
        return looks + [f"darn {row} {self._patch(row)}" for row in self.eaten]
