"""What a run starts from, opened and checked.

Everything that a user names is refused here, or when the model is loaded: before anything is written. Nothing here
imports torch, so that a mistake is told at once.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from spade_loop.backends.weights import check_gpu, check_model
from spade_loop.config import Config
from spade_loop.corpus import Corpus
from spade_loop.curriculum import RlvePackage
from spade_loop.demonstrations import Demonstrations, read_demonstrations
from spade_loop.design.dialects import make_dialect
from spade_loop.errors import ConfigError, MissingExtraError, RunStateError
from spade_loop.library import Library
from spade_loop.state import RunDirectory, RunState
from synthgym.envs import SynthEnv
from synthgym.errors import IntegrityError, SnapshotError
from synthgym.ids import did_you_mean
from synthgym.registry import Snapshot, bundled_root, check_name
from synthgym.spec import SynthEnvSpec


@dataclass(frozen=True, slots=True)
class Inputs:
    """A run that can begin, or go on."""

    config: Config
    directory: RunDirectory
    state: RunState
    library: Library
    corpus: Corpus
    begun: bool
    """Whether the directory is there already."""
    demonstrations: Demonstrations | None = None
    """What every update rehearses."""

    @property
    def checkpoint(self) -> Path | None:
        """The newest checkpoint; None before the first iteration is complete."""
        latest = self.directory.latest
        return None if latest is None else latest / "checkpoint"


def new_run(config: Config, path: Path) -> Inputs:
    """A run that is to begin in `path`. Writes nothing; raises for whatever the config names and is not there."""
    directory = RunDirectory.vacant(path)
    library, corpus, shown = _open(config)
    return Inputs(config, directory, RunState(), library, corpus, begun=False, demonstrations=shown)


def interrupted_run(path: Path) -> Inputs:
    """The run in `path`, brought back to its last complete iteration. `RunStateError` when it cannot go on."""
    directory = RunDirectory.open(path)
    config, state = directory.config(), directory.load_state()
    library, corpus, shown = _open(config)
    if shown is not None and state.rehearsal not in ("", shown.digest):
        raise RunStateError(
            f"{config.rehearsal.rows} has changed since the run began, which rehearses its rows: put the file back as "
            "it was, or start a new run"
        )
    corpus.draw(state.cursor, 0, np.random.default_rng(0))  # refuses a cursor of another corpus
    latest = directory.latest
    if latest is not None:
        if not (latest / "checkpoint").is_dir():
            raise RunStateError(f"{latest / 'checkpoint'} is missing: the run cannot be resumed")
        library.restore(Snapshot.open(latest / "snapshot"), state.records)
        # A kill between the commit and the copy of its snapshot leaves an older one at the top.
        library.write(path / "snapshot", name=config.name, version=f"0.0.{state.iteration}")
    return Inputs(config, directory, state, library, corpus, begun=True, demonstrations=shown)


def _open(config: Config) -> tuple[Library, Corpus, Demonstrations | None]:
    """Registry snapshot, every byte of it verified, corpus, demonstrations. The model's whereabouts are checked too."""
    make_dialect(config.designer)  # refuses a family that does not exist
    try:
        check_name(config.name)
    except SnapshotError as error:
        raise ConfigError(f"name, which names the run's snapshot as well: {error}") from error
    _check_trackers(config.trainer.report_to)
    corpus = Corpus.load(Path(config.corpus.path) if config.corpus.path else None)
    rows = config.rehearsal.rows if config.rehearsal.share > 0 else ""
    shown = read_demonstrations(Path(rows)) if rows else None
    check_gpu(config.policy)
    check_model(config.policy)
    library = Library.start(_verified(config.registry))
    if config.curriculum.rlve:
        library.include(_rlve(config))
    return library, corpus, shown


TRACKERS: Final = {
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    "trackio": "trackio",
    "mlflow": "mlflow",
    "swanlab": "swanlab",
    "comet_ml": "comet_ml",
    "clearml": "clearml",
}
"""What `trainer.report_to` may name, and the package that it needs: the trackers of transformers that are in use."""


def _check_trackers(names: Sequence[str]) -> None:
    for name in names:
        if name not in TRACKERS:
            raise ConfigError(
                f"trainer.report_to: unknown tracker {name!r}{did_you_mean(name, TRACKERS)} "
                f"(known: {', '.join(TRACKERS)})"
            )
        if importlib.util.find_spec(TRACKERS[name]) is None:
            raise MissingExtraError(
                f"trainer.report_to: {name} needs the package {TRACKERS[name]}: pip install {TRACKERS[name]}"
            )


def _rlve(config: Config) -> Iterator[SynthEnvSpec]:
    """The environments of rlve-gym that the recipe names, at every difficulty."""
    package = RlvePackage.installed()
    for name in config.curriculum.rlve:
        for difficulty in range(config.curriculum.hardest + 1):
            yield package.spec(name, difficulty)


def _verified(registry: str) -> Snapshot:
    """The snapshot to start from. `IntegrityError` names the first file that is not as the manifest promises."""
    root = Path(registry) if registry else bundled_root()
    if not root.is_dir():
        raise ConfigError(
            f"registry: there is no directory {root}; give a folder that holds manifest.json, "
            "or leave it empty for the bundled snapshot"
        )
    snapshot = Snapshot.open(root)
    problems = snapshot.verify()
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise IntegrityError(
            f"{problems[0]}{more}; `synthgym snapshot verify {root}` lists what differs"
        )
    for entry in snapshot:
        SynthEnv(snapshot.spec(entry.digest)).close()  # refuses what this version cannot play
    return snapshot
