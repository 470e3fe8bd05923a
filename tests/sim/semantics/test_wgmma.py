"""wgmma against NumPy: types, layouts of shared memory, A in registers, sparse A, scales; and the Hopper GEMM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.isa import fragments as f
from pyptx.isa.descriptors import WgmmaDescriptor
from pyptx.isa.swizzle import swizzle
from pyptx.parser import parse
from pyptx.sim.numerics.formats import decode
from pyptx.sim.numerics.sparse import expand
from pyptx.tensormap import ElementType, Swizzle, TensorMap
from pyptx.types import from_name
from tests.messages import raises

Array = np.ndarray[Any, Any]
B_AT = 32768
SIZE = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "b1": 1}


def codes(kind: str, shape: tuple[int, ...], seed: int) -> Array:
    """Return small numbers of a type as their bits."""
    random = np.random.default_rng(seed)
    if kind in ("s8", "u8", "b1"):
        return random.integers(0, 256, shape).astype("u1")
    if kind in ("e4m3", "e5m2"):
        return (random.integers(0x30, 0x44, shape) | random.integers(0, 2, shape) << 7).astype("u1")
    numbers = random.integers(-4, 5, shape).astype("f4")
    if kind == "f16":
        return numbers.astype("f2").view("u2")
    return numbers.view("u4") if kind == "tf32" else (numbers.view("u4") >> 16).astype("u2")


def values(bits: Array, kind: str) -> Array:
    if kind == "b1":
        return np.unpackbits(bits, axis=-1, bitorder="little").astype("f8")
    return (bits.view("i1") if kind == "s8" else bits if kind == "u8" else decode(bits, kind)).astype("f8")


def image(matrix: Array, mode: Swizzle, base: int, across: bool) -> tuple[bytearray, WgmmaDescriptor]:
    """Lay out rows of M or N (columns of K) in the manual's canonical layouts, one element at a time."""
    data, size, span = bytearray(32768), matrix.dtype.itemsize, mode.span or 16
    lead, stride = (128, 256) if not mode.span else (4096, 8 * span)
    if across and not mode.span:
        lead, stride = 4096, 128
    for (row, k), value in np.ndenumerate(matrix):
        if across:
            outer, inner = divmod(row * size, span)
            step, group = (stride, lead) if not mode.span else (lead, stride)
            index = outer * step + k // 8 * group + k % 8 * span + inner
        else:
            outer, inner = divmod(k * size, span)
            index = outer * lead + row // 8 * stride + row % 8 * span + inner
        index = swizzle(index, mode)
        data[index : index + size] = value.tobytes()
    return data, WgmmaDescriptor(base, lead, stride, mode)


def multiply(
    shape: str, types: str, a: Array | bytes, a_operand: str, b: bytes, b_operand: str, tail: str, registers: int,
    result: str = "f32", start: Array | None = None, meta: Array | None = None, between: str = "",
) -> Array:  # fmt: skip
    """Run one wgmma.mma_async of 128 threads, and again after `between`; return every thread's registers of D."""
    form = "wgmma.mma_async.sp.sync.aligned" if meta is not None else "wgmma.mma_async.sync.aligned"
    kind = "f32" if result == "f32" else "b32"
    names = ", ".join(f"%d{n}" for n in range(registers))
    issue = f"""wgmma.fence.sync.aligned;
{form}.{shape}.{result}.{types} {{{names}}}, {a_operand}, {b_operand}, {"%r0, 0, " if meta is not None else ""}{tail};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;"""
    output = np.zeros((128, registers), "u4") if start is None else start.view("u4").copy()
    text = f"""
.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 box[];
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d, .param .u64 words)
{{
.reg .b32 %t, %r<8>; .reg .b32 %a<4>; .reg .{kind} %d<{registers}>; .reg .b64 %x, %y, %z, %w, %at; .reg .pred %p;
.shared .align 8 .b64 bar;
mov.u32 %t, %tid.x;
ld.param.u64 %x, [a]; ld.param.u64 %y, [b]; ld.param.u64 %z, [d]; ld.param.u64 %w, [words];
setp.ne.u32 %p, %t, 0;
@%p bra ready;
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 65536;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%x], 32768, [bar];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box+{B_AT}], [%y], 32768, [bar];
ready:
bar.sync 0;
wait: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
@!%p bra wait;
mad.wide.u32 %w, %t, 20, %w;
ld.global.u32 %a0, [%w]; ld.global.u32 %a1, [%w+4]; ld.global.u32 %a2, [%w+8]; ld.global.u32 %a3, [%w+12];
ld.global.u32 %r0, [%w+16];
mad.wide.u32 %at, %t, {4 * registers}, %z;
{" ".join(f"ld.global.{kind} %d{n}, [%at+{4 * n}];" for n in range(registers))}
setp.eq.u32 %p, %t, %t;
{issue}
{between}
{issue if between else ""}
{" ".join(f"st.global.{kind} [%at+{4 * n}], %d{n};" for n in range(registers))}
ret;
}}
"""
    words = np.zeros((128, 5), "u4")
    if isinstance(a, np.ndarray):
        words[:, :4] = a
    if meta is not None:
        words[:, 4] = meta
    first = np.zeros(32768, "u1") if isinstance(a, np.ndarray) else np.frombuffer(bytes(a), "u1").copy()
    second = np.frombuffer(bytes(b), "u1").copy()
    sim.run(parse(text), block=128, shared=65536, args=[first, second, output, words])
    return output


def matrix(registers: Array, n: int, result: str) -> Array:
    """Return D from every thread's registers, by the fragment's own definition."""
    fragment = f.wgmma_accumulator(n, from_name(result))
    output = np.zeros((64, n))
    dtype = {"f32": "f4", "s32": "i4", "f16": "f2"}[result]
    units = registers.view(dtype).reshape(128, -1)
    for row in range(64):
        for col in range(n):
            place = fragment.place(row, col)
            per = 32 // fragment.bits
            output[row, col] = units[place.lane, place.register * per + place.bit // fragment.bits]
    return output


def expected(a: Array, b: Array, result: str) -> Array:
    product = a @ b.T
    return product.astype("f2").astype("f8") if result == "f16" else product


DENSE = [
    ("f16.f16", "f32", 16, Swizzle.B128), ("f16.f16", "f16", 16, Swizzle.B32), ("bf16.bf16", "f32", 16, Swizzle.B64),
    ("bf16.bf16", "f32", 16, Swizzle.NONE), ("tf32.tf32", "f32", 8, Swizzle.B128),
    ("e4m3.e5m2", "f32", 32, Swizzle.B64),
    ("e5m2.e4m3", "f16", 32, Swizzle.B128), ("s8.u8", "s32", 32, Swizzle.NONE),
    ("b1.b1.and.popc", "s32", 256, Swizzle.B128),
]  # fmt: skip


@pytest.mark.parametrize("source", ["shared", "registers"])
@pytest.mark.parametrize(("types", "result", "k", "mode"), DENSE)
def test_products_equal_numpy(types: str, result: str, k: int, mode: Swizzle, source: str) -> None:
    n = 24
    of_a, of_b = types.split(".")[:2]
    width = k // 8 if of_a == "b1" else k
    a, b = codes(of_a, (64, width), 1), codes(of_b, (n, width), 2)
    image_a, descriptor_a = image(a, mode, 2048, False)
    image_b, descriptor_b = image(b, mode, 2048 + B_AT, False)
    first: Any = bytes(image_a)
    operand = f"{descriptor_a.encode():#x}"
    if source == "registers":
        bits = 32 if SIZE[of_a] == 4 else 8 * SIZE[of_a]
        first, operand = fragments(a, bits), "{%a0, %a1, %a2, %a3}"
    tail = "%p" if result == "s32" else "%p, 1, 1"
    if SIZE[of_a] == 2:
        tail += ", 0" if source == "registers" else ", 0, 0"
    registers = n // 4 if result == "f16" else n // 2
    product = multiply(
        f"m64n{n}k{k}", types, first, operand, bytes(image_b), f"{descriptor_b.encode():#x}", tail, registers, result
    )
    np.testing.assert_array_equal(matrix(product, n, result), expected(values(a, of_a), values(b, of_b), result))


def fragments(a: Array, bits: int) -> Array:
    """Return A's four registers of every thread, by the fragment's own definition."""
    fragment = f.wgmma_a(a.shape[1], bits)
    output = np.zeros((128, 4), "u4")
    for (row, col), value in np.ndenumerate(a):
        place = fragment.place(row, col)
        output[place.lane, place.register] |= np.uint32(int(value) << place.bit)
    return output


@pytest.mark.parametrize("mode", [Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128])
def test_halves_may_lie_along_m_and_n(mode: Swizzle) -> None:
    a, b = codes("f16", (64, 16), 3), codes("f16", (128, 16), 4)
    (image_a, descriptor_a), (image_b, descriptor_b) = image(a, mode, 2048, True), image(b, mode, 2048 + B_AT, True)
    product = multiply(
        "m64n128k16", "f16.f16", bytes(image_a), f"{descriptor_a.encode():#x}",
        bytes(image_b), f"{descriptor_b.encode():#x}",
        "%p, 1, 1, 1, 1", 64,
    )  # fmt: skip
    np.testing.assert_array_equal(matrix(product, 128, "f32"), values(a, "f16") @ values(b, "f16").T)


@pytest.mark.parametrize(
    ("tail", "sign", "keeps"), [("%p, 1, -1", -1, True), ("!%p, -1, 1", -1, False), ("0, -1, -1", 1, False)]
)
def test_scales_negate_and_choose_whether_to_accumulate(tail: str, sign: int, keeps: bool) -> None:
    a, b = codes("tf32", (64, 8), 5), codes("tf32", (8, 8), 6)
    (image_a, descriptor_a), (image_b, descriptor_b) = (
        image(a, Swizzle.B32, 2048, False),
        image(b, Swizzle.B32, 2048 + B_AT, False),
    )
    start = np.full((128, 4), 1000, "f4")
    product = multiply(
        "m64n8k8", "tf32.tf32", bytes(image_a), f"{descriptor_a.encode():#x}",
        bytes(image_b), f"{descriptor_b.encode():#x}", tail, 4,
        start=start,
    )  # fmt: skip
    expected = sign * values(a, "tf32") @ values(b, "tf32").T + (1000 if keeps else 0)
    np.testing.assert_array_equal(matrix(product, 8, "f32"), expected)


@pytest.mark.parametrize(("kind", "k"), [("f16", 32), ("tf32", 16), ("s8", 64)])
def test_a_sparse_a_is_spread_by_its_metadata(kind: str, k: int) -> None:
    size, n = SIZE[kind], 16
    compact, b = codes(kind, (64, k // 2), 7), codes(kind, (n, k), 8)
    choices = np.array([0b0100, 0b1110] if kind == "tf32" else [0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110], "u1")
    chunks = np.random.default_rng(9).choice(choices, (64, k // (2 if kind == "tf32" else 4)))
    meta = np.zeros(128, "u4")
    for (row, chunk), code in np.ndenumerate(chunks):
        place = f.wgmma_metadata(row, chunk, bits=8 * size)
        meta[place.lane] |= np.uint32(int(code) << place.bit)
    dense = expand(values(compact, kind), chunks, "1:2" if kind == "tf32" else "2:4")
    (image_a, descriptor_a), (image_b, descriptor_b) = (
        image(compact, Swizzle.B32, 2048, False),
        image(b, Swizzle.B64, 2048 + B_AT, False),
    )
    tail = {"f16": "%p, 1, 1, 0, 0", "tf32": "%p, 1, 1", "s8": "%p"}[kind]
    result = "s32" if kind == "s8" else "f32"
    product = multiply(
        f"m64n{n}k{k}", f"{kind}.{kind}", bytes(image_a), f"{descriptor_a.encode():#x}",
        bytes(image_b), f"{descriptor_b.encode():#x}",
        tail, n // 2, result, meta=meta,
    )  # fmt: skip
    np.testing.assert_array_equal(matrix(product, n, result), dense @ values(b, kind).T)


def test_a_descriptor_outside_of_shared_memory_is_an_error() -> None:
    bits = WgmmaDescriptor(1 << 17, 128, 128).encode()
    with raises(PtxError, match="matrix B reads shared addresses 0x20000"):
        multiply("m64n8k16", "f16.f16", np.zeros((128, 4), "u4"), "{%a0, %a1, %a2, %a3}", bytes(32768), f"{bits:#x}",
                 "%p, 1, 1, 0", 4)  # fmt: skip


@pytest.mark.parametrize("check", ["none", "all"])
def test_half_a_warpgroup_makes_no_product(check: str) -> None:
    text = (Path(__file__).parents[1] / "patterns" / "ptx" / "wgmma_shared.ptx").read_text("utf-8")
    with raises(PtxError, match=r"PTX0964.*the CTA has 64 threads"):
        sim.run(parse(text), block=64, args=[np.zeros(4096, "u4")] * 2, check=check)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (256, 128, 576), (128, 384, 320)])
def test_the_warp_specialized_gemm_equals_numpy(m: int, n: int, k: int, schedule: str) -> None:
    random = np.random.default_rng(m + n + k)
    a, b = (random.integers(-3, 4, (rows, k)).astype("f4") for rows in (m, n))
    d = np.full((m, n), np.nan, "f4")
    text = (Path(__file__).parents[3] / "examples" / "hopper_gemm.ptx").read_text("utf-8")
    maps = [TensorMap(ElementType.BF16, 0, (k, rows), (2 * k,), (64, 128), swizzle=Swizzle.B128) for rows in (m, n)]
    arrays = [(x.view("u4") >> 16).astype("u2") for x in (a, b)]
    sim.run(
        parse(text), grid=(n // 128, m // 128), block=384, shared=131072, schedule=schedule,
        args=[*(sim.Tensor(x, y) for x, y in zip(arrays, maps, strict=True)), d, n, k // 64],
    )  # fmt: skip
    np.testing.assert_array_equal(d, a @ b.T)


@pytest.mark.parametrize("last", [0, 11])
def test_accumulators_changed_between_products_count(last: int) -> None:
    """The product continues from the current contents of the registers, not from its own earlier result."""
    a, b = codes("f16", (64, 16), 1), codes("f16", (24, 16), 2)
    images = [image(a, Swizzle.B32, 2048, False), image(b, Swizzle.B32, 2048 + B_AT, False)]
    (first, descriptor_a), (second, descriptor_b) = images
    product = multiply(
        "m64n24k16", "f16.f16", bytes(first), f"{descriptor_a.encode():#x}",
        bytes(second), f"{descriptor_b.encode():#x}",
        "%p, 1, 1, 0, 0", 12, between=f"add.f32 %d{last}, %d{last}, 0f44800000;",
    )  # fmt: skip
    additions = np.zeros((128, 12), "f4")
    additions[:, last] = 1024
    expected = 2 * values(a, "f16") @ values(b, "f16").T + matrix(additions.view("u4"), 24, "f32")
    np.testing.assert_array_equal(matrix(product, 24, "f32"), expected)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_warpgroups_that_are_no_neighbors_add_to_a_product_in_flight(schedule: str) -> None:
    """All three warpgroups multiply ones; then the first and the last do again, before the first product may land."""
    product = """wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3},
    0x0000000800080040, 0x0000000800080040, %p, 1, 1, 0, 0;"""
    text = f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 d)
{{
.reg .b32 %t; .reg .f32 %d<4>; .reg .b64 %z; .reg .pred %p, %q;
.shared .align 1024 .b32 ones[1024];
mov.u32 %t, %tid.x;
ld.param.u64 %z, [d];
mad.wide.u32 %z, %t, 4, %z;
mov.f32 %d0, 0f00000000; mov.f32 %d1, 0f00000000; mov.f32 %d2, 0f00000000; mov.f32 %d3, 0f00000000;
{{ .reg .b32 %at; mov.u32 %at, ones; mad.lo.u32 %at, %t, 8, %at; st.shared.v2.b32 [%at], {{0x3C003C00, 0x3C003C00}}; }}
fence.proxy.async.shared::cta;
bar.sync 0;
setp.eq.u32 %p, %t, %t;
wgmma.fence.sync.aligned;
{product}
and.b32 %t, %t, 128;
setp.ne.u32 %q, %t, 0;
@%q bra done;
{product}
done:
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
st.global.f32 [%z], %d0;
ret;
}}
"""
    sums = np.zeros(384, "f4")
    sim.run(parse(text), block=384, args=[sums], schedule=schedule)
    assert sums.reshape(3, 128).tolist() == [[total] * 128 for total in (32, 16, 32)]


@pytest.mark.parametrize("source", ["operand", "accumulator", "infinities"])
@pytest.mark.parametrize(("types", "result"), [("f16.f16", "f32"), ("f16.f16", "f16"), ("bf16.bf16", "f32")])
def test_every_nan_in_d_is_the_canonical_one(types: str, result: str, source: str) -> None:
    kind = types.split(".")[0]
    a, b = codes(kind, (64, 16), 1), codes(kind, (24, 16), 2)
    registers = 6 if result == "f16" else 12
    start = np.zeros((128, registers), "u4")
    expected = np.zeros((64, 24), bool)
    if source == "operand":
        a[[2, 40], 3] = {"f16": (0x7C01, 0xFE23), "bf16": (0x7F81, 0xFFC1)}[kind]
        expected[[2, 40]] = True
    elif source == "accumulator":
        start[:, :2] = (0x7FC12345, 0xFFC00001) if result == "f32" else (0x7E01FE55, 0xFFFF7FFF)
        expected = np.isnan(matrix(start, 24, result))
    else:
        # Infinities of both signs in one row; no element of B is 0.
        b[b << 1 == 0] = b[b << 1 != 0][0]
        b[:, :2] = b[:, :1]
        a[5, :2] = {"f16": (0x7C00, 0xFC00), "bf16": (0x7F80, 0xFF80)}[kind]
        expected[5] = True
    (first, descriptor_a), (second, descriptor_b) = (
        image(a, Swizzle.B32, 2048, False),
        image(b, Swizzle.B32, 2048 + B_AT, False),
    )
    product = multiply(
        "m64n24k16", types, bytes(first), f"{descriptor_a.encode():#x}",
        bytes(second), f"{descriptor_b.encode():#x}", "%p, 1, 1, 0, 0", registers, result, start=start,
    )  # fmt: skip
    np.testing.assert_array_equal(np.isnan(matrix(product, 24, result)), expected)
    units, canonical = (product, 0x7FFFFFFF) if result == "f32" else (product.view("u2"), 0x7FFF)
    assert np.count_nonzero(units == canonical) == np.count_nonzero(expected)
