"""Merkle roots as RFC 6962 defines them (section 2.1), over SHA-256.

The leaves come sorted, so that equal content has an equal root, in whatever order and in however many
files it was stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from itertools import islice
from typing import Final

_LEAF: Final = b"\0"
_NODE: Final = b"\1"
_BLOCK: Final = 1024
"""Leaves that are hashed level by level, which costs half of what merging them one by one does. A power of two."""


class MerkleRoot:
    """The root of leaves that come one by one. It holds a block of hashes, and one for each level above."""

    def __init__(self) -> None:
        self._count = 0
        self._nodes: list[bytes] = []
        """Hashes of the leaves that fill no block yet."""
        self._subtrees: list[tuple[int, bytes]] = []
        """(blocks, hash) of the complete subtrees so far, the largest first."""

    def __len__(self) -> int:
        """Return how many leaves there were."""
        return self._count

    def add(self, leaf: bytes) -> None:
        """Take the next leaf."""
        self._count += 1
        self._nodes.append(sha256(_LEAF + leaf).digest())
        if len(self._nodes) == _BLOCK:
            self._close_block()

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Take the next leaves."""
        rest = iter(leaves)
        while block := list(islice(rest, _BLOCK - len(self._nodes))):
            self._count += len(block)
            self._nodes += [sha256(_LEAF + leaf).digest() for leaf in block]
            if len(self._nodes) == _BLOCK:
                self._close_block()

    def digest(self) -> str:
        """`sha256:<hex>` of the root over all leaves so far; that of no leaf is SHA-256 of nothing."""
        roots = [node for _, node in self._subtrees]
        if self._nodes:
            roots.append(_root(self._nodes))
        if not roots:
            return "sha256:" + sha256(b"").hexdigest()
        node = roots.pop()
        for left in reversed(roots):
            node = sha256(_NODE + left + node).digest()
        return "sha256:" + node.hex()

    def _close_block(self) -> None:
        subtrees = self._subtrees
        size, node = 1, _root(self._nodes)
        while subtrees and subtrees[-1][0] == size:
            node = sha256(_NODE + subtrees.pop()[1] + node).digest()
            size *= 2
        subtrees.append((size, node))
        self._nodes = []


def _root(nodes: list[bytes]) -> bytes:
    """The root over hashes of leaves, at least one. Of an odd number the last goes up as it is."""
    while len(nodes) > 1:
        last = nodes[-1:] if len(nodes) % 2 else []
        pairs = zip(nodes[::2], nodes[1::2], strict=False)
        nodes = [sha256(_NODE + left + right).digest() for left, right in pairs] + last
    return nodes[0]
