"""What the functions of a source may do to what its module holds: the static half of sharing one module.

When nothing that a module binds can change after it has run, its instances need no namespaces of their own.
`analyse` looks at the syntax tree before the policy rewrites it. It knows no types: for every name and every attribute
it says how deeply nested a mutable container may be for all its uses to be harmless. `program` compares that with the
values that the module really bound. What is not known to be harmless is harmful.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from synthgym.sandbox import scopes
from synthgym.sandbox.uses import FOREVER, Uses

__all__ = ["FOREVER", "Facts", "Limit", "analyse", "attach", "facts_of"]

_MARK: Final = "synthgym.sandbox.sharing 2"

_CLASS_METHODS: Final = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})
_READERS: Final = frozenset({"attrgetter", "methodcaller"})
_REFUSED_ATTRIBUTES: Final = {
    "mapping": "dict views lead back to the dict",
    "register": "register() changes an abstract class",
    "_field_defaults": "_field_defaults is a dict of the class",
}
_CHANGING: Final = frozenset(
    {"abstractmethod", "dataclass", "runtime_checkable", "total_ordering", "wraps"}
)
"""Decorators that change what they are given; harmless on a function or class that is made on the spot."""
_CHANGING_MODULES: Final = frozenset(
    {"abc", "dataclasses", "functools", "typing", "typing_extensions"}
)
_PLAIN_DECORATORS: Final = frozenset({"classmethod", "property", "staticmethod"})
_MEMO: Final = "deepcopy() tells what it copied"
_SETATTR: Final = "object.__setattr__ may be read by another name"
_LOOKED_AT: Final[tuple[type[ast.AST], ...]] = (
    *(ast.Name, ast.Attribute, ast.Call, ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global),
    *(ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.alias, ast.MatchClass),
)
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


class Limit(msgspec.Struct, frozen=True):
    """The depth of nested mutable containers up to which every use of a name is harmless; 0 allows none.

    A list of strings has depth 1, a dict of lists of strings depth 2, an immutable value depth 0.
    """

    as_dict: int = FOREVER
    """When the name is bound to a dict."""
    other: int = FOREVER
    """When it is bound to anything else."""

    def __and__(self, more: Limit) -> Limit:
        return Limit(min(self.as_dict, more.as_dict), min(self.other, more.other))


class Facts(msgspec.Struct, frozen=True):
    """What the text of a source says about its use of what the module binds."""

    blocked: str
    """Why the module cannot be shared whatever it binds; empty when it may be."""
    finalizers: bool
    """Whether a generator may run code when it is thrown away, which may be while another instance runs."""
    rebinds_cells: bool
    """Whether there is a `nonlocal` statement."""
    reads_any_attribute: bool
    """Whether an attribute may be read by a name that is not in the text."""
    names: Mapping[str, Limit]
    """By global name; no use of a name that is missing is harmful."""
    attributes: Mapping[str, Limit]
    """By attribute name as the source spells it, for what classes bind."""


def analyse(tree: ast.Module) -> Facts:
    """Return the facts about a module; `tree` is as parsed, not as the policy rewrites it, and is not changed."""
    return _Analysis(tree).facts()


def attach(code: types.CodeType, facts: Facts) -> types.CodeType:
    """`code` with `facts` as its last constant, which no instruction uses; so they are kept wherever it is kept."""
    constant = (
        _MARK,
        (facts.blocked, facts.finalizers, facts.rebinds_cells, facts.reads_any_attribute),
        tuple((name, limit.as_dict, limit.other) for name, limit in facts.names.items()),
        tuple((name, limit.as_dict, limit.other) for name, limit in facts.attributes.items()),
    )
    return code.replace(co_consts=(*code.co_consts, constant))


def facts_of(code: types.CodeType) -> Facts | None:
    """The facts that `attach` put there; None for code without them."""
    match code.co_consts[-1:]:
        case ((str(mark), tuple(flags), tuple(by_name), tuple(by_attribute)),) if mark == _MARK:
            limits = [
                {name: Limit(*ends) for name, *ends in each} for each in (by_name, by_attribute)
            ]
            return Facts(*flags, *limits)
    return None


class _Analysis:
    """One walk over a tree, statements and expressions with the function that they belong to."""

    def __init__(self, tree: ast.Module) -> None:
        self._body = [rest for item in tree.body for rest in scopes.main_block_rest(item)]
        module = ast.Module(self._body, [])
        self._uses = Uses(module)
        self._module_names = scopes.class_level_names(self._body)
        self._classes = {
            node.name for node in self._uses.children if isinstance(node, ast.ClassDef)
        } & self._module_names
        self._blocked: list[str] = []
        self._finalizers = self._rebinds = self._reads_any = False
        self._class_escapes = self._foreign_store = self._names_object = False
        self._names: dict[str, Limit] = {}
        self._attributes: dict[str, Limit] = {}
        self._values: set[str] = set()
        self._facades = {"functools"}

    def facts(self) -> Facts:
        """Walk, and sum up."""
        for node, function, owner in _with_functions(self._body, self._uses.children):
            if isinstance(node, _LOOKED_AT):
                self._look_at(node, function, owner)
        if self._class_escapes and self._foreign_store:
            self._block("a class kept in a variable may be written to")
        if self._reads_any and self._values & self._facades:
            self._block("a decorator may be read by another name")
        if self._reads_any and self._names_object:
            self._block(_SETATTR)
        if self._uses.binds("__deepcopy__"):
            self._block(_MEMO)
        if self._uses.unknown_attributes:
            self._block("attributes get names that are not in the text")
        return Facts(
            blocked=self._blocked[0] if self._blocked else "",
            finalizers=self._finalizers,
            rebinds_cells=self._rebinds,
            reads_any_attribute=self._reads_any,
            names=_limiting(self._names),
            attributes=_limiting(self._attributes),
        )

    def _block(self, reason: str) -> None:
        self._blocked.append(reason)

    def _look_at(self, node: ast.AST, function: ast.AST | None, owner: str) -> None:
        match node:
            case ast.Name(ctx=ast.Load()):
                self._name(node, function)
            case ast.Attribute():
                self._attribute(node, function, owner)
            case ast.Call(func=ast.Name(id=called)):
                self._call(node, called)
            case ast.Call(func=ast.Attribute(attr="__setattr__")):
                self._call(node, "setattr")
            case ast.Yield() | ast.YieldFrom():
                self._finalizers |= self._uses.inside_cleanup(node)
                # A generator that is thrown away closes what it delegates to.
                closes = self._uses.binds("close") or self._uses.unknown_attributes
                self._finalizers |= closes and isinstance(node, ast.YieldFrom)
            case ast.Nonlocal():
                self._rebinds = True
            case ast.Global():
                self._block("a global statement")
            case _:
                self._definition(node, function)

    def _definition(self, node: ast.AST, function: ast.AST | None) -> None:
        match node:
            case ast.alias(name="deepcopy", asname=str()):
                self._block(_MEMO)
            case ast.alias(name=name, asname=str()) if name in _CHANGING:
                self._block(f"{name} is known by another name")
            case ast.alias(name=name, asname=known) if name in _CHANGING_MODULES:
                self._facades.add(known or name)
            case ast.FunctionDef() | ast.Lambda() if function is None:
                self._defaults(node)
            case ast.alias(name=name, asname=str()) if name in _READERS:
                self._reads_any = True
            case ast.ClassDef() if function is not None:
                self._local_class(node)
            case ast.MatchClass():
                for name in node.kwd_attrs:
                    if name in _REFUSED_ATTRIBUTES:
                        self._block(_REFUSED_ATTRIBUTES[name])
                    self._limit_attribute(name, Limit(0, 0))

    def _defaults(self, node: ast.FunctionDef | ast.Lambda) -> None:
        """Defaults made when the module runs are shared: an object made on the spot could be written to."""
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            for part in ast.walk(default) if default is not None else ():
                if isinstance(part, ast.Name):
                    self._names[part.id] = Limit(0, 0)
                elif isinstance(part, ast.Attribute):
                    self._limit_attribute(part.attr, Limit(0, 0))
                elif not isinstance(part, _PLAIN_DEFAULT):
                    self._block("a default that is made when the module runs")

    def _name(self, node: ast.Name, function: ast.AST | None) -> None:
        name = node.id
        self._reader(node, name)
        self._changer(node, name, function)
        if not self._uses.is_owner(node):
            self._values.add(name)
        if name == "object" and not self._uses.is_base(node):
            self._names_object = True
        if name in self._classes and not self._uses.names_a_class(node):
            self._class_escapes = True
        if function is not None:
            as_dict, other = self._uses.limits(node)
            self._names[name] = self._names.get(name, Limit()) & Limit(as_dict, other)

    def _attribute(self, node: ast.Attribute, function: ast.AST | None, owner: str) -> None:
        name = node.attr
        if name in _REFUSED_ATTRIBUTES:
            self._block(_REFUSED_ATTRIBUTES[name])
        self._reader(node, name)
        self._changer(node, name, function)
        if name == "__init__":  # that of a frozen dataclass sets fields, whoever calls it
            own = _is_plain_super(node.value) and not self._uses.binds("super")
            self._limit_attribute("super().__init__" if own else name, Limit(0, 0))
            return
        if function is None:
            return
        if isinstance(node.ctx, ast.Load):
            if name == "__class__" and not self._uses.names_a_class(node):
                self._class_escapes = True
            self._limit_attribute(name, Limit(*self._uses.limits(node)))
            return
        self._limit_attribute(name, Limit(0, 0))
        if isinstance(node.value, ast.Name) and node.value.id == "self" and owner == "instance":
            return
        self._foreign_store = True
        if not _is_instance(node.value, self._module_names, function, owner):
            self._block(f"a function sets .{name} of a class, a function or a module's object")

    def _reader(self, node: ast.expr, name: str) -> None:
        """`getattr` and the like read any attribute; `deepcopy` gives its second argument what it copied."""
        call = self._uses.is_called(node)
        if name in _READERS or (name == "getattr" and call is None):
            self._reads_any = True
        plain = call is not None and len(call.args) == 1 and not call.keywords
        if name == "__deepcopy__" or (name == "deepcopy" and not plain):
            self._block(_MEMO)

    def _changer(self, node: ast.expr, name: str, function: ast.AST | None) -> None:
        """`wraps(f)(g)` changes g; as a decorator it changes a function that is made on the spot."""
        if name not in _CHANGING or self._uses.decorates(node, _CHANGING):
            return
        if function is not None or self._uses.is_called(node) is None:
            self._block(f"{name} is used otherwise than as a decorator")

    def _local_class(self, node: ast.ClassDef) -> None:
        """Its body gives a property that it binds another name, and its `__new__` may hand out anything."""
        if any(not _is_plain_member(item) for item in node.body):
            self._block("a class that a function makes binds what others have made")

    def _limit_attribute(self, name: str, limit: Limit) -> None:
        self._attributes[name] = self._attributes.get(name, Limit()) & limit

    def _call(self, node: ast.Call, called: str) -> None:
        if called == "type" and len(node.args) == 1 and not self._uses.names_a_class(node):
            self._class_escapes = True
        if called in ("getattr", "setattr", "delattr"):
            first, name = [*node.args, None, None][:2]
            on_self = isinstance(first, ast.Name) and first.id == "self"
            if called != "getattr" and not on_self:
                self._block(f"{called}() on something else than self")
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                self._limit_attribute(name.value, Limit(0, 0))
                if called == "getattr" and name.value in _REFUSED_ATTRIBUTES:
                    self._block(_REFUSED_ATTRIBUTES[name.value])
                if called == "getattr" and name.value == "__setattr__":
                    self._block(_SETATTR)
            else:
                self._reads_any = True


def _limiting(limits: dict[str, Limit]) -> dict[str, Limit]:
    return {name: limit for name, limit in limits.items() if limit != Limit()}


_PLAIN_DEFAULT: Final[tuple[type[ast.AST], ...]] = (
    ast.Constant,
    ast.UnaryOp,
    ast.unaryop,
    ast.BinOp,
    ast.operator,
    ast.Tuple,
    ast.expr_context,
)


def _is_plain_super(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="super"), args=[], keywords=[]):
            return True
    return False


def _is_plain_member(item: ast.stmt) -> bool:
    """Whether a statement of a class body binds only what it makes on the spot."""
    match item:
        case ast.Pass() | ast.ClassDef() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name=name, decorator_list=decorators):
            plain = _PLAIN_DECORATORS | _CHANGING
            known = [isinstance(by, ast.Name) and by.id in plain for by in decorators]
            return name != "__new__" and all(known)
        case ast.AnnAssign(value=None):
            return True
        case ast.Assign(value=ast.expr() as value) | ast.AnnAssign(value=ast.expr() as value):
            displays = (*_PLAIN_DEFAULT, ast.List, ast.Dict, ast.Set)
            return all(isinstance(part, displays) for part in ast.walk(value))
    return False


def _is_instance(
    value: ast.expr, module_names: frozenset[str], function: ast.AST, owner: str
) -> bool:
    """Whether the object whose attribute is set looks like one that the running instance made."""
    node = value
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute) and node.attr == "__class__":
            return False
        node = node.value
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Name) and node.func.id in ("type", "getattr"))
    if not isinstance(node, ast.Name):
        return False
    return (
        node.id not in module_names
        and node.id != "cls"
        and not (owner == "class" and node.id == _first_parameter(function))
    )


def _first_parameter(function: ast.AST) -> str:
    if not isinstance(function, _FUNCTIONS):
        return ""
    every = [*function.args.posonlyargs, *function.args.args]
    return every[0].arg if every else ""


def _kind_of_method(function: ast.FunctionDef) -> str:
    """`class` when the first parameter is a class, `instance` otherwise."""
    decorators = {node.id for node in function.decorator_list if isinstance(node, ast.Name)}
    by_name = function.name in _CLASS_METHODS
    return "class" if by_name or "classmethod" in decorators else "instance"


def _with_functions(
    body: list[ast.stmt], children: Mapping[ast.AST, list[ast.AST]]
) -> Iterator[tuple[ast.AST, ast.AST | None, str]]:
    """Every node below `body`, the function whose call runs it, and whether that is a method of a class or an object.

    The function is None for what runs with the module. A generator expression counts as one: it may run later.
    """
    todo: list[tuple[ast.AST, ast.AST | None, str]] = [(node, None, "") for node in body]
    while todo:
        node, function, owner = todo.pop()
        yield node, function, owner
        if isinstance(node, ast.FunctionDef):
            kind = _kind_of_method(node)
            todo += [(child, node, kind) for child in node.body]
            todo += [(child, function, owner) for child in (node.args, *node.decorator_list)]
            todo += [(node.returns, function, owner)] if node.returns is not None else []
        elif isinstance(node, ast.Lambda):
            todo += [(node.body, node, owner), (node.args, function, owner)]
        elif isinstance(node, ast.GeneratorExp):
            todo += [(child, function or node, owner) for child in children[node]]
        else:
            todo += [(child, function, owner) for child in children[node]]
