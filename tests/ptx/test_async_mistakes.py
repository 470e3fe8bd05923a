"""Mistakes in synchronizing and copying: each is an error at the line of the call, with a remedy where one exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pyptx import PtxError, ptx, reg, smem
from pyptx.types import PtxType, b32, b64, f16, f32, pred, s32, u16, u32, u64
from tests.dsl.tracing import assert_rejected, code, make_kernel, text_of
from tests.messages import raises
from tests.ptx.async_calls import Operands

BULK = ptx.cp.async_.bulk


def test_a_load_without_a_barrier() -> None:
    def body() -> None:
        x = Operands()
        BULK.tensor_2d(dst=x.tile, src=x.b64, coord=(0, 0))  # here

    assert_rejected(body, "PTX0818", "needs a barrier to signal", "mbar=")


def test_a_load_without_coordinates() -> None:
    def body() -> None:
        x = Operands()
        BULK.tensor_2d(dst=x.tile, src=x.b64, mbar=x.bar)  # here

    assert_rejected(body, "PTX0818", "coordinates", "coord=(x, y)")


def test_a_map_and_a_tile_exchanged() -> None:
    def body() -> None:
        x = Operands()
        BULK.tensor_2d(dst=x.b64, src=x.tile, coord=(0, 0), mbar=x.bar)  # here

    assert_rejected(body, "PTX0818", "is shared memory", "dst=tile, src=map")


def test_too_many_coordinates() -> None:
    def body() -> None:
        x = Operands()
        BULK.tensor_2d(dst=x.tile, src=x.b64, coord=(0, 1, 2), mbar=x.bar)  # here

    assert_rejected(body, "PTX0201", "`at` has 2 elements, found 3")


def test_a_coordinate_of_64_bits() -> None:
    def body() -> None:
        x = Operands()
        BULK.tensor_2d(dst=x.tile, src=x.b64, coord=(0, x.u64), mbar=x.bar)  # here

    assert_rejected(body, "PTX0203", "`at` is .s32")


def test_a_mask_of_32_bits() -> None:
    def body() -> None:
        x = Operands()
        BULK.tensor_2d(dst=x.tile, src=x.b64, coord=(0, 0), mbar=x.bar, multicast_mask=x.u32)  # here

    assert_rejected(body, "PTX0203", "`ctas` is .u16")


def test_a_pair_of_ctas_on_hopper() -> None:
    def body() -> None:
        x = Operands()
        BULK.tensor_2d(dst=x.tile, src=x.b64, coord=(0, 0), mbar=x.bar, cta_group=2)  # here

    assert_rejected(body, "PTX0302", "sm_100a")


def test_three_ctas_in_a_group() -> None:
    def body() -> None:
        x = Operands()
        BULK.tensor_2d(dst=x.tile, src=x.b64, coord=(0, 0), mbar=x.bar, cta_group=3)  # here

    assert_rejected(body, "PTX0818", "`cta_group` must be 1 or 2")


def test_a_narrow_tile_column() -> None:
    def body() -> None:
        x = Operands()
        ptx.tma.load_3d(x.tile, x.b64, 0, 32, x.bar)  # here

    def give_two_helpers() -> None:
        x = Operands()
        ptx.tma.load_3d(x.tile, x.b64, 0, 64, x.bar, coords=(0, 0, 1))  # here

    assert_rejected(body, "PTX0818", "multiple of 64")
    assert_rejected(give_two_helpers, "PTX0818", "omit one of them")


def test_sizes_of_asynchronous_copies() -> None:
    def wrong_size() -> None:
        x = Operands()
        ptx.cp.async_.cg(x.tile, x.b64, 8)

    def give_two_sizes() -> None:
        x = Operands()
        ptx.cp.async_.ca(x.tile, x.b64, 16, src_size=4, ignore_src=x.pred)  # here

    def odd() -> None:
        x = Operands()
        ptx.cp.async_.ca(x.tile, x.b64, 12)  # here

    assert_rejected(odd, "PTX0818", "4, 8 or 16 bytes, found 12")
    with raises(PtxError, match="`size` must be 16, found 8"):
        make_kernel(wrong_size).ptx()
    assert_rejected(give_two_sizes, "PTX0818", "found both", "ptx.selp")


def test_an_order_that_an_arrival_has_not() -> None:
    def body() -> None:
        ptx.mbarrier.arrive(Operands().bar, sem="acquire")  # here

    assert_rejected(body, "PTX0102", "release")


def test_a_scope_that_the_cluster_barrier_has_not() -> None:
    def body() -> None:
        ptx.cluster.arrive(scope="cta")  # here

    assert_rejected(body, "PTX0818", "omit scope=")


@pytest.mark.parametrize("index", [2, -3, True, 0.5])
def test_a_barrier_outside_its_ring(index: Any) -> None:
    def body() -> None:
        ring = ptx.mbarrier.array(reg.alloc(u32), 0, 2)
        ring[index].init(1)

    with raises(PtxError, match="has barriers 0 to 1"):
        make_kernel(body).ptx()


@pytest.mark.parametrize(
    ("dtype", "product"), [(u32, "mad.lo.u32 %r2, %r1, 8, %r0;"), (u64, "mad.wide.u32 %rd1, %r0, 8, %rd0;")]
)
def test_a_stage_in_a_register_is_added_to_a_base_of_either_width(dtype: PtxType, product: str) -> None:
    def body() -> None:
        base, stage = reg.scalar(dtype, init=64), reg.scalar(u32, init=1)
        ptx.mbarrier.array(base, 16, 2)[stage].init(1)

    statements = code(body)
    assert product in statements
    assert re.fullmatch(r"mbarrier\.init\.shared(::cta)?\.b64 \[%rd?[12]\+16\], 1;", statements[-1])


def test_a_ring_that_is_nowhere() -> None:
    def allocate_nowhere() -> None:
        ptx.mbarrier.array(reg.alloc(f32), 0, 2)  # here

    def misalign() -> None:
        ptx.mbarrier.array(reg.alloc(u32), 4, 2)

    assert_rejected(allocate_nowhere, "PTX0818", "smem.base()")
    with raises(PtxError, match="must be a multiple of 8 bytes"):
        make_kernel(misalign).ptx()

    def empty() -> None:
        ptx.mbarrier.array(reg.alloc(u32), 0, 0)

    with raises(PtxError, match="expected the number of barriers, found 0"):
        make_kernel(empty).ptx()


def test_the_address_of_a_slot_is_no_plain_operand() -> None:
    def body() -> None:
        slot = ptx.mbarrier.array(reg.alloc(u32), 8, 2)[1]
        ptx.inst.mov.u32(reg.alloc(u32), slot)  # here

    assert_rejected(body, "PTX0806", "16 bytes after", "addr_reg()")


def test_a_register_of_another_kernel() -> None:
    barriers: list[Any] = []

    def first() -> None:
        barriers.append(ptx.mbarrier.array(reg.alloc(u32), 8, 2))

    def second() -> None:
        barriers[0][1].init(1)

    make_kernel(first).ptx()
    with raises(PtxError, match="belongs to the kernel"):
        make_kernel(second).ptx()


@pytest.mark.parametrize("mask", [0, 1 << 16, -1, True])
def test_a_multicast_to_nobody(mask: Any) -> None:
    def body() -> None:
        ptx.cluster.arrive_multicast(smem.mbarrier(1)[0], mask)

    with raises(PtxError, match="a CTA mask must be 1 to 0xffff"):
        make_kernel(body).ptx()


REDUCTIONS: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: ptx.warp.reduce_sum(reg.alloc(u32), width=24), "PTX0818", "`width` must be 2, 4, 8, 16 or 32"),
    (lambda: ptx.warp.reduce_sum(reg.alloc(pred)), "PTX0804", "does not support predicates"),
    (lambda: ptx.warp.reduce_sum(1), "PTX0818", "needs a register"),  # pyright: ignore[reportArgumentType]
    (lambda: ptx.warp.reduce("mean", reg.alloc(f32)), "PTX0818", "sum, max, min, and, or, xor"),
    (lambda: ptx.warp.reduce("and", reg.alloc(f32)), "PTX0804", "only integers"),
    (lambda: ptx.warp.shfl_idx(reg.array(u32, 2), 0), "PTX0818", "exchanges registers"),  # pyright: ignore[reportArgumentType]
    (lambda: ptx.warp.redux("max", reg.alloc(f32)), "PTX0302", "redux.sync.max.f32"),
    (lambda: ptx.atom.add(f16, None, reg.alloc(b64), reg.alloc(b32)), "PTX0203", ".f16"),
    (lambda: ptx.atom.min(f32, None, reg.alloc(b64), reg.alloc(f32)), "PTX0102", ".f32"),
    (lambda: ptx.mbarrier.init(smem.mbarrier(1)[0], 0), "PTX0204", "`count` must be 1 to"),
    (lambda: ptx.bar.sync(16), "PTX0204", "0 to 15"),
    (lambda: ptx.bar.sync(0, 48), "PTX0204", "in steps of 32"),
    (lambda: ptx.fence.proxy_tensormap_release("warp"), "PTX0102", ".gpu"),
    (lambda: ptx.mbarrier.wait(smem.mbarrier(1)[0], reg.alloc(s32), pred=reg.alloc(u16)), "PTX0206", "predicate"),
    (lambda: ptx.cluster.rank(-1), "PTX0818", "a rank must be an integer or a register, found -1"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "rule", "words"), REDUCTIONS, ids=[words for _, _, words in REDUCTIONS])
def test_wrong_arguments(call: Callable[[], Any], rule: str, words: str) -> None:
    def body() -> None:
        call()

    with raises(PtxError) as excinfo:
        make_kernel(body).ptx()
    finding = excinfo.value.diagnostics[0]
    assert finding.code == rule, excinfo.value
    assert words in text_of(excinfo.value), excinfo.value
    assert finding.origin is not None
    assert finding.origin.file == __file__, excinfo.value


def test_outside_a_kernel() -> None:
    with raises(PtxError, match="outside a kernel"):
        ptx.fence.mbarrier_init()
