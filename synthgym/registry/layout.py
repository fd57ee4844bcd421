"""Where the files of a snapshot are, how large they may be, and how they are read.

    manifest.json                        canonical JSON; the only file that `open` reads
    envs/<Name>/v<N>/env.py              the source, verbatim
    envs/<Name>/v<N>/spec.json           record and annotations
    envs/<Name>/v<N>/report.json         what validation found (optional)
    envs/<Name>/v<N>/card.json           what the author wrote by hand (optional)
    README.md                            for people; not part of the snapshot (optional)

A snapshot may come from a stranger. Paths are made here from checked names, never taken from the
manifest; links are not followed; nothing is read beyond its cap.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from synthgym.contract import MAX_DIALECT_BYTES
from synthgym.errors import IntegrityError, SnapshotError
from synthgym.ids import is_name

MANIFEST: Final = "manifest.json"
README: Final = "README.md"
ENVS: Final = "envs"
SOURCE: Final = "env.py"
SPEC: Final = "spec.json"
REPORT: Final = "report.json"
CARD: Final = "card.json"

MAX_MANIFEST_BYTES: Final = 4 * 1024 * 1024
MAX_ENTRIES: Final = 10_000
FILE_CAPS: Final = {
    SOURCE: MAX_DIALECT_BYTES,
    SPEC: 256 * 1024,
    REPORT: 1024 * 1024,
    CARD: 16 * 1024,
}
"""Largest size in bytes of each file of an environment."""
REQUIRED_FILES: Final = frozenset({SOURCE, SPEC})

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe that a stranger put there must not wait for a writer.
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def env_parts(name: str, version: int) -> tuple[str, str, str]:
    """Return the folder of an environment as path components; `SnapshotError` for a bad name."""
    if not is_name(name) or not 0 <= version < 1_000_000:
        raise SnapshotError(f"an environment cannot be named {name!r} with version {version!r}")
    return (ENVS, name, f"v{version}")


def read_file(root: Path, parts: tuple[str, ...], cap: int) -> bytes:
    """Return the bytes of a regular file under `root`.

    `IntegrityError` when it is missing, a link, anything but a file, or larger than `cap` bytes; so
    is any folder on the way that is a link. Only `root` itself may be reached through links.
    """
    shown = "/".join(parts)
    try:
        handle = _open(root, parts)
    except OSError as error:
        raise IntegrityError(
            f"{root}: cannot read {shown}: expected a regular file (no link), {error.strerror}"
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise IntegrityError(f"{root}: {shown} is not a regular file")
    with os.fdopen(handle, "rb") as file:
        data = file.read(cap + 1)
    if len(data) > cap:
        raise IntegrityError(f"{root}: {shown} is larger than the {cap} bytes it may have")
    return data


def _open(root: Path, parts: tuple[str, ...]) -> int:
    """Open one component after the other, so that no link on the way is followed."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE_FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def bundled_root(package: Path | None = None) -> Path:
    """Return the folder of the environments that come with synthgym.

    In an installed wheel it is `synthgym/bundled`, in an editable install the repository's
    `registry`. `package` is the folder of the package, synthgym's own unless given (for tests).
    `SnapshotError` when neither is there.
    """
    package = Path(__file__).resolve().parents[1] if package is None else package
    bundled = package / "bundled"
    if bundled.is_dir():
        return bundled
    repository = package.parent
    # A folder named `registry` beside site-packages/synthgym would be somebody else's.
    if (repository / "registry").is_dir() and (repository / "pyproject.toml").is_file():
        return repository / "registry"
    raise SnapshotError(
        f"no bundled environments: neither {bundled} nor {repository / 'registry'} is there; "
        "reinstall synthgym"
    )
