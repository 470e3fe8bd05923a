"""`precision="hardware"` for products that ptxas lowers to other instructions: the same bits as those instructions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from pyptx import sim
from pyptx.isa.targets import FIRST_PTX, find_target
from pyptx.parser import parse
from pyptx.sim.numerics.formats import decode
from pyptx.sim.numerics.products import multiply_matrices
from pyptx.sim.numerics.sparse import expand
from pyptx.sim.numerics.tensor_core import CORES, select_rule
from tests.sim.numerics import exact, slow_dot
from tools.sim_products import addend, codes

SIDE = 8
Words = NDArray[np.uint32]


def _kernel(target: str, body: str) -> str:
    loads = "\n".join(f"ld.global.b32 %r{n}, [%x+{4 * n}];" for n in range(10))
    stores = "\n".join(f"st.global.b32 [%y+{4 * n}], %d{n};" for n in range(4))
    return f"""
.version 8.7
.target {target}
.address_size 64
.visible .entry k(.param .u64 words, .param .u64 out)
{{
.reg .b32 %t, %r<10>, %l<6>, %u<6>, %d<4>, %s<4>, %zero; .reg .b16 %low, %high; .reg .b64 %x, %y;
mov.u32 %t, %tid.x; ld.param.u64 %x, [words]; ld.param.u64 %y, [out];
mad.wide.u32 %x, %t, 40, %x; mad.wide.u32 %y, %t, 16, %y;
{loads}
mov.b32 %zero, 0; mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
{body}
{stores}
ret;
}}
"""


def _run(target: str, body: str, words: Words) -> Words:
    out = np.zeros((32, 4), np.uint32)
    sim.run(parse(_kernel(target, body)), block=32, args=[words, out], precision="hardware")
    return out


def _registers(name: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{name}{n}" for n in range(first, first + count)) + "}"


def _bytes(seed: int, largest: int) -> Words:
    random = np.random.default_rng(seed)
    magnitudes = random.integers(0, largest + 1, (32, 40)) | random.integers(0, 2, (32, 40)) << 7
    return magnitudes.astype(np.uint8).view(np.uint32)


def test_every_architecture_with_tensor_cores_says_how_they_sum() -> None:
    assert CORES.keys() == {find_target(name).arch for name in FIRST_PTX if find_target(name).arch >= 70}


@pytest.mark.parametrize("output", ["f32", "f16"])
@pytest.mark.parametrize("depth", [16, 32])
@pytest.mark.parametrize("target", ["sm_90", "sm_100a", "sm_103", "sm_110"])
def test_mma_of_fp8_is_two_products_of_f16(target: str, depth: int, output: str) -> None:
    """As in the machine code: the lower halves of all registers, then the upper ones, and the addend at the end."""
    words, a, b = _bytes(depth, 0x7B), depth // 8, depth // 16
    words[:, 6:] = np.random.default_rng(1).standard_normal((32, 4)).astype("f4").view("u4") & 0xBFFFBFFF
    accumulators = 4 if output == "f32" else 2
    c, d = _registers("r", 6, accumulators), _registers("d", 0, accumulators)
    operands = f"{_registers('r', 0, a)}, {_registers('r', a, b)}, {c}"
    native = f"mma.sync.aligned.m16n8k{depth}.row.col.{output}.e4m3.e5m2.{output} {d}, {operands};"
    unpack = [
        f"mov.b32 {{%low, %high}}, %r{n}; cvt.rn.f16x2.{'e4m3' if n < a else 'e5m2'}x2 %l{n}, %low;"
        f"cvt.rn.f16x2.{'e4m3' if n < a else 'e5m2'}x2 %u{n}, %high;"
        for n in range(a + b)
    ]
    half = f"mma.sync.aligned.m16n8k{depth // 2}.row.col.{output}.f16.f16.{output}"
    zeros = "{" + ", ".join(["%zero"] * accumulators) + "}"
    steps = [
        f"{half} {_registers('s', 0, accumulators)}, {_registers('l', 0, a)}, {_registers('l', a, b)}, {zeros};",
        f"{half} {_registers('s', 0, accumulators)}, {_registers('u', 0, a)}, {_registers('u', a, b)}, "
        f"{_registers('s', 0, accumulators)};",
    ]
    kind = "f32" if output == "f32" else "f16x2"
    sums = [f"add.rn.{kind} %d{n}, %r{6 + n}, %s{n};" for n in range(accumulators)]
    emulation = " ".join([*unpack, *steps, *sums]).replace("{%r4}", "%r4")
    np.testing.assert_array_equal(_run(target, native, words), _run(target, emulation, words))


@pytest.mark.parametrize(("span", "depth", "sparse"), [(4, 16, False), (4, 32, False), (8, 64, True)])
@pytest.mark.parametrize("sm", [90, 110])
def test_fp8_in_rationals(sm: int, span: int, depth: int, sparse: bool) -> None:
    random, rule = np.random.default_rng(sm), select_rule("mma", sm, "f16", "f32", sparse=sparse)
    a, b = codes(random, "e4m3", (SIDE, depth)), codes(random, "e5m2", (depth, SIDE))
    if sparse:
        meta = random.choice((0b0100, 0b1000, 0b1001, 0b1110), (SIDE, depth // 4)).astype(np.uint8)
        a = expand(a[:, : depth // 2], meta, "2:4")
    c = addend(random, SIDE, "f32")
    got = multiply_matrices(a, b, c, ("f32", "e4m3", "e5m2"), instruction="mma", sm=sm, sparse=sparse)
    for i, j in np.ndindex(SIDE, SIDE):
        row, column = a[i].tolist(), b[:, j].tolist()
        expected = slow_dot.chain_unpacked(row, column, float(c[i, j]), span, rule.fraction, rule.step, "f32")
        assert got[i, j] == expected


def _single(x: Fraction) -> Fraction:
    return Fraction(float(np.array(exact.encode(x, "f32", "rn"), np.uint32).view(np.float32)))


@pytest.mark.parametrize("output", ["f32", "f16"])
def test_four_products_of_f16_are_added_by_threads_since_ampere(output: str) -> None:
    random = np.random.default_rng(5)
    a, b = (random.standard_normal((SIDE, 4)) * 2.0 ** random.integers(-9, 9, (SIDE, 4)) for _ in "ab")
    a, b = a.astype("f2").astype("f4"), b.astype("f2").astype("f4")
    a[::2, 2:], b[:, 2:] = a[::2, :2], -b[:, :2]
    c = addend(random, SIDE, output)
    got = multiply_matrices(a, b.T, c, (output, "f16", "f16"), instruction="mma", sm=80)
    differing = 0
    for i, j in np.ndindex(SIDE, SIDE):
        terms = [Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[j], strict=True)]
        total = Fraction(float(c[i, j]))
        for group in [terms[:2], terms[2:]] if output == "f16" else [terms]:
            sum_of_products = Fraction(0)
            for term in group:
                sum_of_products = _single(sum_of_products + term)
            total = _single(total + sum_of_products)
        assert decode(got.astype("f2").view("u2") if output == "f16" else got, output)[i, j] == (
            slow_dot.value(exact.encode(total, "f16", "rn"), 10, 15) if output == "f16" else total
        )
        differing += bool(total != Fraction(float(c[i, j])) + sum(terms))
    assert differing


@pytest.mark.parametrize("sm", [80, 90, 100])
def test_wmma_of_tf32_takes_four_elements_at_a_time(sm: int) -> None:
    random = np.random.default_rng(sm)
    a, b, c = codes(random, "tf32", (SIDE, 8)), codes(random, "tf32", (8, SIDE)), addend(random, SIDE, "f32")
    got = multiply_matrices(a, b, c, ("f32", "tf32", "tf32"), instruction="wmma", sm=sm)
    fraction = select_rule("mma", sm, "tf32").fraction
    expected = [
        [slow_dot.chain(row, column, float(c[i, j]), ("tf32", "tf32"), fraction, 4, "f32")
         for j, column in enumerate(b.T.tolist())]
        for i, row in enumerate(a.tolist())
    ]  # fmt: skip
    np.testing.assert_array_equal(got, np.array(expected, np.float32))


def test_wmma_sums_an_f32_addend_in_f32_before_it_rounds_to_f16() -> None:
    """1 + 2**-11 + 2**-24 is first truncated to f32, which leaves a tie."""
    body = """
wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32 {%d0, %d1, %d2, %d3},
 {%r1, %zero, %zero, %zero, %zero, %zero, %zero, %zero}, {%r2, %r2, %r2, %r2, %r2, %r2, %r2, %r2},
 {%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0};"""
    words = np.zeros((32, 10), np.uint32)
    words.view(np.float32)[:, 0] = 1 + 2.0**-11
    words.view(np.float16)[0, 2], words.view(np.float16)[:, 4:6] = 2.0**-12, 2.0**-12
    assert set(_run("sm_90", body, words).view(np.float16).reshape(-1).tolist()) == {1.0}
