"""The tape archive. Copy a recording to a fresh reel, wipe the old one, and tell how much room is left.

A reel that is wiped and thrown away stands in no list any more, and the wishes can live with that.
"""

import random

from synthgym.contract import ToolEnv, ToolError

PIECES = ("a blackbird", "a ferry horn", "a fog bell", "a loom", "a street organ", "a waterfall")


class TapeArchiveEnv(ToolEnv):
    max_turns = 12

    def setup(self, seed):
        rng = random.Random(seed)
        numbers = rng.sample(range(10, 100), 6)
        self.reels = {}
        for number, piece in zip(numbers, [*rng.sample(PIECES, 4), None, None], strict=True):
            length = rng.randint(200, 700)
            self.reels[number] = {"piece": piece, "seconds": rng.randint(60, 190), "room": length}
        for number in numbers[4:]:
            self.reels[number]["seconds"] = 0
        self.old = rng.choice(numbers[:4])
        self.piece = self.reels[self.old]["piece"]
        self.seconds = self.reels[self.old]["seconds"]
        self.target = max(numbers[4:], key=lambda number: self.reels[number]["room"])
        self.instruct(
            f"The reel with {self.piece} crumbles. Copy it to the longer one of the empty reels.",
            lambda: self.reels[self.target]["piece"] == self.piece,
        )
        self.instruct("Throw the old one away.", lambda: self.old not in self.reels)
        self.instruct(
            "How many seconds of the new reel are still free?",
            answer=self.reels[self.target]["room"] - self.seconds,
        )
        return f"An archive of reels, numbered {', '.join(map(str, sorted(numbers)))}."

    def reel(self, number):
        if number not in self.reels:
            raise ToolError(f"there is no reel {number}")
        return self.reels[number]

    def tool_label(self, reel: int) -> dict:
        """Read the label of a reel: its piece and how long that is. What room it has is not on it."""
        found = self.reel(reel)
        return {"piece": found["piece"], "seconds": found["seconds"]}

    def tool_measure(self, reel: int) -> int:
        """Measure how many seconds there is room for on a reel, with what is on it."""
        return self.reel(reel)["room"]

    def tool_copy(self, source: int, target: int) -> str:
        """Copy what is on a reel to an empty one."""
        piece = self.reel(source)["piece"]
        if self.reel(target)["piece"] or not piece:
            raise ToolError("copying goes from a piece to an empty reel")
        self.reels[target] |= {"piece": piece, "seconds": self.reels[source]["seconds"]}
        return "Copied."

    def tool_throw_away(self, reel: int) -> str:
        """Throw a reel away, if its piece is on another one as well."""
        pieces = [other["piece"] for other in self.reels.values()]
        if pieces.count(self.reel(reel)["piece"]) < 2 or not self.reel(reel)["piece"]:
            raise ToolError("it is the only one with that piece, or empty")
        if reel == self.target:
            raise ToolError("a fresh reel is too good for that")
        del self.reels[reel]
        return "Gone."

    def hint(self, level=2):
        return "Labels tell the pieces, and only measuring tells the room; take the one from the other."

    def solution(self):
        return [
            self.call("label", reel=self.old),
            self.call("measure", reel=self.target),
            self.call("copy", source=self.old, target=self.target),
            self.call("throw_away", reel=self.old),
            self.answer(self.reels[self.target]["room"] - self.seconds),
        ]
