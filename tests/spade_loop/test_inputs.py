"""What a run starts from: refused before anything is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spade_loop.config import load_config
from spade_loop.errors import ConfigError, MissingExtraError
from spade_loop.inputs import TRACKERS, new_run
from spade_loop.state import RunState
from synthgym.errors import IntegrityError, SynthGymError
from synthgym.registry import Snapshot, bundled_root, write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec


def spec(number: int) -> SynthEnvSpec:
    record = EnvRecord(source=f"X = {number}\n", entry="XEnv", max_turns=4)
    return SynthEnvSpec(record=record, name=f"X{number}", skills=("optimisation",))


def config_for(tiny_model: Path, *settings: str) -> Any:
    return load_config("tiny", [f"policy.model={tiny_model}", *settings])


def test_inputs_write_nothing(tiny_model: Path, tmp_path: Path) -> None:
    inputs = new_run(config_for(tiny_model), tmp_path / "run")
    assert (inputs.checkpoint, inputs.state) == (None, RunState())
    assert len(inputs.library.specs) == len(Snapshot.open(bundled_root()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["designer.families=['wired_lever']"], "wired_levers"),
        (["name=my run"], "name, which names the run's snapshot"),
        (["registry=/nowhere"], "registry: there is no directory /nowhere"),
        (["trainer.report_to=['wand']"], "unknown tracker 'wand'; did you mean 'wandb'"),
    ],
)
def test_what_a_recipe_names_wrongly_is_told_before_anything_is_written(
    settings: list[str], message: str, tiny_model: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        new_run(config_for(tiny_model, *settings), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_tracker_that_is_not_installed_is_named(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TRACKERS, "trackio", "no_such_package")
    with pytest.raises(MissingExtraError, match="pip install no_such_package"):
        new_run(config_for(tiny_model, "trainer.report_to=['trackio']"), tmp_path / "run")


def test_an_environment_of_another_contract_is_refused_before_anything_is_written(
    tiny_model: Path, tmp_path: Path
) -> None:
    foreign = replace(spec(1), record=replace(spec(1).record, base="other/1"))
    write_snapshot(tmp_path / "start", [foreign], name="start", version="1")
    with pytest.raises(SynthGymError, match="other/1"):
        new_run(config_for(tiny_model, f"registry={tmp_path / 'start'}"), tmp_path / "run")


def test_a_changed_byte_of_the_registry_is_named(tiny_model: Path, tmp_path: Path) -> None:
    start = write_snapshot(tmp_path / "start", [spec(1)], name="s", version="1")
    files = [p for p in start.path.rglob("*") if p.is_file()]
    assert len(files) == 3
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        with pytest.raises(SynthGymError, match=rf"{file.name}"):
            new_run(config_for(tiny_model, f"registry={start.path}"), tmp_path / "run")
        file.write_bytes(content)
    (start.path / "stray.py").write_text("")
    with pytest.raises(IntegrityError, match=r"stray\.py is not in the manifest"):
        new_run(config_for(tiny_model, f"registry={start.path}"), tmp_path / "run")
