"""What is known of an environment, as frozen data that travels: record, provenance, limits, spec.

The record is what defines behaviour, and the digest covers the record alone. Everything else (title, skills, metrics,
hint annotation, report digest) is annotation: it may change while the digest stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from synthgym.contract import BASE, CONTRACT_VERSION, MAX_TURNS, MIN_TURNS, max_source_bytes
from synthgym.errors import ConfigError, SnapshotError
from synthgym.ids import EnvId, check_digest, is_name, pinned_id

_DIGEST_DOMAIN: Final = b"synthgym-env-v1\0"
JsonObject = Mapping[str, Any]


def canonical_json(value: object) -> bytes:
    """The one serialisation that is hashed: sorted keys, no spaces, UTF-8, no floats in hashed records, no NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def sha256_digest(data: bytes) -> str:
    """`sha256:<hex>` of `data`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one environment may use. Times are wall-clock seconds measured by the parent; sizes as named."""

    load_seconds: float = 5.0
    reset_seconds: float = 5.0
    step_seconds: float = 2.0
    hint_seconds: float = 2.0
    solution_seconds: float = 2.0
    episode_seconds: float = 30.0
    """Sum of the times of all calls of one episode."""
    memory_mb: int = 256
    """Address space beyond what an empty worker has."""
    observation_chars: int = 65_536

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0:
                raise ConfigError(f"limits.{name} must be positive, got {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvRecord:
    """What defines the behaviour of an environment. Its canonical JSON is what the digest covers."""

    source: str
    """The Python file, verbatim."""
    entry: str
    """Name of the environment class."""
    max_turns: int
    base: str = BASE
    kwargs: JsonObject = field(default_factory=dict)
    reward_min_u: int = 0
    """Micro-units: hashed records hold no floats."""
    reward_max_u: int = 1_000_000
    action_format: str = "raw"
    requires: tuple[str, ...] = ()
    """Sorted import roots that the source uses."""

    def __post_init__(self) -> None:
        size = len(self.source.encode("utf-8", "surrogatepass"))
        if size > max_source_bytes(self.base):
            raise ConfigError(
                f"source must be at most {max_source_bytes(self.base)} bytes, got {size}"
            )
        if not MIN_TURNS <= self.max_turns <= MAX_TURNS:
            raise ConfigError(f"max_turns must be {MIN_TURNS}..{MAX_TURNS}, got {self.max_turns}")

    @property
    def reward_floor(self) -> float:
        """The least that the running sum of rewards may come to."""
        return self.reward_min_u / 1e6

    @property
    def digest(self) -> str:
        """`sha256:<hex>` over the canonical JSON of this record."""
        return sha256_digest(
            _DIGEST_DOMAIN + canonical_json(self.to_json() | {"source": self.source})
        )

    def to_json(self) -> dict[str, Any]:
        """JSON object of every field but `source`, which is stored as a file of its own."""
        return {
            "schema": 1,
            "base": self.base,
            "entry": self.entry,
            "kwargs": dict(self.kwargs),
            "max_turns": self.max_turns,
            "reward_min_u": self.reward_min_u,
            "reward_max_u": self.reward_max_u,
            "action_format": self.action_format,
            "requires": list(self.requires),
            "assets": [],
        }

    @classmethod
    def from_json(cls, data: JsonObject, source: str) -> EnvRecord:
        """Inverse of `to_json`; `SnapshotError` on a field that is missing, unknown or of another schema."""
        if data.get("schema") != 1:
            raise SnapshotError(
                f"record schema must be 1, got {data.get('schema')!r}: a newer synthgym wrote it"
            )
        fields = {k: v for k, v in data.items() if k not in ("schema", "assets")}
        try:
            record = cls(source=source, **fields | {"requires": tuple(fields["requires"])})
        except (TypeError, KeyError) as error:
            raise SnapshotError(f"record does not have the fields of schema 1: {error}") from error
        if data.get("assets") != []:
            raise SnapshotError("record names assets, which this version of synthgym does not read")
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a source came from. Empty strings and None mean unknown, never zero."""

    author: str = ""
    """A person, or the id of the designer model."""
    revision: str = ""
    dialect: str = "program"
    """How the designer wrote it: `program`, `edit`, `blueprint`; people write `program`."""
    prompt_digest: str = ""
    document_id: str = ""
    document_license: str = ""
    parent: str = ""
    """Digest of the environment that an `edit` started from."""
    family: str = ""
    parameters: JsonObject = field(default_factory=dict)
    iteration: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthEnvSpec:
    """An environment with everything known of it. `SynthEnv` takes one of these, never a path."""

    record: EnvRecord
    name: str
    """CamelCase; the id is `synthgym/<name>-v<version>`."""
    version: int = 0
    title: str = ""
    skills: tuple[str, ...] = ()
    license: str = "Apache-2.0"
    provenance: Provenance = field(default_factory=Provenance)
    hint: str | None = None
    """Annotation hint: overrides the hint of the source, keyed by digest, costs no version."""
    metrics: JsonObject = field(default_factory=dict)
    report_digest: str = ""
    limits: Limits = field(default_factory=Limits)
    contract_version: int = CONTRACT_VERSION

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ConfigError(
                f"name must be CamelCase ASCII of at most 64 characters, got {self.name!r}"
            )
        if self.version < 0:
            raise ConfigError(f"version must be at least 0, got {self.version}")

    @property
    def digest(self) -> str:
        """Digest of the record."""
        return self.record.digest

    @property
    def env_id(self) -> str:
        """`synthgym/<name>-v<version>`."""
        return str(EnvId(self.name, self.version))

    @property
    def pinned_id(self) -> str:
        """The Gymnasium id that is pinned to this content."""
        return pinned_id(self.name, self.digest)

    def to_json(self) -> dict[str, Any]:
        """What `spec.json` holds: the record (without its source), its digest, and the annotations."""
        annotations = {
            "title": self.title,
            "skills": list(self.skills),
            "license": self.license,
            "provenance": asdict(self.provenance)
            | {"parameters": dict(self.provenance.parameters)},
            "hint": self.hint,
            "metrics": dict(self.metrics),
            "report_digest": self.report_digest,
            "limits": asdict(self.limits),
            "contract_version": self.contract_version,
        }
        return {
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "record": self.record.to_json(),
            "annotations": annotations,
        }

    @classmethod
    def from_json(cls, data: JsonObject, source: str) -> SynthEnvSpec:
        """Inverse of `to_json`. `SnapshotError` when a field is wrong or the digest is not the record's."""
        try:
            record = EnvRecord.from_json(data["record"], source)
            notes = dict(data["annotations"])
            spec = cls(
                record=record,
                name=data["name"],
                version=data["version"],
                **notes
                | {
                    "skills": tuple(notes["skills"]),
                    "provenance": Provenance(**notes["provenance"]),
                    "limits": Limits(**notes["limits"]),
                },
            )
            promised = check_digest(data["digest"])
        except (TypeError, KeyError, AttributeError) as error:
            raise SnapshotError(
                f"spec.json does not have the expected fields: {error!r}"
            ) from error
        if spec.digest != promised:
            raise SnapshotError(
                f"digest of {spec.env_id} is {spec.digest}, spec.json promises {promised}"
            )
        return spec
