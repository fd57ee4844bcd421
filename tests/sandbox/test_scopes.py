"""Walks over syntax trees find what the standard library's walks find, in the same order."""

from __future__ import annotations

import ast
from itertools import chain
from pathlib import Path

import pytest

from synthgym.sandbox.compile import import_roots
from synthgym.sandbox.scopes import all_bound_names, children_of, levels_of, names_bound_by

DATA = Path(__file__).parents[1] / "data"
IMPORTS = """
import a.b as c, d.e
from f.g import *
from . import nothing
from ..h import i
if True:
    import j
elif False:
    import k
else:
    try:
        import l
    except* ValueError:
        import m
    else:
        import n
    finally:
        import o
for _ in ():
    import p
else:
    import q
while False:
    with open("import r") as x:
        import s
class C:
    import t
    async def f(self, y=lambda: (lambda: 0)):
        async with y:
            import u
        async for z in y:
            import v
        match z:
            case [1, *_]:
                import w
"""


def trees() -> list[ast.Module]:
    texts = [path.read_text("utf-8", "replace") for path in sorted(DATA.glob("good_envs/*.py"))]
    texts += [path.read_text("utf-8", "replace") for path in sorted(DATA.glob("near_misses/*.py"))]
    found = []
    for text in [IMPORTS.replace("except*", "except"), IMPORTS, *texts]:
        try:
            found.append(ast.parse(text))
        except (SyntaxError, ValueError):
            continue
    return found


@pytest.fixture(scope="module")
def parsed() -> list[ast.Module]:
    found = trees()
    assert len(found) > 10
    return found


def test_children_are_those_of_the_standard_library(parsed: list[ast.Module]) -> None:
    for tree in parsed:
        for node in ast.walk(tree):
            assert children_of(node) == list(ast.iter_child_nodes(node))


def test_levels_in_a_row_are_a_walk(parsed: list[ast.Module]) -> None:
    for tree in parsed:
        assert list(chain.from_iterable(levels_of(tree))) == list(ast.walk(tree))
    assert [len(level) for level in levels_of(ast.parse("x = (1, 2)"))] == [1, 1, 2, 4]


def test_every_bound_name_is_found(parsed: list[ast.Module]) -> None:
    for tree in parsed:
        expected = {name for node in ast.walk(tree) for name in names_bound_by(node)}
        assert all_bound_names(tree) == expected


def test_imports_are_found_wherever_a_statement_may_stand(parsed: list[ast.Module]) -> None:
    for tree in parsed:
        nodes = list(ast.walk(tree))
        expected = {
            alias.name.partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        expected |= {
            node.module.partition(".")[0]
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module
        }
        assert import_roots(tree) == expected
    assert import_roots(parsed[0]) == set("adfhjklmnopqstuvw")
