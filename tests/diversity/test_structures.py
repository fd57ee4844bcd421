from __future__ import annotations

import numpy as np
import pytest
from diversity_pools import program

from synthgym.diversity.structures import NEAR, REVIEW, Structures
from synthgym.memory.fingerprint import ast_hash, parse_source


def structures(*sources: str) -> Structures:
    found = Structures()
    for source in sources:
        tree = parse_source(source)
        found.add(tree, ast_hash(tree))
    return found


def refactored(kind: int, own_line: int = 0) -> str:
    """`program(kind)` in another order, with a line of its own."""
    lines = program(kind).splitlines()
    loop = ["    if a:", "        a.append(len(a) " + "+ a[0] " * own_line + ")"]
    return "\n".join([lines[0], *lines[7:], *lines[1:7], *loop, ""])


def half_of(kind: int, other: int) -> str:
    """Two thirds of the lines of one program, and the rest of another one."""
    return "\n".join([*program(kind).splitlines()[:9], *program(other).splitlines()[9:], ""])


def test_refactored_code_is_a_near_copy_and_other_code_is_not() -> None:
    found = structures(program(1), refactored(1), program(2))
    assert list(found.near_copies()) == [(0, 1)]
    assert found.containment(0, 1) >= NEAR
    assert found.containment(0, 2) < REVIEW


def test_in_a_pool_of_variants_of_one_every_variant_is_linked() -> None:
    found = structures(*(refactored(1, own_line) for own_line in range(80)))
    linked = {row for pair in found.near_copies() for row in pair}
    assert linked == set(range(80))


def test_sources_with_one_hash_are_one_structure() -> None:
    found = structures(program(1), program(2), program(1), program(1).replace("a", "b"))
    assert len(found) == 4
    assert found.containment(0, 2) == 1.0
    assert list(found.near_copies()) == []


def test_pieces_that_few_structures_have_are_counted_once() -> None:
    # Each has 12 statements of its own, the pieces of which no other one has.
    found = structures(program(1), program(2), program(1))
    rare = found.rare_pieces()
    assert [len(own) for own in rare] == [len(np.unique(own)) for own in rare]
    every = len({*rare[0].tolist()} | {*rare[1].tolist()})
    assert found.rare_per_source(rare, np.array([0, 1])) == pytest.approx(every / 2)
    assert found.rare_per_source(rare, np.arange(3)) == pytest.approx(every / 3)
    assert found.rare_per_source(rare, np.array([2])) == pytest.approx(len(rare[0]))


def test_pieces_that_many_structures_have_are_not() -> None:
    shared = program(0)
    found = structures(*(shared + program(kind, 1) for kind in range(1, 31)))
    alone = structures(*(program(kind, 1) for kind in range(1, 31)))
    rows = np.arange(30)
    boilerplate = structures(shared).rare_pieces()[0].tolist()
    for own in found.rare_pieces():
        assert not {*boilerplate} & {*own.tolist()}
    counted = found.rare_per_source(found.rare_pieces(), rows)
    assert counted <= alone.rare_per_source(alone.rare_pieces(), rows) + 1.0


def test_review_is_about_rows_of_another_label_within_the_part() -> None:
    found = structures(program(1), half_of(1, 3), program(2), program(1))
    assert REVIEW <= found.containment(0, 1) < NEAR
    labels = np.array([0, 1, 2, 0])
    assert found.to_review(labels, np.arange(4)).tolist() == [True, True, False, True]
    assert found.to_review(labels, np.array([0, 2, 3])).tolist() == [False] * 3
    assert found.to_review(np.zeros(4, np.int64), np.arange(4)).tolist() == [False] * 4
    assert list(found.near_copies()) == []


def test_what_is_added_later_is_compared_as_well() -> None:
    found = structures(program(1), program(2))
    assert list(found.near_copies()) == []
    tree = parse_source(refactored(1))
    found.add(tree, ast_hash(tree))
    assert list(found.near_copies()) == [(0, 2)]


def test_no_source_and_a_source_without_pieces_are_fine() -> None:
    assert len(structures()) == 0
    found = structures("x", "y = 1", "z: int")
    assert found.containment(0, 1) == 0.0
    assert found.rare_per_source(found.rare_pieces(), np.arange(3)) == 0.0
