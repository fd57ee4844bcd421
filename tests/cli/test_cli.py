from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from command_line import Run

from synthgym.registry import write_snapshot
from synthgym.sandbox import IsolationReport, Layer
from synthgym.spec import EnvRecord, SynthEnvSpec

DATA = Path(__file__).parents[1] / "data"
LOCKER = DATA / "good_envs" / "locker.py"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    record = EnvRecord(
        source=LOCKER.read_text(), entry="LockerEnv", max_turns=8, requires=("random",)
    )
    specs = [
        SynthEnvSpec(
            record=record,
            name="Locker",
            title="[red]Locker\x1b[2J room",
            skills=("mathematical-reasoning",),
        )
    ]
    path = tmp_path_factory.mktemp("snapshots") / "one"
    write_snapshot(path, specs, name="one", version="1")
    return path


def test_list_shows_ids_and_keeps_titles_away_from_the_terminal(run: Run, snapshot: Path) -> None:
    ran = run("list", "--snapshot", snapshot)
    assert ran.code == 0
    assert "synthgym/Locker-v0" in ran.out
    assert "\x1b" not in ran.out
    data = json.loads(run("list", "--snapshot", snapshot, "--json").out)
    assert [entry["id"] for entry in data] == ["synthgym/Locker-v0"]


def test_list_filters_by_skill(run: Run, snapshot: Path) -> None:
    ran = run("list", "--snapshot", snapshot, "--skill", "spatial-reasoning", "--json")
    assert json.loads(ran.out) == []
    ran = run("list", "--snapshot", snapshot, "--skill", "spatial-resoning")
    assert ran.code == 2
    assert "did you mean 'spatial-reasoning'?" in ran.err


@pytest.mark.parametrize("wanted", ["synthgym/Locker-v0", "Locker-v0", "Locker"])
def test_show_finds_an_environment_by_any_of_its_names(
    run: Run, snapshot: Path, wanted: str
) -> None:
    ran = run("show", wanted, "--snapshot", snapshot, "--source")
    assert ran.code == 0
    assert "class LockerEnv:" in ran.out
    data = json.loads(run("show", wanted, "--snapshot", snapshot, "--json").out)
    assert data["record"]["entry"] == "LockerEnv"
    by_digest = run("show", data["digest"], "--snapshot", snapshot, "--json")
    assert json.loads(by_digest.out) == data


def test_an_unknown_name_is_one_message_that_names_the_nearest(run: Run, snapshot: Path) -> None:
    ran = run("show", "synthgym/Loker-v0", "--snapshot", snapshot)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: no environment 'synthgym/Loker-v0'")
    assert "did you mean 'synthgym/Locker-v0'?" in ran.err
    assert ran.err.count("\n") == 1


def test_a_folder_that_is_no_snapshot_is_one_message(run: Run, tmp_path: Path) -> None:
    ran = run("list", "--snapshot", tmp_path)
    assert ran.code == 2
    assert ran.err.startswith("error: ")


def test_playing_to_the_end(run: Run, snapshot: Path) -> None:
    ran = run(
        *("play", "Locker", "--seed", 0, "--snapshot", snapshot),
        stdin="look\n:hint\n:nonsense\ntake key\n:quit\nopen 1\n",
    )
    assert ran.code == 0
    assert "A note says" in ran.out
    assert "Hint: Take the key first" in ran.out
    assert "':nonsense' is not one of mine" in ran.out
    assert ran.out.rstrip().endswith("You take the key.")


def test_winning_and_losing_are_told(run: Run, snapshot: Path) -> None:
    won = run(
        *("play", "Locker", "--seed", 0, "--hint", "--snapshot", snapshot),
        stdin="take key\n" + "".join(f"open {n}\n" for n in range(20, 27)),
    )
    assert "Hint: Take the key first" in won.out
    assert "You ran out of turns after 8 turns; you were paid 0.25 of 1." in won.out
    note = next(line for line in won.out.splitlines() if line.startswith("A note says"))
    left, right = (int(word.rstrip(".")) for word in note.split()[3:6:2])
    won = run(
        *("play", "Locker", "--seed", 0, "--snapshot", snapshot),
        stdin=f"take key\nopen {left + right}\n",
    )
    assert won.out.rstrip().endswith("You won in 2 turns.")


def test_the_end_of_the_input_ends_the_game(run: Run, snapshot: Path) -> None:
    assert run("play", "Locker", "--snapshot", snapshot).code == 0


def test_isolation_names_the_layers(run: Run) -> None:
    assert run("isolation").out.startswith("isolation: ")
    data = json.loads(run("isolation", "--json").out)
    assert data["level"] in {"full", "partial", "reduced", "none"}
    assert data["layers"]


def weaken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with nothing but resource limits."""
    layers = (Layer("descriptors", True), Layer("seccomp", False, "OSError: not here"))
    command = importlib.import_module("synthgym.cli.isolation_command")
    monkeypatch.setattr(command, "isolation", lambda: IsolationReport("reduced", layers))


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_isolation_below_the_required_level_exits_with_1_and_says_what_is_missing(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    weaken(monkeypatch)
    ran = run("isolation", "--require", "full", *options)
    assert ran.code == 1
    assert "missing: seccomp (OSError: not here)" in ran.err
    assert "seccomp" in ran.out
    if options:
        assert json.loads(ran.out)["level"] == "reduced"


def test_isolation_at_the_required_level_exits_with_0(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    weaken(monkeypatch)
    for level in ("reduced", "none"):
        ran = run("isolation", "--require", level)
        assert (ran.code, ran.err) == (0, "")


def test_isolation_with_an_unknown_level_is_a_usage_error(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    weaken(monkeypatch)
    ran = run("isolation", "--require", "fulll")
    assert ran.code == 2
    assert "did you mean 'full'?" in ran.err
    assert ran.out == ""


def test_snapshot_verify_is_a_command_of_the_same_program(run: Run, snapshot: Path) -> None:
    ran = run("snapshot", "verify", snapshot)
    assert ran.code == 0
    assert ran.out.startswith("1 environments as promised")


def test_a_wrong_command_or_option_is_a_usage_error(run: Run) -> None:
    ran = run("lst")
    assert ran.code == 2
    assert "list" in ran.err
    assert run("list", "--nonsense").code == 2


def test_an_interrupt_ends_with_130_and_no_traceback(
    run: Run, monkeypatch: pytest.MonkeyPatch, snapshot: Path
) -> None:
    def interrupted(prompt: str = "") -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupted)
    ran = run("play", "Locker", "--snapshot", snapshot)
    assert ran.code == 130
    assert "Traceback" not in ran.err
