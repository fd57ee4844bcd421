from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.registry.layout import MAX_ENTRIES
from synthgym.registry.manifest import Entry, Manifest, parse_json
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
    max_turns=st.integers(2, 100),
    files=st.fixed_dictionaries(
        {"env.py": DIGESTS, "spec.json": DIGESTS}, optional={"report.json": DIGESTS}
    ),
)
MANIFESTS = st.lists(ENTRIES, max_size=5, unique_by=(lambda e: e.digest, lambda e: e.env_id)).map(
    lambda entries: Manifest(
        name="games",
        version="1.2",
        entries=tuple(sorted(entries, key=lambda e: (e.name, e.version))),
    )
)


def entry(name: str = "DryDock", version: int = 0, digest: str = "1" * 64, **other: Any) -> Entry:
    values: dict[str, Any] = {
        "title": "T",
        "skills": ("s",),
        "max_turns": 5,
        "files": {"env.py": "sha256:" + "a" * 64, "spec.json": "sha256:" + "b" * 64},
    }
    return Entry(name=name, version=version, digest=f"sha256:{digest}", **values | other)


ONE = Manifest(name="games", version="1.0", entries=(entry(),))


def resealed(change: dict[str, Any], inner: dict[str, Any] | None = None) -> bytes:
    """A manifest that a stranger changed and gave a fitting digest of its own."""
    raw = json.loads(ONE.to_bytes())
    raw["entries"][0].update(inner or {})
    raw.update(change)
    body = {key: value for key, value in raw.items() if key != "manifest_sha256"}
    return canonical_json(body | {"manifest_sha256": sha256_digest(canonical_json(body))})


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


def test_the_digest_covers_environments_and_ids_in_any_order_and_nothing_else() -> None:
    a, b = entry("Aa", digest="1" * 64), entry("Bb", digest="2" * 64)
    base = Manifest(name="x", version="1", entries=(a, b)).digest
    assert Manifest(name="y", version="2", entries=(b, a)).digest == base
    titled = entry("Bb", digest="2" * 64, title="other")
    assert Manifest(name="x", version="1", entries=(a, titled)).digest == base
    swapped = (entry("Aa", digest="2" * 64), entry("Bb", digest="1" * 64))
    assert Manifest(name="x", version="1", entries=swapped).digest != base
    assert Manifest(name="x", version="1", entries=(a,)).digest != base


def test_the_digest_of_known_content_has_not_drifted() -> None:
    assert ONE.digest == "sha256:23ec3e97030b14a5fd6c9b2a4fcc7c049d728e1c30ff1847743eeb7b987c45e1"


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another format": ({"format": "synthgym.snapshot/2"}, {}, "expected a snapshot of format"),
    "a newer reader": ({"min_reader": 2}, {}, "newer synthgym"),
    "a reader that is no number": ({"min_reader": True}, {}, "newer synthgym"),
    "an unknown key": ({"signed": 1}, {}, "unknown keys .'signed'"),
    "a path as name": ({"name": "../x"}, {}, "name must be"),
    "no version": ({"version": "v1"}, {}, "version must be"),
    "entries that are no list": ({"entries": {"0": {}}}, {}, "must be a list"),
    "an entry that is no object": ({"entries": [[], {}]}, {}, "must be an object"),
    "a name that leaves": ({}, {"name": ".."}, "cannot be the name"),
    "a name with a slash": ({}, {"name": "A/../../etc"}, "cannot be the name"),
    "a negative version": ({}, {"version": -1}, "version"),
    "a version that is true": ({}, {"version": True}, "version"),
    "too many turns": ({}, {"max_turns": 101}, "max_turns"),
    "a short digest": ({}, {"digest": "sha256:12"}, "digest"),
    "a title that is no text": ({}, {"title": None}, "title"),
    "skills that are no list": ({}, {"skills": "s"}, "title or skills"),
    "an id of another name": ({}, {"env_id": "synthgym/Other-v0"}, "expected env_id"),
    "an unknown entry key": ({}, {"path": "/etc/passwd"}, "unknown keys"),
    "a file with a path": ({}, {"files": {"../../env.py": "sha256:" + "a" * 64}}, "must have"),
    "a missing source": ({}, {"files": {"spec.json": "sha256:" + "a" * 64}}, "must have"),
    "a file without a digest": ({}, {"files": {"env.py": "x", "spec.json": "y"}}, "no sha256"),
    "files that are no object": ({}, {"files": []}, "must map"),
    "another snapshot digest": ({"digest": "sha256:" + "0" * 64}, {}, "promises snapshot digest"),
}


@pytest.mark.parametrize(("change", "inner", "message"), CHANGES.values(), ids=CHANGES.keys())
def test_a_stranger_s_manifest_is_refused_for(
    change: dict[str, Any], inner: dict[str, Any], message: str
) -> None:
    with pytest.raises(SnapshotError, match=message):
        Manifest.from_bytes(resealed(change, inner))


def test_white_space_is_not_canonical() -> None:
    with pytest.raises(IntegrityError, match="not canonical"):
        Manifest.from_bytes(json.dumps(json.loads(ONE.to_bytes()), sort_keys=True).encode())


def test_entries_out_of_order_are_not_canonical() -> None:
    two = Manifest(name="g", version="1", entries=(entry("Aa"), entry("Bb", digest="2" * 64)))
    raw = json.loads(two.to_bytes())
    body = {k: v for k, v in raw.items() if k != "manifest_sha256"} | {
        "entries": raw["entries"][::-1]
    }
    sealed = body | {"manifest_sha256": sha256_digest(canonical_json(body))}
    with pytest.raises(IntegrityError):
        Manifest.from_bytes(canonical_json(sealed))


@pytest.mark.parametrize(
    "entries",
    [
        (entry(), entry(digest="2" * 64)),
        (entry(), entry("Other")),
    ],
    ids=["id", "digest"],
)
def test_an_id_or_a_digest_that_comes_twice_is_refused(entries: tuple[Entry, ...]) -> None:
    with pytest.raises(SnapshotError, match="there twice"):
        Manifest(name="g", version="1", entries=entries)


def test_too_many_entries_are_refused() -> None:
    with pytest.raises(SnapshotError, match="at most"):
        Manifest(name="g", version="1", entries=(entry(),) * (MAX_ENTRIES + 1))


JSON = {
    "duplicate keys": b'{"a": 1, "a": 2}',
    "inner duplicate keys": b'{"a": [{"b": 1, "b": 1}]}',
    "NaN": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
    "a number that overflows": b'{"a": 1e999}',
    "a huge integer": b'{"a": ' + b"9" * 5000 + b"}",
    "deep nesting": b"[" * 100_000,
    "a lone surrogate": b'{"a": "\\ud800"}',
    "bytes that are not UTF-8": b'{"a": "\xff"}',
    "a byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "trailing bytes": b'{"a": 1} x',
    "no object": b"[1]",
    "nothing": b"",
}


@pytest.mark.parametrize("data", JSON.values(), ids=JSON.keys())
def test_json_is_refused_with(data: bytes) -> None:
    with pytest.raises(SnapshotError, match=r"x\.json"):
        parse_json(data, "x.json")


def test_strict_json_is_read() -> None:
    assert parse_json('{"a": [1, 2.5, null, true, "\u20ac"]}'.encode(), "x") == {
        "a": [1, 2.5, None, True, "\u20ac"]
    }
