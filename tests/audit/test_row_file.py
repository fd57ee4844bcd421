from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from synthgym.audit import Row, Status, default_out, read_rows
from synthgym.audit.row_file import RowFile
from synthgym.audit.rows import ROW_BEGINS
from synthgym.errors import ConfigError
from synthgym.validation import Finding, Reason

FINDING = Finding(
    Reason.STEP_RAISED, "turn 2: \udce9\x00", 3, None, ("look\n", ""), "a \x1b[2J room"
)


def row(name: str, **fields: object) -> Row:
    known: dict[str, object] = {
        "status": Status.REFUSED,
        "digest": f"sha256:{name}",
        "findings": (FINDING,),
        "reasons": ("step-raised",),
        "gates": {"static": "passed", "load": "failed"},
        "validator": "v1",
    }
    return Row(name=name, **(known | fields))  # type: ignore[arg-type]


def names(path: Path) -> list[str]:
    return [found.name for found in read_rows(path)]


def test_a_row_is_one_line_of_ascii_and_comes_back_equal() -> None:
    hostile = row("a\nb\u2028\udce9<i>\x1b", title="\u202e", detail="x" * 3, seconds=0.25)
    line = hostile.to_line()
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert line.startswith(ROW_BEGINS)
    assert Row.from_line(line) == hostile
    data = json.loads(line)
    assert (data["ok"], data["findings"][0]["remedy"]) == (False, Reason.STEP_RAISED.remedy)


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b'{"audit": 2}', b'{"audit": 1}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_row_is_one_error(line: bytes) -> None:
    with pytest.raises(ConfigError, match="expected a row of an audit"):
        Row.from_line(line)


def test_rows_are_found_again_by_place_and_text(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    link = row("link", status=Status.UNREADABLE, digest="", detail="a link", findings=())
    lost = row("lost", status=Status.NOT_AUDITED, digest="sha256:l", findings=())
    with RowFile(path, "v1") as file:
        for each in (row("a"), link, lost):
            file.append(each)
        assert file.find(row("a", status=Status.NOT_AUDITED)) == row("a")
    with RowFile(path, "v1") as file:
        assert file.find(row("a")) == row("a")
        assert file.find(row("a", digest="sha256:other")) is None
        assert file.find(row("b", digest="sha256:a")) is None
        assert file.find(link) == link
        assert file.find(replace(link, detail="no permission")) is None
        assert file.find(lost) is None
        assert file.known == {"sha256:a": replace(row("a"), findings=())}


def test_another_validator_knows_nothing_of_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with RowFile(path, "v1") as file:
        file.append(row("a"))
    with RowFile(path, "v2") as file:
        assert file.find(row("a")) is None
        assert not file.known
        file.append(row("a", validator="v2"))
    assert [found.validator for found in read_rows(path)] == ["v2"]
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("cut", [1, 5, 20, 200])
def test_a_torn_last_line_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "out.jsonl"
    with RowFile(path, "v1") as file:
        file.append(row("a"))
        file.append(row("b"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert names(path) == (["a", "b"] if cut == 1 else ["a"])
    with RowFile(path, "v1") as file:
        assert file.find(row("b")) is None
        file.append(row("c"))
    assert names(path) == ["a", "c"]
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_a_line_torn_at_its_first_bytes_is_dropped_too(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(ROW_BEGINS[:4])
    with RowFile(path, "v1") as file:
        file.append(row("a"))
    assert names(path) == ["a"]


@pytest.mark.parametrize(
    "content", [b"print(1)\n", b'{"code": "x"}\n', b"x", b'{"audit": 7, "name": "x"}\n', b"\n"]
)
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is no file of an audit: choose another"):
        RowFile(path, "v1")
    assert path.read_bytes() == content
    with pytest.raises(ConfigError, match="no file of an audit"):
        list(read_rows(path))


def test_two_audits_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with (
        RowFile(path, "v1"),
        pytest.raises(ConfigError, match="being written by another audit"),
    ):
        RowFile(path, "v1")
    RowFile(path, "v1").close()


@pytest.mark.parametrize("name", ["missing/out.jsonl", ".", "/dev/null"])
def test_a_file_that_cannot_be_written_is_one_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        RowFile(tmp_path / name, "v1")


def test_a_full_disk_is_one_error() -> None:
    file = RowFile.__new__(RowFile)
    with Path("/dev/full").open("wb", buffering=0) as full:
        file.path, file._handle = Path("/dev/full"), full.fileno()
        with pytest.raises(ConfigError, match="No space left"):
            file.append(row("a"))


def test_rows_are_read_by_name_and_the_newest_counts(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with RowFile(path, "v1") as file:
        for each in (row("c"), row("a"), row("b"), row("a", digest="sha256:new")):
            file.append(each)
    assert [(each.name, each.digest) for each in read_rows(path)] == [
        ("a", "sha256:new"),
        ("b", "sha256:b"),
        ("c", "sha256:c"),
    ]
    with pytest.raises(ConfigError, match="cannot read"):
        list(read_rows(tmp_path / "none.jsonl"))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/pool", "pool.audit.jsonl"),
        ("a/rows.jsonl.gz", "rows.audit.jsonl"),
        ("rows.jsonl", "rows.audit.jsonl"),
        ("game.py", "game.audit.jsonl"),
        ("/", "root.audit.jsonl"),
    ],
)
def test_the_file_is_named_after_the_first_path(path: str, name: str) -> None:
    assert default_out([Path(path), Path("other")]) == Path(name)


def test_every_field_of_a_row_is_explained() -> None:
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text("utf-8")
    table = page.partition("<!-- rows -->\n")[2].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == list(row("a").to_json())
    (fields,) = re.findall(r"^\| `findings` \| (.*) of each \|$", table, re.MULTILINE)
    assert re.findall(r"`(\w+)`", fields) == list(FINDING.to_json())
