"""BFCL multi-turn through the package's own items and checker. Completers here are scripted; no model is asked."""

from __future__ import annotations

import ast
import importlib.util
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from spade_loop.completers import Reply
from spade_loop.errors import ConfigError, MissingExtraError
from spade_loop.evaluation.suite import Attempt, Failure, Item
from spade_loop.evaluation.suites import bfcl
from spade_loop.evaluation.suites.children import Limits
from spade_loop.types import Message

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("bfcl_eval") is None,
    reason=f"needs `pip install --no-deps {bfcl.PACKAGE}`: its requirements conflict with ours",
)
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def suite() -> bfcl.BfclMultiTurn:
    return bfcl.suite()


@pytest.fixture(scope="module")
def items(suite: bfcl.BfclMultiTurn) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {category: [] for category in bfcl.CATEGORIES}
    for item in suite.items(None):
        found[item.category].append(item)
    return found


def keyworded(call: str, documents: Sequence[dict[str, Any]]) -> str:
    """A call of the ground truth with its positional arguments by name: as models have to write them."""
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    document = next(d for d in documents if d["name"] == node.func.id)
    names = list(document["parameters"]["properties"])
    keywords = [ast.keyword(name, value) for name, value in zip(names, node.args, strict=False)]
    return ast.unparse(ast.Call(node.func, [], [*keywords, *node.keywords]))


def scripted(item: Item, change: Callable[[int, list[str]], list[str]]) -> Callable[..., Reply]:
    """A completer that plays the ground truth, turn by turn, as `change` alters it; then says that it is done."""
    entry, truth = json.loads(item.content)
    documents = [
        *entry["function"],
        *(d for ds in entry.get("missed_function", {}).values() for d in ds),
    ]
    turns = [[keyworded(call, documents) for call in calls] for calls in truth]
    replies: Iterator[str] = iter(
        text
        for turn, calls in enumerate(turns)
        for text in (f"[{', '.join(change(turn, calls))}]", "That is done.")
        if text != "[]"
    )
    return lambda chat: Reply(next(replies), 1, stopped=True)


def played(suite: bfcl.BfclMultiTurn, item: Item, *replies: str) -> Attempt:
    """An item with given replies, the last one for ever."""
    left = list(replies)
    return suite.play(
        item, lambda chat: Reply(left.pop(0) if len(left) > 1 else left[0], 1, stopped=True), 0
    )


@needs_package
def test_items_are_those_of_the_package(
    suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]]
) -> None:
    assert {category: len(found) for category, found in items.items()} == dict.fromkeys(
        bfcl.CATEGORIES, 200
    )
    assert items["base"][0].id == "multi_turn_base_0"
    assert [item.category for item in suite.items(4)] == list(bfcl.CATEGORIES)
    assert suite.version.endswith("bfcl-eval-2026.3.23")


@needs_package
@pytest.mark.parametrize("category", bfcl.CATEGORIES)
@pytest.mark.parametrize("number", [0, 121])
def test_the_ground_truth_is_right(
    suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]], category: str, number: int
) -> None:
    item = items[category][number]
    attempt = suite.play(item, scripted(item, lambda turn, calls: calls), 0)
    assert attempt.correct, attempt.detail
    assert attempt.score == 1.0


@needs_package
@pytest.mark.parametrize("category", bfcl.CATEGORIES)
def test_a_sequence_without_its_last_call_is_wrong(
    suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]], category: str
) -> None:
    item = items[category][0]
    last = len(json.loads(item.content)[1]) - 1
    attempt = suite.play(
        item, scripted(item, lambda turn, calls: calls[:-1] if turn == last else calls), 0
    )
    assert not attempt.correct
    assert attempt.score == 0.0
    assert not attempt.failure
    assert "multi_turn:" in attempt.detail


@needs_package
def test_words_instead_of_calls_are_counted_as_such(
    suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]]
) -> None:
    attempt = played(suite, items["base"][0], "I would move the file.")
    assert attempt.failure == bfcl.NO_CALL


@needs_package
def test_a_model_that_never_ends_its_turn_is_stopped(
    suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]]
) -> None:
    attempt = played(suite, items["base"][0], "[ls()]")
    assert attempt.failure == Failure.TURNS
    assert sum(m.role == "assistant" for m in attempt.transcript) == 21


@needs_package
def test_a_reply_that_was_cut_is_counted_as_cut(
    suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]]
) -> None:
    attempt = suite.play(items["base"][0], lambda chat: Reply("[ls(", 1, stopped=False), 0)
    assert attempt.failure == Failure.CUT


@needs_package
@pytest.mark.parametrize(
    "text",
    [
        "[ls(a=__import__('os').system('touch {mark}'))]",
        "[eval(expression=\"open('{mark}', 'w')\")]",
        "[open(file='{mark}', mode='w')]",
        "[__import__(name='os').system('touch {mark}')]",
        "[ls(a=(lambda: open('{mark}', 'w'))())]",
        "[touch(file_name='x' + str(open('{mark}', 'w')))]",
        "[echo(content='ls (1) \\') + open(\"{mark}\", \"w\")', file_name='x')]",
    ],
)
def test_nothing_of_a_reply_is_evaluated(
    suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]], text: str, tmp_path: Any
) -> None:
    mark = tmp_path / "mark"
    attempt = played(suite, items["base"][0], text.replace("{mark}", str(mark)), "Done.")
    assert not mark.exists()
    assert not attempt.correct


@needs_package
def test_a_call_that_cannot_be_made_is_told_to_the_model(
    suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]]
) -> None:
    attempt = played(suite, items["base"][0], "[format_disk(now=True), ls()]", "Done.")
    told = attempt.transcript[3].content
    assert "Error during execution: name 'format_disk' is not defined" in told
    assert "current_directory_content" in told


@needs_package
def test_a_call_that_does_not_end_is_a_failure(
    items: dict[str, list[Item]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bfcl, "_LIMITS", Limits(seconds=5.0, reads=True, required=False))
    suite = bfcl.suite(categories=("base",))
    maths = next(
        item
        for item in items["base"]
        if "MathAPI" in json.loads(item.content)[0]["involved_classes"]
    )
    attempt = played(suite, maths, "[power(base=7, exponent=10000000000)]")
    assert attempt.failure in (bfcl.TOO_SLOW, Failure.CHECKER), attempt.detail
    assert not attempt.correct


@needs_package
def test_functions_that_were_withheld_are_shown_in_their_turn(
    suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]]
) -> None:
    item = items["miss_func"][0]
    attempt = suite.play(item, scripted(item, lambda turn, calls: calls), 0)
    assert '"name": "sort"' not in attempt.transcript[0].content
    assert any(m.role == "user" and "'name': 'sort'" in m.content for m in attempt.transcript)


@needs_package
def test_thoughts_are_not_read(suite: bfcl.BfclMultiTurn, items: dict[str, list[Item]]) -> None:
    attempt = played(suite, items["base"][0], "<think>[rm(file_name='a')]</think>[ls()]", "Done.")
    assert attempt.transcript[2] == Message("assistant", "[ls()]")


def test_an_unknown_category_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'miss_func'"):
        bfcl.suite(categories=("mis_func",))


def test_an_interpreter_that_is_not_there_says_what_to_install() -> None:
    with pytest.raises(MissingExtraError, match="pip install --no-deps 'bfcl-eval=="):
        bfcl.suite(python="/nowhere/python")
