"""What a digest depends on, what it does not, and that no changed byte is ever missed."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from synthgym.errors import EnvNotFoundError, SnapshotError
from synthgym.registry import Snapshot, layout, tables, write_snapshot
from synthgym.registry.manifest import Manifest
from synthgym.spec import EnvRecord, SynthEnvSpec, canonical_json, sha256_digest

SPECS = [
    SynthEnvSpec(
        record=EnvRecord(source=f"# {number} \u20ac\n", entry="E", max_turns=5),
        name=f"Env{number % 4}",
        version=number // 4,
        title=f"No. {number}",
        license="MIT" if number % 2 else "Apache-2.0",
        metrics={"rate": number / 7} if number % 3 else {},
    )
    for number in range(9)
]
REPORTS = {spec.digest: {"ok": True, "at": [0.5, 1]} for spec in SPECS[::2]}
VECTORS = {spec.digest: {"mini": np.arange(3) + i} for i, spec in enumerate(SPECS[1:])}


def write(target: Path, specs: list[SynthEnvSpec], **options: Any) -> Snapshot:
    return write_snapshot(
        target, specs, name="nine", version="1", reports=REPORTS, vectors=VECTORS, **options
    )


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return write(tmp_path_factory.mktemp("nine") / "s", SPECS, layout="folder")


@settings(max_examples=25, deadline=None)
@given(
    order=st.permutations(SPECS),
    kind=st.sampled_from(layout.LAYOUTS),
    target=st.integers(1, 9),
    rows=st.integers(1, 9),
    size=st.sampled_from([1, 100, 1 << 25]),
)
def test_neither_order_nor_layout_nor_shards_nor_row_groups_change_the_digest(
    expected: Snapshot, order: list[SynthEnvSpec], kind: str, target: int, rows: int, size: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(layout, "SHARD_TARGET", target)
        patch.setattr(tables, "GROUP_ROWS", dict.fromkeys(tables.GROUP_ROWS, rows))
        patch.setattr(tables, "_GROUP_TARGET", size)
        snapshot = write(Path(folder, "s"), order, layout=kind)
        assert snapshot.core == expected.core
        assert snapshot.verify() == ()
        assert list(snapshot) == list(expected)
        assert snapshot.digests() == expected.digests()
        assert [snapshot.spec(s.digest) for s in SPECS] == [expected.spec(s.digest) for s in SPECS]
        vectors = [(digest, vector.tobytes()) for digest, vector in snapshot.vectors("mini")]
        assert vectors == [(d, v.tobytes()) for d, v in expected.vectors("mini")]


@settings(max_examples=40, deadline=None)
@given(number=st.integers(0, 8), data=st.data())
def test_any_other_content_has_another_digest(
    expected: Snapshot, number: int, data: st.DataObject
) -> None:
    spec = SPECS[number]
    change: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {"title": "Other"},
                {"skills": ("optimisation",)},
                {"license": "ISC"},
                {"hint": ""},
                {"metrics": {"rate": 2.0}},
                {"version": 99},
                {"name": "Other"},
                {"limits": dataclasses.replace(spec.limits, memory_mb=1)},
                {"provenance": dataclasses.replace(spec.provenance, seed=0)},
                {"record": dataclasses.replace(spec.record, max_turns=6)},
            ]
        )
    )
    changed = [*SPECS[:number], dataclasses.replace(spec, **change), *SPECS[number + 1 :]]
    with tempfile.TemporaryDirectory() as folder:
        snapshot = write(Path(folder, "s"), changed, layout="folder")
        assert snapshot.digest != expected.digest
        same = not change.keys() & {"version", "name", "record"}
        assert (snapshot.core.content_digest == expected.core.content_digest) == same


# --- changed bytes ---

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""A case here is small as it is."""


@pytest.fixture(scope="module", params=layout.LAYOUTS)
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Snapshot]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "SHARD_TARGET", 5)
        yield write(tmp_path_factory.mktemp("bytes") / "s", SPECS, layout=request.param)


@settings(max_examples=60, deadline=None, phases=NO_SHRINKING)
@given(data=st.data())
def test_one_changed_byte_of_any_file_is_found(whole: Snapshot, data: st.DataObject) -> None:
    paths = sorted(path for path in whole.path.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(paths))
    original = path.read_bytes()
    changed = bytearray(original)
    changed[data.draw(st.integers(0, len(original) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(changed)
    try:
        assert whole.verify()
        assert problems(whole.path)
    finally:
        path.write_bytes(original)
    assert whole.verify() == ()


@settings(max_examples=40, deadline=None, phases=NO_SHRINKING)
@given(data=st.data())
def test_changed_bytes_that_the_manifest_promises_never_end_in_another_error(
    whole: Snapshot, data: st.DataObject
) -> None:
    """A stranger can give changed bytes a fitting manifest: what is read then is fine or refused."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "s")
        shutil.copytree(whole.path, root)
        raw = json.loads((root / "manifest.json").read_bytes())
        ref = data.draw(st.sampled_from(raw["files"]))
        changed = bytearray((root / ref["path"]).read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
        (root / ref["path"]).write_bytes(changed)
        ref |= {"sha256": sha256_digest(bytes(changed))}
        (root / "manifest.json").write_bytes(sealed(raw))
        problems(root)


def problems(root: Path) -> tuple[str, ...]:
    """What `verify` finds in a snapshot that is opened anew, after everything else was read."""
    try:
        snapshot = Snapshot.open(root)
    except SnapshotError as error:
        return (str(error),)
    rng = np.random.default_rng(0)
    reads: list[Callable[[], object]] = [
        lambda: list(snapshot),
        snapshot.digests,
        lambda: snapshot.sample(3, rng),
        lambda: list(snapshot.packed()),
        *(partial(list, snapshot.vectors(embedder)) for embedder in snapshot.embedders),
        *(partial(snapshot.report, spec.digest) for spec in SPECS),
        *(partial(snapshot.spec, spec.env_id) for spec in SPECS),
        *(partial(snapshot.entry, spec.pinned_id) for spec in SPECS),
    ]
    for read in reads:
        with suppress(SnapshotError, EnvNotFoundError):
            read()
    return snapshot.verify()


# --- manifests ---

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.sampled_from(["sha256:" + "0" * 64, "1.0", "../x", "envs/E/v0/env.py", "Env1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def sealed(raw: dict[str, Any]) -> bytes:
    body = {key: value for key, value in raw.items() if key != "manifest_sha256"}
    return canonical_json(body | {"manifest_sha256": sha256_digest(canonical_json(body))})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


@settings(max_examples=300, deadline=None)
@given(data=st.data(), value=JSON, drop=st.booleans())
def test_a_manifest_with_anything_anywhere_is_read_or_refused(
    whole: Snapshot, data: st.DataObject, value: Any, drop: bool
) -> None:
    raw = json.loads((whole.path / "manifest.json").read_bytes())
    path = data.draw(st.sampled_from(list(places(raw))[1:]))
    inner = raw
    for key in path[:-1]:
        inner = inner[key]
    if drop:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    try:
        found = Manifest.from_bytes(sealed(raw))
    except SnapshotError:
        return
    assert found.to_bytes() == sealed(raw)


@given(st.dictionaries(TEXT, JSON, max_size=4) | JSON)
def test_any_json_is_refused_with_our_error(value: Any) -> None:
    with pytest.raises(SnapshotError):
        Manifest.from_bytes(canonical_json(value))
