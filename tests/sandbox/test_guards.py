"""Attacks that only show at run time: each snippet must raise, and must leave `leaked` empty."""

from __future__ import annotations

import collections
import copy
import fractions
import json
import typing

import pytest

from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.runtime import Runtime

RUNTIME = Runtime()

ATTACKS = {
    "dynamic dunder": (
        "leaked.append(getattr((), '__cl' + 'ass__').__name__ and getattr(int, '__ba' + 'se__'))"
    ),
    "hasattr on a refused name tells nothing": (
        "if hasattr(len, '__se' + 'lf__'): leaked.append(1)\nraise ValueError"
    ),
    "lying str subclass": """
class S(str):
    def startswith(self, *a): return False
    def __eq__(self, o): return False
    def __hash__(self): return 0
leaked.append(getattr(1, S('__class__')))
""",
    "renamed names cannot be spelled": "class A: _x = 1\nleaked.append(getattr(A, 'sg0' + '_x'))",
    "setattr of a dunder": "class A: pass\nsetattr(A, '__getattr' + '__', lambda s, n: n)",
    "setattr on a library class": "import collections\nsetattr(collections.Counter, 'hacked', 1)",
    "setattr on a module": "import math\nsetattr(math, 'pi', 3)",
    "delattr on a module": "import json\ndelattr(json, 'loads')",
    "assignment to a module": "import json\njson.loads = None",
    "augmented assignment to a module": "import math\nmath.pi += 1",
    "module init": "import math\nmath.__init__('os')",
    "library method replaced": "from fractions import Fraction\nFraction.limit_denominator = None",
    "property of the library": (
        "from fractions import Fraction\nFraction.numerator.__init__(lambda s: 42)"
    ),
    "property class init": (
        "from fractions import Fraction\nproperty.__init__(Fraction.numerator, lambda s: 42)"
    ),
    "property subclass init": "class P(property): pass\nleaked.append(P)",
    "partial subclass": "import functools\nclass P(functools.partial): pass",
    "alias of a class that is no base": (
        "import functools\nclass P(functools.cached_property[int]): pass"
    ),
    "type as a base": "class M(type): pass",
    "type with three arguments": "leaked.append(type('X', (), {'__reduce_ex__': 1}))",
    "the class of an opaque object makes nothing": "leaked.append(type(lambda: 0)())",
    "the class behind an opaque type": "leaked.append(type(lambda: 0).real)",
    "the class behind an opaque type, private": "leaked.append(type(lambda: 0)._real)",
    "typing aliases": "import typing\nleaked.append(type(typing.List[int])(lambda: 0, ()))",
    "functional named tuple": (
        "from typing import NamedTuple\nleaked.append(NamedTuple('N', [('a=print(1)', int)]))"
    ),
    "named tuple with a lying name": """
from collections import namedtuple
class S(str):
    def isidentifier(self): return True
    def __str__(self): return self
leaked.append(namedtuple('N', [S("a, b=print('x')")]))
""",
    "named tuple with an interpreter name": (
        "from collections import namedtuple\nleaked.append(namedtuple('N', 'gi_frame'))"
    ),
    "functional TypedDict": (
        "from typing import TypedDict\nleaked.append(TypedDict('T', {'a b': int}))"
    ),
    "functional Enum": "from enum import Enum\nleaked.append(Enum('E', {'__reduce_ex__': 1}))",
    "functional Enum of one's own": (
        "from enum import Enum\nclass B(Enum): pass\nleaked.append(B('E', {'a': 1}))"
    ),
    "dataclass of a library class": (
        "from dataclasses import dataclass\n"
        "from fractions import Fraction\n"
        "leaked.append(dataclass(Fraction))"
    ),
    "total_ordering of a library class": (
        "import functools, collections\n"
        "leaked.append(functools.total_ordering(collections.Counter))"
    ),
    "abstractmethod of a library function": (
        "from abc import abstractmethod\nimport json\nleaked.append(abstractmethod(json.dumps))"
    ),
    "virtual subclass of a library class": (
        "from collections.abc import Sequence\nclass A: pass\nSequence.register(A)"
    ),
    "virtual subclass through typing": "import typing\nclass A: pass\ntyping.Sequence.register(A)",
    "live instance dict": "class A: pass\na = A()\na.__dict__['__reduce_ex__'] = 1",
    "instance dict update": "class A: pass\nA().__dict__.update(x=1)",
    "vars of a module": "import math\nleaked.append(vars(math))",
    "vars of a function": "def f(): pass\nleaked.append(vars(f))",
    "vars of a class": "class A: pass\nleaked.append(vars(A))",
    "format path": "leaked.append('{0.__class__.__base__}'.format(1))",
    "format_map path": "leaked.append('{e.__class__.__base__}'.format_map({'e': 1}))",
    "format path in a nested spec": "leaked.append('{0:{1.__class__.__base__}}'.format('a', 5))",
    "format through map": "leaked.append(list(map(str.format, ['{0.__globals__}'], [lambda: 0])))",
    "format of a str subclass": (
        "class S(str): pass\nleaked.append(S('{0.__globals__}').format(lambda: 0))"
    ),
    "format through super": """
class S(str):
    def go(self): return super().format(lambda: 0)
leaked.append(S('{0.__globals__}').go())
""",
    "format through unbound super": (
        "class S(str): pass\nleaked.append(super(S, S).format('{0.__globals__}', lambda: 0))"
    ),
    "format through a captured comparison": """
class Evil:
    def __eq__(self, other):
        leaked.append(other)
        return True
class A: format = Evil()
A().format
raise ValueError
""",
    "format through attrgetter": (
        "import operator\n"
        "leaked.append(operator.attrgetter('format')('{0.__globals__}')(lambda: 0))"
    ),
    "format through methodcaller": (
        "import operator\n"
        "leaked.append(operator.methodcaller('format', lambda: 0)('{0.__globals__}'))"
    ),
    "format through getattr": "leaked.append(getattr('{0.__globals__}', 'for' + 'mat')(lambda: 0))",
    "attrgetter dunder": (
        "import operator\nleaked.append(operator.attrgetter('__class__.__base__')(1))"
    ),
    "mappingproxy comparison": """
import re
class Evil:
    def __eq__(self, other):
        other['hacked'] = 1
        return True
p = re.compile('(?P<a>x)')
p.groupindex == Evil()
leaked.extend(['hacked'] if 'hacked' in p.groupindex else [])
raise ValueError
""",
    "enum members comparison": """
from enum import Enum
class E(Enum): A = 1
class Evil:
    def __eq__(self, other):
        other['hacked'] = 1
        return True
E.__members__ == Evil()
leaked.extend(['hacked'] if 'hacked' in E.__members__ else [])
raise ValueError
""",
    "object behind an AttributeError": (
        "class A: pass\ntry: A().x\nexcept AttributeError as e: leaked.append(e.obj)"
    ),
    "exception traceback": (
        "try: 1 / 0\nexcept ZeroDivisionError as e: leaked.append(getattr(e, '__trace' + 'back__'))"
    ),
    "traceback through __exit__": """
class C:
    def __enter__(self): return self
    def __exit__(self, t, e, tb): leaked.append(getattr(tb, 'tb_' + 'frame'))
with C(): 1 / 0
""",
    "generator frame": "leaked.append(getattr((x for x in ()), 'gi' + '_frame'))",
    "decimal context": "import decimal\ndecimal.getcontext().prec = 3",
    "real clock by name": "import datetime\nleaked.append(getattr(datetime.datetime, 'now')())",
    "real clock by methodcaller": (
        "import operator, datetime\nleaked.append(operator.methodcaller('today')(datetime.date))"
    ),
    "hook rebuilding": "import copy\nleaked.append(copy.copy(getattr(copy, '_copy_dispatch')))",
    "private library names": "import collections\nleaked.append(collections._sys)",
    "private library names by getattr": "import random\nleaked.append(getattr(random, '_os'))",
    "object.__new__ of what is not one's own": "leaked.append(property.__new__(property))",
    "protocol hook": "from typing import Protocol\nleaked.append(Protocol.__init_subclass__())",
    "copy of a module": "import copy, math\nleaked.append(copy.copy(math))",
    "exception groups": "leaked.append(getattr(BaseException, 'derive'))",
    "named tuple with a name that normalises to a special one": (
        "from collections import namedtuple\nleaked.append(namedtuple('N', 'ｆ_back'))"  # noqa: RUF001
    ),
    "named tuple with a name that normalises to a keyword": (
        "from collections import namedtuple\nleaked.append(namedtuple('N', 'ｄef'))"  # noqa: RUF001
    ),
    "write to a library object after writes to one's own": """
from fractions import Fraction
class A: pass
for _ in range(5): A().x = 1
Fraction(1, 2).x = 1
""",
    "a copy that is a module": """
import copy, math
class B:
    def __new__(cls, *a): return object.__new__(cls) if a else math
b = B(1)
b.floor = lambda x: 42
try: copy.copy(b)
finally: leaked.extend([1] if math.floor(1.5) == 42 else [])
""",
    "a copy that is a library class": """
import copy
from fractions import Fraction
class B:
    __slots__ = ('hacked',)
    def __new__(cls, *a): return object.__new__(cls) if a else Fraction
b = B(1)
b.hacked = 1
try: copy.deepcopy(b)
finally: leaked.extend([1] if hasattr(Fraction, 'hacked') else [])
""",
    "a copy of a UserDict that is a module": """
import copy, math
from collections import UserDict
class B(UserDict):
    def __new__(cls, *a): return object.__new__(cls) if a else math
b = B({1: 2})
b.ceil = lambda x: 42
try: copy.copy(b)
finally: leaked.extend([1] if math.ceil(1.5) == 42 else [])
""",
    "a copy that is a module by an inherited __new__": """
import copy, math
class A:
    @staticmethod
    def __new__(cls, *a): return object.__new__(cls) if a else math
class B(A): pass
b = B(1)
b.trunc = lambda x: 42
try: copy.copy(b)
finally: leaked.extend([1] if math.trunc(1.5) == 42 else [])
""",
    "a member that is a library class": """
from enum import Enum
from fractions import Fraction
try:
    class K(Enum):
        def __new__(cls, v): return Fraction
        A = 5
finally: leaked.extend([1] if hasattr(Fraction, '_value_') else [])
""",
    "a library function as __new__": "import copy\nclass B:\n    __new__ = copy.copy\nB()",
    "an object as __new__": (
        "class F:\n    def __call__(self, *a): return 1\nclass B:\n    __new__ = F()\nB()"
    ),
    "item write into a library object": """
import re
re.compile('(?P<a>x)').groupindex['a'] = 2
leaked.extend([1] if re.compile('(?P<a>x)').groupindex['a'] == 2 else [])
raise ValueError
""",
}


@pytest.mark.parametrize("source", ATTACKS.values(), ids=ATTACKS)
def test_an_attack_at_run_time_fails(source: str) -> None:
    compiled = compile_source(
        "leaked = []\ndef go():\n" + "".join(f"    {line}\n" for line in source.split("\n"))
    )
    assert compiled.violations == (), "the guards must meet this, not the compiler"
    assert compiled.code is not None
    namespace = RUNTIME.instantiate(compiled.code, 0)
    with pytest.raises((AttributeError, TypeError, ValueError)):
        namespace["go"]()
    assert namespace["leaked"] == []


@pytest.fixture(scope="module", autouse=True)
def _library_untouched() -> typing.Iterator[None]:
    before = {
        kind: set(dir(kind)) for kind in (collections.Counter, fractions.Fraction, json, copy)
    }
    yield
    assert {kind: set(dir(kind)) for kind in before} == before
    assert fractions.Fraction(1, 2).numerator == 1


def test_types_of_the_interpreter_are_opaque_but_can_be_compared() -> None:
    compiled = compile_source(
        "f = type(lambda: 0)\n"
        "result = [f is type(len),"
        " f is type(lambda: 1), isinstance(lambda: 0, f), isinstance(1, f), f.__name__]\n"
    )
    assert compiled.code is not None
    found = RUNTIME.instantiate(compiled.code, 0)["result"]
    assert found == [False, True, True, False, "function"]


def run(source: str) -> dict[str, typing.Any]:
    compiled = compile_source(source)
    assert compiled.violations == ()
    assert compiled.code is not None
    return RUNTIME.instantiate(compiled.code, 0)


def test_every_kind_of_object_that_a_source_may_write_to_can_be_written_to() -> None:
    made = ["[0]", "{}", "deque([0])", "defaultdict(int)", "Counter()", "OrderedDict()", "bytearray(1)",
            "array('b', [0])", "ChainMap({})", "UserDict()", "UserList([0])"]  # fmt: skip
    source = "from array import array\nfrom collections import ChainMap, UserDict, UserList\nfound = []\n"
    for expression in made:
        source += f"x = {expression}\nx[0] = 5\nx[0] += 1\nfound.append(x[0])\n"
    source += "def f(): pass\nclass A: pass\nf.x = 6\nA.x = 6\na = A()\na.x = 6\nfound += [f.x, A.x, a.x]\n"
    assert run(source)["found"] == [6] * (len(made) + 3)


def test_classes_without_end_can_be_written_to_and_are_not_all_remembered() -> None:
    found = run(
        "def make():\n    class A: pass\n    a = A()\n    a.x = 1\n    return a.x\n"
        "total = sum(make() for _ in range(600))\n"
    )
    assert found["total"] == 600
    with pytest.raises(TypeError, match="read-only"):
        RUNTIME._guards.write(fractions.Fraction(1, 2))


def test_a_new_of_ones_own_works_with_super_slots_tuples_and_enums() -> None:
    found = run("""
from enum import Enum
from typing import NamedTuple
class A:
    made = 0
    def __new__(cls, *args, **values):
        A.made += 1
        return super().__new__(cls)
    def __init__(self, x=1): self.x = x
class B(A):
    def __new__(cls, *args, **values): return super().__new__(cls)
class Pair(tuple):
    __slots__ = ()
    __new__ = lambda cls, a, b: tuple.__new__(cls, (a, b))
class Spot(NamedTuple):
    x: int = 3
class Far(Spot):
    def __new__(cls, x): return super().__new__(cls, x * 10)
class K(str, Enum):
    def __new__(cls, text, level):
        member = str.__new__(cls, text)
        member._value_ = text
        member.level = level
        return member
    LOW = 'low', 1
import copy
out = [B(x=4).x, copy.copy(B(5)).x, A.made, Pair(1, 2), Far(2), Spot(), K.LOW.level, K('low')]
class Only:
    one = None
    def __new__(cls):
        if cls.one is None: cls.one = super().__new__(cls)
        return cls.one
out.append(Only() is Only())
""")
    assert str(found["out"]) == ("[4, 5, 3, (1, 2), Far(x=20), Spot(x=3), 1, <K.LOW: 'low'>, True]")


def test_attributes_that_the_library_sets_are_not_shown() -> None:
    found = run(
        "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass G(Generic[T]):\n"
        "    def __init__(self): self.x = 1\nout = [vars(G[int]()), G[int]().__dict__]\n"
    )
    assert found["out"] == [{"x": 1}, {"x": 1}]


def test_print_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = compile_source("print('x', sep='', end='', flush=True)")
    assert compiled.code is not None
    RUNTIME.instantiate(compiled.code, 0)
    assert capsys.readouterr() == ("", "")
