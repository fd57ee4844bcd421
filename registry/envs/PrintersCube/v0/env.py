"""Print two glyphs with a wooden cube that prints the face you cannot see.

A cube with six glyphs lies on a bench of four by four cells, columns A to D from west to east and
rows 1 to 4 from south to north. It covers one cell. `roll` tips it over an edge into the
neighbouring cell; two cells are taken by ink pots, and it cannot leave the bench. Only the glyph on
top is seen. `stamp` prints the glyph at the bottom onto the cell below.

The job is one glyph on one cell, then another glyph on another. Where the glyphs sit on the cube is
learnt by rolling and watching the top; what lies at the bottom must be reasoned out. The first
right print pays 0.4, the second wins. A wrong print, the wrong glyph or the wrong cell, spoils the
sheet and ends the job.
"""

import random
from collections import deque

GLYPHS = ("sun", "moon", "star", "fish", "leaf", "key", "crown", "bell", "ship", "hand")
SIZE = 4
WAYS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
SHORTEST = 4  # rolls between the prints, on the shortest way
FIRST_PAY = 0.4
COMMANDS = (
    "Commands: `roll <direction>` tips the cube one cell north, east, south or west; "
    "`stamp` prints the bottom glyph on the cell below the cube."
)


def name(cell: tuple[int, int]) -> str:
    """A cell as the printer calls it, such as B3."""
    return "ABCD"[cell[0]] + str(cell[1] + 1)


def roll(cube: tuple, way: str) -> tuple:
    """The glyphs (top, bottom, north, south, east, west) after a roll over one edge."""
    top, bottom, north, south, east, west = cube
    return {
        "north": (south, north, top, bottom, east, west),
        "south": (north, south, bottom, top, east, west),
        "east": (west, east, north, south, top, bottom),
        "west": (east, west, north, south, bottom, top),
    }[way]


class PrintersCubeEnv:
    max_turns = 50

    def reset(self, seed: int) -> tuple[str, dict]:
        self.rng = random.Random(seed)
        cells = [(column, row) for column in range(SIZE) for row in range(SIZE)]
        while True:
            self.cube = tuple(self.rng.sample(GLYPHS, 6))
            self.cell, *self.pots = self.rng.sample(cells, 3)
            free = [cell for cell in cells if cell not in self.pots]
            glyphs = self.rng.sample(self.cube, 2)
            self.jobs = list(zip(glyphs, self.rng.sample(free, 2), strict=True))
            self.plan = self._plan()
            if all(len(rolls) >= SHORTEST for rolls in self.plan):
                break
        self.done = 0
        self.turn = 0
        story = (
            "You print with a wooden cube on a bench of four by four cells: columns A to D from "
            "west to east, rows 1 to 4 from south to north. The cube bears the six glyphs "
            + ", ".join(sorted(self.cube))
            + "; you see only its top, and it prints its bottom. Rolling tips it over an edge into the "
            f"next cell. Ink pots stand on {name(self.pots[0])} and {name(self.pots[1])}. Goal: "
            "print the two glyphs of the job in order, each on its cell. One wrong print spoils "
            "the sheet."
        )
        return self._view(story), {}

    def _roll_to(self, cell: tuple[int, int], way: str) -> tuple[int, int] | None:
        """The cell that a roll leads to, or None if it is barred."""
        column, row = cell[0] + WAYS[way][0], cell[1] + WAYS[way][1]
        inside = 0 <= column < SIZE and 0 <= row < SIZE
        return (column, row) if inside and (column, row) not in self.pots else None

    def _plan(self) -> list[list[str]]:
        """The shortest rolls to each print of the job."""
        cell, cube = self.cell, self.cube
        plan = []
        for job in self.jobs:
            rolls = self._shortest_rolls(cell, cube, job)
            for way in rolls:
                cell, cube = self._roll_to(cell, way), roll(cube, way)
            plan.append(rolls)
        return plan

    def _shortest_rolls(self, cell: tuple[int, int], cube: tuple, job: tuple) -> list[str]:
        """The rolls that bring a glyph down on a cell, breadth first; none if ink pots bar the way."""
        rolls = {(cell, cube): []}
        queue = deque(rolls)
        while queue:
            cell, cube = queue.popleft()
            if (cube[1], cell) == job:
                return rolls[cell, cube]
            for way in WAYS:
                following = (self._roll_to(cell, way), roll(cube, way))
                if following[0] is not None and following not in rolls:
                    rolls[following] = [*rolls[cell, cube], way]
                    queue.append(following)
        return []

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        self.turn += 1
        words = action.lower().split()[:3]
        if words == ["stamp"]:
            return self._stamp()
        if len(words) != 2 or words[0] != "roll" or words[1] not in WAYS:
            note = "The press room knows only `roll` with a direction, and `stamp`."
            return self._result(note)
        cell = self._roll_to(self.cell, words[1])
        if cell is None:
            return self._result("The cube cannot go there.")
        self.cell, self.cube = cell, roll(self.cube, words[1])
        return self._result("The cube tips over.")

    def _stamp(self):
        if (self.cube[1], self.cell) != self.jobs[self.done]:
            note = f"The cube prints {self.cube[1]} on {name(self.cell)}: the sheet is spoilt."
            return self._result(note, over=True)
        self.done += 1
        if self.done == len(self.jobs):
            return self._result("A clean print: the job is done.", 1.0 - FIRST_PAY, over=True)
        return self._result("A clean print.", FIRST_PAY)

    def _result(self, note: str, reward: float = 0.0, over: bool = False):
        """What a step returns: the note, and unless the episode is over the state below it."""
        return note if over else self._view(note), reward, over, False, {}

    def _view(self, note: str) -> str:
        glyph, cell = self.jobs[self.done]
        return (
            f"{note}\nPrint {self.done + 1} of 2: {glyph} on {name(cell)}. The cube is on "
            f"{name(self.cell)}, on top: {self.cube[0]}. Turn {self.turn} of "
            f"{self.max_turns}.\n{COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "Two rolls the same way turn the cube upside down: the bottom comes on top."
        top, bottom, north, south, east, west = self.cube
        if level == 2:
            return (
                f"On this cube {top} is opposite {bottom}, {north} opposite {south}, {east} "
                f"opposite {west}: the top always tells the bottom. Rolling along a row keeps two "
                "side faces where they are; go round a small square of cells to bring another pair "
                "upright."
            )
        return (
            f"At the start the cube shows {north} to the north, {south} to the south, {east} to "
            f"the east, {west} to the west, with {bottom} at the bottom. The first print can be "
            f"reached in {len(self.plan[0])} rolls."
        )

    def solution(self) -> list[str]:
        actions = []
        for rolls in self.plan:
            actions += [f"roll {way}" for way in rolls]
            actions.append("stamp")
        return actions
