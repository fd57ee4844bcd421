"""OpenAI function schemas read off the text of `tool_` methods: nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

PREFIX: Final = "tool_"
RESERVED: Final = "tool_schemas"
"""Where `ToolEnv` keeps what is read here."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PLAIN: Final = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "List": "array",
    "Sequence": "array",
    "dict": "object",
    "Dict": "object",
    "Mapping": "object",
}
_LISTS: Final = frozenset({"list", "List", "Sequence"})
_DICTS: Final = frozenset({"dict", "Dict", "Mapping"})
_UNUSABLE: Final = frozenset({"property", "cached_property"})
_LONGEST_TYPE: Final = 100
"""Characters of a type in quotes: the depth of what is parsed here is not bounded otherwise."""
_SECTION: Final = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_ARGUMENT: Final = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)")


class Problem(msgspec.Struct, frozen=True):
    """Why a method has no schema."""

    line: int
    message: str


def tool_schemas(
    tree: ast.Module, env_class: ast.ClassDef
) -> tuple[list[dict[str, Any]], list[Problem]]:
    """The schemas of the class, then of its bases in the same file, each in the order of the text; and what is wrong.

    A method with a problem has no schema. A method hides one of the same name further up, as it does when it is called.
    """
    found: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    for method in _methods(tree, env_class).values():
        name = method.name.removeprefix(PREFIX)
        try:
            found[name] = _schema(method, name)
        except ValueError as error:
            problems.append(Problem(method.lineno, f"{method.name}: {error}"))
    return list(found.values()), problems


def _methods(tree: ast.Module, env_class: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """The `tool_` methods by name: those of the class, then those of its bases in this file."""
    by_name = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found: dict[str, ast.FunctionDef] = {}
    for node in _linear(env_class, by_name, ()):
        own = {
            item.name: item
            for item in node.body
            if isinstance(item, ast.FunctionDef) and item.name.startswith(PREFIX)
        }
        found = found | {name: item for name, item in own.items() if name not in found}
    return found


def _linear(
    env_class: ast.ClassDef, by_name: dict[str, ast.ClassDef], below: Sequence[str]
) -> list[ast.ClassDef]:
    """The class and its bases as Python looks methods up: depth first, a base of several behind all of them."""
    if env_class.name in below:
        return []
    order = [env_class]
    for base in env_class.bases:
        if isinstance(base, ast.Name) and base.id in by_name:
            order += _linear(by_name[base.id], by_name, (*below, env_class.name))
    return [node for place, node in enumerate(order) if node not in order[place + 1 :]]


def _schema(method: ast.FunctionDef, name: str) -> dict[str, Any]:
    """The schema of one method; `ValueError` says what keeps it from having one."""
    if method.name == RESERVED or not _NAME.fullmatch(name):
        raise ValueError("a tool needs another name, of ASCII letters, digits and underscores")
    description, described = _read_docstring(ast.get_docstring(method) or "")
    if not description:
        raise ValueError("it needs a docstring that says what the tool does")
    properties: dict[str, Any] = {}
    required: list[str] = []
    for argument, default in _parameters(method):
        if argument.annotation is None:
            raise ValueError(f"parameter {argument.arg!r} needs a type")
        if argument.arg.startswith("__"):
            raise ValueError(f"parameter {argument.arg!r} has a name that is private to the class")
        schema = _type(argument.annotation)
        if isinstance(default, ast.Constant) and default.value is None:
            schema = _any_of([schema, {"type": "null"}])
        if argument.arg in described:
            schema = schema | {"description": described[argument.arg]}
        properties[argument.arg] = schema
        if default is None:
            required.append(argument.arg)
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": required},
        },
    }


def _parameters(method: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    """The parameters that a call fills, with their defaults."""
    arguments = method.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        raise ValueError("it may have named parameters only, no *args and no **kwargs")
    decorators = {item.id for item in method.decorator_list if isinstance(item, ast.Name)}
    if decorators & _UNUSABLE:
        raise ValueError("it must be a method, not a property")
    missing = len(arguments.args) - len(arguments.defaults)
    pairs = list(zip(arguments.args, [*[None] * missing, *arguments.defaults], strict=True))
    if "staticmethod" not in decorators:
        if not pairs:
            raise ValueError("its first parameter must be self")
        del pairs[0]
    return [*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]


def _read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """(what the tool does: the first paragraph, what a section `Args:` says of each parameter)."""
    front: list[str] = []
    described: dict[str, str] = {}
    lines = _utf8(docstring).splitlines()
    while lines and not _SECTION.fullmatch(lines[0]):
        front.append(lines.pop(0))
    first = next((line for line in lines[1:] if line.strip()), "")
    margin, current = _indent(first), ""
    for line in lines[1:]:
        if line.strip() and not _indent(line):
            break  # the next section
        entry = _ARGUMENT.fullmatch(line.strip()) if _indent(line) == margin else None
        if entry is not None:
            current = entry[1]
            described[current] = entry[2]
        elif current:
            described[current] = f"{described[current]} {line.strip()}".strip()
    description = " ".join("\n".join(front).strip().split("\n\n")[0].split())
    return description, {name: text for name, text in described.items() if text}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _utf8(text: str) -> str:
    """Without lone surrogates, which JSON could not carry."""
    return text.encode("utf-8", "replace").decode()


def _type(node: ast.expr) -> dict[str, Any]:
    """The JSON schema of a type; `ValueError` for one that JSON does not have."""
    match node:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(text)):
            return _type(_parsed(text))
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _PLAIN:
            return {"type": _PLAIN[name]}
        case ast.Name(id="Any") | ast.Attribute(attr="Any"):
            return {}
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([_type(left), _type(right)])
        case ast.Subscript(value=ast.Name(id=outer) | ast.Attribute(attr=outer), slice=inner):
            return _generic(outer, list(inner.elts) if isinstance(inner, ast.Tuple) else [inner])
    raise ValueError(f"the type {_utf8(ast.unparse(node))[:60]!r} has no JSON schema")


def _generic(outer: str, items: Sequence[ast.expr]) -> dict[str, Any]:
    if outer in _LISTS and len(items) == 1:
        return {"type": "array", "items": _type(items[0])}
    if outer in _DICTS and len(items) == 2:
        if _type(items[0]) != {"type": "string"}:
            raise ValueError("the keys of an object are of type str")
        return {"type": "object", "additionalProperties": _type(items[1])}
    if outer == "Annotated":
        return _type(items[0])
    if outer == "Optional" and len(items) == 1:
        return _any_of([_type(items[0]), {"type": "null"}])
    if outer == "Union":
        return _any_of([_type(item) for item in items])
    if outer == "Literal":
        return _literal([_constant(item) for item in items])
    raise ValueError(f"the type {outer[:60]}[...] has no JSON schema")


def _constant(node: ast.expr) -> str | int | None:
    match node:
        case ast.Constant(value=str() | int() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    raise ValueError("a Literal holds texts or whole numbers")


def _literal(values: Sequence[str | int | None]) -> dict[str, Any]:
    """An enumeration of texts, of whole numbers, or of both; None may be among them."""
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if type(value) is int]
    empty = [value for value in values if value is None]
    if len(texts) + len(numbers) + len(empty) != len(values):
        raise ValueError("a Literal holds texts or whole numbers")
    if any(_utf8(text) != text for text in texts):
        raise ValueError("a Literal holds text that is not UTF-8")
    options: list[dict[str, Any]] = []
    options += [{"type": "string", "enum": texts}] if texts else []
    options += [{"type": "integer", "enum": numbers}] if numbers else []
    options += [{"type": "null"}] if empty else []
    return _any_of(options)


def _any_of(options: Sequence[dict[str, Any]]) -> dict[str, Any]:
    flat: list[dict[str, Any]] = []
    for option in options:
        flat += [item for item in option.get("anyOf", [option]) if item not in flat]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST_TYPE:
        raise ValueError("a type in quotes is too long")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"the type {_utf8(text)[:60]!r} does not parse") from error
