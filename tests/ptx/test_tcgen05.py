"""`ptx.tcgen05`: tensor memory, products, descriptors, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyptx import PtxError, ptx, reg, smem
from pyptx.isa.descriptors import InstructionDescriptor
from pyptx.types import (
    PtxType,
    b32,
    bf16,
    e2m1,
    e4m3,
    e5m2,
    f16,
    f32,
    pred,
    s8,
    s32,
    tf32,
    u8,
    u16,
    u32,
    u64,
    ue4m3,
    ue8m0,
)
from tests.dsl.tracing import code, make_kernel, text_of
from tests.messages import raises
from tests.ptx.mistakes import assert_mistake

T = ptx.tcgen05


class Operands:
    """Registers with the names in the expected texts."""

    def __init__(self) -> None:
        self.t, self.s, self.d, self.p = reg.alloc(u32), reg.alloc(s32), reg.alloc(u64), reg.alloc(pred)
        self.rs = reg.alloc(u16)


def mma(**options: Any) -> Callable[[Operands], None]:
    """Return a product; "t", "s", "p", "~p" and "tsts" stand for registers of `Operands`."""

    def call(x: Operands) -> None:
        register_of = {"t": x.t, "s": x.s, "p": x.p, "~p": ~x.p, "tsts": [x.t, x.s, x.t, x.s], "ttt": [x.t] * 3}
        arguments: dict[str, Any] = {k: register_of.get(v, v) if isinstance(v, str) else v for k, v in options.items()}
        T.mma(x.t, x.d, x.d, 7, **arguments)

    return call


FIRST = "tcgen05.mma.cta_group::1.kind"
CASES: list[tuple[str, Callable[[Operands], Any], str]] = [
    ("sm_100a", lambda x: T.alloc(smem.alloc(u32, 1, name="slot"), 512),
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;"),
    ("sm_100a", lambda x: T.alloc(x.t, x.s, cta_group=2),
     "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r0], %r1;"),
    ("sm_100f", lambda x: T.alloc(x.t, 96, exclusive=True),
     "tcgen05.alloc.cta_group::1.exclusive.sync.aligned.shared::cta.b32 [%r0], 96;"),
    ("sm_100a", lambda x: T.dealloc(x.t, 64, pred=x.p), "@%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;"),
    ("sm_100a", lambda x: T.relinquish_alloc_permit(cta_group=2),
     "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;"),
    ("sm_100a", lambda x: T.fence_before_thread_sync(), "tcgen05.fence::before_thread_sync;"),
    ("sm_100a", lambda x: T.fence_after_thread_sync(), "tcgen05.fence::after_thread_sync;"),
    ("sm_100a", lambda x: T.wait_ld(), "tcgen05.wait::ld.sync.aligned;"),
    ("sm_100a", lambda x: T.wait_st(), "tcgen05.wait::st.sync.aligned;"),
    ("sm_100a", lambda x: T.shift(x.t, cta_group=2), "tcgen05.shift.cta_group::2.down [%r0];"),
    ("sm_100a", lambda x: T.commit(smem.mbarrier(2, name="bar")[1]),
     "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar+8];"),
    ("sm_100a", lambda x: T.commit(x.t, space="shared::cluster"),
     "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r0];"),
    ("sm_100a", lambda x: T.commit(x.t, cta_group=2, multicast=True, multicast_mask=3),
     "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r0], 3;"),
    ("sm_100a", lambda x: T.commit(x.d, multicast_mask=x.rs, space="generic"),
     "tcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [%rd0], %rs0;"),
    ("sm_107a", lambda x: T.commit(x.t, multicast_mask=x.s),
     "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster::32b.b64 [%r0], %r1;"),
    ("sm_100a", lambda x: T.ld(reg.array(b32, 2, name="v"), x.t),
     "tcgen05.ld.sync.aligned.16x128b.x1.b32 {%v0, %v1}, [%r0];"),
    ("sm_100a", lambda x: T.ld(reg.array(f32, 2, name="v"), ptx.addr(x.s, 32), shape="32x32b", count=2, pack=True),
     "tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%v0, %v1}, [%r1+32];"),
    ("sm_100a", lambda x: T.ld(x.s, x.t, shape="16x32bx2", split=8),
     "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r0], 8;"),
    ("sm_103a",
     lambda x: T.ld(reg.array(f32, 2, name="v"), x.t, shape="32x32b", count=2, red="max", red_dst=reg.alloc(f32),
                    red_nan=True, dtype=f32),
     "tcgen05.ld.red.sync.aligned.32x32b.x2.max.NaN.f32 {%v0, %v1}, %f0, [%r0];"),
    ("sm_103a",
     lambda x: T.ld(reg.array(b32, 2, name="v"), x.t, shape="16x32bx2", count=2, red="min", red_dst=x.s, split=2,
                    dtype="s32"),
     "tcgen05.ld.red.sync.aligned.16x32bx2.x2.min.s32 {%v0, %v1}, %r1, [%r0], 2;"),
    ("sm_107a", lambda x: T.ld_spcompress(reg.array(b32, 2, name="v"), x.s, x.t, op="max", count=4, abs=True),
     "tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.abs.f32.b2 {%r1}, {%v0, %v1}, [%r0];"),
    ("sm_100a", lambda x: T.st(x.t, reg.array(b32, 4, name="v"), shape="16x256b", unpack=True),
     "tcgen05.st.sync.aligned.16x256b.x1.unpack::16b.b32 [%r0], {%v0, %v1, %v2, %v3};"),
    ("sm_100a", lambda x: T.st(x.t, [x.s], shape="16x32bx2", split=4),
     "tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r0], 4, {%r1};"),
    ("sm_100a", lambda x: T.cp(x.t, x.d), "tcgen05.cp.cta_group::1.128x256b [%r0], %rd0;"),
    ("sm_100a", lambda x: T.cp(x.t, x.d, size="64x128b.warpx2::02_13", cta_group=2, src_format="b6x16_p32"),
     "tcgen05.cp.cta_group::2.64x128b.warpx2::02_13.b8x16.b6x16_p32 [%r0], %rd0;"),
    ("sm_100a", lambda x: T.cp(x.t, x.d, size="32x128b"), "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r0], %rd0;"),
    ("sm_100a", mma(), f"{FIRST}::f16 [%r0], %rd0, %rd0, 7, 1;"),
    ("sm_100a", mma(enable_input_d=None), f"{FIRST}::f16 [%r0], %rd0, %rd0, 7, 1;"),
    ("sm_100a", mma(enable_input_d=False), f"{FIRST}::f16 [%r0], %rd0, %rd0, 7, 0;"),
    ("sm_100a", mma(enable_input_d=0), f"{FIRST}::f16 [%r0], %rd0, %rd0, 7, 0;"),
    ("sm_100a", mma(enable_input_d="p"), f"{FIRST}::f16 [%r0], %rd0, %rd0, 7, %p0;"),
    ("sm_100a", mma(scale_d="~p"), f"{FIRST}::f16 [%r0], %rd0, %rd0, 7, !%p0;"),
    ("sm_100a", mma(pred_operand="p", pred="~p"),
     f"@!%p0 {FIRST}::f16 [%r0], %rd0, %rd0, 7, %p0;"),
    ("sm_100a", mma(scale_d=0, kind="tf32", scale_c=15), f"{FIRST}::tf32 [%r0], %rd0, %rd0, 7, 0, 15;"),
    ("sm_100a", mma(kind="f8f6f4", collector_a="fill", disable_output_lane="tsts"),
     f"{FIRST}::f8f6f4.collector::a::fill [%r0], %rd0, %rd0, 7, {{%r0, %r1, %r0, %r1}}, 1;"),
    ("sm_100a", mma(kind="i8", sparse=True, sparse_metadata="s"),
     "tcgen05.mma.sp.cta_group::1.kind::i8 [%r0], %rd0, %rd0, [%r1], 7, 1;"),
    ("sm_100a", lambda x: T.mma(x.s, ptx.addr(x.t, 8), x.d, x.t, a_is_tmem=True, ashift=True, collector_a="lastuse"),
     f"{FIRST}::f16.ashift.collector::a::lastuse [%r1], [%r0+8], %rd0, %r0, 1;"),
    ("sm_100a", mma(kind="mxf8f6f4", scale_a="t", scale_b="s"),
     f"{FIRST}::mxf8f6f4.block_scale [%r0], %rd0, %rd0, 7, [%r0], [%r1], 1;"),
    ("sm_100a", mma(kind="mxf4", scale_a="t", scale_b="s", scale_vec=2),
     f"{FIRST}::mxf4.block_scale.scale_vec::2X [%r0], %rd0, %rd0, 7, [%r0], [%r1], 1;"),
    ("sm_100a", mma(kind="mxf4nvf4", scale_a="t", scale_b="s", enable_input_d=False),
     f"{FIRST}::mxf4nvf4.block_scale.block16 [%r0], %rd0, %rd0, 7, [%r0], [%r1], 0;"),
    ("sm_107a", mma(kind="f8f6f4", lut_b="s", collector_b="use"),
     f"{FIRST}::f8f6f4.decompress::lut::b.collector::b::use [%r0], %rd0, %rd0, [%r1], 7, 1;"),
    ("sm_100a", lambda x: T.mma.async_2sm(x.t, x.d, x.d, 7, disable_output_lane=[x.t] * 8),
     "tcgen05.mma.cta_group::2.kind::f16 [%r0], %rd0, %rd0, 7, {%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0}, 1;"),
    ("sm_100a", lambda x: T.mma.ws(x.t, x.d, x.d, 7, collector_b="b2::lastuse", zero_column_mask=x.d),
     "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b2::lastuse [%r0], %rd0, %rd0, 7, 1, %rd0;"),
    ("sm_100a", lambda x: T.mma.ws(x.t, x.t, x.d, 7, kind="i8", a_is_tmem=True, sparse_metadata=x.s,
                                   enable_input_d=x.p),
     "tcgen05.mma.ws.sp.cta_group::1.kind::i8 [%r0], [%r0], %rd0, [%r1], 7, %p0;"),
]  # fmt: skip


@pytest.mark.parametrize(("arch", "call", "expected"), CASES, ids=[expected for *_, expected in CASES])
def test_a_wrapper_emits_exactly_its_instruction(arch: str, call: Callable[[Operands], Any], expected: str) -> None:
    def body() -> None:
        call(Operands())

    assert code(body, arch=arch) == [expected]


def test_any_32_bit_register_is_an_address_of_tensor_memory() -> None:
    def body() -> None:
        for dtype in (b32, u32, s32):
            T.shift(reg.alloc(dtype))

    assert code(body, arch="sm_100a") == [f"tcgen05.shift.cta_group::1.down [%r{i}];" for i in range(3)]


def test_allocations_have_descriptors_made_once_and_slices_by_register_made_in_place() -> None:
    def body() -> None:
        x = Operands()
        a = smem.wgmma_tile(bf16, (2, 128, 64), name="a")
        T.mma(x.t, a[1], a[0], 7)
        T.mma(x.t, a[1], a[x.s], 7)

    assert code(body, arch="sm_100a") == [
        "mov.u32 %r2, a+16384;", "and.b32 %r3, %r2, 0x3fff0;", "shr.u32 %r4, %r3, 4;", "cvt.u64.u32 %rd1, %r4;",
        "or.b64 %rd2, %rd1, 0x4000404000010000;", "mov.u32 %r5, a;", "and.b32 %r6, %r5, 0x3fff0;",
        "shr.u32 %r7, %r6, 4;", "cvt.u64.u32 %rd3, %r7;", "or.b64 %rd4, %rd3, 0x4000404000010000;",
        f"{FIRST}::f16 [%r0], %rd2, %rd4, 7, 1;", "mov.u32 %r8, a;", "mad.lo.u32 %r9, %r1, 16384, %r8;",
        "and.b32 %r10, %r9, 0x3fff0;", "shr.u32 %r11, %r10, 4;", "cvt.u64.u32 %rd5, %r11;",
        "or.b64 %rd6, %rd5, 0x4000404000010000;", f"{FIRST}::f16 [%r0], %rd2, %rd6, 7, 1;",
    ]  # fmt: skip


def test_descriptors_by_hand() -> None:
    def body() -> None:
        address = reg.alloc(u32)
        T.descriptor(address, stride_bytes=1024, byte_offset=64)
        T.descriptor(address, stride_bytes=256, leading_bytes=4096, swizzle="32B", base_offset=1)
        T.masked_descriptor(address, mask=0x3FF80)
        T.descriptor(4096, stride_bytes=128, swizzle="NONE", leading_bytes=0)

    statements = code(body, arch="sm_100a")
    assert statements[:5] == [
        "add.s32 %r1, %r0, 64;", "and.b32 %r2, %r1, 0x3fff0;", "shr.u32 %r3, %r2, 4;", "cvt.u64.u32 %rd0, %r3;",
        "or.b64 %rd1, %rd0, 0x4000404000010000;",
    ]  # fmt: skip
    assert [line.split()[-1] for line in statements if line.startswith("or.")] == [
        "0x4000404000010000;", "0xc002401001000000;", "0x4000404000010000;", "0x400800000000;"
    ]  # fmt: skip
    assert "and.b32 %r6, %r0, 0x3ff80;" in statements
    assert "mov.u32 %r8, 4096;" in statements


def test_scale_factors_in_plain_rows_are_copied_from_an_address() -> None:
    def body() -> None:
        rows = smem.alloc(u8, 512, name="rows")
        T.cp(reg.alloc(u32), rows, size="32x128b.warpx4")

    assert code(body, arch="sm_100a")[-2:] == [
        "or.b64 %rd1, %rd0, 0x400800000000;",
        "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r0], %rd1;",
    ]
    assert "// BEGIN tcgen05_cp_descriptor(rows)" in make_kernel(body, arch="sm_100a").ptx()


DESCRIPTORS: list[tuple[int, str, dict[str, Any]]] = [
    (T.make_instr_desc_f16bf16_f32(), "f16", {"m": 128, "n": 256, "a": bf16, "b": bf16, "d": f32}),
    (T.make_instr_desc_f16bf16_f32(ab_dtype="tf32", n=64, scale_b=-1, b_major="MN"), "tf32",
     {"n": 64, "a": tf32, "negate_b": True, "transpose_b": True}),
    (T.make_instr_desc_f16bf16_f32(m=256, ab_dtype="f16", sparse=True), "f16", {"m": 256, "a": f16, "sparse": True}),
    (T.make_instr_desc_f16bf16_f32(m=32, n=64, max_shift=2), "f16", {"m": 32, "max_shift": 16}),
    (T.make_instr_desc_i8(a_dtype="u8", saturate=True), "i8", {"a": u8, "b": s8, "d": s32, "saturate": True}),
    (T.make_instr_desc_f8f6f4(a_dtype=e5m2, b_dtype=e2m1, d_dtype=f16), "f8f6f4", {"a": e5m2, "b": e2m1, "d": f16}),
    (T.make_instr_desc_mxf8f6f4(a_scale_id=3, b_scale_id=1), "mxf8f6f4",
     {"a": e4m3, "scale": ue8m0, "a_scale_id": 3, "b_scale_id": 1}),
    (T.make_instr_desc_mxf4(n=64, a_scale_id=2), "mxf4", {"n": 64, "a": e2m1, "scale": ue8m0, "a_scale_id": 2}),
    (T.make_instr_desc_mxf4nvf4(k96=True), "mxf4nvf4", {"scale": ue4m3, "k96": True}),
    (T.make_instr_desc("kind::f16", m=64, n=16, a_dtype=f16, d_dtype="f16", a_major="MN"), "f16",
     {"m": 64, "n": 16, "d": f16, "transpose_a": True}),
]  # fmt: skip


@pytest.mark.parametrize(("bits", "kind", "expected"), DESCRIPTORS)
def test_instruction_descriptors_say_what_was_asked_for(bits: int, kind: str, expected: dict[str, Any]) -> None:
    descriptor = InstructionDescriptor.decode(kind, bits)
    assert {name: getattr(descriptor, name) for name in expected} == expected


def test_the_usual_instruction_descriptor_bit_by_bit() -> None:
    """D f32 (1 << 4), A and B bf16 (1 << 7, 1 << 10), N 256 (32 << 17), M 128 (8 << 24)."""
    assert T.make_instr_desc_f16bf16_f32() == 1 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 8 << 24
    assert T.zero_column_mask(skip=1, use=2) == 1 << 39 | 1 << 48


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: T.make_instr_desc_f16bf16_f32(m=100), "multiple of 16"),
    (lambda: T.make_instr_desc_f16bf16_f32(m=192), "M = "),
    (lambda: T.make_instr_desc_f16bf16_f32(n=264), "264"),
    (lambda: T.make_instr_desc_f16bf16_f32(ab_dtype="e4m3"), "f16 or bf16"),
    (lambda: T.make_instr_desc_f16bf16_f32(ab_dtype="half"), "'half'"),
    (lambda: T.make_instr_desc_f16bf16_f32(a_major="row"), "MN-major"),
    (lambda: T.make_instr_desc_f16bf16_f32(scale_a=2), "1 or -1"),
    (lambda: T.make_instr_desc_f16bf16_f32(saturate=True), "only kind i8 saturates"),
    (lambda: T.make_instr_desc_f16bf16_f32(max_shift=5), "maximum shift"),
    (lambda: T.make_instr_desc_i8(a_dtype=e4m3), "s8 and u8"),
    (lambda: T.make_instr_desc_mxf4(a_scale_id=1), "0 or 2"),
    (lambda: T.make_instr_desc("f4", m=128, n=128, a_dtype=e2m1), "'f4'"),
    (lambda: T.zero_column_mask(skip=300, use=2), "`skip` must be 1 to 256 columns, found 300"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_an_impossible_operation_is_refused(call: Callable[[], Any], words: str) -> None:
    with raises(PtxError, match="PTX0818") as excinfo:
        call()
    assert words in text_of(excinfo.value)
    assert excinfo.value.diagnostics[0].help


def _tile(dtype: PtxType, shape: tuple[int, ...]) -> Any:
    return smem.wgmma_tile(dtype, shape, name="tile")


MISTAKES: list[tuple[str, Callable[[Operands], Any], str, str]] = [
    ("columns", lambda x: T.alloc(x.t, 96), "PTX0818", "allocate 128"),
    ("too many columns", lambda x: T.dealloc(x.t, 1024), "PTX0818", "allocate 512"),
    ("group", lambda x: T.shift(x.t, cta_group=3), "PTX0818", "1 or 2"),
    ("tensor memory in 64 bits", lambda x: T.shift(x.d), "PTX0818", "tensor memory"),
    ("metadata in 64 bits", lambda x: T.mma(x.t, x.d, x.d, 7, kind="i8", sparse_metadata=x.d), "PTX0818",
     "`sparse_metadata` must be"),
    ("table in 64 bits", lambda x: T.mma(x.t, x.d, x.d, 7, kind="f8f6f4", lut_b=x.d), "PTX0818", "`lut_b` must be"),
    ("tensor memory as f32", lambda x: T.wait_ld() or T.shift(reg.alloc(f32)), "PTX0818", "tensor memory"),
    ("tensor memory by number", lambda x: T.shift(0), "PTX0818", "tensor memory"),
    ("descriptor in 32 bits", lambda x: T.mma(x.t, x.t, x.d, 7), "PTX0818", "a_is_tmem=True"),
    ("descriptor by name", lambda x: T.mma(x.t, x.d, "b", 7), "PTX0818", "ptx.tcgen05.descriptor"),
    ("tile without layout", lambda x: T.mma(x.t, smem.alloc(bf16, (64, 64), name="s"), x.d, 7), "PTX0818", "128B"),
    ("two names", mma(enable_input_d=False, scale_d=1), "PTX0818", "name the same operand"),
    ("two aliases", mma(scale_d=1, pred_operand="p"), "PTX0818", "name the same operand"),
    ("input d two", mma(enable_input_d=2), "PTX0818", "predicate"),
    ("scale_c too large", mma(scale_c=16), "PTX0204", "0 to 15"),
    ("scale_c of fp8", mma(kind="f8f6f4", scale_c=1), "PTX0818", "has no `scale`"),
    ("scales of f16", mma(scale_a="t", scale_b="t"), "PTX0818", "has no `scale_a`, `scale_b`"),
    ("scales missing", mma(kind="mxf4"), "PTX0818", "needs `scale_a`, `scale_b`"),
    ("scale_vec of f16", mma(scale_vec=1), "PTX0818", "kind f16"),
    ("metadata missing", mma(sparse=True), "PTX0818", "needs `meta`"),
    ("unknown kind", mma(kind="f64"), "PTX0102", "kind::f64"),
    ("lanes", mma(disable_output_lane="ttt"), "PTX0201", "4 elements"),
    ("two groups", lambda x: T.mma.async_2sm(x.t, x.d, x.d, 7, cta_group=1), "PTX0818", "cta_group 2"),
    ("mask missing", lambda x: T.commit(x.t, multicast=True), "PTX0818", "multicast_mask"),
    ("mask in 32 bits", lambda x: T.commit(x.t, multicast_mask=x.s), "PTX0302", "sm_107"),
    ("generic barrier", lambda x: T.commit(smem.mbarrier(1, name="b"), space="generic"), "PTX0818", "cvta"),
    ("space", lambda x: T.commit(x.t, space="global"), "PTX0818", "'cluster' or 'generic'"),
    ("registers", lambda x: T.ld(reg.array(b32, 3), x.t, shape="32x32b", count=2), "PTX0201", "2 elements"),
    ("count", lambda x: T.ld(reg.array(b32, 3), x.t, shape="32x32b", count=3), "PTX0102", "x3"),
    ("split missing", lambda x: T.ld(x.s, x.t, shape="16x32bx2"), "PTX0818", "split=16"),
    ("split of another shape", lambda x: T.st(x.t, x.s, shape="32x32b", split=2), "PTX0818", "16x32bx2"),
    ("reduction without a place", lambda x: T.ld(x.s, x.t, shape="32x32b", red="max"), "PTX0818", "red_dst"),
    ("copy of wide rows", lambda x: T.cp(x.t, smem.alloc(u8, 512)), "PTX0818", "can have several layouts"),
    ("copy of a swizzled tile", lambda x: T.cp(x.t, _tile(bf16, (64, 64)), size="64x128b"), "PTX0818", "swizzle 128B,"),
    ("swizzle", lambda x: T.descriptor(x.t, stride_bytes=1024, swizzle="96B"), "PTX0818", "B96"),
    ("stride", lambda x: T.descriptor(x.t, stride_bytes=1000), "PTX0818", "multiple of 16"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "rule", "words"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES])
def test_a_mistake_is_an_error_at_its_line(call: Callable[[Operands], Any], rule: str, words: str) -> None:
    assert_mistake(lambda: call(Operands()), rule, words, arch="sm_100a")


def test_registers_of_another_kernel_are_refused() -> None:
    registers: list[Any] = []

    def owner() -> None:
        registers.append(reg.alloc(u32))

    make_kernel(owner).ptx()
    assert_mistake(lambda: T.shift(registers[0]), "PTX0802", "owner", arch="sm_100a")


def test_products_step_along_k() -> None:
    def body() -> None:
        t, d = reg.alloc(u32), reg.alloc(u64)
        tile = smem.wgmma_tile(bf16, (128, 64), name="tile")
        T.mma(t, tile, d, 7, a_k_offset=32, b_k_offset=32)
        T.mma.ws(t, d, tile, 7, kind="tf32", a_k_offset=32)

    lines = code(body, arch="sm_100a")
    assert "mov.u32 %r1, tile+32;" in lines
    assert [line for line in lines if line.startswith(("add", "tcgen05"))] == [
        "add.s64 %rd3, %rd0, 2;",
        "tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd2, %rd3, 7, 1;",
        "add.s64 %rd4, %rd0, 2;",
        "tcgen05.mma.ws.cta_group::1.kind::tf32 [%r0], %rd4, %rd6, 7, 1;",
    ]


STEPS: list[tuple[Callable[[Operands], None], str]] = [
    (lambda x: T.mma(x.t, x.d, x.d, 7, b_k_offset=3), "a multiple of 16 bytes, found 3"),
    (lambda x: T.mma(x.t, x.t, x.d, 7, a_is_tmem=True, a_k_offset=16), "tensor memory"),
    (lambda x: T.mma(x.t, smem.wgmma_tile(bf16, (128, 64)), x.d, 7, a_k_offset=16384), "64 elements along K"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "words"), STEPS)
def test_a_step_along_k_that_no_descriptor_takes_is_refused(wrong: Callable[[Operands], None], words: str) -> None:
    assert_mistake(lambda: wrong(Operands()), "PTX0818", words, arch="sm_100a")


def wrong_type(value: Any) -> Any:
    """Return an argument whose type pyright would reject."""
    return value


BY_HAND: list[tuple[Callable[[Operands], Any], str]] = [
    (lambda x: T.descriptor(x.t, stride_bytes=100), "`stride_bytes` must be a multiple of 16 bytes below 262,144"),
    (lambda x: T.descriptor(x.t, stride_bytes=wrong_type(x.t)), "`stride_bytes` must be a multiple of 16 bytes"),
    (lambda x: T.descriptor(x.t, stride_bytes=1024, leading_bytes=8), "`leading_bytes` must be a multiple of 16 bytes"),
    (lambda x: T.descriptor(x.t, stride_bytes=1024, byte_offset=8), "`byte_offset` must be a multiple of 16 bytes"),
    (lambda x: T.descriptor(x.t, stride_bytes=1024, base_offset=8), "`base_offset` must be a number from 0 to 7"),
    (lambda x: T.descriptor(x.t, stride_bytes=1024, lbo_mode=2), "`lbo_mode` must be a number from 0 to 1"),
    (lambda x: T.descriptor(x.t, stride_bytes=1024, swizzle=wrong_type(128)), "`swizzle` must be one of NONE, 32B"),
    (lambda x: T.make_instr_desc_f16bf16_f32(n=wrong_type(x.t)), "`n` must be a number"),
    (lambda x: T.make_instr_desc_f16bf16_f32(m=wrong_type("128")), "`m` must be a number, found '128'"),
    (lambda x: T.zero_column_mask(skip=0, use=1), "`skip` must be 1 to 256 columns"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "words"), BY_HAND)
def test_a_descriptor_says_which_argument_is_wrong_and_its_unit(wrong: Callable[[Operands], Any], words: str) -> None:
    assert_mistake(lambda: wrong(Operands()), "PTX0818", words, arch="sm_100a")
