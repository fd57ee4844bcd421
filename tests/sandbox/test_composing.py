"""A source behind its prelude: one module, whose lines and imports are the source's own."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from tool_sources import ECHO, MINIMAL, STEPS, one_call, plain, program

from synthgym.contract import BASE, PRELUDES, SPADE_BASE, SPADE_TOOLS_BASE, TOOLS_BASE
from synthgym.preludes import prelude
from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.composing import compose

ROOT = Path(__file__).parents[2]
BUNDLED = [
    path.read_text()
    for path in sorted((ROOT / "registry" / "envs").glob("*/v*/env.py"))
    if "ToolEnv" in path.read_text()
]
TINY = MINIMAL.replace("{setup}", 'self.instruct("Count.", lambda: self.count == 2)')


def played(env: Any, seed: int = 0) -> list[object]:
    """What an instance gives when its own witness plays it."""
    return [env.reset(seed), *(env.step(action) for action in env.solution())]


def requires(source: str, base: str = TOOLS_BASE) -> tuple[str, ...]:
    compiled = compile_source(source, base=base)
    assert compiled.violations == ()
    return compiled.requires


def test_the_preludes_keep_to_the_policy_and_compile_behind_nothing() -> None:
    for name in PRELUDES.values():
        assert compile_source(prelude(name)).violations == ()


@pytest.mark.parametrize("base", [BASE, SPADE_BASE])
def test_a_base_without_a_prelude_leaves_the_tree_as_it_is(base: str) -> None:
    tree = ast.parse(TINY)
    before = ast.dump(tree)
    assert compose(tree, base) is tree
    assert ast.dump(tree) == before


def test_the_text_of_a_prelude_is_parsed_anew_for_every_source() -> None:
    one, other = (compose(ast.parse(TINY), TOOLS_BASE) for _ in range(2))
    nodes = {id(node) for node in ast.walk(one) if hasattr(node, "lineno")}
    assert nodes.isdisjoint(id(node) for node in ast.walk(other) if hasattr(node, "lineno"))


# --- lines ---


@pytest.mark.parametrize("lines", [0, 1, 40, 500])
def test_a_violation_is_named_by_the_line_of_the_source(lines: int) -> None:
    source = '"""Doc."""\n' + "\n" * lines + "import os\n" + TINY + "\nx = eval('1')\n"
    found = compile_source(source, base=TOOLS_BASE).violations
    last = source.count("\n")
    assert [item.line for item in found] == [lines + 2, last]
    assert compile_source(source).violations == found


def test_a_syntax_error_is_named_by_the_line_of_the_source() -> None:
    found = compile_source(TINY + "\n\nx = (", base=TOOLS_BASE).violations
    assert [(item.line, item.message[:12]) for item in found] == [
        (TINY.count("\n") + 3, "syntax error")
    ]
    outside = compile_source(TINY + "\nreturn 3\n", base=TOOLS_BASE).violations
    assert [item.line for item in outside] == [TINY.count("\n") + 2]


def test_a_name_that_a_tool_may_not_have_is_named_by_a_line_of_the_source() -> None:
    source = TINY.replace("tool_add", "tool_f_code")
    found = compile_source(source.replace("self.call(", "print("), base=TOOLS_BASE).violations
    assert {item.line for item in found} <= set(range(1, source.count("\n") + 1))


# --- docstring and future ---


@pytest.mark.parametrize(
    ("front", "doc"),
    [
        ("", None),
        ('"""Rules."""\n', "Rules."),
        ("from __future__ import annotations\n", None),
        ('"""Rules."""\nfrom __future__ import annotations\n', "Rules."),
        ('"""Rules."""\nfrom synthgym.contract import ToolEnv\n', "Rules."),
        ('"""Rules."""\nfrom __future__ import annotations\nfrom synthgym.contract import ToolEnv\n', "Rules."),
        ("from synthgym.contract import ToolEnv\n", None),
    ],
)  # fmt: skip
def test_docstring_and_future_imports_stay_in_front(front: str, doc: str | None) -> None:
    tree = compose(ast.parse(front + TINY), TOOLS_BASE)
    assert ast.get_docstring(tree) == doc
    compile(
        tree, "<source>", "exec", dont_inherit=True
    )  # a future import that is not in front would not compile
    compiled = compile_source(front + TINY, base=TOOLS_BASE)
    assert compiled.docstring == (doc or "Tiny.")
    assert sum(step[1] for step in played(program(front + TINY).make(0))[1:]) == 1.0  # type: ignore[index]


def test_types_that_are_never_evaluated_may_name_what_there_is_not() -> None:
    source = TINY.replace("-> str:", "-> Missing:")
    with pytest.raises(NameError):
        plain(source)
    env = plain('"""Doc."""\nfrom __future__ import annotations\n' + source)
    assert sum(step[1] for step in played(env)[1:]) == 1.0  # type: ignore[index]


# --- imports ---


@pytest.mark.parametrize(
    "line",
    [
        "from synthgym.contract import ToolEnv",
        "from synthgym.contract import ToolEnv, ToolError",
        "from synthgym import ToolEnv, ToolError",
        "from synthgym.preludes.tool_env import ToolEnv",
    ],
)
def test_an_import_of_the_prelude_is_taken_out(line: str) -> None:
    assert requires(f"{line}\nimport random\n{TINY}") == ("random",)
    assert played(program(f"{line}\n{TINY}").make(0)) == played(program(TINY).make(0))


@pytest.mark.parametrize(
    "line",
    [
        "import synthgym",
        "import synthgym.contract",
        "from synthgym import ToolEnv as Base",
        "from synthgym.contract import ToolEnv, TOOLS_BASE",
        "from synthgym.contract import *",
        "from synthgym.sandbox import ToolEnv",
        "from .contract import ToolEnv",
        "from . import ToolEnv",
        "def f():\n    from synthgym.contract import ToolEnv",
        "if True:\n    from synthgym.contract import ToolEnv",
    ],
)
def test_any_other_import_of_the_package_is_a_violation(line: str) -> None:
    assert compile_source(f"{line}\n{TINY}", base=TOOLS_BASE).violations


def test_without_a_prelude_its_import_is_a_violation() -> None:
    assert compile_source(f"from synthgym.contract import ToolEnv\n{TINY}").violations


def test_what_the_prelude_imports_is_not_required_by_the_source() -> None:
    assert requires(TINY) == ()
    assert requires(f"import random\n{TINY}") == ("random",)
    assert requires(f"import json\nfrom typing import Any\n{TINY}") == ("json", "typing")
    assert requires(f"from collections import deque\n{TINY}") == ("collections",)


def test_a_source_may_use_names_that_the_prelude_uses() -> None:
    source = "import json as _json\nname = text = call = 'mine'\n" + TINY.replace(
        "return str(self.count)", "return _json.dumps([name, text, call, self.count])"
    )
    assert played(program(source).make(0))[1][0] == '["mine", "mine", "mine", 1]'  # type: ignore[index]


def test_a_source_may_have_an_error_class_of_its_own_name() -> None:
    source = "class ToolError(Exception):\n    pass\n" + TINY.replace(
        "self.count += amount", 'raise ToolError("no")'
    )
    env = program(source).make(0)
    env.reset(0)
    assert env.step(one_call("add", {})) == ("Error: no", 0.0, False, False, {"done": 0})


# --- schemas ---


def test_the_class_gets_its_schemas_and_its_methods() -> None:
    env_class = program(ECHO).env_class
    schemas = json.loads(env_class.tool_schemas)  # type: ignore[attr-defined]
    names = [item["function"]["name"] for item in schemas]
    assert names[:2] == ["text", "whole"]
    assert list(plain(ECHO)._tool_methods()) == names


def test_what_a_class_says_of_its_schemas_does_not_count() -> None:
    source = TINY.replace(
        '"""Tiny."""', 'tool_schemas = "[]"\n    def _tool_methods(self): return {}'
    )
    env_class: Any = program(source).env_class
    assert [item["function"]["name"] for item in json.loads(env_class.tool_schemas)] == ["add"]
    assert sum(step[1] for step in played(program(source).make(0))[1:]) == 1.0  # type: ignore[index]


def test_tools_of_a_mixin_are_called_too() -> None:
    source = TINY.replace("class TinyEnv(ToolEnv):", "class Mixin:").replace('"""Tiny."""', "")
    source += '\nclass TinyEnv(Mixin, ToolEnv):\n    """Tiny."""\n'
    assert played(program(source).make(0)) == played(program(TINY).make(0))


def test_text_of_any_kind_gets_into_the_schemas_whole() -> None:
    said = "Quotes ' \" and \\\\ and {braces} and ü and \U0001f9e9 and \\n."
    source = TINY.replace('"""Add."""', f'"""{said}"""'.replace('" and', '\\" and', 1))
    env_class: Any = program(source).env_class
    (tool,) = json.loads(env_class.tool_schemas)
    assert (
        tool["function"]["description"]
        == ast.literal_eval(f"'''{said}'''").replace("\n", "").strip()
    )


# --- one run of the module for all instances ---

CONSTANTS = """
from dataclasses import dataclass

PRICES = {"tea": 3, "rum": {"gill": 9}}
ROWS = [["a", 1], ["b", 2]]


@dataclass(frozen=True)
class Row:
    name: str
    price: int

"""


@pytest.mark.parametrize(
    "source",
    [
        TINY,
        ECHO,
        STEPS,
        CONSTANTS + TINY.replace("str(self.count)", 'f"{PRICES} {ROWS}"'),
        *BUNDLED,
    ],
)
def test_instances_share_one_run_of_the_module(source: str) -> None:
    assert program(source).unshared == ""


@pytest.mark.parametrize("source", [STEPS, *BUNDLED])
def test_instances_do_not_disturb_each_other(source: str) -> None:
    shared = program(source)
    envs = [shared.make(seed) for seed in (1, 2, 1)]
    results = [[env.reset(seed)] for env, seed in zip(envs, (1, 2, 1), strict=True)]
    plans = [env.solution() for env in envs]
    for turn in range(max(map(len, plans))):
        for env, plan, seen in zip(envs, plans, results, strict=True):
            seen += [env.step(action) for action in plan[turn : turn + 1]]
    assert results == [played(program(source).make(seed), seed) for seed in (1, 2, 1)]


def test_the_composed_class_is_not_the_one_of_the_prelude() -> None:
    assert program(TINY).env_class.__name__ == "TinyEnv"
    assert compile_source(TINY, base=SPADE_TOOLS_BASE).violations == ()
