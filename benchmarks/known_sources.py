"""What the novelty rules look at, of sources that no snapshot holds: read, embedded, compared."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from peer_sources import Collection
from rlve_traces import traces

from synthgym import Pool as Sandbox
from synthgym.memory.behaviour import Trace, behaviour_equal, behaviour_trace
from synthgym.memory.describe import rules_text
from synthgym.memory.embedder import Embedder
from synthgym.memory.fingerprint import ast_hash, data_hash, parse_source
from synthgym.memory.rules import Likeness
from synthgym.memory.structure import StructureIndex
from synthgym.memory.subtrees import Hashes, subtrees
from synthgym.sandbox import Loaded
from synthgym.spec import EnvRecord
from synthgym.validation.dialects import base_of

NEAR_TEXTS: Final = 10
NEAR_CODE: Final = 64
_BATCH: Final = 64
Key = tuple[str, str]
"""The name of an environment and the kind of the copy; an empty kind for itself."""


@dataclass(frozen=True, slots=True)
class Known:
    """One source."""

    ast: str
    data: str
    pieces: Hashes
    vector: npt.NDArray[np.float32]
    trace: Trace | None


def describe_all(
    collection: Collection, texts: Mapping[Key, str], embedder: Embedder
) -> dict[Key, Known]:
    """Describe the sources of a collection and their copies."""
    trees = {key: parse_source(text) for key, text in texts.items()}
    rules = {key: static_rules(tree) for key, tree in trees.items()}
    distinct = list(dict.fromkeys(rules.values()))
    vectors = {}
    for start in range(0, len(distinct), _BATCH):
        batch = distinct[start : start + _BATCH]
        vectors.update(zip(batch, embedder(batch), strict=True))
    seen = _traces(collection, texts)
    return {
        key: Known(
            ast=ast_hash(tree),
            data=data_hash(tree),
            pieces=subtrees(tree),
            vector=vectors[rules[key]],
            trace=seen.get(key),
        )
        for key, tree in trees.items()
    }


def static_rules(tree: ast.Module) -> str:
    """The prose of a source with its numbers masked: what stands in for the first observation."""
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    prose = [text for text in texts if isinstance(text, str) and len(text.split()) >= 4]
    return rules_text("", "\n".join(prose))


def _traces(collection: Collection, texts: Mapping[Key, str]) -> dict[Key, Trace | None]:
    if collection.name.startswith("rlve-gym"):
        tasks = {f"{name}|{kind}": (name, text) for (name, kind), text in texts.items()}
        found = traces(tasks, collection.root)
        return {(name, kind): found[f"{name}|{kind}"] for name, kind in texts}
    if collection.name != "bundled":
        return {}
    with Sandbox(sources_per_worker=50, max_workers=2) as sandbox:
        return {key: _sandboxed(text, sandbox) for key, text in texts.items()}


def _sandboxed(text: str, sandbox: Sandbox) -> Trace | None:
    record = EnvRecord(source=text, entry="", max_turns=50, base=base_of(text, "auto"))
    with sandbox.open(record) as session:
        loaded = session.load()
    if not isinstance(loaded, Loaded):
        return None
    record = EnvRecord(
        source=text, entry=loaded.entry, max_turns=loaded.max_turns, base=record.base
    )
    trace = behaviour_trace(record, sandbox)
    return trace if isinstance(trace, Trace) else None


class Pool:
    """The originals of a collection, as the memory would hold them."""

    def __init__(self, originals: Sequence[Known]) -> None:
        self._originals = originals
        self._index = StructureIndex()
        for known in originals:
            self._index.add(known.pieces)
        self._vectors = np.stack([known.vector for known in originals])
        self._by_ast: dict[str, list[int]] = {}
        for row, known in enumerate(originals):
            self._by_ast.setdefault(known.ast, []).append(row)

    def likenesses(self, candidate: Known, without: int | None = None) -> list[Likeness]:
        """How like the candidate is to whatever is near it by structure or by text."""
        found = self._near(candidate)
        return [found[row] for row in found if row != without]

    def to(self, candidate: Known, row: int) -> tuple[Likeness, bool]:
        """How like it is to one row, and whether that was near at all; if not, it is like nothing."""
        found = self._near(candidate).get(row)
        return found or Likeness(ast_equal=False, data_equal=False), found is not None

    def _near(self, candidate: Known) -> dict[int, Likeness]:
        cosines = np.clip(self._vectors @ candidate.vector, -1.0, 1.0)
        code = {o.row: o.containment for o in self._index.candidates(candidate.pieces, NEAR_CODE)}
        texts = [int(row) for row in np.argsort(-cosines, kind="stable")[: NEAR_TEXTS + 1]]
        rows = dict.fromkeys([*self._by_ast.get(candidate.ast, ()), *code, *texts])
        found = {}
        for row in rows:
            other = self._originals[row]
            share = code.get(row)
            if share is None:
                share = self._index.containment(candidate.pieces, row)
            equal = None
            if candidate.trace is not None and other.trace is not None:
                equal = behaviour_equal(candidate.trace, other.trace)
            found[row] = Likeness(
                ast_equal=candidate.ast == other.ast,
                data_equal=candidate.data == other.data,
                containment=share,
                cosine=round(float(cosines[row]), 4),
                behaviour_equal=equal,
            )
        return found
