"""The families whose environments have tools, and their classes as loading makes them."""

from __future__ import annotations

import ast
import json
from functools import cache
from typing import Any

from spade_loop.families import Blueprint, load_families, render
from synthgym.tool_schemas import tool_schemas

FAMILIES = tuple(family for family in load_families() if family.has_tools)
BY_NAME = {family.name: family for family in FAMILIES}


def env_class(source: str) -> Any:
    """The class with its schemas, as loading fills them in; our own sources may run here."""
    namespace: dict[str, Any] = {}
    exec(compile(source, "env.py", "exec"), namespace)
    made = next(
        value for name, value in namespace.items() if name.endswith("Env") and name != "ToolEnv"
    )
    made.tool_schemas = schemas_of(made.__name__)
    names = [schema["function"]["name"] for schema in json.loads(made.tool_schemas)]
    made._tool_methods = lambda self: {name: getattr(self, f"tool_{name}") for name in names}
    return made


@cache
def schemas_of(class_name: str) -> str:
    """JSON of the schemas of a family; they do not depend on its parameters."""
    (family,) = (f for f in FAMILIES if f"class {class_name}(ToolEnv):" in f.source)
    tree = ast.parse(family.source)
    (node,) = (n for n in tree.body if isinstance(n, ast.ClassDef))
    schemas, problems = tool_schemas(tree, node)
    assert not problems
    return json.dumps(schemas)


def started(name: str, seed: int = 0, **changes: Any) -> tuple[Any, str]:
    """An environment of the easiest blueprint with `changes`, and its first observation."""
    easiest = {key: values[0] for key, values in BY_NAME[name].choices().items()}
    env = env_class(render(Blueprint(name, easiest | changes), FAMILIES))()
    return env, env.reset(seed)[0]
