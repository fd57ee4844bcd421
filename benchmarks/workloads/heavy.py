"""Bring every parcel of a small depot to the loading ramp.

The depot is a grid of 8 by 8 squares with shelves in the way. You drive a cart one square a turn. Driving onto a parcel
loads it; driving onto the ramp with every parcel aboard wins. Each parcel pays a little and the ramp pays the rest, so
that a whole delivery is worth 1. There are 50 turns.
"""

import random
from collections import deque

DEPOT = 1

SIZE = 8
SHELVES = 10
PARCELS = 3
PARCEL_VALUE = 0.1

HEADINGS = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}
WORDS = {".": "free floor", "#": "a shelf", "p": "a parcel", "R": "the ramp"}


class DepotEnv:
    max_turns = 50

    def __init__(self):
        self.floor = []
        self.cart = (0, 0)
        self.turn = 0
        self.loaded = 0
        self.journal = []

    def reset(self, seed):
        rng = random.Random(seed)
        while True:
            self.lay_out(rng)
            if self.connected():
                break
        self.turn = 0
        self.loaded = 0
        self.journal = []
        return self.describe("Your shift begins."), {}

    def lay_out(self, rng):
        squares = [(row, column) for row in range(SIZE) for column in range(SIZE)]
        rng.shuffle(squares)
        self.floor = [["."] * SIZE for row in range(SIZE)]
        for row, column in squares[:SHELVES]:
            self.floor[row][column] = "#"
        for row, column in squares[SHELVES : SHELVES + PARCELS]:
            self.floor[row][column] = "p"
        row, column = squares[SHELVES + PARCELS]
        self.floor[row][column] = "R"
        self.cart = squares[SHELVES + PARCELS + 1]

    def square(self, row, column):
        if 0 <= row < SIZE and 0 <= column < SIZE:
            return self.floor[row][column]
        return "#"

    def connected(self):
        """Whether the cart can reach every square that is not a shelf."""
        seen = {self.cart}
        todo = [self.cart]
        while todo:
            row, column = todo.pop()
            for down, right in HEADINGS.values():
                nearby = (row + down, column + right)
                if nearby not in seen and self.square(row + down, column + right) != "#":
                    seen.add(nearby)
                    todo.append(nearby)
        return len(seen) == SIZE * SIZE - SHELVES

    def route(self, start, goals):
        """The shortest way from `start` to the nearest of `goals`: (headings, end)."""
        queue = deque([(start, [])])
        seen = {start}
        while queue:
            place, path = queue.popleft()
            if place in goals:
                return path, place
            for heading, (down, right) in HEADINGS.items():
                nearby = (place[0] + down, place[1] + right)
                if nearby not in seen and self.square(nearby[0], nearby[1]) != "#":
                    seen.add(nearby)
                    queue.append((nearby, [*path, heading]))
        return [], start

    def find(self, kind):
        return [
            (row, column)
            for row in range(SIZE)
            for column in range(SIZE)
            if self.floor[row][column] == kind
        ]

    def plan(self):
        """Headings that fetch the parcels, nearest first, and end on the ramp."""
        place, headings, parcels = self.cart, [], set(self.find("p"))
        while parcels:
            leg, place = self.route(place, parcels)
            headings += leg
            parcels.discard(place)
        leg, place = self.route(place, set(self.find("R")))
        return headings + leg

    def describe(self, news):
        here_row, here_column = self.cart
        lines = [f"Depot {DEPOT}, turn {self.turn} of {self.max_turns}. {news}", ""]
        lines.append("Floor plan (rows run from north to south, columns from west to east):")
        lines.append("     " + " ".join(str(column) for column in range(SIZE)))
        for row in range(SIZE):
            cells = list(self.floor[row])
            if row == here_row:
                cells[here_column] = "C"
            lines.append(f"  {row}  " + " ".join(cells))
        lines.append("")
        lines.append("C is your cart, # a shelf, p a parcel, R the ramp, . free floor.")
        lines.append(f"The cart stands at row {here_row}, column {here_column}.")
        for heading, (down, right) in HEADINGS.items():
            row, column = here_row + down, here_column + right
            if 0 <= row < SIZE and 0 <= column < SIZE:
                lines.append(f"  {heading}: {WORDS[self.floor[row][column]]}")
            else:
                lines.append(f"  {heading}: the outer wall")
        waiting = [
            f"row {row}, column {column} ({abs(row - here_row) + abs(column - here_column)} away)"
            for row, column in self.find("p")
        ]
        lines.append(f"Parcels aboard: {self.loaded} of {PARCELS}.")
        lines.append("Parcels on the floor: " + ("; ".join(waiting) if waiting else "none") + ".")
        lines.append("What happened lately:")
        lines.extend(f"  - {entry}" for entry in self.journal[-8:])
        lines.append(
            "Answer with one word: north, south, west, east or wait. The first such word in your "
            "answer counts. Driving into a shelf or the outer wall costs a turn and moves nothing. "
            "Driving onto a parcel loads it. Fetch all parcels, then drive onto the ramp; with "
            "parcels still on the floor the ramp does nothing. An answer without any of these words "
            "costs a turn as well. Each parcel pays a tenth of a point when it is loaded, delivering all "
            "of them pays the rest of the point. The shift ends when you have delivered or run out of turns."
        )
        return "\n".join(lines)

    def command(self, action):
        for word in action.lower().split():
            word = word.strip(".,;:!?\"'()[]")
            if word in HEADINGS or word == "wait":
                return word
        return ""

    def drive(self, heading):
        """Moves the cart; (news, reward, delivered)."""
        down, right = HEADINGS[heading]
        row, column = self.cart[0] + down, self.cart[1] + right
        target = self.square(row, column)
        if target == "#":
            return f"The way {heading} is blocked.", 0.0, False
        self.cart = (row, column)
        if target == "p":
            self.loaded += 1
            self.floor[row][column] = "."
            return f"You drive {heading} and load a parcel.", PARCEL_VALUE, False
        if target == "R" and self.loaded == PARCELS:
            rest = 1.0 - PARCELS * PARCEL_VALUE
            return f"You drive {heading} onto the ramp and deliver everything.", rest, True
        return f"You drive {heading}.", 0.0, False

    def step(self, action):
        self.turn += 1
        command = self.command(action)
        reward, delivered = 0.0, False
        if command == "wait":
            news = "You wait."
        elif command:
            news, reward, delivered = self.drive(command)
        else:
            news = "Nobody understands that order."
        self.journal.append(f"turn {self.turn}: {news}")
        out_of_turns = not delivered and self.turn >= self.max_turns
        return self.describe(news), reward, delivered, out_of_turns, {}

    def hint(self, level=2):
        if level == 1:
            return "Plan a round trip: the parcels first, the ramp last."
        headings = self.plan()
        if level == 2:
            return f"Fetch the nearest parcel first; a good round takes {len(headings)} turns."
        return "A good round starts like this: " + ", ".join(headings[:3]) + "."

    def solution(self):
        return self.plan()
