"""Structural fingerprints of a source: what stays equal under new names, new numbers and new words.

The walk is ours and versioned (`ast/1`), because `ast.dump` changes between Python releases. It
writes every node as `Type(fields...)` with the fields of the table below in that order, and leaves
out docstrings, annotations, imports, asserts, `pass` and type parameters. A name becomes `N` unless
it is a builtin; an attribute of `self` becomes `.`, other attributes keep their name; a literal
becomes its type. A container of more than 8 items that holds only literals is data: it becomes its
own type, whatever its length, and its items go into the data hash instead.
"""

from __future__ import annotations

import ast
import hashlib
import json
import warnings
from collections.abc import Iterator
from typing import Final

from synthgym.errors import ConfigError

AST_SPEC: Final = "ast/1"
DATA_SPEC: Final = "data/1"
DATA_ITEMS: Final = 8
"""A container with more items than this holds data rather than structure."""

_FIELD_TABLE: Final = """
Module body | FunctionDef decorator_list args body | AsyncFunctionDef decorator_list args body
ClassDef decorator_list bases keywords body | Return value | Delete targets
Assign targets value | AugAssign target op value | For target iter body orelse
AsyncFor target iter body orelse | While test body orelse | If test body orelse
With items body | AsyncWith items body | Match subject cases | Raise exc cause
Try body handlers orelse finalbody | TryStar body handlers orelse finalbody | Expr value
BoolOp op values | NamedExpr target value | BinOp left op right | UnaryOp op operand
IfExp test body orelse | Lambda args body | Dict keys values | Set elts
ListComp elt generators | SetComp elt generators | DictComp key value generators
GeneratorExp elt generators | Await value | Yield value | YieldFrom value
Compare left ops comparators | Call func args keywords | FormattedValue value format_spec
JoinedStr values | Subscript value slice | Starred value | List elts | Tuple elts
Slice lower upper step | comprehension target iter ifs | ExceptHandler type body | keyword value
withitem context_expr optional_vars | match_case pattern guard body | MatchValue value
MatchSequence patterns | MatchMapping keys patterns | MatchClass cls patterns kwd_patterns
MatchAs pattern | MatchOr patterns
"""
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    words[0]: tuple(words[1:])
    for words in (
        cell.split()
        for line in _FIELD_TABLE.splitlines()
        for cell in line.split("|")
        if cell.strip()
    )
}
_DROPPED: Final = frozenset({"Import", "ImportFrom", "Assert", "Pass", "TypeAlias"})
_DATA_TYPES: Final = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_SPLITTERS: Final = frozenset({"split", "splitlines"})

# A list of our own: `dir(builtins)` differs between Python releases.
_BUILTIN_NAMES: Final = """
abs all any ascii bin bool bytearray bytes callable chr complex dict dir divmod enumerate filter
float format frozenset getattr hasattr hash hex id int isinstance issubclass iter len list map
max min next object oct ord pow print property range repr reversed round set setattr slice
sorted staticmethod classmethod str sum super tuple type vars zip ArithmeticError AssertionError
AttributeError Exception IndexError KeyError LookupError NotImplementedError OverflowError
RuntimeError StopIteration TypeError ValueError ZeroDivisionError NotImplemented
"""
_BUILTINS: Final = frozenset(_BUILTIN_NAMES.split())


def parse_source(source: str) -> ast.Module:
    """Return the syntax tree of `source`, unexecuted; `ConfigError` when it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in generated text is not our warning
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(
            f"a fingerprint needs a source that check_source accepts; this does not parse: {error}"
        ) from error


def ast_hash(tree: ast.Module) -> str:
    """`ast/1:<64 hex>` over the walk: equal where only names, literals and comments differ."""
    digest = hashlib.sha256()
    for token in tokens(tree):
        digest.update(token.encode("utf-8", "surrogatepass") + b"\0")
    return f"{AST_SPEC}:{digest.hexdigest()}"


def data_hash(tree: ast.Module) -> str:
    """`data/1:<64 hex>` over the literals inside containers of more than 8 items, in source order.

    The words of a string literal that is split on the spot (`"ash oak elm ...".split()`) count as
    such a container.
    """
    digest = hashlib.sha256()
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, ast.Constant) and inside:
            digest.update(_literal(node.value).encode() + b"\0")
        elif (words := _split_words(node)) is not None:
            digest.update("".join(_literal(word) + "\0" for word in words).encode())
            continue
        inside = inside or _is_large(node)
        stack.extend((child, inside) for child in reversed(list(ast.iter_child_nodes(node))))
    return f"{DATA_SPEC}:{digest.hexdigest()}"


def tokens(tree: ast.Module) -> Iterator[str]:
    """Yield the tokens of the walk. Iterative: a deep source cannot exhaust the caller's stack."""
    stack: list[str | ast.AST] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        else:
            stack.extend(reversed(_expand(item)))


def _expand(node: ast.AST) -> list[str | ast.AST]:
    """One step of the walk: the tokens and children that stand for `node`, in order."""
    match node:
        case ast.Name():
            return [f"B:{node.id}" if node.id in _BUILTINS else "N"]
        case ast.Constant() | ast.MatchSingleton():
            return [f"K:{type(node.value).__name__}"]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant() as operand):
            return [operand]  # the sign belongs to the literal
        case ast.Attribute(value=ast.Name(id="self")):
            return ["."]
        case ast.Attribute():
            return [f".{node.attr}(", node.value, ")"]
        case ast.AnnAssign(value=None):
            return []
        case ast.AnnAssign(value=ast.expr() as value):
            return ["Assign(", "[", node.target, "]", value, ")"]
        case ast.Expr(value=ast.Constant()):
            return []  # docstrings and stray literals
    return _expand_compound(node)


def _expand_compound(node: ast.AST) -> list[str | ast.AST]:
    if isinstance(node, ast.JoinedStr):
        return _expand_fstring(node)
    if isinstance(node, ast.arguments):
        return _expand_arguments(node)
    if _is_table(node):
        return [f"D:{type(node).__name__}"]
    return _expand_fields(node)


def _expand_fields(node: ast.AST) -> list[str | ast.AST]:
    name = type(node).__name__
    if name in _DROPPED:
        return []
    out: list[str | ast.AST] = [f"{name}("]
    for field in _FIELDS.get(name, ()):
        value = getattr(node, field)
        if isinstance(value, list):
            out += ["[", *("-" if child is None else child for child in value), "]"]
        else:
            out.append("-" if value is None else value)
    return [*out, ")"]


def _expand_arguments(node: ast.arguments) -> list[str | ast.AST]:
    positional = len(node.posonlyargs) + len(node.args)
    stars = f"{'*' if node.vararg else ''}{'**' if node.kwarg else ''}"
    keyword_defaults = ["-" if default is None else default for default in node.kw_defaults]
    return [
        f"A{positional},{len(node.kwonlyargs)}{stars}(",
        *node.defaults,
        "/",
        *keyword_defaults,
        ")",
    ]


def _expand_fstring(node: ast.JoinedStr) -> list[str | ast.AST]:
    """Only the replacement fields count: Python releases cut the text between them differently."""
    fields = [child for child in node.values if isinstance(child, ast.FormattedValue)]
    if not fields:
        return ["K:str"]
    out: list[str | ast.AST] = ["F("]
    for field in fields:
        spec = field.format_spec
        nested = spec.values if isinstance(spec, ast.JoinedStr) else []
        out += [field.value, *(n.value for n in nested if isinstance(n, ast.FormattedValue))]
    return [*out, ")"]


def _items(node: ast.AST) -> list[ast.expr | None] | None:
    if isinstance(node, ast.Dict):
        return [*node.keys, *node.values]
    return list(node.elts) if isinstance(node, ast.List | ast.Tuple | ast.Set) else None


def _is_large(node: ast.AST) -> bool:
    if isinstance(node, ast.Dict):
        return len(node.keys) > DATA_ITEMS
    return isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) > DATA_ITEMS


def _is_table(node: ast.AST) -> bool:
    """Whether `node` is a large container of nothing but literals, nested or not."""
    if not _is_large(node):
        return False
    stack: list[ast.expr | None] = _items(node) or []
    while stack:
        item = stack.pop()
        if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub | ast.UAdd):
            item = item.operand
        if isinstance(item, ast.Constant):
            continue
        if not isinstance(item, _DATA_TYPES):
            return False
        stack.extend(_items(item) or [])
    return True


def _split_words(node: ast.AST) -> list[str] | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr=attr)):
            words = text.splitlines() if attr == "splitlines" else text.split()
            return words if attr in _SPLITTERS and len(words) > DATA_ITEMS else None
    return None


def _literal(value: object) -> str:
    """Spell a literal independently of the Python release (`repr` of text depends on it)."""
    match value:
        case bool() | None:
            return str(value)
        case str():
            return json.dumps(value)
        case bytes():
            return "b" + value.hex()
        case int():
            return hex(value)
        case float():
            return value.hex()
        case complex():
            return f"{value.real.hex()},{value.imag.hex()}"
    return type(value).__name__
