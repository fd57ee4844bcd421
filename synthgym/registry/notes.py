"""Annotations: what is noted of an environment and does not define its behaviour.

One note an environment and kind. Its payload is canonical JSON, or for `vector/<embedder>` the bytes of the
vector; the leaf that the notes root covers names the environment, the kind and the SHA-256 of the payload.

    about               title, skills, license, contract version, limits, digest of the report
    provenance          where it comes from; left out when nothing is known
    hint                the hint that overrides the source's
    metrics             what was measured
    report              what validation found
    vector/<embedder>   the rules text as a vector: float16, little-endian
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from synthgym.errors import ConfigError, SnapshotError
from synthgym.registry.strict import (
    MAX_DEPTH,
    check_depth,
    check_keys,
    is_int,
    is_strings,
    parse_json,
)
from synthgym.spec import (
    EnvRecord,
    JsonObject,
    Limits,
    Provenance,
    SynthEnvSpec,
    canonical_json,
    sha256_digest,
)

ABOUT: Final = "about"
PROVENANCE: Final = "provenance"
HINT: Final = "hint"
METRICS: Final = "metrics"
REPORT: Final = "report"
KINDS: Final = (ABOUT, HINT, METRICS, PROVENANCE, REPORT)
VECTOR: Final = "vector/"
NOTE_CAPS: Final = {
    ABOUT: 64 * 1024,
    HINT: 64 * 1024,
    METRICS: 256 * 1024,
    PROVENANCE: 64 * 1024,
    REPORT: 1024 * 1024,
}
"""Largest payload in bytes of each kind."""
DEPTH: Final = MAX_DEPTH - 4
"""Notes stand inside other objects in the folder layout."""
UNKNOWN: Final = Provenance()
"""What is not written: nothing is known."""
_ABOUT_KEYS: Final = frozenset(
    {"title", "skills", "license", "contract_version", "limits", "report_digest"}
)

Notes = Mapping[str, bytes]
"""Payloads of one environment by kind."""


def note_leaf(digest: str, kind: str, payload: bytes) -> bytes:
    """The leaf of a note under the notes root."""
    return f'["{digest}","{kind}","{sha256_digest(payload)}"]'.encode()  # canonical JSON


def notes_of(spec: SynthEnvSpec, report: JsonObject | None = None) -> dict[str, bytes]:
    """Return the notes of an environment, by kind in order.

    With a report, `about` names its digest whatever the spec says. `SnapshotError` when something is no
    strict JSON or too large.
    """
    try:
        notes: dict[str, bytes] = {}
        report_digest = spec.report_digest
        if report is not None:
            notes[REPORT] = canonical_json(report)
            check_depth(notes[REPORT], report, REPORT, DEPTH)
            report_digest = sha256_digest(notes[REPORT])
        notes[ABOUT] = canonical_json(_about(spec, report_digest))
        if spec.provenance != UNKNOWN:
            notes[PROVENANCE] = canonical_json(fields_of(spec.provenance))
            check_depth(notes[PROVENANCE], spec.provenance.parameters, PROVENANCE, DEPTH - 1)
        if spec.hint is not None:
            notes[HINT] = canonical_json({"text": spec.hint})
        if spec.metrics:
            notes[METRICS] = canonical_json(spec.metrics)
            check_depth(notes[METRICS], spec.metrics, METRICS, DEPTH)
    except (ValueError, TypeError) as error:
        raise SnapshotError(
            f"{spec.env_id} cannot be written as UTF-8 and strict JSON: {error}"
        ) from error
    for kind, payload in notes.items():
        if len(payload) > NOTE_CAPS[kind]:
            raise SnapshotError(
                f"{kind} of {spec.env_id} may have {NOTE_CAPS[kind]} bytes, got {len(payload)}"
            )
    return dict(sorted(notes.items()))


def spec_from_notes(name: str, version: int, record: EnvRecord, notes: Notes) -> SynthEnvSpec:
    """Inverse of `notes_of`; `SnapshotError` when a note is missing or has other fields."""
    if ABOUT not in notes:
        raise SnapshotError(f"nothing is noted about {name}-v{version}")
    about, hint = _payload(notes, ABOUT), _payload(notes, HINT)
    check_keys(about, _ABOUT_KEYS, f"{ABOUT} of {name}-v{version}")
    texts = [about["title"], about["license"], about["report_digest"], hint.get("text", "")]
    if not (
        is_strings(texts) and is_strings(about["skills"]) and is_int(about["contract_version"])
    ):
        raise SnapshotError(f"notes of {name}-v{version} have a field of another type")
    try:
        return SynthEnvSpec(
            record=record,
            name=name,
            version=version,
            title=about["title"],
            skills=tuple(about["skills"]),
            license=about["license"],
            contract_version=about["contract_version"],
            limits=Limits(**about["limits"]),
            report_digest=about["report_digest"],
            provenance=Provenance(**_payload(notes, PROVENANCE)),
            hint=hint.get("text"),
            metrics=_payload(notes, METRICS),
        )
    except (TypeError, ConfigError) as error:
        raise SnapshotError(f"notes of {name}-v{version} have other fields: {error}") from error


def fields_of(value: Provenance | Limits) -> dict[str, Any]:
    """Field values by name. `dataclasses.asdict` copies deeply, which costs too much for ten thousand."""
    found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {key: dict(item) if isinstance(item, Mapping) else item for key, item in found.items()}


def _about(spec: SynthEnvSpec, report_digest: str) -> JsonObject:
    return {
        "title": spec.title,
        "skills": list(spec.skills),
        "license": spec.license,
        "contract_version": spec.contract_version,
        "limits": {name: getattr(spec.limits, name) for name in Limits.__slots__},
        "report_digest": report_digest,
    }


def _payload(notes: Notes, kind: str) -> dict[str, Any]:
    return parse_json(notes[kind], kind, DEPTH) if kind in notes else {}
