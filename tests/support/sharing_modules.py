"""Small random modules for the fuzz test of sharing: constants, ways to reach into them, and ways to change them.

Whatever goes wrong in a step is swallowed there, so every combination is a module that runs.
"""

from __future__ import annotations

import re

from hypothesis import strategies as st

_X = re.compile(r"\bx\b")

HEAD = """\
import copy, functools, heapq, operator, random, re
from bisect import insort
from collections import Counter, OrderedDict, deque, namedtuple
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import partial, reduce
from typing import List, NamedTuple
def give(v): return v
def first(v): return v[0]
def change(v): v.append(7)
class Kind(Enum):
    A = 1
    B = (2, 'b')
P = namedtuple('P', 'a b')
class Q(NamedTuple):
    a: int
    b: object = (1, 2)
@dataclass(frozen=True)
class Tool:
    a: object
    b: object = 0
class Box:
    items = {items}
    def __init__(self): self.a = []
class Thief:
    def __radd__(self, other): return self.take(other)
    def __ror__(self, other): return self.take(other)
    def __eq__(self, other): return self.take(other)
    def __hash__(self): return 1
    def __call__(self, other): return self.take(other)
    def __getitem__(self, key): return key
    def take(self, other):
        self.got = other
        try: other.append(3)
        except Exception: pass
        try: other.update({{'thief': 1}})
        except Exception: pass
        return True
"""
"""What every module has; `Thief` is left out of half of them, because it keeps many uses from being harmless."""

VALUES = (
    *("[3, 1, 2]", "['b', 'a']", "[[1], [2]]", "[(1, 2), (3, 4)]", "[{'a': 1}]", "[]", "(1, 'x')"),
    *("{'a': 1, 'b': 2}", "{'a': [1, 2], 'b': []}", "{'a': {'b': [1]}}", "{}", "{1, 2, 3}", "set()"),
    *("([1], [2])", "((1, 2), (3, 4))", "frozenset({1, 2})", "P(1, [2])", "P(1, 2)", "Q(1)", "Q(1, [5])"),
    *("Tool(1)", "Tool([1])", "Tool((1, ()), Kind.A)", "Kind.A", "{Kind.A: [1], Kind.B: 3}", "Fraction(1, 2)"),
    *("'text'", "b'ab'", "re.compile('a+')", "range(4)", "Counter('aab')", "deque([1, 2])", "Box()", "Box"),
    *("OrderedDict(a=1)", "[Tool(1), Tool(2)]", "{'a': Tool(3)}", "[P(1, 2)]", "iter([1, 2, 3])", "List[int]"),
    *("{other}", "[{other}]", "({other}, 1)", "{{'a': {other}}}", "list({other})", "tuple({other})"),
    *("partial(give, {other})", "(lambda: {other})", "Tool({other})", "P({other}, 1)", "give({other})"),
    *("give", "len", "list.append", "random.random", "lambda v, w=2: (v, w)", "(lambda v: lambda: v)({other})"),
)  # fmt: skip
"""What a constant may be bound to."""

REACHES = (
    *("{e}", "{e}", "{e}", "{e}[0]", "{e}['a']", "{e}[-1]", "{e}[:]", "{e}[self.turn % 2]", "{e}.get('a')"),
    *("{e}.get('z', [])", "list({e})", "tuple({e})", "dict({e})", "set({e})", "sorted({e}, key=str)"),
    *("next(iter({e}))", "[v for v in {e}]", "[v for v in {e}][0]", "({e} or [])", "({e} and {e})"),
    *("({e} if self.turn else {e})", "max({e}, key=str)", "min({e})", "random.choice({e})", "copy.copy({e})"),
    *("self.rng.sample({e}, 1)[0]", "self.rng.choices({e})[0]", "deepcopy({e})", "list({e}.values())[0]"),
    *("list({e}.items())[0][1]", "{e}.keys()", "{e}.copy()", "{e}.a", "{e}.b", "{e}.value", "{e}.items"),
    *("{e}()", "give({e})", "first({e})", "(lambda v: v)({e})", "(lambda: {e})()"),
    *("operator.itemgetter(0)({e})", "operator.attrgetter('a')({e})", "reduce(lambda a, b: a, {e})"),
    *("reduce(lambda a, b: a, [1], {e})", "{{**{e}}}", "[*{e}]", "(*{e},)", "list(map(give, {e}))[0]"),
    *("list(zip({e}, {e}))[0][0]", "list(filter(None, {e}))", "list(enumerate({e}))[0][1]", "{e} + [9]"),
    *("{e} | {{'z': 1}}", "{e} * 2", "sum({e}, [])", "getattr({e}, 'a')", "getattr({e}, 'ite' + 'ms')"),
    *("replace({e}, b=1)", "{e}._replace(b=3)", "{e}._asdict()", "type({e})", "type({e})({e})", "str({e})"),
    *("(w := {e})", "[w for w in [{e}]][0]", "next(v for v in [{e}])", "partial(give, {e})()", "f'{{{e}}}'"),
    *("self.items", "self.table['a']", "Box.items", "Box().items", "self", "{e}[slice(None)]"),
    *("functools.reduce(operator.add, {e})", "{e}.__class__", "getattr({e}, 'append')", "{e}.append"),
    *("Thief().take({e})", "{e}[Thief()[:]]", "copy.copy({e}.items())", "zip({e})", "reversed({e})"),
)  # fmt: skip
"""How a step gets from one value to another; `{e}` is where it starts."""

CHANGES = (
    *("x.append(1)", "x[0] = 5", "x['a'] = 5", "x['q'] = [1]", "x.add(9)", "x.update(a=3)", "x.update({4: 4})"),
    *("x.pop()", "x.pop('a')", "x.clear()", "x.sort()", "x.reverse()", "x.extend([8])", "x.insert(0, 2)"),
    *("x += [1]", "x |= {7}", "x |= {'k': 1}", "x[0] += 1", "x['a'] += 1", "del x[0]", "del x['a']", "x[:] = [6]"),
    *("x.a = 5", "x.items = [4]", "x.fresh = 1", "setattr(self, 'k', x)\nself.k.append(1)", "x.a.append(2)"),
    *("for v in x: v.append(1)", "for v in x.values(): v.append(1)", "for k, v in x.items(): v['n'] = 1"),
    *("for x[0] in (7, 8): pass", "v, *w = x\nv.append(1)\nw.append(2)", "list.extend(x, [1])", "list.append(x, 1)"),
    *("dict.update(x, z=1)", "set.update(x, [9])", "set.intersection_update(x, [1])", "dict.setdefault(x, 'y', 1)"),
    *("heapq.heappush(x, 0)", "heapq.heapify(x)", "insort(x, 2)", "random.shuffle(x)", "operator.iadd(x, [1])"),
    *("list(map(x.append, [1, 2]))", "sorted([1], key=x.append)", "re.sub('a', lambda m: x.append(1) or '', 'aa')"),
    *("change(x)", "x.__setitem__(0, 9)", "getattr(x, 'append')(1)", "x.__init__(4)", "x.__init__([4])"),
    *("match x:\n    case [v, *w]: v.append(1)\n    case {'a': v}: v.append(1)\n    case object(a=v): v.append(1)",),
    *("match x:\n    case object(mapping=v): v == Thief()", "x + Thief()", "x | Thief()", "x == Thief()"),
    *("x in [Thief()]", "Thief() in x", "self.own = x\nself.own += [1]", "self.own = x\nself.own['s'] = 1"),
    *("class Local(Box): other = x\nLocal.other.append(1)", "lambda v=x: v.append(1)", "type(x).mark = 1"),
    *("object.__setattr__(x, 'a', 9)", "operator.methodcaller('append', 1)(x)", "next(x)", "x.rotate(1)"),
    *("x()", "x(1)", "x([1])", "x().append(1)", "x([1]).append(1)", "x[Thief()[:]].append(1)", "x.__doc__.append(1)"),
    *("for v in x[Thief()[:]]: v.append(1)", "OrderedDict(x).update(b=1)", "self.items.append(1)", "Box.items += [1]"),
)  # fmt: skip
"""What a step does with what it reached."""

EXTRAS = (
    *("def fill({n}={n}): {n}.append(1)", "fill = lambda v, w={n}: w", "grab = {n}", "{n}.fresh = 1", "pass"),
    *("class Deep(Box): items = {n}", "pairs = [v for v in {n}]", "for last in {n}: pass", "alias = [{n}]"),
    *("def outer():\n    kept = {n}\n    return lambda: kept\ninner = outer()", "give.kept = {n}", "pass", "pass"),
)  # fmt: skip
"""What else the module does when it runs, after its constants."""


@st.composite
def modules(draw: st.DrawFn) -> str:
    """The text of a module with an environment that shows all of its constants after every step."""
    names = ["ONE", "TWO", "SIX"]
    with_thief = draw(st.booleans())
    head = HEAD.format(items=draw(st.sampled_from(VALUES[:13])))
    if not with_thief:
        head = head[: head.index("class Thief")]
    lines = []
    for number, name in enumerate(names):
        value = draw(st.sampled_from(draw(st.sampled_from((VALUES[:14], VALUES)))))
        others = names[:number] or ["(0,)"]
        lines.append(f"{name} = " + _filled(value, "other", draw(st.sampled_from(others))))
    extra = draw(st.sampled_from(("pass",) * len(EXTRAS) + EXTRAS)).replace(
        "{n}", draw(st.sampled_from(names))
    )
    tried = _tried(extra, 0)
    uses = draw(st.sampled_from(((0, 1), (0, 1), (1, 0), (1, 0), (0, 2), (1, 1))))
    bodies = [_body(draw, names, count) for count in uses]
    shown = "|".join(f"{{{name}}}" for name in (*names, "self.items", "self.table", "Box.items"))
    show = f'        return plain(f"{shown}|" + str(x)), '
    return (
        f"{head}" + "\n".join(lines) + f"\n{tried}\n"
        "def plain(text): return re.sub('0x[0-9a-f]+', '', text)[:2000]\n"
        f"class ProbeEnv:\n    max_turns = 9\n    items = {draw(st.sampled_from(VALUES[:13]))}\n"
        "    table = {'a': [1], 'b': [2]}\n"
        "    def reset(self, seed):\n        self.rng = random.Random(seed)\n        self.turn = 0\n        x = 0\n"
        f"{bodies[0]}{show}{{}}\n"
        f"    def step(self, action):\n        self.turn += 1\n        x = 0\n{bodies[1]}"
        f"{show}0.0, False, False, {{}}\n"
    )


def _body(draw: st.DrawFn, names: list[str], count: int) -> str:
    parts = []
    for _ in range(count):
        reach = draw(st.sampled_from(names))
        for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2, 3)))):
            reach = _filled(draw(st.sampled_from(REACHES)), "e", reach)
        change = draw(st.sampled_from(CHANGES))
        in_place = draw(st.integers(0, 3)) > 0  # no variable in between
        text = reach.join(_X.split(change)) if in_place else f"x = {reach}\n{change}"
        parts.append(_tried(text, 8))
    return "".join(parts)


def _filled(template: str, field: str, value: str) -> str:
    doubled = template.replace("{{", "\0").replace("}}", "\1")
    return doubled.replace("{" + field + "}", value).replace("\0", "{").replace("\1", "}")


def _tried(text: str, by: int) -> str:
    lines = [f"    {line}" for line in text.split("\n")]
    return "".join(" " * by + line + "\n" for line in ("try:", *lines, "except Exception: pass"))
