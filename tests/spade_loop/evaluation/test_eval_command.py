"""`spade-loop eval` and `spade-loop compare` as a user calls them, against an endpoint on this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openai_service import Service, answer, completion, serving
from pages import block

import spade_loop.cli

pytest.importorskip("openai", reason="needs the extra `endpoint`")

GPQA = [
    {
        "Record ID": f"rec{n}",
        "Question": f"Which is number {n}?",
        "Correct Answer": f"right {n}",
        "Incorrect Answer 1": "one",
        "Incorrect Answer 2": "two",
        "Incorrect Answer 3": "three",
        "High-level domain": ("Physics", "Biology")[n % 2],
    }
    for n in range(12)
]


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.setenv("COLUMNS", "200")

    def called(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["spade-loop", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            spade_loop.cli.main()
        told = capsys.readouterr()
        return Ran(int(ended.value.code or 0), told.out, told.err)

    return called


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as made:
        made.answers = [knows(lambda n: True)]
        yield made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "gpqa.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in GPQA))
    return path


def knows(which: Callable[[int], bool]) -> Callable[[dict[str, Any]], Any]:
    """A model that is right on some questions."""

    def reply(body: dict[str, Any]) -> Any:
        asked = body["messages"][-1]["content"]
        number = int(re.findall(r"number (\d+)", asked)[0])
        letter = re.findall(r"^([A-D])\) right", asked, re.MULTILINE)[0]
        said = letter if which(number) else "ABCD"[("ABCD".index(letter) + 1) % 4]
        return completion(f"It is \\boxed{{{said}}}.", tokens=7)

    return reply


def gpqa(service: Service, data: Path, out: Path, *more: object) -> list[object]:
    return [
        "eval", "gpqa-diamond", "--model", "qwen-coder", "--endpoint", service.url, "--data", data,
        "--out", out, *more,
    ]  # fmt: skip


def test_an_evaluation_leaves_tables_numbers_and_transcripts(
    run: Callable[..., Ran], service: Service, data: Path, tmp_path: Path
) -> None:
    service.answers = [knows(lambda n: n < 9)]
    out = tmp_path / "out"
    ran = run(*gpqa(service, data, out, "--samples", 2, "--price-out", 3, "--format", "markdown"))
    assert ran.code == 0, ran.err
    assert "| gpqa-diamond | overall | 12 | 2 | 75.0 |" in ran.out
    assert "| gpqa-diamond | physics | 6 | 2 | 83.3 |" in ran.out
    assert "eval.json" in ran.err
    assert (out / "eval.md").read_text().endswith(ran.out)
    body = service.asked[0]
    assert (body["temperature"], body["max_tokens"], body["top_p"]) == (0.7, 32_768, 0.95)
    assert len({asked["seed"] for asked in service.asked}) == 24
    rows = (out / "attempts" / "gpqa-diamond.jsonl").read_text().splitlines()
    assert len(rows) == 25
    assert "right" in rows[1]
    found = json.loads((out / "eval.json").read_text())
    assert found["suites"][0]["usage"]["tokens"] == 24 * 7
    assert "| gpqa-diamond | 24 | 24 | 0 | 168 | 0.000504 |" in ran.out
    # Once more: nothing is asked, and the decoding is part of what was asked.
    count = len(service.asked)
    assert run(*gpqa(service, data, out, "--samples", 2)).code == 0
    assert len(service.asked) == count
    other = run(*gpqa(service, data, out, "--temperature", 0))
    assert (other.code, "decoding.temperature was 0.7, now it is 0.0" in other.err) == (2, True)


@pytest.mark.parametrize(
    ("form", "begins"), [("terminal", "Accuracy"), ("latex", r"\begin{table}"), ("json", "{")]
)
def test_every_format_is_printed(
    run: Callable[..., Ran], service: Service, data: Path, tmp_path: Path, form: str, begins: str
) -> None:
    ran = run(
        *gpqa(service, data, tmp_path / "out", "--limit", 2, "--samples", 1, "--format", form)
    )
    assert ran.code == 0, ran.err
    assert ran.out.strip().startswith(begins)
    if form == "json":
        assert len(json.loads(ran.out)["suites"][0]["items"]) == 2


def test_two_models_are_compared(
    run: Callable[..., Ran], service: Service, data: Path, tmp_path: Path
) -> None:
    for name, which in {"a": lambda n: n < 3, "b": lambda n: n < 11}.items():
        service.answers = [knows(which)]
        assert run(*gpqa(service, data, tmp_path / name, "--samples", 1)).code == 0
    a, b = tmp_path / "a", tmp_path / "b"
    ran = run("compare", a, b, "--format", "json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert [row["group"] for row in rows] == ["overall", "physics", "biology"]
    assert rows[0]["p_value"] == pytest.approx(2 / 2**8)
    assert (rows[0]["only_first"], rows[0]["only_second"], rows[0]["test"]) == (
        0,
        8,
        "McNemar, exact",
    )
    assert "66.7" in run("compare", a, b).out
    wrong = run("compare", a, b, "--metric", "scores")
    assert (wrong.code, "did you mean 'score'" in wrong.err) == (2, True)
    missing = run("compare", a, tmp_path / "none")
    assert (missing.code, "--out directory of a finished" in missing.err) == (2, True)
    assert run("compare", a).code == 2


def test_an_endpoint_that_dies_half_way_is_gone_on_with(
    run: Callable[..., Ran], service: Service, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    good = service.answers[0]
    service.answers = [good, good, good, answer({"error": "broken"}, 500)]
    more = ("--samples", 1, "--concurrency", 1, "--retries", 0)
    ran = run(*gpqa(service, data, out, *more))
    assert ran.code == 2
    assert "answered 500" in ran.err
    assert f"what is finished is kept in {out}: give the same command again to go on" in ran.err
    service.answers = [good]
    before = len(service.asked)
    assert run(*gpqa(service, data, out, *more)).code == 0
    assert len(service.asked) - before == 12 - 3


def test_ctrl_c_keeps_what_is_finished_and_leaves_no_process(
    service: Service, data: Path, tmp_path: Path
) -> None:
    def slow(body: dict[str, Any]) -> Any:
        if len(service.asked) > 4:
            time.sleep(3)
        return knows(lambda n: True)(body)

    service.answers = [slow]
    out = tmp_path / "out"
    words = [str(word) for word in gpqa(service, data, out, "--samples", 8, "--concurrency", 2)]
    command = [sys.executable, "-m", "spade_loop", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(service.asked) < 6 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "interrupted; what is finished is kept" in told
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    lines = (out / "attempts" / "gpqa-diamond.jsonl").read_text().splitlines()
    assert len(lines) >= 4
    assert all(json.loads(line) for line in lines)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["gpqa-diamnd"], "no suite 'gpqa-diamnd'; did you mean 'gpqa-diamond'"),
        (["gpqa-diamond", "--format", "html"], "--format must be one of terminal"),
        (["gpqa-diamond", "--samples", "0"], "--samples must be at least 1"),
        (["gpqa-diamond", "--limit", "0", "--data", "DATA"], "--limit must be at least 1"),
        (["gpqa-diamond", "--seed=-1"], "--seed must be at least 0"),
        (["gpqa-diamond", "--suite-option", "dta=x"], "no option 'dta'; did you mean 'data'"),
        (["gpqa-diamond", "--data", "/nowhere"], "--data /nowhere cannot be read"),
        (["gpqa-diamond", "aime-2025", "--data", "x"], "--data is for one suite"),
        (["gpqa-diamond", "--top-p", "0", "--data", "DATA"], "top_p must lie in (0, 1]"),
        (["livecodebench"], "allow_code=true"),
    ],
)
def test_a_mistake_is_told_before_the_model_is_asked(
    run: Callable[..., Ran], data: Path, tmp_path: Path, words: list[str], told: str
) -> None:
    words = [str(data) if word == "DATA" else word for word in words]
    out = tmp_path / "out"
    ran = run("eval", *words, "--model", "m", "--endpoint", "http://127.0.0.1:9/v1", "--out", out)
    assert ran.code == 2
    assert told in ran.err
    assert not out.exists()


def test_the_list_names_every_suite_and_its_options(run: Callable[..., Ran]) -> None:
    ran = run("eval", "--list", "--format", "json")
    listed = {row["suite"]: row["options"] for row in json.loads(ran.out)}
    assert {"aime-2025", "reasoning-gym", "snapshot"} <= set(listed)
    assert "per_task=8" in listed["reasoning-gym"]
    assert ran.code == 0


def test_the_suite_of_the_docs_is_found_and_played(service: Service, tmp_path: Path) -> None:
    package = tmp_path / "site"
    info = package / "capital_suites-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: capital-suites\nVersion: 1.0\n")
    group, line = re.findall(
        r"\[project\.entry-points\.\"(.+)\"\]\n(.+)", block("docs/evaluation.md", "entry point")
    )[0]
    (info / "entry_points.txt").write_text(f"[{group}]\n{line.replace(chr(34), '')}\n")
    (package / "capital_suites.py").write_text(block("docs/evaluation.md", "suite"))
    service.answers = [
        lambda body: completion("\\boxed{Paris}" if "France" in str(body) else "I do not know")
    ]
    out = tmp_path / "out"
    done = subprocess.run(
        [
            sys.executable, "-m", "spade_loop", "eval", "capitals", "--model", "qwen-coder",
            "--endpoint", service.url, "--out", str(out), "--suite-option", "strict=true",
        ],
        env={**os.environ, "PYTHONPATH": str(package)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((out / "eval.json").read_text())["suites"]
    assert result["groups"]["overall"]["accuracy"]["value"] == 0.5
    assert result["failures"] == {"unparsed": 1}


def test_bars_of_other_libraries_are_not_shown() -> None:
    pytest.importorskip("tqdm")
    code = "import spade_loop.cli; from tqdm.auto import tqdm; print(sum(tqdm(range(3))))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("3\n", "")


@pytest.mark.slow
def test_a_model_on_this_machine_plays_a_snapshot(
    run: Callable[..., Ran], tiny_model: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "out"
    ran = run(
        "eval", "snapshot:bundled", "--model", tiny_model, "--backend", "transformers", "--out", out,
        "--limit", 2, "--suite-option", "seeds=1", "--suite-option", "max_turns=2",
        "--max-tokens", 8, "--format", "json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (result,) = json.loads(ran.out)["suites"]
    assert result["usage"]["tokens"] > 0
    assert sum(result["failures"].values()) == 2
