"""The static count: how many environment files of a corpus compile under the policy, and why the others do not."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from corpora import Corpus, environment_files, io_reasons

from synthgym.sandbox.compile import Violation, compile_source

_MODULE = re.compile(r"module '([\w.]+)' is not available")
_OWN = "relative imports"


@dataclass(slots=True)
class Count:
    """What became of the files of one corpus."""

    files: int = 0
    without_io: list[Path] = field(default_factory=list)
    compiled: list[Path] = field(default_factory=list)
    importable: list[Path] = field(default_factory=list)
    """Compiled, and every module that is not the corpus' own is one that the sandbox offers."""
    io: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    """Modules that the sandbox does not offer, by files without I/O that import them."""


def count(corpus: Corpus, site: Path) -> Count:
    """Compile every environment file of `corpus` that does no I/O; nothing of it is run."""
    found = Count()
    for path in environment_files(corpus, site):
        found.files += 1
        source = path.read_text()
        reasons = _io(source)
        if reasons:
            found.io.update(reasons)
            continue
        found.without_io.append(path)
        violations = compile_source(source).violations
        modules, rest = _sorted(violations, corpus)
        found.missing.update(modules)
        found.refusals.update(rest)
        if not rest:
            found.compiled.append(path)
            if not modules:
                found.importable.append(path)
    return found


def _io(source: str) -> set[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a source's own SyntaxWarnings are not ours to show
            return io_reasons(ast.parse(source))
    except SyntaxError:
        return set()


def _sorted(violations: tuple[Violation, ...], corpus: Corpus) -> tuple[set[str], set[str]]:
    """Missing modules and all other reasons; imports of the corpus itself are neither."""
    modules: set[str] = set()
    rest: set[str] = set()
    for item in violations:
        match = _MODULE.match(item.message)
        if match is None and not item.message.startswith(_OWN):
            rest.add(_kind(item.message))
        elif match is not None and match[1].split(".")[0] != corpus.folder:
            modules.add(match[1].split(".")[0])
    return modules, rest


def _kind(message: str) -> str:
    """`message` without what differs from file to file."""
    return re.sub(r"has \d+ bytes", "has too many bytes", message.split(";")[0])
