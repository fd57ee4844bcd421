"""Any registry snapshot as a suite: every environment of it, on the same instances for every model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from spade_loop.errors import ConfigError
from spade_loop.evaluation.suite import Attempt, Item, Say, spread
from spade_loop.evaluation.suites.episodes import EpisodePlayer, Instance, instance_seeds
from spade_loop.library import BUNDLED, open_snapshot
from spade_loop.speaking import Decoding
from synthgym.ids import did_you_mean
from synthgym.spec import SynthEnvSpec


class SnapshotSuite:
    """The suite `snapshot:REFERENCE`: the plain arm, without hints."""

    decoding = Decoding(max_tokens=4096, temperature=0.6, top_p=0.95, top_k=20)
    """As agents are played in the recipes, with half of their tokens a turn."""
    samples = 1

    def __init__(
        self,
        *,
        snapshot: str = BUNDLED,
        seeds: int = 4,
        seed: int = 0,
        only: tuple[str, ...] = (),
        category: Literal["skill", "environment"] = "skill",
        max_turns: int = 25,
    ) -> None:
        """`seeds` instances, derived from `seed`, of each environment, or of `only` some ids.

        `snapshot` is a folder, a packed file or a reference. `SynthGymError` when it cannot be opened or is not as
        its manifest promises, `ConfigError` for an id that it does not hold.
        """
        opened = open_snapshot(snapshot)
        problems = opened.verify()
        if problems:
            raise ConfigError(
                f"the snapshot {snapshot} is not as its manifest promises: {problems[0]}"
            )
        if max_turns < 1:
            raise ConfigError(f"max_turns must be at least 1, got {max_turns}")
        self.name = f"snapshot:{opened.name}"
        self.version = f"1 ({opened.version}, {opened.digest.removeprefix('sha256:')[:12]})"
        specs = [opened.spec(entry.digest) for entry in opened]
        self._items = tuple(
            Item(
                id=f"{spec.env_id}/{number}",
                category=_category(spec, category),
                content=Instance(spec, number),
            )
            for spec in _chosen(specs, only)
            for number in instance_seeds(seed, seeds)
        )
        self._player = EpisodePlayer(max_turns)

    def items(self, limit: int | None) -> Sequence[Item]:
        """Environment by environment; a limit takes from all environments in turn."""
        return spread(self._items, limit, by=lambda item: item.id.rpartition("/")[0])

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        """One episode."""
        del seed  # the instance has its own, and replies are drawn by `say`
        return self._player.play(item, say)

    def close(self) -> None:
        """End the workers."""
        self._player.close()


def _category(spec: SynthEnvSpec, by: str) -> str:
    if by == "environment":
        return f"{spec.name}-v{spec.version}"
    return spec.skills[0] if spec.skills else "no skill"


def _chosen(specs: Sequence[SynthEnvSpec], only: Sequence[str]) -> list[SynthEnvSpec]:
    if not only:
        return list(specs)
    known = {name: spec for spec in specs for name in (spec.env_id, spec.env_id.partition("/")[2])}
    for name in only:
        if name not in known:
            raise ConfigError(
                f"the snapshot holds no environment {name!r}{did_you_mean(name, known)}"
            )
    return [known[name] for name in dict.fromkeys(only)]
