"""Which index of a remote was the newest that this user has seen, so that none goes back in time.

    <state>/serials/<SHA-256 of the remote>/<serial>-<SHA-256 of the index>

The names are all there is: the files are empty. To note a serial is to make a file, and a file is
removed only when one with a higher serial stands beside it. So the highest never goes away, whoever
else writes at the same time, and no lock is needed: on many network file systems there is none.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synthgym.atomic import sync_folder
from synthgym.errors import ConfigError, TrustError
from synthgym.publishing.index import MAX_SERIAL, Index

_NAME: Final = re.compile(r"(\d{16})-([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Seen:
    """An index that was seen."""

    serial: int
    digest: str
    """`sha256:<hex>` of its file."""

    @property
    def _name(self) -> str:
        return f"{self.serial:016d}-{self.digest.removeprefix('sha256:')}"


class Serials:
    """What this user has seen of each remote. Processes may share a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else state_folder() / "serials"

    def seen(self, remote: str) -> Seen | None:
        """Return the newest index of a remote that was noted; None when there is none."""
        return max(self._all(remote), default=None)

    def check(self, remote: str, index: Index) -> None:
        """Return when `index` may follow what was seen; `TrustError` for one that goes back in time.

        It may not have a lower serial, nor other content under the same serial, nor be the very next
        one and name another predecessor than the one seen.
        """
        came = Seen(index.serial, index.digest)
        if not 1 <= came.serial <= MAX_SERIAL:
            raise ConfigError(
                f"an index that was published has serial 1 at least, got {came.serial}"
            )
        for seen in self._all(remote):
            if came.serial < seen.serial:
                self._refuse(remote, f"has serial {came.serial}, but {seen.serial} was seen before")
            if came.serial == seen.serial and came.digest != seen.digest:
                self._refuse(remote, f"has serial {came.serial} with other content than before")
            if came.serial == seen.serial + 1 and index.previous != seen.digest:
                self._refuse(remote, f"does not follow on the one of serial {seen.serial}")

    def note(self, remote: str, index: Index) -> None:
        """Check an index, then remember it; `TrustError` as `check` says.

        Only for an index whose signature was checked where one is required: a false one with a high
        serial would shut out all true ones.
        """
        self.check(remote, index)
        came = Seen(index.serial, index.digest)
        folder = self._of(remote)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / came._name).touch(mode=0o600)
            sync_folder(folder)
        except OSError as error:
            raise ConfigError(
                f"cannot remember the index of {remote} in {folder}: {error.strerror}; name a folder "
                "that can be written in SYNTHGYM_STATE"
            ) from error
        for old in self._all(remote):  # others may have noted theirs meanwhile
            if old.serial == came.serial and old.digest != came.digest:
                self._refuse(remote, f"has serial {came.serial} with two contents")
            if old.serial < came.serial:
                (folder / old._name).unlink(missing_ok=True)

    def _all(self, remote: str) -> list[Seen]:
        folder = self._of(remote)
        try:
            names = [path.name for path in folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"cannot read {folder}: {error.strerror}") from error
        found = map(_NAME.fullmatch, names)
        return [Seen(int(match[1]), f"sha256:{match[2]}") for match in found if match]

    def _of(self, remote: str) -> Path:
        """Return the folder of a remote. Its name is a hash: a URL may hold a password."""
        return self._folder / hashlib.sha256(remote.rstrip("/").encode()).hexdigest()

    def _refuse(self, remote: str, reason: str) -> None:
        raise TrustError(
            f"rollback: the index of {remote} {reason}. Somebody shows you an old or another state "
            f"of it. If its owner has begun anew on purpose, remove {self._of(remote)}"
        )


def state_folder() -> Path:
    """Return `~/.local/state/synthgym`, or what the environment names instead.

    `SYNTHGYM_STATE` names the folder, `XDG_STATE_HOME` the one above `synthgym`.
    """
    named = os.environ.get("SYNTHGYM_STATE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise ConfigError("there is no home folder: name one in SYNTHGYM_STATE") from error
    return home / "synthgym"
