"""The corpora: which of a package's files define environments, and which of those do I/O by design."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Corpus:
    """One package on the registry, and the rule that picks its environment files."""

    package: str
    """Name on the registry, with underscores."""
    folder: str
    """Name of what it installs."""
    patterns: tuple[str, ...]
    """Paths below the folder, as in `fnmatch`."""
    base: str = ""
    """Only files with a class that names this base; empty for every file of the patterns."""

    @property
    def rule(self) -> str:
        """The selection rule, for a reader."""
        below = " and ".join(f"{self.folder}/{pattern}" for pattern in self.patterns)
        return f"{below} with a class derived from {self.base}" if self.base else below


CORPORA = {
    corpus.package: corpus
    for corpus in (
        Corpus("rlve_gym", "Gym", ("environments/*/environment.py",), "VerifiableEnvironment"),
        Corpus("reasoning_gym", "reasoning_gym", ("*/*.py", "*/*/*.py"), "ProceduralDataset"),
        Corpus("textarena", "textarena", ("envs/*/env.py",), "Env"),
        Corpus("gem_llm", "gem", ("envs/game_env/*.py", "envs/game_env/*/*.py"), "Env"),
    )
}

_CALLS = frozenset({"open", "input", "eval", "exec", "compile", "__import__"})
_MODULES = frozenset(
    {
        *(
            "aiohttp",
            "ftplib",
            "glob",
            "gzip",
            "http",
            "httpx",
            "importlib",
            "os",
            "pathlib",
            "pickle",
            "requests",
        ),
        *(
            "shutil",
            "socket",
            "sqlite3",
            "subprocess",
            "tempfile",
            "urllib",
            "websockets",
            "zipfile",
        ),
    }
)
_NAMES = frozenset({"__file__"})
IO_RULE = f"calls of {', '.join(sorted(_CALLS))}; the name __file__; imports of {', '.join(sorted(_MODULES))}"
"""What makes a file one that does I/O (or evaluates text) by design."""


def environment_files(corpus: Corpus, site: Path) -> list[Path]:
    """The environment files of `corpus` below `site`, sorted; an unreadable one counts by its path alone."""
    root = site / corpus.folder
    found = (
        path
        for path in sorted(root.rglob("*.py"))
        if any(_matches(path.relative_to(root), pattern) for pattern in corpus.patterns)
    )
    return [path for path in found if not corpus.base or _derives(path.read_text(), corpus.base)]


def _matches(path: Path, pattern: str) -> bool:
    return len(path.parts) == pattern.count("/") + 1 and fnmatch.fnmatch(path.as_posix(), pattern)


def _derives(source: str, base: str) -> bool:
    try:
        return any(True for _ in classes_derived_from(ast.parse(source), base))
    except SyntaxError:  # written for a newer Python: let it be counted as such
        return f"({base})" in source or f".{base})" in source


def classes_derived_from(tree: ast.AST, base: str) -> Iterator[ast.ClassDef]:
    """The classes of `tree` that name `base`, plain or after a dot, among their bases."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and base in map(_last_name, node.bases):
            yield node


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def io_reasons(tree: ast.AST) -> set[str]:
    """Why a file counts as doing I/O; empty for one that does none."""
    reasons: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in _CALLS:
                reasons.add(f"{node.func.id}()")
        elif isinstance(node, ast.Name) and node.id in _NAMES:
            reasons.add(node.id)
        else:
            reasons |= {f"import {root}" for root in imported_roots(node) & _MODULES}
    return reasons


def imported_roots(node: ast.AST) -> set[str]:
    """Roots of the modules that this statement imports; relative imports have none."""
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return {node.module.split(".")[0]}
    return set()
