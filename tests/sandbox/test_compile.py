from __future__ import annotations

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


def test_a_source_with_too_many_nodes_is_refused() -> None:
    assert "syntax nodes" in check_source("x=" + "a," * 32_700)[0].message


def test_a_long_flat_source_is_allowed() -> None:
    rng = random.Random(0)
    lines = [f"def f{i}(a, _b={rng.random()}): return a.x[_b] + {i}" for i in range(1000)]
    assert check_source("\n".join(lines)) == ()
