"""Join six bell ringers: hear how the order of the bells changes, then call the next rows yourself.

A row is the order in which the six bells strike. From one row to the next some neighbouring bells
trade places, and which places trade follows a short list of changes that comes round again and
again: the method. `listen` lets the band ring one row; `ring` calls the row that comes next. Five
right calls without listening in between win. A wrong call is a clash and breaks the run; the fourth
clash ends the practice.
"""

import random

BELLS = 6
RUN = 5
CLASHES = 4
COMMANDS = (
    "Commands: listen (the band rings one row), ring <row> (six digits: you call the next row)."
)

# A change is a set of disjoint neighbouring pairs, each named by its left place:
# (0, 3) trades places 1-2 and 4-5.
CHANGES = [
    tuple(place for place in range(BELLS - 1) if mask >> place & 1)
    for mask in range(1, 2 ** (BELLS - 1))
    if not mask & mask >> 1
]


def changed(row: str, change: tuple[int, ...]) -> str:
    """The row after the bells of each pair have traded places."""
    bells = list(row)
    for left in change:
        bells[left], bells[left + 1] = bells[left + 1], bells[left]
    return "".join(bells)


class ChangeRingingEnv:
    max_turns = 32

    def reset(self, seed: int) -> tuple[str, dict]:
        rng = random.Random(seed)
        digits = "".join(str(bell + 1) for bell in range(BELLS))
        while True:
            self.method = rng.sample(CHANGES, rng.randint(3, 5))
            self.row = "".join(rng.sample(digits, BELLS))
            self.time = 0
            coming = self._next_rows(15)
            if len(set(coming)) == len(coming):  # rows that soon come back could be learnt by heart
                break
        self.run = 0
        self.best_run = 0
        self.clashes = 0
        self.paid = 0.0
        self.over = False
        return (
            f"Six bells ring in a tower, row after row. The band last rang {self.row}. From row to "
            "row some neighbouring bells trade places, by a method that nobody will tell you but "
            "that comes round again and again.\n"
            f"Goal: call {RUN} rows in a row without a mistake and without listening in between. "
            f"The method goes on where it is; a right call becomes the band's row. {CLASHES} "
            "clashes and you are sent home.\n"
            f"{self._status()}"
        ), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        if self.over:
            return "The bells are down for tonight.", 0.0, True, False, {}
        verb, *rest = action.lower().split() or [""]
        called = "".join(rest)
        reward = 0.0
        if verb == "listen" and not rest:
            self.run = 0
            self._advance()
            text = f"The band rings {self.row}."
        elif verb == "ring" and len(called) == BELLS and set(called) == set(self.row):
            text, reward = self._call(called)
        elif verb == "ring":
            text = f"A row names each of the bells 1 to {BELLS} once."
        else:
            text = "The ringers look at you and wait."
        return f"{text}\n{self._status()}", reward, self.over, False, {}

    def _call(self, called: str) -> tuple[str, float]:
        if called != self._next_rows(1)[0]:
            self.run = 0
            self.clashes += 1
            self.over = self.clashes == CLASHES
            return "Clash! The band stops short and sets up again at the row before.", 0.0
        self._advance()
        self.run += 1
        if self.run <= self.best_run:  # a run is paid once, however often it is rung
            return "True. You have been this far before.", 0.0
        self.best_run = self.run
        self.over = self.run == RUN
        reward = 1.0 - self.paid if self.over else 0.1
        self.paid += reward
        return "True. The band follows your call.", reward

    def _next_rows(self, count: int) -> list[str]:
        rows = [self.row]
        for ahead in range(count):
            rows.append(changed(rows[-1], self.method[(self.time + ahead) % len(self.method)]))
        return rows[1:]

    def _advance(self) -> None:
        self.row = self._next_rows(1)[0]
        self.time += 1

    def _status(self) -> str:
        return (
            f"Last row: {' '.join(self.row)}. Right calls in a row: {self.run} of {RUN}. "
            f"Clashes: {self.clashes} of {CLASHES}. {COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        words = {3: "three", 4: "four", 5: "five"}
        if level == 1:
            return "Follow the places in the row, not the bells."
        if level == 2:
            return (
                "For each pair of neighbouring rows note which places traded, whatever bells "
                f"stood there. That list of trades starts again after {words[len(self.method)]} "
                "rows; find where in it you stand."
            )
        changes = "; ".join(
            " ".join(f"{left + 1}-{left + 2}" for left in change) for change in self.method
        )
        return f"From the very first row on these places trade in turn, over and over: {changes}."

    def solution(self) -> list[str]:
        heard = 2 * len(self.method)
        return ["listen"] * heard + [f"ring {row}" for row in self._next_rows(heard + RUN)[heard:]]
