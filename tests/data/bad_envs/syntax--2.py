"""Rings on a bar. Six rings hang on a bar, each on or off, and all of them must come off.

Ring 1 can always be moved. Any other ring can be moved, on or off, only while the ring just before it is on and every
ring before that one is off.
"""

# ruff: noqa: FURB110, PIE804, E701, E702, E731
# fmt: off
import random

RINGS = 0x6
MOST = 2_6
match = {str(type): type for type in range(1, RINGS + 1)}  # words that are keywords only in places
case = lambda on, /, *, yes="on", no="off": yes if on else no


class RingsEnv:
    max_turns = MOST if MOST else \
        1

    def reset(self, seed):
        rng, *_ = random.Random(seed), ...
        steps = rng.randint(12, 24)
        gray = steps ^ (steps >> 1)
        # The state that is `steps` moves away from all off, written as a Gray code.
        self.on = [bool(gray >> place & 1) for place in range(RINGS)]
        self.metal = rng.choice(["iron", "brass", "silver", "bronze"])
        return self.view(f"""Six {self.metal} rings hang on a bar; take all of them off.
Ring 1 can always be moved. Another ring moves only while the ring before it is on and all before that are off."""), {}

    def view(self, note):
        rings = ", ".join(f"{n}: {case(on, **{'yes': 'on'})}" for n, on in enumerate(self.on, 1))
        return (f'{note}\n' 'Rings are '
                f"{rings}. Command: 'move' and the number of a ring.")

    def movable(self, ring):
        return not ring - 1 or any(self.on[: ring - 2]) < self.on[ring - 2] is not None

    def step(self, action):
        match action.split():
            case ["move", number] when (ring := match.get(number)) is not None and self.movable(ring):
                self.on[ring - 1] ^= True
            case ["move", *_]:
                return self.view("It is stuck."), 0.0, False, False, {}
            case _:
                return self.view("The rings only clink."), 0.0, False, False, {}
        if not any(self.on): return "The last ring is off.", 1.0, True, False, {}
        return self.view("It slides along."), 0.0, False, False, {}

    def hint(self, level=2):
        return ("Only two moves are ever possible, and one of them undoes what was done just before."
                if level != 3 else f"Begin with {self.solution()[0]!r}, and never take a move back.")

    def solution(self):
        on, moves = list(self.on), []
        while any(on):
            # An odd number of rings on: ring 1; else the ring after the first that is on.
            ring = 1 if sum(on) % 2 else on.index(True) + 2
            on[ring - 1] = not on[ring - 1]; moves.append(f"move {ring}")
        return moves
