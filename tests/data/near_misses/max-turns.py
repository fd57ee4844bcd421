"""Maze. Walk from the north-west corner of a maze to the south-east one; the plan of it is on the wall.

In the plan # is a wall, @ is you, X is the way out.
"""

import random

SIDE = 5
COMPASS = {"north": (0, -1), "south": (0, 1), "west": (-1, 0), "east": (1, 0)}


class MazeEnv:
    max_turns = len(COMPASS) * SIDE + SIDE - 1  # a number, though nobody wrote it as one

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.dig(rng)
            self.route = self.search()
            if 10 <= len(self.route) <= self.max_turns - 2:
                break
        self.at = (0, 0)
        return self.view("Find the way out of the maze."), {}

    def dig(self, rng):
        """A maze without circles: open a wall to each cell from a neighbour that was reached before."""
        self.open = set()
        reached, stack = {(0, 0)}, [(0, 0)]
        while stack:
            x, y = stack[-1]
            fresh = [
                (x + dx, y + dy)
                for dx, dy in COMPASS.values()
                if 0 <= x + dx < SIDE and 0 <= y + dy < SIDE and (x + dx, y + dy) not in reached
            ]
            if not fresh:
                stack.pop()
                continue
            cell = rng.choice(fresh)
            self.open |= {((x, y), cell), (cell, (x, y))}
            reached.add(cell)
            stack.append(cell)

    def search(self):
        """The only way from here to there without going back."""
        ways = [((0, 0), [])]
        for (x, y), way in ways:
            if (x, y) == (SIDE - 1, SIDE - 1):
                return way
            for name, (dx, dy) in COMPASS.items():
                cell = (x + dx, y + dy)
                if ((x, y), cell) in self.open and not (way and self.back(name) == way[-1]):
                    ways.append((cell, [*way, name]))
        return []

    def back(self, name):
        return {"north": "south", "south": "north", "west": "east", "east": "west"}[name]

    def view(self, note):
        rows = []
        for y in range(SIDE):
            marks = {self.at: "@", (SIDE - 1, SIDE - 1): "X"}
            line = floor = "#"
            for x in range(SIDE):
                line += marks.get((x, y), " ") + " #"[((x, y), (x + 1, y)) not in self.open]
                floor += " #"[((x, y), (x, y + 1)) not in self.open] + "#"
            rows += [line, floor]
        plan = "\n".join(["#" * (2 * SIDE + 1), *rows])
        return f"{note}\n{plan}\nCommands: west, south, east, north."

    def step(self, action):
        if action not in COMPASS:
            return self.view("You stand and think."), 0.0, False, False, {}
        cell = (self.at[0] + COMPASS[action][0], self.at[1] + COMPASS[action][1])
        if (self.at, cell) not in self.open:
            return self.view("A wall."), 0.0, False, False, {}
        self.at = cell
        if cell == (SIDE - 1, SIDE - 1):
            return "You are out.", 1.0, True, False, {}
        return self.view("You walk on."), 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            return f"The way has {len(self.route)} steps and begins to the {self.route[0]}."
        return "Trace it on the plan from the way out backwards: there dead ends show at once."

    def solution(self):
        return list(self.route)
