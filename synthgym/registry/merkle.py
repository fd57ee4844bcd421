"""Merkle roots as RFC 6962 defines them (section 2.1), over SHA-256.

The leaves come sorted, so that equal content has an equal root, in whatever order and in however many
files it was stored.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

_LEAF: Final = b"\0"
_NODE: Final = b"\1"


class MerkleRoot:
    """The root of leaves that come one by one. It holds one hash for each level of the tree."""

    def __init__(self) -> None:
        self._count = 0
        self._subtrees: list[tuple[int, bytes]] = []
        """(leaves, hash) of the complete subtrees so far, the largest first."""

    def __len__(self) -> int:
        """Return how many leaves there were."""
        return self._count

    def add(self, leaf: bytes) -> None:
        """Take the next leaf."""
        subtrees = self._subtrees
        size, node = 1, sha256(_LEAF + leaf).digest()
        while subtrees and subtrees[-1][0] == size:
            node = sha256(_NODE + subtrees.pop()[1] + node).digest()
            size *= 2
        subtrees.append((size, node))
        self._count += 1

    def digest(self) -> str:
        """`sha256:<hex>` of the root over all leaves so far; that of no leaf is SHA-256 of nothing."""
        if not self._subtrees:
            return "sha256:" + sha256(b"").hexdigest()
        *rest, (_, node) = self._subtrees
        for _, left in reversed(rest):
            node = sha256(_NODE + left + node).digest()
        return "sha256:" + node.hex()
