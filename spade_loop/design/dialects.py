"""The three ways in which a designer writes an environment, behind one interface.

program      the whole source in one fenced block
edit         SEARCH/REPLACE blocks against a parent
blueprint    a JSON specification under a schema, rendered into the source of a family
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal, Protocol

from spade_loop.completers import JsonSchema
from spade_loop.config import DesignerConfig
from spade_loop.design.assignments import Assignment, Exhibit
from spade_loop.errors import ConfigError
from spade_loop.families import (
    Family,
    designer_schema,
    load_families,
    parameter_vector,
    parse_blueprint,
    render,
)
from spade_loop.parsing import apply_edits, last_code_block, parse_edits, strip_thinking
from spade_loop.prompts import Prompt, load_prompt
from spade_loop.types import JsonRow, Message
from synthgym.contract import TOOL_SKILLS

_CLASS = re.compile(r"^class[ \t]+(\w*Env)\b", re.MULTILINE)
FAMILY_LICENSE = "Apache-2.0"
"""Of the families' sources, which are part of this package."""
_EXEMPLAR_CHARS = 600
"""An exemplar is shown by its rules, cut to this length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A source taken out of a reply, before admission."""

    source: str
    stem: str
    """CamelCase beginning of the environment's name."""
    cell: str
    family: str = ""
    parameters: JsonRow = field(default_factory=dict)
    vector: tuple[float, ...] = ()
    """Parameters scaled to [0, 1], for the memory's distance within a family."""
    parent: str = ""
    license: str = ""
    """Terms of what the source was made from; empty when that is the document alone."""


class Dialect(Protocol):
    """One way of writing."""

    name: str
    prompt: Prompt
    shown: tuple[str, ...]
    """Sources that its prompt shows whole: a copy of one of them is no design."""

    def messages(self, assignment: Assignment) -> tuple[Message, ...]:
        """The chat that asks for a design."""

    def schema(self, assignment: Assignment) -> JsonSchema | None:
        """The JSON schema under which the reply is sampled, or None for free text."""

    def read(self, reply: str, assignment: Assignment) -> Draft:
        """The source in a reply. `ReplyError` or `BlueprintError` when there is none."""


class ProgramDialect:
    """The whole source."""

    name = "program"

    def __init__(self, task: Literal["game", "tools"] = "game") -> None:
        self._tools = tools = task == "tools"
        names = ["worked_example_tools"] if tools else ["worked_example", "worked_example_2"]
        self._examples = [_example(name) for name in names]
        prompt = load_prompt("designer_tools" if tools else "designer_program")
        self.prompt = prompt.covering("\n".join(self._examples))
        self.shown: tuple[str, ...] = tuple(self._examples)

    def messages(self, assignment: Assignment) -> tuple[Message, ...]:
        """Contract, worked example, document, memory."""
        return self.prompt.render(
            skill=assignment.skill,
            document=(
                assignment.grounding if self._tools else assignment.excerpt or assignment.grounding
            ),
            example=self._examples[0],
            second_example=self._examples[-1],
            exemplars=_rules(assignment.exemplars),
            warnings=_warnings(assignment),
            task=assignment.task,
        )

    def schema(self, assignment: Assignment) -> JsonSchema | None:
        """Free text."""
        del assignment
        return None  # the protocol's answer, not an absent one

    def read(self, reply: str, assignment: Assignment) -> Draft:
        """The last fenced Python block."""
        source = last_code_block(reply)
        return Draft(source=source, stem=_stem(source), cell=assignment.skill)


class EditDialect:
    """SEARCH/REPLACE against the assignment's parent."""

    name = "edit"

    def __init__(self) -> None:
        self._example = _example("worked_example_edit")
        self.prompt = load_prompt("designer_edit").covering(self._example)
        answer = next(m.content for m in self.prompt.messages if m.role == "assistant")
        edited = apply_edits(self._example, parse_edits(answer))
        self.shown: tuple[str, ...] = (self._example, edited)

    def messages(self, assignment: Assignment) -> tuple[Message, ...]:
        """Parent with its record, document, memory."""
        parent = _parent(assignment)
        return self.prompt.render(
            skill=assignment.skill,
            document=assignment.excerpt or assignment.grounding,
            example=self._example,
            parent=parent.spec.record.source.strip(),
            record=_record(parent),
            exemplars=_rules(assignment.exemplars),
            warnings=_warnings(assignment),
        )

    def schema(self, assignment: Assignment) -> JsonSchema | None:
        """Free text."""
        del assignment
        return None  # the protocol's answer, not an absent one

    def read(self, reply: str, assignment: Assignment) -> Draft:
        """The parent's source with the edits applied."""
        parent = _parent(assignment).spec
        source = apply_edits(parent.record.source, parse_edits(reply))
        return Draft(
            source=source,
            stem=_stem(source),
            cell=assignment.skill,
            parent=parent.digest,
            license=parent.license,
        )


class BlueprintDialect:
    """A specification, sampled under the families' schema."""

    name = "blueprint"

    def __init__(self, families: Sequence[Family], *, cell: str = "family") -> None:
        """`cell` says what is one kind of design: a `family`, or a `blueprint` with all its parameters."""
        self.prompt = load_prompt("designer_blueprint")
        self._by_parameters = cell == "blueprint"
        self.shown: tuple[str, ...] = ()
        self._families = tuple(families)

    def messages(self, assignment: Assignment) -> tuple[Message, ...]:
        """Document and the specifications that are held."""
        return self.prompt.render(
            skill=assignment.skill,
            document=assignment.excerpt or assignment.grounding,
            exemplars=_parameters(assignment.exemplars) or "none",
            warnings=_parameters(assignment.warnings, note=True),
        )

    def schema(self, assignment: Assignment) -> JsonSchema | None:
        """Any of the families that exercise the skill."""
        return designer_schema(self._offered(assignment.skill))

    def read(self, reply: str, assignment: Assignment) -> Draft:
        """The rendered family."""
        families = self._offered(assignment.skill)
        blueprint = parse_blueprint(strip_thinking(reply).strip(), families)
        return Draft(
            source=render(blueprint, families),
            stem="".join(word.capitalize() for word in blueprint.family.split("_")),
            cell=blueprint.to_json() if self._by_parameters else blueprint.family,
            family=blueprint.family,
            parameters=dict(blueprint.parameters),
            vector=parameter_vector(blueprint, families),
            license=FAMILY_LICENSE,
        )

    def _offered(self, skill: str) -> tuple[Family, ...]:
        kind = [f for f in self._families if f.has_tools == (skill in TOOL_SKILLS)]
        return tuple(f for f in kind if f.skill == skill) or tuple(kind) or self._families


def make_dialect(config: DesignerConfig) -> Dialect:
    """The dialect that a recipe names."""
    if config.dialect == "program":
        return ProgramDialect(config.task)
    if config.dialect == "edit":
        return EditDialect()
    return BlueprintDialect(load_families(config.families or None), cell=config.cell)


def _example(name: str) -> str:
    """A complete environment that a prompt shows."""
    file = resources.files("spade_loop.prompts").joinpath(f"{name}.txt")
    return file.read_text("utf-8").strip()


def _parent(assignment: Assignment) -> Exhibit:
    if assignment.parent is None:
        raise ConfigError(
            "the edit dialect needs a parent, and no environment is held that could be one: "
            "name a snapshot with environments in `registry`, or set designer.dialect to program"
        )
    return assignment.parent


def _stem(source: str) -> str:
    """`Ledger` from `class LedgerEnv`; `Env` classes of another spelling give `Design`."""
    match = _CLASS.search(source)
    stem = match[1].removesuffix("Env") if match else ""
    ascii_stem = "".join(c for c in stem if c.isascii() and c.isalnum())[:40]
    return ascii_stem[:1].upper() + ascii_stem[1:] if ascii_stem[:1].isalpha() else "Design"


def _record(exhibit: Exhibit) -> str:
    if exhibit.win_rate is None:
        return "It has not been played yet."
    regret = "" if exhibit.regret is None else f", and gains {exhibit.regret:+.2f} from a hint"
    return f"The agent solves it in {exhibit.win_rate:.0%} of its plays{regret}."


def _rules(exhibits: Sequence[Exhibit]) -> str:
    lines = [
        f"- {e.spec.title or e.spec.name} ({', '.join(e.spec.skills)}). {_record(e)}"[
            :_EXEMPLAR_CHARS
        ]
        for e in exhibits
    ]
    return "\n".join(lines) or "- none that was measured yet"


def _warnings(assignment: Assignment) -> str:
    """What not to write: what turned out too easy or too hard, what is there already, what was refused of late."""
    parts = (
        (
            "Mistakes to avoid:",
            [f"- {_verdict(e)}: {e.spec.title or e.spec.name}" for e in assignment.warnings],
        ),
        (
            "Already there, and near to this document:",
            [f"- {e.spec.title or e.spec.name}" for e in assignment.near_misses],
        ),
        (
            "Refused of late:",
            [f"- {r.title or 'a reply'}: {', '.join(r.reasons)}" for r in assignment.rejections],
        ),
    )
    return "\n".join(line for title, lines in parts if lines for line in (title, *lines))


def _verdict(exhibit: Exhibit) -> str:
    return "too hard" if (exhibit.win_rate or 0.0) < 0.5 else "too easy"


def _parameters(exhibits: Sequence[Exhibit], *, note: bool = False) -> str:
    lines = []
    for e in exhibits:
        provenance = e.spec.provenance
        if provenance.family:
            # Sorted: a snapshot that was read again has its keys in another order than the reply had.
            text = ", ".join(f"{k} {v}" for k, v in sorted(provenance.parameters.items()))
        else:
            text = e.spec.title or e.spec.name
        lines.append(f"- {_verdict(e)}: {text}" if note else f"- {text}")
    return "\n".join(lines)
