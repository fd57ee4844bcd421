"""Calls of functions in a model's reply, read as text: parsed, never evaluated.

Benchmarks of tool use let a model write Python calls, `[move(source='a', destination='b'), ls()]`, and their own code
evaluates what they decode of it. Nothing of a reply reaches them from here but calls that were rebuilt from a name and
plain values; a call whose function is not offered, or with an argument that is no literal, has a problem in its place.
"""

from __future__ import annotations

import ast
import operator
import threading
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from spade_loop.errors import SpadeLoopError
from spade_loop.parsing import strip_thinking

MAX_CHARACTERS: Final = 100_000
"""Longest reply that is parsed."""
MAX_DEPTH: Final = 50
"""Deepest nesting of an argument."""
_LARGEST: Final = 10**30
"""Largest number that sums in an argument may come to."""
_SUMS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_PARSING: Final = threading.Lock()
"""Filters of warnings belong to the process."""


class NoCallsError(SpadeLoopError, ValueError):
    """A text is not a list of calls. Mostly it is an answer in words."""


class _NoLiteralError(ValueError):
    """An argument is not a literal."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was read."""

    name: str
    """Dotted where it was written so."""
    arguments: Mapping[str, Any]
    """By keyword; empty for a call with a problem."""
    problem: str = ""
    """Why it must not be made, or empty."""

    def rendered(self) -> str:
        """The call as Python, of plain values alone."""
        return (
            f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.arguments.items())})"
        )


def read_calls(text: str) -> tuple[Call, ...]:
    """The calls of a reply that is nothing but a list of calls, brackets and backticks around it aside.

    As the benchmarks' decoders do it: positional arguments are dropped, an unquoted word is a text. Unlike them a call
    as an argument, and everything else that is no literal, makes the call one with a problem; sums of numbers and texts
    are the one exception. `NoCallsError` for any other text; an empty list is no error.
    """
    stripped = text.strip("`\n ")
    if len(stripped) > MAX_CHARACTERS:
        raise NoCallsError(f"{len(stripped)} characters, more than {MAX_CHARACTERS}")
    stripped = stripped if stripped.startswith("[") else f"[{stripped}"
    stripped = stripped if stripped.endswith("]") else f"{stripped}]"
    try:
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as for "\\d" in a text
            body = ast.parse(stripped, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise NoCallsError(f"not Python: {type(error).__name__}") from error
    if not isinstance(body, ast.List) or not all(isinstance(one, ast.Call) for one in body.elts):
        raise NoCallsError("not a list of calls")
    return tuple(_call(one) for one in body.elts if isinstance(one, ast.Call))


def spoken(reply: str) -> str:
    """A reply without what its model thought, also where the chat template began the thought."""
    return strip_thinking(reply.rpartition("</think>")[2]).strip()


def offered(call: Call, functions: Collection[str]) -> Call:
    """The call, or the same with a problem when its function is not one of `functions`."""
    if call.problem or call.name in functions:
        return call
    return Call(call.name, {}, f"name '{call.name}' is not defined")


def _call(node: ast.Call) -> Call:
    name = _dotted(node.func)
    if not name:
        return Call("call", {}, "the function of a call must be a name")
    if any(keyword.arg is None for keyword in node.keywords):
        return Call(name, {}, "** is not supported")
    try:
        arguments = {str(keyword.arg): _literal(keyword.value) for keyword in node.keywords}
    except _NoLiteralError as error:
        return Call(name, {}, str(error))
    return Call(name, arguments)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join(reversed([*parts, node.id]))


def _literal(node: ast.expr, depth: int = 0) -> Any:
    """The value of a literal. `_NoLiteralError` for anything else."""
    if depth > MAX_DEPTH:
        raise _NoLiteralError(f"an argument is nested more than {MAX_DEPTH} deep")
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=word):
            return word
        case ast.List(elts=elements):
            return [_literal(one, depth + 1) for one in elements]
        case ast.Tuple(elts=elements):
            return tuple(_literal(one, depth + 1) for one in elements)
        case ast.Dict(keys=keys, values=values):
            return {
                _key(key): _literal(one, depth + 1) for key, one in zip(keys, values, strict=True)
            }
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            number = _number(_literal(operand, depth + 1))
            return -number if isinstance(sign, ast.USub) else number
        case ast.BinOp(left=left, op=sign, right=right):
            return _sum(_literal(left, depth + 1), type(sign), _literal(right, depth + 1))
    raise _NoLiteralError(f"arguments must be literals, not {type(node).__name__}")


def _key(node: ast.expr | None) -> Any:
    key = [] if node is None else _literal(node)  # None: a dictionary unpacked into this one
    if not isinstance(key, str | int | float | None):
        raise _NoLiteralError("keys of a dictionary must be texts or numbers")
    return key


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _NoLiteralError(f"expected a number, got {type(value).__name__}")
    return value


def _sum(left: Any, sign: type[ast.operator], right: Any) -> Any:
    """A sum, difference, product or quotient of numbers, or two texts put together."""
    if sign is ast.Add and isinstance(left, str) and isinstance(right, str):
        return left + right
    if sign not in _SUMS:
        raise _NoLiteralError(f"arguments must be literals, not {sign.__name__}")
    try:
        value = _SUMS[sign](_number(left), _number(right))
    except (ArithmeticError, ValueError) as error:
        raise _NoLiteralError(str(error)) from error
    if abs(value) > _LARGEST:
        raise _NoLiteralError("a number is too large")
    return value
