"""The text space of observations and actions."""

from __future__ import annotations

import string
from typing import Final, NoReturn

import numpy as np
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Text
from gymnasium.vector.utils import create_shared_memory

_PRINTABLE: Final = frozenset(string.ascii_letters + string.digits + string.punctuation + " \n")


class TextSpace(Text):
    """Any string of `min_length` to `max_length` characters, whatever the characters are.

    `sample` draws printable ASCII. Gymnasium's own `Text` has a fixed character set, which text for
    people and language models does not have, and by default excludes the empty string, the space
    and the newline.
    """

    def __init__(
        self,
        max_length: int,
        *,
        min_length: int = 0,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(max_length, min_length=min_length, charset=_PRINTABLE, seed=seed)

    def contains(self, x: object) -> bool:
        """Whether `x` is a string of an allowed length. Never raises: the checker relies on it."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TextSpace)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )

    def __hash__(self) -> int:
        return hash((TextSpace, self.min_length, self.max_length))

    def __repr__(self) -> str:
        return f"TextSpace({self.max_length}, min_length={self.min_length})"


@create_shared_memory.register(TextSpace)
def _no_shared_memory(space: TextSpace, n: int = 1, ctx: object = None) -> NoReturn:
    """Refuse: Gymnasium decodes shared text once and returns it for every observation."""
    raise CustomSpaceError(
        f"{space!r} cannot live in shared memory ({n=}, {ctx=}): text has no fixed size; "
        "use shared_memory=False, or make_vec without a vectorization_mode"
    )
