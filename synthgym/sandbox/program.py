"""One checked source in a worker: run once, and from then on a maker of instances.

Three ways to make one, from cheap to dear. *Shared*: the module has run once, nothing in it can change any more, and
an instance is one call of the class. *Own namespace*: the module runs again for every instance, with the same `random`
and `time` for all, which ask the `Running` slot. *Own modules*: these too are made for every instance, because code of
one instance may run while another one does (a generator that is thrown away runs its `finally`).
"""

from __future__ import annotations

import copy
import types
import weakref
from typing import Any, Final

from synthgym.contract import BASE, SPADE_BASE, SPADE_TOOLS_BASE
from synthgym.sandbox.heap import Frozen, NotFrozenError
from synthgym.sandbox.runtime import Runtime
from synthgym.sandbox.sharing import Facts, facts_of
from synthgym.sandbox.spade import SpadeGame
from synthgym.sandbox.streams import Instance, Running

__all__ = ["Program"]

_UNKNOWN: Final = "nothing is known about the source"


class Program:
    """One checked source, loaded once in a worker; makes instances, each with random streams and a clock of its own.

    What the module binds belongs to every instance alone, or to all when it cannot change. `running` says which
    instance's streams and clock the modules of the source use. `make` sets it to the new instance; whoever calls into
    several instances in turn keeps `running.instance` from then and puts it back before every call. A program must
    outlive its instances: the write guard protects what they share only until then.
    """

    __slots__ = (
        "__weakref__",
        "_base",
        "_code",
        "_copies",
        "_foreign",
        "_kwargs",
        "_name",
        "_namespace",
        "_own_modules",
        "_runtime",
        "_steady",
        "env_class",
        "running",
        "unshared",
    )

    def __init__(
        self, runtime: Runtime, code: types.CodeType, kwargs: dict[str, Any], base: str = BASE
    ) -> None:
        """Run the module once; what it raises passes through, and `ContractError` when it has no one class.

        `code` must come from `compile_source`; without facts attached to it (`sharing.attach`) nothing is shared.
        `kwargs` go to the class for every instance.
        """
        facts = facts_of(code)
        self._runtime, self._code, self._kwargs = runtime, code, kwargs
        self._base, self._foreign = base, base in (SPADE_BASE, SPADE_TOOLS_BASE)
        self._copies = any(isinstance(value, list | dict) for value in kwargs.values())
        self._own_modules = facts is None or facts.finalizers
        self.running: Running = Running(Instance(0))
        self._namespace = runtime.namespace(self.running)
        namespace = self._run()
        self.env_class: type = runtime.env_class(namespace, first=self._foreign)
        self._name = next(key for key, value in namespace.items() if value is self.env_class)
        self._steady = self.running.instance.untouched()
        self.unshared: str = self._share(namespace, facts)
        """Why every instance runs the module again; empty when all share one run."""

    def make(self, seed: int) -> Any:
        """A new instance, its streams and clock at their start for `seed`, on which `reset(seed)` may be called.

        What the class raises passes through.
        """
        instance = self.running.instance = Instance(seed)
        cls = self.env_class if not self.unshared else self._fresh_class(instance)
        env = cls(**copy.deepcopy(self._kwargs)) if self._copies else cls(**self._kwargs)
        instance.restart(seed)
        return SpadeGame(env, self._base) if self._foreign else env

    def _run(self) -> dict[str, Any]:
        """Run the module in a namespace of its own, with the modules of all."""
        namespace = self._namespace.copy()
        exec(self._code, namespace)  # noqa: S102 - running checked code is what this module is for
        return namespace

    def _fresh_class(self, instance: Instance) -> Any:
        if self._own_modules:
            namespace = self._runtime.namespace(Running(instance))
            exec(self._code, namespace)  # noqa: S102 - see `_run`
        else:
            namespace = self._run()
        # A module that draws may define other classes with another seed; any other is the same every time.
        if self._steady:
            return namespace[self._name]
        return self._runtime.env_class(namespace, first=self._foreign)

    def _share(self, namespace: dict[str, Any], facts: Facts | None) -> str:
        """Have all instances share `namespace` if nothing in it can change; else return why not."""
        if facts is None:
            return _UNKNOWN
        if facts.blocked or facts.finalizers:
            return facts.blocked or "a generator may run code when it is thrown away"
        if not self._steady:
            return "the module draws random numbers or reads the clock"
        own = {
            key: namespace[key]
            for key in namespace
            if namespace[key] is not self._namespace.get(key)
        }
        try:
            frozen = Frozen(self._runtime, namespace, facts)
            frozen.add_module(own)
        except NotFrozenError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - what cannot be looked at is not shared
            return f"the module cannot be looked at: {type(error).__name__}"
        guards = self._runtime.guards
        guards.writing.share(frozen.objects)
        weakref.finalize(self, guards.writing.unshare, frozen.objects)
        self._namespace = namespace
        return ""
