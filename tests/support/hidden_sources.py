"""Sources whose modules hold something that may change in a place that is easily overlooked."""

from __future__ import annotations

import sys

from program_sources import env_source

HIDDEN = {
    "list.extend with a constant": env_source(
        "L = []",
        "list.extend(L, [1])\nout = len(L)",
        "list.extend(L, [1])\nout=len(L)",
    ),
    "dict.update with a constant": env_source(
        "D = {'n': 0}",
        "dict.update(D, n=D['n']+1)\nout = D['n']",
        "out=D['n']",
    ),
    "set.update with a constant": env_source(
        "D = {0}",
        "set.update(D, [len(D)])\nout = len(D)",
        "out=len(D)",
    ),
    "set.intersection_update with a constant": env_source(
        "D = {0,1,2,3}",
        "set.intersection_update(D, list(D)[1:])\nout = len(D)",
        "out=len(D)",
    ),
    "an index that is a slice object": env_source(
        "L = [[0]]",
        "s = slice(None)\nfor row in L[s]: row.append(1)\nout = len(L[0])",
        "out=len(L[0])",
    ),
    "an index that is a slice object from __getitem__": env_source(
        "L = [[0]]\nclass G:\n    def __getitem__(self, s): return s",
        "s = G()[:]\nfor row in L[s]: row.append(1)\nout = len(L[0])",
        "out=len(L[0])",
    ),
    "a docstring that is a list": env_source(
        "__doc__ = []",
        "__doc__.append(1)\nout = len(__doc__)",
        "out=len(__doc__)",
    ),
    "a docstring of a class that is a list": env_source(
        "",
        "self.__doc__.append(1)\nout = len(self.__doc__)",
        "out=1",
        members="__doc__ = []",
    ),
    "a docstring of a property that is a list": env_source(
        "",
        "type(self).p.__doc__.append(1)\nout = len(type(self).p.__doc__)",
        "out=1",
        members="p = property(lambda self: 1, None, None, [])",
    ),
    "total_ordering on a class of the module": env_source(
        "from functools import total_ordering\nclass P:\n    def __lt__(self, o): return False",
        "try: out = P() >= P()\nexcept TypeError: out = 'no'\ntotal_ordering(P)",
        "out=1",
    ),
    "dataclass on a class of the module": env_source(
        "from dataclasses import dataclass\nclass P:\n    x: int = 3",
        "try: out = P(5).x\nexcept TypeError: out = 'no'\ndataclass(P)",
        "out=1",
    ),
    "abstractmethod on a function of the module": env_source(
        "from abc import ABC, abstractmethod\ndef f(self): pass",
        "class L(ABC): g = f\ntry: out = bool(L())\nexcept TypeError: out = 'no'\nabstractmethod(f)",
        "out=1",
    ),
    "wraps on a function of the module": env_source(
        "from functools import wraps\ndef f(self): pass\ndef g(self): pass",
        "out = f.__name__\nwraps(g)(f)",
        "out=1",
    ),
    "wraps above a decorator that gives a function of the module": env_source(
        "from functools import wraps\ndef f(self): pass\ndef g(self): pass\ndef give(_): return f",
        "out = f.__name__\n@wraps(g)\n@give\ndef h(): pass",
        "out=1",
    ),
    "wraps by a computed name": env_source(
        "import functools\ndef f(self): pass\ndef g(self): pass",
        "out = f.__name__\ngetattr(functools, 'wra' + 'ps')(g)(f)",
        "out=1",
    ),
    "a slot of a frozen dataclass that is no field": env_source(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass T:\n"
        "    __slots__ = ('x', 'log')\n    x: int\n"
        "    def __post_init__(self): object.__setattr__(self, 'log', [])\nC = T(1)",
        "C.log.append(1)\nout = len(C.log)",
        "out=1",
    ),
    "a slot of a member": env_source(
        "from enum import Enum\nclass K(Enum):\n    __slots__ = ('log',)\n"
        "    def __init__(self, v): self.log = []\n    A = 1",
        "K.A.log.append(1)\nout = len(K.A.log)",
        "out=1",
    ),
    "a member that is a list": env_source(
        "from enum import Enum\nclass K(list, Enum):\n    def __new__(cls, v):\n"
        "        ob = list.__new__(cls)\n        ob._value_ = v\n        return ob\n"
        "    def __init__(self, v): pass\n    A = 1",
        "K.A.append(1)\nout = len(K.A)",
        "out=1",
    ),
    "a dict behind a view by a pattern": env_source(
        "D = {'k': 0}\nclass Thief:\n    def __eq__(self, other):\n"
        "        other.update(k=other['k'] + 1)\n        return True",
        "match D.keys():\n    case object(mapping=m): m == Thief()\nout = D['k']",
        "out=1",
    ),
    "the defaults of a named tuple by a pattern": env_source(
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int = 0",
        "match P:\n    case object(_field_defaults=d): d['x'] += 1\nout = d['x']",
        "out=1",
    ),
    "the defaults of a named tuple by a computed name": env_source(
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int = 0",
        "d = getattr(P, '_field_' + 'defaults')\nd['x'] += 1\nout = d['x']",
        "out=1",
    ),
    "an abstract class that registers by a computed name": env_source(
        "from abc import ABC\nclass Base(ABC): pass\nclass A: pass",
        "out = isinstance(A(), Base)\ngetattr(Base, 'regis' + 'ter')(A)",
        "out=1",
    ),
    "an abstract class that registers by methodcaller": env_source(
        "from abc import ABC\nfrom operator import methodcaller\nclass Base(ABC): pass\nclass A: pass",
        "out = isinstance(A(), Base)\nmethodcaller('register', A)(Base)",
        "out=1",
    ),
    "a generator that closes what it delegates to": env_source(
        "import random\nclass It:\n    def __iter__(self): return self\n"
        "    def __next__(self): return random.random()\n    def close(self): random.random()\n"
        "def walk(): yield from It()",
        "self.walk = walk()\nout = next(self.walk)",
        "self.walk = walk() if self.turn % 2 else self.walk\nout = [next(self.walk), random.random()]",
    ),
    "a __deepcopy__ that is a lambda": env_source(
        "from copy import deepcopy\nfrom enum import Enum\nclass K(Enum):\n"
        "    __deepcopy__ = lambda self, memo: [\n"
        "        v.append(1) for kept in memo.values() if kept and type(kept[0]) is list for v in kept\n"
        "    ] and self\n"
        "    A = 1\nL = [[0], K.A]",
        "deepcopy(L)\nout = len(L[0])",
        "out=1",
    ),
    "a __deepcopy__ that is bound by its name": env_source(
        "from copy import deepcopy\nfrom dataclasses import dataclass\ndef grab(self, memo):\n"
        "    for kept in list(memo.values()):\n"
        "        if type(kept) is list and kept and type(kept[0]) is list: kept[0].append(1)\n"
        "    return self\n@dataclass(frozen=True)\nclass K:\n    x: int\n    __deepcopy__ = grab\n"
        "L = [[0], K(1)]",
        "deepcopy(L)\nout = len(L[0])",
        "out=1",
    ),
    "an operator of a kind of OrderedDict": env_source(
        "from collections import OrderedDict\nD = {'k': 0}\nclass O(OrderedDict):\n"
        "    def __init__(self, other=()):\n        if other: other.update(k=other['k']+1)",
        "D | O()\nout = D['k']",
        "out=1",
    ),
    "an operator of a kind of defaultdict": env_source(
        "from collections import defaultdict\nD = {'k': 0}\nclass O(defaultdict):\n"
        "    def __init__(self, f=None, other=()):\n        if other: other.update(k=other['k']+1)",
        "D | O()\nout = D['k']",
        "out=1",
    ),
    "a text with attributes in a compiled pattern": env_source(
        "import re\nclass S(str): pass\nP = re.compile(S('a'))",
        "p = P\np.pattern.seen = getattr(p.pattern, 'seen', 0) + 1\nout = p.pattern.seen",
        "out=1",
    ),
    "a text with attributes in a time zone": env_source(
        "from datetime import timezone, timedelta\nclass S(str): pass\n"
        "P = timezone(timedelta(0), S('a'))",
        "p = P.tzname(None)\np.seen = getattr(p, 'seen', 0) + 1\nout = p.seen",
        "out=1",
    ),
    "a number with attributes in a fraction": env_source(
        "from fractions import Fraction\nclass N(int):\n    def __mul__(self, o): return self\n"
        "    def __rmul__(self, o): return self\n    def __floordiv__(self, o): return self\n"
        "    @property\n    def numerator(self): return self\nP = Fraction(N(3), 1)",
        "p = P.numerator\np.seen = getattr(p, 'seen', 0) + 1\nout = p.seen",
        "out=1",
    ),
    "an object in an alias of typing": env_source(
        "from typing import List\nclass N:\n    n = 0\n    def __repr__(self):\n        self.n += 1\n"
        "        return str(self.n)\nX = List[N()]",
        "out = repr(X)",
        "out=1",
    ),
    "an object in an alias of list": env_source(
        "class N:\n    n = 0\n    def __repr__(self):\n        self.n += 1\n"
        "        return str(self.n)\nX = list[N()]",
        "out = repr(X)",
        "out=1",
    ),
    "a NewType named by a list": env_source(
        "from typing import NewType\nX = NewType([], int)",
        "X.__name__.append(1)\nout = len(X.__name__)",
        "out=1",
    ),
    "a text with attributes in the cache of re": env_source(
        "import re\nclass S(str): pass",
        "p = re.compile(S('hello'))\nq = p.pattern\nout = getattr(q, 'seen', 0)\nq.seen = out + 1",
        "out=1",
    ),
    "__init__ of a frozen dataclass": env_source(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass T:\n    x: int\nC = T(0)",
        "C.__init__(C.x + 1)\nout = C.x",
        "out=C.x",
    ),
    "__init__ of a frozen dataclass by another name": env_source(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass T:\n    x: int\n"
        "@dataclass(frozen=True)\nclass U(T):\n    again = T.__init__\nC = U(0)",
        "C.again(C.x + 1)\nout = C.x",
        "out=C.x",
    ),
    "__init__ of a frozen dataclass after its __new__": env_source(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass T:\n    x: int\n"
        "    def __new__(cls, x): return super().__new__(cls) if x == 0 else C\nC = T(0)",
        "T(C.x + 1)\nout = C.x",
        "out=C.x",
    ),
    "__init__ of a frozen dataclass by super": env_source(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass T:\n    x: int\n"
        "@dataclass(frozen=True)\nclass U(T):\n    def up(self): super().__init__(self.x + 1)\nC = U(0)",
        "C.up()\nout = C.x",
        "out=C.x",
    ),
    "__init__ of a frozen dataclass with slots": env_source(
        "from dataclasses import dataclass\n@dataclass(frozen=True, slots=True)\nclass T:\n    x: int\n"
        "C = T(0)",
        "f = C.__init__\nf(C.x + 1)\nout = C.x",
        "out=C.x",
    ),
    "__init__ of a member that is a dataclass": env_source(
        "from dataclasses import dataclass\nfrom enum import Enum\n@dataclass\nclass T:\n    x: int\n"
        "class K(T, Enum):\n    A = 1",
        "K.A.__init__(K.A.x + 1)\nout = K.A.x",
        "out=1",
    ),
    "a property that another class binds": env_source(
        "class P:\n    @property\n    def a(self): return 1",
        "try: P().a = 1\nexcept AttributeError as e: out = str(e)\nclass L: other = P.a",
        "out=1",
    ),
    "a copy that writes to a member": env_source(
        "import copy\nfrom enum import Enum\nclass K(Enum):\n    A = 1\nclass B:\n"
        "    def __new__(cls, *a): return object.__new__(cls) if a else K.A",
        "out = getattr(K.A, 'seen', 0)\nb = B(1)\nb.seen = out + 1\ncopy.copy(b)",
        "out=1",
    ),
    "a generic class whose objects are members": env_source(
        "from enum import Enum\nfrom typing import Generic, TypeVar\nT = TypeVar('T')\nclass K(Enum):\n"
        "    A = 1\nclass G(Generic[T]):\n    def __new__(cls): return K.A",
        "out = list(vars(K.A))\nG[int]()",
        "out=1",
    ),
    "an enum whose __new__ gives the member of another": env_source(
        "from enum import Enum\nclass K(Enum):\n    A = 1",
        "out = K.A.value\nn = out + 1\nclass L(Enum):\n    def __new__(cls, v): return K.A\n    B = n",
        "out=1",
    ),
}  # fmt: skip
"""By what is tried: sources whose module is run for every instance."""

if sys.version_info < (3, 12):  # later ones ask for a str
    HIDDEN["a TypeVar named by a list"] = env_source(
        "from typing import TypeVar\nX = TypeVar([])",
        "X.__name__.append(1)\nout = len(X.__name__)",
        "out=1",
    )
