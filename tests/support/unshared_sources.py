"""Sources whose modules may change while they are used; the entries are made as in `program_sources`."""

from __future__ import annotations

from program_sources import env_source

UNSHARED = {
    "a class level list that is appended to": env_source(
        "", "self.log.append(seed)\nout = self.log", "self.log.append(action)\nout = self.log",
        members="log = []",
    ),
    "a global counter": env_source(
        "N = 0", "global N\nN += 1\nout = N", "global N\nN += 1\nout = N",
    ),
    "a constant changed through an alias": env_source(
        "D = {'k': 0}", "d = D\nd['k'] += 1\nout = D", "d = D\nd['k'] += 1\nout = D['k']",
    ),
    "a constant changed through an attribute": env_source(
        "D = {'k': 0}", "self.d = D\nout = D['k']", "self.d['k'] += 1\nout = D['k']",
    ),
    "a constant changed by a function": env_source(
        "D = []\ndef note(log, x): log.append(x)", "note(D, seed)\nout = len(D)", "note(D, 1)\nout = len(D)",
    ),
    "a default argument": env_source(
        "def note(x, log=[]):\n    log.append(x)\n    return log", "out = note(seed)", "out = note(self.turn)",
    ),
    "a default argument of a lambda": env_source(
        "note = lambda x, log={}: log.setdefault(x, len(log))", "out = note(seed)", "out = note(self.turn)",
    ),
    "a constant as a default argument": env_source(
        "LOG = []\ndef note(x, log=LOG):\n    log.append(x)\n    return len(log)", "out = note(1)",
        "out = note(2)",
    ),
    "a shuffled constant": env_source(
        "CARDS = list(range(9))", "self.rng.shuffle(CARDS)\nout = CARDS",
        "self.rng.shuffle(CARDS)\nout = CARDS[0]",
    ),
    "an item that is counted up": env_source(
        "COUNT = {'a': 0}", "COUNT['a'] += 1\nout = COUNT['a']", "COUNT['a'] += 1\nout = COUNT['a']",
    ),
    "an item of a class level table": env_source(
        "", "self.n['a'] += 1\nout = self.n['a']", "self.n['a'] += 1\nout = self.n['a']",
        members="n = {'a': 0}",
    ),
    "an attribute of the class through type": env_source(
        "", "type(self).n += 1\nout = self.n", "type(self).n += 1\nout = self.n", members="n = 0",
    ),
    "an attribute of the class through setattr": env_source(
        "", "setattr(type(self), 'n', self.n + 1)\nout = self.n", "out = self.n", members="n = 0",
    ),
    "an attribute of the class through __class__": env_source(
        "", "self.__class__.n = self.n + 1\nout = self.n", "out = self.n", members="n = 0",
    ),
    "an attribute of the class by its name": env_source(
        "class Total:\n    n = 0", "Total.n += 1\nout = Total.n", "Total.n += 1\nout = Total.n",
    ),
    "an attribute of the class in a classmethod": env_source(
        "", "self.up()\nout = self.n", "self.up()\nout = self.n",
        members="n = 0\n@classmethod\ndef up(cls): cls.n += 1",
    ),
    "an attribute of a function": env_source(
        "def f(): f.n += 1; return f.n\nf.n = 0", "out = f()", "out = f()",
    ),
    "a class in a variable": env_source(
        "class A:\n    n = 0", "for c in (A,): c.n += 1\nout = A.n", "for c in (A,): c.n += 1\nout = A.n",
    ),
    "a list in a nested constant by an alias": env_source(
        "R = {'a': {'b': []}}", "inner = R['a']\ninner['b'].append(1)\nout = R",
        "inner = R['a']\ninner['b'].append(1)\nout = R",
    ),
    "rows of a constant in a loop": env_source(
        "R = [[0], [0]]", "for row in R: row[0] += 1\nout = R", "for row in R: row[0] += 1\nout = R",
    ),
    "rows of a constant by values": env_source(
        "R = {'a': [0]}", "for row in R.values(): row[0] += 1\nout = R",
        "for row in R.values(): row[0] += 1\nout = R",
    ),
    "a row of a constant by choice": env_source(
        "R = [[0], [0]]", "self.rng.choice(R).append(1)\nout = R", "self.rng.choice(R).append(1)\nout = R",
    ),
    "a list in a constant tuple": env_source(
        "T = ([], 1)", "T[0].append(1)\nout = T", "T[0].append(1)\nout = T",
    ),
    "a counter in a closure": env_source(
        "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return up\nup = counter()", "out = up()", "out = up()",
    ),
    "a list in a closure": env_source(
        "def keeper():\n    seen = []\n    def keep(x):\n        seen.append(x)\n        return len(seen)\n"
        "    return keep\nkeep = keeper()", "out = keep(seed)", "out = keep(0)",
    ),
    "a memo of a decorator": env_source(
        "def memo(f):\n    known = {}\n    def inner(x):\n        known.setdefault(x, len(known))\n"
        "        return known[x]\n    return inner\n@memo\ndef f(x): return x", "out = f(seed)",
        "out = f(self.turn)",
    ),
    "a memo dict": env_source(
        "MEMO = {}\ndef order(x):\n    if x not in MEMO: MEMO[x] = len(MEMO)\n    return MEMO[x]",
        "out = order(seed)", "out = order(self.turn)",
    ),
    "a generator that the module started": env_source(
        "def ids():\n    n = 0\n    while True:\n        n += 1\n        yield n\nIDS = ids()",
        "out = next(IDS)", "out = next(IDS)",
    ),
    "itertools.count": env_source(
        "import itertools\nIDS = itertools.count()", "out = next(IDS)", "out = next(IDS)",
    ),
    "a list iterator": env_source(
        "ORDER = iter([3, 1, 2, 9, 8, 7, 6, 5, 4] * 9)", "out = next(ORDER)", "out = next(ORDER)",
    ),
    "a random generator of the module": env_source(
        "RNG = random.Random(4)", "out = RNG.random()", "out = RNG.random()",
    ),
    "a draw of the module": env_source(
        "LUCK = random.random()", "out = LUCK", "out = LUCK",
    ),
    "a clock read by the module": env_source(
        "import time\nSTART = time.time()", "out = time.time() - START", "out = time.time() - START",
    ),
    "a deque": env_source(
        "from collections import deque\nQ = deque([1, 2, 3])", "Q.rotate(1)\nout = Q[0]",
        "Q.rotate(1)\nout = Q[0]",
    ),
    "a Counter": env_source(
        "from collections import Counter\nC = Counter()", "C[seed % 3] += 1\nout = sum(C.values())",
        "C['x'] += 1\nout = sum(C.values())",
    ),
    "a defaultdict that reading changes": env_source(
        "from collections import defaultdict\nD = defaultdict(list)", "D[seed]\nout = len(D)",
        "D[self.turn]\nout = len(D)",
    ),
    "a dataclass object": env_source(
        "from dataclasses import dataclass\n@dataclass\nclass Box:\n    n: int = 0\nBOX = Box()",
        "BOX.n += 1\nout = BOX", "BOX.n += 1\nout = BOX",
    ),
    "an object of a plain class": env_source(
        "class Box:\n    def __init__(self): self.n = 0\n    def up(self): self.n += 1; return self.n\n"
        "BOX = Box()", "out = BOX.up()", "out = BOX.up()",
    ),
    "a partial with a list": env_source(
        "import functools\ndef note(log, x): log.append(x); return len(log)\npush = functools.partial(note, [])",
        "out = push(seed)", "out = push(1)",
    ),
    "a bound method of a list": env_source(
        "LOG = []\npush = LOG.append", "push(1)\nout = len(LOG)", "push(1)\nout = len(LOG)",
    ),
    "a bound method of an object": env_source(
        "class Box:\n    def __init__(self): self.n = 0\n    def up(self): self.n += 1; return self.n\n"
        "up = Box().up", "out = up()", "out = up()",
    ),
    "lru_cache": env_source(
        "from functools import lru_cache\nclass Key:\n    pass\n@lru_cache\ndef box(k): return []",
        "box(1).append(seed)\nout = box(1)", "box(1).append(1)\nout = box(1)",
    ),
    "cached_property is not known": env_source(
        "from functools import cached_property", "out = self.first", "out = self.first",
        members="@cached_property\ndef first(self): return self.turn",
    ),
    "a class decorator that keeps classes in a list": env_source(
        "KNOWN = []\ndef known(cls):\n    KNOWN.append(cls)\n    return cls\n@known\nclass A:\n    n = 0",
        "KNOWN[0].n += 1\nout = KNOWN[0].n", "KNOWN[0].n += 1\nout = KNOWN[0].n",
    ),
    "__init_subclass__ with a register": env_source(
        "class Base:\n    known = []\n    def __init_subclass__(cls): Base.known.append(cls.__name__)",
        "class Local(Base): pass\nout = len(Base.known)", "class Local(Base): pass\nout = len(Base.known)",
    ),
    "an abstract class that registers": env_source(
        "from abc import ABC\nclass Base(ABC): pass\nclass A: pass",
        "out = isinstance(A(), Base)\nBase.register(A)", "out = isinstance(A(), Base)",
    ),
    "augmented assignment through an instance": env_source(
        "", "self.log += [seed]\nout = self.log", "self.log += [1]\nout = self.log", members="log = []",
    ),
    "a class level list by getattr": env_source(
        "", "getattr(self, 'lo' + 'g').append(1)\nout = self.log", "out = len(self.log)", members="log = []",
    ),
    "a class level list by attrgetter": env_source(
        "from operator import attrgetter as ag", "ag('log')(self).append(1)\nout = len(self.log)",
        "out = len(self.log)", members="log = []",
    ),
    "a class level list by a pattern": env_source(
        "", "match self:\n    case object(log=found): found.append(1)\nout = len(self.log)",
        "out = len(self.log)", members="log = []",
    ),
    "the defaults of a named tuple": env_source(
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int = 0",
        "P._field_defaults['x'] = P._field_defaults['x'] + 1\nout = P._field_defaults['x']",
        "out = P._field_defaults['x']",
    ),
    "a dict behind a view": env_source(
        "D = {'k': 0}\nclass Thief:\n    def __eq__(self, other):\n        other['k'] += 1\n        return True",
        "D.keys().mapping == Thief()\nout = D['k']", "D.keys().mapping == Thief()\nout = D['k']",
    ),
    "a comparison that hands out the list": env_source(
        "L = [0]\nclass Thief:\n    def __eq__(self, other):\n        other[0] += 1\n        return True",
        "L == Thief()\nout = L[0]", "L == Thief()\nout = L[0]",
    ),
    "an operator that hands out the list": env_source(
        "L = [0]\nclass Thief:\n    def __radd__(self, other):\n        other[0] += 1\n        return 0",
        "L + Thief()\nout = L[0]", "L + Thief()\nout = L[0]",
    ),
    "an operator of an abstract set": env_source(
        "from collections.abc import Set as Base\nL = [0]\nclass S(Base):\n"
        "    def __init__(self, it): self.it = it\n    def __contains__(self, x): return False\n"
        "    def __iter__(self): return iter(())\n    def __len__(self): return 0\n    @classmethod\n"
        "    def _from_iterable(cls, it):\n        return cls(it)\nclass Grab(S):\n"
        "    def __init__(self, it):\n        self.it = it\n        if type(it) is list and it: it[0] += 1",
        "L - Grab(())\nout = L[0]", "L - Grab(())\nout = L[0]",
    ),
    "a method of one's own that has a harmless name": env_source(
        "L = []\nclass Rng:\n    def choice(self, seq): seq.append(1); return len(seq)",
        "out = Rng().choice(L)", "out = Rng().choice(L)",
    ),
    "a field with a harmless name": env_source(
        "from collections import namedtuple as nt\nP = nt('P', 'choice')\nL = []\n"
        "def grab(seq): seq.append(1); return len(seq)", "out = P(grab).choice(L)", "out = P(grab).choice(L)",
    ),
    "a method with a harmless name that object.__setattr__ adds": env_source(
        "L = []\ndef grab(seq): seq.append(1); return len(seq)",
        "object.__setattr__(self, 'choice', grab)\nout = self.choice(L)", "out = self.choice(L)",
    ),
    "a method with a harmless name that a computed __setattr__ adds": env_source(
        "L = []\ndef grab(seq): seq.append(1); return len(seq)",
        "getattr(object, '__seta' + 'ttr__')(self, 'choice', grab)\nout = self.choice(L)",
        "out = self.choice(L)",
    ),
    "a builtin that the source replaces": env_source(
        "L = []\ndef sorted(seq): seq.append(1); return list(seq)", "out = sorted(L)", "out = sorted(L)",
    ),
    "the memo of a deep copy": env_source(
        "from copy import deepcopy\nL = [[0]]",
        "memo = {}\ndeepcopy(L, memo)\n"
        "for kept in [v for v in memo.values() if type(v) is list and len(v) > 1]:\n    kept[-1][0][0] += 1\n"
        "out = L[0][0]", "out = L[0][0]",
    ),
    "a mangled global name": env_source(
        "_ProbeEnv__log = []", "__log.append(1)\nout = len(__log)", "__log.append(1)\nout = len(__log)",
    ),
    "a walrus in a comprehension": env_source(
        "[LOG := [] for _ in range(1)]", "LOG.append(1)\nout = len(LOG)", "LOG.append(1)\nout = len(LOG)",
    ),
    "an enum with lists": env_source(
        "from enum import Enum\nclass K(Enum):\n    A = ('a', [])", "K.A.value[1].append(1)\nout = K.A.value",
        "K.A.value[1].append(1)\nout = K.A.value",
    ),
    "flags make members as they go": env_source(
        "from enum import Flag\nclass F(Flag):\n    A = 1\n    B = 2",
        "both = F.A | F.B\nout = getattr(both, 'seen', 0)\nboth.seen = 1",
        "out = getattr(F.A | F.B, 'seen', 0)",
    ),
    "a generator with clean-up": env_source(
        "def walk():\n    try:\n        while True: yield random.random()\n    finally: random.random()",
        "self.walk = walk()\nout = next(self.walk)",
        "self.walk = walk() if self.turn % 2 else self.walk\nout = [next(self.walk), random.random()]",
    ),
}  # fmt: skip
"""By what is tried: sources whose module is run for every instance."""
