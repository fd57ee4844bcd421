"""Copies of a source in disguise, to measure how many of them the novelty memory recognises.

    python benchmarks/transforms.py env.py reskin+refactor --seed 3

| kind | what is changed | still the same game |
|---|---|---|
| `rename` | variables, arguments, attributes, methods, classes that the source itself names | yes |
| `constants` | numbers of 3 and above, tables included | no: other levels |
| `reword` | about 150 words of docstrings and prompts, by synonyms | yes |
| `refactor` | `rename`; methods shuffled, branches inverted, expressions and calls moved to new methods | yes |
| `reskin` | `rename`; every word of the story, in all texts, commands and word lists | yes, in other words |
| `reskin+refactor` | both | yes, in other words |

Everything is drawn from one numpy generator: the same source, kind and generator give the same
text. Comments and layout are lost, for the text is written anew from the syntax tree.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from renaming import rename
from vocabulary import PLAIN, STORY, SYNONYMS

from synthgym.preludes import TOOL_ENV, TOOL_USE_BASE, prelude

KINDS: Final = ("rename", "constants", "reword", "refactor", "reskin", "reskin+refactor")
SAME_GAME: Final = ("rename", "reword", "refactor", "reskin", "reskin+refactor")
"""Kinds after which a good environment is still one that passes validation."""
RATE: Final = 0.5
"""Share of the places at which a refactoring is done."""
REWORDED: Final = 0.9
"""Share of the words with a synonym that get it."""
MAX_EXTRACTED: Final = 4
MAX_CALLS: Final = 3

_TOOL_BASE: Final = re.compile(r"\bTool(?:UseBase)?Env\b")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_FIELD: Final = re.compile(r"\{[^{}]*\}")
_PATTERN: Final = re.compile(r"\\[wdsbWDSB]|\(\?|\[\^|\]\+|\.\*")
_QUOTED: Final = re.compile(r"`[^`\n]{1,60}`|'[^'\n]{1,40}'|\"[^\"\n]{1,40}\"|<[^<>\n]{1,40}>")
_KEPT: Final = re.compile(f"{_FIELD.pattern}|{_QUOTED.pattern}")
_PROSE: Final = 4
"""Words from which on a text is prose."""


def transform(
    source: str, kind: str, rng: np.random.Generator, *, keep: Collection[str] = ()
) -> str:
    """Return a copy of `source` in disguise. `ValueError` for an unknown kind.

    `keep` are names and words that something outside of the source refers to, such as those of its
    base class.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    tree = ast.parse(source)
    kept = frozenset(keep) | _base_names(source)
    if "reskin" in kind:
        _reskin(tree, rng, kept)
    if kind == "constants":
        _change_numbers(tree, rng)
    if kind == "reword":
        _reword(tree, rng)
    if kind in ("rename", "refactor", "reskin", "reskin+refactor"):
        rename(tree, rng, kept)
    if "refactor" in kind:
        _refactor(tree, rng)
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    ast.parse(text)
    return text


def _base_names(source: str) -> frozenset[str]:
    """What the bases of environments with tools spell; nothing for a source without them."""
    if not _TOOL_BASE.search(source):
        return frozenset()
    return frozenset(_WORD.findall(prelude(TOOL_ENV) + prelude(TOOL_USE_BASE)))


# --- texts ---


def _texts(tree: ast.AST) -> list[tuple[ast.Constant, str]]:
    """Every text with the whole that it is a piece of (an f-string, its fields as `{}`); no format specifications."""
    wholes: dict[ast.AST, str] = {}
    skipped: set[ast.AST] = set()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [n.value if isinstance(n, ast.Constant) else "{}" for n in node.values]
            wholes.update(dict.fromkeys(node.values, "".join(map(str, pieces))))
        elif isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            skipped.update(ast.walk(node.format_spec))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            found.append((node, wholes.get(node, node.value)))
    return found


def _is_prose(text: str) -> bool:
    return len(_WORD.findall(_FIELD.sub(" ", text))) >= _PROSE and not _PATTERN.search(text)


def _outside(text: str, borders: re.Pattern[str], change: Callable[[str], str]) -> str:
    """`text` with `change` done to what lies outside of `borders`."""
    parts, end = [], 0
    for match in borders.finditer(text):
        parts += [change(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, change(text[end:])])


def _as_written(old: str, new: str) -> str:
    """`new` in the case of `old`."""
    if old.isupper() and len(old) > 1:
        return new.upper()
    return new[0].upper() + new[1:] if old[0].isupper() else new


def _reword(tree: ast.AST, rng: np.random.Generator) -> None:
    """Put synonyms into prose, outside of quotes and fields. What stands alone as a text is a command, and stays."""
    texts = _texts(tree)
    commands: set[str] = set()
    for node, whole in texts:
        text = str(node.value)
        quoted = _QUOTED.findall(text) if _is_prose(whole) else [text]
        commands.update(word.lower() for piece in quoted for word in _WORD.findall(piece))
    usable = {old: new for old, new in SYNONYMS.items() if old not in commands}

    def other(match: re.Match[str]) -> str:
        new = usable.get(match[0].lower())
        if new is None or rng.random() > REWORDED:
            return match[0]
        return _as_written(match[0], new)

    for node, whole in texts:
        if _is_prose(whole):
            node.value = _outside(str(node.value), _KEPT, lambda part: _WORD.sub(other, part))


def _reskin(tree: ast.AST, rng: np.random.Generator, keep: frozenset[str]) -> None:
    """Another word for every word of the story, the same one everywhere: in prose, commands and word lists."""
    texts = _texts(tree)
    told = [str(node.value) for node, whole in texts if _is_prose(whole)]
    for table in ast.walk(tree):
        if isinstance(table, ast.List | ast.Tuple | ast.Set) and len(table.elts) > 2:
            told += [str(n.value) for n in table.elts if isinstance(n, ast.Constant)]
    kept = PLAIN | {name.lower() for name in keep}
    found = (word.lower() for text in told for word in _WORD.findall(_FIELD.sub(" ", text)))
    story = [w for w in dict.fromkeys(found) if len(w) > 2 and w.isalpha() and w.isascii()]
    new = _story([word for word in story if word not in kept], rng)

    def other(match: re.Match[str]) -> str:
        word = new.get(match[0].lower())
        return match[0] if word is None else _as_written(match[0], word)

    for node, _ in texts:
        text = str(node.value)
        if not _PATTERN.search(text):
            node.value = _outside(text, _FIELD, lambda part: _WORD.sub(other, part))


def _story(words: list[str], rng: np.random.Generator) -> dict[str, str]:
    """Another word for each, no two the same; `bars` becomes what `bar` becomes, with an s."""
    stems = [w for w in words if not (w.endswith("s") and w[:-1] in words)]
    fresh = [str(word) for word in rng.permutation(STORY) if word not in words]
    fresh += [one + other for one in fresh for other in fresh[:8]]
    new = dict(zip(stems, fresh, strict=False))
    new.update({w: new[w[:-1]] + "s" for w in words if w not in new})
    return new


# --- numbers ---


def _change_numbers(tree: ast.AST, rng: np.random.Generator) -> None:
    """Other numbers of the same kind. 0, 1 and 2 are mechanics more often than settings, and stay."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant):
            continue
        value = node.value
        if type(value) is int and value > 2:
            node.value = value + int(rng.integers(1, max(2, value // 4) + 1))
        elif type(value) is float and value > 0.0 and value != 1.0:
            node.value = round(value * float(rng.uniform(1.05, 1.3)), 4)


# --- structure ---


def _refactor(tree: ast.Module, rng: np.random.Generator) -> None:
    _Inverter(rng).visit(tree)
    for node in [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]:
        _extract(node, rng)
        _insert_calls(node, rng)
        _shuffle(node, rng)


class _Inverter(ast.NodeTransformer):
    """`if a: x else: y` as `if not a: y else: x`; in expressions too."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def visit_If(self, node: ast.If) -> ast.AST:
        """Branches of an if; an elif is left where it is."""
        self.generic_visit(node)
        plain = node.orelse and not (len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If))
        if plain and self._rng.random() < RATE:
            node.test, node.body, node.orelse = _negated(node.test), node.orelse, node.body
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """The two values of a conditional expression."""
        self.generic_visit(node)
        if self._rng.random() < RATE:
            node.test, node.body, node.orelse = _negated(node.test), node.orelse, node.body
        return node


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    opposite = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In}
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in opposite:
        return ast.Compare(test.left, [opposite[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Plain methods: without decorators, with `self` first."""
    return [
        item
        for item in node.body
        if isinstance(item, ast.FunctionDef)
        and not item.decorator_list
        and item.args.args
        and item.args.args[0].arg == "self"
    ]


def _extract(node: ast.ClassDef, rng: np.random.Generator) -> None:
    """Move the right sides of some assignments into methods of their own."""
    places = []
    for method in _methods(node):
        bound, nested = _bound(method), _bound_inside(method)
        found = (s for s in _own_statements(method) if isinstance(s, ast.Assign))
        places += [(s, bound) for s in found if _can_move(s.value, bound, nested)]
    count = min(MAX_EXTRACTED, int(np.ceil(len(places) * RATE)))
    for place in sorted(int(i) for i in rng.permutation(len(places))[:count]):
        statement, bound = places[place]
        name = _fresh(node, "_part", rng)
        inputs = _inputs(statement.value, bound)
        body: list[ast.stmt] = [ast.Return(statement.value)]
        node.body.append(_method(name, inputs, body))
        called = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
        statement.value = ast.Call(called, [ast.Name(i, ast.Load()) for i in inputs], [])


def _own_statements(method: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Statements of a method, without those of functions and classes inside of it."""
    stack: list[ast.AST] = list(reversed(method.body))
    while stack:
        item = stack.pop()
        if isinstance(item, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(item, ast.stmt):
            yield item
        stack.extend(reversed(list(ast.iter_child_nodes(item))))


def _can_move(value: ast.expr, bound: set[str], nested: set[str]) -> bool:
    """Whether an expression means the same elsewhere: large enough, and binding nothing that outlives it."""
    parts = list(ast.walk(value))
    fixed = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.Starred)
    inner = {n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = {n.id for n in parts if isinstance(n, ast.Name)}
    return (
        len(parts) >= 6
        and not any(isinstance(part, fixed) for part in parts)
        and not names & {"super", "locals", "__class__"}
        and not inner & bound
        and not names & nested
    )


def _bound_inside(method: ast.FunctionDef) -> set[str]:
    """Names of the functions inside of a method, and what they bind."""
    nested = [n for n in ast.walk(method) if isinstance(n, ast.FunctionDef) and n is not method]
    return {name for function in nested for name in (function.name, *_bound(function))}


def _bound(method: ast.FunctionDef) -> set[str]:
    """Names that a method binds outside of comprehensions."""
    names = {argument.arg for argument in ast.walk(method.args) if isinstance(argument, ast.arg)}
    inner = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    stack: list[ast.AST] = list(method.body)
    while stack:
        item = stack.pop()
        if isinstance(item, inner):
            continue
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            names.add(item.id)
        if isinstance(item, ast.FunctionDef | ast.ClassDef):
            names.add(item.name)
        if isinstance(item, ast.Import | ast.ImportFrom):
            names.update((a.asname or a.name).partition(".")[0] for a in item.names)
        if isinstance(item, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and item.name:
            names.add(item.name)
        stack.extend(ast.iter_child_nodes(item))
    return names


def _inputs(value: ast.expr, bound: set[str]) -> list[str]:
    used = [n.id for n in ast.walk(value) if isinstance(n, ast.Name)]
    return [name for name in dict.fromkeys(used) if name in bound and name != "self"]


def _fresh(node: ast.ClassDef, stem: str, rng: np.random.Generator) -> str:
    taken = {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef)}
    taken |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    while (name := f"{stem}_{rng.choice(STORY)}") in taken:
        stem += "_"
    return name


def _method(name: str, inputs: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    text = f"def {name}({', '.join(['self', *inputs])}):\n    pass\n"
    made = ast.parse(text).body[0]
    assert isinstance(made, ast.FunctionDef)
    made.body = body
    return made


_CHECKSUM: Final = """
def {name}(self, text):
    total = 7
    for place, letter in enumerate(str(text)[:16]):
        total = (total * 31 + ord(letter) + place) % 65521
    return total
"""


def _insert_calls(node: ast.ClassDef, rng: np.random.Generator) -> None:
    """Add a method that does nothing to the game, and call it at the head of some others."""
    methods = _methods(node)
    if not methods:
        return
    name = _fresh(node, "_check", rng)
    for place in sorted(int(i) for i in rng.permutation(len(methods))[:MAX_CALLS]):
        method = methods[place]
        argument = repr(str(rng.choice(STORY)))
        call = ast.parse(f"self.{name}({argument})").body[0]
        first = 1 if ast.get_docstring(method) is not None else 0
        method.body.insert(first, call)
    node.body += ast.parse(_CHECKSUM.format(name=name)).body


def _shuffle(node: ast.ClassDef, rng: np.random.Generator) -> None:
    """Put plain methods in another order; what is decorated or not a method stays ahead of them."""
    methods = _methods(node)
    if len({method.name for method in methods}) < len(methods):
        return  # the last of two equal names counts
    rest = [item for item in node.body if item not in methods]
    node.body = [*rest, *(methods[int(i)] for i in rng.permutation(len(methods)))]


def main() -> None:
    """Print one copy of a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    text = wanted.file.read_text("utf-8")
    print(transform(text, wanted.kind, np.random.default_rng(wanted.seed)), end="")


if __name__ == "__main__":
    main()
