"""What environments of rlve-gym do, as traces of the novelty memory.

They are no synthgym environments, so they run in processes of this benchmark and outside of the
sandbox: the package was installed by whoever runs it, and the copies are ours. One problem a seed;
an answer ends it. What takes longer than three seconds of CPU, or raises, has no trace.

    echo '[["name", "source"], ...]' | python benchmarks/rlve_traces.py FOLDER    # prints {"name": [...] or null}
"""

from __future__ import annotations

import copy
import importlib
import json
import multiprocessing
import random
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from synthgym.memory.behaviour import FIXED, SEEDS, Moment, Trace, trace_of

SECONDS: Final = 3
PATIENCE: Final = 20
"""Seconds on the clock; a process that sleeps uses no CPU."""


def traces(sources: Mapping[str, tuple[str, str]], root: Path) -> dict[str, Trace | None]:
    """Run sources, given by key with the name of their file, in another process; a trace by key."""
    tasks = [[key, file, source] for key, (file, source) in sources.items()]
    done = subprocess.run(
        [sys.executable, __file__, str(root)],
        input=json.dumps(tasks),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # tracebacks of copies that no longer run
        text=True,
        check=True,
    )
    found: dict[str, list[str] | None] = json.loads(done.stdout.splitlines()[-1])
    return {key: None if parts is None else Trace(*parts) for key, parts in found.items()}


def _parameter(file: str) -> dict[str, Any]:
    """The first parameters of an environment's own controller."""
    name = file.split("/")[-2]
    module = importlib.import_module(f"Gym.parameter_controllers.{name}.parameter_controller")
    kinds = [
        item
        for key, item in vars(module).items()
        if key.endswith("ParameterController") and item.__module__ == module.__name__
    ]
    parameters: list[dict[str, Any]] = kinds[0]().get_parameter_list()
    return parameters[0]


def _episode(kind: Any, parameter: dict[str, Any], seed: int) -> list[Moment]:
    env = kind()
    env.seed, env.parameter = seed, copy.deepcopy(parameter)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 -- what the package itself does
    env._generate()
    first, last = env.answer_markers
    moments = [Moment(str(env.prompt_generator()))]
    for answer in FIXED:
        try:
            reward = float(env.scorer(f"{first}{answer}{last}"))
        except Exception:  # noqa: BLE001 -- the package counts it as the worst score, too
            reward = -1.0
        moments.append(Moment("", ("+" if reward > 0 else "-" if reward < 0 else "0") + "!"))
    return moments


def _run(file: str, source: str, pipe: Connection) -> None:
    """In a process of its own: send the parts of a trace."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    module = ModuleType("copy")
    exec(compile(source, file, "exec"), vars(module))  # noqa: S102 -- see above
    base = importlib.import_module("Gym.environment").VerifiableEnvironment
    kinds = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, base) and item is not base
    ]
    parameter = _parameter(file)
    trace = trace_of([_episode(kinds[-1], parameter, seed) for seed in SEEDS])
    pipe.send_bytes(json.dumps([trace.outcomes, trace.numbers, trace.pattern]).encode())


def _trace(file: str, source: str) -> list[str] | None:
    """The parts of a trace; None when the process ended without one."""
    context = multiprocessing.get_context("fork")  # what is imported is there already
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(file, source, theirs))
    process.start()
    theirs.close()
    try:
        parts: list[str] | None = json.loads(ours.recv_bytes()) if ours.poll(PATIENCE) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()
        ours.close()
    return parts


def main(arguments: Sequence[str]) -> None:
    """Read tasks, print traces."""
    sys.path.insert(0, arguments[0])
    sys.setrecursionlimit(10_000)
    importlib.import_module("Gym.environment")
    importlib.import_module("Gym.parameter_controllers")
    tasks = json.load(sys.stdin)
    print(json.dumps({key: _trace(file, source) for key, file, source in tasks}))


if __name__ == "__main__":
    main(sys.argv[1:])
