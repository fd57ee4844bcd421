"""Whole runs of the tiny random model through the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SETTINGS = [
    "policy.dtype=float32",
    "policy.lora_rank=4",
    "novelty.embedder=hash",
    "validation.seeds=5",
    "designer.candidates=5",
    # Cuts some of the longer designs: a random model solves nothing, so validity is all that can differ.
    "designer.max_tokens=101",
    "corpus.words=20",
    "agent.environments=2",
    "agent.pool_share=0.5",
    "agent.seeds=2",
    "agent.plays=2",
    "agent.max_turns=2",
    "agent.turn_tokens=8",
    "agent.context=1600",
    "iterations=2",
    "trainer.learning_rate=0.01",
]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def command(tiny_model: Path, *arguments: str, settings: list[str] | None = None) -> list[str]:
    """`spade-loop run` on the tiny model, in this interpreter."""
    overrides = [*SETTINGS, f"policy.model={tiny_model}", *(settings or [])]
    flags = [] if "--resume" in arguments else [f"--set={o}" for o in overrides]
    return [sys.executable, "-m", "spade_loop", "run", *flags, *arguments]


def run(tiny_model: Path, *arguments: str, settings: list[str] | None = None) -> str:
    done = subprocess.run(
        command(tiny_model, *arguments, settings=settings),
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def rows(path: Path, kind: str) -> str:
    return (path / f"{kind}.jsonl").read_text(encoding="utf-8")
