"""tcgen05.cp, shift, ld and st with every option, allocation in pairs, and invalid accesses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pyptx.diagnostics import PtxError
from pyptx.isa.descriptors import InstructionDescriptor, Tcgen05Descriptor
from pyptx.tensormap import Swizzle
from pyptx.types import from_name
from tests.messages import raises
from tests.sim import tensor as t

Array = t.Array
SIZE = 16384

LANES: dict[str, Callable[[int], list[int]]] = {
    "128x256b": lambda row: [row], "128x128b": lambda row: [row], "4x256b": lambda row: [31 + 32 * row],
    "64x128b.warpx2::02_13": lambda row: [row, row + 64],
    "64x128b.warpx2::01_23": lambda row: [row % 32 + 64 * (row // 32) + 32 * copy for copy in (0, 1)],
    "32x128b.warpx4": lambda row: [row + 32 * copy for copy in range(4)],
}  # fmt: skip


@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.parametrize("form", LANES)
def test_copies(form: str, ctas: int) -> None:
    random = np.random.default_rng(1)
    count, size = int(form.split("x")[0]), 32 if "256b" in form else 16
    shared, expected = np.zeros((ctas, SIZE), "u1"), random.integers(0, 1 << 32, (ctas, 128, 512)).astype("u4")
    start, descriptor = expected.copy(), 0
    for cta in range(ctas):
        rows = random.integers(0, 256, (count, size)).astype("u1")
        padding = np.vstack([rows, np.zeros((-count % 8, size), "u1")])
        descriptor = t.place(shared[cta], 0, padding, Swizzle.B32 if size == 32 else Swizzle.NONE)
        for row in range(count):
            for lane in LANES[form](row):
                expected[cta, lane, 40 : 40 + size // 4] = rows[row].view("u4")
    lane = 31 << 16 if form == "4x256b" else 0
    text = f"add.u32 %r3, %base, {40 + lane}; tcgen05.cp.cta_group::{ctas}.{form} [%r3], {descriptor};"
    np.testing.assert_array_equal(t.run(text, shared, start), expected)


@pytest.mark.parametrize(("source", "bits"), [("b4x16_p64", 4), ("b6x16_p32", 6)])
def test_copies_widen_small_numbers(source: str, bits: int) -> None:
    codes = np.random.default_rng(2).integers(0, 1 << bits, (128, 32)).astype("u1")
    shared = np.zeros((1, SIZE), "u1")
    descriptor = t.place(shared[0], 0, t.pack_in_chunks(codes, bits), Swizzle.NONE)
    text = f"tcgen05.cp.cta_group::1.128x256b.b8x16.{source} [%base], {descriptor};"
    result = t.run(text, shared, np.zeros((1, 128, 512), "u4"))
    np.testing.assert_array_equal(result[0, :, :8], t.in_words(codes << 2 if bits == 4 else codes))


def test_shift_moves_rows_of_a_quarter() -> None:
    start = np.random.default_rng(3).integers(0, 1 << 32, (1, 128, 512)).astype("u4")
    expected = start.copy()
    expected[0, 64:95, 8:16] = start[0, 65:96, 8:16]
    text = f"add.u32 %r3, %base, {64 << 16 | 8}; tcgen05.shift.cta_group::1.down [%r3];"
    np.testing.assert_array_equal(t.run(text, np.zeros((1, 16), "u1"), start), expected)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_shifts_of_ctas_that_wait_land_before_those_of_others(schedule: str) -> None:
    start = np.random.default_rng(3).integers(0, 1 << 32, (4, 128, 512)).astype("u4")
    expected = start.copy()
    for cta in range(4):
        expected[cta, 32 * cta : 32 * cta + 31, 8:16] = start[cta, 32 * cta + 1 : 32 * cta + 32, 8:16]
    shift = """mov.u32 %r4, %ctaid.x; mad.lo.u32 %r3, %r4, 2097152, %base; add.u32 %r3, %r3, 8;
tcgen05.shift.cta_group::1.down [%r3];
and.b32 %r4, %r4, 1; setp.eq.u32 %q, %r4, 0; ld.param.u64 %far, [bytes];
@%q bra go;
poll: ld.volatile.global.u32 %r5, [%far]; setp.eq.u32 %q, %r5, 0;
@%q bra poll;
go:"""
    tell = "ld.param.u64 %far, [bytes]; mov.u32 %r5, 1; st.volatile.global.u32 [%far], %r5;"
    result = t.run(
        shift, np.zeros((4, 16), "u1"), start, warps=tell, clusters=4, schedule=schedule, check="none"
    )  # fmt: skip
    np.testing.assert_array_equal(result, expected)


def run_on_tensor_memory(text: str, start: Array) -> Array:
    return t.run("", np.zeros((1, 16), "u1"), start, target="sm_103a", warps=text)


def test_halves_of_a_warp_load_columns_apart() -> None:
    start = np.random.default_rng(4).integers(0, 1 << 32, (1, 128, 512)).astype("u4")
    output = run_on_tensor_memory("""tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%v0, %v1}, [%at], 24;
add.u32 %r4, %at, 100;
tcgen05.st.sync.aligned.32x32b.x2.b32 [%r4], {%v0, %v1};
tcgen05.wait::st.sync.aligned;""", start)  # fmt: skip
    expected = start[0].copy()
    for quarter in range(0, 128, 32):
        expected[quarter : quarter + 16, 100:102] = start[0, quarter : quarter + 16, 0:2]
        expected[quarter + 16 : quarter + 32, 100:102] = start[0, quarter : quarter + 16, 24:26]
    np.testing.assert_array_equal(output[0], expected)


@pytest.mark.parametrize("shape", ["32x32b", "16x32bx2"])
def test_packed_columns(shape: str) -> None:
    start = np.random.default_rng(5).integers(0, 1 << 32, (1, 128, 512)).astype("u4")
    split = ", 10" if shape == "16x32bx2" else ""
    output = run_on_tensor_memory(f"""tcgen05.ld.sync.aligned.{shape}.x2.pack::16b.b32 {{%v0, %v1}}, [%at]{split};
add.u32 %r4, %at, 100;
tcgen05.st.sync.aligned.{shape}.x2.unpack::16b.b32 [%r4]{split}, {{%v0, %v1}};
tcgen05.wait::st.sync.aligned;""", start)  # fmt: skip
    expected = start[0].copy()
    for lane in range(128):
        for column in range(4):
            if shape == "32x32b":
                expected[lane, 100 + column] = start[0, lane, column] & 0xFFFF
            elif lane % 32 < 16:
                expected[lane, 100 + column] = start[0, lane, column] & 0xFFFF
                expected[lane, 110 + column] = start[0, lane, 10 + column] & 0xFFFF
    np.testing.assert_array_equal(output[0], expected)


def floats(words: Array) -> Array:
    return words.view("f4")


REDUCTIONS: dict[str, Callable[[Array], Array]] = {
    "min.u32": lambda v: v.min(1), "max.s32": lambda v: v.view("i4").max(1),
    "min.f32": lambda v: np.fmin.reduce(floats(v), 1), "max.NaN.f32": lambda v: floats(v).max(1),
    "max.abs.f32": lambda v: np.fmax.reduce(np.abs(floats(v)), 1),
}  # fmt: skip


@pytest.mark.parametrize("flags", REDUCTIONS)
def test_reducing_loads(flags: str) -> None:
    random = np.random.default_rng(6)
    start = np.zeros((1, 128, 512), "u4")
    start[0] = random.standard_normal((128, 512)).astype("f4").view("u4")
    start[0, ::3, 5] = 0x7FC00000
    names = ", ".join(f"%v{n}" for n in range(8))
    op, _, kind = flags.rpartition(".")
    output = run_on_tensor_memory(f"""tcgen05.ld.red.sync.aligned.32x32b.x8.{op}.{kind} {{{names}}}, %r5, [%at];
add.u32 %r4, %at, 100;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {{%r5}};
tcgen05.wait::st.sync.aligned;""", start)  # fmt: skip
    with np.errstate(invalid="ignore"):
        expected = np.ascontiguousarray(REDUCTIONS[flags](start[0, :, :8].copy()))
    output_column = output[0, :, 100].copy().view(expected.dtype)
    np.testing.assert_array_equal(output_column, expected)


CP = "tcgen05.cp.cta_group::1.128x128b [%base], {box};"
SHIFT = "tcgen05.shift.cta_group::1.down [%base];"
MMA = "tcgen05.mma.cta_group::1.kind::f16 [%base], {box}, {box}, {bits}, %yes;"
F16 = from_name("f16")
PLAIN = InstructionDescriptor("f16", 128, 16, F16, F16, from_name("f32")).encode()
ERRORS = [
    (CP, 509, "columns 509 … 512 are not"), (CP, 1 << 16, "cannot start at lane 1"),
    (SHIFT, 508, "columns 508 … 515 are not"), (SHIFT, 1 << 16, "a multiple of 32 lanes, not at 1"),
    (MMA.replace("{bits}", "16"), 0, "has M = 64 or 128, not 0"),
    (MMA, 500, "columns 500 … 515 of D"), (MMA, 1 << 16, "layout D must start at lane 0, not 1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "offset", "messages"), ERRORS)
def test_wrong_places(text: str, offset: int, messages: str) -> None:
    box = Tcgen05Descriptor(t.BOX, 128, 256).encode()
    issue = f"add.u32 %base, %base, {offset}; " + text.replace("{box}", str(box)).replace("{bits}", str(PLAIN))
    with raises(PtxError, match=messages):
        t.run(issue, np.zeros((1, SIZE), "u1"), np.zeros((1, 128, 512), "u4"))
