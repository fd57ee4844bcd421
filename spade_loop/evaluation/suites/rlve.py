"""Problems of rlve-gym (arXiv 2511.07317) at fixed difficulties, played in the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spade_loop.curriculum.rlve import DEFAULT_ENVIRONMENTS, RlvePackage
from spade_loop.evaluation.suite import Attempt, Item, Say, spread
from spade_loop.evaluation.suites.episodes import EpisodePlayer, Instance, instance_seeds
from spade_loop.speaking import Decoding

DIFFICULTIES: Final = (0, 5, 10)


class Rlve:
    """The suite `rlve-gym`. Its categories are difficulties."""

    name = "rlve-gym"
    decoding = Decoding(max_tokens=8192, temperature=1.0, top_p=0.95)
    """As its baseline is trained."""
    samples = 1

    def __init__(
        self,
        *,
        environments: tuple[str, ...] = DEFAULT_ENVIRONMENTS,
        difficulties: tuple[int, ...] = DIFFICULTIES,
        seeds: int = 4,
        seed: int = 0,
    ) -> None:
        """`seeds` problems, derived from `seed`, of each environment at each difficulty.

        `ConfigError` for an environment or a difficulty that does not exist, `MissingExtraError` without the package.
        """
        package = RlvePackage.installed()
        self.version = f"1 (rlve-gym {package.version})"
        self._items = tuple(
            Item(
                id=f"{name}/{difficulty}/{number}",
                category=f"difficulty {difficulty}",
                content=Instance(package.spec(name, difficulty), number),
            )
            for name in environments
            for difficulty in difficulties
            for number in instance_seeds(seed, seeds)
        )
        self._player = EpisodePlayer(max_turns=1)

    def items(self, limit: int | None) -> Sequence[Item]:
        """Environment by environment, difficulty by difficulty; a limit takes from all of them in turn."""
        return spread(self._items, limit, by=lambda item: item.id.rpartition("/")[0])

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        """One problem, one answer."""
        del seed  # the problem has its own, and the answer is drawn by `say`
        return self._player.play(item, say)

    def close(self) -> None:
        """End the workers."""
        self._player.close()
