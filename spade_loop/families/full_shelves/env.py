"""A porter moves things between places that are almost full, for a user who asks for one thing after the other.

Every place has room for so many things, and all places are full but for one gap. A look at a place tells what is in it.
The user wants a thing brought to a place, and the rest may give way as it must; or two things swapped, and the rest
must stay as it was when that was asked, or be put back. With `missing` one request leaves out the place, which must be
asked for; with `foreign` one request is none of a porter's business and must be declined. How many places there are and
how much room each has are set by PARAMS.
"""

import random
from typing import Literal

from synthgym.contract import ToolEnv, ToolError

PARAMS = {
    "theme": "house",
    "requests": 2,
    "places": 3,
    "room": 1,
    "missing": False,
    "foreign": False,
}

THEMES = {
    "house": (
        "attic cellar hall kitchen study",
        "lamp rug harp globe desk easel stove trunk crib mirror piano ladder clock stool",
    ),
    "depot": (
        "ramp yard dock loft bay",
        "crate barrel pallet tyre engine pipe cable drum safe pump anvil sack keg motor",
    ),
    "garden": (
        "shed terrace arbour lawn pond",
        "bench statue swing hammock barrow sundial urn gnome fountain trellis grill tent hose rake",
    ),
    "vessel": (
        "bow stern hold cabin galley",
        "anchor net chest sail cannon rope compass buoy raft oar lantern flag winch cask",
    ),
}
FOREIGN = [
    "Book me a taxi.",
    "Order a pizza for me.",
    "Write a poem for my aunt.",
    "Translate this letter for me.",
    "Tell me who wins the match.",
]


class FullShelvesEnv(ToolEnv):
    # A witness looks at every place, and moves a thing three times at most; as much again is left for mistakes.
    max_turns = PARAMS["requests"] * (PARAMS["places"] + 5) + 3

    def setup(self, seed: int) -> str:
        rng = random.Random(seed)
        places, things = (words.split() for words in THEMES[PARAMS["theme"]])
        self.places = rng.sample(places, PARAMS["places"])
        things = rng.sample(things, PARAMS["places"] * PARAMS["room"] - 1)
        slots = self.places * PARAMS["room"]
        rng.shuffle(slots)
        self.where = dict(zip(things, slots, strict=False))
        self.kinds = ["foreign"] * PARAMS["foreign"] + ["missing"] * PARAMS["missing"]
        wishes = PARAMS["requests"] - len(self.kinds)
        self.kinds += [rng.choice(["bring", "swap"]) for _ in range(wishes)]
        rng.shuffle(self.kinds)
        self.at = 0  # the request that the user waits for
        self.draw_wishes(rng)
        self.before = dict(self.where)  # where everything was when the request was made
        for index in range(len(self.kinds)):
            self.instruct(self.text(rng, index), lambda index=index: self.at > index)
        room = f"room for {PARAMS['room']} in each"
        return f"You are a porter. The places: {', '.join(self.places)}; {room}."

    def draw_wishes(self, rng):
        """What is asked for, and the moves that do it, one after another, so that none is done already."""
        state = dict(self.where)
        self.wishes, self.plan = [], []
        for kind in self.kinds:
            thing = rng.choice(sorted(state))
            away = sorted(other for other in state if state[other] != state[thing])
            goal = rng.choice([place for place in self.places if place != state[thing]])
            wish = {"swap": (thing, rng.choice(away)), "foreign": ("", "")}.get(kind, (thing, goal))
            moves = self.moves(state, kind, *wish)
            state |= dict(moves)
            self.wishes.append(wish)
            self.plan.append(moves)

    def gap(self, state):
        """The only place that is not full."""
        held = list(state.values())
        return next(place for place in self.places if held.count(place) < PARAMS["room"])

    def moves(self, state, kind, thing, other):
        """(thing, place) one after another; the last move of a thing says where it stays."""
        if kind == "foreign":
            return []
        gap = self.gap(state)
        if kind == "swap":
            here, there = state[thing], state[other]
            if gap == here:
                return [(other, here), (thing, there)]
            if gap == there:
                return [(thing, there), (other, here)]
            return [(thing, gap), (other, here), (thing, there)]
        if gap == other:
            return [(thing, other)]
        giving_way = min(name for name in state if state[name] == other)
        return [(giving_way, gap), (thing, other)]

    def text(self, rng, index):
        kind = self.kinds[index]
        thing, other = self.wishes[index]
        return {
            "bring": f"Bring the {thing} to the {other}.",
            "missing": f"Bring the {thing} to another place. I do have one in mind.",
            "swap": f"Swap the {thing} and the {other}; all else shall be where it is now.",
            "foreign": rng.choice(FOREIGN),
        }[kind]

    def is_done(self):
        thing, other = self.wishes[self.at]
        if self.kinds[self.at] == "foreign":
            return False
        if self.kinds[self.at] == "swap":
            exchanged = {thing: self.before[other], other: self.before[thing]}
            return self.where == self.before | exchanged
        return self.where[thing] == other

    def go_on(self):
        """Pass over what is done."""
        while self.at < len(self.kinds) and self.is_done():
            self.at += 1
            self.before = dict(self.where)

    def find_place(self, place):
        if place.lower() not in self.places:
            raise ToolError(f"there is no place {place[:20]!r}")
        return place.lower()

    def find_thing(self, thing):
        if thing.lower() not in self.where:
            raise ToolError(f"there is no thing {thing[:20]!r}")
        return thing.lower()

    def tool_look(self, place: str) -> list:
        """List what is in a place."""
        name = self.find_place(place)
        return [thing for thing, where in self.where.items() if where == name]

    def tool_find_gap(self) -> str:
        """Tell which place has room."""
        return f"The {self.gap(self.where)} has room for one more."

    def tool_move(self, thing: str, place: str) -> str:
        """Move a thing to a place that has room."""
        name, goal = self.find_thing(thing), self.find_place(place)
        if self.where[name] == goal:
            raise ToolError(f"the {name} is there already")
        if self.gap(self.where) != goal:
            raise ToolError(f"the {goal} is full")
        self.where[name] = goal
        self.go_on()
        return f"The {name} is in the {goal}."

    def tool_polish(self, thing: str) -> str:
        """Polish a thing."""
        return f"The {self.find_thing(thing)} shines."

    def tool_ask(self, about: Literal["thing", "place"]) -> str:
        """Ask the user for what was left out."""
        if about == "place" and self.kinds[self.at : self.at + 1] == ["missing"]:
            return f"User: The {self.wishes[self.at][1]}."
        return "User: I have told you all there is to tell."

    def tool_decline(self, reason: str) -> str:
        """Turn down what is not your business."""
        if self.kinds[self.at : self.at + 1] != ["foreign"]:
            raise ToolError("the user insists: it is your business")
        self.at += 1
        self.before = dict(self.where)
        self.go_on()
        return "The user understands."

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "Look first, then make room."
        if level == 3:
            names = [f"{thing} in {place}" for thing, place in self.where.items()]
            return f"At first there are: {', '.join(names)}."
        parts = [
            "Find the gap: what is in the way goes there first, then the place it left has room."
        ]
        if "swap" in self.kinds:
            parts.append("In a swap one of the two waits in the gap, and nothing else moves.")
        if "missing" in self.kinds:
            parts.append("Ask about a place that was not told.")
        if "foreign" in self.kinds:
            parts.append("Decline what has nothing to do with moving things.")
        return " ".join(parts)

    def solution(self) -> list[str]:
        actions = [self.call("look", place=place) for place in self.places]
        for kind, moves in zip(self.kinds, self.plan, strict=True):
            if kind == "foreign":
                actions.append(self.call("decline", reason="That is beyond a porter."))
            elif kind == "missing":
                actions.append(self.call("ask", about="place"))
            actions += [self.call("move", thing=thing, place=place) for thing, place in moves]
        return actions
