"""Problems of rlve-gym as environments of the contract: the package's own text, played in the sandbox.

RLVE (arXiv 2511.07317) has some 400 generators of problems with a verifier and a controller of the difficulty each.
Here one environment at one difficulty becomes one source: the classes of the package as they are written, with an
`Env` of ours at the end. Nothing of the package is imported or run in this process, so its seeds do not move ours,
and a generator that would need hours, or all memory, is an environment with a fault like any other.

Three things of the package are left out: `generator`, which seeds torch and waits for a thread that it cannot stop
(`reset` does the rest of what it does), the imports of the package itself, and networkx, of which one function is used.
"""

from __future__ import annotations

import ast
import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from spade_loop.curriculum.window import Rung
from spade_loop.errors import ConfigError, MissingExtraError
from synthgym import EnvRecord, Limits, Provenance, SynthEnvSpec
from synthgym.contract import MIN_TURNS
from synthgym.ids import did_you_mean

DISTRIBUTION: Final = "rlve-gym"
MAX_DIFFICULTY: Final = 20
"""The hardest that the reference asks for."""
DEFAULT_ENVIRONMENTS: Final = (
    "Division",
    "EuclidGame",
    "GCDOne_Counting",
    "HamiltonianPath",
    "LampChanging",
    "LargestConvexPolygon",
    "Multiplication",
    "PCPPermutation",
    "Path_NoGoingBack_Counting",
    "SAT",
    "ShortestPath",
    "Sorting",
    "SpiralMatrix",
    "SubsequenceReversalLNDS",
    "UndamagedSubmatrixCounting",
    "WYRLevelingGround",
)
"""The sixteen of the RLVE baseline of SPADE."""
TRIES: Final = 10
"""Draws of a parameter and a seed before `reset` gives up, as in the reference."""
RESET_SECONDS: Final = 10.0
"""What the package gives a generator."""

_FAMILY: Final = "rlve:"
_CONTROLLERS: Final = "parameter_controllers"
_PLAYER: Final = '''

class ProblemEnv:
    """One question, one answer."""

    max_turns = {turns}
    hint = "There is no hint for this problem: everything is in the text above."

    def reset(self, seed):
        stream = random.Random(seed)
        controller = {controller}()
        for _ in range({difficulty}):
            controller.update()
        parameters = controller.get_parameter_list()
        for _ in range({tries}):
            problem = {environment}()
            problem.seed = stream.randrange(2**31)
            problem.parameter = copy.deepcopy(stream.choice(parameters))
            random.seed(problem.seed)
            try:
                problem._generate()
            except Exception:
                continue
            self.problem = problem
            return problem.prompt_generator(), {{}}
        raise RuntimeError("no problem in {tries} tries")

    def step(self, action):
        first, last = self.problem.answer_markers
        right = self.problem.verifier(first + action + last)["accuracy"] == 1
        return ("Right." if right else "Wrong."), float(right), True, False, {{}}

    def solution(self):
        if "reference_answer" not in self.problem.parameter:
            raise LookupError("the package verifies this problem without knowing an answer")
        return [str(self.problem.parameter["reference_answer"])]
'''
_NETWORKX: Final = '''

class networkx:
    """What the environment uses of networkx."""

    class DiGraph:
        def __init__(self):
            self.adjacent = {}

        def add_weighted_edges_from(self, edges):
            for start, end, weight in edges:
                self.adjacent.setdefault(start, []).append((end, weight))

    def single_source_dijkstra(graph, source, target):
        waiting, done = [(0, (source,))], set()
        while waiting:
            length, path = heapq.heappop(waiting)
            if path[-1] == target:
                return length, list(path)
            if path[-1] not in done:
                done.add(path[-1])
                for end, weight in graph.adjacent.get(path[-1], []):
                    heapq.heappush(waiting, (length + weight, (*path, end)))
        raise ValueError("no path")
'''


@dataclass(frozen=True, slots=True)
class RlvePackage:
    """The files of an installed rlve-gym; nothing of it is imported."""

    root: Path
    """The folder `Gym`."""
    version: str

    @classmethod
    def installed(cls) -> RlvePackage:
        """The package of this Python; `MissingExtraError` without it."""
        try:
            found = importlib.metadata.distribution(DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError as error:
            raise MissingExtraError(
                f"RLVE environments need {DISTRIBUTION}: pip install 'synthgym[rlve]'"
            ) from error
        return cls(Path(str(found.locate_file("Gym"))), found.version)

    def names(self) -> tuple[str, ...]:
        """Environments that have a controller, sorted."""
        return tuple(sorted({*self._classes("environments")} & {*self._classes(_CONTROLLERS)}))

    def spec(self, name: str, difficulty: int) -> SynthEnvSpec:
        """The environment `name` at a difficulty in 0..20: its controller, updated so many times.

        An instance is one problem. The seed decides it: a parameter of those that the controller lists, and the seed
        of the generator. The first answer ends it, with 1 or 0. `ConfigError` for a name that does not exist, with
        the nearest one, and for a difficulty out of range.
        """
        known = self.names()
        if name not in known:
            raise ConfigError(
                f"{DISTRIBUTION} {self.version} has no environment {name!r}{did_you_mean(name, known)}"
            )
        if not 0 <= difficulty <= MAX_DIFFICULTY:
            raise ConfigError(
                f"the difficulty of {name} must lie in 0..{MAX_DIFFICULTY}, got {difficulty}"
            )
        record = EnvRecord(
            source=self._source(name, difficulty), entry="ProblemEnv", max_turns=MIN_TURNS
        )
        return SynthEnvSpec(
            record=record,
            name=f"Rlve{name.replace('_', '')}Level{difficulty}",
            title=f"{name} of RLVE at difficulty {difficulty}",
            license="MIT",
            provenance=Provenance(
                author=f"{DISTRIBUTION} {self.version}",
                family=_FAMILY + name,
                parameters={"difficulty": difficulty},
            ),
            limits=Limits(reset_seconds=RESET_SECONDS),
        )

    def _source(self, name: str, difficulty: int) -> str:
        environment, folder = self._classes("environments")[name]
        controller, _ = self._classes(_CONTROLLERS)[name]
        text = self._read("environments", folder, "environment.py")
        parts = [
            f'"""{name} of {DISTRIBUTION} {self.version} (MIT licence), difficulty {difficulty}."""\n',
            "import copy\nimport heapq\nimport random\nimport re\n"
            "from abc import ABC, abstractmethod\nfrom typing import Any, Dict, List, Optional, Tuple, Union\n",
            _class_text(self._read("environment.py"), "VerifiableEnvironment", without="generator"),
            _NETWORKX if "networkx" in text else "",
            _without_imports(text, "Gym", "networkx"),
            _class_text(self._read("parameter_controller.py"), "ParameterController"),
            _without_imports(self._read(_CONTROLLERS, folder, "parameter_controller.py"), "Gym"),
            _PLAYER.format(
                controller=controller,
                environment=environment,
                difficulty=difficulty,
                tries=TRIES,
                turns=MIN_TURNS,
            ),
        ]
        return "\n".join(part for part in parts if part)

    def _classes(self, package: str) -> Mapping[str, tuple[str, str]]:
        return _table(self.root / package / "__init__.py")

    def _read(self, *parts: str) -> str:
        return self.root.joinpath(*parts).read_text(encoding="utf-8")


def rungs(specs: Iterable[SynthEnvSpec]) -> dict[str, Rung]:
    """Environment and difficulty by digest, of those among `specs` that come from rlve-gym."""
    return {
        spec.digest: Rung(
            environment=spec.provenance.family.removeprefix(_FAMILY),
            difficulty=int(spec.provenance.parameters["difficulty"]),
        )
        for spec in specs
        if spec.provenance.family.startswith(_FAMILY)
    }


@cache
def _table(path: Path) -> Mapping[str, tuple[str, str]]:
    """Class and folder by the name of an environment, read off the package's own table."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    folders = {
        item.name: (node.module or "").rpartition(".")[2]
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for item in node.names
    }
    return {
        str(ast.literal_eval(key)): (value.id, folders[value.id])
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        for key, value in zip(node.value.keys, node.value.values, strict=True)
        if key is not None and isinstance(value, ast.Name)
    }


def _class_text(source: str, name: str, without: str = "") -> str:
    """The lines of a class, less those of one method."""
    (node,) = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == name]
    cut = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == without]
    return _lines(source, node, cut)


def _without_imports(source: str, *packages: str) -> str:
    """A source less its imports from some packages."""
    tree = ast.parse(source)
    cut = [
        node
        for node in tree.body
        if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in packages)
        or (
            isinstance(node, ast.Import)
            and any(item.name.split(".")[0] in packages for item in node.names)
        )
    ]
    return _lines(source, None, cut)


def _lines(source: str, within: ast.ClassDef | None, cut: Sequence[ast.stmt]) -> str:
    """The lines of a source, or of a class in it, that belong to none of the statements to be cut."""
    lines = source.splitlines()
    dropped = {n for node in cut for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    first, last = (
        (1, len(lines)) if within is None else (within.lineno, within.end_lineno or len(lines))
    )
    kept = [line for n, line in enumerate(lines, 1) if first <= n <= last and n not in dropped]
    return "\n".join(kept) + "\n"
