"""Run self-play with a model, a corpus and a registry snapshot of your own.

    python examples/run_the_loop.py --model my-model --corpus my.jsonl --snapshot my-snapshot --out runs/mine

Without arguments it plays one small iteration with the bundled model, corpus and snapshot. This is `spade-loop run` as
a program: whatever stands after `--set` overrides a setting of the recipe `tiny`; docs/spade.md lists them all.
"""

import argparse
import os
import warnings
from pathlib import Path

# OpenMP reads these when torch loads it: spinning threads cost a busy machine most of its speed.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

from spade_loop import load_config
from spade_loop.progress import Silent
from spade_loop.run import start

SMALL = (
    "designer.candidates=4",
    "agent.environments=2",
    "agent.seeds=2",
    "agent.plays=1",
    "agent.max_turns=2",
    "validation.seeds=10",
)
"""Fewer designs and shorter episodes than the recipe has: enough to see every part at work."""


class Printed(Silent):
    """Listens to the run. The other calls of the interface (single steps) are left silent."""

    def iteration(self, index: int, total: int) -> None:
        print(f"iteration {index + 1} of {total}", flush=True)

    def phase(self, name: str, steps: int) -> None:
        print(f"  {name} ({steps})", flush=True)

    def note(self, text: str) -> None:
        print(text, flush=True)


def settings(arguments: argparse.Namespace) -> list[str]:
    """What the arguments override, as `dotted.key=value`; later ones win."""
    named = {
        "policy.model": arguments.model,
        "corpus.path": arguments.corpus,
        "registry": arguments.snapshot,
        "iterations": arguments.iterations,
    }
    given = [f"{key}={value}" for key, value in named.items() if value is not None]
    return [*SMALL, *given, *arguments.set]


def main() -> None:
    parser = argparse.ArgumentParser(description="Self-play with your own model, corpus, snapshot.")
    parser.add_argument("--model", help="a model directory or a Hugging Face model id")
    parser.add_argument("--corpus", help='a JSONL file, {"text": ...} on each line')
    parser.add_argument("--snapshot", help="the folder of a registry snapshot")
    parser.add_argument("--out", default="runs/example", help="where the run is written")
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()

    warnings.simplefilter("ignore", FutureWarning)  # what transformers plans is not about this run
    config = load_config("tiny", settings(arguments))
    out = Path(arguments.out)
    report = start(config, out, Printed())
    print(f"designed  {out / 'snapshot'}\nmetrics   {out / 'metrics.jsonl'}\nreport    {report}")


if __name__ == "__main__":
    main()
