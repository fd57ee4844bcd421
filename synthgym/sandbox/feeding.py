"""From the queues of sources to their workers: loading first, then the work, one message a worker."""

from __future__ import annotations

from synthgym.sandbox.code_cache import CodeCache
from synthgym.sandbox.hosting import Hosts
from synthgym.sandbox.link import Link
from synthgym.sandbox.results import EnvFault
from synthgym.sandbox.source import Source


class Feeder:
    """Fills outboxes. Not thread-safe: the engine's lock guards it."""

    def __init__(self, hosts: Hosts, cache: CodeCache) -> None:
        self._hosts = hosts
        self._cache = cache
        self._unsent: dict[Link, None] = {}
        """Workers with something in the outbox: one message for all that a turn has for them."""

    def feed(self, source: Source) -> None:
        """Give a source's queue to its worker; find or start one first.

        `SandboxError` when that cannot be done.
        """
        fault = source.refusal()
        if fault is not None:
            source.fail_queue(fault)
        if not source.queue:
            return
        link = source.link or self._hosts.place(source)
        if link is None:
            self._hosts.waiting[source] = None
            return
        if link.isolation is None or link.flying:
            return  # whoever waits for it comes back here
        if not source.posted:
            source.posted = True
            if source.checked is None:
                source.checked = self._cache.get(source.record.source, source.record.base)
            if isinstance(source.loaded, EnvFault):
                source.loaded = None  # that may have been a matter of time or memory: once more
            link.loading = True
            link.outbox += source.load_requests(link)
            self._unsent[link] = None
        elif source.ready:
            self._give(source, link)

    def feed_waiting(self) -> None:
        """Go on with the sources that had no worker, as far as there is room now. Errors as `feed`."""
        waiting = self._hosts.waiting
        for source in list(waiting):
            if self._hosts.closed:
                break
            self.feed(source)
            if not source.queue or (source.link is not None and not source.ready):
                waiting.pop(source, None)
            elif source.link is None:  # still no room, and it stays first in line
                break

    def flush(self) -> None:
        """Send what has been gathered for each worker."""
        for link in self._unsent:
            link.flush()
        self._unsent.clear()

    def take_loads(self, link: Link) -> None:
        """Go on with the sources that a worker has loaded or failed to load. Errors as `feed`."""
        for source in list(link.hosted):
            if source.compiled_here and source.checked is not None:
                source.compiled_here = False
                # Who shares its worker with others might have been meddled with by one of them.
                self._cache.put(
                    source.record.source,
                    source.checked,
                    lasting=link.programs == 1,
                    base=source.record.base,
                )
            if isinstance(source.loaded, EnvFault):
                source.strike(source.loaded)
                source.fail_queue(source.loaded)
            elif source.ready:
                self.feed(source)
        link.loading = any(
            source.posted and not source.ready and not isinstance(source.loaded, EnvFault)
            for source in link.hosted
        )

    def _give(self, source: Source, link: Link) -> None:
        """Give a source's queue to the worker that has loaded it."""
        if not link.idle and self._hosts.waiting.keys() - {source}:
            # Or a worker that always has something to do would never make room for others.
            self._hosts.waiting[source] = None
            return
        link.outbox += source.drop_requests(link)
        while source.queue:
            link.outbox += source.queue.popleft().requests(link)
        self._unsent[link] = None
