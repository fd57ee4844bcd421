"""The weather hut. Read the instruments of one morning, and write the line of the day into the log.

The log has no line for today until one is written. The wishes look into it all the same, with care.
"""

import random
from typing import Literal

from synthgym.contract import ToolEnv, ToolError

CLOUDS = ("clear", "broken", "overcast", "fog")


class WeatherHutEnv(ToolEnv):
    max_turns = 12

    def setup(self, seed):
        rng = random.Random(seed)
        self.day = rng.randint(40, 330)
        self.dry = rng.randint(8, 26)
        self.wet = self.dry - rng.randint(1, 7)
        self.log = {
            day: {"dry": rng.randint(5, 28), "spread": rng.randint(1, 9)}
            for day in range(self.day - 6, self.day)
        }
        self.driest = max(self.log.values(), key=lambda line: line["spread"])["spread"]
        self.signed = None
        self.instruct(
            "Write today's line: the dry bulb, and by how much the wet one is lower.",
            lambda: self.line("dry") == self.dry and self.line("spread") == self.dry - self.wet,
        )
        self.instruct(
            "What is the largest spread of the six days before today?", answer=self.driest
        )
        self.instruct(
            "Sign it.", lambda: self.signed is not None and self.signed["day"] == self.day
        )
        return f"A weather hut on a hill, on day {self.day} of the year."

    def line(self, key):
        return self.log.get(self.day, {}).get(key)

    def tool_thermometer(self, bulb: Literal["dry", "wet"]) -> int:
        """Read a thermometer."""
        return self.dry if bulb == "dry" else self.wet

    def tool_read_line(self, day: int) -> dict:
        """Read the line of a day in the log."""
        if day not in self.log:
            raise ToolError(f"day {day} has no line")
        return self.log[day]

    def tool_write_line(self, day: int, dry: int, spread: int) -> str:
        """Write the line of a day, over one that is there; those of other days are in ink."""
        if day != self.day:
            raise ToolError("only today's line may be written")
        self.log[day] = {"dry": dry, "spread": spread}
        return "Written, in pencil."

    def tool_sign(self, day: int) -> str:
        """Sign the line of a day."""
        if day not in self.log:
            raise ToolError(f"day {day} has no line")
        self.signed = {"day": day}
        return "Signed."

    def tool_window(self) -> str:
        """Look out of the window."""
        return CLOUDS[self.day % 4]

    def hint(self, level=2):
        return "Two thermometers make one line, and the line of each day has its own number."

    def solution(self):
        return [
            self.call("thermometer", bulb="dry"),
            self.call("thermometer", bulb="wet"),
            self.call("write_line", day=self.day, dry=self.dry, spread=self.dry - self.wet),
            *(self.call("read_line", day=day) for day in range(self.day - 6, self.day)),
            self.answer(self.driest),
            self.call("sign", day=self.day),
        ]
