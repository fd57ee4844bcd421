"""CPU time of the bundled environments under the sandbox' language policy against plain Python.

    python benchmarks/guard_cost.py --rounds 15 --episodes 20

Both run in this process: no worker, no message, no kernel lock. So the ratio is what the policy alone costs: its
guards on attribute writes, its renamed names, its explicit imports. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import ast
import gc
import platform
import random
import statistics
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from synthgym import Snapshot
from synthgym.registry import bundled_root
from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.composing import compose
from synthgym.sandbox.runtime import Runtime
from synthgym.spec import EnvRecord

_CLUTTER = ("", "help", "no such command", "go north 1 2 3")
"""Played in every episode between the steps of a solution: refusals are what a policy under training meets most."""

Episode = tuple[int, tuple[str, ...]]
"""A seed and the actions that are played after the reset with it."""


@dataclass(frozen=True, slots=True)
class Side:
    """One environment object, and what to do before its reset."""

    env: Any
    reseed: Callable[[int], None]

    def play(self, episodes: list[Episode]) -> list[object]:
        """Everything that the episodes give."""
        seen: list[object] = []
        for seed, actions in episodes:
            self.reseed(seed)
            seen.append(self.env.reset(seed))
            seen += [self.env.step(action) for action in actions]
        return seen

    def time(self, episodes: list[Episode]) -> tuple[int, int]:
        """CPU nanoseconds of all steps and of all resets."""
        clock, env, reseed = time.process_time_ns, self.env, self.reseed
        steps = resets = 0
        for seed, actions in episodes:
            reseed(seed)
            start = clock()
            env.reset(seed)
            middle = clock()
            for action in actions:
                env.step(action)
            steps += clock() - middle
            resets += middle - start
        return steps, resets


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over the rounds of one environment, in nanoseconds, of all its episodes."""

    plain_steps: float
    plain_resets: float
    guarded_steps: float
    guarded_resets: float


def plain_side(record: EnvRecord) -> Side:
    """The environment in plain Python; the bundled sources are ours and were reviewed."""
    module = types.ModuleType("env")
    sys.modules["env"] = module  # where `dataclasses` looks a class' module up
    tree = compose(ast.parse(record.source), record.base)
    exec(compile(tree, "<plain>", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 (see above)
    return Side(module.__dict__[record.entry](), random.seed)


def guarded_side(record: EnvRecord) -> Side:
    """The environment under the policy."""
    code = compile_source(record.source, base=record.base).code
    if code is None:
        raise SystemExit("a bundled source is refused by the policy")
    runtime = Runtime()
    namespace = runtime.instantiate(code, 0)
    return Side(runtime.env_class(namespace)(), lambda seed: runtime.reseed(namespace, seed))


def episodes_of(side: Side, count: int) -> list[Episode]:
    """`count` episodes: solutions with clutter in between, up to the step that ends each."""
    episodes = []
    for seed in range(count):
        side.reseed(seed)
        side.env.reset(seed)
        actions: list[str] = []
        for index, action in enumerate(side.env.solution()):
            if side.env.step(action)[2]:
                actions.append(action)
                break
            actions += [_CLUTTER[index % len(_CLUTTER)], action] if index % 3 == 2 else [action]
        episodes.append((seed, _until_done(side, seed, actions)))
    return episodes


def _until_done(side: Side, seed: int, actions: list[str]) -> tuple[str, ...]:
    side.reseed(seed)
    side.env.reset(seed)
    for index, action in enumerate(actions):
        result = side.env.step(action)
        if result[2] or result[3]:
            return tuple(actions[: index + 1])
    return tuple(actions)


def measure(record: EnvRecord, episodes: int, rounds: int) -> Cost:
    """Interleaved rounds of both sides, after a check that they give the same."""
    plain, guarded = plain_side(record), guarded_side(record)
    played = episodes_of(plain, episodes)
    if plain.play(played) != guarded.play(played):
        raise SystemExit(f"{record.entry}: plain Python and the policy do not give the same")
    times: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
    order = [0, 1]
    rng = random.Random(0)
    for _ in range(rounds):
        rng.shuffle(order)
        for which in order:
            gc.collect()
            times[which].append((plain, guarded)[which].time(played))
    middle = [
        statistics.median(column) for which in (0, 1) for column in zip(*times[which], strict=True)
    ]
    return Cost(*middle)


def main() -> int:
    """Print a line an environment and one over all; 1 when the ratio over all is above the goal."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=_positive, default=15)
    parser.add_argument("--episodes", type=_positive, default=20)
    parser.add_argument(
        "--goal", type=float, default=1.3, help="ratio over all that must not be exceeded"
    )
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, {platform.machine()}; CPU time, medians of {options.rounds} rounds"
    )
    print(
        f"{'environment':<20}{'steps us':>10}{'guarded':>10}{'x':>6}{'resets us':>12}{'guarded':>12}{'x':>6}"
    )
    snapshot = Snapshot.open(bundled_root())
    costs = []
    for entry in snapshot:
        record = snapshot.spec(entry.digest).record
        cost = measure(record, options.episodes, options.rounds)
        costs.append(cost)
        _print_row(entry.env_id.split("/")[-1], cost)
    total = Cost(*(sum(getattr(cost, name) for cost in costs) for name in Cost.__slots__))
    _print_row("all", total)
    ratio = (total.guarded_steps + total.guarded_resets) / (total.plain_steps + total.plain_resets)
    typical = statistics.median(cost.guarded_steps / cost.plain_steps for cost in costs)
    print(f"steps and resets over all: {ratio:.2f}x; median environment's steps: {typical:.2f}x")
    return 0 if ratio <= options.goal else 1


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _print_row(name: str, cost: Cost) -> None:
    steps = (cost.plain_steps, cost.guarded_steps)
    resets = (cost.plain_resets, cost.guarded_resets)
    cells = "".join(
        f"{a / 1000:>{wide}.0f}{b / 1000:>{wide}.0f}{b / a:>6.2f}"
        for (a, b), wide in ((steps, 10), (resets, 12))
    )
    print(f"{name:<20}{cells}")


if __name__ == "__main__":
    sys.exit(main())
