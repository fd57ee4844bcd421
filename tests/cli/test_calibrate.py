from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from synthgym.calibration import AGENTS, DEFAULT_BUDGET, Calibration
from synthgym.cli import calibrate_command, main
from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tests" / "data" / "calibration"


def spec(name: str, max_turns: int) -> SynthEnvSpec:
    source = (SOURCES / f"{name.lower()}.py").read_text()
    record = EnvRecord(source=source, entry=f"{name}Env", max_turns=max_turns)
    return SynthEnvSpec(record=record, name=name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    specs = [spec("Brittle", 4), spec("Doors", 2), spec("Lamps", 9)]
    return write_snapshot(tmp_path / "three", specs, name="three", version="1").path


class Ran:
    """What one command line came to."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


class Run:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ran:
        with pytest.raises(SystemExit) as exit_info:
            main(["calibrate", *map(str, arguments)])
        captured = self._capsys.readouterr()
        code = exit_info.value.code
        return Ran(code if isinstance(code, int) else 0, captured.out, captured.err)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def noted(folder: Path, name: str) -> dict[str, Any]:
    snapshot = Snapshot.open(folder)
    assert snapshot.verify() == ()
    return dict(snapshot.spec(snapshot.entry(f"synthgym/{name}-v0").digest).metrics)


def test_a_table_has_a_line_for_each_agent(run: Run, folder: Path) -> None:
    before = tree(folder)
    ran = run("Lamps", "--snapshot", folder, "--episodes", 8)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0] == "synthgym/Lamps-v0  seeds 0 to 7"
    assert re.split(r"  +", lines[1].strip()) == [
        *("agent", "solve rate", "95 %", "return", "turns", "faults", "undecided")
    ]
    rows = {line.split()[0]: re.split(r"  +", line.strip()) for line in lines[2:] if line.strip()}
    assert tuple(rows) == AGENTS
    assert rows["null"][1:] == ["0.000 +- 0.000", "0.000 to 0.324", "0.000 +- 0.000", "9.0", "0"]
    assert rows["witness"][1:3] == ["1.000 +- 0.000", "0.676 to 1.000"]
    assert rows["search"][-1] == "0"
    assert tree(folder) == before


def test_json_holds_every_environment_of_the_snapshot_unless_some_are_named(
    run: Run, folder: Path
) -> None:
    ran = run("--snapshot", folder, "--episodes", 6, "--agents", "null, witness", "--json")
    found = {item["id"]: item["agents"] for item in json.loads(ran.out)}
    assert list(found) == ["synthgym/Brittle-v0", "synthgym/Doors-v0", "synthgym/Lamps-v0"]
    assert list(found["synthgym/Doors-v0"]) == ["null", "witness"]
    assert found["synthgym/Brittle-v0"]["witness"]["faults"] == 4
    ran = run(
        *("Lamps", "Doors", "Lamps", "--seed", 5, "--snapshot", folder),
        *("--episodes", 2, "--agents", "null", "--json"),
    )
    data = json.loads(ran.out)
    assert [item["id"] for item in data] == ["synthgym/Lamps-v0", "synthgym/Doors-v0"]
    assert data[0]["agents"]["null"]["first_seed"] == 5


def test_write_notes_the_figures_and_changes_nothing_else(run: Run, folder: Path) -> None:
    before = Snapshot.open(folder)
    arguments = ("Lamps", "--snapshot", folder, "--episodes", 4, "--budget", 300, "--json")
    printed = json.loads(run(*arguments).out)
    assert run(*arguments, "--write").code == 0
    assert noted(folder, "Lamps") == {"agents": printed[0]["agents"]}
    assert noted(folder, "Doors") == {}
    after = Snapshot.open(folder)
    assert after.core.content_digest == before.core.content_digest
    assert (before.version, after.version) == ("1", "1.0.1")
    assert [(e.env_id, e.digest) for e in after] == [(e.env_id, e.digest) for e in before]
    written = tree(folder)
    assert run(*arguments, "--write").code == 0
    assert tree(folder) == written


def test_figures_of_agents_that_were_not_asked_stay(run: Run, folder: Path) -> None:
    run("Doors", "--snapshot", folder, "--episodes", 4, "--agents", "null,scraper", "--write")
    first = noted(folder, "Doors")["agents"]
    run("Doors", "--snapshot", folder, "--episodes", 6, "--agents", "scraper", "--write")
    second = noted(folder, "Doors")["agents"]
    assert second["null"] == first["null"]
    assert (first["scraper"]["episodes"], second["scraper"]["episodes"]) == (4, 6)


def test_an_interruption_loses_nothing_that_was_written(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibrate = calibrate_command.calibrate

    def interrupted(found: SynthEnvSpec, **settings: Any) -> Calibration:
        if found.name == "Doors":
            raise KeyboardInterrupt
        return calibrate(found, **settings)

    monkeypatch.setattr(calibrate_command, "calibrate", interrupted)
    ran = run("--snapshot", folder, "--episodes", 2, "--agents", "null", "--write")
    assert ran.code == 130
    assert "synthgym/Brittle-v0" in ran.out
    assert set(noted(folder, "Brittle")["agents"]) == {"null"}
    assert noted(folder, "Doors") == noted(folder, "Lamps") == {}


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_played(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate_command, "calibrate", _must_not_be_called)
    monkeypatch.chdir(folder)
    ran = run("--snapshot", ".", "--write")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert "run from another folder" in ran.err


WRONG: dict[str, tuple[Sequence[object], str]] = {
    "an unknown agent": (("--agents", "null,wittness"), "did you mean 'witness'?"),
    "no agent": (("--agents", ""), "unknown agent ''"),
    "an unknown environment": (("Lamp",), "did you mean 'synthgym/Lamps-v0'?"),
    "no episode": (("--episodes", 0), "--episodes"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_one_message(
    run: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Sequence[object],
    message: str,
) -> None:
    monkeypatch.setattr(calibrate_command, "calibrate", _must_not_be_called)
    ran = run(*arguments, "--snapshot", folder)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_the_help_names_the_agents_and_the_budget_that_are_the_defaults(run: Run) -> None:
    text = " ".join(run("--help").out.split())
    assert ",".join(AGENTS) in re.sub(r"[\s│]", "", text)
    assert str(DEFAULT_BUDGET) in text


DOCUMENTED = re.findall(
    r"^synthgym calibrate (.*)$", (ROOT / "docs" / "calibration.md").read_text(), re.MULTILINE
)


@pytest.mark.parametrize("line", DOCUMENTED)
def test_a_command_of_the_page_runs(line: str, run: Run, tmp_path: Path, folder: Path) -> None:
    words = shlex.split(line)
    if "--snapshot" in words:  # a folder that the reader has made
        words[words.index("--snapshot") + 1] = str(folder)
        words = [word for word in words if word not in ("SignalBox", "PrintersCube")]
    for option, cheap in (("--episodes", "1"), ("--budget", "50")):
        if option in words:
            words[words.index(option) + 1] = cheap
    assert run(*words).code == 0


def test_the_page_has_commands() -> None:
    assert len(DOCUMENTED) >= 2


def _must_not_be_called(*_: object, **__: object) -> Calibration:
    raise AssertionError("nothing was to be played")
