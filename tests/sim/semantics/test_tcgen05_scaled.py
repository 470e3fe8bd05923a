"""Block-scaled tcgen05.mma against NumPy in double precision: scale vectors, ids, pairs, sparse, and a whole GEMM."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.diagnostics import PtxError
from pyptx.tensormap import Swizzle
from pyptx.types import from_name
from tests.sim import tensor as t
from tests.sim.semantics.test_tcgen05_mma import (
    A_AT,
    COLUMN,
    LEFT,
    SCALES,
    SPACE,
    Array,
    K,
    contained,
    descriptor,
    instruction,
    put_metadata,
    result,
    sparse_rows,
    stored,
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


def put_scales(tensor: Array, codes: Array, column: int, first: int, quarters: tuple[int, ...] = (0, 1, 2, 3)) -> None:
    """Store scale factors: rows go down 32 lanes, then on in the next column, the same in every quarter; those of one
    row lie side by side from byte `first` on, and go on behind the columns of all rows."""
    groups = -(-len(codes) // 128) * 4
    for row, block in np.ndindex(*codes.shape):
        at = column + row // 32 + (first + block) // 4 * groups
        for quarter in quarters:
            tensor[quarter * 32 + row % 32, at] |= np.uint32(int(codes[row, block]) << (first + block) % 4 * 8)


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
    x, y = t.some_codes(random, a, (m, depth)), t.some_codes(random, b, (n, depth))
    for_a, of_a = draw_scales(random, scale, (m, count))
    for_b, of_b = draw_scales(random, scale, (n, count))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    second_id = (first + count) % 4 if count < 4 else 0
    put_scales(tensor[0], for_a, SCALES, first)
    put_scales(tensor[0], for_b, B_SCALES, second_id)
    words = contained(x, kind, a)
    tensor[0, :, LEFT : LEFT + words.shape[1]] = words
    one = str(t.place(shared[0], A_AT, stored(x, kind, a), Swizzle.B128)) if source == "shared" else "[%r5]"
    two = t.place(shared[0], 0, stored(y, kind, b), Swizzle.B32)
    bits = descriptor(kind, m, n, (a, b), "f32", scale=from_name(scale), a_scale_id=first, b_scale_id=second_id)
    form = f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{vector}"
    made = t.run(instruction(form, bits, one, two, use=SCALED), shared, tensor)
    wide = depth // count
    wanted = (t.values(x, a) * np.repeat(of_a, wide, 1)) @ (t.values(y, b) * np.repeat(of_b, wide, 1)).T
    found = result(made[0, :, COLUMN : COLUMN + n], "f32")
    np.testing.assert_array_equal(found, wanted.astype("f4"))


def test_scaled_products_of_many_ctas_are_scaled() -> None:
    random, m, n, ctas = np.random.default_rng(17), 128, 32, 3
    x, y = t.some_codes(random, "e4m3", (ctas, m, 32)), t.some_codes(random, "e4m3", (n, 32))
    for_a, of_a = draw_scales(random, "ue8m0", (m, 1))
    for_b, of_b = draw_scales(random, "ue8m0", (n, 1))
    shared, tensor = np.zeros((ctas, SPACE), "u1"), np.zeros((ctas, 128, 512), "u4")
    one = two = 0
    for cta in range(ctas):
        one, two = t.place(shared[cta], A_AT, x[cta], Swizzle.B32), t.place(shared[cta], 0, y, Swizzle.B32)
        put_scales(tensor[cta], for_a, SCALES, 0)
        put_scales(tensor[cta], for_b, B_SCALES, 0)
    bits = descriptor("mxf8f6f4", m, n, ("e4m3", "e4m3"), "f32", scale=from_name("ue8m0"), a_scale_id=0, b_scale_id=0)
    form = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X"
    made = t.run(instruction(form, bits, str(one), two, use=SCALED), shared, tensor, clusters=ctas)
    wanted = (t.values(x, "e4m3") * of_a) @ (t.values(y, "e4m3") * of_b).T
    found = result(np.ascontiguousarray(made[:, :, COLUMN : COLUMN + n]), "f32")
    np.testing.assert_array_equal(found, wanted.astype("f4"))


@pytest.mark.parametrize(("m", "n"), [(256, 64), (128, 64)])
def test_scaled_pairs(m: int, n: int) -> None:
    random, depth = np.random.default_rng(12), 64
    x, y = t.some_codes(random, "e2m1", (m, depth)), t.some_codes(random, "e2m1", (n, depth))
    for_a, of_a = draw_scales(random, "ue8m0", (m, 2))
    for_b, of_b = draw_scales(random, "ue8m0", (n, 2))
    shared, tensor = np.zeros((2, SPACE), "u1"), np.zeros((2, 128, 512), "u4")
    one = two = 0
    for cta in range(2):
        rows, columns = slice(cta * m // 2, (cta + 1) * m // 2), slice(cta * n // 2, (cta + 1) * n // 2)
        one = t.place(shared[cta], A_AT, t.pairs(x[rows]), Swizzle.B128)
        two = t.place(shared[cta], 0, t.pairs(y[columns]), Swizzle.B32)
        put_scales(tensor[cta], for_a[rows], SCALES, 0)
        if m == 256:
            put_scales(tensor[cta], for_b, B_SCALES, 2)
        else:
            # Two halves of N lie side by side in the lanes, and so do their scale factors.
            put_scales(tensor[cta], for_b[: n // 2], B_SCALES, 2, (0, 1))
            put_scales(tensor[cta], for_b[n // 2 :], B_SCALES, 2, (2, 3))
    bits = descriptor("mxf4", m, n, ("e2m1", "e2m1"), "f32", a_scale_id=0, b_scale_id=2)
    form = "tcgen05.mma.cta_group::2.kind::mxf4.block_scale.block32"
    made = t.run(instruction(form, bits, str(one), two, use=SCALED), shared, tensor)
    wanted = (t.values(x, "e2m1") * np.repeat(of_a, 32, 1)) @ (t.values(y, "e2m1") * np.repeat(of_b, 32, 1)).T
    where = t.layout("A" if m == 256 else "B", n)
    np.testing.assert_array_equal(result(t.gathered(made, where, m, n, COLUMN), "f32"), wanted.astype("f4"))


@pytest.mark.parametrize(
    ("kind", "name", "count"), [("mxf8f6f4", "e3m2", 1), ("mxf4", "e2m1", 2), ("mxf4nvf4", "e2m1", 4)]
)
def test_scaled_sparse(kind: str, name: str, count: int) -> None:
    random, m, n = np.random.default_rng(13), 128, 40
    codes, meta, dense = sparse_rows(random, kind, name, m)
    y = t.some_codes(random, name, (n, 2 * K[kind]))
    scale = "ue4m3" if count == 4 else "ue8m0"
    for_a, of_a = draw_scales(random, scale, (m, count))
    for_b, of_b = draw_scales(random, scale, (n, count))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    put_metadata(tensor[0], meta, kind, list(range(128)), 0)
    put_scales(tensor[0], for_a, SCALES, 0)
    put_scales(tensor[0], for_b, B_SCALES, 0)
    one = t.place(shared[0], A_AT, stored(codes, kind, name), Swizzle.B64)
    two = t.place(shared[0], 0, stored(y, kind, name), Swizzle.B128)
    bits = descriptor(kind, m, n, (name, name), "f32", sparse=True, scale=from_name(scale))
    vector = {1: ".block32", 2: ".block32", 4: ".block16"}[count]
    form = f"tcgen05.mma.sp.cta_group::1.kind::{kind}.block_scale{vector}"
    text = instruction(form, bits, str(one), two, meta="[%r6], ", use=SCALED)
    made = t.run(text, shared, tensor)
    wide = 2 * K[kind] // count
    wanted = (dense * np.repeat(of_a, wide, 1)) @ (t.values(y, name) * np.repeat(of_b, wide, 1)).T
    found = result(made[0, :, COLUMN : COLUMN + n], "f32")
    np.testing.assert_array_equal(found, wanted.astype("f4"))


@pytest.mark.parametrize(("count", "vector", "first"), [(3, "block32", 3), (6, "block16", 2)])
def test_k_of_96(count: int, vector: str, first: int) -> None:
    """The second part of K = 96 lies behind the 128-byte line of the first, where the leading address says."""
    random, m, n = np.random.default_rng(14), 256, 32
    x, y = t.some_codes(random, "e2m1", (m, 96)), t.some_codes(random, "e2m1", (n, 96))
    scale = "ue8m0" if count == 3 else "ue4m3"
    for_a, of_a = draw_scales(random, scale, (m, count))
    for_b, of_b = draw_scales(random, scale, (n, count))
    shared, tensor = np.zeros((2, SPACE), "u1"), np.zeros((2, 128, 512), "u4")
    found: list[int] = [0, 0]
    for cta in range(2):
        mine = x[cta * 128 : cta * 128 + 128], y[cta * 16 : cta * 16 + 16]
        for which, (rows, at) in enumerate(zip(mine, (A_AT, 0), strict=True)):
            line = np.zeros((len(rows), 256), "u1")
            line[:, 96:144] = t.pairs(rows)
            low = t.place(shared[cta], at, line[:, :128].copy(), Swizzle.B128)
            t.place(shared[cta], at + 32768, line[:, 128:].copy(), Swizzle.B128)
            leading = t.BOX + at + 32768
            found[which] = (low & ~(0x3FFF << 16)) + (96 >> 4) | leading >> 4 << 16 | 1 << 52
        put_scales(tensor[cta], for_a[cta * 128 : cta * 128 + 128], SCALES, first)
        put_scales(tensor[cta], for_b, B_SCALES, first)
    kind = "mxf4" if count == 3 else "mxf4nvf4"
    bits = descriptor(
        kind, m, n, ("e2m1", "e2m1"), "f32", k96=True, scale=from_name(scale),
    ) | first << 29 | first << 4  # fmt: skip
    form = f"tcgen05.mma.cta_group::2.kind::{kind}.block_scale.{vector}"
    text = instruction(form, bits, str(found[0]), found[1], use=SCALED)
    made = t.run(text, shared, tensor, target="sm_103a")
    wide = 96 // count
    wanted = (t.values(x, "e2m1") * np.repeat(of_a, wide, 1)) @ (t.values(y, "e2m1") * np.repeat(of_b, wide, 1)).T
    got = result(t.gathered(made, t.layout("A", n), m, n, COLUMN), "f32")
    np.testing.assert_array_equal(got, wanted.astype("f4"))


def test_scale_factors_that_are_no_numbers_make_none() -> None:
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    ones = np.full((128, 1), 127, "u1")
    for_a = ones.copy()
    for_a[5] = 255
    put_scales(tensor[0], for_a, SCALES, 0)
    put_scales(tensor[0], ones[:16], B_SCALES, 0)
    one = t.place(shared[0], A_AT, np.full((128, 32), 0x38, "u1"), Swizzle.NONE)
    bits = descriptor("mxf8f6f4", 128, 16, ("e4m3", "e4m3"), "f32")
    form = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
    for precision in ("float32", "hardware"):
        text = instruction(form, bits, str(one), one, use=SCALED)
        found = result(t.run(text, shared, tensor, precision=precision)[0, :, COLUMN : COLUMN + 16], "f32")
        assert np.isnan(found[5]).all()
        assert (np.delete(found, 5, 0) == 32).all()


def test_copies_that_differ_are_an_error() -> None:
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    put_scales(tensor[0], np.full((16, 1), 127, "u1"), B_SCALES, 0, (0, 1, 3))
    one = t.place(shared[0], 0, np.zeros((128, 32), "u1"), Swizzle.NONE)
    bits = descriptor("mxf8f6f4", 128, 16, ("e4m3", "e4m3"), "f32")
    form = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
    with pytest.raises(PtxError, match="the scale factors of B differ between the quarters"):
        t.run(instruction(form, bits, str(one), one, use=SCALED), shared, tensor)
