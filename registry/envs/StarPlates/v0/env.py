"""Take photographic plates of stars in one night, for an astronomer who asks for one thing after the other.

The night has twelve hours. A star can be seen from the hour in which it rises to the one in which it
sets; the dome opens only under a clear sky, and shuts by itself when rain comes. Each filter has a
card: its position in the wheel, and how many seconds a star of magnitude 4 needs behind it. The larger
the magnitude, the fainter the star: each step needs twice the time. An exposure takes up an hour of
the night, whether the plate is any good or not, and so does waiting. Nothing tells everything, but
what cannot be done yet is refused with a reason and costs no time.
"""

import random
from typing import Literal

from synthgym.contract import ToolEnv, ToolError

CONSTELLATIONS = ("Anvil", "Heron", "Kettle", "Ladder", "Lantern", "Oar", "Spindle", "Thimble")
LETTERS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
COLOURS = ("blue", "clear", "green", "red")
NIGHT = 12  # hours
UP = 4  # hours for which a star can be seen
LEGENDS = (
    "It is said to boil over when a king lies.",
    "A shepherd lost it, and the sky kept it.",
    "Sailors will not name it before breakfast.",
    "It was drawn by a bored clerk, and nobody objected.",
)


class StarPlatesEnv(ToolEnv):
    max_turns = 24

    def setup(self, seed: int) -> str:
        rng = random.Random(seed)
        self.constellations = rng.sample(CONSTELLATIONS, 3)
        self.stars = {}
        for name in self.constellations:
            letters = sorted(rng.sample(LETTERS, 3), key=LETTERS.index)
            magnitudes = rng.sample(range(4, 9), 3)
            for letter, magnitude in zip(letters, magnitudes, strict=True):
                self._place(f"{letter} {name}", magnitude, rng.randint(0, NIGHT - UP))
        positions = rng.sample(range(1, 7), len(COLOURS))
        seconds = rng.sample(range(2, 16), len(COLOURS))
        self.cards = {
            colour: {"position": positions[i], "seconds at magnitude 4": seconds[i]}
            for i, colour in enumerate(COLOURS)
        }
        first, second, third = self.constellations
        self.first = min(self._members(first), key=lambda star: self.stars[star]["magnitude"])
        self.second = rng.choice(self._members(second))
        self.third = rng.choice(self._members(third))
        self.colours = rng.sample(COLOURS, 3)
        self._place(self.first, self.stars[self.first]["magnitude"], rng.randint(1, 3))
        self._place(self.second, self.stars[self.second]["magnitude"], rng.randint(5, 7))
        self.rain = [*range(rng.randint(1, 2)), rng.randint(4, 6)]

        self.hour = 0
        self.is_open = False
        self.position = rng.choice(sorted(set(range(1, 7)) - set(positions)))
        self.target = None
        self.plates = []
        self._instruct()
        return (
            f"You work the telescope for one night of {NIGHT} hours; it is hour 0 and the dome is "
            "closed. An exposure takes an hour. Each step in magnitude doubles the seconds of an "
            "exposure. The astronomer sits in the warm room and asks for one thing after the other."
        )

    def _place(self, star: str, magnitude: int, rises: int) -> None:
        self.stars[star] = {"magnitude": magnitude, "rises": rises, "sets": rises + UP}

    def _instruct(self) -> None:
        red, blue, clear = self.colours
        one, two = (self.first, red), (self.second, blue)
        self.instruct(
            f"Take a plate of the brightest star of the {self.constellations[0]} behind the {red} "
            "filter.",
            lambda: one in self.plates,
        )
        self.instruct(
            f"Now a plate of {self.second} behind the {blue} filter.", lambda: two in self.plates
        )
        self.instruct(
            "That will do for tonight. See that the dome is closed.",
            lambda: one in self.plates and two in self.plates and not self.is_open,
        )
        self.instruct(
            f"How many seconds shall I plan tomorrow for {self.third} behind the {clear} filter?",
            answer=self._seconds(self.third, clear),
        )

    def _members(self, constellation: str) -> list:
        return [star for star in self.stars if star.split()[1] == constellation]

    def _seconds(self, star: str, colour: str) -> int:
        return self.cards[colour]["seconds at magnitude 4"] * 2 ** (
            self.stars[star]["magnitude"] - 4
        )

    def _is_up(self, star: str) -> bool:
        return self.stars[star]["rises"] <= self.hour < self.stars[star]["sets"]

    def _pass_hours(self, hours: int) -> str:
        """Let time pass; the first rain shuts the dome."""
        told = ""
        for _ in range(hours):
            self.hour += 1
            if self.is_open and (self.hour in self.rain or self.hour >= NIGHT):
                self.is_open, self.target = False, None
                told = " The dome has shut by itself."
        return f"It is hour {self.hour}.{told}"

    def _sky(self, hour: int) -> str:
        if hour >= NIGHT:
            return "daylight"
        return "rain" if hour in self.rain else "clear"

    def tool_stars_of(self, constellation: str) -> list:
        """List the stars of a constellation that the catalogue has."""
        if constellation not in self.constellations:
            raise ToolError(f"the catalogue has {', '.join(self.constellations)}")
        return self._members(constellation)

    def tool_look_up(self, star: str) -> dict:
        """Look a star up in the catalogue: its magnitude, and the hours in which it rises and sets.

        Args:
            star: Letter and constellation, as the catalogue lists them.
        """
        if star not in self.stars:
            raise ToolError(f"the catalogue has no star {star[:40]!r}")
        return self.stars[star]

    def tool_filter_card(self, colour: Literal["blue", "clear", "green", "red"]) -> dict:
        """Read the card of a filter: its position in the wheel, and its seconds for magnitude 4."""
        return self.cards[colour]

    def tool_forecast(self) -> dict:
        """Tell what the sky will be in this hour and in the four that follow."""
        return {hour: self._sky(hour) for hour in range(self.hour, self.hour + 5)}

    def tool_wait(self, hours: int) -> str:
        """Let hours pass, at most six at a time."""
        if not 1 <= hours <= 6:
            raise ToolError("from one hour to six")
        return self._pass_hours(hours)

    def tool_dome(self, state: Literal["open", "closed"]) -> str:
        """Open or close the dome."""
        if state == "open" and self._sky(self.hour) != "clear":
            raise ToolError(f"the dome stays closed: {self._sky(self.hour)} in hour {self.hour}")
        self.is_open = state == "open"
        if not self.is_open:
            self.target = None
        return f"The dome is {state}."

    def tool_turn_wheel(self, position: int) -> str:
        """Turn the filter wheel to a position, 1 to 6."""
        if not 1 <= position <= 6:
            raise ToolError("the wheel has the positions 1 to 6")
        self.position = position
        return f"The wheel stands at {position}."

    def tool_point(self, star: str) -> str:
        """Point the telescope at a star."""
        self.tool_look_up(star)
        if not self.is_open:
            raise ToolError("the dome is closed")
        if not self._is_up(star):
            raise ToolError(f"{star} is below the horizon in hour {self.hour}")
        self.target = star
        return f"The telescope follows {star}."

    def tool_expose(self, seconds: int) -> str:
        """Take a plate of the star that the telescope follows, behind the filter in front of it."""
        if self.target is None:
            raise ToolError("the telescope points at nothing")
        if not self._is_up(self.target):
            raise ToolError(f"{self.target} has set")
        colours = [key for key, card in self.cards.items() if card["position"] == self.position]
        if not colours:
            raise ToolError(f"there is no filter at position {self.position}")
        star, colour = self.target, colours[0]
        needed = self._seconds(star, colour)
        verdict = "sharp and clear"
        if seconds != needed:
            verdict = "too dark" if seconds < needed else "burnt"
        else:
            self.plates.append((star, colour))
        return f"The {colour} plate of {star} is {verdict}. {self._pass_hours(1)}"

    def tool_legend(self, constellation: str) -> str:
        """Read the legend of a constellation, to pass the time."""
        self.tool_stars_of(constellation)
        return LEGENDS[self.constellations.index(constellation)]

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "Look up when a star rises and what the sky will be before you wait."
        if level == 2:
            return (
                f"Look up all stars of the {self.constellations[0]}: the brightest has the smallest "
                "magnitude. The seconds on a filter's card are doubled once for each step of "
                "magnitude above 4. Wait for the star and for a clear sky, then open, turn, point, "
                "expose. The second star rises late, and rain may shut the dome before it does."
            )
        red, blue, _clear = self.colours
        return (
            f"{self.first} needs {self._seconds(self.first, red)} seconds behind {red}, "
            f"{self.second} {self._seconds(self.second, blue)} behind {blue}."
        )

    def solution(self) -> list[str]:
        actions = [self.call("stars_of", constellation=self.constellations[0])]
        hour = 0
        for star, colour in zip((self.first, self.second), self.colours, strict=False):
            actions += [self.call("look_up", star=star), self.call("filter_card", colour=colour)]
            free = [h for h in range(hour, NIGHT) if self._sky(h) == "clear"]
            at = next(h for h in free if h >= self.stars[star]["rises"])
            actions += [self.call("wait", hours=at - hour)] if at > hour else []
            actions += [
                self.call("dome", state="open"),
                self.call("turn_wheel", position=self.cards[colour]["position"]),
                self.call("point", star=star),
                self.call("expose", seconds=self._seconds(star, colour)),
            ]
            hour = at + 1
        actions += [] if hour in self.rain else [self.call("dome", state="closed")]
        actions += [
            self.call("look_up", star=self.third),
            self.call("filter_card", colour=self.colours[2]),
            self.answer(self._seconds(self.third, self.colours[2])),
        ]
        return actions
