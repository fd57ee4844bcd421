"""The write guard: what a source may set attributes and items of."""

from __future__ import annotations

import array
import collections
from collections.abc import Callable, Iterable
from typing import Any, Final

WRITABLE: Final = frozenset(
    {
        array.array,
        bytearray,
        collections.ChainMap,
        collections.Counter,
        collections.OrderedDict,
        collections.UserDict,
        collections.UserList,
        collections.defaultdict,
        collections.deque,
        dict,
        list,
    }
)
"""Exact container types whose objects a source may write to."""

_MAX_FREE: Final = 256
"""Types that the write guard remembers: a source may make classes without end, and no mark is ever taken off."""
_GETATTR = getattr
_SHARED: Final = "the environment wrote to an object that all instances of its source share"


class SharedWriteError(BaseException):
    """A source wrote to what its instances share; no `except Exception` of the source may hide it."""


class WriteGuard:
    """The write hook of one worker, and the objects that it refuses because instances share them."""

    def __init__(self, mark: str, token: object, own: Callable[[object], bool]) -> None:
        """A class of the source has `token` as its attribute `mark`; `own` says what else it may write to."""
        self._shared: dict[int, object] = {}
        self._free: set[type] = set(WRITABLE)
        """Types of which no object is shared, so that their objects may be written to without a closer look."""
        self._checked: set[type] = set()
        """Types of which some object is shared."""
        self.write = self._hook(mark, token, own)

    def _hook(
        self, mark: str, token: object, own: Callable[[object], bool]
    ) -> Callable[[Any], Any]:
        """Return the write hook as a closure: it runs at every store."""
        free, shared, checked = self._free, self._shared, self._checked

        def write(ob: Any) -> Any:
            kind = type(ob)
            if kind in free:
                return ob
            if shared:
                if id(ob) in shared:
                    raise SharedWriteError(_SHARED)
                if kind in WRITABLE:
                    return ob
            if _GETATTR(kind, mark, None) is token:
                if len(free) < _MAX_FREE and kind not in checked:
                    free.add(kind)
                return ob
            if own(ob):
                return ob
            raise TypeError(f"{kind.__name__} objects are read-only for environments")

        return write

    def share(self, objects: Iterable[object]) -> None:
        """Refuse every write to `objects` from now on; they are kept alive, so that no other takes their place.

        Instances of the classes among them may be written to as before, unless they are among `objects` too.
        """
        self._shared.update((id(ob), ob) for ob in objects)
        self._sort_types()

    def unshare(self, objects: Iterable[object]) -> None:
        """Take `objects` back from `share`: whoever shared them is gone."""
        for ob in objects:
            self._shared.pop(id(ob), None)
        self._sort_types()

    def _sort_types(self) -> None:
        self._checked.clear()
        self._checked.update(type(ob) for ob in self._shared.values())
        self._free.clear()
        self._free.update(WRITABLE - self._checked)
