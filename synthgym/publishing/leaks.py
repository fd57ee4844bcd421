"""What should not leave this machine with a snapshot: home folders, e-mail addresses, secrets.

Notes come from runs, and runs know paths and tokens. Sources are read for secrets alone: an
environment may be about a mailbox or a file system. Licences may hold the addresses of their authors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from synthgym.errors import SnapshotError
from synthgym.registry.files import Files, read_file
from synthgym.registry.layout import MANIFEST, MAX_MANIFEST_BYTES, FileRef
from synthgym.registry.tables import Table

MAX_SHOWN: Final = 20
_TEXT_SUFFIXES: Final = (".json", ".md", ".txt", ".py")
_TABLE_SUFFIX: Final = ".parquet"
_SOURCES: Final = frozenset({"envs", "source"})
_LICENSES: Final = frozenset({"licenses"})


class LeakKind(StrEnum):
    """What was found, by the name that allows it."""

    HOME_PATH = "home-path"
    EMAIL = "e-mail"
    TOKEN = "token"


_PATTERNS: Final = {
    LeakKind.HOME_PATH: re.compile(
        r"(?<![\w./])(?:(?:/data)?/(?:home|Users|users)/(?!user/|you/|<)[\w.-]+/|/root/)[\w./-]*"
        r"|\b[A-Za-z]:\\{1,2}Users\\{1,2}[\w.-]+"
    ),
    LeakKind.EMAIL: re.compile(
        r"(?<![\w.+-])[\w.+-]{1,64}@(?!example\.(?:com|org|net)\b|users\.noreply\.)"
        r"(?:[A-Za-z0-9-]{1,63}\.){1,4}(?!example\b|test\b|invalid\b|localhost\b|local\b)[A-Za-z]{2,24}\b"
    ),
    LeakKind.TOKEN: re.compile(
        r"\bhf_[A-Za-z0-9]{20,}|\bsk-[A-Za-z0-9_-]{20,}|\bgh[pousr]_[A-Za-z0-9]{30,}"
        r"|\bgithub_pat_\w{30,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bxox[abprs]-[A-Za-z0-9-]{20,}"
        r"|\bAIza[\w-]{35}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    ),
}


@dataclass(frozen=True, slots=True)
class Leak:
    """Something that looks private."""

    kind: LeakKind
    where: str
    """File, and row and column of a table."""
    shown: str
    """What was found; of a secret, only how it begins."""

    def __str__(self) -> str:
        return f"{self.where}: {self.kind} {self.shown}"


def find_leaks(files: Files, refs: Iterable[FileRef]) -> Iterator[Leak]:
    """Yield what looks private in the files of a snapshot, its manifest included."""
    yield from _in_text(
        _text(read_file(files, MANIFEST, MAX_MANIFEST_BYTES)), MANIFEST, tuple(LeakKind)
    )
    for ref in refs:
        kinds = _kinds(ref.kind)
        if ref.path.endswith(_TABLE_SUFFIX):
            yield from _in_table(files, ref, kinds)
        elif ref.path.endswith(_TEXT_SUFFIXES):
            yield from _in_text(_text(read_file(files, ref.path, ref.size)), ref.path, kinds)


def find_text_leaks(text: str, where: str) -> Iterator[Leak]:
    """Yield what looks private in a text that is published beside a snapshot."""
    yield from _in_text(text, where, tuple(LeakKind))


def check_leaks(leaks: Iterable[Leak], allowed: Collection[str]) -> None:
    """Raise `SnapshotError` that lists the leaks whose kind is not allowed."""
    found = [leak for leak in leaks if leak.kind not in allowed]
    if found:
        more = f"\n(and {len(found) - MAX_SHOWN} more)" if len(found) > MAX_SHOWN else ""
        kinds = ", ".join(sorted({leak.kind for leak in found}))
        lines = "\n".join(str(leak) for leak in found[:MAX_SHOWN])
        raise SnapshotError(
            f"this would become public:\n{lines}{more}\n"
            f"Take it out, or allow what is meant to be there: {kinds}"
        )


def _kinds(kind: str) -> tuple[LeakKind, ...]:
    if kind in _SOURCES:
        return (LeakKind.TOKEN,)
    if kind in _LICENSES:
        return (LeakKind.HOME_PATH, LeakKind.TOKEN)
    return tuple(LeakKind)


def _in_text(text: str, where: str, kinds: Iterable[LeakKind]) -> Iterator[Leak]:
    """At most one of each kind and place: the rest is found when the first is gone."""
    for kind in kinds:
        match = _PATTERNS[kind].search(text)
        if match is not None:
            shown = match[0][:60] if kind is not LeakKind.TOKEN else f"{match[0][:4]}…"
            line = text.count("\n", 0, match.start()) + 1
            yield Leak(kind, f"{where}, line {line}" if line > 1 else where, shown)


def _in_table(files: Files, ref: FileRef, kinds: tuple[LeakKind, ...]) -> Iterator[Leak]:
    table, row = Table(files, ref), 0
    for group in range(table.groups):
        for name, values in table.read(group).items():
            for number, value in enumerate(values):
                if isinstance(value, str):
                    yield from _in_text(value, f"{ref.path}, row {row + number}, {name}", kinds)
        row += table.rows(group)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
