"""What is known of an environment, as frozen data that travels: record, provenance, limits, spec.

The record is what defines behaviour, and the digest covers the record alone. Everything else (title, skills, metrics,
hint annotation, report digest) is annotation: it may change while the digest stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from synthgym.canonical import canonical_json as canonical_json
from synthgym.canonical import canonical_text
from synthgym.contract import BASE, CONTRACT_VERSION, MAX_TURNS, MIN_TURNS, max_source_bytes
from synthgym.errors import ConfigError, SnapshotError
from synthgym.ids import EnvId, check_digest, is_name, pinned_id

DIGEST_DOMAIN: Final = b"synthgym-env-v1\0"
_MAX_INT: Final = 2**53 - 1
_MAX_DEPTH: Final = 32
_RECORD_TYPES: Final[Mapping[str, type]] = {
    "entry": str,
    "max_turns": int,
    "base": str,
    "kwargs": dict,
    "reward_min_u": int,
    "reward_max_u": int,
    "action_format": str,
    "requires": list,
}
_SPEC_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "name": (str,),
    "version": (int,),
    "title": (str,),
    "skills": (list,),
    "license": (str,),
    "hint": (str, type(None)),
    "metrics": (dict,),
    "report_digest": (str,),
    "contract_version": (int,),
}
_PROVENANCE_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "parameters": (Mapping,),
    "iteration": (int, type(None)),
    "seed": (int, type(None)),
}
"""All others are texts."""
JsonObject = Mapping[str, Any]


def check_hashable(value: object, where: str, depth: int = 0) -> None:
    """Raise `ConfigError` for what canonical JSON writes differently elsewhere: it cannot be hashed.

    Allowed are objects with ASCII keys, lists, texts, whole numbers up to 2^53 - 1, truth values and None,
    at most 32 deep.
    """
    if depth > _MAX_DEPTH:
        raise ConfigError(f"{where[:80]} is part of what is hashed: at most {_MAX_DEPTH} deep")
    if isinstance(value, bool | str | None):
        return
    if isinstance(value, int) and abs(value) <= _MAX_INT:
        return
    if isinstance(value, Mapping) and all(isinstance(k, str) and k.isascii() for k in value):
        for key, item in value.items():
            check_hashable(item, f"{where}.{key}", depth + 1)
        return
    if isinstance(value, list | tuple):
        for item in value:
            check_hashable(item, where, depth + 1)
        return
    raise ConfigError(
        f"{where} is part of what is hashed, and holds {value!r}: expected texts, whole numbers up to "
        "2^53 - 1, true, false, null, lists, and objects with ASCII keys"
    )


def sha256_digest(data: bytes) -> str:
    """`sha256:<hex>` of `data`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


_SECONDS: Final = (600, int | float)
_MOST: Final[Mapping[str, tuple[int, Any]]] = {
    "load_seconds": _SECONDS,
    "reset_seconds": _SECONDS,
    "step_seconds": _SECONDS,
    "hint_seconds": _SECONDS,
    "solution_seconds": _SECONDS,
    "episode_seconds": (86_400, int | float),
    "memory_mb": (16_384, int),
    "observation_chars": (1_000_000, int),
}
"""The most that an environment may be given: limits travel in snapshots, which come from strangers."""


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
        for name in self.__slots__:
            value, (most, kind) = getattr(self, name), _MOST[name]
            if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value <= most:
                what = "a whole number" if kind is int else "a number"
                raise ConfigError(
                    f"limits.{name} must be {what} above 0 and at most {most:,}, got {value!r}"
                )


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
        if self.kwargs:
            check_hashable(self.kwargs, "kwargs")

    @property
    def reward_floor(self) -> float:
        """The least that the running sum of rewards may come to."""
        return self.reward_min_u / 1e6

    @property
    def digest(self) -> str:
        """`sha256:<hex>` over the canonical JSON of this record."""
        # "source" is the last of the keys; written apart, a large text is gone through once.
        rest = canonical_json(self.to_json())
        source = canonical_text(self.source)
        return sha256_digest(DIGEST_DOMAIN + rest[:-1] + b',"source":' + source + b"}")

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
        _check_types(fields)
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

    def __post_init__(self) -> None:
        for name in self.__slots__:
            kinds = _PROVENANCE_TYPES.get(name, (str,))
            if not isinstance(getattr(self, name), kinds):
                raise ConfigError(
                    f"provenance: {name} must be {kinds[0].__name__}, got {getattr(self, name)!r}"
                )


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
            _check_notes({"name": data["name"], "version": data["version"], **notes})
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


def _check_types(fields: JsonObject) -> None:
    """Raise `SnapshotError` when a field of a record has another type than it must."""
    for name, value in fields.items():
        wanted = _RECORD_TYPES.get(name)
        if wanted is not None and type(value) is not wanted:
            raise SnapshotError(f"record: {name} must be {wanted.__name__}, got {value!r}")
    if not all(isinstance(item, str) for item in fields.get("requires", ())):
        raise SnapshotError(f"record: requires must be texts, got {fields['requires']!r}")


def _check_notes(fields: JsonObject) -> None:
    """Raise `SnapshotError` when something that is noted has another type than it must."""
    for name, kinds in _SPEC_TYPES.items():
        if name in fields and type(fields[name]) not in kinds:
            raise SnapshotError(
                f"spec.json: {name} must be {kinds[0].__name__}, got {fields[name]!r}"
            )
    if not all(isinstance(item, str) for item in fields.get("skills", ())):
        raise SnapshotError(f"spec.json: skills must be texts, got {fields['skills']!r}")
