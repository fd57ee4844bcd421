"""Hashes of the pieces of a source: each subtree of its normalised tree with at least 4 nodes.

Two sources that share code share these hashes, in whatever order the pieces stand and whatever was
put between them. The pieces are read off the tokens of the walk `ast/1`, so what that walk leaves
out or blurs (names, small literals, docstrings, annotations, imports) makes no difference here
either, and the hashes are equal in every Python release.

`subtree/1`: a node is a token that opens a bracket, with everything up to the one that closes it;
its hash is the BLAKE2b of 64 bits over its own token and what stands inside, where an inner node is
written as `#` and its hash in 16 hex digits.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from synthgym.memory.fingerprint import tokens

SUBTREE_SPEC: Final = "subtree/1"
MIN_NODES: Final = 4
"""Smaller pieces, such as a call of a name, are in every source."""
_FILLERS: Final = frozenset({"[", "]", "-", "/"})
"""Tokens that stand for no node: borders of lists, what is left out, the mark between defaults."""
_WHOLE: Final = "Module("
"""The whole source is no piece of it: that all of it is equal is what `ast_hash` says."""
Hashes = npt.NDArray[np.uint64]


def subtrees(tree: ast.Module) -> Hashes:
    """Hashes of the pieces of a source, sorted, each once: uint64 [n]. Time is linear in its size.

    Iterative: a deep source cannot exhaust the caller's stack. Empty when no piece is large enough.
    """
    return _pieces(tokens(tree))


def _pieces(stream: Iterable[str]) -> Hashes:
    found: set[int] = set()
    known: dict[str, bytes] = {}
    """Hashes by text: most small nodes of a source are equal to another one."""
    opened: list[tuple[list[str], int]] = []
    parts: list[str] = []
    nodes = 0
    for token in stream:
        if token == ")":
            text = " ".join(parts)
            digest = known.get(text)
            if digest is None:
                data = text.encode("utf-8", "surrogatepass")
                digest = known[text] = hashlib.blake2b(data, digest_size=8).digest()
            if nodes >= MIN_NODES and parts[0] != _WHOLE:
                found.add(int.from_bytes(digest, "big"))
            (parts, outer) = opened.pop()
            nodes += outer
            parts.append("#" + digest.hex())
        elif token.endswith("("):
            opened.append((parts, nodes))
            parts, nodes = [token], 1
        else:
            parts.append(token)
            nodes += token not in _FILLERS
    return np.array(sorted(found), np.uint64)
