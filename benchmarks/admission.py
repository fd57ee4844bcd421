"""How many designs of a real model are admitted, through an OpenAI-compatible endpoint.

    python benchmarks/admission.py --endpoint http://127.0.0.1:8000/v1 --model my-model --dialect program \
        --documents 40 --attempts 3 --label mine --out admission.jsonl
    python benchmarks/admission.py --summary admission.jsonl

Resumable: an attempt is a line of `--out`, and what is there is not asked for again. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from harness import positive, table
from labelled import near_misses

from spade_loop.backends.endpoint import EndpointWriter
from spade_loop.completers import Writer
from spade_loop.config import Config, DesignerConfig
from spade_loop.corpus import Corpus, CorpusCursor, excerpt
from spade_loop.design.admission import Admitter
from spade_loop.design.assignments import Assignment, Exhibit
from spade_loop.design.dialects import EditDialect, ProgramDialect, make_dialect
from spade_loop.design.repair import repair_message
from spade_loop.errors import ModelError
from spade_loop.parsing import ReplyError
from spade_loop.types import NOTHING, Candidate, Message, Outcome
from synthgym import Pool
from synthgym.contract import SKILLS
from synthgym.memory import HashEmbedder, NoveltyMemory
from synthgym.registry import Snapshot, bundled_root
from synthgym.spec import SynthEnvSpec
from synthgym.validation import validate

Row = dict[str, Any]
EXAMPLES: Final = ("worked_example", "worked_example_2")
"""Environments that the prompts show. The memory holds them and the edited one: to copy them is no design."""
PARENTS: Final = ("no-state", "reward-farmed", "scraping-agent-wins", "witness-in-observation")
"""Near misses that edits start from: short, sound, and each with a mechanism of its own."""
SEED_STEP: Final = 1000
"""Between the seeds of the attempts at one document."""
Z: Final = 1.959964
"""Of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked of the model, and what the rows are called."""

    label: str
    dialect: str
    documents: int
    words: int
    attempts: int
    max_tokens: int
    temperature: float
    seed: int


@dataclass(frozen=True, slots=True)
class Found:
    """A finding as a row holds it."""

    reason: str
    detail: str = ""
    seed: int | None = None
    line: int | None = None
    actions: Sequence[str] = ()
    seen: str = ""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Found:
        """From the JSON of a report."""
        names = ("reason", "detail", "seed", "line", "actions", "seen")
        return cls(**{name: data[name] for name in names})


def assignments(
    documents: int, seed: int, words: int, parents: Sequence[SynthEnvSpec]
) -> list[Assignment]:
    """One for each document, cut to so many words; skills take turns, parents are drawn.

    More documents begin with the same ones.
    """
    corpus, cursor, rng = Corpus.load(), CorpusCursor(), np.random.default_rng(seed)
    given = []
    for number in range(documents):
        skill = SKILLS[number % len(SKILLS)]
        (document,), cursor = corpus.draw(cursor, 1, rng, skill)
        parent = parents[int(rng.integers(len(parents)))]
        given.append(
            Assignment(
                skill=skill,
                document_id=document.id,
                document_license=document.license,
                excerpt=excerpt(document, words),
                parent=Exhibit(parent, None, None),
            )
        )
    return given


class Bench:
    """Documents, the model, and what decides on its designs."""

    def __init__(self, settings: Settings, writer: Writer, pool: Pool, out: Path) -> None:
        """Take up what `out` holds of this label and dialect."""
        self.settings, self.writer, self.out = settings, writer, out
        config = Config(seed=settings.seed, designer=DesignerConfig(dialect=settings.dialect))
        self.dialect = make_dialect(config.designer)
        self.admitter = Admitter(config, self.dialect, pool)
        sources = {miss.name: miss.source for miss in near_misses()}
        parents = [_spec(name, sources[name], pool) for name in PARENTS]
        self.given = assignments(settings.documents, settings.seed, settings.words, parents)
        self.memory = seeded_memory(parents, pool)
        self.rows: dict[int, list[Row]] = {number: [] for number in range(settings.documents)}
        self._lock = threading.Lock()
        for row in read_rows([out] if out.exists() else []):
            same = (row["label"], row["dialect"]) == (settings.label, settings.dialect)
            if same and row["document"] in self.rows:
                self.rows[row["document"]].append(row)
                if row["outcome"] == Outcome.ADMITTED:
                    self.settle(row["document"], row["reply"], stopped=True)

    def work(self, number: int) -> None:
        """Attempts at one document until one is admitted or there are enough."""
        rows, settings = self.rows[number], self.settings
        while len(rows) < settings.attempts and not admitted(rows):
            seed = settings.seed + number + SEED_STEP * len(rows)
            (reply,) = self.writer.write(
                [self.chat(number)],
                max_tokens=settings.max_tokens,
                temperature=settings.temperature,
                seeds=[seed],
            )
            with self._lock:  # the memory takes one design at a time
                row = self.settle(number, reply.text, stopped=reply.stopped)
                row |= {"attempt": len(rows), "seed": seed, "tokens": reply.tokens}
                rows.append(row)
                with self.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(self.told(row), file=sys.stderr, flush=True)

    def chat(self, number: int) -> list[Message]:
        """What asks for the next attempt: the prompt, then each reply with what was wrong with it."""
        messages = list(self.dialect.messages(self.given[number]))
        for row in self.rows[number]:
            findings = [Found.of(finding) for finding in row["findings"]]
            messages.append(Message("assistant", row["reply"]))
            messages.append(
                repair_message(
                    self.dialect.name,
                    row["reasons"],
                    findings,
                    row["detail"],
                    source=row["source"] or "",
                )
            )
        return messages

    def settle(self, number: int, reply: str, *, stopped: bool) -> Row:
        """What becomes of a reply, as the product decides it: read, validated, compared with the memory."""
        given, draft = self.given[number], None
        candidate = Candidate(
            skill=given.skill,
            document_id=given.document_id,
            document_license=given.document_license,
            prompt_ids=(),
            completion=NOTHING,
            reply=reply,
        )
        if not stopped:
            detail = "the token limit cut the reply"
            candidate = candidate.settled(Outcome.UNPARSED, "cut", detail=detail)
        else:
            try:
                draft = self.dialect.read(reply, given)
            except ReplyError as error:
                candidate = candidate.settled(Outcome.UNPARSED, "no-source", detail=str(error))
        judged = self.admitter.judge(candidate, draft, self.memory, 0)
        admission = self.admitter.admit(judged, self.memory, 0)
        settled, report = admission.candidate, admission.report
        return {
            "label": self.settings.label,
            "dialect": self.dialect.name,
            "document": number,
            "document_id": given.document_id,
            "skill": given.skill,
            "parent": _parent(given) if self.dialect.name == "edit" else None,
            "outcome": str(settled.outcome),
            "reasons": list(settled.reasons),
            "detail": settled.detail,
            "findings": [] if report is None else report["findings"],
            "reply": reply,
            "source": None if draft is None else draft.source,
            "prompt": self.dialect.prompt.digest,
            "words": self.settings.words,
            "model": Path(self.writer.name).name,
            "temperature": self.settings.temperature,
            "max_tokens": self.settings.max_tokens,
        }

    def told(self, row: Row) -> str:
        """One line for whoever waits."""
        done = sum(admitted(rows) for rows in self.rows.values())
        tried = sum(bool(rows) for rows in self.rows.values())
        reasons = ", ".join(row["reasons"])
        return (
            f"document {row['document']} attempt {row['attempt']}: {row['outcome']} {reasons} "
            f"({row['tokens']} tokens); {done} of {tried} documents"
        )


def seeded_memory(parents: Sequence[SynthEnvSpec], pool: Pool) -> NoveltyMemory:
    """A memory of the bundled environments, of the parents, and of what the prompts show."""
    memory = NoveltyMemory(HashEmbedder())  # what is near decides nothing
    snapshot = Snapshot.open(bundled_root())
    held = [snapshot.spec(entry.digest) for entry in snapshot]
    held += [*parents, *(_spec(name, source, pool) for name, source in shown().items())]
    memory.seed(held, pool, with_behaviour=True)
    return memory


def shown() -> dict[str, str]:
    """The complete environments that the prompts show, by name; the last is the edited first one."""
    sources = dict(zip(EXAMPLES, ProgramDialect().shown, strict=True))
    return sources | {"edited_example": EditDialect().shown[-1]}


def _spec(name: str, source: str, pool: Pool) -> SynthEnvSpec:
    report = validate(source, pool=pool)
    if report.record is None or not report.ok:
        raise SystemExit(f"{name} is no sound environment: {'; '.join(map(str, report.findings))}")
    title = "".join(word.capitalize() for word in name.replace("_", "-").split("-"))
    return SynthEnvSpec(record=report.record, name=title)


def admitted(rows: Iterable[Row]) -> bool:
    """Whether one of the attempts was."""
    return any(row["outcome"] == Outcome.ADMITTED for row in rows)


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """The rows of files; a last line that a kill cut short is left out."""
    rows = []
    for path in paths:
        for line in path.read_text(encoding="utf-8").split("\n"):
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows


# --- the summary ---


def wilson(successes: int, of: int) -> tuple[float, float]:
    """95 % interval of a share, after Wilson; (0, 1) of nothing."""
    if of == 0:
        return 0.0, 1.0
    share, z2 = successes / of, Z * Z
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = Z * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return max(0.0, middle - half), min(1.0, middle + half)


def summary(rows: Sequence[Row]) -> str:
    """Markdown: what was admitted, and what was refused for what."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["label"], row["dialect"]), []).append(row)
    head = ["label", "dialect", "documents", "admitted", "95 %", "at first", "attempts"]
    head += ["per attempt", "attempts an admission", "tokens a reply"]
    lines = [table(head, [[*key, *_figures(group)] for key, group in groups.items()])]
    for (label, dialect), group in groups.items():
        lines.append(f"Refused for, of {len(group)} attempts ({label}, {dialect}):")
        counts = Counter(reason for row in group for reason in row["reasons"])
        shares = [[code, str(n), f"{n / len(group):.0%}"] for code, n in counts.most_common()]
        lines.append(table(["reason", "attempts", "share"], shares))
    return "\n\n".join(lines)


def _figures(group: Sequence[Row]) -> list[str]:
    by_document: dict[int, list[Row]] = {}
    for row in group:
        by_document.setdefault(row["document"], []).append(row)
    documents, wins = len(by_document), sum(map(admitted, by_document.values()))
    low, high = wilson(wins, documents)
    first = sum(admitted([row]) for row in group if row["attempt"] == 0)
    tokens = sum(row["tokens"] for row in group) / len(group)
    return [
        str(documents),
        f"{wins} ({wins / documents:.0%})",
        f"{low:.0%} to {high:.0%}",
        str(first),
        str(len(group)),
        f"{wins / len(group):.0%}",
        f"{len(group) / wins:.1f}" if wins else "-",
        f"{tokens:.0f}",
    ]


# --- the command ---


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask, judge, append; or sum up."""
    options = _options(arguments)
    if options.summary:
        print(summary(read_rows(options.summary)))
        return
    settings = Settings(
        label=options.label,
        dialect=options.dialect,
        documents=options.documents,
        words=options.words,
        attempts=options.attempts,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        seed=options.seed,
    )
    writer = EndpointWriter(
        options.endpoint,
        options.model,
        api_key_env=options.key_variable,
        timeout=options.timeout,
        concurrency=options.concurrency,
    )
    writer.check()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with Pool() as pool, ThreadPoolExecutor(options.concurrency) as crew:
        bench = Bench(settings, writer, pool, options.out)
        try:
            list(crew.map(bench.work, sorted(bench.rows)))
        except ModelError as error:
            crew.shutdown(cancel_futures=True)
            raise SystemExit(f"{error}\nthe same command goes on with what is left") from error
    print(summary(read_rows([options.out])))


def _parent(given: Assignment) -> str:
    return given.parent.spec.name if given.parent is not None else ""


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--summary", type=Path, nargs="+", help="only sum up these files")
    parser.add_argument("--endpoint", help="address that ends in /v1")
    parser.add_argument("--model", help="as the endpoint names it")
    parser.add_argument("--key-variable", default="", help="environment variable with the key")
    parser.add_argument("--dialect", choices=("program", "edit"), default="program")
    parser.add_argument("--documents", type=positive, default=20)
    parser.add_argument("--words", type=positive, default=50, help="of each document")
    parser.add_argument("--attempts", type=positive, default=1, help="the first one included")
    parser.add_argument("--max-tokens", type=positive, default=900)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--concurrency", type=positive, default=2)
    parser.add_argument("--timeout", type=float, default=1200.0, help="seconds for each reply")
    parser.add_argument("--label", default="run")
    parser.add_argument("--out", type=Path, help="file of rows, appended to")
    options = parser.parse_args(arguments)
    if not options.summary and None in (options.endpoint, options.model, options.out):
        parser.error("--endpoint, --model and --out are needed (or --summary)")
    return options


if __name__ == "__main__":
    main()
