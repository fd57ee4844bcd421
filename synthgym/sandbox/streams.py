"""What every instance has for itself: its random streams and its virtual clock.

The modules that read them are made for a `Running` slot, not for an instance: they ask it, at every call, which
instance runs now. So one set of modules serves all instances of a source, and an instance costs one small object.
"""

from __future__ import annotations

import _random
import datetime
import hashlib
import random
import time
import types
import weakref
from collections.abc import Callable, Mapping
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


class Instance:
    """The virtual clock and the random streams of one instance, all derived from its seed.

    Generators that the source makes without a seed get derived ones, and get them again at each restart. Those made
    before the first restart and those made after it are numbered separately, so that every episode sees the same.
    The clock moves only when it is read or slept on.
    """

    __slots__ = ("_phase", "_seed", "_serial", "_unseeded", "elapsed", "made", "main")

    def __init__(self, seed: int) -> None:
        self.elapsed = 0.0
        self.main: random.Random | None = None
        """The generator behind the functions of `random`; made when first used, for seeding one is slow."""
        self.made = 0
        """How many generators the source has made or reseeded from nothing in this phase."""
        self._seed = seed
        self._phase = "made"
        self._serial = 0
        self._unseeded: dict[int, tuple[weakref.ref[random.Random], str]] | None = None

    def restart(self, seed: int) -> None:
        """Seed every stream anew and set the clock back."""
        self.elapsed = 0.0
        self._seed = seed
        self._phase, self.made = "episode", 0
        if self.main is not None:
            random.Random.seed(self.main, seed)
        if self._unseeded:
            for reference, label in list(self._unseeded.values()):
                generator = reference()
                if generator is not None:
                    random.Random.seed(generator, self._derive(label))

    def untouched(self) -> bool:
        """Whether nothing has drawn, read the clock or made a generator yet."""
        return self.main is None and self.made == 0 and self.elapsed == 0.0

    # The clock

    def read(self) -> float:
        """Unix seconds."""
        self.elapsed += _TICK
        return _EPOCH + self.elapsed

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self.elapsed += float(seconds)

    # The streams

    def open(self) -> random.Random:
        """The main generator, made now if need be."""
        if self.main is None:
            self.main = random.Random(self._seed)
        return self.main

    def next_seed(self) -> int:
        """A seed for what the source seeded with nothing."""
        return self._derive(self._next_label())

    def adopt(self, generator: random.Random) -> int:
        """Seed an unseeded generator, and again at each restart; returns the serial to release it with."""
        label = self._next_label()
        random.Random.seed(generator, self._derive(label))
        self._serial += 1
        serial, held = self._serial, self._unseeded
        if held is None:
            held = self._unseeded = {}
        kept = held
        held[serial] = (weakref.ref(generator, lambda _gone: kept.pop(serial, None)), label)
        return serial

    def release(self, serial: int) -> None:
        """Leave a generator alone from now on: the source has seeded it."""
        if self._unseeded:
            self._unseeded.pop(serial, None)

    def _next_label(self) -> str:
        self.made += 1
        return f"{self._phase}:{self.made}"

    def _derive(self, label: str) -> int:
        digest = hashlib.sha256(f"{self._seed}:{label}".encode()).digest()
        return int.from_bytes(digest[:8], "big")


class Running:
    """Which instance runs now; whoever calls into an instance sets it first."""

    __slots__ = ("instance",)

    def __init__(self, instance: Instance) -> None:
        self.instance = instance

    def __deepcopy__(self, _memo: object) -> Running:
        """This same slot: the functions of `random` are bound to it, and a source may copy one of those."""
        return self


def generator_class(running: Running) -> type[random.Random]:
    """`random.Random` for sources: without a seed it draws a derived one, never the system's entropy."""
    allocate: Callable[..., Any] = _random.Random.__new__
    seed_with_int: Callable[[Any, int], None] = _random.Random.seed

    class Random(random.Random):
        _serial = 0

        def __new__(cls, *_args: Any, **_values: Any) -> Any:
            self = allocate(cls, 0)
            if cls is Random:
                running.instance.made += 1  # __init__ seeds it; to seed it here as well is slow
            else:
                self._serial = running.instance.adopt(self)
            return self

        def __init__(self, x: Any = None) -> None:
            if type(x) is int and type(self) is Random:
                if self._serial:
                    running.instance.release(self._serial)
                seed_with_int(self, x)  # what `random.Random.seed` comes to for an int
                self.gauss_next = None
            else:
                super().__init__(x)

        def seed(self, a: Any = None, version: int = 2) -> None:
            running.instance.release(self._serial)
            if a is None:
                self._serial = running.instance.adopt(self)
            else:
                super().seed(a, version)

        def setstate(self, state: Any) -> None:
            running.instance.release(self._serial)
            super().setstate(state)

    Random.__module__, Random.__qualname__ = "random", "Random"
    return Random


def _bound(running: Running, functions: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """The functions with `running` as first argument; bound ones, for a source may keep one as a class attribute."""
    return {name: types.MethodType(function, running) for name, function in functions.items()}


# The most used functions of `random`, spelled out: passing any arguments on costs as much as the draw.


def _unit(running: Running, /) -> float:
    return (running.instance.main or running.instance.open()).random()


def _randint(running: Running, /, a: int, b: int) -> int:
    return (running.instance.main or running.instance.open()).randint(a, b)


def _uniform(running: Running, /, a: float, b: float) -> float:
    return (running.instance.main or running.instance.open()).uniform(a, b)


def _choice(running: Running, /, seq: Any) -> Any:
    return (running.instance.main or running.instance.open()).choice(seq)


def _shuffle(running: Running, /, x: Any) -> None:
    (running.instance.main or running.instance.open()).shuffle(x)


_SPELLED_OUT: Final[dict[str, Callable[..., Any]]] = {
    "random": _unit,
    "randint": _randint,
    "uniform": _uniform,
    "choice": _choice,
    "shuffle": _shuffle,
}


def _drawing(name: str) -> Callable[..., Any]:
    method = getattr(random.Random, name)

    def draw(running: Running, /, *args: Any, **values: Any) -> Any:
        return method(running.instance.main or running.instance.open(), *args, **values)

    found = _SPELLED_OUT.get(name, draw)
    found.__name__, found.__qualname__ = name, f"Random.{name}"
    return found


def _seed(running: Running, /, a: Any = None, version: int = 2) -> None:
    instance = running.instance
    instance.open().seed(instance.next_seed() if a is None else a, version)


def random_module(running: Running) -> FrozenModule:
    """The `random` module of whatever instance runs."""
    functions = _bound(running, {name: _drawing(name) for name in _GENERATOR_METHODS})
    seed = _bound(running, {"seed": _seed})
    return FrozenModule("random", {**functions, **seed, "Random": generator_class(running)})


def _seconds(running: Running, /) -> float:
    return running.instance.read()


def _nanoseconds(running: Running, /) -> int:
    return round(running.instance.read() * 1e9)


def _sleep(running: Running, seconds: float, /) -> None:
    running.instance.sleep(seconds)


def _gmtime(running: Running, seconds: float | None = None, /) -> time.struct_time:
    return time.gmtime(running.instance.read() if seconds is None else seconds)


def _strftime(running: Running, form: str, moment: Any = None, /) -> str:
    return time.strftime(form, _gmtime(running) if moment is None else moment)


def time_module(running: Running) -> FrozenModule:
    """The `time` module of whatever instance runs: virtual time in UTC."""
    floats: dict[str, Callable[..., Any]] = dict.fromkeys(
        ("time", "monotonic", "perf_counter", "process_time"), _seconds
    )
    whole = dict.fromkeys(("time_ns", "monotonic_ns", "perf_counter_ns"), _nanoseconds)
    rest: dict[str, Callable[..., Any]] = {
        "sleep": _sleep,
        "gmtime": _gmtime,
        "localtime": _gmtime,
        "strftime": _strftime,
    }
    return FrozenModule("time", _bound(running, {**floats, **whole, **rest}))


def clock_hook(running: Running) -> Callable[[Any, str], Any]:
    """Return the hook behind `.now`, `.today` and `.utcnow`: virtual time for dates, a plain read otherwise."""

    def moment(zone: datetime.tzinfo | None = None) -> datetime.datetime:
        utc = datetime.datetime.fromtimestamp(running.instance.read(), datetime.UTC)
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
