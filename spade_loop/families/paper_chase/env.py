"""A messenger carries papers from office to office, for a user who asks for one thing after the other.

A paper is opened for a person and gets a code. Handed in at the right office, the code is used up and a new one is
given, until the paper has been at all of its offices and can be filed. Each kind of paper has its own order of offices:
it is told from office to office, or written down in a list, or must be tried. With `missing` one request leaves out the
person, who must be asked for; with `foreign` one request is none of a messenger's business and must be declined. How
many offices a paper has to pass, and how their order is known, are set by PARAMS.
"""

import random
from typing import Literal

from synthgym.contract import ToolEnv, ToolError

PARAMS = {
    "theme": "town",
    "requests": 2,
    "stages": 1,
    "order": "told",
    "missing": False,
    "foreign": False,
}

THEMES = {
    "town": "passport permit licence deed visa lease",
    "school": "grant diploma transfer report timetable waiver",
    "harbour": "manifest pass clearance tariff charter receipt",
    "theatre": "contract script poster budget invitation programme",
}
NAMES = ["Ana", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana"]
OFFICES = ["check", "sign", "stamp", "pay"]
FOREIGN = [
    "Book me a taxi.",
    "Order a pizza for me.",
    "Write a poem for my aunt.",
    "Translate this letter for me.",
    "Tell me who wins the match.",
]


class PaperChaseEnv(ToolEnv):
    # With an order that must be tried there is room for two wrong offices a stage.
    max_turns = (
        PARAMS["requests"] * (PARAMS["stages"] * (3 if PARAMS["order"] == "tried" else 1) + 3) + 3
    )

    def setup(self, seed: int) -> str:
        rng = random.Random(seed)
        papers = THEMES[PARAMS["theme"]].split()
        self.routes = {paper: rng.sample(OFFICES, PARAMS["stages"]) for paper in papers}
        self.kinds = ["foreign"] * PARAMS["foreign"] + ["missing"] * PARAMS["missing"]
        self.kinds += ["told"] * (PARAMS["requests"] - len(self.kinds))
        rng.shuffle(self.kinds)
        self.at = 0  # the request that the user waits for
        pairs = [(name, paper) for name in NAMES for paper in papers]
        self.wanted = rng.sample(pairs, len(self.kinds))
        self.codes = rng.sample(range(100, 1000), 900)  # more than all turns can use
        self.open = {}  # code -> (person, paper, offices passed)
        for index, kind in enumerate(self.kinds):
            self.instruct_one(rng, index, kind)
        number = ["no", "one", "two", "three", "four"][PARAMS["stages"]]
        return f"You carry papers. Each is opened, handed in at {number} of the offices, and filed."

    def instruct_one(self, rng, index, kind):
        person, paper = self.wanted[index]
        text = {
            "told": f"Get a {paper} through for {person}.",
            "missing": f"Get a {paper} through for somebody I know.",
            "foreign": rng.choice(FOREIGN),
        }
        self.instruct(text[kind], lambda: self.at > index)

    def issue(self, person, paper, passed):
        """The next code, and what is told with it."""
        code = self.codes.pop()
        self.open[code] = (person, paper, passed)
        route = self.routes[paper]
        if passed == len(route):
            return f"Code {code}: ready to be filed."
        return f"Code {code}" + (f": next {route[passed]}." if PARAMS["order"] == "told" else ".")

    def find(self, code):
        if code not in self.open:
            raise ToolError(f"code {code} is not in use")
        return self.open[code]

    def awaits(self, *kinds):
        return self.at < len(self.kinds) and self.kinds[self.at] in kinds

    def tool_open(self, person: str, paper: str) -> str:
        """Open a paper for a person."""
        if person.title() not in NAMES:
            raise ToolError(f"nobody is called {person[:20]!r}")
        if paper.lower() not in self.routes:
            raise ToolError(f"there is no paper {paper[:20]!r}")
        return self.issue(person.title(), paper.lower(), 0)

    def tool_hand_in(self, office: Literal["check", "sign", "stamp", "pay"], code: int) -> str:
        """Hand a code in at an office, for a new one."""
        person, paper, passed = self.find(code)
        if self.routes[paper][passed : passed + 1] != [office]:
            raise ToolError(f"{office} does not take code {code} now")
        del self.open[code]
        return self.issue(person, paper, passed + 1)

    def tool_file(self, code: int) -> str:
        """File a paper that has passed all offices."""
        person, paper, passed = self.find(code)
        if passed < len(self.routes[paper]):
            raise ToolError(f"code {code} has to pass another office first")
        del self.open[code]
        if self.awaits("told", "missing") and (person, paper) == self.wanted[self.at]:
            self.at += 1
        return f"The {paper} of {person} is filed."

    def tool_list_offices(self, paper: str) -> list:
        """Look up which offices a paper passes, in order."""
        if PARAMS["order"] != "listed":
            raise ToolError("nobody has written that down")
        if paper.lower() not in self.routes:
            raise ToolError(f"there is no paper {paper[:20]!r}")
        return self.routes[paper.lower()]

    def tool_ask(self, about: Literal["person", "paper"]) -> str:
        """Ask the user for what was left out."""
        if about == "person" and self.awaits("missing"):
            return f"User: For {self.wanted[self.at][0]}."
        return "User: I have told you all there is to tell."

    def tool_decline(self, reason: str) -> str:
        """Turn down what is not your business."""
        if not self.awaits("foreign"):
            raise ToolError("the user insists: it is your business")
        self.at += 1
        return "The user understands."

    def hint(self, level: int = 2) -> str:
        if level == 1:
            return "Every code can be handed in once: go on with the newest."
        if level == 3:
            orders = [
                f"{paper}: {' '.join(self.routes[paper])}"
                for (_person, paper), kind in zip(self.wanted, self.kinds, strict=True)
                if kind != "foreign"
            ]
            return f"The offices are, in order, {'; '.join(orders)}."
        tells = {
            "told": "each reply names the office that comes next",
            "listed": "look the offices of the paper up, then hand in there in that order",
            "tried": "try one office after the other with the same code until it is taken",
        }
        parts = [
            f"Open the paper, keep to the newest code, and {tells[PARAMS['order']]}. File it at the end."
        ]
        if PARAMS["missing"]:
            parts.append("Ask about a person who was not told.")
        if PARAMS["foreign"]:
            parts.append("Decline what has nothing to do with papers.")
        return " ".join(parts)

    def solution(self) -> list[str]:
        actions = []
        codes = list(self.codes)
        for index, kind in enumerate(self.kinds):
            person, paper = self.wanted[index]
            if kind == "foreign":
                actions.append(self.call("decline", reason="That is beyond a messenger."))
                continue
            if kind == "missing":
                actions.append(self.call("ask", about="person"))
            if PARAMS["order"] == "listed":
                actions.append(self.call("list_offices", paper=paper))
            actions.append(self.call("open", person=person, paper=paper))
            actions += [
                self.call("hand_in", office=office, code=codes.pop())
                for office in self.routes[paper]
            ]
            actions.append(self.call("file", code=codes.pop()))
        return actions
