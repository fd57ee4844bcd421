"""What a checkpoint can do: success on every cell, without and with the hint, sampled or greedy."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from ladder import LEVELS, Cell, ladders, read_cells

from spade_loop.backends.transformers import TransformersSampler
from spade_loop.backends.transformers_writer import GREEDY
from spade_loop.backends.weights import Policy, load_policy
from spade_loop.config import AgentConfig, PolicyConfig
from spade_loop.episodes import Play, Player
from spade_loop.types import Arm
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec

Won = npt.NDArray[np.bool_]
"""Success, [seeds, plays]."""
PLAYS: Final = 8
"""Plain plays of each seed: pass@8 looks at all of them."""
AGENT: Final = AgentConfig(max_turns=3, turn_tokens=2, context=64, batch_rows=512)
"""Limits of the recipes."""
FIRST_SEED: Final = 1_000_000
"""Probes play instances from here on."""


def load(folder: Path) -> Policy:
    """A checkpoint, for playing alone."""
    policy = load_policy(
        PolicyConfig(model=f"{folder}", dtype="float32", device="cpu", lora_rank=0)
    )
    policy.model.requires_grad_(False).eval()
    return policy


def probe(  # noqa: PLR0913 -- how it is played, all by name
    policy: Policy,
    held: Mapping[Cell, SynthEnvSpec],
    pool: Pool,
    *,
    seeds: int,
    plays: int = 1,
    hinted: bool = False,
    greedy: bool = False,
) -> dict[Cell, Won]:
    """Success [seeds, plays] of each cell. The same checkpoint gives the same."""
    sampler = TransformersSampler(
        policy.model, policy.tokenizer, policy.chat, temperature=GREEDY if greedy else 1.0
    )
    player = Player(AGENT, pool, hint_level=2)
    arm = Arm.HINTED if hinted else Arm.PLAIN
    won = {}
    for cell, spec in held.items():
        episodes = [
            Play(spec, FIRST_SEED + seed, play, arm)
            for seed in range(seeds)
            for play in range(plays)
        ]
        stream = [int(hinted), int(greedy), cell.first, cell.level]
        outcomes = [t.success for t in player.play(sampler, episodes, stream=stream)]
        won[cell] = np.asarray(outcomes, dtype=np.bool_).reshape(seeds, plays)
    return won


def by_level(won: Mapping[Cell, Won]) -> list[float]:
    """Mean success at each level, over all ladders."""
    return [
        float(np.mean([rate.mean() for cell, rate in won.items() if cell.level == level]))
        for level in range(LEVELS)
    ]


def wins(won: Mapping[Cell, Won]) -> dict[str, list[list[int]]]:
    """Plays that were won on each seed, [levels][seeds], by ladder."""
    return {
        ladder: [
            won[Cell(ladder, level)].sum(axis=1).tolist()
            for level in range(LEVELS)
            if Cell(ladder, level) in won
        ]
        for ladder in ladders()
    }


def main(arguments: Sequence[str]) -> None:
    """Print the table of a checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("cells", type=Path, help="snapshot of all cells, as prepare.py writes it")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--out", type=Path, help="write every count as JSON")
    asked = parser.parse_args(arguments)
    policy = load(asked.model)
    with Pool() as pool:
        held = read_cells(asked.cells)
        found = {
            "plain": probe(policy, held, pool, seeds=asked.seeds, plays=PLAYS),
            "hinted": probe(policy, held, pool, seeds=asked.seeds, hinted=True),
            "greedy": probe(policy, held, pool, seeds=asked.seeds, greedy=True),
        }
    if asked.out is not None:
        data = {way: wins(won) for way, won in found.items()} | {
            "seeds": asked.seeds,
            "plays": PLAYS,
        }
        partial = asked.out.with_suffix(".partial")
        partial.write_text(json.dumps(data) + "\n", encoding="utf-8")
        partial.replace(asked.out)
    rates = [by_level(won) for won in found.values()]
    print(f"{len(ladders())} ladders x {asked.seeds} seeds\n")
    print("| level | p | hinted p | greedy |\n|---|---|---|---|")
    for level, row in enumerate(zip(*rates, strict=True)):
        print(f"| {level} | " + " | ".join(f"{rate:.3f}" for rate in row) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
