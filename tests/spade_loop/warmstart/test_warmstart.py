"""Whole warm starts of the tiny model: losses fall, runs begin with what was saved, nothing is left half-done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from warm_games import blueprints, edited, game, written
from whole_runs import ENVIRONMENT, rows, run

from spade_loop.backends.weights import load_policy
from spade_loop.config import load_config
from spade_loop.demonstrations import TRAIN, read_demonstrations
from spade_loop.errors import ConfigError, ResourceError, RunStateError
from spade_loop.progress import Silent
from spade_loop.types import Role
from spade_loop.warmstart import running, training
from spade_loop.warmstart.preparing import ROWS, TOLD, Staging, Task, check_task, source_of
from spade_loop.warmstart.settings import WarmStart
from synthgym.errors import SynthGymError
from synthgym.registry import Snapshot

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*pin_memory.*:UserWarning"
)
SETTINGS = [
    "policy.dtype=float32",
    "policy.lora_rank=0",
    "designer.initial_share=0",
    "agent.turn_tokens=80",
    "agent.context=1800",
    "designer.max_tokens=150",
    "trainer.rows_per_step=8",
]
WANTED = WarmStart(seeds=5, epochs=3, batch=8, learning_rate=0.01)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Two threads of torch on two busy cores wait for each other most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    parent = game()
    folder = tmp_path_factory.mktemp("snapshots") / "warm"
    return written(folder, [parent, edited(parent), *blueprints(4)])


def task_of(
    tiny_model: Path, snapshot: Snapshot, *changed: str, wanted: WarmStart = WANTED
) -> Task:
    config = load_config("tiny", [*SETTINGS, f"policy.model={tiny_model}", *changed])
    return Task(config, wanted, source_of(config, str(snapshot.path), ""), trains=True)


def warm(task: Task, out: Path) -> running.Told:
    check_task(task)
    staging = Staging(out, task)
    return running.warm_start(task, staging, staging.rows(task, Silent()), Silent())


@pytest.fixture(scope="module")
def done(
    tiny_model: Path, snapshot: Snapshot, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, running.Told]:
    out = tmp_path_factory.mktemp("warm") / "model"
    return out, warm(task_of(tiny_model, snapshot), out)


# --- what it leaves ---


@pytest.mark.slow
def test_the_loss_of_what_was_held_out_falls_for_both_roles(
    done: tuple[Path, running.Told],
) -> None:
    _, told = done
    assert set(told.before) == set(told.after) == {"agent", "designer"}
    for role in Role:
        assert told.after[role] < told.before[role] - 0.5
        assert told.rows[f"{role} train"] > told.rows[f"{role} held-out"] > 0
    assert told.tokens > 0


@pytest.mark.slow
def test_the_folder_holds_a_model_with_its_template_and_what_was_done(
    done: tuple[Path, running.Told], tiny_model: Path, snapshot: Snapshot
) -> None:
    out, told = done
    names = {path.name for path in out.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", ROWS, TOLD} <= names
    assert not {"adapter_config.json", "settings.json", "dropped.json", "trainer", ".lock"} & names
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    said = json.loads((out / TOLD).read_text(encoding="utf-8"))
    assert said["settings"]["seed"] == 0
    assert said["source"] == snapshot.digest
    assert said["held_out_loss"]["after"] == dict(told.after)
    config = task_of(out, snapshot).config
    policy, before = (
        load_policy(config.policy),
        load_policy(task_of(tiny_model, snapshot).config.policy),
    )
    assert policy.tokenizer.chat_template == before.tokenizer.chat_template
    assert policy.chat.stop_ids == before.chat.stop_ids
    # What was measured is what was saved.
    fitting = running.fit(policy.chat, read_demonstrations(out / ROWS).rows, config)
    after = training.losses(policy, policy.model, fitting.of("held-out"), Silent())
    assert after == pytest.approx(dict(told.after), abs=1e-3)


@pytest.mark.slow
def test_a_run_begins_with_it_and_rehearses_its_rows(
    done: tuple[Path, running.Told], tmp_path: Path
) -> None:
    """Resumed after an interruption, the run writes the rows of one that was not interrupted."""
    out, _ = done
    settings = [
        "agent.turn_tokens=24",
        "agent.context=1600",
        "designer.max_tokens=150",
        f"rehearsal.rows={out / ROWS}",
        "rehearsal.share=0.25",
        "trainer.temperature=1.0",
    ]
    run(out, "--out", str(tmp_path / "whole"), settings=settings)
    metrics = [json.loads(line) for line in rows(tmp_path / "whole", "metrics").splitlines()]
    assert len(metrics) == 2
    # log(400) is 5.99: the run began with a model that was warmed up on them
    assert metrics[0]["rehearsal"]["loss"] < 5.0
    for row in metrics:
        assert row["rehearsal"]["rows"] == 3  # a quarter of 4 designs of the policy and 8 plays
        assert row["rehearsal"]["trained_tokens"] > 0
        tokens = _sampled(tmp_path / "whole", row["iteration"])
        assert row["roles"]["agent"]["trained_tokens"] <= tokens
        assert row["update"]["rows"] == sum(r["rows"] for r in row["roles"].values())
    # Back to the first iteration: what a kill between the two leaves.
    half = tmp_path / "half"
    run(out, "--out", str(half), settings=[*settings, "iterations=1"])
    config = json.loads((half / "config.json").read_text(encoding="utf-8"))
    (half / "config.json").write_text(json.dumps(config | {"iterations": 2}), encoding="utf-8")
    run(out, "--resume", str(half))
    assert rows(half, "metrics") == rows(tmp_path / "whole", "metrics")
    report = (half / "report.html").read_text(encoding="utf-8")
    assert " rehearsed</td>" in report


def _sampled(path: Path, iteration: int) -> int:
    found = [json.loads(line) for line in rows(path, "episodes").splitlines()]
    return sum(
        r["trained_tokens"] for r in found if (r["iteration"], r["arm"]) == (iteration, "plain")
    )


@pytest.mark.slow
def test_an_interrupted_warm_start_goes_on_and_comes_to_the_same(
    done: tuple[Path, running.Told],
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With an adapter, on rows that were brought along."""

    class Interrupting(training._Told):
        def on_step_end(self, args: Any, state: Any, *rest: Any, **more: Any) -> None:
            super().on_step_end(args, state, *rest, **more)
            if state.global_step == 5:
                raise KeyboardInterrupt

    brought = tmp_path / "brought.jsonl"
    lines = (done[0] / ROWS).read_text(encoding="utf-8").splitlines(keepends=True)
    brought.write_text("".join(line for line in lines if "Wall" in line[:60]), encoding="utf-8")
    adapted = ["policy.lora_rank=8", "designer.initial_share=0.15"]
    config = load_config("tiny", [*SETTINGS, f"policy.model={tiny_model}", *adapted])
    wanted = replace(WANTED, epochs=6, batch=4)
    task = Task(config, wanted, source_of(config, "", str(brought)), trains=True)
    whole = warm(task, tmp_path / "whole")
    assert whole.after["agent"] < whole.before["agent"] - 0.2
    assert not (tmp_path / "whole" / "adapter_config.json").exists()

    out, partial = tmp_path / "model", tmp_path / ".model.partial"
    with monkeypatch.context() as patch:
        patch.setattr(training, "_Told", Interrupting)
        with pytest.raises(KeyboardInterrupt):
            warm(task, out)
    assert not out.exists()
    assert training.newest_checkpoint(partial / "trainer") is not None
    # A checkpoint that was cut short is no checkpoint.
    (partial / "trainer" / "checkpoint-9").mkdir()
    with pytest.raises(RunStateError, match=r"unfinished warm start with other settings"):
        Staging(out, replace(task, settings=replace(wanted, seed=1)))
    told = warm(task, out)
    assert told.after == pytest.approx(dict(whole.after), abs=1e-4)
    assert (out / ROWS).read_bytes() == (tmp_path / "whole" / ROWS).read_bytes()
    assert not partial.exists()


# --- what is refused ---


def test_two_sources_or_a_launcher_are_refused(
    tiny_model: Path, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(tiny_model, snapshot)
    with pytest.raises(ConfigError, match="give one of the two"):
        source_of(task.config, str(snapshot.path), "rows.jsonl")
    with pytest.raises(SynthGymError):
        source_of(task.config, "no-such-snapshot", "")
    assert source_of(task.config, "", "").digest != snapshot.digest  # the bundled one
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="runs in one process, and 2 were launched"):
        check_task(task)


def test_a_damaged_snapshot_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    made = written(tmp_path / "damaged", [game()])
    (source,) = made.path.rglob("env.py")
    source.write_text(source.read_text(encoding="utf-8") + "# more\n", encoding="utf-8")
    with pytest.raises(SynthGymError, match="verify"):
        source_of(load_config("tiny"), str(made.path), "")


def test_a_folder_that_is_taken_or_in_use_is_left_alone(
    tiny_model: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    task = task_of(tiny_model, snapshot)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").touch()
    with pytest.raises(RunStateError, match="is not empty"):
        Staging(taken, task)
    assert not (tmp_path / ".taken.partial").exists()
    (taken / TOLD).touch()
    with pytest.raises(RunStateError, match="holds a finished warm start: give another --out"):
        Staging(taken, task)
    staging = Staging(tmp_path / "out", task)
    lock = "from pathlib import Path; from spade_loop.state import RunDirectory; "
    other = subprocess.run(
        [sys.executable, "-c", f"{lock}RunDirectory(Path({str(staging.path)!r})).lock()"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "is in use: another process is working on" in other.stderr


def test_rows_without_any_room_say_what_to_raise(
    tiny_model: Path, snapshot: Snapshot, tmp_path: Path
) -> None:
    task = task_of(tiny_model, snapshot, "agent.context=40", "designer.max_tokens=2")
    with pytest.raises(
        ConfigError, match=r"no row is left to train on: .*agent\.context.*designer\.max_tokens"
    ):
        warm(task, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_snapshot_that_gives_no_row_says_why(tiny_model: Path, tmp_path: Path) -> None:
    made = written(tmp_path / "games", [game()])
    task = task_of(tiny_model, made, wanted=replace(WANTED, roles="designer"))
    staging = Staging(tmp_path / "out", task)
    with pytest.raises(ConfigError, match="no row could be made: 1 designer: it was not rendered"):
        staging.rows(task, Silent())


def test_full_memory_is_told_as_such(
    tiny_model: Path, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(running, "fine_tune", full)
    with pytest.raises(ResourceError, match="or go on with the same command once there is more"):
        warm(task_of(tiny_model, snapshot), tmp_path / "out")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seeds": 1}, "--seeds must be at least 2"),
        ({"held_out": 1.0}, "--held-out must be between 0 and 1"),
        ({"hinted": 1.5}, r"--hinted must be in \[0, 1\]"),
        ({"epochs": 0.0}, "--epochs must be above 0"),
        ({"batch": 0}, "--batch must be at least 1"),
        ({"learning_rate": -1.0}, "--learning-rate must be above 0"),
        ({"seed": -1}, "--seed must be in 0"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        WarmStart(**changed)


def test_the_rate_is_that_of_an_adapter_or_of_all_weights() -> None:
    assert (WarmStart().rate(16), WarmStart().rate(0)) == (2e-4, 2e-5)
    assert WarmStart(learning_rate=0.5).rate(16) == 0.5


# --- the command ---


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spade_loop", "warmstart", *arguments],
        env={**os.environ, **ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_the_same_seed_writes_the_same_bytes_in_another_process(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    found = []
    for number in ("1", "2"):
        out = tmp_path / number
        done = command(
            "tiny", "--snapshot", str(snapshot.path), "--out", str(out), "--rows-only",
            "--seeds", "4", PYTHONHASHSEED=number,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["rows"]["agent train"] == 6 * 3
        found.append((out / ROWS).read_bytes())
        assert sorted(path.name for path in out.iterdir()) == [ROWS, TOLD]
    assert found[0] == found[1]
    read = read_demonstrations(tmp_path / "1" / ROWS).rows
    assert {row.split for row in read} == {TRAIN, "held-out"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tinny", "--out", "x"], "neither a recipe nor a model; did you mean 'tiny'?"),
        (["/no/such/model", "--out", "x"], "there is no directory /no/such/model"),
        (
            ["tiny", "--out", "x", "--roles", "agnet"],
            "--roles must be one of both, agent, designer",
        ),
        (["tiny", "--out", "x", "--rows", "nowhere.jsonl"], "cannot read demonstrations"),
        (["tiny", "--out", "x", "--seeds", "1"], "--seeds must be at least 2"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("x").exists()
