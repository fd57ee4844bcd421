"""Runs checked code in namespaces of its own: the language layer as a worker uses it."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from typing import Any

from synthgym.sandbox import names
from synthgym.sandbox.composing import PRELUDE_CLASSES
from synthgym.sandbox.guards import Guards
from synthgym.sandbox.modules import build_builtins, build_modules
from synthgym.sandbox.streams import Instance, Running, clock_hook, random_module, time_module

__all__ = ["ContractError", "Runtime"]

_INSTANCE = "_instance_"
"""Key of an instance's streams and clock in a namespace made by `instantiate`; no source can spell it."""


class ContractError(ValueError):
    """The source does not define exactly one environment class."""


class Runtime:
    """Everything that the instances of one source share: guards, facades, builtins. Built once a worker.

    Meant for one source: its instances could meet in caches of the library (`re`, `functools.lru_cache`).
    """

    def __init__(self) -> None:
        self._guards = Guards()
        self._modules = build_modules(self._guards)
        self._builtins = build_builtins(self._guards, self._modules)
        self._library: frozenset[int] | None = None

    @property
    def guards(self) -> Guards:
        """The guards of this worker."""
        return self._guards

    def namespace(self, running: Running) -> dict[str, Any]:
        """A namespace in which nothing has run yet; its `random`, `time` and clock are those of `running`.

        A copy of it is as good as new: it holds no state.
        """
        generator = random_module(running)
        return {
            "__builtins__": self._builtins,
            "__name__": "env",
            "__doc__": None,
            "random": generator,
            "_import_": self._importer(running, generator),
            "_clock_": clock_hook(running),
        }

    def instantiate(self, code: types.CodeType, seed: int) -> dict[str, Any]:
        """Run `code` in a fresh namespace with its own random streams and clock, and return the namespace.

        `code` must come from `compile_source`. What it raises passes through. Instances made this way may run in any
        order; `Program` makes them faster.
        """
        instance = Instance(seed)
        namespace = self.namespace(Running(instance))
        namespace[_INSTANCE] = instance
        exec(code, namespace)  # noqa: S102 - running checked code is what this method is for
        return namespace

    def reseed(self, namespace: dict[str, Any], seed: int) -> None:
        """Restart the random streams and the clock of an instance, as at a reset with `seed`."""
        instance: Instance = namespace[_INSTANCE]
        instance.restart(seed)

    def env_class(self, namespace: Mapping[str, Any], *, first: bool = False) -> type:
        """Return the one class of this source whose name ends in `Env`; `ContractError` for none or several.

        With `first` it is the first of several, as the SPADE pools have it. Classes of preludes do not count.
        """
        found: dict[type, str] = {}
        for value in namespace.values():
            if self._guards.made(value) and not value.__name__.startswith("_"):
                found[value] = names.restore(value.__name__)
        wanted = [
            name
            for name in found.values()
            if name.endswith("Env") and name != "Env" and name not in PRELUDE_CLASSES
        ]
        wanted = wanted[:1] if first else sorted(wanted)
        if len(wanted) != 1:
            classes = ", ".join(wanted or sorted(found.values())) or "none"
            raise ContractError(
                f"expected exactly one class whose name ends in 'Env', got {len(wanted)}; "
                f"classes of the source: {classes[:200]}"
            )
        return next(cls for cls, name in found.items() if name == wanted[0])

    def library(self, namespace: Mapping[str, Any]) -> frozenset[int]:
        """The ids of everything that a source gets from outside: builtins, preloaded names, members of modules."""
        if self._library is None:
            values = [*self._builtins.values(), *_with_members(self._modules.values())]
            self._library = frozenset(map(id, values))
        own = [namespace["random"], namespace["_import_"]("time", None)]
        return self._library.union(map(id, _with_members(own)))

    def _importer(self, running: Running, generator: types.ModuleType) -> Any:
        """Return the import hook; its `time` module is made when first asked for."""
        own: dict[str, types.ModuleType] = {"random": generator}

        def import_(module: str, attribute: str | None) -> Any:
            if module == "time" and module not in own:
                own[module] = time_module(running)
            found = own.get(module) or self._modules.get(module)
            if found is None:
                raise ImportError(f"module {module!r} is not available to environments")
            if attribute is None:
                return found
            if attribute not in names.MODULES[module]:
                raise ImportError(f"{module}.{attribute} is not available to environments")
            return getattr(found, attribute)

        return import_


def _with_members(facades: Iterable[types.ModuleType]) -> list[Any]:
    return [value for facade in facades for value in (facade, *vars(facade).values())]
