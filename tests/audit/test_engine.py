"""The audit without a sandbox: what is judged, when, and what becomes of processes that die."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
import quick_judges
from processes import descendants, wait_until

from synthgym.audit import AuditSettings, Row, Status, audit, crew, engine, read_rows
from synthgym.audit.places import Source
from synthgym.errors import ConfigError, SandboxError

ONE, TWO = AuditSettings(workers=1), AuditSettings(workers=2)


def by_name(rows: Iterator[Row]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in rows:
        name = Path(row.name).name
        assert name not in found
        found[name] = row
    return found


def watch(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are judged from now on."""
    given: list[str] = []
    give = crew.Crew.give

    def noted(self: crew.Crew, job: crew.Job) -> None:
        given.append(job.text)
        give(self, job)

    monkeypatch.setattr(crew.Crew, "give", noted)
    return given


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool"
    path.mkdir()
    return path


def fill(pool: Path, **texts: str) -> None:
    for name, text in texts.items():
        (pool / f"{name}.py").write_text(text)


# --- rows ---


@pytest.mark.usefixtures("quick")
def test_every_source_gets_one_row_and_every_text_one_judgement(pool: Path, tmp_path: Path) -> None:
    fill(pool, a="good 1", b="bad news", c="good 1", d="bad news", e="good 2", f="good 1")
    (pool / "z.py").symlink_to("a.py")
    out = tmp_path / "out.jsonl"
    rows = by_name(audit([pool], out=out, settings=TWO))
    assert {name: row.status for name, row in rows.items()} == {
        "a.py": Status.OK,
        "b.py": Status.REFUSED,
        "c.py": Status.OK,
        "d.py": Status.REFUSED,
        "e.py": Status.OK,
        "f.py": Status.OK,
        "z.py": Status.UNREADABLE,
    }
    copies = {name: Path(row.same_as).name for name, row in rows.items() if row.same_as}
    assert copies == {"c.py": "a.py", "d.py": "b.py", "f.py": "a.py"}
    (finding,) = rows["b.py"].findings
    assert (finding.detail, finding.seed, finding.seen) == ("news", 0, "a room")
    assert rows["d.py"].reasons == ("step-raised",)
    assert rows["d.py"].findings == ()
    assert rows["d.py"].digest == rows["b.py"].digest
    assert {row.name: row for row in read_rows(out)} == {row.name: row for row in rows.values()}


@pytest.mark.usefixtures("quick")
def test_the_order_of_answers_changes_no_row(pool: Path) -> None:
    numbers = list(range(40))
    random.Random(0).shuffle(numbers)
    fill(pool, **{f"s{n:02}": f"{'bad' if n % 3 else 'good'} {n // 2}" for n in numbers})
    one = by_name(audit([pool], settings=ONE))
    three = by_name(audit([pool], settings=AuditSettings(workers=3)))
    assert one == three
    assert len(one) == 40


@pytest.mark.usefixtures("quick")
def test_the_limit_takes_the_first(pool: Path) -> None:
    fill(pool, a="good 1", b="good 2", c="good 3")
    assert sorted(by_name(audit([pool], limit=2, settings=TWO))) == ["a.py", "b.py"]
    with pytest.raises(ConfigError, match="limit must be at least 1"):
        audit([pool], limit=0)


def test_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file or folder"):
        audit([tmp_path / "none"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 1}, "seeds must be at least 2, got 1"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"dialect": "spad"}, "did you mean 'spade'"),
        ({"require": "fulll"}, "did you mean 'full'"),
        ({"source_seconds": 0}, "source_seconds must be positive"),
    ],
)
def test_a_wrong_setting_is_one_error(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AuditSettings(**settings)  # type: ignore[arg-type]


# --- going on ---


@pytest.mark.usefixtures("quick")
def test_a_second_run_judges_only_what_is_new(
    pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    fill(pool, a="good 1", b="bad 2", c="bad 2")
    (pool / "z.py").symlink_to("a.py")
    first = by_name(audit([pool], out=out, settings=TWO))
    written = out.read_bytes()
    given = watch(monkeypatch)
    assert by_name(audit([pool], out=out, settings=TWO)) == first
    assert given == []
    assert out.read_bytes() == written

    fill(pool, a="good 9", d="bad 2", e="bad 3")
    second = by_name(audit([pool], out=out, settings=TWO))
    assert given == ["good 9", "bad 3"]
    assert Path(second["d.py"].same_as).name == "b.py"
    assert {Path(row.name).name: row for row in read_rows(out)} == second
    other = AuditSettings(workers=2, seeds=5)
    assert set(by_name(audit([pool], out=out, settings=other))) == set(second)
    assert len(given) == 5


# --- processes that die ---


@pytest.mark.usefixtures("deadly")
def test_a_source_that_ends_processes_is_given_up_and_the_rest_goes_on(
    pool: Path, tmp_path: Path
) -> None:
    texts = {"a": "die", "b": "good 1", "c": "die", "d": f"die-once {tmp_path}/mark", "e": "hang"}
    fill(pool, **texts, f="good 2")
    before = descendants(os.getpid())
    settings = AuditSettings(workers=2, source_seconds=1)
    rows = by_name(audit([pool], out=tmp_path / "out.jsonl", settings=settings))
    assert {name: str(row.status) for name, row in rows.items()} == {
        "a.py": "not-audited",
        "b.py": "ok",
        "c.py": "not-audited",
        "d.py": "ok",
        "e.py": "not-audited",
        "f.py": "ok",
    }
    assert "was ended by SIGKILL, most often for want of memory, 2 times" in rows["a.py"].detail
    assert Path(rows["c.py"].same_as).name == "a.py"
    assert rows["e.py"].detail == "it took over 1 s"
    wait_until(lambda: len(descendants(os.getpid()) - before) <= 1)  # multiprocess has a tracker


@pytest.mark.usefixtures("deadly")
def test_what_was_not_audited_is_tried_again_by_the_next_run(
    pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    fill(pool, a="leave", b="good 1")
    first = by_name(audit([pool], out=out, settings=ONE))
    assert first["a.py"].status is Status.NOT_AUDITED
    assert "ended with code 3, 2 times" in first["a.py"].detail
    given = watch(monkeypatch)
    assert by_name(audit([pool], out=out, settings=ONE)) == first
    assert given == ["leave"] * crew.TRIES
    assert [Path(row.name).name for row in read_rows(out)] == ["a.py", "b.py"]


@pytest.mark.usefixtures("quick")
def test_a_machine_without_a_sandbox_ends_the_audit(pool: Path) -> None:
    fill(pool, **{f"s{n:02}": f"no-sandbox {n}" for n in range(20)})
    with pytest.raises(SandboxError, match="nothing can be audited on this machine: no zygote"):
        list(audit([pool], settings=TWO))


@pytest.mark.usefixtures("quick")
def test_one_source_without_a_sandbox_does_not(pool: Path) -> None:
    fill(pool, a="no-sandbox", b="good 1", c="good 2")
    rows = by_name(audit([pool], settings=ONE))
    assert (rows["a.py"].status, rows["a.py"].detail) == (Status.NOT_AUDITED, "no zygote today")
    assert rows["c.py"].ok


def test_processes_that_do_not_start_are_one_error(
    pool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "serve", quick_judges.never_start)
    fill(pool, a="good 1")
    with pytest.raises(SandboxError, match="did not start: it ended with code 7"):
        list(audit([pool], settings=ONE))


def test_ctrl_c_in_a_terminal_reaches_no_process_that_judges() -> None:
    with crew.Crew(TWO) as workers:
        for number in range(2):
            workers.give(crew.Job("a.py", "", str(number), "x = 1"))
        for lane in workers._lanes:
            status = Path(f"/proc/{lane.process.pid}/status").read_text()
            (blocked,) = re.findall(r"^SigBlk:\s*(\w+)", status, re.MULTILINE)
            assert int(blocked, 16) & 1 << (signal.SIGINT - 1)
    assert not workers.busy


@pytest.mark.usefixtures("quick")
def test_processes_are_replaced_after_many_texts(
    pool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "RECYCLE_AFTER", 4)
    fill(pool, **{f"s{n:02}": f"good {n}" for n in range(10)})
    started: list[crew._Lane] = []
    begin = crew._Lane.__init__

    def counted(lane: crew._Lane, settings: AuditSettings) -> None:
        started.append(lane)
        begin(lane, settings)

    monkeypatch.setattr(crew._Lane, "__init__", counted)
    rows = by_name(audit([pool], settings=ONE))
    assert len(rows) == 10
    assert all(row.ok for row in rows.values())
    assert [lane.judged for lane in started] == [4, 4, 2]


# --- size ---


class Text(str):
    """A text that can be watched."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


@pytest.mark.usefixtures("quick")
def test_thousands_of_sources_are_never_in_memory_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pool.jsonl"
    with path.open("w") as file:
        for number in range(5_000):
            # Every other text is the same one.
            file.write(json.dumps({"code": f"good {number if number % 2 else 0}"}) + "\n")
    live: weakref.WeakSet[Text] = weakref.WeakSet()
    ahead = 0
    find = engine.find_sources

    def watched(paths: list[Path]) -> Iterator[Source]:
        nonlocal ahead
        for source in find(paths):
            ahead += 1
            live.add(text := Text(source.text))
            yield Source(name=source.name, text=text)

    monkeypatch.setattr(engine, "find_sources", watched)
    count = furthest = most = 0
    for row in audit([path], out=tmp_path / "out.jsonl", settings=TWO):
        assert row.ok
        count += 1
        furthest = max(furthest, ahead - count)
        most = max(most, len(live))
    assert count == 5_000 == sum(1 for _ in read_rows(tmp_path / "out.jsonl"))
    assert furthest <= engine.MAX_WAITING + 3
    assert most <= 6
