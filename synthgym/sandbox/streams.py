"""What every instance has for itself: its random streams and its virtual clock."""

from __future__ import annotations

import datetime
import hashlib
import random
import time
import weakref
from collections.abc import Callable
from typing import Any, Final

from synthgym.sandbox import names
from synthgym.sandbox.guards import FrozenModule, clock_class

_EPOCH: Final = 1_700_000_000.0
"""Where every virtual clock starts, in Unix seconds; any fixed moment would do."""
_TICK: Final = 0.001
"""Seconds that pass at each reading of a virtual clock."""

_GENERATOR_METHODS: Final = tuple(
    name for name in names.MODULES["random"] if name not in ("Random", "seed")
)


class Clock:
    """A clock that moves only when it is read or slept on."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def restart(self) -> None:
        """Back to the start."""
        self.elapsed = 0.0

    def read(self) -> float:
        """Unix seconds."""
        self.elapsed += _TICK
        return _EPOCH + self.elapsed

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self.elapsed += float(seconds)


class Streams:
    """The random streams of one instance, all derived from its seed.

    Generators that the source makes without a seed get derived ones, and get them again at each restart. Those made
    before the first restart and those made after it are numbered separately, so that every episode sees the same.
    """

    def __init__(self, seed: int) -> None:
        self.main = random.Random(seed)
        self.generator = _generator_class(self)
        self._seed = seed
        self._phase, self._count, self._serial = "made", 0, 0
        self._unseeded: dict[int, tuple[weakref.ref[random.Random], str]] = {}

    def restart(self, seed: int) -> None:
        """Seed every stream of the instance anew."""
        self._seed = seed
        self._phase, self._count = "episode", 0
        random.Random.seed(self.main, seed)
        for reference, label in list(self._unseeded.values()):
            generator = reference()
            if generator is not None:
                random.Random.seed(generator, self._derive(label))

    def next_seed(self) -> int:
        """A seed for what the source seeded with nothing."""
        return self._derive(self._next_label())

    def adopt(self, generator: random.Random) -> int:
        """Seed an unseeded generator, and again at each restart; returns the serial to release it with."""
        label = self._next_label()
        random.Random.seed(generator, self._derive(label))
        self._serial += 1
        serial, held = self._serial, self._unseeded
        held[serial] = (weakref.ref(generator, lambda _gone: held.pop(serial, None)), label)
        return serial

    def release(self, serial: int) -> None:
        """Leave a generator alone from now on: the source has seeded it."""
        self._unseeded.pop(serial, None)

    def _next_label(self) -> str:
        self._count += 1
        return f"{self._phase}:{self._count}"

    def _derive(self, label: str) -> int:
        digest = hashlib.sha256(f"{self._seed}:{label}".encode()).digest()
        return int.from_bytes(digest[:8], "big")


def _generator_class(streams: Streams) -> type[random.Random]:
    """`random.Random` for one instance: without a seed it draws a derived one, never the system's entropy."""

    class Random(random.Random):
        _serial: int

        def __new__(cls, *_args: Any, **_values: Any) -> Any:
            self = super().__new__(cls)
            self._serial = streams.adopt(self)
            return self

        def __init__(self, x: Any = None) -> None:
            super().__init__(x)

        def seed(self, a: Any = None, version: int = 2) -> None:
            streams.release(self._serial)
            if a is None:
                self._serial = streams.adopt(self)
            else:
                super().seed(a, version)

        def setstate(self, state: Any) -> None:
            streams.release(self._serial)
            super().setstate(state)

    Random.__module__, Random.__qualname__ = "random", "Random"
    return Random


def random_module(streams: Streams) -> FrozenModule:
    """The `random` module of one instance."""

    def seed(a: Any = None, version: int = 2) -> None:
        streams.main.seed(streams.next_seed() if a is None else a, version)

    members = {name: getattr(streams.main, name) for name in _GENERATOR_METHODS}
    return FrozenModule("random", {**members, "Random": streams.generator, "seed": seed})


def time_module(clock: Clock) -> FrozenModule:
    """The `time` module of one instance: virtual time in UTC."""

    def nanoseconds() -> int:
        return round(clock.read() * 1e9)

    def gmtime(seconds: float | None = None) -> time.struct_time:
        return time.gmtime(clock.read() if seconds is None else seconds)

    def strftime(form: str, moment: Any = None) -> str:
        return time.strftime(form, gmtime() if moment is None else moment)

    floats = dict.fromkeys(("time", "monotonic", "perf_counter", "process_time"), clock.read)
    whole = dict.fromkeys(("time_ns", "monotonic_ns", "perf_counter_ns"), nanoseconds)
    rest = {"sleep": clock.sleep, "gmtime": gmtime, "localtime": gmtime, "strftime": strftime}
    return FrozenModule("time", {**floats, **whole, **rest})


def clock_hook(clock: Clock) -> Callable[[Any, str], Any]:
    """Return the hook behind `.now`, `.today` and `.utcnow`: virtual time for dates, a plain read otherwise."""

    def moment(zone: datetime.tzinfo | None = None) -> datetime.datetime:
        utc = datetime.datetime.fromtimestamp(clock.read(), datetime.UTC)
        return utc.replace(tzinfo=None) if zone is None else utc.astimezone(zone)

    def hook(ob: Any, name: str) -> Any:
        value = getattr(ob, name)
        cls = clock_class(value)
        if cls is None:
            return value
        if not issubclass(cls, datetime.datetime):
            return lambda: moment().date()
        if name != "now":
            return lambda: moment()
        return lambda tz=None: moment(tz)

    return hook
