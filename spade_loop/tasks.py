"""A user's own tasks: a file of questions, each with a hint and with what tells a right answer.

    {"prompt": "...", "hint": "...", "answer": "..."}                         the same text
    {"prompt": "...", "hint": "...", "answer": "...", "check": "numeric"}     the same value
    {"prompt": "...", "hint": "...", "checker": "...", "check": "python"}     a function of the reply

A task may have an `id`; otherwise it is named by its line. Nothing of a file is run here.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from spade_loop.errors import ConfigError
from synthgym.contract import MIN_TURNS
from synthgym.ids import did_you_mean
from synthgym.spec import EnvRecord, SynthEnvSpec, canonical_json, sha256_digest

Check = Literal["exact", "numeric", "python"]
CHECKS: Final[tuple[Check, ...]] = get_args(Check)
MAX_BYTES: Final = 1024 * 1024
"""Length of a line: a task is a prompt, not a book."""
_KEYS: Final = ("id", "prompt", "hint", "answer", "check", "checker")
_FORMS: Final = (
    '{"prompt", "hint", "answer"}, with "check" exact or numeric, '
    'or {"prompt", "hint", "checker", "check": "python"}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One question."""

    id: str
    prompt: str
    hint: str
    check: Check = "exact"
    answer: str = ""
    """What is right; empty with a checker."""
    checker: str = ""
    """Python source with `check(reply)`; empty without."""
    where: str = ""
    """File and line, for messages."""

    @property
    def digest(self) -> str:
        """`sha256:<hex>` of everything that decides how a reply is graded; neither id nor line."""
        content = [self.prompt, self.hint, self.check, self.answer, self.checker]
        return sha256_digest(canonical_json({"task": content}))

    @property
    def spec(self) -> SynthEnvSpec:
        """This task under the name of an environment: what is measured goes by the digest of one. It is never run."""
        record = EnvRecord(source=self.digest, entry="Task", max_turns=MIN_TURNS)
        return SynthEnvSpec(record=record, name="Task", title=self.id)


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a JSONL file, in order.

    `ConfigError` names file and line, what was expected and what came: an empty line, broken JSON, a key that is
    missing, unknown or there twice, a text that is empty or none, an id that is there twice.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the tasks {path} cannot be read: {error}") from error
    lines = content.removesuffix(b"\n").split(b"\n") if content else []
    if not lines:
        raise ConfigError(f"{path} holds no task: expected one JSON object a line, {_FORMS}")
    tasks: list[Task] = []
    known: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        task = _task(line, f"{path}, line {number}", f"line-{number}")
        if task.id in known:
            raise ConfigError(
                f"{task.where}: the id {task.id!r} is that of {known[task.id]}, too: ids must differ"
            )
        known[task.id] = task.where
        tasks.append(task)
    return tasks


def normalised(text: str) -> str:
    """An answer as `exact` compares it.

    Unicode's form NFKC, without case, every run of white space one space, none around it, and no full stop at the end.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).removesuffix(".").rstrip()


def _task(line: bytes, where: str, name: str) -> Task:
    row = _object(line, where)
    check = _check(row, where)
    wanted = "checker" if check == "python" else "answer"
    for key in ("prompt", "hint", wanted):
        if key not in row:
            raise ConfigError(f"{where}: the key {key!r} is missing: expected {_FORMS}")
    other = "answer" if check == "python" else "checker"
    if other in row:
        raise ConfigError(
            f"{where}: a task with the check {check!r} has no {other!r}: expected {_FORMS}"
        )
    texts = {key: _text(row[key], key, where) for key in row if key != "check"}
    return Task(check=check, where=where, **{"id": name} | texts)


def _object(line: bytes, where: str) -> dict[str, Any]:
    if not line.strip():
        raise ConfigError(f"{where}: the line is empty: expected a JSON object, {_FORMS}")
    if len(line) > MAX_BYTES:
        raise ConfigError(f"{where}: a task may have {MAX_BYTES} bytes, this one has {len(line)}")
    try:
        row = json.loads(line, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: expected a JSON object, {_FORMS}: {error}") from error
    if not isinstance(row, dict):
        raise ConfigError(f"{where}: expected a JSON object, {_FORMS}, got {str(row)[:40]!r}")
    for key in row:
        if key not in _KEYS:
            raise ConfigError(
                f"{where}: unknown key {key!r}{did_you_mean(key, _KEYS)} (known: {', '.join(_KEYS)})"
            )
    return row


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError(f"a key is there twice among {', '.join(key for key, _ in pairs)}")
    return row


def _check(row: Mapping[str, Any], where: str) -> Check:
    asked = row.get("check", "python" if "checker" in row else "exact")
    for check in CHECKS:
        if asked == check:
            return check
    near = did_you_mean(asked, CHECKS) if isinstance(asked, str) else ""
    raise ConfigError(f"{where}: check must be one of {', '.join(CHECKS)}, got {asked!r}{near}")


def _text(value: Any, key: str, where: str) -> str:
    """The text of a key. An answer, or an id, may be written as a number."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key in ("answer", "id") and number:
        value = json.dumps(value)
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{where}: {key} must be a text that is not empty, got {value!r:.60}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{where}: {key} is no Unicode text: {error}") from error
    return value
