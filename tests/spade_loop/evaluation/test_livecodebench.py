"""LiveCodeBench on small files of our own making. Completers here are scripted; no model is asked."""

from __future__ import annotations

import base64
import datetime
import json
import pickle
import sys
import types
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confined import needs_confinement
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.completers import Reply
from spade_loop.errors import ConfigError, ModelError
from spade_loop.evaluation.suite import Attempt, Failure
from spade_loop.evaluation.suites import livecodebench
from spade_loop.evaluation.suites.livecodebench_data import (
    PackingError,
    find_files,
    plain_pickle,
    release_files,
    unpack,
)
from spade_loop.evaluation.suites.livecodebench_grading import ERROR, TIME, same_output

pytestmark = needs_confinement


def packed(tests: list[dict[str, str]]) -> str:
    """Hidden tests as the benchmark publishes them."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def row(name: str, *, functional: bool = False, **changes: Any) -> dict[str, Any]:
    """A problem: the sum of two numbers, as a program or as a function."""
    kind = "functional" if functional else "stdin"
    gap = "\n" if functional else " "
    tests = [
        {"input": f"{a}{gap}{b}", "output": str(a + b), "testtype": kind}
        for a, b in ((1, 2), (30, -4))
    ]
    return {
        "question_id": name,
        "question_title": "Sum",
        "question_content": "Add two numbers.",
        "platform": "atcoder",
        "starter_code": "class Solution:\n    def add(self, a: int, b: int) -> int:"
        if functional
        else "",
        "difficulty": "easy",
        "public_test_cases": json.dumps(tests[:1]),
        "private_test_cases": packed(tests[1:]),
        "metadata": json.dumps({"func_name": "add"} if functional else {}),
    } | changes


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def played(tmp_path: Path, problem: dict[str, Any], text: str, **options: Any) -> Attempt:
    """What the suite makes of a reply to a problem."""
    suite = livecodebench.suite(
        data=written(tmp_path / "problems.jsonl", problem), allow_code=True, **options
    )
    (item,) = suite.items(None)
    return suite.play(item, lambda chat: Reply(text, 1, stopped=True), 0)


def fenced(code: str) -> str:
    return f"Here it is.\n```python\n{code}\n```\n"


PROGRAM = "a, b = map(int, input().split())\nprint(a + b)"
METHOD = "class Solution:\n    def add(self, a, b):\n        return a + b"


def test_a_right_program_passes(tmp_path: Path) -> None:
    attempt = played(tmp_path, row("p"), fenced(PROGRAM))
    assert attempt.correct, attempt.detail
    assert "standard input" in attempt.transcript[1].content


def test_a_right_function_passes(tmp_path: Path) -> None:
    attempt = played(tmp_path, row("p", functional=True), fenced(METHOD))
    assert attempt.correct, attempt.detail
    assert "def add(self" in attempt.transcript[1].content


@pytest.mark.parametrize(
    ("functional", "code", "failure", "detail"),
    [
        (False, "print(3)", "", "test 2 of 2: expected '26', got '3'"),
        (True, "class Solution:\n    def add(self, a, b):\n        return 3", "", "expected '26', got '3'"),
        (False, "print(1 / 0)", ERROR, "test 1 of 2: ZeroDivisionError"),
        (False, "print(", ERROR, "SyntaxError"),
        (True, "class Solution: pass", ERROR, "AttributeError"),
        (True, "class Solution:\n    def add(self, a, b):\n        return {1}", ERROR, "not JSON"),
        (False, "while True: pass", TIME, "more than 1 s"),
        (False, "x = bytearray(10**10)", ERROR, "MemoryError"),
        (False, "import socket\nsocket.create_connection(('127.0.0.1', 9))", ERROR, "PermissionError"),
        (False, "import os\nos.fork()", ERROR, "PermissionError"),
        (False, "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", ERROR, "PermissionError"),
        (False, "while True: print('x' * 10**6)", ERROR, "File too large"),
        (False, "import os\nos._exit(97)", ERROR, "exit status 97"),
    ],
)  # fmt: skip
def test_solutions_that_are_wrong(
    tmp_path: Path, functional: bool, code: str, failure: str, detail: str
) -> None:
    attempt = played(tmp_path, row("p", functional=functional), fenced(code), seconds=1.0)
    assert (attempt.correct, attempt.score, attempt.failure) == (False, 0.0, failure), (
        attempt.detail
    )
    assert detail in attempt.detail


def test_a_solution_writes_nowhere_but_in_its_folder(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    attempt = played(tmp_path, row("p"), fenced(f"open({str(mark)!r}, 'w')"))
    assert "PermissionError" in attempt.detail
    assert not mark.exists()


def test_a_solution_may_import_nothing_and_end_itself(tmp_path: Path) -> None:
    code = (
        "from __future__ import annotations\n"
        "if __name__ == '__main__':\n"
        "    print(reduce(operator.add, map(int, input().split())))\n"
        "    sys.exit(3)\n"
        "1 / 0"
    )
    attempt = played(tmp_path, row("p"), fenced(code))
    assert attempt.correct, attempt.detail


def test_a_method_may_print_and_return_tuples(tmp_path: Path) -> None:
    tests = [{"input": "1\n2", "output": "[1, 2]", "testtype": "functional"}]
    problem = row(
        "p", functional=True, public_test_cases=json.dumps(tests), private_test_cases="[]"
    )
    code = "class Solution:\n    def add(self, a, b):\n        print('noise')\n        return a, b"
    assert played(tmp_path, problem, fenced(code)).correct


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (Reply("It is the sum.", 1, stopped=True), Failure.UNPARSED),
        (Reply("", 1, stopped=True), Failure.EMPTY),
        (Reply("```python\nprint(", 1, stopped=False), Failure.CUT),
        (
            Reply(f"<think>{fenced(PROGRAM)}</think>I do not know.", 1, stopped=True),
            Failure.UNPARSED,
        ),
    ],
)
def test_replies_without_code(tmp_path: Path, reply: Reply, failure: Failure) -> None:
    suite = livecodebench.suite(data=written(tmp_path / "p.jsonl", row("p")), allow_code=True)
    assert suite.play(suite.items(None)[0], lambda chat: reply, 0).failure == failure


def test_code_is_not_run_unless_that_was_allowed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="allow_code=true"):
        livecodebench.suite(data=written(tmp_path / "p.jsonl", row("p")))


def test_items_are_ids_by_difficulty_over_all_files(tmp_path: Path) -> None:
    written(tmp_path / "test.jsonl", row("b"), row("a", difficulty="hard"))
    written(tmp_path / "test2.jsonl", row("c"))
    suite = livecodebench.suite(data=tmp_path, release="release_v2", allow_code=True)
    assert [(i.id, i.category) for i in suite.items(None)] == [
        ("b", "easy"),
        ("a", "hard"),
        ("c", "easy"),
    ]
    assert [i.id for i in suite.items(2)] == ["b", "a"]
    assert suite.play(
        suite.items(None)[2], lambda chat: Reply(fenced(PROGRAM), 1, stopped=True), 0
    ).correct
    assert suite.version == "1+release_v2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not JSON"),
        ('{"question_id": "x"}', "question_title.* missing"),
        (
            json.dumps(row("a")) + "\n" + json.dumps(row("a")),
            "line 2: the problem 'a' is in .*line 1 too",
        ),
    ],
)
def test_a_file_of_something_else_is_refused_by_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(text + "\n")
    with pytest.raises(ConfigError, match=message):
        livecodebench.suite(data=path, allow_code=True).items(None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"private_test_cases": "%%%"}, "line 1: hidden tests are neither JSON nor base64"),
        ({"private_test_cases": '[{"input": "1"}]'}, "a test must have input, output and testtype"),
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "has no tests"),
        ({"metadata": "{}"}, "functional tests need func_name"),
        (
            {"public_test_cases": '[{"input": "x", "output": "1", "testtype": "functional"}]'},
            "tests are not JSON",
        ),
    ],
)
def test_a_problem_that_cannot_be_read_is_no_failure_of_the_model(
    tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        played(tmp_path, row("p", functional=True, **changes), fenced(METHOD))


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no file or folder .*nothing"):
        livecodebench.suite(data=tmp_path / "nothing", allow_code=True)


def test_a_folder_without_the_files_says_which(tmp_path: Path) -> None:
    written(tmp_path / "test.jsonl", row("p"))
    with pytest.raises(ConfigError, match=r"has no test2\.jsonl, test3\.jsonl"):
        livecodebench.suite(data=tmp_path, release="release_v3", allow_code=True)


@pytest.mark.parametrize(
    ("release", "files"),
    [
        ("release_v1", ("test.jsonl",)),
        ("release_v3", ("test.jsonl", "test2.jsonl", "test3.jsonl")),
        ("v6", ("test6.jsonl",)),
        ("v5_v6", ("test5.jsonl", "test6.jsonl")),
    ],
)
def test_releases(release: str, files: tuple[str, ...]) -> None:
    assert release_files(release) == files


@pytest.mark.parametrize("release", ["release_v7", "v6_v5", "v0", "latest", "release_v5_v6", ""])
def test_releases_that_are_none(release: str) -> None:
    with pytest.raises(ConfigError, match="release"):
        release_files(release)


def test_a_hub_that_cannot_be_reached_says_what_to_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> str:
        raise OSError("no route to host")

    hub = types.SimpleNamespace(hf_hub_download=refuse)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"test6.jsonl .* no route to host.*data=DIR"):
        find_files(None, "v6")


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(plain, st.integers(0, 5))
def test_pickles_of_plain_values_are_read(value: Any, protocol: int) -> None:
    assert plain_pickle(pickle.dumps(value, protocol)) == value


@given(st.lists(st.fixed_dictionaries({"input": st.text(), "output": st.text()})))
def test_what_was_packed_is_unpacked(tests: list[dict[str, str]]) -> None:
    assert unpack(packed(tests)) == tests
    assert unpack(json.dumps(tests)) == tests


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('ran')",))


@pytest.mark.parametrize(
    "value", [Evil(), [Evil()], {"a": datetime.date(2026, 1, 1)}, print, {1, 2}, b"bytes"]
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_pickles_of_anything_else_are_refused(value: Any, protocol: int) -> None:
    with pytest.raises(PackingError, match="only plain values"):
        plain_pickle(pickle.dumps(value, protocol))


def reads(read: Callable[[Any], Any], given: Any) -> bool:
    """Whether it is read; any error but a `PackingError` is a defect."""
    try:
        read(given)
    except PackingError:
        return False
    return True


@given(st.binary() | st.lists(st.sampled_from(pickle.dumps([1, {"a": "b"}], 2))).map(bytes))
def test_bytes_are_a_plain_pickle_or_refused(raw: bytes) -> None:
    assert not reads(plain_pickle, raw) or raw.endswith(b".") or b"." in raw


@given(st.text())
def test_texts_are_tests_or_refused(text: str) -> None:
    assert not reads(unpack, text) or text.lstrip()[:1] in ("[", "{")


def test_a_pickle_that_wants_much_memory_is_refused() -> None:
    assert reads(plain_pickle, b"\x80\x02K\x01r\x00\x01\x00\x00.")
    assert not reads(plain_pickle, b"\x80\x02K\x01r\xff\xff\xff\x7f.")
    assert not reads(plain_pickle, b"I1\np2147483647\n.")


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spade_loop.evaluation.suites.livecodebench_data.UNPACKED_MB", 1)
    bomb = base64.b64encode(zlib.compress(bytes(3 << 20))).decode()
    with pytest.raises(PackingError, match="more than 1 MB"):
        unpack(bomb)


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        ("1 2\n3\n", "1 2 \n3", True),
        ("0.5", "0.50", True),
        ("1e3", "1000", True),
        ("1 2", "1  2", True),
        ("a  b", "a b", False),
        ("1\n2", "1 2", False),
        ("50000000000000000", "50000000000000001", False),
        ("Yes", "yes", False),
        ("nan", "nan", True),
        ("1", "", False),
    ],
)
def test_outputs(expected: str, got: str, same: bool) -> None:
    assert same_output(expected, got) is same


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"])))
def test_an_output_is_like_itself(text: str) -> None:
    assert same_output(text, text + "\n")
