"""The signal lamp. Two keepers answer within one turn, or the code is void: several calls go out together.

A lamp that is lit burns for one turn only, so both must be lit by the same turn's calls.
"""

import json
import random
from typing import Literal

from synthgym.contract import ToolEnv, ToolError

COLOURS = ("amber", "green", "red", "white")


class SignalLampEnv(ToolEnv):
    max_turns = 8

    def setup(self, seed):
        rng = random.Random(seed)
        self.codes = {}
        for number in rng.sample(range(100, 1000), 5):
            self.codes[number] = [rng.choice(COLOURS), rng.choice(COLOURS)]
        self.ships = dict(zip(("Dagny", "Frithjof", "Ilse"), list(self.codes)[:3], strict=True))
        self.ship = rng.choice(sorted(self.ships))
        self.lamps = {}
        self.seen = []
        self.wrong = 0
        self.instruct(
            f"The {self.ship} waits for her code: east lamp and west lamp, in one and the same turn.",
            lambda: self.seen[-1:] == [self.codes[self.ships[self.ship]]],
        )
        self.instruct("And what is the number of that code?", answer=self.ships[self.ship])
        return "A headland with two lamps, east and west, and three ships in the offing."

    def step(self, action):
        self.lamps = {}  # a lamp burns for one turn
        return super().step(action)

    def tool_code_of(self, ship: str) -> str:
        """Look up under which number a ship has her code."""
        if ship not in self.ships:
            raise ToolError(f"the ships are {', '.join(self.ships)}")
        return f"Code {self.ships[ship]}."

    def tool_code(self, number: int) -> dict:
        """Look up the colours of a code."""
        if number not in self.codes:
            raise ToolError("the book has no such code")
        east, west = self.codes[number]
        return {"east": east, "west": west}

    def tool_light(
        self, side: Literal["east", "west"], colour: Literal["amber", "green", "red", "white"]
    ) -> str:
        """Light a lamp. Once both burn they are a code; the third wrong code ends the watch."""
        if self.wrong == 3:
            raise ToolError("the watch is over")
        self.lamps[side] = colour
        if len(self.lamps) < 2:
            return f"The {side} lamp burns {colour}."
        code = [self.lamps["east"], self.lamps["west"]]
        self.wrong += code != self.codes[self.ships[self.ship]]
        self.seen.append(code)
        return "Both lamps burn."

    def hint(self, level=2):
        return "A ship has a number and the number has the colours; then light both in one turn."

    def solution(self):
        number = self.ships[self.ship]
        east, west = self.codes[number]
        calls = [
            {"name": "light", "arguments": {"side": side, "colour": colour}}
            for side, colour in (("east", east), ("west", west))
        ]
        return [
            self.call("code_of", ship=self.ship),
            self.call("code", number=number),
            json.dumps({"calls": calls}, sort_keys=True, separators=(",", ":")),
            self.answer(number),
        ]
