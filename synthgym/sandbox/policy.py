"""The language that environment sources may use: RestrictedPython's transformer with a policy of our own.

RestrictedPython as shipped accepts next to no generated source. This policy allows what such sources use (private
names, augmented assignment, data-model methods, annotations, `nonlocal`, `match`) by renaming or checking at compile
time, and refuses the rest; a node type that nobody has looked at is refused. It is a filter for accidents,
determinism and easy attacks. The process is the boundary.
"""

from __future__ import annotations

import ast

from synthgym.errors import did_you_mean
from synthgym.sandbox import names, scopes
from synthgym.sandbox.formatting import is_plain_template
from synthgym.sandbox.naming import NamePolicy, Scope, Violation

__all__ = ["SandboxPolicy", "Violation"]

_ANNOTATION_KINDS = ("ClassVar", "InitVar", "KW_ONLY")


class SandboxPolicy(NamePolicy):
    """Rewrites a module into guarded code; `violations` and `requires` (imported modules) hold what it found."""

    def __init__(self) -> None:
        super().__init__()
        self.requires: set[str] = set()
        self._stars: set[str] = set()

    # Attributes and items

    def _attribute_problem(self, name: str, *, load: bool) -> str | None:
        if name in names.ENUM_NAMES:
            return None
        if names.is_dunder(name) and not (load and name in names.READ_DUNDERS):
            return f"attribute {name} is not available to environments"
        return names.reserved(name)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Public attributes are read natively, private ones under their new name, special ones through a guard."""
        load = isinstance(node.ctx, ast.Load)
        problem = self._attribute_problem(node.attr, load=load)
        if problem is not None:
            self.error(node, problem)
            return self._contents(node)
        node.value = self.visit(node.value)
        if not load:
            node.attr = self._member(node.attr)
            node.value = _call("_write_", [node.value], node)
            return node
        if node.attr in names.CLOCKS:
            return _call("_clock_", [node.value, ast.Constant(node.attr)], node)
        if node.attr in names.GUARDED or names.is_dunder(node.attr):
            return _call("_getattr_", [node.value, ast.Constant(node.attr)], node)
        node.attr = self._member(node.attr)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Items are read natively and written through the write guard."""
        self._contents(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = _call("_write_", [node.value], node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Native; but `.format` would be loaded raw and handed to the right side's `__radd__`."""
        if isinstance(node.target, ast.Attribute) and node.target.attr in names.FORMATS:
            self.error(node, f"augmented assignment to .{node.target.attr} is not available")
        return self._contents(node)

    # Statements that need no per-object access control: native

    def _native(self, node: ast.AST) -> ast.AST:
        return self._contents(node)

    visit_With = _native
    visit_Match = visit_match_case = _native
    visit_MatchSingleton = visit_MatchSequence = visit_MatchOr = _native

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Native; and so is `.format` when it is called at once on a literal whose fields have no paths."""
        match node.func:
            case ast.Attribute(ast.Constant(str(text)), "format") if _is_plain(text):
                node.args = [self.visit(item) for item in node.args]
                node.keywords = [self.visit(item) for item in node.keywords]
                return node
        return self._contents(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.AST]:
        """Native, so that a chained tuple assignment evaluates its value once; `__slots__` must be literal."""
        target = node.targets[0]
        if self._in_class and isinstance(target, ast.Name) and target.id == "__slots__":
            self._check_slots(node)
            return node
        node.value = self.visit(node.value)  # before the targets, as it runs: `_x = _x` in a class
        node.targets = [self.visit(target) for target in node.targets]
        return node

    def _check_slots(self, node: ast.Assign) -> None:
        """Slot names are attribute names: only literal strings can be checked and renamed."""
        value = node.value
        items = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
        if len(node.targets) > 1:
            self.error(node, "__slots__ must be assigned on its own")
        for item in items:
            if not isinstance(item, ast.Constant) or not isinstance(item.value, str):
                self.error(node, "__slots__ must be a tuple of literal strings")
            elif names.reserved(item.value) or names.is_dunder(item.value):
                self.error(node, f"{item.value!r} cannot be a slot")
            else:
                item.value = self._member(item.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | list[ast.AST]:
        """Annotations are dropped; in a class body the name keeps a placeholder, for dataclasses and the like."""
        plain: ast.stmt = ast.Pass()
        if node.value is not None:
            plain = ast.Assign(targets=[node.target], value=node.value)
        ast.copy_location(plain, node)
        if isinstance(node.target, ast.Name) and node.target.id == "__slots__":
            visited: ast.AST = self.visit(plain)
            return visited
        if node.value is not None:
            node.value = self.visit(node.value)
        node.target = self.visit(node.target)
        if self._in_class and node.simple:
            node.annotation = ast.copy_location(_placeholder(node.annotation), node.annotation)
            return node
        if isinstance(plain, ast.Assign) and node.value is not None:
            plain.targets, plain.value = [node.target], node.value
        return plain

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """Check the name that the exception is bound to."""
        self.check_name(node, node.name)
        node.name = None if node.name is None else self._bind(node.name)
        return self._contents(node)

    def guard_iter(self, node: ast.For | ast.comprehension) -> ast.AST:
        """Native iteration."""
        if getattr(node, "is_async", 0):
            self.error(node, "asynchronous code is not available to environments")
        return self._loop(node) if isinstance(node, ast.For) else self._contents(node)

    def _loop(self, node: ast.For | ast.While) -> ast.AST:
        """In a class body: a later turn of the loop finds what an earlier one bound, whatever the order."""
        self._scopes[-1].bound.update(scopes.class_level_names(node.body))
        return self._contents(node)

    visit_While = _loop

    # Functions, classes, comprehensions

    def check_function_argument_names(self, node: ast.FunctionDef | ast.Lambda) -> None:
        """Check every parameter, the positional-only ones included."""
        args = node.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        for arg in every:
            if arg is not None:
                self.check_name(arg, arg.arg)

    def _body(self, scope: Scope, body: list[ast.stmt]) -> list[ast.stmt]:
        holder = ast.Module(body=body, type_ignores=[])
        with self._inside(scope):
            self._contents(holder)
        return holder.body

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Functions keep no annotations; decorators and defaults belong to the scope around."""
        self.check_name(node, node.name, allow_magic_methods=self._in_class)
        self.check_function_argument_names(node)
        self._refuse_type_parameters(node)
        node.decorator_list = [self.visit(item) for item in node.decorator_list]
        node.args = self.visit(node.args)
        node.name = self._bind(node.name)
        node.returns = None
        node.body = self._body(Scope(), node.body)
        return node

    def _refuse_type_parameters(self, node: ast.AST) -> None:
        if getattr(node, "type_params", None):
            self.error(node, "type parameters are not available to environments")

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """A parameter without its annotation."""
        node.annotation = None
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """As a function: defaults outside, body inside."""
        self.check_function_argument_names(node)
        node.args = self.visit(node.args)
        with self._inside(Scope()):
            node.body = self.visit(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A class without a metaclass; the private names of its level are renamed."""
        self.check_name(node, node.name)
        self._refuse_type_parameters(node)
        for keyword in node.keywords:
            if keyword.arg != "total":
                self.error(keyword.value, f"class keyword {keyword.arg!r} is not available")
        node.bases = [self.visit(base) for base in node.bases]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        node.decorator_list = [self.visit(item) for item in node.decorator_list]
        bound = self._bind(node.name)
        self._classes.append(node.name)
        level = Scope(node.name, scopes.class_level_names(node.body))
        node.body = self._body(level, node.body)
        self._classes.pop()
        node.name = bound
        return node

    def _comprehension(self, node: ast.ListComp | ast.DictComp) -> ast.AST:
        """Only the first iterable is evaluated in the scope around a comprehension."""
        first = node.generators[0]
        outer = self.visit(first.iter)
        first.iter = ast.copy_location(ast.Constant(None), first.iter)
        with self._inside(Scope()):
            self._contents(node)
        node.generators[0].iter = outer
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    # Pattern matching

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        """A pattern reads its dotted name natively: nothing in it may need a guard."""
        self._check_pattern_path(node.value)
        return self._contents(node)

    def _check_pattern_path(self, node: ast.expr) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and (
                part.attr in names.GUARDED or names.is_dunder(part.attr)
            ):
                self.error(node, f".{part.attr} cannot be used in a pattern")

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> ast.AST:
        """Check a captured name."""
        self.check_name(node, node.name)
        node.name = None if node.name is None else self._bind(node.name)
        return self._contents(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        """Check the name that takes the rest."""
        self.check_name(node, node.rest)
        node.rest = None if node.rest is None else self._bind(node.rest)
        return self._contents(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        """Keyword patterns are attribute reads; positional ones read `__match_args__`, so builtin types only."""
        self._check_pattern_path(node.cls)
        for name in node.kwd_attrs:
            if names.reserved(name) or names.is_dunder(name) or name in names.GUARDED:
                self.error(node, f".{name} cannot be used in a pattern")
        node.kwd_attrs = [self._member(name) for name in node.kwd_attrs]
        name = node.cls.id if isinstance(node.cls, ast.Name) else ""
        builtin = name in names.MATCH_TYPES and name not in self._bound
        if node.patterns and not (builtin and len(node.patterns) == 1):
            self.error(
                node,
                "positional class patterns work for builtin types only: name the fields, Point(x=a, y=b)",
            )
        self._contents(node)
        if node.patterns and builtin:
            alias = ast.Name(f"_t_{name}_", ast.Load())
            node.cls = ast.copy_location(alias, node.cls)
        return node

    # Imports become explicit calls: IMPORT_FROM falls back to sys.modules, which would leak real modules

    def _import(self, node: ast.stmt, target: str, module: str, attribute: str | None) -> ast.stmt:
        call = _call("_import_", [ast.Constant(module), ast.Constant(attribute)], node)
        name = ast.copy_location(ast.Name(self._bind(target), ast.Store()), node)
        return ast.copy_location(ast.Assign([name], call), node)

    def _check_module(self, node: ast.AST, module: str) -> bool:
        self.requires.add(module.split(".")[0])
        known = module in names.MODULES
        if not known:
            near = did_you_mean(module[:80], names.MODULES)
            self.error(node, f"module {module!r} is not available to environments{near}")
        return known

    def visit_Import(self, node: ast.Import) -> list[ast.AST]:
        """`import a.b as c` for the modules on the list."""
        made: list[ast.AST] = []
        for alias in node.names:
            root = alias.name.split(".")[0]
            target = alias.asname or root
            self.check_name(node, target)
            if self._check_module(node, alias.name):
                made.append(self._import(node, target, alias.name if alias.asname else root, None))
        return made or [ast.copy_location(ast.Pass(), node)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.AST]:
        """`from a import b` for the modules and names on the list; a star is expanded."""
        made: list[ast.AST] = [ast.copy_location(ast.Pass(), node)]
        module = node.module or ""
        if node.level:
            self.error(node, "relative imports are not available: a source is one file")
            return made
        if module == "__future__" or not self._check_module(node, module):
            return made
        offered = names.MODULES[module]
        for alias in node.names:
            if alias.name == "*":
                made += self._star(node, module)
                continue
            self.check_name(node, alias.asname or alias.name)
            if alias.name not in offered:
                near = did_you_mean(alias.name[:80], offered)
                self.error(node, f"{module}.{alias.name} is not available to environments{near}")
            made.append(self._import(node, alias.asname or alias.name, module, alias.name))
        return made

    def _star(self, node: ast.ImportFrom, module: str) -> list[ast.stmt]:
        """One assignment a name; once a module, because a thousand stars would make millions of assignments."""
        if module in self._stars or len(self._scopes) > 1:
            self.error(node, f"from {module} import * works once, at the top level of the source")
            return []
        self._stars.add(module)
        return [self._import(node, name, module, name) for name in names.MODULES[module]]

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """The whole source, without its `if __name__ == "__main__":` block."""
        node.body = [rest for item in node.body for rest in scopes.main_block_rest(item)]
        self._bound = scopes.all_bound_names(node)
        found = self._contents(node)
        scopes.fill_locations(found)
        return found


def _is_plain(template: str) -> bool:
    try:
        return is_plain_template(template)
    except ValueError:
        return False  # malformed: the guard raises what `str.format` raises


def _call(hook: str, args: list[ast.expr], node: ast.AST) -> ast.expr:
    name = ast.Name(hook, ast.Load())
    for new in (name, *args):
        if not hasattr(new, "lineno"):
            ast.copy_location(new, node)
    return ast.copy_location(ast.Call(name, args, []), node)


def _placeholder(annotation: ast.expr) -> ast.expr:
    """A value that makes `dataclass` treat the field as the dropped annotation would have."""
    node = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        kind = node.value.split("[")[0].split(".")[-1].strip()
    elif isinstance(node, ast.Attribute):
        kind = node.attr
    else:
        kind = node.id if isinstance(node, ast.Name) else ""
    return ast.Name(f"_t_{kind}_", ast.Load()) if kind in _ANNOTATION_KINDS else ast.Constant(None)
