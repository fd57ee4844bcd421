"""Clear a signal in a box whose levers hold one another.

Eight levers stand in the frame, each normal (N) or reversed (R). Under the floor, bars and notches
couple them: a lever can be thrown, either way, only while each of the levers it is notched to
stands in one certain position. The couplings are hidden. They never go round in a circle, and one
lever is free.

`throw` moves a lever to its other position. If it is held, nothing moves and the box tells one
lever that holds it: that lever stands in the wrong position, and so one coupling is known. The
express waits for one lever, the signal: the episode is won when it stands reversed. To free it,
some levers must be set, and to set those, others, possibly the other way than they are needed in
the end: reason backwards from the signal, and of two levers set the one that depends on the other
first.
"""

import random
from collections import deque

LEVERS = 8
SHORTEST, LONGEST = 10, 16  # throws on the shortest way to the goal
COMMANDS = "Commands: `throw <lever>` moves one lever, 1 to 8, to its other position."


def show(positions: dict[int, str]) -> str:
    """Levers and where they stand, as in `1:N 2:R`."""
    return " ".join(f"{lever}:{where}" for lever, where in positions.items())


class SignalBoxEnv:
    max_turns = 60

    def reset(self, seed: int) -> tuple[str, dict]:
        self.rng = random.Random(seed)
        while True:
            self._build_frame()
            self.route = self._shortest_route()
            if SHORTEST <= len(self.route) <= LONGEST:
                break
        self.turn = 0
        story = (
            "Fog on the line, and the drawings of this signal box are lost. Levers 1 to 8 stand "
            "normal (N) or reversed (R). Each can be thrown, either way, only while the levers it "
            "is coupled to stand in certain positions; the couplings are hidden, never go round in "
            "a circle, and leave one lever free. A held lever does not move, and you are told one "
            f"lever that stands wrong for it. Goal: bring lever {self.signal}, the signal for the "
            "express, to reversed."
        )
        return self._view(story), {}

    def _build_frame(self) -> None:
        """Couple every lever to the next one in a hidden order, and to later ones."""
        # The signal comes first, the free lever last.
        self.chain = self.rng.sample(range(1, LEVERS + 1), LEVERS)
        self.signal = self.chain[0]
        self.position = {lever: self.rng.choice("NR") for lever in sorted(self.chain)}
        self.position[self.signal] = "N"
        self.couplings = {self.chain[-1]: {}}
        for place, lever in enumerate(self.chain[:-1]):
            later = self.chain[place + 1 :]
            partners = {later[0], self.rng.choice(later), self.rng.choice(later)}
            self.couplings[lever] = {partner: self.rng.choice("NR") for partner in sorted(partners)}

    def _holder(self, lever: int, position: dict[int, str]) -> int | None:
        """The first lever that stands wrong for this one, or None when it can be thrown."""
        for partner, needed in self.couplings[lever].items():
            if position[partner] != needed:
                return partner
        return None

    def _shortest_route(self) -> list[int]:
        """The levers to throw, found breadth first from the position at the start."""
        start = tuple(self.position[lever] for lever in range(1, LEVERS + 1))
        came_from = {start: (None, None)}
        queue = deque([start])
        while queue:
            state = queue.popleft()
            if state[self.signal - 1] == "R":
                break
            position = dict(enumerate(state, 1))
            for lever in range(1, LEVERS + 1):
                if self._holder(lever, position) is None:
                    flipped = "N" if position[lever] == "R" else "R"
                    following = (*state[: lever - 1], flipped, *state[lever:])
                    if following not in came_from:
                        came_from[following] = (state, lever)
                        queue.append(following)
        route = []
        while came_from[state][0] is not None:
            state, lever = came_from[state]
            route.append(lever)
        return route[::-1]

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        self.turn += 1
        words = action.lower().split()[:3]
        if len(words) != 2 or words[0] != "throw" or words[1] not in tuple("12345678"):
            note = "The box answers only to `throw` and a lever number from 1 to 8."
            return self._result(note)
        lever = int(words[1])
        holder = self._holder(lever, self.position)
        if holder is not None:
            note = f"Lever {lever} does not move: lever {holder} stands wrong for it and holds it."
            return self._result(note)
        self.position[lever] = "N" if self.position[lever] == "R" else "R"
        if self.position[self.signal] == "R":
            return self._result("The signal is clear, the express passes.", 1.0, over=True)
        return self._result(f"Lever {lever} swings over with a clank.")

    def _result(self, note: str, reward: float = 0.0, over: bool = False):
        """What a step returns: the note, and unless the episode is over the state below it."""
        return note if over else self._view(note), reward, over, False, {}

    def _view(self, note: str) -> str:
        return (
            f"{note}\nFrame: {show(self.position)}. The signal is lever {self.signal}. "
            f"Turn {self.turn} of {self.max_turns}.\n{COMMANDS}"
        )

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "Try the signal, see what holds it, then try what holds that: reason backwards."
        ranks = ", ".join(str(lever) for lever in self.chain)
        if level == 2:
            return (
                f"Ranked from the signal to the free lever: {ranks}. A lever is held only by "
                "levers that come after it in this ranking, always by the next one among others. "
                "So when several must be set, set the earliest in the ranking first; what comes "
                "after can still be changed."
            )
        needs = "; ".join(
            f"{lever} needs {show(self.couplings[lever])}" for lever in self.chain[:-1]
        )
        return f"Ranked from the signal to the free lever: {ranks}. Couplings: {needs}."

    def solution(self) -> list[str]:
        return [f"throw {lever}" for lever in self.route]
