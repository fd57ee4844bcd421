"""Sources for the tests of `sandbox.program`: what modules bind, and what methods do with it.

Each entry is the text before the class, the body of `reset` and the body of `step`; both build `out`.
"""

from __future__ import annotations


def env_source(before: str, reset: str, step: str, members: str = "") -> str:
    """An environment whose observation is the text of `out`."""

    def indented(text: str, by: int) -> str:
        return "".join(" " * by + line + "\n" for line in text.strip("\n").split("\n"))

    return (
        f"{before}\nclass ProbeEnv:\n    max_turns = 9\n{indented(members or 'pass', 4)}"
        f"    def reset(self, seed):\n        self.rng = random.Random(seed)\n        self.turn = 0\n"
        f"{indented(reset, 8)}        return str(out), {{}}\n"
        f"    def step(self, action):\n        self.turn += 1\n{indented(step, 8)}"
        f"        return str(out), 0.0, False, False, {{}}\n"
    )


SHARED = {
    "no containers": env_source(
        "A = 3\nB = ('x', 'y')", "out = A", "out = B[self.turn % 2]",
    ),
    "tables that are read": env_source(
        "MOVES = {'n': (0, 1), 's': (0, -1)}\nNAMES = ['a', 'b', 'c']\nODD = {1, 3, 5}",
        "out = [len(NAMES), sorted(MOVES), list(NAMES), ', '.join(NAMES), 'n' in MOVES, f'{MOVES}']",
        "x, y = MOVES['n']\n"
        "out = [MOVES.get(action), [k + v for k, v in zip(NAMES, NAMES)], self.turn in ODD,\n"
        "    self.rng.choice(NAMES), self.rng.sample(NAMES, 2), NAMES[1:], NAMES + ['z'], {**MOVES},\n"
        "        [*NAMES], 'yes' if NAMES else 'no', max(NAMES), NAMES.index('b'), list(MOVES.items())]",
    ),
    "nested tables": env_source(
        "ROOMS = {'hall': {'exits': {'n': 'den'}, 'items': ['lamp']}, 'den': {'exits': {}, 'items': []}}",
        "out = [ROOMS['hall']['exits']['n'], 'den' in ROOMS, [r for r in ROOMS], len(ROOMS['hall'])]",
        "out = ROOMS['hall']['items'][0] + str(ROOMS['den'].get('exits')['x'] if ROOMS['den']['exits']\n"
        "    else 0)",
    ),
    "a deep copy of a table": env_source(
        "import copy\nSTART = {'a': [1, 2], 'b': []}", "self.state = copy.deepcopy(START)\nout = self.state",
        "self.state['a'].append(self.turn)\nout = self.state",
    ),
    "class level tables": env_source(
        "class Base:\n    KINDS = ['x', 'y']",
        "out = [self.VERBS[0], len(Base.KINDS), self._hidden['a'], self.__own['b']]",
        "out = [v.upper() for v in self.VERBS] + [self.rng.choice(Base.KINDS)]",
        members="VERBS = ['go', 'look']\n_hidden = {'a': 1}\n__own = {'b': 2}",
    ),
    "an enum, a named tuple, a frozen dataclass": env_source(
        "import enum\nfrom collections import namedtuple\nfrom dataclasses import dataclass\n"
        "from typing import NamedTuple\nclass Kind(enum.Enum):\n    A = 1\n    B = 'b'\n"
        "    def label(self): return self.name.lower()\nP = namedtuple('P', 'x y')\nORIGIN = P(0, 0)\n"
        "class Spot(NamedTuple):\n    row: int\n    col: int = 3\n@dataclass(frozen=True)\nclass Tool:\n"
        "    name: str\n    cost: int = 2\nTOOLS = [Tool('saw'), Tool('axe', 5)]\n"
        "BY_KIND = {Kind.A: 'first', Kind.B: 'second'}",
        "self.at = ORIGIN._replace(x=2)\nout = [Kind.A.label(), self.at, TOOLS[0], Kind('b'), Spot(1)]",
        "out = [sum(t.cost for t in TOOLS), BY_KIND[Kind.A], [k.value for k in Kind],\n"
        "    isinstance(self.at, P)]",
    ),
    "helper classes, dataclasses with lists": env_source(
        "from dataclasses import dataclass, field\nfrom abc import ABC, abstractmethod\nclass Thing(ABC):\n"
        "    @abstractmethod\n    def act(self): ...\nclass Dog(Thing):\n"
        "    def __init__(self): super().__init__(); self.hunger = 0\n"
        "    def act(self): self.hunger += 1; return self.hunger\n@dataclass\nclass Room:\n    name: str\n"
        "    items: list = field(default_factory=list)",
        "self.dog = Dog()\nself.room = Room('hall')\nout = [self.dog.act(), self.room]",
        "self.room.items.append(action)\nself.room.name += '!'\n"
        "out = [self.dog.act(), self.room, vars(self.dog)]",
    ),
    "functions, lambdas, properties, closures over constants": env_source(
        "import re, functools\nWORD = re.compile(r'[a-z]+')\ndef adder(n):\n"
        "    def add(x, by=1): return x + n * by\n    return add\nPLUS_TWO = adder(2)\n"
        "double = lambda x, k=2: x * k\nHANDLERS = {'p': PLUS_TWO, 'd': double}\ndef logged(f):\n"
        "    @functools.wraps(f)\n    def inner(*a): return ('called', f(*a))\n    return inner\n@logged\n"
        "def shout(t): return t.upper()",
        "out = [PLUS_TWO(1), double(4), self.level, self.kind(), self.static(2), shout('x')]",
        "out = [HANDLERS[k](self.turn) for k in HANDLERS] + WORD.findall('ab 12 cd') + [self.level]",
        members="@property\ndef level(self): return self.turn * 2\n@classmethod\ndef kind(cls): return cls.__name__\n"
        "@staticmethod\ndef static(x): return x + 1",
    ),
    "the functions of random and time": env_source(
        "import random, time\nfrom datetime import datetime\nfrom random import randint as roll",
        "out = [random.random(), roll(1, 99), time.time(), random.Random().random(), datetime.now()]",
        "time.sleep(self.turn)\n"
        "out = [random.choice('abc'), random.gauss(0, 1), time.time(), datetime.now(), roll(1, 9)]",
        members="pick = random.choice\ndef __init__(self): self.early = random.Random(); self.luck = random.random()",
    ),
    "generators without clean-up": env_source(
        "import random\ndef walk(n):\n    while True:\n        n += random.randint(1, 3)\n        yield n",
        "self.walk = walk(seed)\nself.lazy = (random.random() for _ in range(99))\nout = next(self.walk)",
        "out = [next(self.walk), next(self.lazy)]",
    ),
    "comprehensions and loops while the module runs": env_source(
        "SQUARES = [i * i for i in range(5)]\nTABLE = {}\nfor i in range(3):\n    TABLE[i] = str(i)\n"
        "PAIRS = [(a, b) for a in SQUARES for b in TABLE]\nNAMES = sorted({'b', 'a'})",
        "out = [SQUARES[2], TABLE[1], len(PAIRS)]",
        "out = [sum(SQUARES), TABLE.get(self.turn, 'none'), self.rng.choice(PAIRS), NAMES[0]]",
    ),
    "nested classes": env_source(
        "class Outer:\n    class Inner:\n        size = 3\n        def __init__(self): self.n = self.size",
        "self.inner = Outer.Inner()\nout = self.inner.n",
        "self.inner.n += 1\nout = [self.inner.n, Outer.Inner.size]",
    ),
    "subclasses made in a method": env_source(
        "class Base:\n    n = 1\n    def __init_subclass__(cls): super().__init_subclass__()",
        "class Local(Base):\n    log = []\nself.local = Local()\nout = self.local.n",
        "self.local.log.append(self.turn)\nout = self.local.log",
    ),
}  # fmt: skip
"""By what is tried: sources whose module is run once."""
