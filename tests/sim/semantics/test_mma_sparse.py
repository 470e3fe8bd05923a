"""mma.sp of every type: random zeros, stored and described as in the manual, against the dense product."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pyptx import sim
from pyptx.isa import fragments as f
from pyptx.isa.fragments.sparsity import mma_metadata
from pyptx.parser import parse
from pyptx.types import from_name

KINDS: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
CASES = [
    ("m16n8k16", "f32.f16.f16.f32", "", 16), ("m16n8k32", "f32.f16.f16.f32", "", 32),
    ("m16n8k16", "f32.bf16.bf16.f32", "", 16), ("m16n8k32", "f32.bf16.bf16.f32", "", 32),
    ("m16n8k8", "f32.tf32.tf32.f32", "", 8), ("m16n8k16", "f32.tf32.tf32.f32", "", 16),
    ("m16n8k32", "s32.s8.u8.s32", "", 32), ("m16n8k64", "s32.u8.s8.s32", "", 64),
    ("m16n8k64", "f32.e4m3.e5m2.f32", "", 64), ("m16n8k64", "f32.e2m1.e2m1.f32", ".kind::f8f6f4", 64),
    ("m16n8k64", "f32.e2m3.e3m2.f32", ".kind::f8f6f4", 64), ("m16n8k64", "f32.e3m2.e2m1.f32", ".kind::f8f6f4", 64),
]  # fmt: skip


def words(fragment: f.Fragment, matrix: Any, kind: str) -> Any:
    """Return the registers `[register, lane]` that hold a matrix."""
    bits = fragment.bits
    raw = matrix.astype(KINDS[kind]).view(f"u{KINDS[kind](0).itemsize}").astype(np.uint64)
    raw = raw << np.uint64(2 if kind == "e2m1" and bits == 8 else 0)
    output = np.zeros((fragment.registers, 32), np.uint64)
    for lane in range(32):
        for element in range(fragment.count):
            register, bit = fragment.slot(element)
            output[register, lane] |= raw[fragment.position(lane, element)] << np.uint64(bit)
    return output.astype(np.uint32)


def pattern(rows: int, chunks: int, bits: int, rng: np.random.Generator) -> Any:
    """Return four random metadata bits for every chunk of every row."""
    legal = [0b0100, 0b1110] if bits == 32 else [a | b << 2 for a in range(4) for b in range(a + 1, 4)]
    return rng.choice(legal, (rows, chunks))


@pytest.mark.parametrize(("shape", "types", "kind", "k"), CASES)
def test_sparse_product(shape: str, types: str, kind: str, k: int) -> None:
    rng = np.random.default_rng(k)
    _, left, right, _ = types.split(".")
    bits = f.element_bits(from_name(left), "f8f6f4")
    width = 2 if bits == 32 else 4
    chunks = k // width
    nibbles = pattern(16, chunks, bits, rng)
    compact = rng.integers(0 if left == "u8" else -2, 3, (16, k // 2))
    b = rng.integers(0 if right == "u8" else -2, 3, (k, 8))
    whole = np.zeros((16, k))
    for row in range(16):
        for chunk in range(chunks):
            n = int(nibbles[row, chunk])
            if bits == 32:
                whole[row, 2 * chunk + (n == 0b1110)] = compact[row, chunk]
            else:
                whole[row, 4 * chunk + (n & 3)] = compact[row, 2 * chunk]
                whole[row, 4 * chunk + (n >> 2)] = compact[row, 2 * chunk + 1]
    meta = np.zeros(32, np.uint32)
    for row in range(16):
        for chunk in range(chunks):
            place = mma_metadata(row, chunk, k=k, bits=bits)
            meta[place.lane] |= int(nibbles[row, chunk]) << place.bit
    a_words = words(f.mma_a(16, k // 2, bits), compact, left)
    b_words = words(f.mma_b(k, 8, f.element_bits(from_name(right), "f8f6f4")), b, right)
    got = run(shape, types, kind, a_words, b_words, meta)
    accumulator = f.mma_accumulator(16, 8, from_name(types[:3]))
    output = np.zeros((16, 8))
    values = got.view(np.float32) if types[0] == "f" else got.view(np.int32)
    for lane in range(32):
        for element in range(4):
            output[accumulator.position(lane, element)] = values[element, lane]
    assert np.array_equal(output, whole @ b)


def run(shape: str, types: str, kind: str, a: Any, b: Any, meta: Any, precision: str = "float32") -> Any:
    """Run one mma.sp on registers `[register, lane]`; return those of D."""
    count, extra = len(a), len(b)
    letter = "f" if types[0] == "f" else "r"
    zeros = ", ".join([f"%{letter}{n}" for n in range(4)])
    target, version = ("sm_120a", "8.7") if kind else ("sm_90a", "8.5")
    lines = [f"ld.global.b32 %a{n}, [%rd1+{128 * n}];" for n in range(count)]
    lines += [f"ld.global.b32 %b{n}, [%rd1+{128 * (count + n)}];" for n in range(extra)]
    text = f""".version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 given, .param .u64 out)
{{
    .reg .b32 %a<8>, %b<8>, %r<8>; .reg .f32 %f<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [given];
    ld.param.u64 %rd2, [out];
    mov.u32 %r7, %tid.x;
    mad.wide.u32 %rd1, %r7, 4, %rd1;
    mad.wide.u32 %rd2, %r7, 4, %rd2;
    {" ".join(lines)}
    ld.global.b32 %r6, [%rd1+{128 * (count + extra)}];
    {" ".join(f"mov.b32 %{letter}{n}, 0;" for n in range(4))}
    mma.sp::ordered_metadata.sync.aligned.{shape}.row.col{kind}.{types}
        {{{zeros}}}, {{{", ".join(f"%a{n}" for n in range(count))}}},
        {{{", ".join(f"%b{n}" for n in range(extra))}}}, {{{zeros}}}, %r6, 0;
    {" ".join(f"st.global.b32 [%rd2+{128 * n}], %{letter}{n};" for n in range(4))}
    ret;
}}
"""
    source = np.concatenate([a, b, meta[None]])
    out = np.zeros((4, 32), np.uint32)
    sim.run(parse(text), "k", block=32, args=[source, out], precision=precision)
    return out


@pytest.mark.parametrize("precision", ["float32", "hardware"])
def test_elements_of_b_that_no_stored_element_meets_have_no_effect(precision: str) -> None:
    """Every chunk of A stores its first two elements; the others of B are infinite, NaN, or so large that a zero times
    them would hide the sum of small products."""
    bits, k = 16, 16
    compact = np.full((16, 8), 2.0**-20)
    b = np.zeros((k, 8))
    b[0::4] = 2.0**-20
    b[2::4, :3], b[3::4, 3:5], b[3::4, 5:] = np.inf, np.nan, 2.0**120
    meta = np.full(32, 0x44444444, np.uint32)
    a_words, b_words = words(f.mma_a(16, 8, bits), compact, "bf16"), words(f.mma_b(k, 8, bits), b, "bf16")
    got = run("m16n8k16", "f32.bf16.bf16.f32", "", a_words, b_words, meta, precision)
    assert got.view(np.float32).tolist() == [[4 * 2.0**-40] * 32] * 4
