"""LiveCodeBench's problems: where their files come from, what a line of them holds, how hidden tests are packed.

A release is a few files of JSON lines, gigabytes in all, since each line holds its tests. They are read once for the
ids; a problem itself is read again when it is played, and its tests are unpacked then.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import pickletools
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from spade_loop.errors import ConfigError, MissingExtraError, ModelError

REPOSITORY: Final = "livecodebench/code_generation_lite"
LATEST: Final = 6
_RELEASE: Final = re.compile(r"release_v([1-9])|v([1-9])(?:_v([1-9]))?")
UNPACKED_MB: Final = 1024
"""Hidden tests of one problem, unpacked, at most."""
_PLAIN: Final = frozenset(
    (
        *(
            "PROTO",
            "FRAME",
            "STOP",
            "MARK",
            "NONE",
            "NEWTRUE",
            "NEWFALSE",
            "INT",
            "BININT",
            "BININT1",
            "BININT2",
        ),
        *(
            "LONG",
            "LONG1",
            "FLOAT",
            "BINFLOAT",
            "UNICODE",
            "BINUNICODE",
            "SHORT_BINUNICODE",
            "BINUNICODE8",
        ),
        *(
            "EMPTY_LIST",
            "LIST",
            "APPEND",
            "APPENDS",
            "EMPTY_DICT",
            "DICT",
            "SETITEM",
            "SETITEMS",
            "MEMOIZE",
        ),
        *("PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET"),
    )
)
"""What a pickle of texts, numbers, lists and dictionaries is made of. Nothing here names a class or calls anything."""
_MEMO: Final = 1_000_000
"""Largest place in a pickle's memo: room for all places below is made at once."""


class PackingError(ConfigError):
    """Hidden tests are not packed as LiveCodeBench packs them."""


@dataclass(frozen=True, slots=True)
class Test:
    """One input with its output."""

    input: str
    output: str
    functional: bool
    """Whether the input is arguments of a function, one JSON value a line; else it is what the program reads."""

    __test__ = False

    def arguments(self) -> list[Any]:
        """What the function is called with. `PackingError` for what is not JSON."""
        return [_json(line) for line in self.input.split("\n")]

    def expected(self) -> Any:
        """What the function should return. `PackingError` for what is not JSON."""
        return _json(self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem with all its tests."""

    id: str
    title: str
    statement: str
    starter: str
    """Code to complete; empty for programs that read stdin."""
    function: str
    """Name of the function that is called; empty for programs."""
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """Where a problem lies."""

    path: Path
    number: int
    offset: int

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.path}, line {self.number}"


def release_files(release: str) -> tuple[str, ...]:
    """Names of the files of a release: `release_v6` is everything up to it, `v6` only what it added, `v5_v6` a range.

    `ConfigError` for any other text.
    """
    match = _RELEASE.fullmatch(release)
    if match is None:
        raise ConfigError(
            f"release must be like release_v{LATEST} (all up to it), v{LATEST} (what it added) or v5_v6, "
            f"got {release!r}"
        )
    up_to, first, last = match.groups()
    start, end = (1, int(up_to)) if up_to else (int(first), int(last or first))
    if not start <= end <= LATEST:
        raise ConfigError(f"release {release!r}: there are versions 1 to {LATEST}")
    return tuple(
        "test.jsonl" if number == 1 else f"test{number}.jsonl" for number in range(start, end + 1)
    )


def find_files(data: Path | None, release: str) -> tuple[Path, ...]:
    """The files of a release: a local file, or those in a local folder, or fetched from the Hub.

    `ConfigError` for a path that is not there or lacks files, `ModelError` when the Hub cannot be reached.
    """
    names = release_files(release)
    if data is None:
        return tuple(_fetched(name) for name in names)
    if data.is_file():
        return (data,)
    if not data.is_dir():
        raise ConfigError(f"livecodebench: there is no file or folder {data}")
    missing = [name for name in names if not (data / name).is_file()]
    if missing:
        raise ConfigError(
            f"livecodebench: {data} has no {', '.join(missing)}: expected a file of JSON lines, or a folder with the "
            f"files of {release} as they are in https://huggingface.co/datasets/{REPOSITORY}"
        )
    return tuple(data / name for name in names)


def _fetched(name: str) -> Path:
    """A file of the data set, from the Hub or its cache.

    Not through `datasets`: since version 4 it runs no loading scripts, of which this data set is one, and lines of
    megabytes do not fit into its blocks.
    """
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingExtraError(
            "livecodebench needs huggingface_hub to fetch its problems: `pip install 'synthgym[eval]'`, or give "
            "--suite-option data=FILE"
        ) from error
    try:
        return Path(huggingface_hub.hf_hub_download(REPOSITORY, name, repo_type="dataset"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"livecodebench: {name} of the data set {REPOSITORY} cannot be fetched ({type(error).__name__}: {error}): "
            f"check the network, or fetch https://huggingface.co/datasets/{REPOSITORY} elsewhere and give its folder: "
            "--suite-option data=DIR"
        ) from error


def index(paths: Sequence[Path]) -> Iterator[tuple[Line, str, str]]:
    """(line, id, difficulty) of every problem. `ConfigError` names file and line of what is no problem."""
    seen: dict[str, str] = {}
    for path in paths:
        for line, raw in _lines(path):
            row = _row(line, raw)
            name = str(row["question_id"])
            if name in seen:
                raise ConfigError(f"{line.where}: the problem {name!r} is in {seen[name]} too")
            seen[name] = line.where
            yield line, name, str(row["difficulty"])


def read_problem(line: Line) -> Problem:
    """The problem at a line, its tests unpacked: public ones first. `ConfigError` names what is wrong with it."""
    with line.path.open("rb") as file:
        file.seek(line.offset)
        row = _row(line, file.readline())
    try:
        metadata = (
            json.loads(row["metadata"]) if isinstance(row["metadata"], str) else row["metadata"]
        )
        tests = [*_tests(row["public_test_cases"]), *_tests(row["private_test_cases"])]
    except ValueError as error:
        raise ConfigError(f"{line.where}: {error}") from error
    if not tests:
        raise ConfigError(f"{line.where}: the problem {row['question_id']!r} has no tests")
    function = str(metadata.get("func_name") or "") if isinstance(metadata, dict) else ""
    if any(test.functional for test in tests) and not function:
        raise ConfigError(f"{line.where}: functional tests need func_name in metadata")
    return Problem(
        id=str(row["question_id"]),
        title=str(row["question_title"]),
        statement=str(row["question_content"]),
        starter=str(row["starter_code"] or ""),
        function=function,
        tests=tuple(tests),
    )


def unpack(text: str) -> Any:
    """Hidden tests as LiveCodeBench packs them: JSON, or JSON in a pickle in zlib in base64.

    The pickle is a stranger's: opcodes that are not those of plain values are refused before it is read, and the reader
    knows no class. `PackingError` for anything else.
    """
    if text.lstrip()[:1] in ("[", "{"):
        return _json(text)
    try:
        packed = base64.b64decode(text.encode("ascii"), validate=True)
        stream = zlib.decompressobj()
        raw = stream.decompress(packed, UNPACKED_MB << 20)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise PackingError(f"hidden tests are neither JSON nor base64 of zlib: {error}") from error
    if stream.unconsumed_tail or not stream.eof:
        raise PackingError(f"hidden tests are cut off, or of more than {UNPACKED_MB} MB")
    value = plain_pickle(raw)
    return _json(value) if isinstance(value, str) else value


def plain_pickle(raw: bytes) -> Any:
    """A pickle of texts, numbers, lists and dictionaries. `PackingError` for one of anything else; nothing is run."""
    try:
        refused = _refused_opcode(raw)
        if not refused:
            return _PlainUnpickler(io.BytesIO(raw)).load()
    except Exception as error:
        raise PackingError(f"hidden tests hold a broken pickle: {error}") from error
    raise PackingError(f"hidden tests hold a pickle with {refused}: only plain values are read")


def _refused_opcode(raw: bytes) -> str:
    """The first opcode that plain values do not need, or nothing."""
    for opcode, argument, _ in pickletools.genops(raw):
        if opcode.name not in _PLAIN:
            return opcode.name
        if opcode.name.endswith(("PUT", "GET")) and int(str(argument)) > _MEMO:
            return f"{opcode.name} {argument}"
    return ""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> NoReturn:
        raise PackingError(f"hidden tests name the class {module_name}.{global_name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise PackingError(f"hidden tests refer to an object elsewhere: {pid!r}")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PackingError(f"tests are not JSON: {error}") from error


def _tests(given: Any) -> list[Test]:
    cases = unpack(given) if isinstance(given, str) else given
    if not isinstance(cases, list):
        raise PackingError(f"tests must be a list, got {type(cases).__name__}")
    return [_test(case) for case in cases]


def _test(case: Any) -> Test:
    if not isinstance(case, dict) or not {"input", "output", "testtype"} <= case.keys():
        raise PackingError(f"a test must have input, output and testtype, got {str(case)[:80]}")
    if case["testtype"] not in ("stdin", "functional"):
        raise PackingError(f"testtype must be stdin or functional, got {case['testtype']!r}")
    test = Test(str(case["input"]), str(case["output"]), case["testtype"] == "functional")
    if test.functional:
        test.arguments(), test.expected()
    return test


_NEEDED: Final = (
    *("question_id", "question_title", "question_content", "starter_code", "difficulty"),
    *("public_test_cases", "private_test_cases", "metadata"),
)  # fmt: skip


def _lines(path: Path) -> Iterator[tuple[Line, bytes]]:
    offset = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if raw.strip():
                yield Line(path, number, offset), raw
            offset += len(raw)


def _row(line: Line, raw: bytes) -> Mapping[str, Any]:
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{line.where}: not JSON: {error}") from error
    missing = [key for key in _NEEDED if not isinstance(row, dict) or key not in row]
    if missing:
        raise ConfigError(
            f"{line.where}: expected a problem of LiveCodeBench, {', '.join(missing)} missing"
        )
    found: Mapping[str, Any] = row
    return found
