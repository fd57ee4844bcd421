"""The golden snapshot: what docs/snapshot-format.md says, computed twice.

Once by synthgym and once by the few lines below, which know the specification and nothing of synthgym. The
files in `tests/data/golden_snapshot` never change: whoever must change them changes the format.
"""

from __future__ import annotations

import decimal
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from synthgym.registry import Snapshot, write_snapshot
from synthgym.registry import layout as layout_module
from synthgym.registry.archive import pack
from synthgym.registry.core import Core
from synthgym.registry.manifest import Manifest
from synthgym.registry.verify import computed_core
from synthgym.spec import EnvRecord, Limits, Provenance, SynthEnvSpec

GOLDEN = Path(__file__).parents[1] / "data" / "golden_snapshot"
FACTS: dict[str, Any] = json.loads((GOLDEN / "golden.json").read_bytes())
ENVIRONMENTS: list[dict[str, Any]] = FACTS["environments"]
LAYOUTS = ["folder", "shards"]


# --- the specification, in a few lines ---


def canonical(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        items = (f"{canonical(key)}:{canonical(value[key])}" for key in sorted(value))
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def number(value: float) -> str:
    """The shortest digits that read as the same number, with a point or an exponent."""
    sign, digits, exponent = decimal.Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    shortest = text.rstrip("0") or "0"
    point = len(text) + exponent if shortest != "0" else 1  # digits in front of the point
    if 0 < point <= 16:
        whole, fraction = shortest[:point].ljust(point, "0"), shortest[point:] or "0"
        out = f"{whole}.{fraction}"
    elif -4 < point <= 0:
        out = f"0.{'0' * -point}{shortest}"
    else:
        fraction = f".{shortest[1:]}" if len(shortest) > 1 else ""
        out = f"{shortest[0]}{fraction}e{'-' if point < 1 else '+'}{abs(point - 1):02}"
    return "-" + out if sign else out


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def merkle(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written there."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return hashlib.sha256(b"\1" + merkle(leaves[:k]) + merkle(leaves[k:])).digest()


def root(leaves: list[bytes]) -> str:
    return "sha256:" + merkle(leaves).hex()


def env_digest(record: dict[str, Any], source: str) -> str:
    text = canonical({**record, "source": source})
    return sha256(b"synthgym-env-v1\0" + text.encode())


def note_leaves(environment: dict[str, Any]) -> dict[str, bytes]:
    payloads = {kind: canonical(note).encode() for kind, note in environment["notes"].items()}
    for embedder, values in environment["vectors"].items():
        payloads[f"vector/{embedder}"] = struct.pack(f"<{len(values)}e", *values)
    return {
        kind: canonical([environment["digest"], kind, sha256(payloads[kind])]).encode()
        for kind in sorted(payloads)
    }


def core_of(environments: list[dict[str, Any]]) -> dict[str, Any]:
    by_digest = sorted(environments, key=lambda e: e["digest"])
    by_name = sorted(environments, key=lambda e: (e["name"], e["version"]))
    notes = [leaf for e in by_digest for leaf in note_leaves(e).values()]
    aliases = [canonical([e["name"], e["version"], e["digest"]]).encode() for e in by_name]
    licenses = sorted({e["notes"]["about"]["license"] for e in environments})
    return {
        "name": "golden",
        "version": "1.0.0",
        "license": " AND ".join(f"({text})" if " " in text else text for text in licenses),
        "env_count": len(environments),
        "env_root": root([bytes.fromhex(e["digest"][7:]) for e in by_digest]),
        "alias_root": root(aliases),
        "notes_count": len(notes),
        "notes_root": root(notes),
        "parents": [],
    }


# --- the facts, by these lines ---


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda e: f"{e['name']}-v{e['version']}")
def test_the_digest_of_an_environment_follows_from_its_record(environment: dict[str, Any]) -> None:
    assert env_digest(environment["record"], environment["source"]) == environment["digest"]
    leaves = {kind: leaf.decode() for kind, leaf in note_leaves(environment).items()}
    assert leaves == environment["note_leaves"]


def test_core_and_digests_follow_from_the_environments() -> None:
    core = core_of(ENVIRONMENTS)
    assert core == FACTS["core"]
    assert sha256(b"synthgym-snapshot-v1\0" + canonical(core).encode()) == FACTS["digest"]
    content = canonical([core["env_root"], core["alias_root"]]).encode()
    assert sha256(b"synthgym-content-v1\0" + content) == FACTS["content_digest"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_manifest_names_every_file_with_its_digest(layout: str) -> None:
    data = (GOLDEN / layout / "manifest.json").read_bytes()
    manifest = json.loads(data)
    assert canonical(manifest).encode() == data
    assert sha256(data) == FACTS["files"][f"{layout}/manifest.json"]
    assert (manifest["core"], manifest["digest"]) == (FACTS["core"], FACTS["digest"])
    body = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    assert sha256(canonical(body).encode()) == manifest["manifest_sha256"]
    found = {
        path.relative_to(GOLDEN / layout).as_posix(): path.read_bytes()
        for path in (GOLDEN / layout).rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    named = {file["path"]: (file["sha256"], file["size"]) for file in manifest["files"]}
    assert named == {path: (sha256(data), len(data)) for path, data in found.items()}


def test_the_folder_layout_holds_the_facts() -> None:
    for fact in ENVIRONMENTS:
        folder = GOLDEN / "folder" / "envs" / fact["name"] / f"v{fact['version']}"
        spec = json.loads((folder / "spec.json").read_bytes())
        assert (folder / "env.py").read_bytes().decode() == fact["source"]
        assert (spec["digest"], spec["record"]) == (fact["digest"], fact["record"])
        notes, annotations = fact["notes"], spec["annotations"]
        assert annotations["hint"] == notes.get("hint", {}).get("text")
        assert annotations["metrics"] == notes.get("metrics", {})
        assert notes["about"].items() <= annotations.items()
        assert notes.get("provenance", annotations["provenance"]) == annotations["provenance"]
        assert (folder / "report.json").exists() == ("report" in notes)


def test_the_tables_of_the_shards_hold_the_facts() -> None:
    shards = GOLDEN / "shards"
    envs = [row for i in range(2) for row in rows(shards / f"envs/envs-{i:03d}-of-002.parquet")]
    assert [row["digest"] for row in envs] == sorted(fact["digest"] for fact in ENVIRONMENTS)
    facts = {fact["digest"]: fact for fact in ENVIRONMENTS}
    for row in envs:
        fact = facts[row["digest"]]
        assert (row["name"], row["version"]) == (fact["name"], fact["version"])
        assert row["record"] == canonical(fact["record"])
        assert row["source"] == fact["source"]
        about = fact["notes"]["about"]
        assert (row["title"], row["license"]) == (about["title"], about["license"])
        assert json.loads(row["skills"]) == about["skills"]
        assert row["max_turns"] == fact["record"]["max_turns"]
    index = rows(shards / "index.parquet")
    assert index == sorted(
        ({k: row[k] for k in index[0]} for row in envs), key=lambda r: (r["name"], r["version"])
    )
    notes = [row for i in range(2) for row in rows(shards / f"notes/notes-{i:03d}-of-002.parquet")]
    assert [(row["digest"], row["kind"], row["payload"]) for row in notes] == [
        (digest, kind, canonical(note))
        for digest in sorted(facts)
        for kind, note in sorted(facts[digest]["notes"].items())
    ]


@pytest.mark.parametrize(
    "path", sorted((GOLDEN / "shards").rglob("*.parquet")), ids=lambda p: p.name
)
def test_the_tables_keep_the_rules_of_the_specification(path: Path) -> None:
    meta = pq.ParquetFile(path).metadata
    for number in range(meta.num_columns):
        column = meta.schema.column(number)
        assert (column.max_definition_level, column.max_repetition_level) == (0, 0)
    for group in range(meta.num_row_groups):
        for number in range(meta.num_columns):
            chunk = meta.row_group(group).column(number)
            assert not chunk.has_dictionary_page
            assert chunk.compression == "ZSTD"
            assert set(chunk.encodings) <= {"PLAIN", "RLE"}


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return found


def test_the_vectors_hold_the_facts() -> None:
    expected = {e["digest"]: e["vectors"]["golden-3"] for e in ENVIRONMENTS if e["vectors"]}
    for layout in LAYOUTS:
        found = {}
        for path in (GOLDEN / layout).rglob("*.safetensors"):
            data = path.read_bytes()
            (size,) = struct.unpack("<Q", data[:8])
            header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
            start, end = header["digests"]["data_offsets"]
            digests = [body[i : i + 32] for i in range(start, end, 32)]
            start, end = header["vectors"]["data_offsets"]
            vectors = [struct.unpack("<3e", body[i : i + 6]) for i in range(start, end, 6)]
            found |= {"sha256:" + d.hex(): list(v) for d, v in zip(digests, vectors, strict=True)}
        assert found == expected


# --- the facts, by synthgym ---


def spec_of(environment: dict[str, Any]) -> SynthEnvSpec:
    record, notes = dict(environment["record"]), environment["notes"]
    about = dict(notes["about"])
    del record["schema"], record["assets"]
    return SynthEnvSpec(
        record=EnvRecord(
            source=environment["source"], **record | {"requires": tuple(record["requires"])}
        ),
        name=environment["name"],
        version=environment["version"],
        provenance=Provenance(**notes.get("provenance", {})),
        hint=notes.get("hint", {}).get("text"),
        metrics=notes.get("metrics", {}),
        **about | {"skills": tuple(about["skills"]), "limits": Limits(**about["limits"])},
    )


def write(target: Path, layout: str) -> Snapshot:
    return write_snapshot(
        target,
        [spec_of(environment) for environment in ENVIRONMENTS],
        name="golden",
        version="1.0.0",
        reports={e["digest"]: e["notes"]["report"] for e in ENVIRONMENTS if "report" in e["notes"]},
        vectors={e["digest"]: e["vectors"] for e in ENVIRONMENTS},
        layout=layout,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_synthgym_reads_the_golden_snapshot(layout: str) -> None:
    snapshot = Snapshot.open(GOLDEN / layout)
    assert snapshot.verify() == ()
    assert snapshot.digest == FACTS["digest"]
    assert snapshot.core.content_digest == FACTS["content_digest"]
    assert computed_core(snapshot).to_json() == FACTS["core"]
    for fact in ENVIRONMENTS:
        assert snapshot.spec(fact["digest"]) == spec_of(fact)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_synthgym_writes_the_golden_content(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout_module, "SHARD_TARGET", 2)
    snapshot = write(tmp_path / layout, layout)
    assert snapshot.core == Core.from_json(FACTS["core"])
    assert snapshot.digest == FACTS["digest"]
    if layout == "folder":  # no library has a say in these bytes
        data = (tmp_path / layout / "manifest.json").read_bytes()
        assert data == (GOLDEN / layout / "manifest.json").read_bytes()


def test_the_golden_manifests_are_those_that_synthgym_would_write() -> None:
    for layout in LAYOUTS:
        data = (GOLDEN / layout / "manifest.json").read_bytes()
        assert Manifest.from_bytes(data).to_bytes() == data


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_golden_folder_packs_into_the_golden_bytes(layout: str, tmp_path: Path) -> None:
    packed = pack(Snapshot.open(GOLDEN / layout), tmp_path / "x.sgz")
    assert sha256(packed.read_bytes()) == FACTS["files"][f"{layout}.sgz"]
    assert Snapshot.open(packed).verify() == ()
