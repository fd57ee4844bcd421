"""Held environments for tests of curricula: digests that read well, and strategies over them."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from spade_loop.curriculum import Held


def held(*names: str, regret: float | None = None) -> list[Held]:
    """One environment a name."""
    return [Held(digest=name, skill="s", iteration=-1, regret=regret) for name in names]


def pool(size: int) -> list[Held]:
    """`size` environments, in an order that is not that of their digests."""
    return held(*sorted((f"d{i:04d}" for i in range(size)), key=lambda name: name[::-1]))


def names_of(environments: Iterable[Held]) -> set[str]:
    return {h.digest for h in environments}


plays = st.lists(
    st.tuples(
        st.integers(0, 30).map(lambda i: f"d{i:04d}"),
        st.floats(0.0, 1.0) | st.just(float("nan")),
        st.integers(0, 20),
    ),
    max_size=40,
)
"""What a curriculum may be shown: digest, score, iteration."""
