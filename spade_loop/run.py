"""A run from its config to its report: puts the pieces together, owns what has to be closed."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from spade_loop.backends.weights import load_policy
from spade_loop.config import Config
from spade_loop.corpus import Corpus
from spade_loop.errors import RunStateError
from spade_loop.library import Library
from spade_loop.loop import Loop
from spade_loop.progress import Progress
from spade_loop.report.page import write_report
from spade_loop.state import RunDirectory
from spade_loop.trainer import train
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import Pool

logger = logging.getLogger(__name__)

SCRATCH = ".trainer"
"""Where TRL writes a checkpoint before it is committed; empty between iterations."""


def start(config: Config, path: Path, progress: Progress) -> Path:
    """Start a run in `path` and take it to its last iteration; the path of its report."""
    # What the user named is looked at before anything is written.
    library, corpus = open_inputs(config)
    return _go_on(config, RunDirectory.create(path, config), library, corpus, progress)


def resume(path: Path, progress: Progress) -> Path:
    """Take an interrupted run to its last iteration; the path of its report."""
    directory = RunDirectory.open(path)
    config = directory.config()
    library, corpus = open_inputs(config)
    return _go_on(config, directory, library, corpus, progress)


def open_inputs(config: Config) -> tuple[Library, Corpus]:
    """What a config names: the registry snapshot, every byte of it verified, and the corpus."""
    snapshot = Snapshot.open(Path(config.registry) if config.registry else bundled_root())
    return Library.start(snapshot), Corpus.load(
        Path(config.corpus.path) if config.corpus.path else None
    )


def _go_on(
    config: Config, directory: RunDirectory, library: Library, corpus: Corpus, progress: Progress
) -> Path:
    done = directory.load_state().iteration
    if done < config.iterations:
        scratch = directory.path / SCRATCH
        shutil.rmtree(scratch, ignore_errors=True)
        latest = directory.latest
        checkpoint = None if latest is None else latest / "checkpoint"
        if checkpoint is not None and not checkpoint.is_dir():
            raise RunStateError(f"{checkpoint} is missing: the run cannot be resumed")
        progress.phase("load", 1)
        policy = load_policy(config.policy)
        with Pool() as pool:
            loop = Loop(config, directory, library, corpus, pool, progress)
            progress.advance(1)
            train(policy, loop, config, scratch=scratch, resume=checkpoint, progress=progress)
        shutil.rmtree(scratch, ignore_errors=True)
    return write_report(directory.path)
