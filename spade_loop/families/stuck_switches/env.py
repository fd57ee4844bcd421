"""A watch keeps the parts of a place, for a user who asks for one thing after the other, and parts refuse at first.

A part is on or off and has a level. The part that the user wants changed waits until another part has been switched,
and that one perhaps for a third. A refusal names the part that is waited for, or gives a code that the manual explains,
or says nothing, and then a look at the part tells. Switching back is always possible. With `missing` the level of one
request is left out and must be asked for; with `foreign` one request is none of a watch's business and must be
declined. How many parts wait for each other, and what a refusal tells, are set by PARAMS.
"""

import itertools
import random
from typing import Literal

from synthgym.contract import ToolEnv, ToolError

PARAMS = {
    "theme": "home",
    "requests": 2,
    "depth": 1,
    "refusal": "names",
    "missing": False,
    "foreign": False,
}

THEMES = {
    "home": "lamp fan heater blind door alarm pump oven",
    "mill": "belt sieve crane gate brake horn wheel vent",
    "ship": "winch radar bilge hatch valve siren mast light",
    "stage": "spot curtain fog screen trap organ flag bell",
}
PLACES = ["north", "south", "east", "west"]
FOREIGN = [
    "Book me a taxi.",
    "Order a pizza for me.",
    "Write a poem for my aunt.",
    "Translate this letter for me.",
    "Tell me who wins the match.",
]
WORDS = {True: "on", False: "off"}


class StuckSwitchesEnv(ToolEnv):
    max_turns = PARAMS["requests"] * (3 * PARAMS["depth"] + 2) + 3

    def setup(self, seed: int) -> str:
        rng = random.Random(seed)
        kinds = ["foreign"] * PARAMS["foreign"] + ["level"] * PARAMS["missing"]
        kinds += [rng.choice(["switch", "level"]) for _ in range(PARAMS["requests"] - len(kinds))]
        rng.shuffle(kinds)
        self.kinds = kinds
        self.at = 0  # the request that the user waits for
        self.untold = kinds.index("level") if PARAMS["missing"] else -1
        self.levels = [rng.randint(11, 99) for _ in kinds]
        self.draw_parts(rng)
        for index in range(len(kinds)):
            self.instruct(self.text(rng, index), lambda index=index: self.at > index)
        return "You keep watch over many parts. One that refuses waits for another."

    def draw_parts(self, rng):
        """For each request a chain: what the user wants changed, what that waits for, and so on."""
        nouns = THEMES[PARAMS["theme"]].split()
        names = [f"{place} {noun}" for place in PLACES for noun in nouns]
        rng.shuffle(names)
        self.parts, self.waits, self.chains = {}, {}, []
        for kind in self.kinds:
            length = 0 if kind == "foreign" else PARAMS["depth"] + 1
            chain = [names.pop() for _ in range(length)]
            self.parts |= {part: {"on": rng.random() < 0.5, "level": 10} for part in chain}
            self.waits |= dict(itertools.pairwise(chain))
            self.chains.append(chain)
        self.wanted = {part: not state["on"] for part, state in self.parts.items()}
        codes = rng.sample(range(100, 1000), len(self.parts))
        self.codes = dict(zip(self.parts, codes, strict=True))

    def text(self, rng, index):
        if self.kinds[index] == "foreign":
            return rng.choice(FOREIGN)
        part = self.chains[index][0]
        if self.kinds[index] == "switch":
            return f"Switch the {part} {WORDS[self.wanted[part]]}."
        if index == self.untold:
            return f"Set the {part} to the level that I have in mind."
        return f"Set the {part} to level {self.levels[index]}."

    def need(self, part):
        """What a part waits for, as text; nothing when it waits no longer."""
        other = self.waits.get(part, "")
        if not other or self.parts[other]["on"] == self.wanted[other]:
            return ""
        return f"the {other} must be {WORDS[self.wanted[other]]} first"

    def find(self, part):
        name = part.strip().lower()
        if name not in self.parts:
            raise ToolError(f"there is no part {part[:30]!r}; a name has two words")
        return name

    def try_part(self, part):
        """Refuse when the part still waits."""
        need = self.need(part)
        if need:
            tells = {"names": need, "codes": f"code {self.codes[part]}", "bare": "not now"}
            raise ToolError(f"the {part} refuses: {tells[PARAMS['refusal']]}")

    def go_on(self):
        """The next request, when the user has what this one asks for."""
        kind = self.kinds[self.at] if self.at < len(self.kinds) else "foreign"
        if kind == "foreign":
            return
        part = self.chains[self.at][0]
        goal = {"on": self.wanted[part]} if kind == "switch" else {"level": self.levels[self.at]}
        if goal.items() <= self.parts[part].items():
            self.at += 1

    def tool_switch(self, part: str, on: bool) -> str:
        """Switch a part on or off."""
        name = self.find(part)
        if on == self.wanted[name]:
            self.try_part(name)
        self.parts[name]["on"] = on
        self.go_on()
        return f"The {name} is {WORDS[on]}."

    def tool_set_level(self, part: str, level: int) -> str:
        """Set the level of a part, 10 to 99."""
        name = self.find(part)
        if not 10 <= level <= 99:
            raise ToolError("levels run from 10 to 99")
        self.try_part(name)
        self.parts[name]["level"] = level
        self.go_on()
        return f"The {name} is at level {level}."

    def tool_look(self, part: str) -> dict:
        """Look at a part."""
        name = self.find(part)
        need = self.need(name) if PARAMS["refusal"] == "bare" else ""
        return self.parts[name] | ({"waits": need} if need else {})

    def tool_manual(self, code: int) -> str:
        """Look a code up."""
        for part, known in self.codes.items():
            if code == known and PARAMS["refusal"] == "codes":
                return f"Code {code}: {self.need(part) or 'ready'}."
        raise ToolError("the manual has no such code")

    def tool_ask(self, about: Literal["part", "level"]) -> str:
        """Ask the user for what was left out."""
        if about == "level" and self.at == self.untold:
            return f"User: Level {self.levels[self.at]}."
        return "User: I have told you all there is to tell."

    def tool_decline(self, reason: str) -> str:
        """Turn down what is not your business."""
        if self.kinds[self.at : self.at + 1] != ["foreign"]:
            raise ToolError("the user insists: it is your business")
        self.at += 1
        return "The user understands."

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "A refusal has a cause: look for it before you try again."
        if level == 3:
            order = [" then ".join(reversed(chain)) for chain in self.chains if chain]
            return f"Change, in turn: {'; '.join(order)}."
        tells = {
            "names": "A refusal names the part to switch first.",
            "codes": "Look the code of a refusal up in the manual: it names the part to switch first.",
            "bare": "Look at a part that refuses: that tells which part to switch first.",
        }
        parts = [tells[PARAMS["refusal"]], "That part may wait in its turn. Then try again."]
        if PARAMS["missing"]:
            parts.append("Ask about a level that was not told.")
        if PARAMS["foreign"]:
            parts.append("Decline what has nothing to do with the parts.")
        return " ".join(parts)

    def solution(self) -> list[str]:
        actions = []
        for index, kind in enumerate(self.kinds):
            if kind == "foreign":
                actions.append(self.call("decline", reason="That is beyond this watch."))
                continue
            changes = [self.call("switch", part=p, on=self.wanted[p]) for p in self.chains[index]]
            if kind == "level":
                part, level = self.chains[index][0], self.levels[index]
                changes[0] = self.call("set_level", part=part, level=level)
            actions += [self.call("ask", about="level")] * (index == self.untold)
            for change, part in zip(changes[:-1], self.chains[index], strict=False):
                actions.append(change)  # it refuses
                if PARAMS["refusal"] == "codes":
                    actions.append(self.call("manual", code=self.codes[part]))
                elif PARAMS["refusal"] == "bare":
                    actions.append(self.call("look", part=part))
            actions += reversed(changes)
        return actions
