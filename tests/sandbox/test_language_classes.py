"""What sources may do in and with classes: each snippet must give what plain Python gives."""

from __future__ import annotations

import sys
import types

import pytest

from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.runtime import Runtime

RUNTIME = Runtime()

ALLOWED = {
    "enums whose members set attributes while the class is made": """
from enum import Enum, IntFlag
class Planet(Enum):
    EARTH = (5.9, 6.3)
    MARS = (0.6, 3.3)
    def __init__(self, mass, radius):
        self.mass = mass
        self._radius = radius
    @property
    def density(self): return self.mass / self._radius
class Coin(Enum):
    PENNY = (1, "p")
    DIME = (10, "d")
    def __new__(cls, value, sign):
        member = object.__new__(cls)
        member._value_ = value
        member.sign = sign
        return member
class Move(str, Enum):
    UP = "up"
    DOWN = "down"
    def __str__(self): return self.value
result = [Planet.MARS.density, Planet.EARTH._radius, Coin(10).sign, Coin.PENNY.value, str(Move.UP), Move("down"),
    Move.UP == "up", [m.name for m in Move]]
""",
    "enums with hooks of their own": """
from enum import Enum, auto
class Level(Enum):
    @staticmethod
    def _generate_next_value_(name, start, count, last): return f"{count}-{name.lower()}"
    LOW = auto()
    HIGH = auto()
    @classmethod
    def _missing_(cls, value): return cls.LOW if value == "?" else None
result = [Level("?"), Level.HIGH.value]
try: Level("nothing")
except ValueError as e: result.append(str(e))
""",
    "frozen dataclasses that set their own fields": """
from dataclasses import dataclass, fields
@dataclass(frozen=True)
class P:
    x: int
    _y: int = 0
    def __post_init__(self):
        object.__setattr__(self, "x", self.x * 2)
        object.__setattr__(self, "_y", self.x + 1)
p = P(4)
result = [p.x, p._y, [f.name for f in fields(p)], [getattr(p, f.name) for f in fields(P)],
    [f.default for f in fields(P)][1]]
try: p.x = 1
except Exception as e: result.append(type(e).__name__)
""",
    "a class body finds a global until it binds the name itself": """
_WORDS = ["a"]
_count = 1
class A:
    _WORDS = _WORDS + ["b"]
    _copy = [w for w in _WORDS]
    _count = _count + 1
    def _twice(self, n=_count): return n * 2
    for _i in range(3):
        if _i: _last = _seen + _i
        _seen = _i
    _kept: int = _count
class B:
    def _helper(f): return f
    @_helper
    def _run(self): return "ran"
result = [A._WORDS, A._copy, A._count, A()._twice(), A._last, A._kept, _WORDS, _count, B()._run()]
""",
    "names made of underscores only": """
total = 0
for _ in range(3):
    for __ in range(2):
        for ___ in range(2): total += _ * __ * ___
class A:
    def f(self, _, __): return _ + __
_, __ = 1, 2
result = [total, A().f(_, __)]
""",
    "typed dictionaries": """
from typing import TypedDict
class Move(TypedDict, total=False):
    row: int
    column: "int"
m = Move(row=1)
m["column"] = 2
result = [m, dict(m), Move.__name__]
""",
    "names and modules of classes": """
class _Hidden:
    class _Inner: pass
    def _method(self): pass
result = [_Hidden.__name__, _Hidden._Inner.__qualname__, _Hidden._method.__name__, _Hidden.__module__,
    _Hidden().__class__.__module__, type(_Hidden()).__name__]
""",
    "private names meet keywords, slots and named tuples": """
from collections import namedtuple
P = namedtuple("P", "x y")
class A:
    __slots__ = ("_a", "__b", "c")
    def __init__(self, _a=1, **_rest): self._a, self.__b, self.c = _a, 2, _rest
    def _sum(self): return self._a + self.__b
p = P(1, 2)
result = [A(_a=3)._sum(), A(_z=4).c, p._replace(x=5)._asdict(), P._make([7, 8]), P._fields]
""",
    "format with numbered paths": """
class A:
    def __init__(self): self.x = 1; self._y = [2, 3]
result = ["{.x} {[1]} {}".format(A(), [4, 5], 6), "{a.x}{a._y[1]}".format(a=A()), "{:>{w}}".format(7, w=3)]
for bad in ("{.x} {0}", "{0.x} {}", "{9.x}", "{.x}"):
    try: result.append(bad.format(*[A()][:bad != "{.x}"]))
    except (IndexError, ValueError) as e: result.append(type(e).__name__)
""",
    "calls with stars, subscripts and unpacking": """
def f(*a, k=0, **kw): return a, k, sorted(kw)
first, *rest = (x for x in range(4))
(a, [b, *c]), d = (1, [2, 3, 4]), 5
grid = [[0] * 3 for _ in range(2)]
grid[1][2] = grid[0][0] = 7
grid[0][1:] = [8, 9]
del grid[1][0]
x = y = z = []
x += [1]
result = [f(*rest, 9, k=1, **{"m": 1, "n": 2}), first, rest, a, b, c, d, grid, x is z,
    [*rest, *c], {**{"a": 1}, "b": 2}]
""",
    "chained assignment with tuple targets": """
calls = []
def f(n): calls.append(n); return n
a = {}
N, M = a["N"], a["M"] = f(1), f(2)
(p, q), r = s = (f(3), f(4)), f(5)
class C: u = v = f(6)
C.u, C.v = t = f(7), f(8)
result = [N, M, a, p, q, r, s, C.u, C.v, t, calls]
""",
}


def plain(source: str) -> object:
    module = types.ModuleType("env")
    sys.modules["env"] = module  # where `dataclasses` looks a class' module up
    try:
        exec(compile(source, "<plain>", "exec", dont_inherit=True), module.__dict__)
    finally:
        del sys.modules["env"]
    return module.__dict__["result"]


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED)
def test_an_allowed_snippet_gives_what_plain_python_gives(source: str) -> None:
    compiled = compile_source(source)
    assert compiled.violations == ()
    assert compiled.code is not None
    found = RUNTIME.instantiate(compiled.code, 0)["result"]
    assert repr(found) == repr(plain(source))
