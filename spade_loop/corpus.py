"""The documents that ground the designer: loading, drawing without repeats, cutting to length.

A corpus is a JSONL file. The bundled one (`spade_loop/data/mechanisms.jsonl`) was written for this project; a user's
file needs `text` on every line (`orig_doc` wins where a line has both). Every draw works on sorted ids, so that the
order of the lines does not change it.
"""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from spade_loop.errors import ConfigError, CorpusError
from synthgym.ids import did_you_mean
from synthgym.spec import canonical_json, sha256_digest

BUNDLED: Final = ("data", "mechanisms.jsonl")
"""Where the bundled corpus lies inside the package."""
UNKNOWN_LICENSE: Final = "unknown"
_TEXT_KEYS: Final = ("orig_doc", "text")
_WORD: Final = re.compile(r"\S+")
_SENTENCE_END: Final = re.compile(r"""[.!?]["')\]\u2019\u201d]*$""")


@dataclass(frozen=True, slots=True)
class Document:
    """One text that an environment is grounded in."""

    id: str
    text: str
    license: str
    title: str = ""
    skill: str = ""
    """The skill it fits best; empty when its author named none."""


@dataclass(frozen=True, slots=True)
class CorpusCursor:
    """Which documents the present round has used, sorted. Part of the run's state, saved with every iteration."""

    seen: tuple[str, ...] = ()

    def to_json(self) -> dict[str, list[str]]:
        """JSON object that `from_json` reads back."""
        return {"seen": list(self.seen)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CorpusCursor:
        """Inverse of `to_json`; `CorpusError` when the field is missing, unknown or not a list of strings."""
        seen = data.get("seen")
        if (
            set(data) != {"seen"}
            or not isinstance(seen, list)
            or not all(isinstance(item, str) for item in seen)
        ):
            raise CorpusError(
                f'a corpus cursor is {{"seen": [document ids]}}, got {dict(data)!r}: '
                "resume from a state that this version wrote"
            )
        return cls(tuple(seen))


class Corpus:
    """Documents by id, never empty. Iterates in the order of the ids."""

    def __init__(self, documents: Iterable[Document]) -> None:
        """Hold `documents`; `CorpusError` when there are none or an id occurs twice."""
        self._documents: dict[str, Document] = {}
        for document in sorted(documents, key=lambda document: document.id):
            if document.id in self._documents:
                raise CorpusError(f"two documents have the id {document.id!r}: ids must differ")
            self._documents[document.id] = document
        if not self._documents:
            raise CorpusError("a corpus needs at least one document, got none")

    @classmethod
    def load(cls, path: Path | None = None) -> Corpus:
        """Read a JSONL file, or the bundled corpus for None.

        Blank lines are skipped and unknown keys ignored. `CorpusError` names path and line for everything else that is
        wrong: a bad line is refused rather than skipped, so that a truncated download is noticed.
        """
        if path is None:
            resource = importlib.resources.files("spade_loop").joinpath(*BUNDLED)
            return cls(_parse(resource.read_bytes(), "/".join(("spade_loop", *BUNDLED))))
        try:
            content = path.read_bytes()
        except OSError as error:
            raise CorpusError(
                f"{path}: cannot read the corpus ({error.strerror or error}): corpus.path is a JSONL file with "
                'one object a line, {"text": "..."} and optionally "id", "license", "title" and "skill"; leave it out '
                "for the bundled corpus"
            ) from error
        return cls(_parse(content, str(path)))

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents.values())

    def __contains__(self, document_id: object) -> bool:
        return document_id in self._documents

    def __getitem__(self, document_id: str) -> Document:
        """The document with this id; `CorpusError` names the nearest id when there is none."""
        try:
            return self._documents[document_id]
        except KeyError:
            nearest = did_you_mean(document_id, self._documents)
            raise CorpusError(f"no document {document_id!r} in the corpus{nearest}") from None

    @cached_property
    def digest(self) -> str:
        """`sha256:<hex>` over every field of every document in the order of the ids.

        Line order, spacing and unknown keys of the file do not change it.
        """
        return sha256_digest(canonical_json([asdict(document) for document in self]))

    def sample(
        self,
        k: int,
        rng: np.random.Generator,
        *,
        skill: str | None = None,
        exclude: Collection[str] = (),
    ) -> list[Document]:
        """Draw `k` distinct documents whose ids are not in `exclude`, those of `skill` first.

        When the skill has too few, documents without a skill follow, then those of other skills. `CorpusError` when
        fewer than `k` are left; `ConfigError` when `k` is negative.
        """
        _check_count(k)
        available = [document for key, document in self._documents.items() if key not in exclude]
        if k > len(available):
            raise CorpusError(
                f"cannot draw {k} documents: {len(available)} of {len(self)} are available; "
                "add documents or draw fewer (`draw` starts a new round instead)"
            )
        return _draw_by_preference(available, k, rng, skill)

    def draw(
        self, state: CorpusCursor, k: int, rng: np.random.Generator, skill: str | None = None
    ) -> tuple[list[Document], CorpusCursor]:
        """Draw `k` documents and the cursor that follows: every document is used once before any is used again.

        Coverage comes before the skill: when the unused documents of `skill` run out, unused ones of other skills are
        taken before anything repeats. One draw repeats a document only when `k` exceeds the size of the corpus.
        `CorpusError` when the cursor names a document that is not here; `ConfigError` when `k` is negative.
        """
        _check_count(k)
        for key in state.seen:
            if key not in self._documents:
                raise CorpusError(
                    f"the cursor names {key!r}, which is not in this corpus: resume with the corpus that the run "
                    "started with, or start from CorpusCursor()"
                )
        seen = set(state.seen)
        drawn: list[Document] = []
        while len(drawn) < k:
            unused = [document for document in self if document.id not in seen]
            if not unused:
                seen.clear()
                continue
            held = {document.id for document in drawn}
            fresh = [document for document in unused if document.id not in held] or unused
            batch = _draw_by_preference(fresh, min(k - len(drawn), len(fresh)), rng, skill)
            drawn.extend(batch)
            seen.update(document.id for document in batch)
        return drawn, CorpusCursor(tuple(sorted(seen)))


def excerpt(document: Document, max_words: int) -> str:
    """The opening of the text in at most `max_words` whitespace-separated words.

    A longer text is cut after the last sentence that fits; where that would keep less than half of the words, it is
    cut between two words and ends with an ellipsis. `ConfigError` when `max_words` is below 1.
    """
    if max_words < 1:
        raise ConfigError(f"max_words must be at least 1, got {max_words}")
    text = document.text.strip()
    words = list(_WORD.finditer(text))
    if len(words) <= max_words:
        return text
    for count in range(max_words, (max_words - 1) // 2, -1):
        if _SENTENCE_END.search(words[count - 1].group()):
            return text[: words[count - 1].end()]
    return text[: words[max_words - 1].end()] + "\u2026"


def _check_count(k: int) -> None:
    if k < 0:
        raise ConfigError(f"the number of documents must be at least 0, got {k}")


def _draw_by_preference(
    documents: Sequence[Document], k: int, rng: np.random.Generator, skill: str | None
) -> list[Document]:
    """`k` of `documents` (sorted by id, at least `k`): matching skill, then no skill, then any other."""
    tiers: tuple[list[Document], ...] = (list(documents),)
    if skill:
        tiers = (
            [document for document in documents if document.skill == skill],
            [document for document in documents if not document.skill],
            [document for document in documents if document.skill not in ("", skill)],
        )
    chosen: list[Document] = []
    for tier in tiers:
        size = min(k - len(chosen), len(tier))
        chosen.extend(tier[index] for index in rng.choice(len(tier), size, replace=False))
    return chosen


def _parse(content: bytes, source: str) -> list[Document]:
    """Documents of a JSONL file; `source` is its name in messages."""
    lines: dict[str, int] = {}
    documents: list[Document] = []
    # bytes are split on LF only: str.splitlines would also cut at U+2028 inside a JSON string
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not raw.strip():
            continue
        document = _parse_line(raw, number, f"{source}, line {number}")
        if document.id in lines:
            raise CorpusError(
                f"{source}, line {number}: id {document.id!r} was used on line {lines[document.id]}: "
                "give every document its own id, or none"
            )
        lines[document.id] = number
        documents.append(document)
    if not documents:
        raise CorpusError(
            f'{source}, line 1: the corpus is empty: write one JSON object a line, such as {{"text": "..."}}'
        )
    return documents


def _parse_line(raw: bytes, number: int, where: str) -> Document:
    try:
        value = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorpusError(
            f"{where}: not valid JSON in UTF-8 ({error}): write one JSON object a line"
        ) from error
    if not isinstance(value, dict):
        raise CorpusError(
            f'{where}: expected a JSON object such as {{"text": "..."}}, got {type(value).__name__}'
        )
    key = next((key for key in _TEXT_KEYS if value.get(key) is not None), "text")
    return Document(
        id=_string(value, "id", where, default=f"line-{number}"),
        text=_string(value, key, where),
        license=_string(value, "license", where, default=UNKNOWN_LICENSE),
        title=_string(value, "title", where, default="", blank=True),
        skill=_string(value, "skill", where, default="", blank=True),
    )


def _string(
    value: Mapping[str, Any],
    key: str,
    where: str,
    *,
    default: str | None = None,
    blank: bool = False,
) -> str:
    """The string under `key`; null counts as absent, and a whole number is taken as an id."""
    item = value.get(key)
    if item is None and default is not None:
        return default
    if key == "id" and isinstance(item, int) and not isinstance(item, bool):
        item = str(item)
    if not isinstance(item, str) or not (blank or item.strip()):
        got = "nothing" if item is None else repr(item)[:60]
        raise CorpusError(f"{where}: {key!r} must be a string with text in it, got {got}")
    try:
        item.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(
            f"{where}: {key!r} holds half of a surrogate pair: write the character itself in UTF-8"
        ) from error
    return item
