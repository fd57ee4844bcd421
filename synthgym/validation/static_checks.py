"""Checks that read a source and never run it: size, syntax, policy, and what the class offers."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from synthgym.contract import (
    BASE,
    MAX_TURNS,
    MIN_TURNS,
    SPADE_BASE,
    SPADE_TOOLS_BASE,
    TOOLS_BASE,
    max_source_bytes,
)
from synthgym.sandbox import Violation
from synthgym.sandbox.compile import import_roots
from synthgym.tool_schemas import tool_schemas
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding

_SPADE: Final = frozenset({SPADE_BASE, SPADE_TOOLS_BASE})
_RESET: Final = ("reset", Reason.MISSING_RESET)
_STEP: Final = ("step", Reason.MISSING_STEP)
_SOLUTION: Final = ("solution", Reason.MISSING_SOLUTION)
_METHODS: Final = {
    BASE: (_RESET, _STEP, _SOLUTION),
    TOOLS_BASE: (("setup", Reason.MISSING_RESET), _SOLUTION),
    SPADE_BASE: (_RESET, _STEP, _SOLUTION),
    SPADE_TOOLS_BASE: (_RESET, _SOLUTION),
}
"""What a class has to define itself; the rest comes from its prelude."""
_MAX_VIOLATIONS: Final = 10
"""Violations of the policy that a report holds at most."""
_MAX_MESSAGE: Final = 300
_NOT_ENVIRONMENTS: Final = frozenset({"Env", "ToolEnv", "ToolUseBaseEnv"})


@dataclass(frozen=True, slots=True)
class Outline:
    """What can be said of a source without running it."""

    source: str
    base: str
    tree: ast.Module | None
    """None when the source is too large or does not parse."""
    problem: str = ""
    """Why there is no tree."""
    line: int | None = None
    violations: tuple[Violation, ...] = ()
    """What the sandbox has against it."""

    def env_classes(self) -> list[ast.ClassDef]:
        """The classes at the top level whose names end in `Env`; in the SPADE pools it is the first."""
        found = [
            node
            for node in self._classes()
            if node.name.endswith("Env") and node.name not in _NOT_ENVIRONMENTS
        ]
        return found[:1] if self.base in _SPADE else found

    def members(self, env_class: ast.ClassDef) -> dict[str, ast.stmt]:
        """What the class and its bases in this file define, the class itself first."""
        found: dict[str, ast.stmt] = {}
        for node in self._lineage(env_class):
            for statement in node.body:
                for name in _defined_names(statement):
                    found.setdefault(name, statement)
        return found

    def extends(self, name: str) -> bool:
        """Whether the first environment class has a base of that name, also through classes of this file."""
        lines = [self._lineage(env_class) for env_class in self.env_classes()[:1]]
        bases = (base for line in lines for node in line for base in node.bases)
        return any(_base_name(base) == name for base in bases)

    def literal_max_turns(self) -> int | None:
        """`max_turns` where it is written as a number; None when only a run can tell."""
        classes = self.env_classes()
        statement = self.members(classes[0]).get("max_turns") if classes else None
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            try:
                value = ast.literal_eval(statement.value)
            except (ValueError, TypeError):
                return None
            return value if type(value) is int else None
        return None

    def import_roots(self) -> tuple[str, ...]:
        """The top-level names of all modules that the source imports, sorted."""
        return () if self.tree is None else tuple(sorted(import_roots(self.tree)))

    def _lineage(self, env_class: ast.ClassDef) -> list[ast.ClassDef]:
        """The class, then its bases as far as they are in this file."""
        by_name = {node.name: node for node in self._classes()}
        found = [env_class]
        for node in found:
            bases = [by_name.get(_base_name(base)) for base in node.bases]
            found += [base for base in bases if base is not None and base not in found]
        return found

    def _classes(self) -> list[ast.ClassDef]:
        return [node for node in _body(self.tree) if isinstance(node, ast.ClassDef)]


Check = Callable[[Outline], Iterator[Finding]]


def outline(source: str, violations: tuple[Violation, ...] = (), base: str = BASE) -> Outline:
    """Parse `source`; an outline without a tree says why there is none.

    Only for a source that a worker has parsed before: text can be written to break the parser.
    """
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > max_source_bytes(base):
        return Outline(source, base, None, f"{size} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a source's own SyntaxWarnings are not ours to show
            return Outline(source, base, ast.parse(source), violations=violations)
    except SyntaxError as error:
        return Outline(source, base, None, error.msg, error.lineno)
    except (ValueError, RecursionError, MemoryError) as error:
        return Outline(source, base, None, f"{type(error).__name__} while parsing")


def check_text(source: str) -> Iterator[Finding]:
    """The source is text. The only check that comes before a worker has parsed it."""
    try:
        source.encode()
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        yield Finding(Reason.NOT_TEXT, "bytes that are not UTF-8", line=line)
        return
    if "\0" in source:
        line = source.count("\n", 0, source.index("\0")) + 1
        yield Finding(Reason.NOT_TEXT, "a NUL character", line=line)


def check_size(candidate: Outline) -> Iterator[Finding]:
    """The source has no more bytes than its base allows."""
    size = len(candidate.source.encode("utf-8", "surrogatepass"))
    if size > max_source_bytes(candidate.base):
        yield Finding(Reason.SOURCE_TOO_LARGE, candidate.problem)


def check_syntax(candidate: Outline) -> Iterator[Finding]:
    """The source parses."""
    if candidate.tree is None:
        yield Finding(Reason.SYNTAX, candidate.problem, line=candidate.line)


def check_policy(candidate: Outline) -> Iterator[Finding]:
    """The sandbox would run the source."""
    for violation in candidate.violations[:_MAX_VIOLATIONS]:
        yield Finding(Reason.POLICY, violation.message[:_MAX_MESSAGE], line=violation.line)


def check_contract(candidate: Outline) -> Iterator[Finding]:
    """There is one environment class, and it offers what the contract names."""
    classes = candidate.env_classes()
    if not classes:
        yield Finding(Reason.NO_ENV_CLASS)
        return
    if len(classes) > 1:
        names = ", ".join(node.name for node in classes)
        yield Finding(Reason.SEVERAL_ENV_CLASSES, names, line=classes[1].lineno)
        return
    env_class = classes[0]
    members = candidate.members(env_class)
    for name, reason in _METHODS[candidate.base]:
        if not isinstance(members.get(name), ast.FunctionDef):
            yield Finding(reason, line=env_class.lineno)
    hint = isinstance(members.get("hint"), ast.FunctionDef | ast.Assign | ast.AnnAssign)
    if not hint and candidate.base not in _SPADE:
        yield Finding(Reason.MISSING_HINT, line=env_class.lineno)
    needed = _needed_arguments(members.get("__init__"))
    if needed:
        yield Finding(Reason.NEEDS_ARGUMENTS, ", ".join(needed), line=members["__init__"].lineno)
    if not _docstring(candidate, env_class) and candidate.base not in _SPADE:
        yield Finding(Reason.MISSING_DOCSTRING, line=1)
    inherits = candidate.base == TOOLS_BASE and "max_turns" not in members
    if candidate.base not in _SPADE and not inherits:
        yield from _check_max_turns(candidate, members.get("max_turns"), env_class.lineno)
    if candidate.base == TOOLS_BASE:
        yield from _check_tools(candidate, env_class)


STATIC: Final[tuple[Check, ...]] = (check_size, check_syntax, check_policy, check_contract)
"""In order; the first that finds something ends the pipeline."""


def check_static(candidate: Outline) -> tuple[Finding, ...]:
    """What the first check that finds something finds; empty when none does."""
    for check in STATIC:
        findings = tuple(check(candidate))
        if findings:
            return findings
    return ()


def _check_tools(candidate: Outline, env_class: ast.ClassDef) -> Iterator[Finding]:
    """Every tool has a schema, and there is one."""
    assert candidate.tree is not None  # check_syntax came first
    schemas, problems = tool_schemas(candidate.tree, env_class)
    for problem in problems:
        yield Finding(Reason.TOOL_SCHEMA, problem.message, line=problem.line)
    if not (schemas or problems):
        yield Finding(Reason.TOOL_SCHEMA, "there is no tool_ method", line=env_class.lineno)


def _check_max_turns(
    candidate: Outline, statement: ast.stmt | None, class_line: int
) -> Iterator[Finding]:
    """A literal must be in range; anything computed is read again once the source has run."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        yield Finding(Reason.MAX_TURNS, "there is no such class attribute", line=class_line)
        return
    turns = candidate.literal_max_turns()
    if turns is None and not isinstance(statement.value, ast.Constant):
        return
    if turns is None or not MIN_TURNS <= turns <= MAX_TURNS:
        written = ast.unparse(statement.value)[:60]
        yield Finding(Reason.MAX_TURNS, f"it is {written}", line=statement.lineno)


def _needed_arguments(init: ast.stmt | None) -> list[str]:
    """The parameters of `__init__` that have no default."""
    if not isinstance(init, ast.FunctionDef):
        return []
    arguments = init.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = positional[1 : len(positional) - len(arguments.defaults)]
    defaults = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    needed += [argument for argument, default in defaults if default is None]
    return [argument.arg for argument in needed]


def _docstring(candidate: Outline, env_class: ast.ClassDef) -> str:
    assert candidate.tree is not None  # check_syntax came first
    text = ast.get_docstring(candidate.tree) or ast.get_docstring(env_class) or ""
    return text.strip()


def _base_name(base: ast.expr) -> str:
    """The name of a base class, also of `Base[int]`; empty for what only a run can tell."""
    if isinstance(base, ast.Subscript):
        base = base.value
    return base.id if isinstance(base, ast.Name) else ""


def _body(tree: ast.Module | None) -> list[ast.stmt]:
    return [] if tree is None else tree.body


def _defined_names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return [name]
        case _:
            return []
