"""Block-scaled tcgen05.mma against NumPy in double precision: scale vectors, ids, pairs, sparse, and a whole GEMM."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.diagnostics import PtxError
from pyptx.tensormap import Swizzle
from pyptx.types import from_name
from tests.messages import raises
from tests.sim import tensor as t
from tests.sim.semantics.test_tcgen05_mma import (
    A_AT,
    COLUMN,
    LEFT,
    SCALES,
    SPACE,
    Array,
    K,
    descriptor,
    encode_for_shared,
    encode_for_tensor,
    instruction,
    result,
    sparse_rows,
    store_metadata,
)

B_SCALES = SCALES + 16
SCALED = "[%r7], [%r0], %never"


def draw_scales(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return codes of scale factors and their numbers."""
    if kind == "ue8m0":
        codes = random.integers(120, 134, shape).astype("u1")
        return codes, np.exp2(codes.astype("f8") - 127)
    codes = random.integers(1, 0x7F, shape).astype("u1")
    exponent, mantissa = codes >> 3, (codes & 7).astype("f8")
    return codes, np.where(exponent == 0, mantissa * 2.0**-9, (1 + mantissa / 8) * np.exp2(exponent.astype("f8") - 7))


def store_scales(
    tensor: Array, codes: Array, column: int, first: int, quarters: tuple[int, ...] = (0, 1, 2, 3)
) -> None:
    """Store scale factors: rows go down 32 lanes, then to the next column, the same in every quarter; those of one row
    are adjacent from byte `first` on, and continue after the columns of all rows."""
    groups = -(-len(codes) // 128) * 4
    for row, block in np.ndindex(*codes.shape):
        index = column + row // 32 + (first + block) // 4 * groups
        for quarter in quarters:
            tensor[quarter * 32 + row % 32, index] |= np.uint32(int(codes[row, block]) << (first + block) % 4 * 8)


FORMS = [
    ("mxf8f6f4", "", 1, "ue8m0", "e4m3", "e2m1", 3), ("mxf8f6f4", ".block32", 1, "ue8m0", "e3m2", "e5m2", 1),
    ("mxf8f6f4", ".scale_vec::1X", 1, "ue8m0", "e2m3", "e2m3", 0), ("mxf4", "", 2, "ue8m0", "e2m1", "e2m1", 2),
    ("mxf4", ".block32", 2, "ue8m0", "e2m1", "e2m1", 0), ("mxf4nvf4", ".block32", 2, "ue8m0", "e2m1", "e2m1", 2),
    ("mxf4nvf4", ".scale_vec::4X", 4, "ue4m3", "e2m1", "e2m1", 0),
    ("mxf4nvf4", ".block16", 4, "ue8m0", "e2m1", "e2m1", 0),
]  # fmt: skip


@pytest.mark.parametrize("source", ["shared", "tensor"])
@pytest.mark.parametrize(("kind", "vector", "count", "scale", "a", "b", "first"), FORMS)
def test_scaled(kind: str, vector: str, count: int, scale: str, a: str, b: str, first: int, source: str) -> None:
    random, m, n, depth = np.random.default_rng(11), 128, 72, K[kind]
    x, y = t.draw_codes(random, a, (m, depth)), t.draw_codes(random, b, (n, depth))
    for_a, of_a = draw_scales(random, scale, (m, count))
    for_b, of_b = draw_scales(random, scale, (n, count))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    second_id = (first + count) % 4 if count < 4 else 0
    store_scales(tensor[0], for_a, SCALES, first)
    store_scales(tensor[0], for_b, B_SCALES, second_id)
    words = encode_for_tensor(x, kind, a)
    tensor[0, :, LEFT : LEFT + words.shape[1]] = words
    left = str(t.place(shared[0], A_AT, encode_for_shared(x, kind, a), Swizzle.B128)) if source == "shared" else "[%r5]"
    two = t.place(shared[0], 0, encode_for_shared(y, kind, b), Swizzle.B32)
    bits = descriptor(kind, m, n, (a, b), "f32", scale=from_name(scale), a_scale_id=first, b_scale_id=second_id)
    form = f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{vector}"
    output = t.run(instruction(form, bits, left, two, use=SCALED), shared, tensor)
    wide = depth // count
    expected = (t.values(x, a) * np.repeat(of_a, wide, 1)) @ (t.values(y, b) * np.repeat(of_b, wide, 1)).T
    actual = result(output[0, :, COLUMN : COLUMN + n], "f32")
    np.testing.assert_array_equal(actual, expected.astype("f4"))


def test_scaled_products_of_many_ctas_are_scaled() -> None:
    random, m, n, ctas = np.random.default_rng(17), 128, 32, 3
    x, y = t.draw_codes(random, "e4m3", (ctas, m, 32)), t.draw_codes(random, "e4m3", (n, 32))
    for_a, of_a = draw_scales(random, "ue8m0", (m, 1))
    for_b, of_b = draw_scales(random, "ue8m0", (n, 1))
    shared, tensor = np.zeros((ctas, SPACE), "u1"), np.zeros((ctas, 128, 512), "u4")
    left = two = 0
    for cta in range(ctas):
        left, two = t.place(shared[cta], A_AT, x[cta], Swizzle.B32), t.place(shared[cta], 0, y, Swizzle.B32)
        store_scales(tensor[cta], for_a, SCALES, 0)
        store_scales(tensor[cta], for_b, B_SCALES, 0)
    bits = descriptor("mxf8f6f4", m, n, ("e4m3", "e4m3"), "f32", scale=from_name("ue8m0"), a_scale_id=0, b_scale_id=0)
    form = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X"
    output = t.run(instruction(form, bits, str(left), two, use=SCALED), shared, tensor, clusters=ctas)
    expected = (t.values(x, "e4m3") * of_a) @ (t.values(y, "e4m3") * of_b).T
    actual = result(np.ascontiguousarray(output[:, :, COLUMN : COLUMN + n]), "f32")
    np.testing.assert_array_equal(actual, expected.astype("f4"))


@pytest.mark.parametrize(("m", "n"), [(256, 64), (128, 64)])
def test_scaled_pairs(m: int, n: int) -> None:
    random, depth = np.random.default_rng(12), 64
    x, y = t.draw_codes(random, "e2m1", (m, depth)), t.draw_codes(random, "e2m1", (n, depth))
    for_a, of_a = draw_scales(random, "ue8m0", (m, 2))
    for_b, of_b = draw_scales(random, "ue8m0", (n, 2))
    shared, tensor = np.zeros((2, SPACE), "u1"), np.zeros((2, 128, 512), "u4")
    left = two = 0
    for cta in range(2):
        rows, columns = slice(cta * m // 2, (cta + 1) * m // 2), slice(cta * n // 2, (cta + 1) * n // 2)
        left = t.place(shared[cta], A_AT, t.pairs(x[rows]), Swizzle.B128)
        two = t.place(shared[cta], 0, t.pairs(y[columns]), Swizzle.B32)
        store_scales(tensor[cta], for_a[rows], SCALES, 0)
        if m == 256:
            store_scales(tensor[cta], for_b, B_SCALES, 2)
        else:
            # The two halves of N are side by side in the lanes, and so are their scale factors.
            store_scales(tensor[cta], for_b[: n // 2], B_SCALES, 2, (0, 1))
            store_scales(tensor[cta], for_b[n // 2 :], B_SCALES, 2, (2, 3))
    bits = descriptor("mxf4", m, n, ("e2m1", "e2m1"), "f32", a_scale_id=0, b_scale_id=2)
    form = "tcgen05.mma.cta_group::2.kind::mxf4.block_scale.block32"
    output = t.run(instruction(form, bits, str(left), two, use=SCALED), shared, tensor)
    expected = (t.values(x, "e2m1") * np.repeat(of_a, 32, 1)) @ (t.values(y, "e2m1") * np.repeat(of_b, 32, 1)).T
    placement = t.layout("A" if m == 256 else "B", n)
    np.testing.assert_array_equal(
        result(t.gather_result(output, placement, m, n, COLUMN), "f32"), expected.astype("f4")
    )


@pytest.mark.parametrize(
    ("kind", "name", "count"), [("mxf8f6f4", "e3m2", 1), ("mxf4", "e2m1", 2), ("mxf4nvf4", "e2m1", 4)]
)
def test_scaled_sparse(kind: str, name: str, count: int) -> None:
    random, m, n = np.random.default_rng(13), 128, 40
    codes, meta, dense = sparse_rows(random, kind, name, m)
    y = t.draw_codes(random, name, (n, 2 * K[kind]))
    scale = "ue4m3" if count == 4 else "ue8m0"
    for_a, of_a = draw_scales(random, scale, (m, count))
    for_b, of_b = draw_scales(random, scale, (n, count))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    store_metadata(tensor[0], meta, kind, list(range(128)), 0)
    store_scales(tensor[0], for_a, SCALES, 0)
    store_scales(tensor[0], for_b, B_SCALES, 0)
    left = t.place(shared[0], A_AT, encode_for_shared(codes, kind, name), Swizzle.B64)
    two = t.place(shared[0], 0, encode_for_shared(y, kind, name), Swizzle.B128)
    bits = descriptor(kind, m, n, (name, name), "f32", sparse=True, scale=from_name(scale))
    vector = {1: ".block32", 2: ".block32", 4: ".block16"}[count]
    form = f"tcgen05.mma.sp.cta_group::1.kind::{kind}.block_scale{vector}"
    text = instruction(form, bits, str(left), two, meta="[%r6], ", use=SCALED)
    output = t.run(text, shared, tensor)
    wide = 2 * K[kind] // count
    expected = (dense * np.repeat(of_a, wide, 1)) @ (t.values(y, name) * np.repeat(of_b, wide, 1)).T
    actual = result(output[0, :, COLUMN : COLUMN + n], "f32")
    np.testing.assert_array_equal(actual, expected.astype("f4"))


@pytest.mark.parametrize(("count", "vector", "first"), [(3, "block32", 3), (6, "block16", 2)])
def test_k_of_96(count: int, vector: str, first: int) -> None:
    """The second part of K = 96 is after the 128-byte line of the first, at the leading address."""
    random, m, n = np.random.default_rng(14), 256, 32
    x, y = t.draw_codes(random, "e2m1", (m, 96)), t.draw_codes(random, "e2m1", (n, 96))
    scale = "ue8m0" if count == 3 else "ue4m3"
    for_a, of_a = draw_scales(random, scale, (m, count))
    for_b, of_b = draw_scales(random, scale, (n, count))
    shared, tensor = np.zeros((2, SPACE), "u1"), np.zeros((2, 128, 512), "u4")
    descriptors: list[int] = [0, 0]
    for cta in range(2):
        mine = x[cta * 128 : cta * 128 + 128], y[cta * 16 : cta * 16 + 16]
        for index, (rows, start) in enumerate(zip(mine, (A_AT, 0), strict=True)):
            line = np.zeros((len(rows), 256), "u1")
            line[:, 96:144] = t.pairs(rows)
            low = t.place(shared[cta], start, line[:, :128].copy(), Swizzle.B128)
            t.place(shared[cta], start + 32768, line[:, 128:].copy(), Swizzle.B128)
            leading = t.BOX + start + 32768
            descriptors[index] = (low & ~(0x3FFF << 16)) + (96 >> 4) | leading >> 4 << 16 | 1 << 52
        store_scales(tensor[cta], for_a[cta * 128 : cta * 128 + 128], SCALES, first)
        store_scales(tensor[cta], for_b, B_SCALES, first)
    kind = "mxf4" if count == 3 else "mxf4nvf4"
    bits = descriptor(
        kind, m, n, ("e2m1", "e2m1"), "f32", k96=True, scale=from_name(scale),
    ) | first << 29 | first << 4  # fmt: skip
    form = f"tcgen05.mma.cta_group::2.kind::{kind}.block_scale.{vector}"
    text = instruction(form, bits, str(descriptors[0]), descriptors[1], use=SCALED)
    output = t.run(text, shared, tensor, target="sm_103a")
    wide = 96 // count
    expected = (t.values(x, "e2m1") * np.repeat(of_a, wide, 1)) @ (t.values(y, "e2m1") * np.repeat(of_b, wide, 1)).T
    got = result(t.gather_result(output, t.layout("A", n), m, n, COLUMN), "f32")
    np.testing.assert_array_equal(got, expected.astype("f4"))


def test_scale_factors_that_are_no_numbers_make_none() -> None:
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    factors = np.full((128, 1), 127, "u1")
    for_a = factors.copy()
    for_a[5] = 255
    store_scales(tensor[0], for_a, SCALES, 0)
    store_scales(tensor[0], factors[:16], B_SCALES, 0)
    left = t.place(shared[0], A_AT, np.full((128, 32), 0x38, "u1"), Swizzle.NONE)
    bits = descriptor("mxf8f6f4", 128, 16, ("e4m3", "e4m3"), "f32")
    form = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
    for precision in ("float32", "hardware"):
        text = instruction(form, bits, str(left), left, use=SCALED)
        actual = result(t.run(text, shared, tensor, precision=precision)[0, :, COLUMN : COLUMN + 16], "f32")
        assert np.isnan(actual[5]).all()
        assert (np.delete(actual, 5, 0) == 32).all()


def test_copies_that_differ_are_an_error() -> None:
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    store_scales(tensor[0], np.full((16, 1), 127, "u1"), B_SCALES, 0, (0, 1, 3))
    left = t.place(shared[0], 0, np.zeros((128, 32), "u1"), Swizzle.NONE)
    bits = descriptor("mxf8f6f4", 128, 16, ("e4m3", "e4m3"), "f32")
    form = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
    with raises(PtxError, match="the scale factors of B differ between the quarters"):
        t.run(instruction(form, bits, str(left), left, use=SCALED), shared, tensor)
