"""cp.async, bulk copies and tensor copies as instructions: results, times of completion, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.tensormap import ElementType, Im2col, Swizzle, TensorMap
from tests.messages import raises

SCHEDULES = ("eager", "lazy")
Array = np.ndarray[Any, Any]


def run(
    body: str, args: list[Any], params: str, threads: int = 32, target: str = "sm_90", **launch: Any
) -> None:  # fmt: skip
    module = parse(f""".version 8.6
.target {target}
.address_size 64
.visible .entry k({params})
{{
.reg .b32 %t, %r<8>; .reg .b64 %in, %out, %s<4>; .reg .pred %p<4>;
.shared .align 128 .b8 box[4096]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x;
setp.eq.u32 %p0, %t, 0;
{body}
}}
""")
    sim.run(module, block=threads, args=args, **launch)


PLAIN = ".param .u64 in, .param .u64 out"
ADDRESSES = (
    "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;\n"
)
OUT_16 = """
mad.wide.u32 %s0, %t, 16, %out;
shl.b32 %r0, %t, 4; mov.u32 %r1, box; add.u32 %r1, %r1, %r0;
ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
st.global.v4.u32 [%s0], {%r2, %r3, %r4, %r5};
ret;
"""
WAIT = "w: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra w;\n"
INIT = "@%p0 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;\n"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("operands", "size"), [("16", 16), ("16, 7", 7), ("16, 0", 0), ("16, %p1", 0), ("16, !%p1", 16)]
)
def test_cp_async_fills_with_zeros_what_it_does_not_read(schedule: str, operands: str, size: int) -> None:
    source, output = np.random.default_rng(0).integers(0, 256, (32, 16)).astype("u1"), np.ones((32, 16), "u1")
    body = (
        ADDRESSES
        + f"""
mad.wide.u32 %s0, %t, 16, %in;
shl.b32 %r0, %t, 4; mov.u32 %r1, box; add.u32 %r1, %r1, %r0;
setp.lt.u32 %p1, %t, 99;
cp.async.cg.shared.global [%r1], [%s0], {operands};
cp.async.commit_group;
cp.async.wait_group 0;
"""
        + OUT_16
    )
    run(body, [source, output], PLAIN, schedule=schedule)
    expected = source.copy()
    expected[:, size:] = 0
    np.testing.assert_array_equal(output, expected)


def test_lazy_copies_land_only_when_their_group_is_waited_for() -> None:
    source, output = np.arange(128, dtype="u4"), np.zeros(128, "u4")
    body = (
        ADDRESSES
        + """
mad.wide.u32 %s0, %t, 16, %in;
shl.b32 %r0, %t, 4; mov.u32 %r1, box; add.u32 %r1, %r1, %r0;
cp.async.cg.shared.global [%r1], [%s0], 16;
cp.async.commit_group;
cp.async.wait_group 1;
"""
        + OUT_16
    )
    run(body, [source, output], PLAIN, schedule="lazy", check="none")
    assert not output.any()
    run(body, [source, output], PLAIN, schedule="eager", check="none")
    np.testing.assert_array_equal(output, source)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_cp_async_arrives_at_a_barrier_when_its_copies_have_landed(schedule: str) -> None:
    source, output = np.arange(128, dtype="u4"), np.zeros(128, "u4")
    body = (
        ADDRESSES
        + "@%p0 mbarrier.init.shared::cta.b64 [bar], 32; bar.sync 0;\n"
        + """
mad.wide.u32 %s0, %t, 16, %in;
shl.b32 %r0, %t, 4; mov.u32 %r1, box; add.u32 %r1, %r1, %r0;
cp.async.ca.shared.global [%r1], [%s0], 16;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];
"""
        + WAIT
        + OUT_16
    )
    run(body, [source, output], PLAIN, schedule=schedule)
    np.testing.assert_array_equal(output, source)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_bulk_copies_go_in_by_a_barrier_and_out_by_groups(schedule: str) -> None:
    source, output = np.arange(128, dtype="u4"), np.zeros(128, "u4")
    body = (
        ADDRESSES
        + INIT
        + """
@!%p0 bra w;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%in], 512, [bar];
"""
        + WAIT
        + """
@!%p0 ret;
cp.async.bulk.global.shared::cta.bulk_group [%out], [box], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], [box], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ret;
"""
    )
    run(body, [source, output], PLAIN, schedule=schedule)
    np.testing.assert_array_equal(output, np.where(np.arange(128) < 64, 2 * source, source))


MASKED = """.version 8.6
.target sm_100
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 masks, .param .u64 out)
{
.reg .b32 %t, %size, %box; .reg .b16 %mask; .reg .b64 %in, %masks, %out;
.shared .align 16 .b8 box[3072];
ld.param.u64 %in, [in]; ld.param.u64 %masks, [masks]; ld.param.u64 %out, [out];
mov.u32 %t, %ctaid.x; mad.wide.u32 %masks, %t, 128, %masks; mad.wide.u32 %in, %t, 3072, %in; mov.u32 %t, %tid.x;
mad.wide.u32 %masks, %t, 4, %masks; ld.global.b16 %mask, [%masks]; ld.global.u16 %size, [%masks+2];
mad.wide.u32 %in, %t, 96, %in; mad.wide.u32 %out, %t, 96, %out; mov.u32 %box, box; mad.lo.u32 %box, %t, 96, %box;
{
.reg .b64 %word;
STAGE
}
fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%out], [%box], %size, %mask;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
ret;
}""".replace(
    "STAGE", "".join(f"ld.global.b64 %word, [%in+{i}]; st.shared.b64 [%box+{i}], %word;\n" for i in range(0, 96, 8))
)


def store_masked(masks: Array, sizes: Array, source: Array) -> Array:
    """Return 32 rows of 96 bytes, first 255, after each thread of each CTA has copied `sizes` bytes with its mask."""
    output = np.full((32, 96), 255, "u1")
    options = np.stack([masks, sizes], axis=-1).astype("u2")
    sim.run(parse(MASKED), grid=len(masks), block=32, args=[source, options, output])
    return output


def test_a_byte_mask_selects_bytes_of_every_16() -> None:
    """Each thread has its own size, and one bit, all but one, or all."""
    source = np.random.default_rng(0).integers(0, 255, (1, 32, 96)).astype("u1")
    bits = 1 << np.arange(16)
    masks = np.append(bits, bits ^ 0xFFFF)
    sizes = np.arange(32) % 7 * 16
    for variant in (masks, np.roll(masks, 1), np.where(np.arange(32) % 2, 0xFFFF, 0xA53C)):
        output = store_masked(variant[None], sizes[None], source)
        for lane, row in enumerate(output):
            for place, byte in enumerate(row):
                is_copied = place < sizes[lane] and variant[lane] >> place % 16 & 1
                assert byte == (source[0, lane, place] if is_copied else 255), (lane, place)


def test_copies_race_only_in_bytes_of_both_masks() -> None:
    source = np.random.default_rng(0).integers(0, 255, (2, 32, 96)).astype("u1")
    sizes = np.full((2, 32), 96)
    output = store_masked(np.array([[0x0FF0] * 32, [0xF00F] * 32]), sizes, source)
    places = np.arange(96) % 16
    expected = source[1].copy()
    expected[:, (places >= 4) & (places < 12)] = source[0][:, (places >= 4) & (places < 12)]
    np.testing.assert_array_equal(output, expected)
    with raises(PtxError, match=r"PTX0932(.|\n)*writes 1 bytes at out.0x4 after"):
        store_masked(np.array([[0x0FF0] * 32, [0xE01F] * 32]), sizes, source)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("mask", [0, 3])
def test_a_multicast_copy_reaches_every_cta_of_its_mask_and_tells_each_barrier(schedule: str, mask: int) -> None:
    source, output = np.arange(1, 129, dtype="u4"), np.zeros((2, 128), "u4")
    body = (
        ADDRESSES
        + INIT
        + f"""
shl.b32 %r2, %t, 4; mov.u32 %r1, box; add.u32 %r1, %r1, %r2; st.shared.v4.u32 [%r1], {{0, 0, 0, 0}};
fence.proxy.async;
barrier.cluster.arrive; barrier.cluster.wait;
mov.u32 %r6, %cluster_ctarank;
mad.wide.u32 %out, %r6, 512, %out;
setp.eq.u32 %p2, %r6, 1;
and.pred %p2, %p2, %p0;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {512 if mask else 0};
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
    [box], [%in], 512, [bar], {mask};
"""
        + WAIT
        + OUT_16
    )
    run(body, [source, output], PLAIN, grid=2, cluster=2, schedule=schedule)
    np.testing.assert_array_equal(output, [source * bool(mask)] * 2)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("options", [{}, {"statistics": True}], ids=["together", "alone"])
@pytest.mark.parametrize("owner", [0, 1])
@pytest.mark.parametrize("mask", [0, 1, 2, 3, 13])
def test_copies_for_pairs_signal_the_ctas_with_the_parity_of_the_barrier(
    schedule: str, options: dict[str, Any], owner: int, mask: int
) -> None:
    """CTA 1 copies to the CTAs of a mask. In each pair, the CTA with the parity of the mbarrier's CTA waits for the
    bytes of both."""
    source, output = np.arange(1, 129, dtype="u4").reshape(1, 128), np.zeros((4, 128), "u4")
    waiting = [sum(mask >> rank & 1 for rank in (cta & ~1, cta | 1)) * (cta % 2 == owner) for cta in range(4)]
    sizes = sum(copies << 8 * cta for cta, copies in enumerate(waiting))
    body = (
        f"""
ld.param.u64 %out, [out]; mov.b64 %s0, a; cvta.param.u64 %s0, %s0;
mov.u32 %r6, %cluster_ctarank; mad.wide.u32 %out, %r6, 512, %out;
shl.b32 %r7, %r6, 3; shr.u32 %r7, {sizes}, %r7; and.b32 %r7, %r7, 255; mul.lo.u32 %r7, %r7, 512;
shl.b32 %r2, %t, 4; mov.u32 %r1, box; add.u32 %r1, %r1, %r2; st.shared.v4.u32 [%r1], {{0, 0, 0, 0}};
fence.proxy.async;
"""
        + INIT
        + f"""
barrier.cluster.arrive; barrier.cluster.wait;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %r7;
mov.u32 %r3, bar; mapa.shared::cluster.u32 %r3, %r3, {owner};
setp.eq.u32 %p2, %r6, 1; and.pred %p2, %p2, %p0;
@%p2 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2.multicast::cluster
    [box], [%s0, {{0, 0}}], [%r3], {mask};
"""
        + WAIT
        + "barrier.cluster.arrive; barrier.cluster.wait;"
        + OUT_16
    )
    tensor = TensorMap(ElementType.U32, 0, (128, 1), (512,), (128, 1))
    args = [sim.Tensor(source, tensor), output]
    params = ".param .align 128 .b8 a[128], .param .u64 out"
    run(body, args, params, target="sm_100a", grid=4, cluster=4, schedule=schedule, **options)
    np.testing.assert_array_equal(output, [source[0] * (mask >> rank & 1) for rank in range(4)])


def test_a_multicast_copy_needs_a_barrier_in_every_cta() -> None:
    body = (
        ADDRESSES
        + """
mov.u32 %r6, %cluster_ctarank; setp.eq.u32 %p2, %r6, 1;
@%p2 mbarrier.init.shared::cta.b64 [bar], 1;
barrier.cluster.arrive; barrier.cluster.wait;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [box], [%in], 512, [bar], 6;
barrier.cluster.arrive; barrier.cluster.wait;
"""
    )
    with raises(PtxError, match="no mbarrier was initialized there") as caught:
        run(body, [np.zeros(128, "u4")] * 2, PLAIN, threads=1, grid=3, cluster=3, check="none")
    assert caught.value.diagnostics[0].notes == ("in `k`, CTA 1, thread (0, 0, 0), one of 1 here",)


MAPS = ".param .align 128 .b8 a[128], .param .align 128 .b8 b[128]"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("swizzle", [Swizzle.NONE, Swizzle.B64])
def test_boxes_go_from_tensor_to_tensor_with_zeros_outside(schedule: str, swizzle: Swizzle) -> None:
    inputs = np.arange(24 * 40, dtype="f4").reshape(24, 40)
    output = np.full((16, 16), -1, "f4")
    source = TensorMap(ElementType.F32, 0, (40, 24), (160,), (16, 16), swizzle=swizzle)
    target = TensorMap(ElementType.F32, 0, (16, 16), (64,), (16, 16), swizzle=swizzle)
    body = (
        INIT
        + """
@!%p0 ret;
mov.b64 %s0, a; cvta.param.u64 %s0, %s0;
mov.b64 %s1, b; cvta.param.u64 %s1, %s1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [box], [%s0, {32, -4}], [bar];
"""
        + WAIT
        + """
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%s1, {0, 0}], [box];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%s1, {0, 8}], [box];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
ret;
"""
    )
    run(body, [sim.Tensor(inputs, source), sim.Tensor(output, target)], MAPS, schedule=schedule)
    expected = np.zeros((16, 16), "f4")
    expected[4:, :8] = inputs[:12, 32:]
    expected[8:] += expected[:8].copy()
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("swizzle", [Swizzle.NONE, Swizzle.B64])
@pytest.mark.parametrize("column", [8, 30, -3])
def test_rows_are_gathered_and_scattered(schedule: str, swizzle: Swizzle, column: int) -> None:
    """Four rows of any order; what lies outside is zero, or is not written."""
    inputs = np.arange(24 * 40, dtype="f4").reshape(24, 40)
    output = np.full((24, 40), -1, "f4")
    tensor = TensorMap(ElementType.F32, 0, (40, 24), (160,), (16, 1), swizzle=swizzle)
    taken, given = (5, 23, 24, 0), (7, 2, -1, 22)
    body = (
        INIT
        + f"""
@!%p0 ret;
mov.b64 %s0, a; cvta.param.u64 %s0, %s0;
mov.b64 %s1, b; cvta.param.u64 %s1, %s1;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes
    [box], [%s0, {{{column}, {", ".join(map(str, taken))}}}], [bar];
"""
        + WAIT
        + f"""
cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group
    [%s1, {{{column}, {", ".join(map(str, given))}}}], [box];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ret;
"""
    )
    args = [sim.Tensor(inputs, tensor), sim.Tensor(output, tensor)]
    run(body, args, MAPS, target="sm_100a", schedule=schedule)
    expected = np.full((24, 40), -1, "f4")
    columns = slice(max(0, column), column + 16)
    for source, target in zip(taken, given, strict=True):
        if 0 <= target < 24:
            expected[target, columns] = inputs[source, columns] if source < 24 else 0
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(
    ("line", "messages"),
    [
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%in], 1024, [bar];", "allocation"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box+8], [%in], 64, [bar];", "multiple"),
        ("mov.u32 %r0, 17; cp.async.cg.shared.global [box], [%in], 16, %r0;",
         "PTX1127.*src-size is 17, cp-size 16(.|\n)*thread (.|\n)*clamp src-size to 16"),
        ("mov.b64 %s0, in; cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
         " [box], [%s0, {0, 0}], [bar];",
         "allocation|pointer"),
    ],
)  # fmt: skip
def test_illegal_copies_are_errors(line: str, messages: str) -> None:
    with raises(PtxError, match=messages):
        run(ADDRESSES + INIT + line + " ret;", [np.zeros(64, "u4"), np.zeros(4, "u4")], PLAIN, threads=1)


ROWS = TensorMap(ElementType.F32, 0, (40, 24), (160,), (16, 4))
PIXELS = TensorMap(ElementType.F32, 0, (8, 6, 3), (32, 192), (), im2col=Im2col((-1,), (0,), 8, 4))
LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global.{}.mbarrier::complete_tx::bytes [box], [%s0, {{{}}}], [bar]{}"
STORE = "cp.async.bulk.tensor.{}d.global.shared::cta.{}.bulk_group [%s0, {{{}}}], [box]"
REDUCE = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group [%s0, {{0, 0}}], [box]"


@pytest.mark.parametrize(
    ("tensor", "line", "message"),
    [
        (ROWS, LOAD.format(2, "tile", "2, 0", ""), "PTX1111.*coordinate 2 of the first.*a multiple of 4, which is 16"),
        (ROWS, STORE.format(2, "tile", "-1, 0"), "coordinate -1 of dimension 0.*a store must not start below"),
        (ROWS, STORE.format(2, "tile", "0, -1"), "coordinate -1 of dimension 1.*a store must not start below"),
        (ROWS, REDUCE.format("and"), r"the elements are F32, but `\.and` reduces U32, S32, U64"),
        (PIXELS, LOAD.format(3, "im2col", "0, -2, 0", ", {%h}"), "coordinate -2 of dimension 1 is outside.*-1 to 5"),
        (PIXELS, STORE.format(3, "im2col_no_offs", "0, 0, 0"), "a store needs a box inside the tensor"),
    ],
)  # fmt: skip
def test_tensor_copies_that_fault_are_errors(tensor: TensorMap, line: str, message: str) -> None:
    """As on an H200."""
    data = np.zeros(tensor.strides[-1] * tensor.dims[-1] // 4, "f4")
    body = f"{INIT} .reg .b16 %h; mov.u16 %h, 0; mov.b64 %s0, a; cvta.param.u64 %s0, %s0;\n{line}; ret;"
    with raises(PtxError, match=message):
        run(body, [sim.Tensor(data, tensor), sim.Tensor(data, tensor)], MAPS, threads=1)


@pytest.mark.parametrize("end", [8, 6])
def test_stores_write_whole_chunks_of_16_bytes(end: int) -> None:
    """As on an H200: also elements after the end of a row, in its last 16 bytes, but not after the allocation."""
    output = np.zeros(16 + end, "u4")
    tensor = TensorMap(ElementType.U32, 0, (5, 3), (32,), (8, 3))
    body = f"""
mov.u32 %r1, 7;
{" ".join(f"st.shared.u32 [box+{4 * n}], %r1;" for n in range(24))}
fence.proxy.async;
mov.b64 %s0, a; cvta.param.u64 %s0, %s0;
{STORE.format(2, "tile", "0, 0")};
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;
"""
    run(body, [sim.Tensor(output, tensor), sim.Tensor(output, tensor)], MAPS, threads=1)
    np.testing.assert_array_equal(np.flatnonzero(output), [n for n in range(16 + end) if n < 24])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stores_to_another_cta_tell_its_barrier(schedule: str) -> None:
    source, output = np.arange(64, dtype="u4").reshape(2, 32), np.zeros((2, 32), "u4")
    body = (
        ADDRESSES
        + INIT
        + """
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
barrier.cluster.arrive; barrier.cluster.wait;
mov.u32 %r6, %cluster_ctarank;
mad.wide.u32 %out, %r6, 128, %out;
mad.wide.u32 %in, %r6, 128, %in;
mad.wide.u32 %s0, %t, 4, %in;
ld.global.u32 %r2, [%s0];
xor.b32 %r6, %r6, 1;
shl.b32 %r0, %t, 2; mov.u32 %r1, box; add.u32 %r1, %r1, %r0; mapa.shared::cluster.u32 %r3, %r1, %r6;
mov.u32 %r4, bar; mapa.shared::cluster.u32 %r4, %r4, %r6;
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %r2, [%r4];
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r3], 100, [%r4];
"""
        + WAIT
        + """
ld.shared.u32 %r2, [%r1];
mad.wide.u32 %s0, %t, 4, %out;
st.global.u32 [%s0], %r2;
barrier.cluster.arrive; barrier.cluster.wait;
ret;
"""
    )
    run(body, [source, output], PLAIN, grid=2, cluster=2, schedule=schedule, check="mbarriers")
    np.testing.assert_array_equal(output, source[::-1] + 100)
