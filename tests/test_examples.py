"""The programs in examples/, run as a reader would run them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LOCKER = ROOT / "tests" / "data" / "good_envs" / "locker.py"
TINY = (
    "policy.dtype=float32",
    "policy.device=cpu",
    "designer.max_tokens=160",
    "agent.environments=2",
    "agent.pool_share=0.5",
    "agent.seeds=2",
    "agent.plays=2",
    "agent.max_turns=2",
    "validation.seeds=5",
    "novelty.embedder=hash",
)


def run(name: str, *arguments: object, strict: bool = True) -> str:
    """What an example prints, its warnings being errors when `strict`."""
    options = ["-W", "error"] if strict else []
    command = [sys.executable, *options, str(ROOT / "examples" / name), *map(str, arguments)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "random"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_short_and_says_what_it_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 80
    assert text.startswith('"""')
    assert path.name in (ROOT / "README.md").read_text(encoding="utf-8")


def test_code_that_knows_only_gymnasium_plays_and_wins() -> None:
    assert "import synthgym" not in (ROOT / "examples" / "use_an_environment.py").read_text()
    printed = run("use_an_environment.py")
    assert "Hint: Ranked from the signal" in printed
    assert printed.splitlines().count("won ") == 1
    assert printed.count(": won in ") == 4


def test_an_environment_is_written_checked_and_registered(tmp_path: Path) -> None:
    printed = run("write_an_environment.py", tmp_path)
    assert "refused: policy (line 3)" in printed
    assert "refused: reward-out-of-range (seed 0)" in printed
    assert "accepted: True" in printed
    assert "Hint: Halve what is left" in printed
    assert "registered: ['synthgym/Vault-v0']" in printed
    written = Snapshot.open(tmp_path / "vaults")
    assert written.verify() == ()
    assert [entry.env_id for entry in written] == ["synthgym/Vault-v0"]


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of tests/spade_loop: two random layers, a tokenizer of its own."""
    path = ROOT / "tests" / "spade_loop" / "conftest.py"
    spec = importlib.util.spec_from_file_location("spade_loop_conftest", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder: Path = module.build_tiny_model(tmp_path_factory.mktemp("tiny-llama"))
    return folder


@pytest.mark.slow
def test_the_loop_runs_with_a_model_a_corpus_and_a_snapshot_of_ones_own(
    tiny_model: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    documents = [{"id": f"own-{i}", "text": f"Lock number {i} turns twice."} for i in range(8)]
    corpus.write_text("".join(json.dumps(document) + "\n" for document in documents))
    record = EnvRecord(
        source=LOCKER.read_text(), entry="LockerEnv", max_turns=8, requires=("random",)
    )
    skills = ("mathematical-reasoning",)
    write_snapshot(
        tmp_path / "own",
        [SynthEnvSpec(record=record, name="Locker", skills=skills)],
        name="own",
        version="1",
    )
    out = tmp_path / "run"
    named = ("--model", tiny_model, "--corpus", corpus, "--snapshot", tmp_path / "own")
    overrides = [item for setting in TINY for item in ("--set", setting)]
    printed = run("run_the_loop.py", *named, "--out", out, *overrides, strict=False)

    assert "iteration 1 of 1" in printed
    (metrics,) = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    assert sum(metrics["designs"].values()) == 4
    designs = list(map(json.loads, (out / "designs.jsonl").read_text().splitlines()))
    assert {design["document"] for design in designs} <= {f"own-{i}" for i in range(8)}
    episodes = list(map(json.loads, (out / "episodes.jsonl").read_text().splitlines()))
    assert "synthgym/Locker-v0" in {episode["env_id"] for episode in episodes}
    assert Snapshot.open(out / "snapshot").verify() == ()
    assert (out / "report.html").is_file()


def test_an_environment_with_tools_is_played_through_the_replies_of_a_model() -> None:
    printed = run("tool_environment.py")
    assert "no-action: " in printed
    assert "<function=" in printed
    assert printed.count("-> ok: ") == 13
    assert printed.endswith("won in 14 turns\n")
