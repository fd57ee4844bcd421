"""Environments that are stored just as synthgym writes them, told from the stored bytes alone.

Building an environment out of its record and its notes, and writing them anew to compare, costs four times as much as
`is_usual`. A snapshot is verified with `is_usual` first; what it does not know is then read in the other way, which
says what is wrong, if anything is. What both take for right must be the same: see tests/registry/test_usual.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from synthgym.canonical import (
    canonical_json,
    canonical_reader,
    canonical_text,
    is_canonical,
)
from synthgym.contract import max_source_bytes
from synthgym.errors import ConfigError
from synthgym.registry.manifest import Entry
from synthgym.registry.notes import (
    ABOUT,
    DEPTH,
    HINT,
    METRICS,
    NOTE_CAPS,
    PROVENANCE,
    REPORT,
    UNKNOWN,
    fields_of,
)
from synthgym.spec import DIGEST_DOMAIN, Limits, check_hashable, sha256_digest


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    """What `EnvRecord.to_json` gives."""

    action_format: str
    assets: list[msgspec.Raw]
    base: str
    entry: str
    kwargs: dict[str, Any]
    max_turns: int
    requires: list[str]
    reward_max_u: int
    reward_min_u: int
    schema: Literal[1]


class _About(msgspec.Struct, forbid_unknown_fields=True):
    """What `about` holds."""

    contract_version: int
    license: str
    limits: msgspec.Raw
    report_digest: str
    skills: tuple[str, ...]
    title: str


class _Hint(msgspec.Struct, forbid_unknown_fields=True):
    """What `hint` holds."""

    text: str


class _Provenance(msgspec.Struct, forbid_unknown_fields=True):
    """What `provenance` holds: all fields, the unknown ones too."""

    author: str
    dialect: str
    document_id: str
    document_license: str
    family: str
    iteration: int | None
    parameters: dict[str, Any]
    parent: str
    prompt_digest: str
    revision: str
    seed: int | None


_read_record: Final = canonical_reader(_Record)
_read_about: Final = canonical_reader(_About)
_READ: Final = {
    HINT: canonical_reader(_Hint),
    METRICS: canonical_reader(dict[str, Any]),
    PROVENANCE: canonical_reader(_Provenance),
}
_NOTHING: Final = frozenset({b"{}", canonical_json(fields_of(UNKNOWN))})
"""Notes that say nothing are not written."""
_BRACKETS: Final = DEPTH - 2
"""What has no more of them is not nested too deep."""


def is_usual(entry: Entry, record: str, source: str, notes: Mapping[str, bytes]) -> bool:
    """Whether record, source and notes are those of the entry, and the bytes that synthgym writes for them.

    `notes` are those but vectors. False may also be said of something that is right and seldom.
    """
    about = _read_about(notes.get(ABOUT, b""))
    return (
        about is not None
        and about.title == entry.title
        and about.skills == entry.skills
        and about.license == entry.license
        and len(notes[ABOUT]) <= NOTE_CAPS[ABOUT]
        and _are_limits(bytes(about.limits))
        and _is_record(entry, record.encode(), source)
        and all(
            _is_report(payload, about) if kind == REPORT else _is_note(kind, payload)
            for kind, payload in notes.items()
        )
    )


def _is_record(entry: Entry, data: bytes, source: str) -> bool:
    """Whether the digest, computed anew, is that of the entry, and the record one that can be."""
    record = _read_record(data)
    if (
        record is None
        or record.assets
        or record.max_turns != entry.max_turns
        or len(source.encode()) > max_source_bytes(record.base)
        or not _are_hashable(record.kwargs)
    ):
        return False
    hashed = (DIGEST_DOMAIN, data[:-1], b',"source":', canonical_text(source), b"}")
    return sha256_digest(b"".join(hashed)) == entry.digest


def _is_note(kind: str, payload: bytes) -> bool:
    """Whether a note of that kind is written so; `about` was read before."""
    if kind == ABOUT:
        return True
    return (
        kind in _READ
        and len(payload) <= NOTE_CAPS[kind]
        and payload not in _NOTHING
        and payload.count(b"[") + payload.count(b"{") <= _BRACKETS
        and _READ[kind](payload) is not None
    )


def _is_report(payload: bytes, about: _About) -> bool:
    named = sha256_digest(payload) == about.report_digest
    return named and payload[:1] == b"{" and is_canonical(payload)


def _are_hashable(kwargs: Mapping[str, Any]) -> bool:
    try:
        check_hashable(kwargs, "kwargs")
    except ConfigError:
        return False
    return True


@lru_cache(maxsize=64)  # few, for many environments
def _are_limits(data: bytes) -> bool:
    try:
        return canonical_json(fields_of(Limits(**msgspec.json.decode(data)))) == data
    except (ConfigError, msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return False
