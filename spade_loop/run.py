"""A run from its config to its report: puts the pieces together, owns what has to be closed."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from spade_loop.backends.weights import load_policy
from spade_loop.backends.writers import make_writers
from spade_loop.config import Config
from spade_loop.errors import WorldError
from spade_loop.exhaustion import explained
from spade_loop.inputs import Inputs, interrupted_run, new_run
from spade_loop.loop import Loop
from spade_loop.progress import Progress, Silent
from spade_loop.rehearsal import Rehearsal
from spade_loop.report.page import write_report
from spade_loop.schedule import Schedule
from spade_loop.state import RunDirectory
from spade_loop.trainer import Checkpoints, train
from spade_loop.world import World, hear, joined, launched, outlive, telling
from synthgym.sandbox import Pool

SCRATCH = ".trainer"
"""Where TRL writes a checkpoint before it is committed; empty between iterations."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What the leader tells the other ranks to do."""

    config: Config
    checkpoints: Checkpoints


def start(config: Config, path: Path, progress: Progress) -> Path:
    """Start a run in `path` and take it to its last iteration; the path of its report.

    Under a launcher (torchrun, `accelerate launch`) every process calls this, and the first one leads.
    """
    return _help() if launched()[0] else go_on(new_run(config, path), progress)


def resume(path: Path, progress: Progress) -> Path:
    """Take an interrupted run to its last iteration; the path of its report. Under a launcher as `start`."""
    return _help() if launched()[0] else go_on(interrupted_run(path), progress)


def go_on(inputs: Inputs, progress: Progress) -> Path:
    """Take a run to its last iteration; the path of its report. Under a launcher its first process calls this.

    The directory of a new run is made when everything is loaded: a model that is not there leaves nothing behind.
    """
    with joined() as world:
        if inputs.state.iteration < Schedule.of(inputs.config).steps:
            with explained(inputs.directory.path):
                _lead(inputs, progress, world)
        with telling(world):
            report = write_report(inputs.directory.path)
        world.broadcast(report)
        return report


def assist() -> None:
    """What every process of a launcher does but the first, and nothing after it.

    When the run fails it goes last: the launcher ends all when one goes, and the leader has to tidy up.
    """
    with joined() as world:
        try:
            _follow(world)
        except WorldError:
            outlive(world)
            raise


def _help() -> Path:
    with joined() as world:
        return _follow(world)


def _follow(world: World) -> Path:
    """Help the leader to its last iteration; the path of its report. `WorldError` when it fails."""
    told = hear(world)
    if isinstance(told, _Task):
        config, checkpoints = told.config, told.checkpoints
        policy = load_policy(config.policy)
        train(policy, None, config, checkpoints=checkpoints, progress=Silent(), world=world)
        told = hear(world)
    report: Path = told
    return report


def _lead(inputs: Inputs, progress: Progress, world: World) -> None:
    config, directory = inputs.config, inputs.directory
    with ExitStack() as stack:
        with telling(world):
            progress.phase("load", 1)
            writers = make_writers(config.designers)
            policy = load_policy(config.policy)
            sandbox = config.sandbox
            pool = stack.enter_context(
                Pool(require=sandbox.require, max_workers=sandbox.max_workers)
            )
            shown = inputs.demonstrations
            rehearsal = None if shown is None else Rehearsal(shown, policy.chat, config)
            loop = Loop(
                config,
                directory,
                inputs.library,
                inputs.corpus,
                pool,
                progress,
                writers,
                rehearsal,
            )
            progress.advance(1)
            if not inputs.begun:
                # Kept by name: the lock on the run is held for as long as this object lives.
                directory = RunDirectory.create(directory.path, config)
            scratch = directory.path / SCRATCH
            shutil.rmtree(scratch, ignore_errors=True)
        checkpoints = Checkpoints(scratch, inputs.checkpoint)
        world.broadcast(_Task(config, checkpoints))
        train(policy, loop, config, checkpoints=checkpoints, progress=progress, world=world)
    shutil.rmtree(scratch, ignore_errors=True)
