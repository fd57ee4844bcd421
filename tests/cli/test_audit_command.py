"""`synthgym audit` with real validation: in this process, and as a process that is stopped."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from command_line import Run
from processes import descendants, parents, wait_until
from rich.console import Console

from synthgym.audit import Row, Status, Summary, read_rows
from synthgym.cli import audit_command

DATA = Path(__file__).parents[1] / "data"
LOCKER = (DATA / "good_envs" / "locker.py").read_text()
QUICK = ("reset-raised", "policy", "hint-empty", "solution-does-not-win", "several-env-classes")
"""Bad environments that take no time, by their reason."""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything in it that a stranger's folder may have."""
    root = tmp_path_factory.mktemp("audit") / "pool"
    (root / "in").mkdir(parents=True)
    for reason in QUICK:
        (root / f"{reason}.py").write_text((DATA / "bad_envs" / f"{reason}.py").read_text())
    (root / "in" / "locker.py").write_text(LOCKER)
    (root / "in" / "copy\x1b[2J<b>.py").write_text(LOCKER)
    (root / "needs-arguments.py").write_text(
        LOCKER.replace(
            "    max_turns = 8", "    max_turns = 8\n\n    def __init__(self, rooms): ..."
        )
    )
    (root / "not-text.py").write_bytes(bytes(range(256)) * 50)
    with (root / "source-too-large.py").open("wb") as file:
        file.truncate(10_000_000)
        file.write(b"x = 1\n" * 100_000)
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe.py")
    return root


def test_a_folder_is_audited_and_explained(run: Run, pool: Path, tmp_path: Path) -> None:
    out, html = tmp_path / "rows.jsonl", tmp_path / "page.html"
    ran = run("audit", pool, "--workers", 2, "--out", out, "--html", html)
    assert ran.code == 1
    rows = {row.name.removeprefix(f"{pool}/"): row for row in read_rows(out)}
    for name, row in rows.items():
        if row.status == "refused":
            assert row.reasons == (Path(name).stem,), name
    statuses = sorted(str(row.status) for row in rows.values())
    assert statuses == ["ok"] * 2 + ["refused"] * 8 + ["unreadable"] * 2
    assert rows["pipe.py"].detail == "not a regular file"
    assert rows["in/locker.py"].same_as == f"{pool}/in/copy\x1b[2J<b>.py"
    assert rows["in/locker.py"].base == "synthgym.env/1"
    (raised,) = rows["reset-raised.py"].findings
    assert (
        f"reset with seed {raised.seed}"
        in run("validate", pool / "reset-raised.py", "--explain").out
    )

    assert f"rows go to {out}" in ran.err
    assert f"12 sources in {pool}: 2 fine, 8 refused, 2 unreadable; copies of others: 1" in ran.out
    table = [line.split() for line in ran.out.splitlines()]
    assert ["hint-empty", "1", "8.3", "%", f"{pool}/hint-empty.py"] in table
    assert ["hints", "3", "1", "8.3", "%"] in table
    assert "\x1b" not in ran.out
    page = html.read_text("utf-8")
    assert "\x1b" not in page
    assert "copy\ufffd[2J<b>" not in page
    assert page.count("<details>") == 8

    written = out.read_bytes()
    again = run("audit", pool, "--workers", 2, "--out", out, "--json")
    assert again.code == 1
    assert out.read_bytes() == written
    summary = json.loads(again.out)
    assert summary["statuses"] == {"ok": 2, "refused": 8, "unreadable": 2, "not-audited": 0}
    assert {item["reason"] for item in summary["reasons"]} == {
        *QUICK,
        "needs-arguments",
        "not-text",
        "source-too-large",
    }


def test_good_sources_and_nothing_else_are_code_zero(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text(json.dumps({"code": LOCKER, "id": "the locker"}) + "\n")
    ran = run("audit", "rows.jsonl", "--workers", 1)
    assert ran.code == 0
    assert "1 source in rows.jsonl: 1 fine, 0 refused" in ran.out
    (row,) = read_rows(Path("rows.audit.jsonl"))
    assert (row.name, row.title, row.ok) == ("rows.jsonl:1", "the locker", True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none",), "error: cannot audit none: no such file or folder"),
        (("empty",), "error: nothing to audit in empty: looked for files that end in .py"),
        (("a.py", "--workers", "0"), "error: workers must be at least 1, got 0"),
        (("a.py", "--dialect", "x"), "error: unknown dialect 'x'"),
        (("a.py", "--limit", "0"), "error: limit must be at least 1, got 0"),
        (("a.py", "--require", "fulll"), "did you mean 'full'?"),
        (("a.py", "--html", "no/page.html"), "error: cannot write no/page.html"),
        (("a.py", "--html", "a.py"), "error: cannot write the page to a.py"),
        (("a.py", "--out", "a.py"), "error: a.py is there and is no file of an audit"),
        (("a.py", "--out", "no/rows.jsonl"), "error: cannot write no/rows.jsonl"),
        ((), "Missing argument"),
    ],
)
def test_a_mistake_is_one_message_and_code_two(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("a.py").write_text("x = 1\n")
    ran = run("audit", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert Path("a.py").read_text() == "x = 1\n"


def test_progress_is_told_in_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = Summary()
    with audit_command._progress(None) as tell:
        for name in ("a", "b"):
            summary.add(Row(name=name, status=Status.OK))
            tell(summary)
    assert capsys.readouterr().err == ""  # it is too early to say anything
    monkeypatch.setattr(audit_command, "_PLAIN_SECONDS", 0.0)
    with audit_command._progress(1200) as tell:
        tell(summary)
    assert capsys.readouterr().err == "2 of 1,200 sources: 2 fine, 0 refused\n"


def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = partial(Console, file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(audit_command, "Console", lambda **options: console())
    summary = Summary()
    summary.add(Row(name="a", status=Status.REFUSED))
    with audit_command._progress(8) as tell:
        tell(summary)
    assert "0 fine, 1 refused" in screen.getvalue()
    assert "1/8" in screen.getvalue()


# --- stopped ---


@contextmanager
def started(pool: Path, out: Path) -> Iterator[subprocess.Popen[str]]:
    """A running `synthgym audit`, the leader of its process group, as in a terminal."""
    start = "from synthgym.cli import main; main()"
    words = ("audit", str(pool), "--workers", "2", "--out", str(out), "--seeds", "2")
    with subprocess.Popen(
        [sys.executable, "-c", start, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def stopped_in_full_swing(pool: Path, out: Path, stop: Callable[[int], None]) -> tuple[int, str]:
    """Start an audit, stop it when it has written three more rows; its exit code and what it said."""
    before = count(out)
    with started(pool, out) as process:
        wait_until(lambda: count(out) >= before + 3 or process.poll() is not None, 40)
        below = descendants(process.pid)
        assert len(below) >= 6  # two that validate, each with a zygote and a worker at least
        stop(process.pid)
        _, err = process.communicate(timeout=30)
    wait_until(lambda: not below & set(parents()))
    return process.returncode, err


def count(out: Path) -> int:
    return out.read_bytes().count(b"\n") if out.exists() else 0


def test_an_audit_that_is_stopped_leaves_no_process_and_goes_on(run: Run, tmp_path: Path) -> None:
    pool, out = tmp_path / "pool", tmp_path / "rows.jsonl"
    pool.mkdir()
    for number in range(40):
        (pool / f"{number:02}.py").write_text(LOCKER.replace("= 0.25", f"= 0.25  # {number}"))

    code, err = stopped_in_full_swing(pool, out, lambda pid: os.killpg(pid, signal.SIGINT))
    assert code == 130
    assert "run it again to go on" in err
    assert "Traceback" not in err
    first = [row.name for row in read_rows(out)]

    code, err = stopped_in_full_swing(pool, out, lambda pid: os.kill(pid, signal.SIGKILL))
    assert code == -signal.SIGKILL
    assert "Traceback" not in err
    second = [row.name for row in read_rows(out)]
    assert set(first) < set(second)
    assert len(second) < 40
    with out.open("ab") as file:  # as if it had died while it wrote
        file.write(b'{"audit": 1, "name": "torn')

    assert run("audit", pool, "--workers", 2, "--out", out, "--seeds", 2).code == 0
    lines = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert sorted(line["name"] for line in lines) == sorted(map(str, pool.iterdir()))
    assert all(line["ok"] and not line["same_as"] for line in lines)
