"""Tensor copies that many CTAs issue as one yield the same bytes as separate copies, which runs that count accesses
use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.tensormap import ElementType, Fill, Swizzle, TensorMap
from tests.messages import raises

Array = np.ndarray[Any, Any]
BYTES = 4096
TILE = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"


def copy_both_ways(
    inputs: Array, source: TensorMap, load: str, places: tuple[int, int, int], phases: int = 1, **options: Any
) -> list[Array]:
    """Return the target tensor and the shared memory of every CTA after a load and a store of each; `places` are the
    step of a CTA along x, the first x, and the first y; multicasts of both CTAs end one phase or one each."""
    step, left, top = places
    bytes_ = source.box_bytes * (2 if "multicast" in load and phases == 1 else 1)
    second = (
        f"@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes_};\n"
        "v: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 1; @!%p1 bra v;\n"
    )
    module = parse(f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .u64 out)
.reqnctapercluster 2, 1, 1
{{
.reg .b32 %t, %r<9>, %x, %y, %own; .reg .b16 %both; .reg .b64 %rd<4>, %a, %b, %out; .reg .pred %p<2>;
.shared .align 1024 .b8 box[{BYTES}]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.eq.u32 %p0, %t, 0; mov.b16 %both, 3;
mov.b64 %a, a; cvta.param.u64 %a, %a; mov.b64 %b, b; cvta.param.u64 %b, %b; ld.param.u64 %out, [out];
mov.u32 %r0, %ctaid.x; mad.lo.s32 %x, %r0, {step}, {left};
mov.u32 %r1, %ctaid.y; mad.lo.s32 %y, %r1, 8, {top};
mov.u32 %r2, %cluster_ctarank; mov.u32 %own, box; mad.lo.u32 %own, %r2, 2048, %own;
@%p0 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@!%p0 bra w;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes_};
{load}
w: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra w;
{second if phases == 2 else ""}
@!%p0 bra stored;
max.s32 %x, %x, 0; max.s32 %y, %y, 0;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%b, {{%x, %y}}], [%own];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
stored: mov.u32 %r3, %nctaid.x; mad.lo.u32 %r3, %r1, %r3, %r0; mul.lo.u32 %r3, %r3, {BYTES};
shl.b32 %r4, %t, 2; add.u32 %r3, %r3, %r4; cvt.u64.u32 %rd0, %r3; add.s64 %out, %out, %rd0;
mov.u32 %r5, box; add.u32 %r5, %r5, %r4;
{"".join(f"ld.shared.b32 %r6, [%r5+{index}]; st.global.b32 [%out+{index}], %r6;" for index in range(0, BYTES, 128))}
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ret;
}}""")
    output, shared = np.zeros_like(inputs), np.zeros((3, 4, BYTES), "u1")
    target = TensorMap(source.dtype, 0, source.dims, source.strides, source.box, swizzle=source.swizzle)
    args = [sim.Tensor(inputs, source), sim.Tensor(output, target), shared]
    sim.run(module, "k", grid=(4, 3), block=32, args=args, check="none", **options)
    return [output, shared]


OWN = TILE + " [%own], [%a, {%x, %y}], [bar];"
BOTH = TILE + ".multicast::cluster [%own], [%a, {%x, %y}], [bar], %both;"


@pytest.mark.parametrize("load", [OWN, BOTH], ids=["own", "multicast"])
@pytest.mark.parametrize(
    ("dtype", "kind"), [("u1", ElementType.U8), ("u2", ElementType.BF16), ("f4", ElementType.F32)], ids=str
)
@pytest.mark.parametrize("swizzle", [Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128, Swizzle.B128_ATOM_32B])
def test_copies_of_many_ctas_move_what_single_ones_move(
    load: str, dtype: str, kind: ElementType, swizzle: Swizzle
) -> None:
    size = np.dtype(dtype).itemsize
    inputs = np.random.default_rng(3).integers(0, 250, (40, 512)).astype(dtype)
    wide = (swizzle.span or 64) // size
    source = TensorMap(kind, 0, (512, 40), (512 * size,), (wide, 8), swizzle=swizzle)
    unit = 16 // size
    # All inside; inside at odd positions; across the left and upper edges; across the left edge; across the right edge.
    for places in (
        (wide, 0, 0), (3 * unit, unit, 7), (wide, -unit, -3), (wide, -unit, 8), (wide, 512 - 3 * wide, 8)
    ):  # fmt: skip
        batch = copy_both_ways(inputs, source, load, places)
        alone = copy_both_ways(inputs, source, load, places, statistics=True)
        late = [copy_both_ways(inputs, source, load, places, schedule="lazy")]
        late += [copy_both_ways(inputs, source, load, places, schedule="random", seed=seed) for seed in range(2)]
        for variant in (alone, *late):
            np.testing.assert_array_equal(batch[0], variant[0])
            np.testing.assert_array_equal(batch[1], variant[1])
        if places == (wide, 0, 0) and load == OWN:
            np.testing.assert_array_equal(batch[0][:24, : 4 * wide], inputs[:24, : 4 * wide])


def test_maps_with_steps_and_fills_go_together_too() -> None:
    inputs = np.random.default_rng(3).integers(0, 250, (40, 512)).astype("f4")
    source = TensorMap(
        ElementType.F32, 0, (512, 40), (2048,), (16, 16), (1, 2), swizzle=Swizzle.B64, fill=Fill.NAN
    )  # fmt: skip
    for places in ((16, 0, 0), (16, 8, 1), (16, 480, 30)):
        for first, second in zip(
            copy_both_ways(inputs, source, OWN, places),
            copy_both_ways(inputs, source, OWN, places, statistics=True),
            strict=True,
        ):
            assert first.tobytes() == second.tobytes()


def test_a_tensor_that_reaches_over_its_array_is_refused_all_the_same() -> None:
    inputs = np.zeros((40, 512), "f4")
    source = TensorMap(ElementType.F32, 0, (512, 4096), (2048,), (16, 8))
    with raises(PtxError, match="is not inside"):
        copy_both_ways(inputs, source, OWN, (16, 0, 36))


def test_copies_of_two_ctas_to_one_barrier_may_end_a_phase_each() -> None:
    inputs = np.random.default_rng(3).integers(0, 250, (40, 512)).astype("f4")
    source = TensorMap(ElementType.F32, 0, (512, 40), (2048,), (16, 8))
    output, _ = copy_both_ways(inputs, source, BOTH, (16, 0, 0), phases=2)
    np.testing.assert_array_equal(output[:24, :64], inputs[:24, :64])


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_lanes_of_one_cta_complete_the_bytes_of_one_barrier(schedule: str) -> None:
    given = np.arange(4 * 8 * 16, dtype=np.uint32).reshape(32, 16)
    source = TensorMap(ElementType.U32, 0, (16, 32), (64,), (16, 8))
    module = parse(f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 a[128], .param .u64 out)
{{
.reg .b32 %t, %x, %y, %own, %word, %r; .reg .b64 %a, %out, %bytes; .reg .pred %first, %four, %done;
.shared .align 1024 .b8 box[2048]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; setp.lt.u32 %four, %t, 4;
mov.b64 %a, a; cvta.param.u64 %a, %a; ld.param.u64 %out, [out];
@%first mbarrier.init.shared::cta.b64 [bar], 1;
@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 2048;
bar.sync 0;
mov.u32 %x, 0; shl.b32 %y, %t, 3; mov.u32 %own, box; mad.lo.u32 %own, %t, 512, %own;
@%four {TILE} [%own], [%a, {{%x, %y}}], [bar];
w: mbarrier.try_wait.parity.shared::cta.b64 %done, [bar], 0; @!%done bra w;
mov.u32 %word, box; shl.b32 %r, %t, 2; add.u32 %word, %word, %r; cvt.u64.u32 %bytes, %r; add.s64 %out, %out, %bytes;
{"".join(f"ld.shared.b32 %r, [%word+{at}]; st.global.b32 [%out+{at}], %r;" for at in range(0, 2048, 128))}
ret;
}}""")
    out = np.zeros_like(given)
    sim.run(module, "k", block=32, args=[sim.Tensor(given, source), out], schedule=schedule, check="none")
    np.testing.assert_array_equal(out, given)


@pytest.mark.parametrize("statistics", [False, True], ids=["together", "separate"])
def test_a_store_before_an_error_leaves_the_array_unchanged(statistics: bool) -> None:
    output = np.zeros((8, 16), "f4")
    tensor = TensorMap(ElementType.F32, 0, (16, 8), (64,), (16, 8))
    module = parse(""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 a[128])
{
.reg .b32 %t, %box; .reg .b64 %a; .reg .pred %p;
.shared .align 128 .b8 box[512];
mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; @%p bra end;
mov.b64 %a, a; cvta.param.u64 %a, %a; mov.u32 %box, box;
st.shared.b32 [%box], 1; fence.proxy.async.shared::cta;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%a, {0, 0}], [%box];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
trap;
end: ret;
}""")
    with raises(PtxError, match="trap"):
        sim.run(module, block=32, args=[sim.Tensor(output, tensor)], check="none", statistics=statistics)
    assert not output.any()


def test_a_box_may_end_where_shared_memory_ends() -> None:
    module = parse(f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 a[128], .param .u64 out)
{{
.reg .b32 %t, %x, %v; .reg .b64 %a, %out; .reg .pred %p<2>;
.shared .align 8 .b64 bar; .shared .align 128 .b8 box[16];
mov.u32 %t, %tid.x; setp.eq.u32 %p0, %t, 0; mov.u32 %x, %ctaid.x; mul.lo.u32 %x, %x, 4;
mov.b64 %a, a; cvta.param.u64 %a, %a; ld.param.u64 %out, [out];
@%p0 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
@!%p0 bra w;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
{TILE} [box], [%a, {{%x, 0}}], [bar];
w: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra w;
add.u32 %x, %x, %t; mad.wide.u32 %out, %x, 4, %out;
mov.u32 %v, box; mad.lo.u32 %v, %t, 4, %v; ld.shared.b32 %v, [%v]; st.global.b32 [%out], %v;
ret;
}}""")
    source, output = np.arange(32, dtype="u4").reshape(1, 32), np.zeros(32, "u4")
    tensor = TensorMap(ElementType.U32, 0, (32, 1), (128,), (4, 1))
    sim.run(module, grid=8, block=4, args=[sim.Tensor(source, tensor), output])
    np.testing.assert_array_equal(output, source[0])
