"""The Gymnasium side of a snapshot: ids in `gymnasium.registry`, and the entry points they name.

An id's kwargs are JSON: the digest, and the snapshot's path when it is not the bundled one. So a
spec travels through JSON and into other processes, which find the entry points by their names as
text.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from synthgym.envs import SynthEnv, SynthVectorEnv
from synthgym.errors import ConfigError, EnvNotFoundError, SnapshotError
from synthgym.registry import Entry, Snapshot, bundled_root
from synthgym.registry.layout import MANIFEST
from synthgym.spec import SynthEnvSpec

_ENTRY_POINT = "synthgym.registration:make_env"
_VECTOR_ENTRY_POINT = "synthgym.registration:make_vector_env"


def register_snapshot(snapshot: str | Path | Snapshot) -> list[str]:
    """Make every environment of a snapshot known to `gymnasium.make`; their ids, in its order.

    Each is registered as `synthgym/<Name>-v<N>` and under its content-pinned id. Doing it twice is
    fine. An id that already stands for another content is a `ConfigError`, and then nothing of the
    snapshot is registered.
    """
    opened = snapshot if isinstance(snapshot, Snapshot) else Snapshot.open(Path(snapshot))
    folder = opened.path.resolve()
    path = None if folder == _bundled() else str(folder)
    specs: dict[str, EnvSpec] = {}
    ids: list[str] = []
    for entry in opened:
        ids.append(entry.env_id)
        for env_id in (entry.env_id, entry.pinned_id):
            if not _is_registered(env_id, entry.digest):
                specs[env_id] = _env_spec(env_id, entry, path)
    # Direct insertion: `gymnasium.register` scans the whole registry at every call.
    gymnasium.registry.update(specs)
    return ids


def register_bundled() -> list[str]:
    """Register the snapshot that comes with the package; its ids, none when there is no snapshot.

    A snapshot that cannot be read is a `RuntimeWarning`, not an error, so that the tools that
    examine it still start.
    """
    root = _bundled()
    if root is None or not (root / MANIFEST).is_file():
        return []
    try:
        return register_snapshot(root)
    except SnapshotError as error:
        warnings.warn(
            f"the bundled environments are not registered: {error}", RuntimeWarning, stacklevel=2
        )
        return []


def load_spec(digest: str, snapshot: str | None = None) -> SynthEnvSpec:
    """The environment of a digest, read and verified; bundled unless a snapshot is given.

    `EnvNotFoundError` when the snapshot does not hold it.
    """
    return _read_spec(digest, str(bundled_root()) if snapshot is None else snapshot)


class _MakeEnv:
    """Entry point of `gymnasium.make`."""

    metadata: ClassVar[dict[str, Any]] = SynthEnv.metadata  # `make` reads it from the creator

    def __call__(
        self, digest: str, snapshot: str | None = None, render_mode: str | None = None
    ) -> SynthEnv:
        """A `SynthEnv` of the content `digest`."""
        return SynthEnv(load_spec(digest, snapshot), render_mode=render_mode)


class _MakeVectorEnv:
    """Entry point of `gymnasium.make_vec`."""

    metadata: ClassVar[dict[str, Any]] = SynthVectorEnv.metadata

    def __call__(
        self,
        num_envs: int,
        digest: str,
        snapshot: str | None = None,
        *,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> SynthVectorEnv:
        """A `SynthVectorEnv` of the content `digest`."""
        return SynthVectorEnv(
            load_spec(digest, snapshot),
            num_envs,
            max_episode_steps=max_episode_steps,
            render_mode=render_mode,
            autoreset_mode=autoreset_mode,
        )


make_env = _MakeEnv()
make_vector_env = _MakeVectorEnv()


def _env_spec(env_id: str, entry: Entry, path: str | None) -> EnvSpec:
    kwargs = {"digest": entry.digest} | ({} if path is None else {"snapshot": path})
    return EnvSpec(
        id=env_id,
        entry_point=_ENTRY_POINT,
        vector_entry_point=_VECTOR_ENTRY_POINT,
        max_episode_steps=entry.max_turns,
        reward_threshold=1.0,
        kwargs=kwargs,
    )


def _is_registered(env_id: str, digest: str) -> bool:
    """Whether `env_id` already stands for `digest`; `ConfigError` when for anything else."""
    known = gymnasium.registry.get(env_id)
    if known is None:
        return False
    if known.kwargs.get("digest") != digest:
        raise ConfigError(
            f"{env_id} already stands for {known.kwargs.get('digest', known.entry_point)}, "
            f"the snapshot has {digest}: a name and version stand for one content for ever, "
            "so give the new one the next version"
        )
    return True


def _bundled() -> Path | None:
    """The folder of the bundled snapshot; None when the package holds none."""
    try:
        return bundled_root().resolve()
    except SnapshotError:
        return None


@lru_cache(maxsize=1024)
def _read_spec(digest: str, path: str) -> SynthEnvSpec:
    try:
        return _open_snapshot(path).spec(digest)
    except EnvNotFoundError:
        _open_snapshot.cache_clear()  # the folder may have gained entries since it was opened
        return _open_snapshot(path).spec(digest)


@lru_cache(maxsize=16)
def _open_snapshot(path: str) -> Snapshot:
    return Snapshot.open(Path(path))
