"""What sources may do: each snippet must give what plain Python gives."""

from __future__ import annotations

import pytest

from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.runtime import Runtime

RUNTIME = Runtime()

ALLOWED = {
    "private names of instances and classes": """
class A:
    _limit = 3
    __secret = 4
    def __init__(self): self._x = 1; self.__y = 2
    def _step(self): self._x += 1; return self._x, self.__y, self._limit, self.__secret
    twice = _limit * 2
a = A()
result = [a._step(), a._x, A._limit, A.twice, a._A__secret, vars(a)]
""",
    "private names in a class body come from every binding form": """
class Manager:
    def __enter__(self): return "entered"
    def __exit__(self, *_): return None
class A:
    import math as _m
    for _i in range(3): pass
    with Manager() as _f: pass
    try: 1 / 0
    except ZeroDivisionError as _e: _kept = str(_e)
    _a, (_b, *_c) = 1, (2, 3)
    match {"k": 5, "l": 6}:
        case {"k": _k, **_rest}: pass
    class _Inner: z = 9
    def _get(self): return self._i, self._a, self._b, self._c, self._k, self._rest, self._Inner.z
result = [A()._get(), A._m.floor(2.5), A._kept, A._f]
""",
    "a comprehension in a class body sees only its first iterable": """
_n = 10
class A:
    _n = 3
    _squares = [i * _n for i in range(_n)]
result = A._squares
""",
    "private slots": """
class A:
    __slots__ = ("_x", "y")
    def __init__(self): self._x, self.y = 1, 2
a = A()
try: a.z = 1
except AttributeError: result = [a._x, a.y]
""",
    "getattr and friends follow private names": """
class A:
    def __init__(self): self._x = 1
a = A()
setattr(a, "_y", 2)
result = [getattr(a, "_x"), a._y, hasattr(a, "_z"), getattr(a, "_z", 7), dict(a.__dict__)]
delattr(a, "_y")
result.append(hasattr(a, "_y"))
""",
    "a chained tuple assignment evaluates its value once": """
calls = []
def f(): calls.append(1); return (1, 2)
d = {}
a, b = d["x"], d["y"] = p = f()
result = [a, b, d, p, len(calls)]
""",
    "augmented assignment to items and attributes": """
class A: n = 1; now = 2; metadata = 3
a = A(); d = {"k": [1]}; d["k"] += [2]; a.n += 5; a.n *= 2; a.now += 1; a.metadata += 1
x = 3; x **= 2
result = [d, a.n, x, a.now, a.metadata]
""",
    "annotations of unknown names": """
from __future__ import annotations
def f(x: Nope, *args: Missing, k: "What" = 3) -> Gone: return x, args, k
y: Unknown = 4
z: Unknown
class A:
    x: Never = 1
    y: "Never"
    def __init__(self): self.q: Nope = 2
result = [f(1, 2), y, A.x, A().q]
""",
    "dataclasses": """
from dataclasses import dataclass, field, replace, asdict, fields, InitVar
from typing import ClassVar
@dataclass(order=True)
class P:
    x: int
    y: int = 0
    tags: list = field(default_factory=list)
    K: ClassVar[int] = 3
    scale: InitVar[int] = 2
    _p: int = 4
    def __post_init__(self, scale): self.x *= scale
@dataclass(frozen=True, slots=True)
class Q:
    a: int
    b: str = "b"
p = P(1, _p=8)
result = [repr(p), p < P(2), p == P(1, _p=8), P.K, [f.name for f in fields(Q)], asdict(Q(1)),
    replace(Q(1), b="c"),
          len({Q(1), Q(1)}), repr(P(3))]
""",
    "enums": """
from enum import Enum, IntEnum, Flag, StrEnum, auto, unique
@unique
class C(Enum):
    RED = "r"
    BLUE = "b"
    def title(self): return self.name.title()
class N(IntEnum):
    A = auto()
    B = auto()
class F(Flag):
    X = auto()
    Y = auto()
class S(StrEnum):
    A = auto()
result = [C("r"), C["BLUE"].title(), [c.value for c in C], N.A + 1, N.B > N.A, (F.X | F.Y).value,
    F.X in (F.X | F.Y),
          list(C.__members__), str(S.A), isinstance(C.RED, Enum), C.RED._value_, f"{C.RED}",
    repr(N.A), str(F.X)]
""",
    "named tuples": """
from collections import namedtuple
from typing import NamedTuple
P = namedtuple("P", "x y", defaults=[5])
class Q(NamedTuple):
    a: int
    b: str = "z"
    def both(self): return self.a, self.b
result = [P(1), P(1)._replace(x=2), P(1)._asdict(), P._fields, Q(1), Q(1).both(),
    Q(1)._replace(b="y"), P(1) == (1, 5)]
""",
    "data-model methods and inheritance": """
class V:
    def __init__(self, *xs): self.xs = xs
    def __len__(self): return len(self.xs)
    def __getitem__(self, i): return self.xs[i]
    def __iter__(self): return iter(self.xs)
    def __add__(self, o): return V(*self.xs, *o.xs)
    __radd__ = __add__
    def __eq__(self, o): return self.xs == o.xs
    __hash__ = None
    def __call__(self, k): return [x * k for x in self]
    def __repr__(self): return f"V{self.xs!r}"
    def __contains__(self, x): return x in self.xs
    def __enter__(self): return self
    def __exit__(self, t, e, tb): return t is ZeroDivisionError
class W(V):
    made = []
    def __init_subclass__(cls, **kw): super().__init_subclass__(**kw); cls.made.append(cls.__name__)
    def __init__(self, *xs): super().__init__(*xs); V.__init__(self, *xs, 0)
    def __getitem__(self, i): return super().__getitem__(i) + 1
class X(W): pass
with V(1) as v: 1 / 0
result = [len(W(1, 2)), W(1)[0], V(1) + V(2), V(1, 2)(3), 2 in V(1, 2), W.made, v, V(1).__len__(),
    X.__name__]
""",
    "classes derived from builtin and library classes": """
from collections import OrderedDict, UserDict, defaultdict
from abc import ABC, abstractmethod
from typing import Generic, TypeVar, Protocol
T = TypeVar("T")
class D(dict):
    def __missing__(self, k): return k * 2
    def __setitem__(self, k, v): super().__setitem__(k, v + 1)
class E(ValueError):
    def __init__(self, code): super().__init__(f"code {code}"); self.code = code
class B(ABC):
    @abstractmethod
    def go(self): ...
    @property
    def size(self): return self._size
    @size.setter
    def size(self, v): self._size = v
class G(B, Generic[T]):
    def go(self): return "went"
class S(str):
    def __new__(cls, s): return super().__new__(cls, s.upper())
class Pr(Protocol):
    def go(self): ...
d = D(); d["a"] = 1
g = G(); g.size = 4
try: B(); made = True
except TypeError: made = False
try: raise E(3)
except E as e: caught = (str(e), e.code, e.args)
result = [d, d["zz"], caught, g.go(), g.size, made, S("ab"), isinstance(g, B)]
""",
    "closures with nonlocal and global": """
total = 0
def outer():
    n = 0
    def inner():
        nonlocal n
        global total
        n += 1; total += n
        return n
    inner()
    return inner()
result = [outer(), total]
""",
    "match statements": """
class P:
    def __init__(self): self.x, self._y = 1, 2
def f(v):
    match v:
        case 0 | 1: return "small"
        case int(n) if n > 100: return n
        case str(s): return s
        case [a, *rest]: return a, rest
        case {"k": k, **more}: return k, more
        case P(x=1, _y=y): return y
        case None: return "none"
        case _: return "other"
result = [f(v) for v in (0, 500, "s", [1, 2, 3], {"k": 1, "z": 2}, P(), None, 2.5)]
""",
    "format with paths, private names and nested specs": """
class A:
    def __init__(self): self.x = {"k": 5}; self._y = 2; self.z = 3.14159
a = A()
result = ["{0.x[k]} {0._y:>3} {1!r} {0.z:.{2}f}".format(a, "s", 2), "{} {:>{}} {{}}".format(1, 2,
    4), "{a}".format_map({"a": 1}),
          "{0[1]}-{n}".format([1, 2], n=3), list(map("<{}>".format, [1, 2])), str.format("{:05d}",
    42), "{:.1%}".format(0.5),
          "%s %(a)s" % {"a": 1} if 0 else "%d" % 3, f"{a.x['k']:>{4}} {a._y!r}"]
""",
    "format of one's own": """
class A:
    format = "csv"
    def register(self, x): return x
class B(A):
    def format(self, x): return x
    def register(self, x): return super().register(x) + 1
class S(str):
    def shout(self): return super().format(1).upper()
result = [A().format, B().format(3), B().register(1), S("x{}").shout()]
""",
    "generators, decorators, lambdas, walrus, comprehensions": """
from functools import wraps, lru_cache, partial, reduce, total_ordering, cached_property
from contextlib import contextmanager
def deco(f):
    @wraps(f)
    def inner(*a, **k): inner.calls += 1; return f(*a, **k)
    inner.calls = 0
    return inner
@deco
def add(a, b=2, /, *, c=3):
    "Adds."
    return a + b + c
def gen(n):
    got = yield 1
    yield from range(n)
    return got
@contextmanager
def cm():
    yield "in"
@total_ordering
class O:
    def __init__(self, v): self.v = v
    def __lt__(self, o): return self.v < o.v
    def __eq__(self, o): return self.v == o.v
    @cached_property
    def dear(self): return self.v * 2
@lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
with cm() as w: pass
result = [add(1), add.calls, add.__name__, add.__doc__, list(gen(3)), fib(50), w, O(2) >= O(1),
    O(3).dear, (y := 5) + y,
          [(lambda q, k=i: q + k)(1) for i in range(3)], {k: v for k, v in zip("ab", (1, 2))},
    reduce(max, [1, 4, 2]), partial(pow, 2)(5)]
""",
    "type and class questions": """
class A: pass
a = A()
result = [type(a).__name__, type(a) is A, type(3) is int, a.__class__ is A, isinstance(A, type),
    type(3).__name__, type(None).__name__,
          isinstance(3, (int, str)), issubclass(bool, int), type(x for x in ()).__name__,
    type([]) == list, callable(A)]
""",
    "imports in every form": """
from __future__ import annotations
import math, collections.abc, re as regex
import collections
from itertools import *
from typing import List, Dict
def f():
    from heapq import heappush, heappop
    h = []; heappush(h, 2); heappush(h, 1)
    return heappop(h)
result = [math.sqrt(4), isinstance([], collections.abc.Sequence), regex.sub("a", "b", "aa"),
    list(islice(count(), 3)), f(), collections.Counter("aab")]
""",
    "seeded randomness": """
import random
from random import Random
random.seed(42)
r = Random(7)
class Mine(random.Random):
    def roll(self): return self.randint(1, 6)
xs = list(range(10)); random.shuffle(xs)
state = random.getstate(); a = random.random(); random.setstate(state)
result = [xs, a == random.random(), r.random(), r.choice("abc"), Mine(3).roll(),
    random.sample(range(100), 3), random.gauss(0, 1), Random("s").random()]
""",
    "copying": """
import copy, random
class A:
    def __init__(self): self._g = [[1]]; self.rng = random.Random(1)
a = A(); b = copy.deepcopy(a); c = copy.copy(a); b._g[0][0] = 9
result = [a._g, b._g, c._g is a._g, a.rng.random() == b.rng.random()]
""",
    "tools of the library": """
import json, statistics, operator, string, datetime, decimal, fractions, textwrap, heapq, bisect
import hashlib, ast, io, copy, array
class A: pass
a = A(); a.b = A(); a.b._c = 3
result = [json.loads(json.dumps({"a": [1, None]})), statistics.mean([1, 2, 3]),
    operator.attrgetter("b._c")(a), operator.itemgetter(1)([1, 2]),
          operator.methodcaller("upper")("a"), datetime.date(2024, 2,
    28) + datetime.timedelta(days=2), decimal.Decimal("1") / 3,
          fractions.Fraction(1, 3) + 1, bisect.bisect([1, 2], 1), hashlib.md5(b"a").hexdigest(),
    ast.literal_eval("[1]"),
    datetime.datetime.strptime("2024-01-02", "%Y-%m-%d"),
    copy.copy(array.array("i", [1])), copy.deepcopy(datetime.date(2024, 1, 2)), io.StringIO("x").read()]
""",
    "try in all its parts": """
out = []
def f(k):
    try:
        if k: raise KeyError(k)
        return "ok"
    except (KeyError, ValueError) as e: out.append(repr(e))
    else: out.append("else")
    finally: out.append("finally")
result = [f(0), f(1), out]
""",
}


def plain(source: str) -> object:
    namespace: dict[str, object] = {"__name__": "env"}
    exec(compile(source, "<plain>", "exec", dont_inherit=True), namespace)
    return namespace["result"]


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED)
def test_an_allowed_snippet_gives_what_plain_python_gives(source: str) -> None:
    compiled = compile_source(source)
    assert compiled.violations == ()
    assert compiled.code is not None
    found = RUNTIME.instantiate(compiled.code, 0)["result"]
    assert repr(found) == repr(plain(source))
