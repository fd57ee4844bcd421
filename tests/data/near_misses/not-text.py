"""Obstgarten · فاكهة · 果樹園. Five gaps in a square of fruit: every row and every column has each fruit once.

Put a fruit into each gap; what is put can be replaced. “Naïve” tries cost turns — the café closes soon. ½ ☃ ﷽ 🙂‍↔️
"""

import random

FRUIT = "🍎🍐🍋🍇"
ROWS = "αβγδ"
NOTES = {
    "empty": "Нічого не сталося.\u00a0¯\\_(ツ)_/¯",
    "done": "さくらんぼ\N{CHERRIES}\x07",
    "half": "half of a pair, \ud83c, and a zero \0 that is written with an escape",
}


class FruitEnv:
    """Κῆπος: the names of rows are Greek, those of columns Arabic (٠١٢٣)."""

    max_turns = 8

    def reset(self, seed):
        rng = random.Random(seed)
        fruit, rows, columns = (rng.sample(range(4), 4) for _ in range(3))
        self.square = [[fruit[(r + c) % 4] for c in columns] for r in rows]
        squares = [(row, column) for row in range(4) for column in range(4)]
        self.gaps = rng.sample(squares, 5)
        self.naïve = {gap: None for gap in self.gaps}  # noqa: C420
        return self.view("Füllt die Lücken: in jeder Zeile und Spalte jede Frucht einmal."), {}

    def view(self, note):
        rows = []
        for row in range(4):
            shown = [self.square[row][c] if (row, c) not in self.gaps else None for c in range(4)]
            shown = [self.naïve.get((row, c), one) for c, one in enumerate(shown)]
            rows.append(ROWS[row] + " " + "".join("⬜" if n is None else FRUIT[n] for n in shown))
        rows = "\n".join(rows)
        return f"{note}\n  ٠ ١ ٢ ٣\n{rows}\n{FRUIT}: put a fruit, its row and its column, as in put 🍒ω٩."  # noqa: RUF001

    def step(self, action):
        word, _, rest = action.partition(" ")
        gaps = {f"{ROWS[r]}{'٠١٢٣'[c]}": (r, c) for r, c in self.gaps}
        if word != "put" or rest[:1] not in FRUIT or not rest or rest[1:] not in gaps:
            return self.view(NOTES["empty"]), 0.0, False, False, {}
        self.naïve[gaps[rest[1:]]] = FRUIT.index(rest[0])
        if all(self.square[r][c] == self.naïve[r, c] for r, c in self.gaps):
            return NOTES["done"], 1.0, True, False, {}
        return self.view("🙂"), 0.0, False, False, {"half": NOTES["half"]}

    def hint(self, level=2):
        if level == 3:
            row, column = self.gaps[0]
            return f"{ROWS[row]}{'٠١٢٣'[column]} ← {FRUIT[self.square[row][column]]}"
        return "Beginne dort, wo nur eine Lücke ist — dann bleibt dort nur eine Frucht."

    def solution(self):
        return [f"put {FRUIT[self.square[r][c]]}{ROWS[r]}{'٠١٢٣'[c]}" for r, c in self.gaps]
