"""A clerk keeps a book of records for a user who asks for one thing after the other.

A record has a number, a thing, a person and a day. Searching a thing gives the numbers of all records with that thing;
reading a number shows the record. The user names a person and a thing, and wants the record moved to a day, cancelled,
or its day told; nothing else may change, and what was changed by mistake must be set right. With `missing` one
request leaves out the day, which must be asked for; with `foreign` one is none of a clerk's business and must be
declined. How many records there are, and how many are alike in their thing, are set by PARAMS.
"""

import random
from typing import Literal

from synthgym.contract import ToolEnv, ToolError

PARAMS = {
    "theme": "repair",
    "requests": 2,
    "records": 4,
    "alike": 1,
    "missing": False,
    "foreign": False,
}

THEMES = {
    "repair": "phone radio clock lamp bike heater camera kettle",
    "clinic": "checkup vaccination xray cast filling massage eyetest bandage",
    "parcel": "books shoes wine seeds paint lens kite drum",
    "lesson": "piano violin chess swimming spanish dance welding pottery",
}
NAMES = ["Ana", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana"]
FOREIGN = [
    "Book me a taxi.",
    "Order a pizza for me.",
    "Write a poem for my aunt.",
    "Translate this letter for me.",
    "Tell me who wins the match.",
]
CANCELLED = 0
LAST_DAY = 60


class TicketDeskEnv(ToolEnv):
    max_turns = PARAMS["requests"] * (2 + PARAMS["alike"]) + 4

    def setup(self, seed: int) -> str:
        rng = random.Random(seed)
        self.records = self.drawn_records(rng)
        self.kinds = self.drawn_kinds(rng)
        self.targets = rng.sample(sorted(self.records), len(self.kinds))
        self.days = rng.sample(range(31, LAST_DAY + 1), len(self.kinds))
        self.at = 0  # the request that the user waits for
        self.plan = []  # the book after each request
        state = self.book()
        for index, kind in enumerate(self.kinds):
            if kind in ("move", "missing"):
                state = state | {self.targets[index]: self.days[index]}
            elif kind == "cancel":
                state = state | {self.targets[index]: CANCELLED}
            self.plan.append(state)
        for index, kind in enumerate(self.kinds):
            self.instruct_one(rng, index, kind)
        return "You keep the book of records. Change only what the user asks for."

    def drawn_records(self, rng):
        """number -> record; `alike` records share a thing, and none shares both thing and person with another."""
        things = THEMES[PARAMS["theme"]].split()
        rng.shuffle(things)
        pairs = []
        for thing in things:
            pairs += [(thing, name) for name in rng.sample(NAMES, PARAMS["alike"])]
        pairs = pairs[: PARAMS["records"]]
        numbers = rng.sample(range(100, 1000), len(pairs))
        return {
            number: {"thing": thing, "person": name, "day": rng.randint(1, 30)}
            for number, (thing, name) in zip(numbers, pairs, strict=True)
        }

    def drawn_kinds(self, rng):
        """A question comes last where there is room for it and for a change, which is harder to guess."""
        kinds = ["missing"] * PARAMS["missing"] + ["foreign"] * PARAMS["foreign"]
        room = PARAMS["requests"] - len(kinds)
        kinds += [rng.choice(["move", "cancel"]) for _ in range(room - (room > 1))]
        rng.shuffle(kinds)
        return kinds + ["tell"] * (room > 1)

    def instruct_one(self, rng, index, kind):
        record = self.records[self.targets[index]]
        whose = f"{record['person']}'s {record['thing']}"
        if kind == "tell":
            self.instruct(f"For which day is {whose} booked?", answer=record["day"])
        elif kind == "foreign":
            self.instruct(rng.choice(FOREIGN), lambda: self.at > index)
        else:
            text = {
                "move": f"Move {whose} to day {self.days[index]}.",
                "cancel": f"Cancel {whose}.",
                "missing": f"Move {whose} to another day. I do have one in mind.",
            }
            self.instruct(text[kind], lambda: self.at > index)

    def book(self):
        return {number: record["day"] for number, record in self.records.items()}

    def awaits(self, *kinds):
        return self.at < len(self.kinds) and self.kinds[self.at] in kinds

    def write(self, number, day):
        self.record(number)["day"] = day
        if self.awaits("move", "cancel", "missing") and self.book() == self.plan[self.at]:
            self.at += 1

    def record(self, number):
        if number not in self.records:
            raise ToolError(f"no record has the number {number}")
        return self.records[number]

    def tool_search(self, thing: str) -> list:
        """List the numbers of the records with that thing."""
        return [n for n, record in self.records.items() if record["thing"] == thing.lower()]

    def tool_read(self, number: int) -> dict:
        """Read a record; day 0 is cancelled."""
        return self.record(number)

    def tool_move(self, number: int, day: int) -> str:
        """Set the day of a record."""
        if not 1 <= day <= LAST_DAY:
            raise ToolError(f"days run from 1 to {LAST_DAY}")
        self.write(number, day)
        return f"Record {number} is set to day {day}."

    def tool_cancel(self, number: int) -> str:
        """Cancel a record."""
        self.write(number, CANCELLED)
        return f"Record {number} is cancelled."

    def tool_ask(self, about: Literal["person", "thing", "day"]) -> str:
        """Ask the user for what was left out."""
        if about == "day" and self.awaits("missing"):
            return f"User: Day {self.days[self.at]}."
        return "User: I have told you all there is to tell."

    def tool_decline(self, reason: str) -> str:
        """Turn down what is not your business."""
        if not self.awaits("foreign"):
            raise ToolError("the user insists: it is your business")
        self.at += 1
        return "The user understands."

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "Search first, then read what was found."
        if level == 3:
            return f"The records that matter, in turn: {', '.join(map(str, self.targets))}."
        parts = ["Search the thing, read every number found until the person is right."]
        if "missing" in self.kinds:
            parts.append("When the user names no day, ask about it before you move anything.")
        if "foreign" in self.kinds:
            parts.append("Decline what no tool of the book can do.")
        return " ".join([*parts, "Write an answer only to a question."])

    def solution(self) -> list[str]:
        actions = []
        for index, kind in enumerate(self.kinds):
            number = self.targets[index]
            if kind == "foreign":
                actions.append(self.call("decline", reason="That is beyond this book."))
                continue
            thing = self.records[number]["thing"]
            found = self.tool_search(thing)
            actions.append(self.call("search", thing=thing))
            actions += [self.call("read", number=n) for n in found[: found.index(number) + 1]]
            if kind == "tell":
                actions.append(self.answer(self.records[number]["day"]))
            elif kind == "cancel":
                actions.append(self.call("cancel", number=number))
            else:
                actions += [self.call("ask", about="day")] * (kind == "missing")
                actions.append(self.call("move", number=number, day=self.days[index]))
        return actions
