from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from games import NAMES, write_games

from synthgym.publishing.croissant import croissant, croissant_bytes
from synthgym.registry import layout

URL = "https://huggingface.co/datasets/org/games"
READ = """
import json, sys
import mlcroissant

dataset = mlcroissant.Dataset(sys.argv[1])
rows = {each.name: len(list(dataset.records(each.name))) for each in dataset.metadata.record_sets}
print(json.dumps(rows))
"""


@pytest.fixture(params=["folder", "shards", "many shards"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "many shards":
        monkeypatch.setattr(layout, "SHARD_TARGET", 3)
    kind = "folder" if request.param == "folder" else "shards"
    snapshot = write_games(tmp_path / "games", layout=kind, vectors=True)
    (tmp_path / "games" / "croissant.json").write_bytes(croissant_bytes(snapshot.manifest, URL))
    assert snapshot.verify() == ()
    return tmp_path / "games"


def test_every_file_and_every_column_is_told(folder: Path) -> None:
    told = json.loads((folder / "croissant.json").read_bytes())
    assert told["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    assert (told["name"], told["version"], told["license"]) == ("games", "1.0.0", "Apache-2.0")
    objects = [item for item in told["distribution"] if item["@type"] == "cr:FileObject"]
    found = {item["contentUrl"]: item["sha256"] for item in objects}
    expected = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "croissant.json")
    }
    assert found == expected
    names = {item["@id"] for item in told["distribution"]}
    for records in told["recordSet"]:
        for field in records["field"]:
            (source,) = (v["@id"] for k, v in field["source"].items() if k != "extract")
            assert source in names
    for kind in ("index", "envs", "notes") if "index.parquet" in found else ():
        (records,) = [r for r in told["recordSet"] if r["@id"] == f"{kind}-rows"]
        (path, *_) = [folder / name for name in found if name.startswith(kind)]
        assert [field["name"] for field in records["field"]] == pq.read_schema(path).names


def test_the_same_manifest_gives_the_same_bytes(tmp_path: Path) -> None:
    manifest = write_games(tmp_path / "games").manifest
    assert croissant_bytes(manifest, URL) == croissant_bytes(manifest, URL)
    assert croissant(manifest, URL)["url"] == URL


@pytest.mark.skipif(
    importlib.util.find_spec("mlcroissant") is None, reason="mlcroissant is not installed"
)
def test_the_reference_implementation_reads_the_rows(folder: Path) -> None:
    command = [sys.executable, "-c", READ, str(folder / "croissant.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    is_table = (folder / "index.parquet").exists()
    count = len(NAMES)
    assert rows == (
        {"index-rows": count, "envs-rows": count, "notes-rows": 3 * count} if is_table else {}
    )
