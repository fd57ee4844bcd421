from __future__ import annotations

import types

import pytest

from synthgym.sandbox import names
from synthgym.sandbox.compile import check_source, compile_source
from synthgym.sandbox.runtime import Runtime

RUNTIME = Runtime()

REFUSED = [
    ("import numpy as np", 1, "module 'numpy' is not available"),
    ("x = 1\nimport os", 2, "module 'os' is not available"),
    ("import collection", 1, "did you mean 'collections'"),
    ("from random import SystemRandom", 1, "random.SystemRandom is not available"),
    ("from math import sqr", 1, "did you mean 'sqrt'"),
    ("from os import *", 1, "module 'os'"),
    ("from . import x", 1, "relative imports"),
    ("import xml.dom", 1, "module 'xml.dom'"),
    ("x = [].__class__.__base__", 1, "attribute __base__"),
    ("x = (lambda: 0).__globals__", 1, "attribute __globals__"),
    ("def f(g):\n    return g.gi_frame", 2, "'gi_frame'"),
    ("f_back = 1", 1, "'f_back'"),
    ("def f(tb_frame): pass", 1, "'tb_frame'"),
    ("f(cr_frame=1)", 1, "keyword argument"),
    ("x = e.ｆ_back", 1, "'f_back'"),  # noqa: RUF001 - the parser normalises it
    ("x.__dict__ = {}", 1, "attribute __dict__"),
    ("del x.__slots__", 1, "attribute __slots__"),
    ("x.sg0_y = 1", 1, "'sg0'"),
    ("sg0_y = 1", 1, "'sg0'"),
    ("eval('1')", 1, "eval() is not available"),
    ("f = open", 1, "open() is not available"),
    ("__import__('os')", 1, "__import__ is not available"),
    ("x = __builtins__", 1, "__builtins__"),
    ("x = __file__", 1, "__file__"),
    ("async def f(): pass", 1, "async def"),
    ("async def f():\n    await x", 2, "await"),
    ("try:\n    pass\nexcept* ValueError:\n    pass", 1, "except*"),
    ("class A(metaclass=M): pass", 1, "class keyword 'metaclass'"),
    ("class A(**k): pass", 1, "class keyword"),
    ("class A:\n    def __getattr__(self, n): pass", 2, "__getattr__ cannot be defined"),
    ("class A:\n    def __reduce_ex__(self, p): pass", 2, "__reduce_ex__"),
    ("class A:\n    def __del__(self): pass", 2, "__del__"),
    ("class A:\n    __class__ = int", 2, "__class__"),
    ("class A:\n    __match_args__ = ('x',)", 2, "__match_args__"),
    ("class A:\n    for __reduce_ex__ in [f]: pass", 2, "__reduce_ex__"),
    ("class A:\n    import math as __getattr__", 2, "__getattr__"),
    ("class A:\n    __slots__ = tuple(names)", 2, "literal strings"),
    ("class A:\n    __slots__ = ('__reduce_ex__',)", 2, "cannot be a slot"),
    ("class A:\n    __slots__: tuple = ('__dict__',)", 2, "cannot be a slot"),
    ("class A:\n    for __slots__ in x: pass", 2, "__slots__"),
    ("class A:\n    y = __slots__ = ('a',)", 2, "__slots__"),
    ("def __init__(self): pass", 1, "__init__ cannot be defined here"),
    ("s.format += g", 1, "augmented assignment to .format"),
    ("match x:\n    case str(format=f): pass", 2, ".format cannot be used in a pattern"),
    ("match x:\n    case A(__globals__=g): pass", 2, "__globals__"),
    ("match x:\n    case A(g): pass", 2, "positional class patterns"),
    ("int = A\nmatch x:\n    case int(g): pass", 3, "positional class patterns"),
    ("match x:\n    case a.__class__: pass", 2, "__class__"),
    ("match x:\n    case a.now(x=1): pass", 2, ".now"),
    ("x = {1: 2 async for y in z}", 1, "asynchronous code"),
    ("def f(:", 1, "syntax error"),
    ("return 1", 1, "syntax error"),
    ("x = 1\ny = '\0'", 2, "NUL"),
    ("x = 1\ny = '\ud800'", 2, "surrogate"),
    ("#" + "x" * 70_000, 1, "at most 65536"),
    ("x = " + "-" * 160 + "1", 1, "levels deep"),
    ("x = " + "(" * 500, 1, ""),
    ("x = " + "-" * 60_000 + "1", 1, "deep"),
    ("def f():\n    from math import *", 2, "works once, at the top level"),
    ("from math import *\nfrom math import *", 2, "works once, at the top level"),
    ("_missing_ = 1", 1, "_missing_"),
    ("class A:\n    _missing_ = 1", 2, "_missing_"),
    ("x = super()._missing_", 1, "_missing_"),
    ("import " + "a" * 5_000, 1, "module 'aaa"),
]

HOOK_BINDINGS = [
    "_write_ = f",
    "(_write_ := f)",
    "def _write_(): pass",
    "class _write_: pass",
    "def f(_write_): pass",
    "def f(_write_, /): pass",
    "def f(*, _write_): pass",
    "def f(*_write_): pass",
    "def f(**_write_): pass",
    "f = lambda _write_: 0",
    "f = lambda _write_=1, /: 0",
    "[0 for _write_ in x]",
    "for _write_ in x: pass",
    "with x as _write_: pass",
    "import math as _write_",
    "from math import pi as _write_",
    "try: pass\nexcept E as _write_: pass",
    "match x:\n    case _write_: pass",
    "match x:\n    case [*_write_]: pass",
    "match x:\n    case {**_write_}: pass",
    "match x:\n    case [y] as _write_: pass",
    "def f():\n    global _write_",
    "def f():\n    nonlocal _write_",
    "del _write_",
    "x = _write_",
    "_write_: int = 1",
    "_write_ += 1",
    "x, *_write_ = y",
    "async def _write_(): pass",
]


@pytest.mark.parametrize(("source", "line", "text"), REFUSED, ids=[r[0][:40] for r in REFUSED])
def test_a_refused_snippet_is_refused_at_its_line(source: str, line: int, text: str) -> None:
    found = check_source(source)
    assert any(text in item.message and item.line == line for item in found), found


@pytest.mark.parametrize("source", HOOK_BINDINGS)
def test_no_binding_form_can_touch_a_guard_hook(source: str) -> None:
    assert check_source(source)


def test_every_violation_is_collected_in_order() -> None:
    source = "import os\nx = eval\nasync def f():\n    y = a.gi_frame\nimport sys, re, socket\n"
    assert [item.line for item in check_source(source)] == [1, 2, 3, 4, 5]


def test_the_interpreter_attribute_table_covers_this_interpreter() -> None:
    def generator() -> object:
        yield

    kinds = (types.FrameType, types.CodeType, types.TracebackType, types.GeneratorType)
    kinds += (types.CoroutineType, types.AsyncGeneratorType)
    real = {name for kind in kinds for name in dir(kind) if name[2:3] == "_" or name[:2] == "f_"}
    assert {name for name in real if not name.startswith("__")} <= names.NEVER


def test_a_message_is_short_however_long_the_name() -> None:
    source = (
        f"import {'a' * 5000}\n_{'b' * 5000}_ = 1\nclass A:\n    __slots__ = ('__{'c' * 5000}__',)"
    )
    assert [len(item.message) <= 303 for item in check_source(source)] == [True] * 3


def test_a_builtin_that_is_refused_may_be_defined_by_the_source() -> None:
    assert check_source("def compile(x): return x\ny = compile(1)") == ()


def test_the_main_block_is_dropped_unread() -> None:
    source = (
        'x = 1\nif __name__ == "__main__":\n    import os\n    os.system("x")\nelse:\n    x = 2\n'
    )
    compiled = compile_source(source)
    assert compiled.code is not None
    assert RUNTIME.instantiate(compiled.code, 0)["x"] == 2
    assert compiled.requires == ()
