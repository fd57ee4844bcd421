"""The folder of a snapshot that a user names: where `register_snapshot` and the commands take it from."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from synthgym.errors import SynthGymError
from synthgym.publishing.lock import find_lock, read_lock
from synthgym.publishing.pull import pull

_PINNED = "@sha256:"


def locate(reference: str) -> Path:
    """The folder of a reference, pulled when it is not on this machine.

    A `synthgym.lock` of this folder, or of one above, says what its references come to. What is pinned to
    content is looked for on this machine first: nothing has to be asked to know what it is.
    """
    found = find_lock()
    lock = None if found is None else read_lock(found)
    if _PINNED in reference:
        with suppress(SynthGymError):
            return pull(reference, lock=lock, offline=True)
    return pull(reference, lock=lock)
