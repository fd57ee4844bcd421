"""Snapshots of strangers: manifests, folders, and what is printed of them."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile
import pytest
from hostile import ESCAPES, STRANGE, reseal, sealed

from synthgym.cli import main
from synthgym.errors import IntegrityError, SnapshotError
from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import canonical_json, sha256_digest

LAYOUTS = ["folder", "shards"]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("originals")
    return {
        layout: write_snapshot(base / layout, STRANGE, name="g", version="1", layout=layout).path
        for layout in LAYOUTS
    }


@pytest.fixture(params=LAYOUTS)
def root(request: pytest.FixtureRequest, originals: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals[request.param], tmp_path / "s"))


@pytest.fixture
def folder(originals: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals["folder"], tmp_path / "s"))


# --- manifests ---

PATHS = [
    "../evil.py",
    "/etc/passwd",
    "envs/../../evil.py",
    "envs/Env0/v0/../../../../evil.py",
    "envs//Env0/v0/env.py",
    "./envs/Env0/v0/env.py",
    "envs/Env0/v0/env.py/",
    "envs\\Env0\\v0\\env.py",
    "C:\\evil.py",
    "envs/Env0/v00/env.py",
    "envs/Env0/v\u0660/env.py",
    "envs/CON/v0/env.py",
    "envs/Env0/v0/env.py\0",
    "envs/Env0/v0/conftest.py",
    "vectors/../vectors-000-of-001.safetensors",
    "vectors/a/b/vectors-000-of-001.safetensors",
    "vectors/a/vectors-001-of-001.safetensors",
    "vectors/a/vectors-000-of-003.safetensors",
    "vectors/a/vectors-000-of-001.pkl",
    "envs/envs-\u0660\u0660\u0660-of-001.parquet",
    "envs/notes-000-of-001.parquet",
    "index.faiss",
    "manifest.json",
    "README.md",
    "",
]


@pytest.mark.parametrize("kind", ["source", "vectors"])
@pytest.mark.parametrize("path", PATHS)
def test_no_manifest_names_a_path_that_is_not_ours(root: Path, path: str, kind: str) -> None:
    raw = json.loads((root / "manifest.json").read_bytes())
    ref = {"path": path, "sha256": "sha256:" + "0" * 64, "size": 1, "kind": kind, "rows": 0}
    files = sorted([*raw["files"], ref], key=lambda file: str(file["path"]))
    reseal(root, files=files, embedders={"a": 3} if path.startswith("vectors") else {})
    with pytest.raises(SnapshotError, match="no file of this layout"):
        Snapshot.open(root)


MANIFESTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a duplicate key": (lambda d: b'{"core":1,' + d[1:], "duplicate key"),
    "an inner duplicate key": (lambda d: d.replace(b'{"alias', b'{"name":"g","alias', 1), "duplicate"),
    "NaN": (lambda d: b'{"a":NaN,' + d[1:], "NaN is not"),
    "a number that overflows": (lambda d: b'{"a":1e999,' + d[1:], "too large"),
    "a lone surrogate": (lambda d: b'{"a":"\\ud800",' + d[1:], "strict JSON"),
    "deep nesting": (lambda d: b'{"a":' + b"[" * 10**6 + b"]" * 10**6 + b"," + d[1:], "strict JSON|deeper"),
    "nesting that is just too deep": (
        lambda d: sealed(json.loads(d) | {"x": json.loads("[" * 64 + "]" * 64)}),
        "nested deeper than 64",
    ),
    "an integer without end": (lambda d: b'{"a":' + b"9" * 10**5 + b"," + d[1:], "strict JSON|canonical"),
    "10 MB": (lambda d: sealed(json.loads(d) | {"x": "y" * 10_000_000}), "larger than the 4194304"),
    "10 MB of white space": (lambda d: d + b" " * 10_000_000, "larger than the 4194304"),
    "4 MB of objects": (
        lambda d: sealed(json.loads(d) | {"entries": [{}] * 1_000_000}),
        "entry of manifest|no entries",
    ),
    "4 MB of files": (lambda d: sealed(json.loads(d) | {"files": [{}] * 1_000_000}), "a file of"),
    "UTF-16": (lambda d: d.decode().encode("utf-16"), "strict JSON"),
    "a byte order mark": (lambda d: b"\xef\xbb\xbf" + d, "strict JSON"),
    "two objects": (lambda d: d + d, "strict JSON"),
    "white space": (lambda d: d + b"\n", "not canonical"),
    "an escape that nobody needs": (lambda d: d.replace(b'"core"', b'"c\\u006fre"'), "not canonical"),
}  # fmt: skip


@pytest.fixture(scope="module")
def read(
    originals: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], list[str]]:
    """What a process of 1.5 GiB says of the manifests."""
    places = {}
    for layout, original in originals.items():
        for name, (change, _) in MANIFESTS.items():
            place = Path(shutil.copytree(original, tmp_path_factory.mktemp("manifest") / "s"))
            data = (place / "manifest.json").read_bytes()
            (place / "manifest.json").write_bytes(change(data))
            places[layout, name] = place
    found = hostile.read_in_little_memory(list(places.values()))
    assert "died" not in found, found["died"]
    return {key: found[str(place)] for key, place in places.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_refused_with(
    read: dict[tuple[str, str], list[str]], layout: str, name: str
) -> None:
    assert re.search(MANIFESTS[name][1], "\n".join(read[layout, name])), read[layout, name]


@pytest.mark.parametrize("names", [("Env0", "Env0"), ("Env0", "ENV0"), ("Env0", "env0")])
def test_names_that_a_file_system_may_not_tell_apart_are_refused(
    folder: Path, names: tuple[str, str]
) -> None:
    raw = json.loads((folder / "manifest.json").read_bytes())
    for entry, name in zip(raw["entries"], sorted(names), strict=True):
        entry["name"] = name
    (folder / "manifest.json").write_bytes(sealed(raw))
    with pytest.raises(SnapshotError, match=r"there twice|cannot be the name"):
        Snapshot.open(folder)


# --- folders ---


@pytest.mark.parametrize("make", ["link", "pipe", "folder"])
def test_a_manifest_that_is_no_file_is_refused(root: Path, make: str) -> None:
    path = root / "manifest.json"
    away = root.parent / "away"
    path.rename(away)
    if make == "link":
        path.symlink_to(away)
    elif make == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(SnapshotError, match=r"no link|not a snapshot"):
        Snapshot.open(root)


def test_a_folder_that_is_a_link_is_not_followed(root: Path) -> None:
    (root / "envs").rename(root.parent / "away")
    (root / "envs").symlink_to(root.parent / "away")
    snapshot = Snapshot.open(root)
    assert any("no link" in problem for problem in snapshot.verify())
    with pytest.raises(IntegrityError, match="no link"):
        list(snapshot.packed())


class Evil:
    """Whoever reads this pickle leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._trace,)


FOREIGN = [
    "index.faiss",
    "vectors/index.faiss",
    "vectors.pkl",
    "envs/Env0/v0/env.pyc",
    "envs/__init__.py",
    "conftest.py",
    "sitecustomize.py",
    "pyproject.toml",
    "evil\x1b[31m.txt",
]


@pytest.mark.parametrize("path", FOREIGN)
def test_what_lies_beside_is_named_and_never_read(root: Path, tmp_path: Path, path: str) -> None:
    trace = tmp_path / "trace"
    data = pickle.dumps(Evil(trace))
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)
    (root / path).chmod(0)  # reading it would fail
    snapshot = Snapshot.open(root)
    assert [snapshot.spec(spec.digest) for spec in STRANGE] == STRANGE
    assert snapshot.verify() == (f"{root}: {path} is not in the manifest",)
    assert not trace.exists()
    pickle.loads(data)
    assert trace.exists()


def test_what_may_lie_beside_is_not_read_either(root: Path) -> None:
    for name in ("README.md", "croissant.json", ".gitattributes"):
        (root / name).write_bytes(b"\xff" * 10)
        (root / name).chmod(0)
    assert Snapshot.open(root).verify() == ()


# --- what is printed ---

COMMANDS = [
    ["list", "--snapshot", "PLACE"],
    ["list", "--snapshot", "PLACE", "--json"],
    ["show", "Env0", "--snapshot", "PLACE"],
    ["show", "Env0", "--snapshot", "PLACE", "--source"],
    ["show", "Env0", "--snapshot", "PLACE", "--json"],
    ["list", "--skill", "x\x1b[31m", "--snapshot", "PLACE"],
    ["show", "Env7\x1b[31m", "--snapshot", "PLACE"],
    ["snapshot", "info", "PLACE"],
    ["snapshot", "info", "PLACE", "--json"],
    ["snapshot", "verify", "PLACE"],
    ["snapshot", "diff", "PLACE", "PLACE"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_texts_of_strangers_drive_no_terminal(
    root: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "evil\x1b[31m\u202e.txt").touch()  # `verify` names it
    with pytest.raises(SystemExit) as stopped:
        main([str(root) if word == "PLACE" else word for word in command])
    shown = "".join(capsys.readouterr())
    strange = {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs")}
    assert shown
    assert strange <= {"\n", "\t"}, shown
    if command[0] in ("list", "show") and not stopped.value.code:
        assert "<script>alert(1)</script> [bold]" in shown  # as it is: a terminal knows no markup


def test_a_title_is_data_in_the_bytes_as_well(root: Path) -> None:
    assert {entry.title for entry in Snapshot.open(root)} == {ESCAPES}
    data = (root / "manifest.json").read_bytes()
    assert b"\x1b" not in data
    assert canonical_json(json.loads(data)) == data
    assert sha256_digest(data).startswith("sha256:")
