"""Whether a use of a container leaves it as it is and keeps no reference to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from synthgym.sandbox import scopes

FOREVER: Final = 1 << 20
"""A limit that no container reaches."""

_Limits = tuple[int, int]
"""The limit for a dict and the limit for anything else; see `sharing.Limit`."""

_ANY: Final = (FOREVER, FOREVER)
_FLAT: Final = (1, 1)
"""Elements get out, so they must be immutable."""
_KEYS: Final = (FOREVER, 1)
"""What iteration gives gets out: of a dict only keys, which are immutable."""
_NONE: Final = (0, 0)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READ_ONLY: Final = _words("len str repr bool print isinstance deepcopy")
"""Functions that keep neither their first argument nor what is in it."""
_ITERATING: Final = _words(
    "sorted list tuple set frozenset iter enumerate min max any all sum reversed dict deque Counter"
    " accumulate cycle islice pairwise permutations combinations combinations_with_replacement prod fsum"
)
"""Functions that only iterate over their first argument."""
_ITERATING_ALL: Final = _words("zip map filter chain product zip_longest")
"""Functions that only iterate over whichever argument is a container."""
_ONLY_ARGUMENT: Final = _words("min max iter")
"""Functions that do something else when they are given more arguments."""
_IMPORTED: Final = {
    "copy": _words("deepcopy"),
    "collections": _words("deque Counter"),
    "itertools": _words(
        "accumulate chain combinations combinations_with_replacement cycle islice pairwise permutations product"
        " zip_longest"
    ),
    "math": _words("prod fsum"),
}
"""Which of those names a source may import, and from where."""
_METHODS_OF_OTHERS: Final = _words(
    "choices sample join translate extend update union intersection difference symmetric_difference issubset"
    " issuperset isdisjoint intersection_update difference_update symmetric_difference_update from_iterable"
)
"""Methods of library objects that only iterate over their first argument, or look things up in it."""
_CHANGING_METHODS: Final = _words(
    "extend update intersection_update difference_update symmetric_difference_update"
)
"""Those that change the object they belong to, which is the first argument in `dict.update(N, ...)`."""
_OWN_METHODS: Final = _words(
    "items values index count copy union intersection difference symmetric_difference issubset issuperset"
    " isdisjoint"
)
"""Methods that a container may be asked for; none changes it, and what they give holds its elements."""
_ABSTRACT_SETS: Final = _words("Set MutableSet AbstractSet KeysView ItemsView ValuesView")
"""Library classes whose operators hand the other operand to a constructor of the subclass."""
_ODD_DICTS: Final = _words("OrderedDict defaultdict DefaultDict")
"""The same, but they are too frequent to be refused when they are only called."""
_SLICE_TAKERS: Final = _words("__getitem__ __setitem__ __delitem__ __class_getitem__ __missing__")
"""Methods that may be handed a slice object."""
_OPERATORS: Final = frozenset(
    f"__{side}{name}__"
    for name in _words("add sub mul matmul truediv floordiv mod pow lshift rshift and xor or")
    for side in ("", "r", "i")
)
_COMPARISONS: Final = _words("__eq__ __ne__ __lt__ __le__ __gt__ __ge__")
_FRESH_CALLS: Final = _words("set list tuple frozenset dict sorted len range str")
_MAKERS: Final = frozenset({"namedtuple", "NamedTuple"})
"""Functions that make classes whose attributes are named by their arguments."""
_NAMING = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.FunctionDef,
    ast.ClassDef,
    ast.arg,
    ast.ExceptHandler,
    ast.pattern,
)
"""Nodes that may name a variable or an attribute."""
_CLEANUP = (ast.Try, ast.With)
_NAMES = (ast.Name, ast.Attribute)
_DECORATED = (ast.FunctionDef, ast.ClassDef)


class Uses:
    """Judges the places in which the expressions of one module stand."""

    def __init__(self, module: ast.Module) -> None:
        self._parents: dict[ast.AST, ast.AST] = {}
        self.unknown_attributes = False
        """Whether attributes may get names that are not spelled in the text."""
        bound: set[str] = set()
        attributes: set[str] = set()
        spelled: set[str] = set()
        kept: set[str] = set()
        read: set[str] = set()
        self.children: dict[ast.AST, list[ast.AST]] = {}
        todo: list[ast.AST] = [module]
        for node in todo:
            inside = self.children[node] = scopes.children_of(node)
            todo += inside
            for child in inside:
                self._parents[child] = node
            if isinstance(node, ast.alias):
                self.unknown_attributes |= node.asname is not None and node.name in _MAKERS
                bound.update(self._imported(node))
                attributes.update([node.asname] if node.asname else [])
                spelled.add(node.name)
                kept.update([node.name] if node.asname else [])
                continue
            if isinstance(node, _NAMES):
                name = _last_name(node)
                spelled.add(name)
                kept.update([name] if self.is_called(node) is None else [])
                if isinstance(node, ast.Attribute):
                    read.add(name)
            elif isinstance(node, ast.MatchClass):
                read.update(node.kwd_attrs)
            if isinstance(node, _NAMING):
                bound.update(scopes.names_bound_by(node))
                attributes.update(self._attributes_made_by(node))
        self._bound = frozenset(bound)
        self._attributes = self._bound | attributes
        has_sets = not (spelled.isdisjoint(_ABSTRACT_SETS) and kept.isdisjoint(_ODD_DICTS))
        makes_slices = "slice" in spelled or not self._bound.isdisjoint(_SLICE_TAKERS)
        # From Python 3.12 on slices are hashable: a `KeyError` may hold one among its arguments.
        self._slices = makes_slices or "args" in read
        self._operators = has_sets or not self._bound.isdisjoint(_OPERATORS)
        self._comparisons = has_sets or not self._bound.isdisjoint(_COMPARISONS)

    def _imported(self, alias: ast.alias) -> list[str]:
        """What an import binds; not when it is just the function that is meant by that name anyway."""
        statement = self._parents[alias]
        known = isinstance(statement, ast.ImportFrom) and alias.asname is None
        if known and alias.name in _IMPORTED.get(getattr(statement, "module", None) or "", ()):
            return []
        return scopes.names_bound_by(alias)

    def _attributes_made_by(self, node: ast.AST) -> Iterator[str]:
        """Names that attributes of the source's objects get here, other than by binding a name in a class."""
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.Call(
                func=ast.Name(id="namedtuple" | "NamedTuple")
                | ast.Attribute(attr="namedtuple" | "NamedTuple")
            ):
                self.unknown_attributes |= any(
                    item.arg in (None, "field_names") for item in node.keywords
                )
                yield from self._literal_names(node.args[1:])
            case ast.Call(func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__")):
                yield from self._literal_names(node.args[1:2])
            case (
                ast.Name(id="namedtuple" | "NamedTuple" | "setattr")
                | ast.Attribute(attr="namedtuple" | "NamedTuple" | "__setattr__")
            ):
                if self.is_called(node) is None and not self.is_base(node):
                    self.unknown_attributes = True

    def _literal_names(self, given: list[ast.expr]) -> Iterator[str]:
        allowed = (ast.Constant, ast.List, ast.Tuple, ast.expr_context, ast.Name, ast.Attribute)
        for value in given:
            outer = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
            for item in outer:
                parts = list(ast.walk(item))
                texts = [
                    p.value
                    for p in parts
                    if isinstance(p, ast.Constant) and isinstance(p.value, str)
                ]
                if not texts or not all(isinstance(part, allowed) for part in parts):
                    self.unknown_attributes = True
                for text in texts:
                    yield from text.replace(",", " ").split()

    def binds(self, *names: str) -> bool:
        """Whether a variable or an attribute gets one of `names` somewhere."""
        return not self._attributes.isdisjoint(names)

    def is_called(self, node: ast.expr) -> ast.Call | None:
        """The call of `node`, if it stands where it is called."""
        parent = self._parents[node]
        return parent if isinstance(parent, ast.Call) and parent.func is node else None

    def is_owner(self, node: ast.expr) -> bool:
        """Whether only an attribute of `node` is asked for."""
        return isinstance(self._parents[node], ast.Attribute)

    def decorates(self, node: ast.expr, alike: frozenset[str]) -> bool:
        """Whether `node` decorates what is made on the spot; decorators below it must be among `alike`."""
        top: ast.AST = self.is_called(node) or node
        parent = self._parents[top]
        if not isinstance(parent, _DECORATED) or top not in parent.decorator_list:
            return False
        below = parent.decorator_list[parent.decorator_list.index(top) + 1 :]
        return all(_last_name(item) in alike for item in below)

    def is_base(self, node: ast.expr) -> bool:
        """Whether `node` is a base of a class statement."""
        return isinstance(self._parents[node], ast.ClassDef)

    def inside_cleanup(self, node: ast.AST) -> bool:
        """Whether `node` stands in a `try` or `with` of its own function."""
        parent = self._parents.get(node)
        while parent is not None and not isinstance(parent, ast.FunctionDef | ast.Lambda):
            if isinstance(parent, _CLEANUP):
                return True
            parent = self._parents.get(parent)
        return False

    def names_a_class(self, node: ast.expr) -> bool:
        """Whether `node`, an expression that gives a class, stands where the class is used and not kept."""
        parent = self._parents[node]
        while isinstance(parent, ast.Tuple | ast.Subscript | ast.BinOp | ast.Constant | ast.List):
            node, parent = parent, self._parents[parent]
        match parent:
            case ast.Attribute(value=value):
                return value is node
            case ast.Call(func=func):
                checks = isinstance(func, ast.Name) and func.id in (
                    "isinstance",
                    "issubclass",
                    "cast",
                )
                return func is node or checks
            case ast.ClassDef() | ast.FunctionDef() | ast.arg() | ast.MatchClass() | ast.Raise():
                return True
            case ast.ExceptHandler(type=kind):
                return kind is node
            case ast.AnnAssign(annotation=annotation):
                return annotation is node
            case ast.keyword(arg=arg):
                return arg == "default_factory"
            case ast.Compare():
                return True
        return False

    # The limits of a use

    def limits(self, node: ast.expr) -> _Limits:
        """How deep the container at `node` may be nested without this use being harmful."""
        parent = self._parents.get(node)
        match parent:
            case ast.Subscript(value=value, ctx=ast.Load()) if value is node:
                return _FLAT if self._may_be_slice(parent.slice) else self._element(parent)
            case ast.Attribute(value=value, ctx=ast.Load()) if value is node:
                return self._method(parent)
            case ast.Call():
                return self._argument(parent, node)
            case ast.keyword():
                return self._keyword(parent)
            case ast.Compare():
                return self._compared(parent, node)
            case ast.BinOp():
                return self._operand(parent, node)
            case ast.AugAssign():
                return _NONE if self._operators else _FLAT
            case ast.BoolOp():
                return self.limits(parent)
            case ast.IfExp():
                return _ANY if parent.test is node else self.limits(parent)
        return self._statement(parent, node)

    def _statement(self, parent: ast.AST | None, node: ast.expr) -> _Limits:
        match parent:
            case ast.For(iter=source) | ast.comprehension(iter=source) if source is node:
                return _KEYS
            case ast.Starred(ctx=ast.Load()):
                return _KEYS
            case ast.Dict():  # `{**N}`, or N among the values
                spread = any(
                    k is None and v is node for k, v in zip(parent.keys, parent.values, strict=True)
                )
                return _FLAT if spread else _NONE
            case ast.FormattedValue(value=value):
                return _ANY if value is node else _NONE
            case ast.UnaryOp(op=ast.Not()) | ast.Expr():
                return _ANY
            case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
                return _ANY if test is node else _NONE
            case ast.comprehension():
                return _ANY if node in parent.ifs else _NONE
            case ast.Assign(targets=targets):
                unpacked = all(isinstance(target, ast.Tuple | ast.List) for target in targets)
                return _KEYS if unpacked else _NONE
        return _NONE

    def _may_be_slice(self, index: ast.expr) -> bool:
        """Whether `N[index]` may be a copy of N, with the elements of N, and not an element."""
        return isinstance(index, ast.Slice) or (
            self._slices and not isinstance(index, ast.Constant | ast.JoinedStr | ast.Tuple)
        )

    def _element(self, node: ast.expr) -> _Limits:
        """Limits of a container of which an element stands at `node`."""
        deeper = min(self.limits(node)) + 1
        return (deeper, deeper)

    def _method(self, node: ast.Attribute) -> _Limits:
        call = self.is_called(node)
        match node.attr:
            case "get":
                return self._element(call) if call is not None else _FLAT
            case "keys":
                return _KEYS
            case name if name in _OWN_METHODS:
                return _FLAT
        return _NONE

    def _argument(self, call: ast.Call, node: ast.expr) -> _Limits:
        if call.func is node:
            return _NONE
        place, alone = call.args.index(node), len(call.args) == 1
        match call.func:
            case ast.Name(id=name) if name not in self._bound:
                return self._function(name, place, alone)
            case ast.Attribute(attr=name, value=owner) if name not in self._attributes:
                if name == "choice" and place == 0:
                    return self._element(call)
                if name == "format" and isinstance(owner, ast.Constant):
                    return _ANY
                unbound = name in _CHANGING_METHODS and not (alone and not call.keywords)
                if name in _METHODS_OF_OTHERS and place == 0 and not unbound:
                    return _FLAT if name in ("update", "choices") else _KEYS
                if isinstance(owner, ast.Name) and name in _IMPORTED.get(owner.id, ()):
                    return self._function(name, place, alone)
        return _NONE

    def _function(self, name: str, place: int, alone: bool) -> _Limits:
        if name in _ITERATING_ALL:
            return _KEYS
        if place > 0:
            return _NONE
        if name in _READ_ONLY:
            return _ANY
        if name in _ITERATING and (alone or name not in _ONLY_ARGUMENT):
            return _FLAT if name in ("dict", "Counter") else _KEYS
        return _NONE

    def _keyword(self, node: ast.keyword) -> _Limits:
        if node.arg is None:
            return _FLAT  # `f(**N)` makes a dict of its own
        call = self._parents[node]
        match call:
            case ast.Call(func=ast.Attribute(attr="choices")) if "choices" not in self._attributes:
                return _FLAT if node.arg in ("weights", "cum_weights") else _NONE
        return _NONE

    def _compared(self, node: ast.Compare, part: ast.expr) -> _Limits:
        """`x in N` hands out elements; any other comparison may hand N itself to a method of the other side."""
        place = -1 if part is node.left else node.comparators.index(part)
        if place >= 0 and isinstance(node.ops[place], ast.In | ast.NotIn):
            last = place == len(node.ops) - 1
            return _KEYS if last else _NONE
        membership = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        sides = [side for side in (node.left, *node.comparators) if side is not part]
        plain = not self._comparisons or all(self._is_plain(side) for side in sides)
        return _FLAT if plain and not membership else _NONE

    def _operand(self, node: ast.BinOp, part: ast.expr) -> _Limits:
        if isinstance(node.op, ast.Mod):
            text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
            return _ANY if text else _NONE
        other = node.right if part is node.left else node.left
        return _FLAT if not self._operators or self._is_plain(other) else _NONE

    def _is_plain(self, node: ast.expr) -> bool:
        """Whether `node` gives a number, a text or a container of the library, which has no methods of the source."""
        match node:
            case ast.Constant() | ast.JoinedStr():
                return True
            case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
                return True
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                return True
            case ast.Call(func=ast.Name(id=name)):
                return name in _FRESH_CALLS and name not in self._bound
            case ast.BinOp():
                return self._is_plain(node.left) and self._is_plain(node.right)
        return False


def _last_name(node: ast.expr) -> str:
    """`f` of `f`, `m.f` and `m.f(...)`; else empty."""
    called = node.func if isinstance(node, ast.Call) else node
    if isinstance(called, ast.Name):
        return called.id
    return called.attr if isinstance(called, ast.Attribute) else ""
