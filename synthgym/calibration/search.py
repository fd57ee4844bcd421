"""Breadth-first search over the commands that observations offer, on one instance that can be taken back.

A search asks for plans to be tried and is told what came of each. Whoever asks decides how: one at a
time on an environment whose state is restored, or many at once by playing their prefixes again. The
answer is the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

from synthgym.calibration.commands import offer, without_turns

Plan = tuple[str, ...]
"""Actions from the reset on."""

DEFAULT_BUDGET: Final = 2_000
"""Steps that the search of one instance may take, those that lead back to a state included."""


class _State(NamedTuple):
    """Somewhere that the search has been and may go on from."""

    plan: Plan
    observation: str


class Tried(NamedTuple):
    """Where a plan led."""

    observation: str
    """The last one."""
    paid: float
    """Sum of the rewards."""
    won: bool
    done: bool
    """Whether the episode has ended, in whatever way."""
    failed: bool
    """Whether the environment failed."""


class Search:
    """The search of one instance, whose first observation is `first`.

    States that look the same (equal observations, but for a counter of turns, and the same sum paid)
    count as one. A plan of n actions costs n steps of the budget.
    """

    def __init__(self, first: str, *, budget: int) -> None:
        self._first = first
        self._budget = budget
        self._queue = deque([_State((), first)])
        self._untried: Iterator[Plan] = iter(())
        self._next: Plan | None = None
        self._seen = {_key(first, 0.0)}
        self._over = False
        self.plan: Plan = ()
        """The first plan that wins, else the first that was paid most; empty when none was paid."""
        self.paid = 0.0
        """What `plan` was paid."""
        self.won = False
        self.failed = False
        """Whether the environment failed on the way; then the search is over."""
        self._left_out = False

    @property
    def undecided(self) -> bool:
        """Whether there was more to try than was tried: the budget ended it, or commands were left out."""
        return self._left_out and not self.won and not self.failed

    def tries(self, limit: int) -> list[Plan]:
        """The next plans to try, at most `limit`; each must be `take`n before the next call.

        None are left when the search is over.
        """
        found: list[Plan] = []
        while not self._over and len(found) < limit:
            plan = self._peek()
            if plan is None:
                break
            if len(plan) > self._budget:
                self._over = self._left_out = True
                break
            self._budget -= len(plan)
            self._next = None
            found.append(plan)
        return found

    def take(self, plan: Plan, tried: Tried) -> bool:
        """Note where a plan led; whether the search may go on from there."""
        if self.won or self.failed:
            return False  # asked for together with the plan that ended it
        if tried.failed:
            self._over = self.failed = True
            return False
        if tried.won or tried.paid > self.paid:
            self.plan, self.paid = plan, tried.paid
        if tried.won:
            self._over = self.won = True
            return False
        key = _key(tried.observation, tried.paid)
        if tried.done or key in self._seen:
            return False
        self._seen.add(key)
        self._queue.append(_State(plan, tried.observation))
        return True

    def _peek(self) -> Plan | None:
        """The next plan, which stays the next one; None when no state is waiting."""
        while self._next is None:
            self._next = next(self._untried, None)
            if self._next is None:
                if not self._queue:
                    return None
                self._untried = self._from(self._queue.popleft())
        return self._next

    def _from(self, state: _State) -> Iterator[Plan]:
        found = offer(state.observation, self._first)
        self._left_out = self._left_out or not found.complete
        for command in found.commands:
            yield (*state.plan, command)


def _key(observation: str, paid: float) -> bytes:
    """What two states that look the same have in common."""
    text = f"{paid:.6f} {without_turns(observation)}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
