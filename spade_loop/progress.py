"""What a run tells while it runs: the interface. The display is in `report.display`."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Listens to a run. No method may change it."""

    def iteration(self, index: int, total: int) -> None:
        """Iteration `index` of `total` begins; both count from 0 and 1 as `range` does."""

    def phase(self, name: str, steps: int) -> None:
        """A phase of `steps` steps begins."""

    def advance(self, steps: int, tokens: int = 0) -> None:
        """`steps` more are done, and `tokens` more were generated or trained on."""

    def note(self, text: str) -> None:
        """One line worth keeping."""


class Silent:
    """Tells nothing."""

    def iteration(self, index: int, total: int) -> None:
        """Nothing."""

    def phase(self, name: str, steps: int) -> None:
        """Nothing."""

    def advance(self, steps: int, tokens: int = 0) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""
