"""What every run of the micro experiment starts from: model, rows to rehearse, the fixed pool, all cells.

Usage: `python benchmarks/micro/prepare.py runs/micro/start-0 --seed 0`
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from ladder import Cell, family, ladders, specs
from lessons import lessons
from transformers import LlamaConfig, LlamaForCausalLM
from words import END, USER, pieces, save_tokenizer, words

from spade_loop.backends.transformers_writer import TransformersWriter
from spade_loop.backends.weights import load_policy
from spade_loop.config import Config, load_config
from spade_loop.demonstrations import Room, encode
from spade_loop.design.assignments import Assignment
from spade_loop.design.dialects import BlueprintDialect
from spade_loop.progress import Silent
from spade_loop.state import dump_row
from spade_loop.types import Role
from spade_loop.warmstart.settings import WarmStart
from spade_loop.warmstart.training import fine_tune, losses
from synthgym.registry import write_snapshot
from synthgym.sandbox import Pool

WIDTH: Final = 96
LAYERS: Final = 3
HEADS: Final = 4
POSITIONS: Final = 64
ROWS: Final = 24_000
REHEARSED: Final = 2_000
HELD_OUT: Final = 400
BATCH: Final = 64
EPOCHS: Final = 4.0
RATE: Final = 2e-3
POOL: Final = 96
"""Designs of the initial designer that make up the fixed pool, repeats counted: as many as there are cells."""
RECIPE: Final = Path(__file__).resolve().parent / "recipes" / "full.toml"


def build_model(folder: Path, seed: int) -> None:
    """A Llama with random weights and the tokenizer of the ladder, as transformers reads them."""
    save_tokenizer(family(), folder)
    known = words(family())
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(known),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=known.index(USER),
        eos_token_id=known.index(END),
        pad_token_id=known.index(END),
    )
    LlamaForCausalLM(config).save_pretrained(folder)


def warm_up(
    folder: Path, config: Config, seed: int, rows: int, epochs: float
) -> dict[str, dict[str, float]]:
    """Teach the model in `folder` its lessons; losses before and after on rows that it was not taught."""
    rng = np.random.default_rng([seed, 1])
    policy = load_policy(config.policy)
    rooms = {role: Room.of(config, role) for role in Role}
    encoded = [encode(policy.chat, row, rooms[row.role]) for row in lessons(rows + HELD_OUT, rng)]
    whole = [row for row in encoded if row is not None and row.whole]
    if len(whole) != len(encoded):
        raise SystemExit(f"{len(encoded) - len(whole)} rows have no room in {RECIPE.name}")
    held_out, taught = whole[:HELD_OUT], whole[HELD_OUT:]
    before = losses(policy, policy.model, held_out, Silent())
    settings = WarmStart(batch=BATCH, epochs=epochs, learning_rate=RATE, seed=seed)
    scratch = folder.parent / "training"
    policy.model.train()
    model = fine_tune(policy, taught, config, settings, scratch=scratch, progress=Silent())
    after = losses(policy, model, held_out, Silent())
    model.save_pretrained(folder)
    shutil.rmtree(scratch)
    return {"before": before, "after": after}


def first_designs(folder: Path, seed: int) -> Counter[Cell]:
    """What the taught designer writes when nothing is held yet: `POOL` cells, repeats counted."""
    writer = TransformersWriter(f"{folder}", dtype="float32")
    dialect = BlueprintDialect([family()])
    drawn: Counter[Cell] = Counter()
    for number, ladder in enumerate(ladders()):
        assignment = Assignment(skill=ladder, document_id="", document_license="", excerpt="")
        each = POOL // len(ladders())
        replies = writer.write(
            [dialect.messages(assignment)] * each,
            max_tokens=len(pieces(family())) + 3,
            temperature=1.0,
            seeds=[(seed * POOL + number * each + i) % 2**31 for i in range(each)],
            schema=dialect.schema(assignment),
        )
        for reply in replies:
            parameters = dialect.read(reply.text, assignment).parameters
            drawn[Cell(str(parameters["ladder"]), int(str(parameters["level"])[1:]))] += 1
    return drawn


def main(arguments: Sequence[str]) -> None:
    """Make the folder; one that is there already is left alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--epochs", type=float, default=EPOCHS)
    asked = parser.parse_args(arguments)
    prepare(asked.out, asked.seed, rows=asked.rows, epochs=asked.epochs)


def prepare(out: Path, seed: int, *, rows: int = ROWS, epochs: float = EPOCHS) -> None:
    """Everything under `out`, which appears whole or not at all."""
    if out.exists():
        return
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    model = partial / "model"
    build_model(model, seed)
    config = load_config(f"{RECIPE}", [f"policy.model={model}", "trainer.rows_per_step=64"])
    told = warm_up(model, config, seed, rows, epochs)
    rng = np.random.default_rng([seed, 2])
    shown = [row for row in lessons(2 * REHEARSED, rng) if row.id != "unknown"][:REHEARSED]
    text = "".join(dump_row(row.to_json()) + "\n" for row in shown)
    (partial / "rows.jsonl").write_text(text, encoding="utf-8")
    with Pool() as pool:
        held = specs(pool)
    write_snapshot(partial / "cells", held.values(), name="micro-cells", version="1.0.0")
    drawn = first_designs(model, seed)
    write_snapshot(
        partial / "pool", [held[cell] for cell in sorted(drawn)], name="micro-pool", version="1.0.0"
    )
    counts = {f"{cell.ladder} {cell.level}": n for cell, n in sorted(drawn.items())}
    summary = {"seed": seed, "rows": rows, "epochs": epochs, "loss": told, "pool": counts}
    (partial / "start.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    partial.rename(out)


if __name__ == "__main__":
    main(sys.argv[1:])
