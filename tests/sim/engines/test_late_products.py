"""Products that take effect late: the results of a correct kernel do not change. A wrong one computes wrong results
even without checks, although it is right when products land immediately."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from examples.parts.example import find_example
from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.isa.descriptors import WgmmaDescriptor
from pyptx.parser import parse
from pyptx.sim.base.lanes import Shape
from pyptx.sim.scheduling.orders import PRODUCTS, make_order
from pyptx.sim.state.effects import BULK, COPIES, IN_ORDER, STORES
from pyptx.tensormap import Swizzle
from tests.messages import raises
from tests.sim.patterns.cases import CASES
from tests.sim.patterns.planted import patterns

Array = np.ndarray[Any, Any]
LATE = [("lazy", 0), *(("adversarial", seed) for seed in range(9))]
ORDERS = [("eager", 0), *LATE, *(("random", seed) for seed in range(8))]
PATTERNS = [name for name in patterns() if name.startswith(("tcgen05", "wgmma"))]


def right(name: str, text: str, schedule: str, seed: int) -> bool:
    """Run a version of a pattern without checks and return whether its results are right."""
    case = CASES[name]
    launch = case.make(np.random.default_rng(seed))
    try:
        sim.run(
            parse(text), grid=case.grid, block=case.block, cluster=case.cluster, args=launch.args, schedule=schedule,
            seed=seed, check="none", max_steps=100_000,
        )  # fmt: skip
    except PtxError:
        return False
    return all(np.array_equal(output, expected) for output, expected in launch.outputs)


@pytest.mark.parametrize("name", PATTERNS)
def test_what_follows_the_rules_is_right_in_every_order(name: str) -> None:
    assert [order for order in ORDERS if not right(name, patterns()[name].text, *order)] == []


MISTAKES = [
    # The kernel reads accumulators, or writes registers of A, before the wait for their group.
    ("wgmma_shared", "wait", "remove"), ("wgmma_shared", "wait", "after scale"),
    ("wgmma_shared", "wait_third", "remove"), ("wgmma_shared", "wait", "as wgmma.wait_group.sync.aligned 1;"),
    ("wgmma_shared", "commit_second", "remove"),
    ("wgmma_registers", "wait_first", "remove"), ("wgmma_registers", "wait_first", "after reload"),
    ("wgmma_registers", "wait", "remove"), ("wgmma_registers", "wait", "as wgmma.wait_group.sync.aligned 1;"),
    ("wgmma_registers", "commit_third", "remove"),
    # The kernel releases a slot before the wait.
    ("wgmma_ring", "wait", "remove"), ("wgmma_ring", "wait", "as wgmma.wait_group.sync.aligned 1;"),
    ("wgmma_ring", "commit", "remove"), ("wgmma_ring", "wait", "after hand_back"),
    # The kernel hands over a slot, or the product, by a plain arrive, or by a commit that came first.
    ("tcgen05_mma", "commit_empty", "as mbarrier.arrive.shared::cta.b64 _, [empty];"),
    ("tcgen05_mma", "commit_empty", "before product"),
    ("tcgen05_mma", "commit_done", "as mbarrier.arrive.shared::cta.b64 _, [done];"),
    ("tcgen05_mma", "commit_done", "before product"),
    ("tcgen05_cp", "commit_empty", "as mbarrier.arrive.shared::cta.b64 _, [empty];"),
    ("tcgen05_cp", "commit_empty", "before copy"), ("tcgen05_cp", "wait_empty", "remove"),
    ("tcgen05_cp", "commit_done", "as mbarrier.arrive.shared::cta.b64 _, [done];"),
    ("tcgen05_st", "commit", "as mbarrier.arrive.shared::cta.b64 _, [done];"),
    # The kernel reads tensor memory before the barrier of the commit, or uses it before the wait for stores.
    ("tcgen05_mma", "reader_waits", "remove"), ("tcgen05_cp", "reader_waits", "remove"),
    ("tcgen05_st", "wait", "remove"), ("tcgen05_st", "wait_st", "remove"),
    ("tcgen05_st", "wait_st", "as tcgen05.wait::ld.sync.aligned;"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=" ".join)
def test_what_breaks_the_rules_is_right_at_once_and_wrong_late(mistake: tuple[str, str, str]) -> None:
    name, line, change = mistake
    (text,) = [m.text for m in patterns()[name].mistakes if (m.name, m.change) == (line, change)]
    assert right(name, text, "eager", 0)
    assert not all(right(name, text, *order) for order in LATE)
    assert not all(right(name, text, "random", seed) for seed in range(12))


def test_some_orders_land_products_at_once_and_others_copies() -> None:
    orders = [make_order("adversarial", seed, 0, Shape((128, 1, 1), 1)) for seed in range(9)]
    hasty = [order.hasty for order in orders if order is not None]
    assert {frozenset(), PRODUCTS, frozenset((BULK, COPIES, STORES))} == set(hasty)
    assert hasty.count(frozenset()) > len(hasty) // 2
    assert PRODUCTS == IN_ORDER


@pytest.mark.parametrize(("name", "line"), [("tcgen05_cp", "wait_refill"), ("wgmma_registers", "wait_full")])
def test_a_load_that_nobody_waits_for_lands_after_the_product(name: str, line: str) -> None:
    (text,) = [m.text for m in patterns()[name].mistakes if (m.name, m.change) == (line, "remove")]
    assert right(name, text, "eager", 0)
    assert not right(name, text, "lazy", 0)


@pytest.mark.parametrize("change", ["remove", "as bar.warp.sync 0xffffffff;"])
def test_operands_that_come_too_late_show_where_products_land_soon(change: str) -> None:
    (text,) = [m.text for m in patterns()["tcgen05_st"].mistakes if (m.name, m.change) == ("stored", change)]
    assert not all(right("tcgen05_st", text, "random", seed) for seed in range(12))


def chain(steps: str, schedule: str, seed: int = 0) -> Array:
    """Return the accumulators of two CTAs of 128 threads after some steps: 8 columns, 4 registers each. The product of
    A and B is 16 everywhere; A in `%a0` to `%a3` is 1, B is in shared memory."""
    b = WgmmaDescriptor(1024, 128, 128, Swizzle.NONE).encode()
    text = f""".version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{{
.shared .align 1024 .b8 tile[1024];
.reg .f32 %d<4>; .reg .b32 %t, %cta, %at, %a<4>, %r; .reg .b64 %to, %b; .reg .pred %second, %odd, %other;
ld.param.u64 %to, [out];
mov.u32 %t, %tid.x; mov.u32 %cta, %ctaid.x; mad.lo.u32 %r, %cta, 128, %t; mad.wide.u32 %to, %r, 16, %to;
setp.eq.u32 %second, %cta, 1; and.b32 %r, %t, 1; setp.eq.u32 %odd, %r, 1; setp.ge.u32 %other, %t, 64;
mov.u32 %at, tile; mad.lo.u32 %at, %t, 4, %at; mov.b32 %r, 0x3f803f80; st.shared.b32 [%at], %r;
{"".join(f"mov.f32 %d{n}, 0f40000000; mov.b32 %a{n}, 0x3f803f80;" for n in range(4))}
mov.b64 %b, {b:#x};
fence.proxy.async.shared::cta;
bar.sync 0;
wgmma.fence.sync.aligned;
{steps}
st.global.v4.f32 [%to], {{%d0, %d1, %d2, %d3}};
ret;
}}"""
    out = np.full((2, 128, 4), np.nan, np.float32)
    sim.run(parse(text), grid=2, block=128, args=[out], schedule=schedule, seed=seed, check="none")
    return out


PRODUCT = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, %b, 1, 1, 1, 0;\n"
)
COMMIT = "wgmma.commit_group.sync.aligned;\n"
WAIT = "wgmma.wait_group.sync.aligned 0;\n"


def test_registers_keep_what_they_held_until_the_wait() -> None:
    steps = f"{PRODUCT}{COMMIT}mov.f32 %d3, %d0;\n{WAIT}"
    assert (chain(steps, "eager")[..., 0] == 18).all()
    late = chain(steps, "lazy")
    assert (late[..., 0] == 18).all()
    assert (late[..., 3] == 18).all()
    read = chain(f"{PRODUCT}{COMMIT}st.global.f32 [%to], %d0;\n{WAIT}bar.sync 0;\nld.global.f32 %d3, [%to];\n", "lazy")
    assert (read[..., 3] == 2).all()


def test_fragments_of_a_are_read_late() -> None:
    steps = f"{PRODUCT}{COMMIT}mov.b32 %a0, 0;\nmov.b32 %a2, 0;\n{WAIT}"
    assert (chain(steps, "eager") == 18).all()
    # Rows of registers 0 and 2 of A, which correspond to registers 0 and 1 of D.
    assert chain(steps, "lazy")[0, 0].tolist() == [2, 2, 18, 18]


def test_descriptors_and_scales_are_read_at_once() -> None:
    steps = PRODUCT.replace(", 1, 1, 1, 0;", ", %odd, 1, 1, 0;") + COMMIT
    steps = f"setp.eq.u32 %odd, %t, %t;\n{steps}setp.ne.u32 %odd, %t, %t;\nmov.b64 %b, 0;\n{WAIT}"
    assert (chain(steps, "lazy") == 18).all()


def test_a_wait_lands_the_groups_it_waits_for_and_no_other() -> None:
    two = f"{PRODUCT}{COMMIT}{PRODUCT}{COMMIT}"
    none = "".join(f"mov.b32 %a{n}, 0;\n" for n in range(4))
    partial_wait = f"{two}wgmma.wait_group.sync.aligned 1;\n{none}{WAIT}"
    assert (chain(partial_wait, "lazy") == 18).all()
    assert (chain(partial_wait.replace("aligned 1", "aligned 0"), "lazy") == 34).all()
    guarded_wait = partial_wait.replace("wgmma.wait_group.sync.aligned 1", "@%other wgmma.wait_group.sync.aligned 0")
    assert (chain(guarded_wait, "lazy") == 34).all()


GROUP, TWO = f"{PRODUCT}{COMMIT}", "@%second bra two;\n"
PARTED = {
    "parted": f"{GROUP}{TWO}{GROUP}bra met;\ntwo:\n{PRODUCT}{GROUP}met:\n{WAIT}",
    "parted, then joined": f"{GROUP}{TWO}{PRODUCT}two:\n{COMMIT}{GROUP}{WAIT}",
    "parted, each waits": f"{GROUP}{TWO}{GROUP}{WAIT}bra met;\ntwo:\n{GROUP}met:\n{WAIT}",
    "changed between": f"{GROUP}{WAIT}add.f32 %d0, %d0, %d0;\n@%second add.f32 %d1, %d1, %d1;\n"
    f"wgmma.fence.sync.aligned;\n{TWO}{GROUP}two:\n{WAIT}{GROUP}{WAIT}",
}


@pytest.mark.parametrize("name", list(PARTED))
def test_products_of_ctas_that_part_land_in_order_and_where_they_belong(name: str) -> None:
    expected = chain(PARTED[name], "eager")
    assert (expected > 18).any()
    for schedule, seed in [*LATE, *(("random", seed) for seed in range(30))]:
        assert chain(PARTED[name], schedule, seed).tobytes() == expected.tobytes(), (schedule, seed)


def test_operands_outside_of_shared_memory_are_an_error_at_the_instruction() -> None:
    outside = f"mov.b64 %b, {WgmmaDescriptor(65536, 128, 128, Swizzle.NONE).encode():#x};\n{PRODUCT}{COMMIT}trap;\n"
    for schedule, seed in ORDERS:
        with raises(PtxError, match="matrix B reads shared addresses"):
            chain(outside, schedule, seed)


def test_work_in_flight_is_recorded_alike_whenever_it_lands() -> None:
    """The record contains the times of issue and wait, which the order of landing does not change."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((256, 256)).astype(ml_dtypes.bfloat16) for _ in "ab")
    for name in ("hopper/cluster_gemm", "blackwell/two_sm_gemm"):
        kernel: Any = find_example(name).make()
        records = list[Any]()
        for schedule in ("eager", "lazy"):
            c = np.zeros((256, 256), ml_dtypes.bfloat16)
            result = kernel.simulate(a, b, out=c, schedule=schedule, timeline=True, statistics=True)
            records.append((result.timeline.recorded.transfers, result.stats.statistics.overlap))
        assert records[0] == records[1]
        assert any(transfer.flops and transfer.barrier for transfer in records[0][0]) is (
            name == "blackwell/two_sm_gemm"
        )


def test_groups_in_flight_end_at_the_same_waits_whenever_they_land() -> None:
    case, records = CASES["wgmma_registers"], list[Any]()
    for schedule in ("eager", "lazy"):
        launch = case.make(np.random.default_rng(0))
        module = parse(patterns()["wgmma_registers"].text)
        result = sim.run(
            module, grid=case.grid, block=case.block, args=launch.args, schedule=schedule, timeline=True
        ).timeline
        assert result is not None
        records.append([(t.start, t.end, t.flops) for t in result.recorded.transfers if t.flops])
    assert records[0] == records[1]
    assert len({end for _, end, _ in records[0]}) > 1


def test_operands_of_tensor_memory_are_read_when_the_instruction_is_issued() -> None:
    """Registers that hold descriptors and addresses may change before the product lands."""
    text = patterns()["tcgen05_mma"].text
    product = next(line for line in text.splitlines() if "//@ product" in line)
    names = ("%a,", "%b,", "%never;")
    copies = product.split("//@")[0]
    for name in names:
        copies = copies.replace(name, f"{name[:-1]}2{name[-1]}")
    before = "mov.b64 %a2, %a; mov.b64 %b2, %b; setp.ne.u32 %never2, %t, %t;"
    after = "mov.b64 %a2, 0; mov.b64 %b2, 0; setp.eq.u32 %never2, %t, %t;"
    program = text.replace(".reg .pred", ".reg .b64 %a2, %b2; .reg .pred %never2; .reg .pred", 1)
    program = program.replace(product, f"{before} {copies} {after}")
    assert program.count("%a2, %b2") == 2
    assert [order for order in ORDERS if not right("tcgen05_mma", program, *order)] == []


def test_columns_may_be_freed_before_what_uses_them_lands() -> None:
    """A mistake, but the message about the product must not mention columns that nobody holds."""
    (text,) = [m.text for m in patterns()["tcgen05_relaxed"].mistakes if (m.name, m.change) == ("last", "remove")]
    assert right("tcgen05_relaxed", text, "lazy", 0)
