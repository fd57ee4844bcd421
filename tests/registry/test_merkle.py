from __future__ import annotations

import hashlib

import pytest

from synthgym.registry.merkle import MerkleRoot


def expected(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, word for word."""
    if len(leaves) < 2:
        return hashlib.sha256(b"".join([b"\0" + leaf for leaf in leaves])).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    left, right = expected(leaves[:k]), expected(leaves[k:])
    return hashlib.sha256(b"\1" + left + right).digest()


SIZES = [0, 1, 2, 3, 7, 8, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 3073, 5000]


@pytest.mark.parametrize("size", SIZES)
def test_a_root_is_that_of_the_rfc_however_the_leaves_come(size: int) -> None:
    leaves = [b"%d" % number for number in range(size)]
    one, many, mixed = MerkleRoot(), MerkleRoot(), MerkleRoot()
    for leaf in leaves:
        one.add(leaf)
    many.extend(leaves)
    for number in range(0, size, 700):
        mixed.extend(leaves[number : number + 699])
        for leaf in leaves[number + 699 : number + 700]:
            mixed.add(leaf)
        assert mixed.digest() == "sha256:" + expected(leaves[: number + 700]).hex()
    for root in (one, many, mixed):
        assert (root.digest(), len(root)) == ("sha256:" + expected(leaves).hex(), size)
