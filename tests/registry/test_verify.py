from __future__ import annotations

import json
from pathlib import Path

import pytest

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.registry import Snapshot
from synthgym.registry.layout import MAX_MANIFEST_BYTES
from synthgym.spec import SynthEnvSpec, canonical_json, sha256_digest

FILES = [
    "envs/LedgerAudit/v0/env.py",
    "envs/LedgerAudit/v0/spec.json",
    "envs/LedgerAudit/v0/report.json",
    "envs/DryDock/v0/env.py",
    "envs/DryDock/v1/spec.json",
]


def reseal(root: Path, file: str, data: bytes) -> None:
    """Change a file, and the manifest to fit, as a stranger could."""
    (root / file).write_bytes(data)
    raw = json.loads((root / "manifest.json").read_bytes())
    (ref,) = [ref for ref in raw["files"] if ref["path"] == file]
    ref |= {"sha256": sha256_digest(data), "size": len(data)}
    body = {key: value for key, value in raw.items() if key != "manifest_sha256"}
    body["manifest_sha256"] = sha256_digest(canonical_json(body))
    (root / "manifest.json").write_bytes(canonical_json(body))


@pytest.mark.parametrize("file", FILES)
def test_one_changed_byte_is_found_in(snapshot: Snapshot, file: str) -> None:
    path = snapshot.path / file
    original = path.read_bytes()
    digest = next(e.digest for e in snapshot if f"{e.name}/v{e.version}/" in file)
    read = snapshot.report if file.endswith("report.json") else snapshot.spec
    for place in (0, len(original) // 2, len(original) - 1):
        changed = bytearray(original)
        changed[place] ^= 1
        path.write_bytes(changed)
        name = path.name.replace(".", r"\.")
        with pytest.raises(IntegrityError, match=rf"{name} .*promised sha256:.*got sha256:"):
            read(digest)
        assert len(snapshot.verify()) == 1
    path.write_bytes(original)
    assert snapshot.verify() == ()


def test_one_changed_byte_is_found_in_the_manifest(snapshot: Snapshot) -> None:
    path = snapshot.path / "manifest.json"
    data = bytearray(path.read_bytes())
    data[data.index(b"Audit of") + 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match="promises its own digest"):
        Snapshot.open(snapshot.path)
    assert len(snapshot.verify()) == 1


def test_a_truncated_or_longer_file_is_found(snapshot: Snapshot) -> None:
    path = snapshot.path / FILES[0]
    original = path.read_bytes()
    for data in (b"", original[:-1], original + b"\n", original * 9999):
        path.write_bytes(data)
        (problem,) = snapshot.verify()
        assert "env.py" in problem


@pytest.mark.parametrize("file", [*FILES, "envs/DryDock", "manifest.json"])
def test_something_missing_is_found(snapshot: Snapshot, file: str) -> None:
    path = snapshot.path / file
    path.rename(snapshot.path.parent / "away")
    assert snapshot.verify()


@pytest.mark.parametrize(
    "file", ["extra.txt", "envs/DryDock/v0/conftest.py", "envs/Other/v0/env.py", ".hidden"]
)
def test_an_extra_file_is_found(snapshot: Snapshot, file: str) -> None:
    path = snapshot.path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    (problem,) = snapshot.verify()
    assert f"{file} is not in the manifest" in problem


def test_an_extra_empty_folder_is_found(snapshot: Snapshot) -> None:
    (snapshot.path / "envs" / "Empty").mkdir()
    assert len(snapshot.verify()) == 1


def test_bytecode_that_an_installer_made_is_no_part_of_it(snapshot: Snapshot) -> None:
    folder = snapshot.path / "envs" / "DryDock" / "v0" / "__pycache__"
    folder.mkdir()
    (folder / "env.cpython-311.pyc").write_bytes(b"whatever")
    assert snapshot.verify() == ()
    (folder / "other.cpython-311.pyc").write_bytes(b"whatever")
    assert any("other.cpython-311.pyc is not in the manifest" in text for text in snapshot.verify())


def test_a_readme_is_for_people(snapshot: Snapshot) -> None:
    (snapshot.path / "README.md").write_text("hello")
    assert snapshot.verify() == ()


@pytest.mark.parametrize(
    "file", ["envs/DryDock/v0/env.py", "envs/DryDock/v0", "envs/DryDock", "envs"]
)
def test_a_link_is_refused_even_to_the_right_bytes(
    snapshot: Snapshot, specs: list[SynthEnvSpec], file: str
) -> None:
    path = snapshot.path / file
    away = snapshot.path.parent / "away"
    path.rename(away)
    path.symlink_to(away)
    with pytest.raises(IntegrityError, match="no link"):
        snapshot.spec(specs[2].digest)
    assert any("no link" in problem for problem in snapshot.verify())


def test_a_manifest_that_is_a_link_is_refused(snapshot: Snapshot) -> None:
    path = snapshot.path / "manifest.json"
    path.rename(snapshot.path.parent / "away")
    path.symlink_to(snapshot.path.parent / "away")
    with pytest.raises(IntegrityError, match="no link"):
        Snapshot.open(snapshot.path)


def test_a_huge_manifest_is_not_read(snapshot: Snapshot) -> None:
    with (snapshot.path / "manifest.json").open("r+b") as file:
        file.truncate(MAX_MANIFEST_BYTES + 1)
    with pytest.raises(IntegrityError, match="larger than"):
        Snapshot.open(snapshot.path)


def test_a_manifest_that_changed_after_opening_is_found(snapshot: Snapshot) -> None:
    source = snapshot.path / FILES[0]
    reseal(snapshot.path, FILES[0], source.read_bytes() + b"# more\n")
    assert any("has changed since" in problem for problem in snapshot.verify())


def test_a_resealed_source_still_fails_by_the_record_s_digest(
    snapshot: Snapshot, specs: list[SynthEnvSpec]
) -> None:
    reseal(snapshot.path, FILES[0], (snapshot.path / FILES[0]).read_bytes() + b"# more\n")
    with pytest.raises(IntegrityError, match=r"spec\.json of synthgym/LedgerAudit-v0: digest"):
        Snapshot.open(snapshot.path).spec(specs[0].digest)


RESEALED = {
    "another name": ('"name": "LedgerAudit"', '"name": "LedgerAudits"', "name of"),
    "another title": ('"Audit of a ledger"', '"Audit of no ledger"', "title of"),
    "other skills": ('"logical-deduction"', '"luck"', "skills of"),
    "another turn limit": ('"max_turns": 9', '"max_turns": 8', "digest of"),
    "an unknown field": ('"title"', '"titel"', "expected fields"),
    "a duplicate key": ('"hint": null', '"hint": null, "hint": "x"', "duplicate key"),
    "NaN": ('"metrics": {}', '"metrics": {"regret": NaN}', "NaN"),
    "limits that are no limits": ('"memory_mb": 256', '"memory_mb": -1', "above 0 and at most"),
    "a hint that is no text": ('"hint": null', '"hint": 5', "hint"),
    "metrics that are no object": ('"metrics": {}', '"metrics": [1]', "metrics"),
    "a contract that is no number": (
        '"contract_version": 1',
        '"contract_version": "1"',
        "contract",
    ),
    "limits that are texts": ('"memory_mb": 256', '"memory_mb": "256"', "above 0 and at most"),
    "a version that is true": ('"version": 0', '"version": false', "version"),
    "keyword arguments of endless depth": (
        '"kwargs": {}',
        '"kwargs": {"a":' + "[" * 950 + "]" * 950 + "}",
        "spec.json",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), RESEALED.values(), ids=RESEALED.keys())
def test_a_resealed_spec_is_refused_for(
    snapshot: Snapshot, specs: list[SynthEnvSpec], old: str, new: str, message: str
) -> None:
    text = (snapshot.path / FILES[1]).read_text()
    assert old in text
    reseal(snapshot.path, FILES[1], text.replace(old, new).encode())
    opened = Snapshot.open(snapshot.path)
    with pytest.raises(SnapshotError, match=message):
        opened.spec(specs[0].digest)
    assert any(message.split()[0] in problem for problem in opened.verify())


def test_a_report_that_a_resealed_spec_does_not_name_is_found(snapshot: Snapshot) -> None:
    text = (snapshot.path / FILES[1]).read_text()
    changed = text.replace('"report_digest": "sha256:', '"report_digest": "SHA256:')
    reseal(snapshot.path, FILES[1], changed.encode())
    (problem,) = Snapshot.open(snapshot.path).verify()
    assert "report_digest of synthgym/LedgerAudit-v0 is" in problem


NOTES = {
    "a hint": ('"hint": null', '"hint": "Read the tide."', "notes_count is 8"),
    "metrics": ('"metrics": {}', '"metrics": {"regret": 1}', "notes_count is 8"),
    "limits": ('"memory_mb": 256', '"memory_mb": 4096', "notes_root is"),
    "an author": ('"author": ""', '"author": "Nobody"', "notes_count is 8"),
}


@pytest.mark.parametrize(("old", "new", "message"), NOTES.values(), ids=NOTES.keys())
def test_a_resealed_note_is_found_by_the_root(
    snapshot: Snapshot, old: str, new: str, message: str
) -> None:
    text = (snapshot.path / FILES[1]).read_text()
    assert old in text
    reseal(snapshot.path, FILES[1], text.replace(old, new).encode())
    assert any(message in problem for problem in Snapshot.open(snapshot.path).verify())


def test_a_source_that_is_not_utf8_is_refused(
    snapshot: Snapshot, specs: list[SynthEnvSpec]
) -> None:
    reseal(snapshot.path, FILES[0], b"\xff")
    with pytest.raises(IntegrityError, match="utf-8"):
        Snapshot.open(snapshot.path).spec(specs[0].digest)
