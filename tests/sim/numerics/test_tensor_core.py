"""`precision="hardware"` of whole kernels, bit for bit against the sum of each target's tensor cores in rationals."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.isa.descriptors import InstructionDescriptor
from pyptx.parser import parse
from pyptx.tensormap import Swizzle
from pyptx.types import from_name
from tests.messages import raises
from tests.sim import tensor as t
from tests.sim.numerics import slow_dot
from tests.sim.semantics.test_tcgen05_mma import A_AT, COLUMN, SCALES, SPACE, Array, instruction, result
from tests.sim.semantics.test_tcgen05_scaled import B_SCALES, SCALED, draw_scales, store_scales


def wide_halves(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return halves of many magnitudes, so that sums lose bits."""
    return (random.standard_normal(shape) * 2.0 ** random.integers(-8, 6, shape)).astype("f2")


def chains(a: Array, b: Array, c: Array, names: tuple[str, str], fraction: int, step: int, output: str) -> Array:
    """Return a @ b.T + c, every element in rationals."""
    result = np.empty((len(a), len(b)))
    for row, col in np.ndindex(*result.shape):
        result[row, col] = slow_dot.chain(
            a[row].tolist(), b[col].tolist(), float(c[row, col]), names, fraction, step, output
        )
    return result


MMA = """.version 8.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 words, .param .u64 out)
{{
.reg .b32 %t, %r<8>; .reg .f32 %c<4>, %d<4>; .reg .b64 %x, %y;
mov.u32 %t, %tid.x; ld.param.u64 %x, [words]; ld.param.u64 %y, [out];
mad.wide.u32 %x, %t, 40, %x; mad.wide.u32 %y, %t, 16, %y;
{loads}
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%d0, %d1, %d2, %d3}}, {{%r0, %r1, %r2, %r3}}, {{%r4, %r5}},
 {{%c0, %c1, %c2, %c3}};
st.global.f32 [%y], %d0; st.global.f32 [%y+4], %d1; st.global.f32 [%y+8], %d2; st.global.f32 [%y+12], %d3;
ret;
}}
"""
LOADS = " ".join(
    [f"ld.global.b32 %r{n}, [%x+{4 * n}];" for n in range(6)]
    + [f"ld.global.f32 %c{n}, [%x+{24 + 4 * n}];" for n in range(4)]
)


@pytest.mark.parametrize(("target", "fraction", "step"), [("sm_80", 24, 8), ("sm_90", 25, 16), ("sm_120", 25, 16)])
def test_mma_sums_as_its_target_does(target: str, fraction: int, step: int) -> None:
    random = np.random.default_rng(1)
    a, b = wide_halves(random, (16, 16)), wide_halves(random, (8, 16))
    c = random.standard_normal((16, 8)).astype("f4")
    words, out = np.zeros((32, 10), "u4"), np.zeros((32, 4), "f4")
    for lane in range(32):
        # Positions from the manual's formulas for m16n8k16.
        group, quad = lane >> 2, lane % 4
        for i in range(8):
            row, col = group + 8 * (i % 4 >= 2), quad * 2 + (i & 1) + 8 * (i >= 4)
            words[lane, i // 2] |= np.uint32(int(a.view("u2")[row, col]) << 16 * (i & 1))
        for i in range(4):
            words[lane, 4 + i // 2] |= np.uint32(
                int(b.view("u2")[group, quad * 2 + (i & 1) + 8 * (i >= 2)]) << 16 * (i & 1)
            )
            words[lane, 6 + i] = c.view("u4")[group + 8 * (i >= 2), quad * 2 + (i & 1)]
    sim.run(parse(MMA.format(target=target, loads=LOADS)), block=32, args=[words, out], precision="hardware")
    matrix = np.empty((16, 8), "f4")
    for lane in range(32):
        for i in range(4):
            matrix[(lane >> 2) + 8 * (i >= 2), lane % 4 * 2 + (i & 1)] = out[lane, i]
    expected = chains(a.astype("f8"), b.astype("f8"), c, ("f16", "f16"), fraction, step, "f32")
    np.testing.assert_array_equal(matrix, expected)
    assert (matrix != (a.astype("f8") @ b.astype("f8").T + c).astype("f4")).any()


@pytest.mark.parametrize("d", ["f32", "f16"])
def test_tcgen05_sums_as_blackwell_does(d: str) -> None:
    random, m, n = np.random.default_rng(2), 64, 8
    a, b = wide_halves(random, (m, 16)), wide_halves(random, (n, 16))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    first, second = t.place(shared[0], A_AT, a, Swizzle.B32), t.place(shared[0], 0, b, Swizzle.B32)
    half = from_name("f16")
    bits = InstructionDescriptor("f16", m, n, half, half, from_name(d)).encode()
    text = instruction("tcgen05.mma.cta_group::1.kind::f16", bits, str(first), second, count=2)
    output = t.run(text, shared, tensor, precision="hardware")
    start = chains(a.astype("f8"), b.astype("f8"), np.zeros((m, n)), ("f16", "f16"), 25, 16, d)
    expected = chains(a.astype("f8"), b.astype("f8"), start, ("f16", "f16"), 25, 16, d)
    np.testing.assert_array_equal(result(t.gather_result(output, t.layout("F", n), m, n, COLUMN), d), expected)


@pytest.mark.parametrize(
    ("kind", "name", "scale", "count"),
    [("mxf8f6f4", "e4m3", "ue8m0", 1), ("mxf4", "e2m1", "ue8m0", 2), ("mxf4nvf4", "e2m1", "ue4m3", 4)],
)
def test_block_scaled_sums(kind: str, name: str, scale: str, count: int) -> None:
    random, m, n = np.random.default_rng(3), 128, 8
    depth = 32 if kind == "mxf8f6f4" else 64
    x = random.integers(0, 256 if name == "e4m3" else 16, (m, depth)).astype("u1")
    y = random.integers(0, 256 if name == "e4m3" else 16, (n, depth)).astype("u1")
    if name == "e4m3":
        x, y = np.where(x & 0x7F == 0x7F, 0, x).astype("u1"), np.where(y & 0x7F == 0x7F, 0, y).astype("u1")
    for_a, of_a = draw_scales(random, scale, (m, count))
    for_b, of_b = draw_scales(random, scale, (n, count))
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    store_scales(tensor[0], for_a, SCALES, 0)
    store_scales(tensor[0], for_b, B_SCALES, 0)
    old = (random.standard_normal((m, n)) * 2.0 ** random.integers(-9, 9, (m, n))).astype("f4")
    tensor[0, :, COLUMN : COLUMN + n] = old.view("u4")
    pack = t.pairs if name == "e2m1" else np.asarray
    first, two = t.place(shared[0], A_AT, pack(x), Swizzle.B32), t.place(shared[0], 0, pack(y), Swizzle.B32)
    element = from_name(name)
    bits = InstructionDescriptor(kind, m, n, element, element, from_name("f32"), scale=from_name(scale)).encode()
    vector = {1: "block32", 2: "block32", 4: "block16"}[count]
    text = instruction(
        f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale.{vector}", bits, str(first), two,
        use=SCALED.replace("%never", "%yes"),
    )  # fmt: skip
    output = result(t.run(text, shared, tensor, precision="hardware")[0, :, COLUMN : COLUMN + n], "f32")
    a, b = t.values(x, name), t.values(y, name)
    for row in range(0, m, 5):
        for col in range(n):
            left, right, c = a[row].tolist(), b[col].tolist(), float(old[row, col])
            if count == 1:
                power = int(for_a[row, 0]) + int(for_b[col, 0]) - 254
                expected = slow_dot.chain(left, right, c, (name, name), 25, 32, "f32", [power])
            else:
                least = -127 if scale == "ue8m0" else -6
                expected = slow_dot.block(left, right, of_a[row].tolist(), of_b[col].tolist(), c, least)
            assert output[row, col] == expected


def test_other_precisions_are_refused() -> None:
    with raises(PtxError, match="no precision 'double'; the precisions are float32, hardware"):
        sim.run(parse(MMA.format(target="sm_80", loads="")), precision="double")
