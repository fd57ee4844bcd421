"""Audit a shop's ledger against its bank.

The ledger has six accounts of six lines. A line is a sum of pence that came in or went out. Three
accounts do not agree with the bank, and each of them holds exactly one slip of the pen:

- in one account, two neighbouring digits of a sum were swapped (450 became 540);
- in another, a sum was written with one zero too many (83 became 830);
- in the third, a sum was entered on the wrong side (in instead of out, or out instead of in).

`bank` compares the balances of one account, `read` shows its lines, `correct` rewrites a line as it
should have been. Nobody says which accounts, lines or slips are wrong: the size of the gap betrays
them, since swapped digits leave a multiple of nine, an extra zero nine times the true sum, and a
wrong side twice the sum. The audit is won when the three slips are corrected. A wrong correction is
not written down, but the third one ends the audit. The first two slips pay 0.25 each, the last the
rest.
"""

import random

NAMES = ("wool", "salt", "rope", "tin", "oil", "hemp", "tea", "wax", "coal", "flax", "soap")
SWAP, ZERO, SIDE = "two swapped digits", "a zero too many", "a sum on the wrong side"
LINES = 6
STRIKES = 3
COMMANDS = (
    "Commands: `bank <account>` compares the balances; `read <account>` shows the lines; "
    "`correct <account> <line> <in|out> <pence>` rewrites one line as it should be."
)


def swaps(pence: int) -> list[int]:
    """Every sum that two neighbouring digits of `pence`, swapped, give."""
    digits = str(pence)
    swapped = [
        digits[:place] + digits[place + 1] + digits[place] + digits[place + 2 :]
        for place in range(len(digits) - 1)
    ]
    return [int(text) for text in swapped if text[0] != "0" and text != digits]


def readings(line: int) -> list[int]:
    """What a written line may have been meant as, if it holds a slip. Money out is negative."""
    sign = 1 if line > 0 else -1
    meant = [-line, *(sign * pence for pence in swaps(abs(line)))]
    if line % 10 == 0:
        meant.append(line // 10)
    return meant


def explanations(lines: list[int], bank: int) -> list[tuple[int, int]]:
    """Each (line number from 0, true value) that would make the lines agree with the bank."""
    gap = bank - sum(lines)
    return [
        (number, meant)
        for number, line in enumerate(lines)
        for meant in readings(line)
        if meant - line == gap
    ]


def show(line: int) -> str:
    """A line as the clerk writes it, `in 450` or `out 450`."""
    return f"{'in' if line > 0 else 'out'} {abs(line)}"


class LedgerAuditEnv:
    max_turns = 30

    def reset(self, seed: int) -> tuple[str, dict]:
        self.rng = random.Random(seed)
        self.names = self.rng.sample(NAMES, 6)
        self.slips = dict(zip(self.rng.sample(self.names, 3), (SWAP, ZERO, SIDE), strict=True))
        self.ledger = {}  # account -> the lines as written
        self.bank = {}  # account -> the true balance
        self.fixes = {}  # account -> (line number from 0, true value), for accounts still wrong
        for name in self.names:
            self._write_account(name)
        self.strikes = 0
        self.turn = 0
        story = (
            "You audit the ledger of a small shop. Its accounts are "
            + ", ".join(self.names)
            + f", each with {LINES} lines of pence in or out. Three accounts disagree with the bank. "
            "Each of the three holds exactly one slip: one has two neighbouring digits of a sum "
            "swapped, one has a sum with a zero too many, one has a sum on the wrong side (in for "
            "out or out for in). Goal: correct all three slips. The third wrong correction ends "
            "the audit."
        )
        return self._view(story), {}

    def _write_account(self, name: str) -> None:
        """Draw lines until the slip, if there is one, has a single explanation."""
        kind = self.slips.get(name)
        while True:
            true = [self._draw_line() for _ in range(LINES)]
            number = self.rng.randrange(LINES)
            lines = list(true)
            if kind is not None:
                lines[number] = self._slip(kind, true[number])
            self.ledger[name], self.bank[name] = lines, sum(true)
            if kind is None:
                return
            if explanations(lines, sum(true)) == [(number, true[number])]:
                self.fixes[name] = (number, true[number])
                return

    def _draw_line(self) -> int:
        pence = self.rng.randint(12, 999) * self.rng.choice((1, 10)) + self.rng.choice((0, 1000))
        return pence * self.rng.choice((1, -1))

    def _slip(self, kind: str, true: int) -> int:
        """The true line as the clerk wrote it (unchanged where its digits cannot be swapped)."""
        if kind == SIDE:
            return -true
        if kind == ZERO:
            return true * 10
        wrong = self.rng.choice(swaps(abs(true)) or [abs(true)])
        return wrong if true > 0 else -wrong

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        self.turn += 1
        words = action.lower().split()[:6]
        known = len(words) > 1 and words[1] in self.names
        if known and words[0] == "bank" and len(words) == 2:
            return self._result(self._compare(words[1]))
        if known and words[0] == "read" and len(words) == 2:
            return self._result(self._read(words[1]))
        if known and words[0] == "correct" and len(words) == 5:
            return self._correct(words[1], words[2], words[3], words[4])
        return self._result("The clerk is puzzled. The accounts are " + ", ".join(self.names) + ".")

    def _compare(self, name: str) -> str:
        ledger, bank = sum(self.ledger[name]), self.bank[name]
        verdict = "They agree." if ledger == bank else "They do not agree."
        return f"Account {name}: the ledger's balance is {ledger}, the bank's is {bank}. {verdict}"

    def _read(self, name: str) -> str:
        rows = [f"line {number}: {show(line)}" for number, line in enumerate(self.ledger[name], 1)]
        return f"Account {name}: " + "; ".join(rows) + "."

    def _correct(self, name: str, line: str, side: str, pence: str):
        number = int(line) - 1 if line in tuple("123456") else None
        is_sum = pence.isascii() and pence.isdigit() and len(pence) <= 6
        if number is None or side not in ("in", "out") or not is_sum:
            note = f"A correction names a line from 1 to {LINES}, in or out, and a sum of pence."
            return self._result(note)
        value = int(pence) if side == "in" else -int(pence)
        if value == self.ledger[name][number]:
            return self._result("That is what the line says already.")
        if self.fixes.get(name) != (number, value):
            self.strikes += 1
            if self.strikes == STRIKES:
                return self._result("A third wrong correction ends the audit.", over=True)
            return self._result("No: that is not what happened. Nothing is changed.")
        self.ledger[name][number] = value
        del self.fixes[name]
        if self.fixes:
            return self._result(f"Right: account {name} now agrees with the bank.", 0.25)
        return self._result("Right: now the whole ledger agrees with the bank.", 0.5, over=True)

    def _result(self, note: str, reward: float = 0.0, over: bool = False):
        """What a step returns: the note, and unless the episode is over the state below it."""
        return note if over else self._view(note), reward, over, False, {}

    def _view(self, note: str) -> str:
        return (
            f"{note}\nSlips still to correct: {len(self.fixes)}. Wrong corrections: {self.strikes} "
            f"of {STRIKES}. Turn {self.turn} of {self.max_turns}.\n{COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "Take the gap between ledger and bank: its size tells the kind of slip."
        if level == 2:
            told = "; ".join(f"account {name} has {kind}" for name, kind in self.slips.items())
            return (
                f"The slips: {told}. A wrong side leaves a gap of twice the sum, a zero too many a "
                "gap of nine times the true sum, swapped digits nine times the difference of the "
                "two digits."
            )
        told = "; ".join(f"{name}, line {number + 1}" for name, (number, _) in self.fixes.items())
        return f"The slips stand in: {told}. Each true sum is the written one less the gap."

    def solution(self) -> list[str]:
        actions = []
        for name, (number, value) in self.fixes.items():
            actions += [f"bank {name}", f"read {name}"]
            actions.append(f"correct {name} {number + 1} {show(value)}")
        return actions
