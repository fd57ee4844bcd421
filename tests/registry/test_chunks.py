"""Column chunks that are matched as a whole are read as they are field by field."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import hostile
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.errors import IntegrityError
from synthgym.registry import pages
from synthgym.registry.chunks import usual_chunk
from synthgym.registry.pages import Group, read_footer
from synthgym.registry.thrift import Struct, read_struct


def footer(data: bytes) -> bytes:
    size = int.from_bytes(data[-8:-4], "little")
    return data[-8 - size : -8]


def table(root: Path, name: str) -> bytes:
    return (root / name).read_bytes()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    root = hostile.write_games(tmp_path_factory.mktemp("chunks") / "s")
    return {name: table(root, name) for name in (hostile.INDEX, hostile.ENVS, hostile.NOTES)}


COLUMNS = {hostile.INDEX: 7, hostile.ENVS: 9, hostile.NOTES: 3}


def groups(data: bytes, columns: int, *, quick: bool) -> list[Group] | str:
    with pytest.MonkeyPatch.context() as patch:
        if not quick:
            patch.setattr(pages, "usual_chunk", None)
        try:
            return read_footer(io.BytesIO(data), len(data), columns, "x")
        except IntegrityError as error:
            return str(error)


@pytest.mark.parametrize("name", COLUMNS)
def test_what_synthgym_writes_is_matched(files: dict[str, bytes], name: str) -> None:
    found: list[Any] = []

    def noted(data: bytes, place: int) -> tuple[Struct, int] | None:
        found.append(usual_chunk(data, place))
        return found[-1]

    read_struct(footer(files[name]), shortcut=noted)
    assert len(found) == COLUMNS[name]
    assert None not in found
    assert groups(files[name], COLUMNS[name], quick=True) == groups(
        files[name], COLUMNS[name], quick=False
    )


@settings(max_examples=1500, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(COLUMNS)))
def test_both_ways_say_the_same_of_any_bytes(
    files: dict[str, bytes], name: str, data: st.DataObject
) -> None:
    whole = bytearray(files[name])
    size = int.from_bytes(whole[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        place = len(whole) - 8 - data.draw(st.integers(1, size))
        whole[place] = data.draw(
            st.integers(0, 255) | st.sampled_from([0, 0x11, 0x15, 0x16, 0x19, 0x26, 0x80, 0xFF])
        )
    found = groups(bytes(whole), COLUMNS[name], quick=True)
    assert found == groups(bytes(whole), COLUMNS[name], quick=False)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"write_statistics": False},
        {"use_dictionary": True},
        {"compression": "none"},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"row_group_size": 1},
        {"write_page_index": True},
    ],
    ids=str,
)
def test_files_of_other_options_are_read_alike(
    files: dict[str, bytes], options: dict[str, Any]
) -> None:
    target = io.BytesIO()
    pq.write_table(pq.ParquetFile(io.BytesIO(files[hostile.ENVS])).read(), target, **options)
    data = target.getvalue()
    assert groups(data, 9, quick=True) == groups(data, 9, quick=False)
