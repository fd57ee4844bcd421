"""The walls of docs/architecture.md: imports point down only, and happen at the top of a module."""

from __future__ import annotations

import ast
import importlib
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VOCABULARY = ("errors", "spec", "ids", "contract")
"""Modules of synthgym whose every public name spade_loop may use."""
LAYERS = {
    "synthgym": (
        "cli testing",
        "registration",
        "audit calibration diversity publishing",
        "registry",
        "validation",
        "envs memory",
        "sandbox",
        "spec spaces atomic agents",
        "ids contract tool_schemas",
        "errors preludes canonical",
    ),
    "spade_loop": (
        "__main__",
        "cli",
        "commands",
        "run gap warmstart",
        "evaluation",
        "loop report",
        "rows inputs field planning rehearsal",
        "trainer text_episodes",
        "design episodes tasks",
        "library batch curriculum payment alarms scoring speaking journal",
        "measurement state backends tensors hints timing",
        "completers corpus families windows schedule world demonstrations",
        "chat",
        "config parsing prompts progress exhaustion",
        "rewards",
        "types",
        "errors",
    ),
}
MODULES = sorted(path for package in LAYERS for path in (ROOT / package).rglob("*.py"))


def level(package: str, name: str) -> int:
    """How high a module lies; the package itself (its public names) lies on top."""
    for height, names in enumerate(reversed(LAYERS[package])):
        if name in names.split():
            return height
    assert name == "", f"{package}.{name} has no layer"
    return len(LAYERS[package])


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, imported name) of every import below `tree`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from ((node.module or "", alias.name) for alias in node.names)


def is_public(module: str, name: str) -> bool:
    """Whether `from module import name` reaches for what synthgym means others to use."""
    inner = module.partition(".")[2]
    if inner in VOCABULARY:
        return not name.startswith("_")
    if not inner and not name:
        return True
    return "." not in inner and name in importlib.import_module(module).__all__


def layer_of(path: Path) -> tuple[str, str]:
    package, *rest = path.relative_to(ROOT).with_suffix("").parts
    return package, "" if rest == ["__init__"] else rest[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    package, layer = layer_of(path)
    for module, name in imports(ast.parse(path.read_text())):
        target, _, inner = module.partition(".")
        if target == package and layer:
            below = inner.partition(".")[0] or name
            assert below == layer or level(package, below) < level(package, layer), module
        elif target == "synthgym" and package == "spade_loop":
            assert is_public(module, name), f"{module}.{name} is not a public name of synthgym"
        assert (package, target) != ("synthgym", "spade_loop")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_import_nothing_outside_the_listed_files(path: Path) -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    ignores = config["tool"]["ruff"]["lint"]["per-file-ignores"]
    allowed = [pattern for pattern, codes in ignores.items() if "PLC0415" in codes]
    if any(fnmatch(str(path.relative_to(ROOT)), pattern) for pattern in allowed):
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert not list(imports(node)), f"{node.name}() in line {node.lineno}"
