"""One runnable source from an environment file: the parts of its own package that it needs, the file, and a player.

The player is code of ours at the end of the source: `play(seed)` makes the environment, plays a little and returns
what it saw as JSON. The same text is run in plain Python and under the policy.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from corpora import CORPORA, classes_derived_from, imported_roots

from synthgym.sandbox import names

_JSON = """
import json

def show(value):
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    return repr(value)

def as_json(value):
    return json.dumps(value, default=show)

def attempt(call, *arguments):
    try:
        return call(*arguments)
    except Exception as error:
        return f"raised {type(error).__name__}"
"""
_RLVE_PLAYER = """
def play(seed):
    import copy, random
    controller = {controller}()
    seen = []
    for level in range(4):
        for parameter in controller.get_parameter_list():
            env = {env}()
            env.seed, env.parameter = seed + level, copy.deepcopy(parameter)
            random.seed(env.seed)
            made = attempt(env._generate)
            prompt = attempt(env.prompt_generator)
            answers = [str(env.parameter.get("reference_answer")), "1", "0 1\\n2", "[]", ""]
            outputs = [f"<answer>{{answer}}</answer>" for answer in answers] + ["no answer"]
            scores = [attempt(env.scorer, output) for output in outputs]
            seen.append([made, env.get_config(), prompt, scores])
        controller.update()
    return as_json(seen)
"""
_REASONING_PLAYER = """
def play(seed):
    seen = []
    for name, (dataset_class, config_class) in DATASETS.items():
        dataset = dataset_class(config_class(seed=seed, size=4))
        for index in range(4):
            entry = dataset[index]
            answers = [str(entry["answer"]), "1", "yes", "", None]
            seen.append([name, entry, [attempt(dataset.score_answer, answer, entry) for answer in answers]])
    for name, curriculum_class in CURRICULA.items():
        curriculum = curriculum_class()
        for _ in range(3):
            curriculum.increment_global_level()
            seen.append([name, attempt(lambda: vars(curriculum.generate_configuration()))])
    return as_json(seen)
"""
_GEM_SEEDING = """
import random

class seeding:
    @staticmethod
    def set_seed(seed):
        random.seed(seed)
"""
_GEM_PLAYER = """
def play(seed):
    env = {env}()
    seen = [env.reset(seed=seed)]
    for turn in range(30):
        action = attempt(env.sample_random_action) if turn % 5 else "\\\\boxed{{3}}"
        seen.append([action, env.step(action)])
        if seen[-1][1][2]:
            seen.append(env.reset(seed=seed + turn))
    return as_json(seen)
"""


class NotComparable(Exception):
    """Why a file cannot be run here in both ways."""


def bundle(package: str, path: Path, site: Path) -> str:
    """The runnable source for an environment file; raises `NotComparable` with the reason."""
    source = path.read_text()
    corpus = CORPORA[package]
    for node in ast.walk(ast.parse(source)):
        missing = imported_roots(node) - {corpus.folder} - _OFFERED
        if missing:
            raise NotComparable(f"imports {', '.join(sorted(missing))}")
    return _BUNDLERS[package](path, source, site)


_OFFERED = {module.split(".")[0] for module in names.MODULES} | {"__future__"}


def _joined(folder: str, parts: list[str]) -> str:
    """The parts as one module, without imports of the package itself."""
    bodies: list[ast.stmt] = []
    future = False
    for part in parts:
        tree = ast.parse(part)
        future = future or any("annotations" in ast.dump(node) for node in _futures(tree))
        bodies += _Foreign(folder).visit(tree).body
    head = "from __future__ import annotations\n" if future else ""
    return head + ast.unparse(ast.Module(bodies, []))


def _futures(tree: ast.Module) -> list[ast.ImportFrom]:
    return [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]


class _Foreign(ast.NodeTransformer):
    """Drops imports of one package, relative imports, and those of the future."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def visit_Import(self, node: ast.Import) -> ast.AST:
        return ast.Pass() if self._folder in imported_roots(node) else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        own = node.level or imported_roots(node) & {self._folder, "__future__"}
        return ast.Pass() if own else node


def _class_of(source: str, base: str, without: frozenset[str] = frozenset()) -> str:
    """The imports of `source` and its class `base`, less some methods."""
    tree = ast.parse(source)
    wanted = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == base]
    for node in wanted:
        node.body = [item for item in node.body if getattr(item, "name", "") not in without]
    variables = [n for n in tree.body if isinstance(n, ast.Assign)]
    imports = [
        n
        for n in tree.body
        if isinstance(n, ast.ImportFrom | ast.Import) and imported_roots(n) <= _OFFERED
    ]
    return ast.unparse(ast.Module([*imports, *variables, *wanted], []))


def _only_class(source: str, base: str) -> str:
    found = [node.name for node in classes_derived_from(ast.parse(source), base)]
    if len(found) != 1:
        raise NotComparable(f"{len(found)} classes derived from {base}")
    return found[0]


def _rlve(path: Path, source: str, site: Path) -> str:
    root = site / "Gym"
    controller = root / "parameter_controllers" / path.parent.name / "parameter_controller.py"
    if not controller.exists():
        raise NotComparable("has no parameter controller")
    parts = [
        # `generator` seeds torch and runs in a thread; the player seeds and calls `_generate` instead.
        _class_of(
            (root / "environment.py").read_text(), "VerifiableEnvironment", frozenset({"generator"})
        ),
        source,
        _class_of((root / "parameter_controller.py").read_text(), "ParameterController"),
        controller.read_text(),
        _JSON,
        _RLVE_PLAYER.format(
            env=_only_class(source, "VerifiableEnvironment"),
            controller=_only_class(controller.read_text(), "ParameterController"),
        ),
    ]
    return _joined("Gym", parts)


def _reasoning(_path: Path, source: str, site: Path) -> str:
    root = site / "reasoning_gym"
    known = {"factory", "coaching", "utils", "dataset", "coaching.base_curriculum"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").removeprefix("reasoning_gym.")
            own = node.level or "reasoning_gym" in imported_roots(node)
            if own and module not in known:
                raise NotComparable("needs other modules or data files of its package")
    own_parts = ["utils", "coaching/attributes", "coaching/base_curriculum", "dataset", "factory"]
    parts = [(root / f"{name}.py").read_text() for name in own_parts]
    return _joined("reasoning_gym", [*parts, source, _JSON, _REASONING_PLAYER])


def _gem(_path: Path, source: str, site: Path) -> str:
    root = site / "gem"
    if "importlib" in source or any(
        isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(ast.parse(source))
    ):
        raise NotComparable("needs other modules or data files of its package")
    parts = [
        _class_of((root / "utils" / "constants.py").read_text(), "LanguageGameReward"),
        _GEM_SEEDING,
        _class_of((root / "core.py").read_text(), "Env"),
        source,
        _JSON,
        _GEM_PLAYER.format(env=_only_class(source, "Env")),
    ]
    return _joined("gem", parts)


_BUNDLERS: dict[str, Callable[[Path, str, Path], str]] = {
    "rlve_gym": _rlve,
    "reasoning_gym": _reasoning,
    "gem_llm": _gem,
}
RUNNABLE = frozenset(_BUNDLERS)
"""Corpora that can be run; textarena's classes need its package as an object (`ta.Env`, `ta.State`)."""
