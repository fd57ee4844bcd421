"""What is verified without building an environment is taken for right exactly where building it finds no fault."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hostile
import pytest
from hostile import ENVS, NOTES
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.errors import ConfigError, SnapshotError
from synthgym.registry import Snapshot, verify, write_snapshot
from synthgym.registry.manifest import Manifest
from synthgym.registry.notes import ABOUT, KINDS, REPORT
from synthgym.registry.packed import Packed, pack_env
from synthgym.registry.usual import is_usual
from synthgym.spec import (
    DIGEST_DOMAIN,
    EnvRecord,
    Limits,
    Provenance,
    SynthEnvSpec,
    canonical_json,
    sha256_digest,
)

SPECS = [
    SynthEnvSpec(record=EnvRecord(source="# plain\n", entry="E", max_turns=5), name="Plain"),
    SynthEnvSpec(
        record=EnvRecord(
            source='# caf\u00e9 "\u20ac"\r\n',
            entry="E",
            max_turns=9,
            kwargs={"a": [1, {"b": None}], "c": "\u20ac"},
            requires=("json", "math"),
        ),
        name="Rich",
        version=3,
        title="\u20ac",
        skills=("one", "two"),
        hint="Look.",
        metrics={"rate": 0.1, "agents": {"a": [1, 1e9, -0.0, True, None]}},
        limits=Limits(load_seconds=5, memory_mb=512),
        provenance=Provenance(author="A", seed=3, parameters={"x": [0.5], "y": {}}),
    ),
]
REPORT_OF = {"ok": True, "n": [1, 2.5, "\u20ac"], "deep": {"a": {"b": []}}}
ITEMS = [
    *map(pack_env, SPECS),
    *(pack_env(spec, {spec.digest: REPORT_OF}) for spec in SPECS),
]
MANIFEST = Manifest.from_bytes(
    (Path(__file__).parents[2] / "registry" / "manifest.json").read_bytes()
)


def usual(item: Packed) -> bool:
    return is_usual(item.entry, item.record, item.source, item.notes)


def verdict(item: Packed, *, quick: bool) -> str:
    """What is said of an environment; nothing when it is right."""
    with pytest.MonkeyPatch.context() as patch:
        if not quick:
            patch.setattr(verify, "is_usual", lambda *_: False)
        try:
            verify._check_notes(item, MANIFEST)
        except SnapshotError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("item", ITEMS, ids=range(len(ITEMS)))
def test_what_synthgym_writes_is_usual(item: Packed) -> None:
    assert usual(item)
    assert verdict(item, quick=False) == ""


TEXT = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(
    ["", "raw", "sha256:" + "0" * 64, "spade", "schema", "text", "a"]
)
NUMBERS = (
    st.integers(-3, 12)
    | st.sampled_from([2**53, 2**63, 2**64, 10**25, 1.0, 5.0, 1e16, 1e17, 1e-7, -0.0, 0.1])
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(inner, (*path, key))
    return found


@st.composite
def other_json(draw: st.DrawFn, data: bytes) -> bytes:
    """Other JSON: a value changed, dropped or added, in canonical bytes or not; or a byte changed."""
    try:
        raw = {"": json.loads(data)}
    except ValueError:  # it was changed before
        raw = {}
    if not raw or draw(st.integers(0, 4)) == 0:
        changed = bytearray(data or b"x")
        place = draw(st.integers(0, len(changed) - 1))
        changed[place : place + draw(st.integers(0, 2))] = draw(st.sampled_from(BYTES))
        return bytes(changed)
    path = draw(st.sampled_from(places(raw)[1:]))
    inner: Any = raw
    for key in path[:-1]:
        inner = inner[key]
    match draw(st.sampled_from(["set", "set", "drop", "add", "deep", "none"])):
        case "set":
            inner[path[-1]] = draw(VALUES)
        case "drop" if len(path) > 1:
            del inner[path[-1]]
        case "add" if isinstance(inner[path[-1]], dict):
            inner[path[-1]][draw(TEXT)] = draw(VALUES)
        case "deep":
            for _ in range(draw(st.sampled_from([28, 33, 57, 58, 59, 60, 61, 64, 66]))):
                inner[path[-1]] = {"a": inner[path[-1]]}
        case _:
            pass
    write = draw(st.sampled_from([canonical_json, canonical_json, json.dumps, msgspec_like]))
    written = write(raw[""])
    return written.encode() if isinstance(written, str) else written


BYTES = [b"", b" ", b"0", b"1", b'"', b"{", b"}", b",", b"\\", b"\xff", b"e", b".", b"\xc3\xa9"]


def msgspec_like(value: Any) -> str:
    """No spaces, but in the order of the keys."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fitting(item: Packed) -> Packed:
    """The same with the digests that its record and its report come to, as a stranger would give it."""
    try:
        digest = EnvRecord.from_json(json.loads(item.record), item.source).digest
    except (SnapshotError, ConfigError, ValueError, TypeError, AttributeError, RecursionError):
        text = item.record[:-1] + ',"source":' + json.dumps(item.source, ensure_ascii=False) + "}"
        digest = sha256_digest(DIGEST_DOMAIN + text.encode())
    notes = dict(item.notes)
    if REPORT in notes and ABOUT in notes:
        named = json.loads(ITEMS[0].notes[ABOUT])["report_digest"]
        for old in {named, *(json.loads(i.notes[ABOUT])["report_digest"] for i in ITEMS)} - {""}:
            digest_now = sha256_digest(notes[REPORT])
            notes[ABOUT] = notes[ABOUT].replace(old.encode(), digest_now.encode())
    return replace(item, entry=replace(item.entry, digest=digest), notes=notes)


@st.composite
def changed_items(draw: st.DrawFn) -> Packed:
    item = draw(st.sampled_from(ITEMS))
    for _ in range(draw(st.integers(1, 2))):
        notes = dict(item.notes)
        match draw(st.sampled_from(["record", "note", "note", "kind", "entry", "source"])):
            case "record":
                data = draw(other_json(item.record.encode()))
                item = replace(item, record=data.decode(errors="replace"))
            case "note" if notes:
                kind = draw(st.sampled_from(sorted(notes)))
                notes[kind] = draw(other_json(notes[kind]))
            case "kind":
                kind, other = (draw(st.sampled_from([*KINDS, "other"])) for _ in range(2))
                notes[kind] = draw(st.sampled_from([b"{}", b"[]", notes.get(other, b"null")]))
                if draw(st.booleans()):
                    notes.pop(other, None)
            case "entry":
                change = draw(st.sampled_from([{"title": "x"}, {"skills": ()}, {"license": "MIT"}]))
                turns = draw(st.sampled_from([{"max_turns": 6}, {"version": 4}, {}]))
                item = replace(item, entry=replace(item.entry, **change | turns))
            case "source":
                item = replace(item, source=draw(TEXT))
        item = replace(item, notes=dict(sorted(notes.items())))
    try:
        return fitting(item) if draw(st.booleans()) else item
    except ValueError:  # `about` is no text
        return item


@settings(max_examples=600, deadline=None)
@given(changed_items())
def test_both_ways_say_the_same_of_anything_that_is_changed(item: Packed) -> None:
    slow = verdict(item, quick=False)
    assert verdict(item, quick=True) == slow
    assert not (usual(item) and slow)


CHANGES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "whole numbers for limits": (lambda a: a["limits"].update(load_seconds=3), True),
    "floats for whole numbers": (lambda a: a["limits"].update(memory_mb=256.0), False),
    "a limit that is true": (lambda a: a["limits"].update(memory_mb=True), False),
    "a limit too many": (lambda a: a["limits"].update(other=1), False),
    "a limit less": (lambda a: a["limits"].pop("memory_mb"), False),
    "limits beyond the most": (lambda a: a["limits"].update(memory_mb=10**9), False),
    "limits that are a list": (lambda a: a.update(limits=[]), False),
    "another contract": (lambda a: a.update(contract_version=77), True),
    "a contract of floats": (lambda a: a.update(contract_version=1.0), False),
    "a contract that is true": (lambda a: a.update(contract_version=True), False),
    "a key too many": (lambda a: a.update(other=None), False),
    "a key less": (lambda a: a.pop("contract_version"), False),
    "a report that is not there": (lambda a: a.update(report_digest="sha256:x"), True),
    "another title": (lambda a: a.update(title="x"), False),
    "other skills": (lambda a: a.update(skills=["x"]), False),
    "another license": (lambda a: a.update(license="x"), False),
}


@pytest.mark.parametrize(("change", "right"), CHANGES.values(), ids=CHANGES.keys())
def test_both_ways_say_the_same_of_about_with(change: Callable[[Any], Any], right: bool) -> None:
    about = json.loads(ITEMS[0].notes[ABOUT])
    change(about)
    item = replace(ITEMS[0], notes={**ITEMS[0].notes, ABOUT: canonical_json(about)})
    assert verdict(item, quick=True) == verdict(item, quick=False)
    assert (verdict(item, quick=True) == "") == usual(item) == right


def test_limits_that_are_equal_but_not_alike_are_written_as_they_are() -> None:
    """5 and 5.0 are equal, and their notes are not: what was verified before must not matter."""
    for seconds in (5.0, 5, 5.0):
        spec = replace(SPECS[0], limits=Limits(load_seconds=seconds))
        assert f'"load_seconds":{seconds},'.encode() in pack_env(spec).notes[ABOUT]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("usual") / "s"
    reports = {SPECS[1].digest: REPORT_OF}
    write_snapshot(place, SPECS, name="two", version="1", reports=reports, layout="shards")
    return place


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_both_ways_say_the_same_of_stored_rows(
    original: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = Path(shutil.copytree(original, tmp_path_factory.mktemp("rows") / "s"))
    path, column = data.draw(st.sampled_from([(NOTES, "payload"), (ENVS, "record")]))
    values = hostile.columns(root / path)
    number = data.draw(st.integers(0, len(values[column]) - 1))
    changed = data.draw(other_json(values[column][number].encode())).decode(errors="replace")
    values[column][number] = changed
    hostile.change_rows(root, path, lambda _: values)
    found = []
    for quick in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not quick:
                patch.setattr(verify, "is_usual", lambda *_: False)
            found.append(Snapshot.open(root).verify())
    assert found[0] == found[1]
    if not found[0]:
        whole = hostile.columns(original / path)[column][number]
        if path == NOTES:
            assert changed == whole
        else:  # a record is hashed as synthgym writes it, however it is stored
            records = [EnvRecord.from_json(json.loads(text), "") for text in (changed, whole)]
            assert records[0] == records[1]
