"""Writes to global memory after more readers than slots: every unordered reader is found. Races of lanes and of warps
at the same two places are distinguished."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.base.events import Ints
from pyptx.sim.hazards import Finding, readers
from pyptx.sim.hazards.spill import Refs, Spill
from tests.sim.kernels import kernel

MODULE = ".global .u32 flag;\n.global .align 16 .u32 table[2048];\n.shared .u32 cells[64];\n"
CTAS = 8
HAND_OVER = """mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %t, 0; setp.eq.u32 %p2, %r1, 7; mov.u64 %rd1, flag;
mul.wide.u32 %rd2, %t, 4; mov.u64 %rd3, table; add.u64 %rd3, %rd3, %rd2;
{first}
mov.u32 %r6, 0;
again: ld.global.u32 %r2, [%rd3]; add.u32 %r6, %r6, 1; setp.lt.u32 %p4, %r6, {rounds}; @%p4 bra again;
bar.sync 0; @%p2 bra wait; @!%p1 ret;
{apart}fence.acq_rel.gpu;
count: red.relaxed.gpu.global.add.u32 [%rd1], 1; ret;
wait: ld.acquire.gpu.global.u32 %r3, [%rd1]; setp.lt.u32 %p3, %r3, 7; @%p3 bra wait;
st.global.u32 [%rd3], %r1;"""
FIRST = "@!%p2 bra read; st.global.u32 [%rd3+4096], %r1; read:"


def run_readers(body: str, grid: int = CTAS, threads: int = 128, schedule: str = "eager") -> list[Finding]:
    text = kernel(body, module=MODULE)
    args = [np.zeros(1024, np.uint32)]
    return sim.run(parse(text), grid=grid, block=threads, args=args, on_hazard="report", schedule=schedule).hazards


@pytest.mark.parametrize("first", ["", FIRST], ids=["before the first write", "after a write"])
@pytest.mark.parametrize("late", [None, 0, 3, 4, 5, 6])
def test_any_of_many_readers_that_is_not_in_order_is_found(late: int | None, first: str) -> None:
    separation = "" if late is None else f"setp.eq.u32 %p5, %r1, {late}; @%p5 bra count; "
    findings = run_readers(HAND_OVER.format(first=first, apart=separation, rounds=2))
    assert [finding.rule.code for finding in findings] == ([] if late is None else ["PTX0901"])
    assert [finding.other_agent and int(finding.other_agent.cta) for finding in findings] == (
        [] if late is None else [late]
    )


BOTH = """mov.u32 %r1, cells; mov.u64 %rd1, flag; mov.u32 %r3, 5; setp.eq.u32 %p1, %t, 0;
@%p1 st.shared.u32 [%r1], %t; bar.sync 0;
{read}
{sync}
@%p1 {write}"""
SHARED = {"read": "ld.shared.u32 %r2, [%r1];", "write": "st.shared.u32 [%r1], %r3;"}
GLOBAL = {"read": "ld.global.u32 %r2, [%rd1];", "write": "st.global.u32 [%rd1], %r3;"}


@pytest.mark.parametrize("space", [SHARED, GLOBAL], ids=["shared", "global"])
@pytest.mark.parametrize(
    ("sync", "threads", "codes"),
    [
        ("", 64, {"PTX0901", "PTX0902"}),
        ("bar.warp.sync -1;", 64, {"PTX0901"}),
        ("", 32, {"PTX0902"}),
        ("bar.sync 0;", 64, set[str]()),
    ],
)
def test_races_of_lanes_and_of_warps_are_two(space: dict[str, str], sync: str, threads: int, codes: set[str]) -> None:
    assert {finding.rule.code for finding in run_readers(BOTH.format(sync=sync, **space), 1, threads)} == codes


@pytest.mark.parametrize(
    "first", ["mov.u32 %r3, 0;", "st.global.u32 [%rd1+64], %r1;"], ids=["before the first write", "after a write"]
)
@pytest.mark.parametrize("writer", [1, 3])
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_a_barrier_of_another_cta_orders_no_reader(cluster: int, writer: int, first: str) -> None:
    """CTAs have one warp. After its barrier, the writer knows its own reads, but not those of the CTA before it."""
    body = f"""mov.u64 %rd1, table; mov.u32 %r1, %ctaid.x;
setp.eq.u32 %p1, %r1, {writer - 1}; setp.eq.u32 %p2, %r1, {writer};
setp.eq.and.u32 %p3, %t, 0, %p2;
@%p3 {first}
@%p1 ld.global.u32 %r2, [%rd1];
bar.sync 0;
@%p2 ld.global.u32 %r2, [%rd1];
bar.sync 0;
@%p3 st.global.u32 [%rd1], %t;"""
    module = parse(kernel(body, module=MODULE))
    args = [np.zeros(32, np.uint32)]
    (finding,) = sim.run(module, grid=4, cluster=cluster, block=32, args=args, on_hazard="report").hazards
    assert finding.rule.code == "PTX0901"
    assert finding.other_agent is not None
    assert finding.other_agent.cta == writer - 1


def test_readers_that_read_again_and_again_are_kept_once() -> None:
    spills: list[Spill] = []

    class RecordingSpill(Spill):
        def __init__(self, owner_of: Callable[[Refs], Ints]) -> None:
            super().__init__(owner_of)
            spills.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "Spill", RecordingSpill)
        assert run_readers(HAND_OVER.format(first=FIRST, apart="", rounds=40)) == []
    assert spills
    assert sum(spill.size for spill in spills) <= 128 * CTAS * 9


def test_what_is_forgotten_and_what_is_found() -> None:
    spill = Spill(lambda refs: refs.astype(np.int64) & 63)
    for turn in range(40):
        spill.add(np.array([7, 3, 7]), np.array([64 * turn + 1, 64 * turn + 2, 64 * turn + 3], np.int32))
    positions, refs = spill.find(np.array([3, 5, 7]))
    newest = {(0, 64 * 39 + 2), (2, 64 * 39 + 1), (2, 64 * 39 + 3)}
    assert newest <= set(zip(positions.tolist(), refs.tolist(), strict=True))
    assert set(positions.tolist()) == {0, 2}
    assert len(positions) < 40
    spill.forget(np.array([7]))
    assert set(spill.find(np.array([3, 5, 7]))[0].tolist()) == {0}
