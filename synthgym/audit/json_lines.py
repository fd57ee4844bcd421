"""Sources in files of JSON rows, plain or compressed: read line by line, however long the file is."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from synthgym.audit.folders import FILE_FLAGS, check_regular

ENDINGS: Final = (".jsonl", ".jsonl.gz")
SOURCE_KEYS: Final = (
    "source",
    "code",
    "content",
    "text",
    "source_code",
    "env_code",
    "game_code",
    "program",
    "file_content",
)
"""Where the source of a row is looked for, in this order."""
NAME_KEYS: Final = ("name", "id", "env_id", "title", "path", "file")
MAX_LINE: Final = 8 * 1024 * 1024
"""Bytes of a line; a longer one is not read."""
MAX_TITLE: Final = 200

Lines = IO[bytes] | gzip.GzipFile


def read_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """(number, bytes) of each line that is not blank; None for one longer than `MAX_LINE`.

    `OSError` when the file cannot be read, also in its middle.
    """
    with _open(path) as file:
        number = 0
        try:
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    _skip_line(file, line)
                    yield number, None
                elif not line.isspace():
                    yield number, line
        except (EOFError, zlib.error) as error:
            raise OSError(0, f"damaged after line {number}: {error}") from error


def parse_row(line: bytes) -> tuple[str, str]:
    """(source, name) of a row; `ValueError` says what is wrong with it."""
    try:
        row = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if isinstance(row, dict):
        for key in SOURCE_KEYS:
            if isinstance(row.get(key), str):
                return row[key], _title(row)
        had = f"a row with {', '.join(sorted(row)[:10])[:MAX_TITLE] or 'nothing in it'}"
    else:
        had = type(row).__name__
    raise ValueError(f"expected an object with a text under {' or '.join(SOURCE_KEYS)}, got {had}")


def _title(row: dict[str, object]) -> str:
    for key in NAME_KEYS:
        value = row.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)[:MAX_TITLE]
    return ""


@contextmanager
def _open(path: Path) -> Iterator[Lines]:
    """The file, without its compression when its name says that it has one."""
    handle = os.open(path, FILE_FLAGS)
    try:
        check_regular(handle)
        file = os.fdopen(handle, "rb")
    except OSError:
        os.close(handle)
        raise
    with file:
        if not path.name.endswith(".gz"):
            yield file
            return
        with gzip.open(file) as unzipped:
            yield unzipped


def _skip_line(file: Lines, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(MAX_LINE)
