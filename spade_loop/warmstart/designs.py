"""Designer rows: the chat that asks for an environment, and the reply that would have written the one that is held."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from spade_loop.config import Config
from spade_loop.corpus import Corpus, excerpt
from spade_loop.curriculum import blueprint_of
from spade_loop.demonstrations import Demonstration
from spade_loop.design.assignments import Assignment, Exhibit
from spade_loop.design.dialects import Dialect
from spade_loop.design.ideas import grounding
from spade_loop.errors import BlueprintError
from spade_loop.families import load_families
from spade_loop.parsing import ReplyError, apply_edits, parse_edits
from spade_loop.types import Message, Role
from spade_loop.warmstart.settings import WarmStart
from spade_loop.warmstart.witnesses import Dropped, held_out_of, stream
from synthgym.contract import BASE, SKILLS, TOOL_SKILLS, TOOLS_BASE
from synthgym.spec import SynthEnvSpec

_KNOWN: Final = (*SKILLS, *TOOL_SKILLS)
_BASES: Final = {"game": BASE, "tools": TOOLS_BASE}
"""Contract of the environments that a task of the designer asks for."""


def design_rows(
    specs: Sequence[SynthEnvSpec],
    config: Config,
    settings: WarmStart,
    *,
    dialect: Dialect,
    corpus: Corpus,
    dropped: Dropped,
) -> Iterator[Demonstration]:
    """A row for each environment that the dialect can write; what it cannot is told to `dropped`.

    Environments are held out, not seeds: a source that was trained on says nothing about others.
    """
    by_digest = {spec.digest: spec for spec in specs}
    made = []
    for spec in specs:
        reply = _reply(spec, by_digest, config, dropped)
        if reply is None:
            continue
        assignment = _assignment(spec, by_digest, config, settings, corpus)
        if _reads_as(spec, reply, assignment, dialect):
            made.append((spec, dialect.messages(assignment), Message("assistant", reply)))
        else:
            dropped("the dialect reads another environment out of its own reply")
    held_out = _held_out([spec.digest for spec, _, _ in made], settings)
    for spec, prompt, said in made:
        yield Demonstration(
            id=f"{spec.env_id} {dialect.name}",
            role=Role.DESIGNER,
            split="held-out" if spec.digest in held_out else "train",
            environment=spec.env_id,
            digest=spec.digest,
            prompt=prompt,
            completion=(said,),
        )


def _held_out(digests: Sequence[str], settings: WarmStart) -> set[str]:
    """The environments that are not trained on; none where there is only one."""
    ordered = sorted(digests)
    if len(ordered) < 2:
        return set()
    rng = stream(settings.seed, "", "designs")
    count = held_out_of(len(ordered), settings.held_out)
    return {ordered[i] for i in rng.permutation(len(ordered))[:count].tolist()}


def _assignment(
    spec: SynthEnvSpec,
    held: Mapping[str, SynthEnvSpec],
    config: Config,
    settings: WarmStart,
    corpus: Corpus,
) -> Assignment:
    """What a designer of this environment would have been told.

    Its document where the corpus has it. Else its own rules stand in for one: ideas that are drawn would be about
    something else. The same holds for the task of an environment with tools, which is left empty.
    """
    rng = stream(settings.seed, spec.digest, "assignment")
    skill = next(skill for skill in spec.skills if skill in _KNOWN)
    origin = spec.provenance
    text = rules_of(spec)
    if config.corpus.use and origin.document_id in corpus:
        text = excerpt(corpus[origin.document_id], config.corpus.words)
    others = [s for d, s in sorted(held.items()) if d != spec.digest and skill in s.skills]
    parent = held.get(origin.parent)
    return Assignment(
        skill=skill,
        document_id=origin.document_id,
        document_license=origin.document_license,
        excerpt=text,
        grounding=grounding(text, skill, rng),
        exemplars=_exemplars(others, config.designer.exemplars, rng),
        parent=None if parent is None else _exhibit(parent),
    )


def rules_of(spec: SynthEnvSpec) -> str:
    """The docstring of the module, else that of the class, else the title."""
    try:
        tree = ast.parse(spec.record.source)
    except (SyntaxError, ValueError, RecursionError):
        return spec.title
    classes = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == spec.record.entry
    ]
    docs = [ast.get_docstring(tree), *map(ast.get_docstring, classes)]
    return next((doc.strip() for doc in docs if doc and doc.strip()), spec.title)


def _exemplars(
    others: Sequence[SynthEnvSpec], count: int, rng: np.random.Generator
) -> tuple[Exhibit, ...]:
    chosen = rng.permutation(len(others))[:count].tolist()
    return tuple(_exhibit(others[i]) for i in chosen)


def _exhibit(spec: SynthEnvSpec) -> Exhibit:
    """As a run shows a held environment: with what was measured of it, if anything was."""
    measured = [spec.metrics.get(name) for name in ("solve_rate", "regret")]
    rate, regret = (float(m) if isinstance(m, int | float) else None for m in measured)
    return Exhibit(spec, rate, regret)


def _reads_as(spec: SynthEnvSpec, reply: str, assignment: Assignment, dialect: Dialect) -> bool:
    try:
        source = dialect.read(reply, assignment).source
    except (ReplyError, BlueprintError):
        return False
    return source.strip() == spec.record.source.replace("\r\n", "\n").strip()


# --- what the designer would have replied ---


def _reply(
    spec: SynthEnvSpec, held: Mapping[str, SynthEnvSpec], config: Config, dropped: Dropped
) -> str | None:
    designer = config.designer
    if not any(skill in _KNOWN for skill in spec.skills):
        dropped("it exercises no skill that a designer is asked for")
        return None
    if designer.dialect == "blueprint":
        return _blueprint(spec, config, dropped)
    if designer.dialect == "edit":
        return _edit(spec, held, dropped)
    if spec.record.base != _BASES[designer.task]:
        dropped(f"designer.task={designer.task} asks for other environments")
        return None
    return f"```python\n{spec.record.source.strip()}\n```"


def _blueprint(spec: SynthEnvSpec, config: Config, dropped: Dropped) -> str | None:
    origin = spec.provenance
    families = load_families(config.designer.families or None)
    found = blueprint_of(origin.family, origin.parameters, families)
    if found is None:
        dropped("it was not rendered from a blueprint of designer.families")
        return None
    return found.to_json()


def _edit(spec: SynthEnvSpec, held: Mapping[str, SynthEnvSpec], dropped: Dropped) -> str | None:
    parent = held.get(spec.provenance.parent)
    if parent is None:
        dropped("the snapshot does not hold what it was edited from")
        return None
    reply = edits_between(parent.record.source, spec.record.source)
    if reply is None:
        dropped("no edits lead from its parent to it")
    return reply


def edits_between(parent: str, source: str) -> str | None:
    """SEARCH/REPLACE blocks that turn `parent` into `source`; None when they are equal, or when no blocks do.

    A block is a run of changed lines, with as many lines around it as make it occur once, in the parent as edited so
    far; blocks that grow into each other become one.
    """
    old, new = (text.replace("\r\n", "\n").splitlines(keepends=True) for text in (parent, source))
    if any(lines and not lines[-1].endswith("\n") for lines in (old, new)):
        old, new = ([*lines[:-1], lines[-1].rstrip("\n") + "\n"] for lines in (old, new))
    changes = [
        tuple(block)
        for tag, *block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
    if not changes:
        return None
    blocks = [_grown(old, low, high, start, end) for low, high, start, end in changes]
    if any(block is None for block in blocks):
        return None
    merged = _merged([block for block in blocks if block is not None])
    reply = "\n".join(
        f"<<<<<<< SEARCH\n{''.join(old[a:b])}=======\n{''.join(new[c:d])}>>>>>>> REPLACE"
        for a, b, c, d in merged
    )
    try:
        done = apply_edits("".join(old), parse_edits(reply))
    except ReplyError:
        return None
    return reply if done == "".join(new) else None


_Block = tuple[int, int, int, int]
"""Lines [a, b) of the parent become lines [c, d) of the source."""


def _grown(old: Sequence[str], low: int, high: int, start: int, end: int) -> _Block | None:
    """A change with context: the same number of lines on both sides, until its lines occur once; None when none do."""
    text, at = "".join(old), len("".join(old[:low]))
    for around in range(len(old) + 1):
        before, after = min(around, low), min(around, len(old) - high)
        found = "".join(old[low - before : high + after])
        at_first = text.find(found) == at - len("".join(old[low - before : low]))
        if found.strip() and text.count(found) == 1 and at_first:
            return low - before, high + after, start - before, end + after
    return None


def _merged(blocks: Sequence[_Block]) -> list[_Block]:
    """Blocks in order, those that touch joined: what one replaces is not searched for by another."""
    merged = [blocks[0]]
    for _, block in pairwise(blocks):
        a, b, c, d = merged[-1]
        if block[0] <= b:
            merged[-1] = (a, max(b, block[1]), c, max(d, block[3]))
        else:
            merged.append(block)
    return merged
