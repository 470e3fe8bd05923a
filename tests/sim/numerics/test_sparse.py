"""Sparse matrices expanded by their metadata."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.sim.numerics import dot as dots
from pyptx.sim.numerics.sparse import HALVES, ORDERED, expand, is_valid, multiply_stored, split_nibbles
from pyptx.sim.numerics.tensor_core import select_rule


def test_two_of_four() -> None:
    compact = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    codes = np.array([[0b0100, 0b1110], [0b1001, 0b0010]])
    want = [[1, 2, 0, 0, 0, 0, 3, 4], [0, 5, 6, 0, 8, 0, 7, 0]]
    np.testing.assert_array_equal(expand(compact, codes, "2:4"), want)


def test_one_of_two_and_four_of_eight() -> None:
    compact = np.array([[1, 2, 3, 4]])
    np.testing.assert_array_equal(
        expand(compact, np.array([[0b0100, 0b1110, 0b1110, 0b0100]]), "1:2"), [[1, 0, 0, 2, 0, 3, 4, 0]]
    )
    np.testing.assert_array_equal(expand(compact, np.array([[0b1101]]), "4:8"), [[0, 0, 1, 2, 0, 0, 3, 4]])


def test_what_is_not_stored_does_not_meet_infinities() -> None:
    a, stored = np.array([[1.0, 0.0, 2.0, 0.0]]), np.array([[True, False, True, True]])
    b = np.array([[1.0, np.inf, 1.0], [np.inf, 1.0, np.nan], [3.0, 1.0, 1.0], [0.0, 0.0, np.inf]])
    with np.errstate(invalid="ignore"):
        product = multiply_stored(lambda x, y, z: x @ y + z, a, b, np.ones((1, 3)), lambda: stored)
    np.testing.assert_array_equal(product, [[8.0, np.inf, np.nan]])


def test_metadata_words_start_with_the_lowest_bits() -> None:
    assert split_nibbles(np.array([0x8E4], np.uint32)).tolist() == [[4, 14, 8, 0, 0, 0, 0, 0]]
    codes = np.arange(16)
    assert tuple(codes[is_valid(codes, "2:4")]) == ORDERED
    assert tuple(codes[is_valid(codes, "1:2")]) == HALVES
    assert codes[~is_valid(codes, "4:8", in_order=False)].tolist() == [0, 5, 10, 15]


@pytest.mark.parametrize(("name", "kind"), [("bf16", "2:4"), ("tf32", "1:2")])
def test_sparse_products_equal_those_of_the_chosen_rows_of_b(name: str, kind: str) -> None:
    generator = np.random.default_rng(3)
    rule, dense_rule = select_rule("mma", 80, name, sparse=True), select_rule("mma", 80, name)
    depth = 2 * rule.step
    compact = generator.integers(-8, 8, (4, depth // 2)).astype(np.float32)
    b = generator.integers(-8, 8, (depth, 4)).astype(np.float32)
    chunks = depth // (2 if kind == "1:2" else 4)
    codes = generator.choice(HALVES if kind == "1:2" else ORDERED, (4, chunks))
    c = np.zeros((4, 4), np.float32)
    dense = expand(compact, codes, kind)
    places = expand(np.ones_like(compact), codes, kind) > 0
    got = dots.dot(dots.prepare_operand(dense, name), dots.prepare_operand(b, name), c, rule)
    for i in range(4):
        left, right = dots.prepare_operand(compact[i : i + 1], name), dots.prepare_operand(b[places[i]], name)
        np.testing.assert_array_equal(got[i : i + 1], dots.dot(left, right, c[:1], dense_rule))
