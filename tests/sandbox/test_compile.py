from __future__ import annotations

import json
import marshal
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.errors import SandboxError
from synthgym.sandbox.compile import Violation, check_source, compile_source

SEED_SOURCE = '''"""A door."""
import random
from dataclasses import dataclass, field

@dataclass
class Room:
    name: str
    _doors: list = field(default_factory=list)

class DoorEnv:
    max_turns = 5
    def reset(self, seed):
        self._key = random.randint(0, 3)
        self.rooms = [Room(f"r{i}", _doors=[i]) for i in range(3)]
        return "a door {0._key}".format(self), {}
    def step(self, action):
        match action.split():
            case ["open", n] if n.isdigit():
                self._key += int(n)
                return "open", 1.0, True, False, {}
            case _:
                return "no", 0.0, False, False, {}
'''
PIECES = st.sampled_from(
    ["\n", " ", "    ", "(", ")", "[", "]", "{", "}", ":", ",", ".", "=", "+=", "@", "*", "**", "_x", "__x", "_x_",
     "__class__", "gi_frame", "class A", "def f", "match", "case", "lambda", "async", "await", "import os", "from",
     "import", "as",
     "x", "1", "'s'", "f'{x}'", "\0", "\ud800", "é", "yield", "for", "in", "if", "else", "try:",
     "except*", "global", "nonlocal", "del", "return", ":=", "...", "\t", "\\", "#", '"""',
     "int", "__slots__",
     "type X = 1"]
)  # fmt: skip


def test_the_seed_source_is_allowed() -> None:
    assert check_source(SEED_SOURCE) == ()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_no_text_makes_the_checker_raise(text: str) -> None:
    assert all(isinstance(item, Violation) for item in check_source(text))


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=30))
def test_no_soup_of_tokens_makes_the_checker_raise(pieces: list[str]) -> None:
    text = " ".join(pieces)
    assert check_source(text) == check_source(text)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(SEED_SOURCE)), st.integers(0, 12), st.lists(PIECES, max_size=3))
def test_no_mutated_source_makes_the_checker_raise(at: int, cut: int, put: list[str]) -> None:
    compile_source(SEED_SOURCE[:at] + "".join(put) + SEED_SOURCE[at + cut :])


def test_code_exists_exactly_when_there_are_no_violations() -> None:
    assert compile_source(SEED_SOURCE).code is not None
    assert compile_source("import os").code is None


@pytest.mark.parametrize(
    ("source", "docstring"),
    [
        ('"""Module."""\nclass AEnv:\n    """Class."""', "Module."),
        (
            'class AEnv:\n    """First."""\nclass BEnv:\n    """Last.\n\n    More."""',
            "Last.\n\nMore.",
        ),
        ('class Other:\n    """No."""', ""),
        ("", ""),
    ],
)
def test_the_docstring_is_the_modules_or_the_last_env_classs(source: str, docstring: str) -> None:
    assert compile_source(source).docstring == docstring


def test_requires_lists_the_roots_of_the_imports_even_of_a_refused_source() -> None:
    source = "import re\ndef f():\n    from collections.abc import Sized\n    import numpy.linalg\n"
    assert compile_source(source).requires == ("collections", "numpy", "re")


def test_a_sources_own_syntax_warnings_are_silent() -> None:
    assert check_source("x = '\\d'\nassert (1, 'always')\n") == ()


def test_asserts_stay_whatever_the_interpreters_optimisation() -> None:
    program = (
        "from synthgym.sandbox.compile import compile_source as c;"
        "print(len(c('assert x').code.co_code))"
    )
    root = str(Path(__file__).parents[2])
    sizes = [
        subprocess.run(
            [sys.executable, *flags, "-c", program],
            capture_output=True, text=True, check=True, timeout=60, cwd=root,
        ).stdout
        for flags in ([], ["-O"])
    ]  # fmt: skip
    assert sizes[0] == sizes[1]


def test_compiling_twice_gives_the_same_bytes() -> None:
    first, second = compile_source(SEED_SOURCE).code, compile_source(SEED_SOURCE).code
    assert marshal.dumps(first) == marshal.dumps(second)


def test_an_unreviewed_python_is_refused_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    with pytest.raises(SandboxError, match=r"3\.11 to 3\.13, this is 3\.14"):
        check_source("x = 1")


@pytest.mark.parametrize(
    ("source", "docstring"),
    [
        ("'\\ud800'", "?"),
        ("class AEnv:\n    '\\ud800 x'", "? x"),
        ("def f():\n    '\\udfff'", ""),
        ("x = '\\ud800'", ""),
        ("x = f'\\udfff{1}'", ""),
    ],
)
def test_an_escaped_lone_surrogate_gives_a_clean_result(source: str, docstring: str) -> None:
    found = compile_source(source)
    assert found.violations == ()
    assert found.code is not None
    assert found.docstring == docstring


HOSTILE = {
    "brackets": "x = " + "[" * 30_000 + "]" * 30_000,
    "open brackets": "([{" * 20_000,
    "nested subscripts": "x = " + "a[" * 30_000 + "0" + "]" * 30_000,
    "190 subscripts": "x = " + "a[" * 190 + "0" + "]" * 190,
    "attribute chain": "x = a" + ".b" * 32_000,
    "call chain": "x = a" + ".b()" * 16_000,
    "sum": "x = a" + "+a" * 32_000,
    "unary": "x = " + "-" * 65_000 + "1",
    "not": "x = " + "not " * 16_000 + "1",
    "power": "x = a" + "**a" * 20_000,
    "comparison": "x = a" + "<a" * 32_000,
    "elif": "if a: pass\n" + "elif a: pass\n" * 4_900,
    "ternaries": "x = " + "a if b else " * 5_000 + "c",
    "lambdas": "x = " + "lambda:" * 9_000 + "1",
    "lambda defaults": "x = " + "lambda a=(" * 6_000,
    "comprehensions": "x = " + "[a for a in " * 190 + "b" + "]" * 190,
    "comprehension clauses": "x = [a " + "for a in b " * 5_000 + "]",
    "f-strings": "x = " + "f'{" * 20_000,
    "f-string brackets": "x = f'{" + "(" * 30_000 + "}'",
    "f-string specifications": "x = f'{a:" + "{a:" * 10_000 + "}" * 10_001 + "'",
    "f-string fields": "x = f'" + "{a}" * 21_000 + "'",
    "indentation": "".join(" " * depth + "if a:\n" for depth in range(340)),
    "functions": "".join(" " * depth + "def f():\n" for depth in range(99)) + " " * 99 + "pass\n",
    "with": "with (" * 10_000 + "a",
    "patterns": "match a:\n case " + "[" * 190 + "a" + "]" * 190 + ": pass",
    "or patterns": "match a:\n case " + "1|" * 30_000 + "1: pass",
    "decorators": "@a\n" * 32_000 + "def f(): pass",
    "assignments": "x=" * 32_000 + "1",
    "folded product": "x=" + "*".join(["'a'*4000"] * 3_000),
    "folded power": "x=" + "2**" * 10_000 + "2",
    "folded shift": "x=1" + "<<99" * 15_000,
    "digits": "x=" + "9" * 65_000,
    "stars": "from math import *\n" * 3_400,
    "dotted import": "import " + "a." * 32_000 + "b",
    "unknown imports": "".join(f"import a{number}\n" for number in range(6_000)),
    "violations": "_a_\n" * 16_000,
}
HOSTILE_PROGRAM = """
import json, sys, time
from synthgym.sandbox.compile import compile_source
found = {}
for name, source in json.load(sys.stdin).items():
    start = time.process_time()
    result = compile_source(source)
    found[name] = [result.code is None, len(result.violations), time.process_time() - start]
print(json.dumps(found))
"""


def test_a_hostile_source_ends_in_a_result_and_soon() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE_PROGRAM],
        input=json.dumps(HOSTILE), capture_output=True, text=True, timeout=240, check=False,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    found = json.loads(done.stdout)
    assert found.keys() == HOSTILE.keys()
    for name, (refused, violations, seconds) in found.items():
        assert refused == (violations > 0), name
        assert seconds < 10, name


def test_a_source_with_too_many_nodes_is_refused() -> None:
    assert "syntax nodes" in check_source("x=" + "a," * 32_700)[0].message


def test_a_long_flat_source_is_allowed() -> None:
    rng = random.Random(0)
    lines = [f"def f{i}(a, _b={rng.random()}): return a.x[_b] + {i}" for i in range(1000)]
    assert check_source("\n".join(lines)) == ()
