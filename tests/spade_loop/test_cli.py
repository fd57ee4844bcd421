"""`spade-loop` at the hands of a user who errs: one message, exit code 2, nothing written, and at once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spade_loop import cli
from spade_loop.config import load_config, recipes
from spade_loop.inputs import Inputs
from spade_loop.state import RunDirectory
from synthgym.registry import Snapshot, bundled_root

LIGHT_SECONDS = 20.0
"""For what is refused without torch: a second or so, many on a busy machine."""


class Outcome:
    """What a call of the command line came to."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def spade_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """The command line, in this process, with an empty directory to work in."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["spade-loop", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(caught.value.code or 0), captured.out, captured.err)

    return call


def assert_refused(outcome: Outcome, *parts: str, work: Path) -> None:
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    message = outcome.err.strip()
    assert message.startswith("spade-loop: ")
    assert "\n" not in message
    assert "Traceback" not in message
    for part in parts:
        assert part in message
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--set", "agent.seed=3"], ["agent.seed;", "did you mean 'seeds'?"]),
        (["--set", "agnet.seeds=3"], ["unknown setting agnet;", "did you mean 'agent'?"]),
        (["--set", "agent.seeds=many"], ["agent.seeds: expected `int`, got `str`"]),
        (["--set", "hints.level=4"], ["hints.level must be one of (1, 2, 3), got 4"]),
        (["--set", "seed=-1"], ["seed must lie in 0..4294967295, got -1"]),
        (["--set", "designer.skills=[]"], ["designer.skills must name at least one skill"]),
        (["--set", "trainer.temperature=0"], ["trainer.temperature must be above 0"]),
        (["--set", "novelty.window=0"], ["novelty.window must be at least 1, got 0"]),
        (["--set", "designer.families=['wired_lever']"], ["did you mean 'wired_levers'?"]),
        (["--set", "name=my run"], ["name, which", "'my run'"]),
        (["tny"], ["no recipe 'tny'", "did you mean 'tiny'?"]),
        (["absent.toml"], ["absent.toml does not exist"]),
        (["--set", "corpus.path=absent.jsonl"], ["absent.jsonl", '{"text": "..."}']),
        (["--set", "registry=absent"], ["registry: there is no directory absent"]),
        (["--set", "policy.model=/nope"], ["no directory /nope", "smollm2-135m-instruct"]),
        (["--resume", "absent"], ["absent is not a run directory", "--out"]),
        (["--resume", "absent", "--set", "seed=1"], ["leave out the recipe, --set and --out"]),
        (["--resume", "absent", "--out", "x"], ["leave out the recipe, --set and --out"]),
        (["tiny", "--resume", "absent"], ["leave out the recipe, --set and --out"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_mistake_is_one_message_and_leaves_nothing(
    arguments: list[str], parts: list[str], spade_loop: Any
) -> None:
    start = time.monotonic()
    assert_refused(spade_loop("run", *arguments), *parts, work=Path.cwd())
    assert time.monotonic() - start < LIGHT_SECONDS


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ('{"text": "A lock."}\n{"text": 3}\n', ["line 2", "'text' must be a string"]),
        ('{"text": "A lock."}\n\n{"text"\n', ["line 3", "not valid JSON"]),
        ("", ["the corpus is empty"]),
    ],
)
def test_a_line_of_the_corpus_is_named(
    content: str, parts: list[str], spade_loop: Any, tmp_path: Path
) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(content)
    outcome = spade_loop("run", "--set", f"corpus.path={path}", "--out", "run")
    assert_refused(outcome, str(path), *parts, work=Path.cwd())


@pytest.mark.parametrize("file", ["env.py", "spec.json", "report.json", "manifest.json"])
def test_one_changed_byte_of_the_registry_is_found(
    file: str, spade_loop: Any, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(bundled_root(), tmp_path / "registry"))
    entry = list(Snapshot.open(root))[2]
    path = (
        root / file if file == "manifest.json" else next(root.glob(f"envs/{entry.name}/*/{file}"))
    )
    content = bytearray(path.read_bytes())
    middle = content.index(b"a", len(content) // 2)
    content[middle] = ord("b")
    path.write_bytes(content)
    outcome = spade_loop("run", "--set", f"registry={root}", "--out", "run")
    named = [file] if file == "manifest.json" else [file, f"synthgym/{entry.name}-v0"]
    assert_refused(outcome, *named, work=Path.cwd())


def test_a_folder_that_is_no_snapshot_is_named(spade_loop: Any, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    outcome = spade_loop("run", "--set", f"registry={tmp_path / 'folder'}", "--out", "run")
    assert_refused(outcome, "folder is not a snapshot", "manifest.json", work=Path.cwd())


def test_a_directory_that_holds_a_run_is_not_written_over(spade_loop: Any, tmp_path: Path) -> None:
    RunDirectory.create(tmp_path / "run", load_config())
    before = (tmp_path / "run" / "config.json").stat().st_mtime_ns
    outcome = spade_loop("run", "--out", str(tmp_path / "run"))
    assert_refused(
        outcome,
        f"holds a run already: resume it with `spade-loop run --resume {tmp_path}",
        work=Path.cwd(),
    )
    assert (tmp_path / "run" / "config.json").stat().st_mtime_ns == before


def test_a_directory_of_something_else_is_not_written_into(spade_loop: Any, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "report.html").write_text("mine")
    outcome = spade_loop("run", "--out", str(tmp_path / "thesis"))
    assert_refused(outcome, "is not empty and holds no run", work=Path.cwd())


def test_a_setting_of_an_old_run_that_is_gone_is_named(spade_loop: Any, tmp_path: Path) -> None:
    path = RunDirectory.create(tmp_path / "run", load_config()).path
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"rounds": 3}))
    assert_refused(
        spade_loop("run", "--resume", str(path)), "unknown setting rounds", work=Path.cwd()
    )


def subprocess_run(work: Path, *arguments: str, **environment: str) -> Outcome:
    work.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "spade_loop", *arguments],
        cwd=work,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(cli.__file__).parents[1]),
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(work.parent / "hub"),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_a_model_that_neither_disk_nor_hub_gives_leaves_nothing(tmp_path: Path) -> None:
    work = tmp_path / "work"
    outcome = subprocess_run(work, "run", "--set", "policy.model=nobody/nothing")
    assert_refused(outcome, "'nobody/nothing' cannot be loaded", "Give a directory", work=work)


def test_a_model_that_breaks_while_it_is_loaded_leaves_nothing(
    tiny_model: Path, tmp_path: Path, spade_loop: Any
) -> None:
    broken = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    (broken / "model.safetensors").write_bytes(b"\x00" * 100)
    outcome = spade_loop("run", "--set", f"policy.model={broken}", "--out", "deep/run")
    assert_refused(outcome, f"cannot be loaded from {broken}", "Cause: ", work=Path.cwd())


def test_a_missing_package_is_named_with_the_extra(spade_loop: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("spade_loop.run", "spade_loop.trainer", "spade_loop.loop"):
            patch.delitem(sys.modules, name, raising=False)
        patch.setitem(sys.modules, "trl", None)
        outcome = spade_loop("run", "--set", "policy.model=org/name")
    assert_refused(outcome, "trl", "pip install 'synthgym[loop]'", work=Path.cwd())


@pytest.mark.parametrize("begun", [False, True])
def test_ctrl_c_says_what_there_is_to_go_on_with(
    begun: bool, spade_loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go_on(inputs: Inputs, _progress: object) -> None:
        if begun:
            RunDirectory.create(inputs.directory.path, inputs.config)
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_needs_loop", lambda _: SimpleNamespace(go_on=go_on))
    outcome = spade_loop("run", "--set", "policy.model=org/name", "--out", "run")
    assert outcome.code == 130
    expected = "spade-loop run --resume run" if begun else "before anything was written"
    assert expected in outcome.err
    assert Path("run").exists() is begun


def test_recipes_are_listed_with_a_line_each(spade_loop: Any) -> None:
    outcome = spade_loop("recipes")
    assert outcome.code == 0
    lines = dict(line.split(maxsplit=1) for line in outcome.out.splitlines())
    assert set(lines) == set(recipes())
    assert "two CPU cores" in lines["tiny"]


def test_a_plan_says_what_an_iteration_takes(spade_loop: Any) -> None:
    outcome = spade_loop(
        "plan",
        "tiny",
        "--set",
        "agent.environments=3",
        "--set",
        "agent.seeds=5",
        "--set",
        "agent.plays=2",
        "--json",
    )
    assert (outcome.code, outcome.err) == (0, "")
    plan = json.loads(outcome.out)
    assert list(plan)[:2] == ["config", "iteration"]
    assert plan["config"]["agent"]["environments"] == 3
    iteration = plan["iteration"]
    assert iteration["episodes_plain"] == iteration["episodes_hinted"] == 30
    rows = iteration["rows"]
    assert rows["agent"] == 30
    assert rows["designer"] == iteration["designs_by_designer"]["policy"]
    assert rows["total"] >= rows["agent"] + rows["designer"]
    assert list(Path.cwd().iterdir()) == []


def test_a_plan_is_a_table_unless_json_is_asked_for(spade_loop: Any) -> None:
    outcome = spade_loop("plan", "qwen3-4b", "--processes", "8", "--sharding", "fsdp2")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Run\n  recipe ")
    assert "27 for each of 8 processes" in outcome.out
    assert list(Path.cwd().iterdir()) == []


def test_a_plan_on_impossible_processes_is_refused(spade_loop: Any) -> None:
    outcome = spade_loop("plan", "--sharding", "fsdp")
    assert_refused(outcome, "--sharding must be one of", "did you mean 'fsdp2'?", work=Path.cwd())
    assert_refused(spade_loop("plan", "--processes", "0"), "at least 1", work=Path.cwd())


def test_a_recipe_for_gpus_is_refused_on_a_machine_without_one(
    spade_loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    outcome = spade_loop("run", "qwen3-4b")
    assert_refused(outcome, "policy.device is cuda", "run it where there is one", work=Path.cwd())


def test_a_plan_of_a_wrong_recipe_is_refused(spade_loop: Any) -> None:
    outcome = spade_loop("plan", "--set", "agent.seed=3")
    assert_refused(outcome, "did you mean 'seeds'?", work=Path.cwd())


def test_a_report_is_written_anew(spade_loop: Any, tmp_path: Path) -> None:
    path = RunDirectory.create(tmp_path / "run", load_config()).path
    outcome = spade_loop("report", str(path))
    assert (outcome.code, outcome.out.strip()) == (0, str(path / "report.html"))
    assert "<html" in (path / "report.html").read_text()


def test_a_report_of_no_run_is_refused(spade_loop: Any) -> None:
    assert_refused(spade_loop("report", "absent"), "not a run directory", work=Path.cwd())


def test_help_is_help(spade_loop: Any) -> None:
    outcome = spade_loop("run", "--help")
    assert outcome.code == 0
    assert "--resume" in outcome.out


def test_an_unknown_option_is_refused(spade_loop: Any) -> None:
    outcome = spade_loop("run", "--seeds", "3")
    assert outcome.code == 2
    assert "No such option" in outcome.err


def test_a_run_without_the_extra_names_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; from spade_loop.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "synthgym[loop]" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()
