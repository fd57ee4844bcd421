"""Running suites: what is counted, what is kept, what a kill, a dead model or Ctrl-C leaves behind.

The model of these tests is a script; the suite is made of sums.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spade_loop.completers import Reply
from spade_loop.errors import ContextError, ModelError, RunStateError
from spade_loop.evaluation.results import OVERALL, Evaluation, read_evaluation
from spade_loop.evaluation.running import Asked, Conditions, evaluate, journal_path
from spade_loop.evaluation.suite import Attempt, Item, Say, answered, spread, unread
from spade_loop.journal import read_journal
from spade_loop.progress import Silent
from spade_loop.speaking import Decoding, Speaker
from spade_loop.types import Message
from synthgym.errors import EnvFaultError

Script = Callable[[str, int], str]
DECODING = Decoding(max_tokens=16, temperature=0.5)


@dataclass
class Writer:
    """Answers by a script of the question and the seed. For tests; never a model."""

    script: Script
    name: str = "script"
    concurrent: bool = True
    asked: list[tuple[str, int]] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def write(self, chats: Sequence[Sequence[Message]], **how: Any) -> list[Reply]:
        replies = []
        for chat, seed in zip(chats, how["seeds"], strict=True):
            question = chat[-1].content
            with self.lock:
                self.asked.append((question, seed))
            text = self.script(question, seed)
            replies.append(Reply(text, len(text), stopped=text != "...", prompt_tokens=2))
        return replies

    def close(self) -> None:
        pass


class Sums:
    """Ten sums in two categories."""

    name = "sums"
    decoding = DECODING
    samples = 1

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.closed = 0

    def items(self, limit: int | None) -> Sequence[Item]:
        return spread(
            [
                Item(id=f"{n}", category="even" if n % 2 == 0 else "odd", content=n)
                for n in range(10)
            ],
            limit,
        )

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        chat = [Message("user", f"{item.content} + 1")]
        reply = say(chat)
        if reply.text == "fault":
            raise EnvFaultError("it broke", kind="crashed", call="step")
        if not reply.text.strip().isdigit():
            return unread(reply, answered(chat, reply))
        right = int(reply.text) == item.content + 1
        if item.content == 9:
            raise KeyError("the grader's own")
        return Attempt(score=float(right), correct=right, transcript=answered(chat, reply))

    def close(self) -> None:
        self.closed += 1


def right(question: str, seed: int) -> str:
    return str(int(question.split()[0]) + 1)


def run(
    out: Path,
    script: Script = right,
    *,
    suite: Any = None,
    samples: int = 1,
    limit: int | None = None,
    model: str = "script",
    seed: int = 0,
    threads: int = 4,
) -> tuple[Evaluation, Writer]:
    writer = Writer(script)
    asked = Asked(
        suite=suite or Sums(), options={}, decoding=DECODING, samples=samples, limit=limit
    )
    conditions = Conditions(
        model={"name": model, "backend": "test"},
        seed=seed,
        concurrency=threads,
        spent=lambda usage: f"{usage.tokens} tokens",
    )
    with Speaker(writer, rows=1) as speaker:
        return evaluate([asked], speaker, out, conditions, Silent()), writer


def test_rates_failures_and_transcripts_are_kept(tmp_path: Path) -> None:
    def script(question: str, seed: int) -> str:
        said = {"0": "7", "1": "", "2": "...", "3": "no", "4": "fault"}
        return said.get(question[0], right(question, seed))

    def full(question: str, seed: int) -> str:
        if question[0] == "5":
            raise ContextError("too long")
        return script(question, seed)

    suite = Sums()
    found, _ = run(tmp_path, full, suite=suite)
    (result,) = found.suites
    assert result.failures == {
        "checker": 1,
        "context": 1,
        "cut": 1,
        "empty": 1,
        "fault": 1,
        "unparsed": 1,
    }
    overall = result.groups[OVERALL].accuracy
    assert overall is not None
    # 6, 7 and 8 are right, of nine that count; the fault is left out.
    assert (overall.value, overall.items) == (pytest.approx(3 / 9), 9)
    assert list(result.groups) == [OVERALL, "even", "odd"]
    assert result.groups["odd"].accuracy.value == pytest.approx(1 / 5)  # type: ignore[union-attr]
    assert (result.usage.calls, result.usage.prompt_tokens) == (9, 18)  # the ninth never came back
    assert read_evaluation(tmp_path) == found
    assert suite.closed == 1
    header, rows = read_journal(journal_path(tmp_path, "sums"))
    assert header["decoding"]["temperature"] == 0.5
    by_item = {row["item"]: row for row in rows}
    assert by_item["0"]["transcript"] == [
        {"role": "user", "content": "0 + 1"},
        {"role": "assistant", "content": "7"},
    ]
    assert by_item["9"]["detail"] == 'KeyError: "the grader\'s own"'
    # What a suite raised or a full context ended is kept as far as it went.
    assert len(by_item["9"]["transcript"]) == 2
    assert [m["role"] for m in by_item["5"]["transcript"]] == ["user"]


def test_the_same_seeds_give_the_same_file_however_many_threads_there_are(tmp_path: Path) -> None:
    def noisy(question: str, seed: int) -> str:
        return right(question, seed) if seed % 3 else "0"

    files = []
    for threads in (1, 7):
        out = tmp_path / str(threads)
        _, writer = run(out, noisy, samples=4, threads=threads)
        files.append((out / "eval.json").read_bytes())
        assert len({seed for _, seed in writer.asked}) == 40
    assert files[0] == files[1]
    other, _ = run(tmp_path / "other", noisy, samples=4, seed=1)
    assert other.suites[0].items != read_evaluation(tmp_path / "1").suites[0].items


def test_a_model_that_dies_leaves_what_is_finished_and_the_rest_is_done_later(
    tmp_path: Path,
) -> None:
    count = iter(range(1000))

    def dies(question: str, seed: int) -> str:
        if next(count) >= 6:
            raise ModelError("gone")
        return right(question, seed)

    suite = Sums()
    with pytest.raises(ModelError, match="gone"):
        run(tmp_path / "a", dies, samples=2, suite=suite)
    assert suite.closed == 1
    assert not (tmp_path / "a" / "eval.json").exists()
    _, rows = read_journal(journal_path(tmp_path / "a", "sums"))
    kept = {(row["item"], row["sample"]) for row in rows}
    assert 1 <= len(kept) <= 6
    found, writer = run(tmp_path / "a", samples=2)
    assert len(writer.asked) == 20 - len(kept)
    assert found == run(tmp_path / "b", samples=2)[0]


def test_a_torn_line_is_played_again(tmp_path: Path) -> None:
    whole, _ = run(tmp_path)
    path = journal_path(tmp_path, "sums")
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    again, writer = run(tmp_path)
    assert len(writer.asked) == 1
    assert again == whole


def test_more_samples_and_items_are_added_to_what_is_there(tmp_path: Path) -> None:
    small, writer = run(tmp_path, limit=4)
    assert [item.id for item in small.suites[0].items] == ["0", "1", "2", "3"]
    assert len(writer.asked) == 4
    large, writer = run(tmp_path, samples=3)
    assert len(writer.asked) == 26
    assert all(len(item.correct) == 3 for item in large.suites[0].items if item.id != "9")
    assert sorted(large.suites[0].groups[OVERALL].pass_at) == [1, 2, 3]
    # A part of what is there can be asked for again, and costs nothing.
    part, writer = run(tmp_path, limit=2)
    assert (len(part.suites[0].items), writer.asked) == (2, [])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"suite": Sums("2")}, 'version was "1", now it is "2"'),
        ({"seed": 5}, "seed was 0, now it is 5"),
        ({"model": "other"}, "holds results of .*script.* give another --out"),
    ],
)
def test_a_directory_is_of_one_model_and_one_way_of_asking(
    tmp_path: Path, changed: dict[str, Any], told: str
) -> None:
    run(tmp_path)
    with pytest.raises(RunStateError, match=told):
        run(tmp_path, **changed)


def test_results_of_other_suites_stay(tmp_path: Path) -> None:
    class Others(Sums):
        name = "snapshot:others/1"

    run(tmp_path)
    found, _ = run(tmp_path, suite=Others())
    assert [suite.name for suite in found.suites] == ["sums", "snapshot:others/1"]
    again, writer = run(tmp_path, suite=Sums())
    assert {suite.name for suite in again.suites} == {"sums", "snapshot:others/1"}
    assert writer.asked == []
    paths = {journal_path(tmp_path, name) for name in ("a:b", "a/b", "a-b")}
    assert len(paths) == 3
    assert all(path.parent == tmp_path / "attempts" for path in paths)


def test_ctrl_c_ends_every_thread_and_keeps_what_is_finished(tmp_path: Path) -> None:
    before = set(threading.enumerate())

    class Interrupting(Silent):
        def advance(self, steps: int, tokens: int = 0) -> None:
            if tokens:
                raise KeyboardInterrupt

    asked = Asked(suite=Sums(), options={}, decoding=DECODING, samples=1)
    conditions = Conditions(
        model={"name": "script", "backend": "test"}, seed=0, concurrency=3, spent=str
    )
    with pytest.raises(KeyboardInterrupt), Speaker(Writer(right), rows=1) as speaker:
        evaluate([asked], speaker, tmp_path, conditions, Interrupting())
    assert set(threading.enumerate()) == before
    _, rows = read_journal(journal_path(tmp_path, "sums"))
    assert len(rows) == 1
    assert len(run(tmp_path)[0].suites[0].items) == 10


def test_what_is_no_evaluation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunStateError, match="--out directory"):
        read_evaluation(tmp_path)
    (tmp_path / "eval.json").write_text("{}")
    with pytest.raises(RunStateError, match="does not hold the results"):
        read_evaluation(tmp_path)
    run(tmp_path / "real")
    plain = json.loads((tmp_path / "real" / "eval.json").read_text())
    (tmp_path / "eval.json").write_text(json.dumps(plain | {"format": 9}))
    with pytest.raises(RunStateError, match="format 9"):
        read_evaluation(tmp_path)
