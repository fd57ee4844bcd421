"""Runs checked code in namespaces of its own: the language layer as a worker uses it."""

from __future__ import annotations

import types
from typing import Any

from synthgym.sandbox import names
from synthgym.sandbox.guards import Guards
from synthgym.sandbox.modules import build_builtins, build_modules
from synthgym.sandbox.streams import Clock, Streams, clock_hook, random_module, time_module

__all__ = ["ContractError", "Runtime"]

_INSTANCE = "_instance_"
"""Key of an instance's streams and clock in its namespace; no source can spell it."""


class ContractError(ValueError):
    """The source does not define exactly one environment class."""


class _Instance:
    """What belongs to one instance and not to the worker."""

    __slots__ = ("clock", "streams")

    def __init__(self, seed: int) -> None:
        self.clock = Clock()
        self.streams = Streams(seed)


class Runtime:
    """Everything that the instances of one source share: guards, facades, builtins. Built once a worker.

    Meant for one source: its instances could meet in caches of the library (`re`, `functools.lru_cache`).
    """

    def __init__(self) -> None:
        self._guards = Guards()
        self._modules = build_modules(self._guards)
        self._builtins = build_builtins(self._guards, self._modules)

    def instantiate(self, code: types.CodeType, seed: int) -> dict[str, Any]:
        """Run `code` in a fresh namespace with its own random streams and clock, and return the namespace.

        `code` must come from `compile_source`. What it raises passes through.
        """
        instance = _Instance(seed)
        generator = random_module(instance.streams)
        namespace: dict[str, Any] = {
            "__builtins__": self._builtins,
            "__name__": "env",
            "__doc__": None,
            "random": generator,
            "_import_": self._importer(instance, generator),
            "_clock_": clock_hook(instance.clock),
            _INSTANCE: instance,
        }
        exec(code, namespace)  # noqa: S102 - running checked code is what this method is for
        return namespace

    def reseed(self, namespace: dict[str, Any], seed: int) -> None:
        """Restart the random streams and the clock of an instance, as at a reset with `seed`."""
        instance: _Instance = namespace[_INSTANCE]
        instance.streams.restart(seed)
        instance.clock.restart()

    def env_class(self, namespace: dict[str, Any]) -> type:
        """Return the one class of this source whose name ends in `Env`; `ContractError` for none or several."""
        found: dict[type, str] = {}
        for value in namespace.values():
            if self._guards.made(value) and not value.__name__.startswith("_"):
                found[value] = names.restore(value.__name__)
        wanted = sorted(name for name in found.values() if name.endswith("Env"))
        if len(wanted) != 1:
            classes = ", ".join(wanted or sorted(found.values())) or "none"
            raise ContractError(
                f"expected exactly one class whose name ends in 'Env', got {len(wanted)}; "
                f"classes of the source: {classes[:200]}"
            )
        return next(cls for cls, name in found.items() if name == wanted[0])

    def _importer(self, instance: _Instance, generator: types.ModuleType) -> Any:
        """Return the import hook of one instance; its `time` module is made when first asked for."""
        own: dict[str, types.ModuleType] = {"random": generator}

        def import_(module: str, attribute: str | None) -> Any:
            if module == "time" and module not in own:
                own[module] = time_module(instance.clock)
            found = own.get(module) or self._modules.get(module)
            if found is None:
                raise ImportError(f"module {module!r} is not available to environments")
            if attribute is None:
                return found
            if attribute not in names.MODULES[module]:
                raise ImportError(f"{module}.{attribute} is not available to environments")
            return getattr(found, attribute)

        return import_
