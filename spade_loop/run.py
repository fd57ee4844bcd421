"""A run from its config to its report: puts the pieces together, owns what has to be closed."""

from __future__ import annotations

import shutil
from pathlib import Path

from spade_loop.backends.weights import load_policy
from spade_loop.config import Config
from spade_loop.inputs import Inputs, interrupted_run, new_run
from spade_loop.loop import Loop
from spade_loop.progress import Progress
from spade_loop.report.page import write_report
from spade_loop.state import RunDirectory
from spade_loop.trainer import train
from synthgym.sandbox import Pool

SCRATCH = ".trainer"
"""Where TRL writes a checkpoint before it is committed; empty between iterations."""


def start(config: Config, path: Path, progress: Progress) -> Path:
    """Start a run in `path` and take it to its last iteration; the path of its report."""
    return go_on(new_run(config, path), progress)


def resume(path: Path, progress: Progress) -> Path:
    """Take an interrupted run to its last iteration; the path of its report."""
    return go_on(interrupted_run(path), progress)


def go_on(inputs: Inputs, progress: Progress) -> Path:
    """Take a run to its last iteration; the path of its report.

    The directory of a new run is made when everything is loaded: a model that is not there leaves nothing behind.
    """
    config, directory = inputs.config, inputs.directory
    if inputs.state.iteration < config.iterations:
        progress.phase("load", 1)
        policy = load_policy(config.policy)
        sandbox = config.sandbox
        with Pool(require=sandbox.require, max_workers=sandbox.max_workers) as pool:
            loop = Loop(config, directory, inputs.library, inputs.corpus, pool, progress)
            progress.advance(1)
            if not inputs.begun:
                # Kept by name: the lock on the run is held for as long as this object lives.
                directory = RunDirectory.create(directory.path, config)
            scratch = directory.path / SCRATCH
            shutil.rmtree(scratch, ignore_errors=True)
            train(
                policy, loop, config, scratch=scratch, resume=inputs.checkpoint, progress=progress
            )
        shutil.rmtree(scratch, ignore_errors=True)
    return write_report(directory.path)
