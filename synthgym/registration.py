"""The Gymnasium side of a snapshot: ids in `gymnasium.registry`, and the entry points they name.

An id's kwargs are JSON: the digest, and the snapshot when it is not the bundled one, as a path or as a
reference that is pinned to its content. So a spec travels through JSON and into other processes, which find
the entry points by their names as text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from synthgym.envs import SynthEnv, SynthVectorEnv
from synthgym.errors import ConfigError, EnvNotFoundError, SnapshotError
from synthgym.registry import Entry, Snapshot, bundled_root
from synthgym.registry.files import is_there
from synthgym.registry.layout import MANIFEST
from synthgym.spec import SynthEnvSpec

_ENTRY_POINT = "synthgym.registration:make_env"
_VECTOR_ENTRY_POINT = "synthgym.registration:make_vector_env"
_GROUP: Final = "synthgym.snapshots"
REGISTERED: Final = 20_000
"""Environments that `register_snapshot` registers at once, unless told otherwise."""


def register_snapshot(
    snapshot: str | Path | Snapshot, *, on_conflict: str = "error", limit: int | None = REGISTERED
) -> list[str]:
    """Make every environment of a snapshot known to `gymnasium.make`; their ids, in its order.

    `snapshot` is a folder, a packed file, or a reference (`games@1.2.0`, `games@sha256:...`, `hf://org/games`),
    which is pulled when it is not here yet. No source is read. Each environment is registered as
    `synthgym/<Name>-v<N>` and under its content-pinned id. Doing it twice is fine. An id that already stands
    for another content is a `ConfigError`, and then nothing of the snapshot is registered; with
    `on_conflict="pinned"` such an environment gets its pinned id only. More than `limit` environments are a
    `ConfigError` too: see `env_spec` for those.
    """
    if on_conflict not in ("error", "pinned"):
        raise ConfigError(f"on_conflict must be error or pinned, got {on_conflict!r}")
    opened, place = _opened(snapshot)
    if limit is not None and len(opened) > limit:
        raise ConfigError(
            f"{opened.path} holds {len(opened)} environments, more than {limit}: Gymnasium looks through "
            "all ids at every call. Make single ones with gymnasium.make(env_spec(snapshot, id)) from "
            "synthgym.registration, register a part (synthgym snapshot filter), or pass limit=None"
        )
    specs: dict[str, EnvSpec] = {}
    ids: list[str] = []
    for entry in opened:
        env_id, pinned = entry.env_id, entry.pinned_id
        found = env_id
        if pinned in specs:
            raise ConfigError(
                f"{opened.path} holds two contents that both are {pinned}: that is no accident, for pinned "
                "ids have 48 bits. Do not use it"
            )
        if not _is_registered(pinned, entry.digest):
            specs[pinned] = _env_spec(pinned, entry, place)
        try:
            if not _is_registered(env_id, entry.digest):
                specs[env_id] = _env_spec(env_id, entry, place)
        except ConfigError:
            if on_conflict == "error":
                raise
            found = pinned
        ids.append(found)
    # Direct insertion: `gymnasium.register` scans the whole registry at every call.
    gymnasium.registry.update(specs)
    return ids


def env_spec(snapshot: str | Path | Snapshot, id_or_digest: str) -> EnvSpec:
    """The `EnvSpec` of one environment: `gymnasium.make` takes it, and nothing is registered.

    `EnvNotFoundError` when the snapshot does not hold it.
    """
    opened, place = _opened(snapshot)
    entry = opened.entry(id_or_digest)
    return _env_spec(entry.pinned_id, entry, place)


def register_bundled() -> list[str]:
    """Register the snapshot that comes with the package, and those of installed packages; all ids.

    A package offers one by an entry point of the group `synthgym.snapshots`, whose value is a path, a
    function that returns one, or a package with a folder `snapshot`. A snapshot that cannot be read is a
    `RuntimeWarning`, not an error, so that the tools that examine it still start.
    """
    ids: list[str] = []
    for what, find in (("the bundled environments", _bundled_snapshot), *_installed()):
        try:
            place = find()
            ids += [] if place is None else register_snapshot(place)
        except Exception as error:  # noqa: BLE001 -- what a package does must not break the import of ours
            warnings.warn(f"{what} are not registered: {error}", RuntimeWarning, stacklevel=2)
    return ids


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
            f"the snapshot has {digest}: a name and version stand for one content for ever. "
            'Register with on_conflict="pinned" and use the pinned id, or give the new one the next '
            "version (synthgym snapshot merge --on-conflict renumber does)"
        )
    return True


def _opened(snapshot: str | Path | Snapshot) -> tuple[Snapshot, str | None]:
    """The snapshot, and how another process finds it: None for the bundled one."""
    if isinstance(snapshot, Snapshot):
        opened = snapshot
    elif isinstance(snapshot, Path) or is_there(snapshot):
        opened = Snapshot.open(Path(snapshot))
    else:
        opened = Snapshot.open(_located(snapshot))
        # By content, and where it came from: a process on another machine pulls what this one has.
        origin, _, _ = snapshot.partition("#")
        pinned = f"{opened.name}@{opened.digest}"
        return opened, f"{origin}#{pinned}" if "://" in origin else pinned
    place = opened.path.resolve()
    return opened, None if place == _bundled() else str(place)


def _located(reference: str) -> Path:
    # Most who make environments never pull: what talks to registries is imported when it is needed.
    from synthgym.publishing import locate

    return locate(reference)


def _bundled_snapshot() -> Path | None:
    root = _bundled()
    return root if root is not None and (root / MANIFEST).is_file() else None


def _installed() -> list[tuple[str, Callable[[], Path]]]:
    """What installed packages offer, by a name for messages."""
    try:
        points = entry_points(group=_GROUP)
    except Exception as error:  # noqa: BLE001 -- whatever the metadata of some other package comes to
        message = f"the environments of installed packages are not registered: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        return []
    return [(f"the environments of {point.value}", partial(_of_package, point)) for point in points]


def _of_package(point: EntryPoint) -> Path:
    found = point.load()
    if isinstance(found, ModuleType):
        return Path(*found.__path__) / "snapshot"
    return Path(found() if callable(found) else found)


def _bundled() -> Path | None:
    """The folder of the bundled snapshot; None when the package holds none."""
    try:
        return bundled_root().resolve()
    except SnapshotError:
        return None


@lru_cache(maxsize=1024)
def _read_spec(digest: str, place: str) -> SynthEnvSpec:
    try:
        return _open_snapshot(place).spec(digest)
    except EnvNotFoundError:
        _open_snapshot.cache_clear()  # the folder may have gained entries since it was opened
        return _open_snapshot(place).spec(digest)


@lru_cache(maxsize=16)
def _open_snapshot(place: str) -> Snapshot:
    return Snapshot.open(Path(place) if is_there(place) else _located(place))
