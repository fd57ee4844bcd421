"""Survey a mine without a compass, and drill straight from one chamber to another.

Six chambers are joined by winding tunnels. You start in one of them, facing north. In a chamber you
see which tunnels lead off, ahead, left, right or back, as you stand. `go` walks a tunnel, and the
walk is told as you feel it: so many paces, a turn to the left or right, so many paces again. All
turns are square, nothing rises or falls (tunnels pass above and below one another), and nobody
tells where north is after the start.

The drill stands in one chamber and must reach another, whose place against the first has to be
worked out from the walks between them. `drill`, only possible beside the drill, takes the way along
the compass. It drills once: a true hole wins, a false one ends the survey, and pays 0.2 if it is
right in one of the two directions.
"""

import random
import re
from itertools import pairwise

NAMES = ("copper", "quartz", "bat", "lamp", "well", "pony", "echo", "salt", "ladder", "chapel")
NORTH, EAST, SOUTH, WEST = range(4)
STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # (east, north) of one pace in each compass direction
EXITS = ("ahead", "right", "back", "left")  # the compass as seen by one who faces north
PART_PAY = 0.2
COMMANDS = (
    "Commands: `go <exit>` walks the tunnel that lies ahead, left, right or back of you; "
    "`drill <paces> <north|south> <paces> <east|west>` drills that far from the drill, once."
)


class MineSurveyEnv:
    max_turns = 30

    def reset(self, seed: int) -> tuple[str, dict]:
        self.rng = random.Random(seed)
        self.names = self.rng.sample(NAMES, 6)
        self.start, _, self.drill, _, self.goal, _ = self.names
        while True:
            self._dig()
            east, north = self._offset()
            if east and north:
                break
        self.here, self.facing = self.start, NORTH
        self.turn = 0
        story = (
            "You survey an old mine of six chambers. Winding tunnels join them; all turns are "
            "square and everything is level, tunnels crossing above or below one another. You have "
            "no compass, but you know that you start facing north. The drill stands in the "
            f"{self.drill} chamber. Goal: drill from there straight to the {self.goal} chamber. "
            "Work out from your walks how many paces north or south and east or west it lies. You "
            "drill once."
        )
        return self._view(story), {}

    def _dig(self) -> None:
        """Dig start - a - drill and start - b - goal, and a blind chamber somewhere on the way."""
        start, first, drill, second, goal, blind = self.names
        self.place = {start: (0, 0)}
        # For each chamber: compass direction -> (chamber at the other end, walk there).
        self.tunnels = {chamber: {} for chamber in self.names}
        self._tunnel(start, first)
        self._tunnel(first, drill)
        self._tunnel(start, second)
        self._tunnel(second, goal)
        self._tunnel(self.rng.choice((start, first, second)), blind)

    def _tunnel(self, near: str, far: str) -> None:
        """Join a new chamber to an old one by a walk [(heading, paces), ...] of two or three legs."""
        while True:
            heading = self.rng.choice([way for way in range(4) if way not in self.tunnels[near]])
            walk, (east, north) = [], self.place[near]
            for _ in range(self.rng.choice((2, 3))):
                paces = self.rng.randint(2, 9)
                walk.append((heading, paces))
                east += paces * STEPS[heading][0]
                north += paces * STEPS[heading][1]
                heading = (heading + self.rng.choice((1, 3))) % 4
            if (east, north) not in self.place.values():
                break
        self.place[far] = (east, north)
        back = [((way + 2) % 4, paces) for way, paces in reversed(walk)]
        self.tunnels[near][walk[0][0]] = (far, walk)
        self.tunnels[far][back[0][0]] = (near, back)

    def _offset(self) -> tuple[int, int]:
        """Paces (east, north) from the drill to the chamber it must reach."""
        here, there = self.place[self.drill], self.place[self.goal]
        return there[0] - here[0], there[1] - here[1]

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        self.turn += 1
        words = action.lower().split()[:6]
        note = "Down here only walking and drilling help."
        if len(words) == 2 and words[0] == "go" and words[1] in EXITS:
            note = self._walk((self.facing + EXITS.index(words[1])) % 4)
        elif words and words[0] == "drill":
            hole = self._read_hole(words[1:])
            if hole is None:
                note = "A hole is so many paces north or south, then so many paces east or west."
            elif self.here != self.drill:
                note = f"The drill stands in the {self.drill} chamber, and you do not."
            else:
                return self._bore(hole)
        return self._result(note)

    def _walk(self, way: int) -> str:
        if way not in self.tunnels[self.here]:
            return "There is only rock on that side."
        self.here, walk = self.tunnels[self.here][way]
        told = [f"{walk[0][1]} paces"]
        for (before, _), (after, paces) in pairwise(walk):
            told.append(f"turn {'right' if (after - before) % 4 == 1 else 'left'}, {paces} paces")
        self.facing = walk[-1][0]
        return f"You walk {', '.join(told)}, straight into the {self.here} chamber."

    def _read_hole(self, words: list[str]) -> tuple[int, int] | None:
        """The (east, north) paces of a drill command, or None when it is not well formed."""
        hole = re.fullmatch("([0-9]{1,3}) (north|south) ([0-9]{1,3}) (east|west)", " ".join(words))
        if hole is None:
            return None
        north, east = int(hole[1]), int(hole[3])
        return (east if hole[4] == "east" else -east, north if hole[2] == "north" else -north)

    def _bore(self, hole: tuple[int, int]):
        right = sum(bored == true for bored, true in zip(hole, self._offset(), strict=True))
        if right == 2:
            return self._result("The drill breaks through where it should.", 1.0, over=True)
        pay = PART_PAY if right else 0.0
        return self._result("The drill grinds on through solid rock and misses.", pay, over=True)

    def _result(self, note: str, reward: float = 0.0, over: bool = False):
        """What a step returns: the note, and unless the episode is over the state below it."""
        return note if over else self._view(note), reward, over, False, {}

    def _view(self, note: str) -> str:
        seen = [EXITS[(way - self.facing) % 4] for way in self.tunnels[self.here]]
        return (
            f"{note}\nYou are in the {self.here} chamber. Tunnels as you stand: "
            f"{', '.join(sorted(seen))}. Drill: {self.drill} chamber; aim: {self.goal} chamber. "
            f"Turn {self.turn} of {self.max_turns}.\n{COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return (
                "After each leg note your heading and how far east and north of the start you are."
            )
        east, north = self._offset()
        side = f"{'north' if north > 0 else 'south'}-{'east' if east > 0 else 'west'}"
        _, first, _, second, _, blind = self.names
        if level == 2:
            return (
                f"The {self.goal} chamber lies to the {side} of the {self.drill} chamber. The way "
                f"between them runs through the {second}, {self.start} and {first} chambers; leave "
                f"the {blind} chamber aside. Turn every leg into a compass heading at once, and "
                "add up the paces."
            )
        return f"It lies to the {side}, {abs(north)} paces along the one axis; add up the other."

    def solution(self) -> list[str]:
        actions, here, facing = [], self.start, NORTH
        _, first, drill, second, goal, _ = self.names
        for chamber in (second, goal, second, self.start, first, drill):
            walk = next(walk for end, walk in self.tunnels[here].values() if end == chamber)
            actions.append(f"go {EXITS[(walk[0][0] - facing) % 4]}")
            here, facing = chamber, walk[-1][0]
        east, north = self._offset()
        vertical = f"{abs(north)} {'north' if north > 0 else 'south'}"
        return [*actions, f"drill {vertical} {abs(east)} {'east' if east > 0 else 'west'}"]
