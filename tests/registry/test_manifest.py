from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.registry.core import Core, Parent, alias_root, env_root, joined_license, next_patch
from synthgym.registry.layout import FOLDER, MAX_ENTRIES, SHARDS, FileRef
from synthgym.registry.manifest import Entry, Manifest
from synthgym.spec import canonical_json, sha256_digest

DIGESTS = st.integers(0, 2**64).map(lambda n: f"sha256:{n:064x}")
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
ENTRIES = st.builds(
    Entry,
    name=st.from_regex(r"[A-Z][A-Za-z0-9]{0,9}", fullmatch=True),
    version=st.integers(0, 999_999),
    digest=DIGESTS,
    title=TEXT,
    skills=st.lists(TEXT, max_size=3).map(tuple),
    license=TEXT,
    max_turns=st.integers(2, 100),
)
MANIFESTS = st.builds(
    lambda entries, extra, dim: manifest_of(entries, {f"x-{k}": v for k, v in extra.items()}, dim),
    st.lists(ENTRIES, max_size=4, unique_by=(lambda e: e.digest, lambda e: e.env_id.casefold())),
    st.dictionaries(TEXT, TEXT | st.integers(), max_size=2),
    st.integers(1, 8192),
)
ZERO = "sha256:" + "0" * 64
VECTORS = "vectors/mini/vectors-000-of-001.safetensors"


def entry(name: str = "DryDock", version: int = 0, digest: str = "1" * 64, **other: Any) -> Entry:
    values: dict[str, Any] = {
        "title": "T",
        "skills": ("s",),
        "license": "Apache-2.0",
        "max_turns": 5,
    }
    return Entry(name=name, version=version, digest=f"sha256:{digest}", **values | other)


def core_of(entries: list[Entry], **other: Any) -> Core:
    values: dict[str, Any] = {
        "name": "games",
        "version": "1.2",
        "license": joined_license(e.license for e in entries),
        "env_count": len(entries),
        "env_root": env_root(sorted(e.digest for e in entries)),
        "alias_root": alias_root(sorted(e.alias for e in entries)),
        "notes_count": len(entries),
        "notes_root": ZERO,
    }
    return Core(**values | other)


def manifest_of(
    entries: list[Entry], extra: dict[str, Any] | None = None, dim: int = 384
) -> Manifest:
    entries = sorted(entries, key=lambda e: e.alias)
    kinds = {"env.py": "source", "spec.json": "spec"}
    paths = sorted(f"envs/{e.name}/v{e.version}/{f}" for e in entries for f in kinds)
    files = [FileRef(path=p, sha256=ZERO, size=3, kind=kinds[p.rpartition("/")[2]]) for p in paths]
    vectors = FileRef(path=VECTORS, sha256=ZERO, size=9, kind="vectors", rows=1)
    return Manifest(
        core=core_of(entries),
        layout=FOLDER,
        files=(*files, vectors),
        entries=tuple(entries),
        embedders={"mini": dim},
        extra=extra or {},
    )


ONE = manifest_of([entry()])


def sealed(raw: dict[str, Any]) -> bytes:
    """A manifest that a stranger changed and gave a fitting digest of its own."""
    body = {key: value for key, value in raw.items() if key != "manifest_sha256"}
    return canonical_json(body | {"manifest_sha256": sha256_digest(canonical_json(body))})


def resealed(change: dict[str, Any], part: str = "", inner: dict[str, Any] | None = None) -> bytes:
    raw = json.loads(ONE.to_bytes())
    place = raw[part][0] if isinstance(raw.get(part), list) else raw.get(part, {})
    place.update(inner or {})
    return sealed(raw | change)


@given(MANIFESTS)
def test_a_manifest_comes_back_as_it_was(manifest: Manifest) -> None:
    data = manifest.to_bytes()
    assert Manifest.from_bytes(data) == manifest
    assert Manifest.from_bytes(data).to_bytes() == data


@given(MANIFESTS, st.data())
def test_one_changed_byte_is_always_detected(manifest: Manifest, data: st.DataObject) -> None:
    raw = bytearray(manifest.to_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SnapshotError):
        Manifest.from_bytes(bytes(raw))


@given(st.binary(max_size=80) | st.text(max_size=80).map(lambda t: t.encode("utf-8", "replace")))
def test_any_bytes_are_refused_with_our_error(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        Manifest.from_bytes(data)


def test_the_core_covers_environments_ids_and_notes_in_any_order() -> None:
    a, b = entry("Aa", digest="1" * 64), entry("Bb", digest="2" * 64)
    base = core_of([a, b])
    assert core_of([b, a]).digest == base.digest
    swapped = core_of([entry("Aa", digest="2" * 64), entry("Bb", digest="1" * 64)])
    assert swapped.env_root == base.env_root
    others = [
        swapped,
        core_of([a]),
        *(
            dataclasses.replace(base, **{name: value})
            for name, value in {
                "name": "toys",
                "version": "1.3",
                "license": "MIT",
                "notes_count": 3,
                "notes_root": a.digest,
                "parents": (Parent(name="x", version="1", digest=ZERO, relation="merge"),),
            }.items()
        ),
    ]
    assert len({base.digest, *(core.digest for core in others)}) == 1 + len(others)
    assert {core.content_digest for core in others[2:]} == {base.content_digest}
    assert base.content_digest not in {core.content_digest for core in others[:2]}


CHANGES: dict[str, tuple[dict[str, Any], str, dict[str, Any], str]] = {
    "another format": ({"format": "synthgym.snapshot/2"}, "", {}, "expected a snapshot of format"),
    "a newer reader": ({"min_reader": 2}, "", {}, "newer synthgym"),
    "a reader that is no number": ({"min_reader": True}, "", {}, "newer synthgym"),
    "a key that must be understood": ({"critical": ["signed"]}, "", {}, "understands .'signed'"),
    "criticals that are no list": ({"critical": {}}, "", {}, "newer synthgym"),
    "another layout": ({"layout": "zip"}, "", {}, "layout"),
    "a layout that is no text": ({"layout": ["folder"]}, "", {}, "layout"),
    "a core that is no object": ({"core": []}, "", {}, "core must be an object"),
    "an unknown core key": ({}, "core", {"signed": 1}, "unknown keys .'signed'"),
    "a path as name": ({}, "core", {"name": "../x"}, "name must be"),
    "no version": ({}, "core", {"version": "v1"}, "version must be"),
    "a license that is no text": ({}, "core", {"license": None}, "license must be a text"),
    "a count that is true": ({}, "core", {"env_count": True}, "not a count"),
    "a negative count": ({}, "core", {"notes_count": -1}, "not a count"),
    "a root that is no digest": ({}, "core", {"notes_root": "sha256:1"}, "not sha256"),
    "parents that are no list": ({}, "core", {"parents": {}}, "parents must be a list"),
    "a parent that is no object": ({}, "core", {"parents": [1]}, "parent must be an object"),
    "another count": ({}, "core", {"env_count": 2}, "not those of its core"),
    "another root of ids": ({}, "core", {"alias_root": ZERO}, "not those of its core"),
    "another root": ({}, "core", {"env_root": ZERO}, "not those of its core"),
    "other notes": ({}, "core", {"notes_root": entry().digest}, "promises digest"),
    "another digest": ({"digest": ZERO}, "", {}, "promises digest"),
    "embedders that are a list": ({"embedders": []}, "", {}, "embedders must be an object"),
    "an embedder without vectors": (
        {"embedders": {"maxi": 3, "mini": 384}},
        "",
        {},
        "there are vec",
    ),
    "vectors without an embedder": ({"embedders": {}}, "", {}, "there are vectors of"),
    "an embedder that is a path": ({"embedders": {"../x": 3}}, "", {}, "embedder"),
    "vectors of no length": ({"embedders": {"mini": 0}}, "", {}, "length 0"),
    "vectors of length true": ({"embedders": {"mini": True}}, "", {}, "length True"),
    "vectors that are too long": ({"embedders": {"mini": 8193}}, "", {}, "length 8193"),
    "entries that are no list": ({"entries": {"0": {}}}, "", {}, "must be a list"),
    "an entry that is no object": ({"entries": [[], {}]}, "", {}, "must be an object"),
    "entries among shards": ({"layout": SHARDS}, "", {}, "lists no entries"),
    "a name that leaves": ({}, "entries", {"name": ".."}, "cannot be the name"),
    "a name with a slash": ({}, "entries", {"name": "A/../../etc"}, "cannot be the name"),
    "a negative version": ({}, "entries", {"version": -1}, "version"),
    "a version that is true": ({}, "entries", {"version": True}, "version"),
    "a version with a fraction": ({}, "entries", {"version": 0.5}, "version"),
    "too many turns": ({}, "entries", {"max_turns": 101}, "max_turns"),
    "a short digest": ({}, "entries", {"digest": "sha256:12"}, "digest"),
    "a title that is no text": ({}, "entries", {"title": None}, "title"),
    "skills that are no list": ({}, "entries", {"skills": "s"}, "skills must be"),
    "an unknown entry key": ({}, "entries", {"path": "/etc/passwd"}, "unknown keys"),
    "files that are no list": ({"files": {}}, "", {}, "files must be a list"),
    "a file that is no object": ({"files": ["env.py"]}, "", {}, "must be an object"),
    "a missing source": ({"files": []}, "", {}, r"env\.py is missing"),
    "an unknown file key": ({}, "files", {"url": "http://x"}, "unknown keys"),
    "a file without a digest": ({}, "files", {"sha256": "x"}, "sha256"),
    "a file of another kind": ({}, "files", {"kind": "spec"}, "no file of this layout"),
    "a kind that is no text": ({}, "files", {"kind": []}, "no file of this layout"),
    "a size that is true": ({}, "files", {"size": True}, "has size True"),
    "a negative size": ({}, "files", {"size": -1}, "has size -1"),
    "a source that is too large": ({}, "files", {"size": 262_145}, "at most 262144"),
    "negative rows": ({}, "files", {"rows": -1}, "has rows -1"),
    "a path that is no text": ({}, "files", {"path": None}, "go by path"),
}


@pytest.mark.parametrize(
    ("change", "part", "inner", "message"), CHANGES.values(), ids=CHANGES.keys()
)
def test_a_stranger_s_manifest_is_refused_for(
    change: dict[str, Any], part: str, inner: dict[str, Any], message: str
) -> None:
    with pytest.raises(SnapshotError, match=message):
        Manifest.from_bytes(resealed(change, part, inner))


def test_keys_that_this_reader_does_not_know_are_kept() -> None:
    extra = {"created": "2031-01-01T00:00:00Z", "x": {"anything": [1, 2.5, None]}}
    found = Manifest.from_bytes(sealed(json.loads(ONE.to_bytes()) | extra))
    assert found.extra == extra
    assert found.digest == ONE.digest
    assert Manifest.from_bytes(found.to_bytes()) == found


def test_white_space_is_not_canonical() -> None:
    with pytest.raises(IntegrityError, match="not canonical"):
        Manifest.from_bytes(json.dumps(json.loads(ONE.to_bytes()), sort_keys=True).encode())


@pytest.mark.parametrize("key", ["entries", "files"])
def test_lists_out_of_order_are_not_canonical(key: str) -> None:
    raw = json.loads(manifest_of([entry("Aa"), entry("Bb", digest="2" * 64)]).to_bytes())
    with pytest.raises(SnapshotError, match="go by"):
        Manifest.from_bytes(sealed(raw | {key: raw[key][::-1]}))


@pytest.mark.parametrize(
    "entries",
    [
        [entry(), entry(digest="2" * 64)],
        [entry(), entry("Other")],
        [entry(), entry("Drydock", digest="2" * 64)],
    ],
    ids=["id", "digest", "case"],
)
def test_an_id_or_a_digest_that_comes_twice_is_refused(entries: list[Entry]) -> None:
    with pytest.raises(SnapshotError, match="there twice"):
        manifest_of(entries)


def test_too_many_entries_are_refused() -> None:
    with pytest.raises(SnapshotError, match="at most"):
        dataclasses.replace(ONE, entries=(entry(),) * (MAX_ENTRIES + 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "../x"}, "name must be"),
        ({"version": ""}, "version must be"),
        ({"digest": "sha256:1"}, "digest must be"),
        ({"relation": "stolen"}, "relation must be one of"),
        ({"relation": None}, "relation must be one of"),
    ],
)
def test_a_parent_is_refused_for(change: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"name": "x", "version": "1", "digest": ZERO, "relation": "merge"}
    with pytest.raises(SnapshotError, match=message):
        Parent(**values | change)


def test_licenses_are_joined_each_once() -> None:
    assert joined_license([]) == ""
    assert joined_license(["MIT", " MIT", ""]) == "MIT"
    assert (
        joined_license(["MIT OR ISC", "Apache-2.0", "MIT"]) == "Apache-2.0 AND MIT AND (MIT OR ISC)"
    )


@pytest.mark.parametrize(
    ("version", "after"), [("1", "1.0.1"), ("1.2", "1.2.1"), ("1.2.9", "1.2.10")]
)
def test_the_next_patch_follows(version: str, after: str) -> None:
    assert next_patch(version) == after
