"""Waiting for many descriptors at once: epoll where there is one, else poll."""

from __future__ import annotations

import math
import select
import sys


class Poller:
    """Descriptors that are waited on for reading, and for writing where asked for."""

    def __init__(self) -> None:
        self._epoll = select.epoll() if sys.platform == "linux" else None
        self._poll = None if sys.platform == "linux" else select.poll()

    def add(self, descriptor: int) -> None:
        """Wait for `descriptor` to be readable."""
        (self._epoll or self._poll).register(descriptor, select.POLLIN)  # type: ignore[union-attr]

    def change(self, descriptor: int, *, writing: bool) -> None:
        """Say whether to wait for room to write as well."""
        events = select.POLLIN | (select.POLLOUT if writing else 0)
        (self._epoll or self._poll).modify(descriptor, events)  # type: ignore[union-attr]

    def remove(self, descriptor: int) -> None:
        """Forget a descriptor that is still open."""
        (self._epoll or self._poll).unregister(descriptor)  # type: ignore[union-attr]

    def wait(self, seconds: float) -> list[tuple[int, int]]:
        """(descriptor, events) of those that are ready, within `seconds`."""
        if self._epoll is not None:
            try:
                return self._epoll.poll(seconds)
            except ValueError:
                if self._epoll.closed:  # by another thread, just now
                    return []
                raise
        assert self._poll is not None
        return self._poll.poll(math.ceil(seconds * 1000))

    def close(self) -> None:
        """Give the kernel's object back; twice is fine."""
        if self._epoll is not None:
            self._epoll.close()
