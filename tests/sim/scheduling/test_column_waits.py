"""tcgen05.alloc waits for columns that others hold, continues when they are freed, and hangs if they never are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError, Span
from pyptx.parser import parse
from tests.messages import raises

ORDERS = [("eager", 0), ("lazy", 0), *(("adversarial", seed) for seed in range(9)), *(("random", s) for s in range(6))]
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"


def kernel(body: str, pair: bool = False) -> str:
    """Return a kernel in which each thread writes a word, `%v`; `%mine` is where a warp stores its columns."""
    text = f""".version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{{
.reg .b32 %t, %warp, %base, %v, %x, %rank, %mine; .reg .b64 %to; .reg .pred %p, %q, %first;
.shared .align 8 .b64 bar; .shared .align 4 .b32 where[4];
mov.u32 %t, %tid.x; shr.u32 %warp, %t, 5; mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %first, %t, 0;
ld.param.u64 %to, [out]; mov.u32 %x, %ctaid.x; mad.lo.u32 %x, %x, 128, %t; mad.wide.u32 %to, %x, 4, %to;
mov.u32 %mine, where; mad.lo.u32 %mine, %warp, 4, %mine;
@%first mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
{body}
st.global.u32 [%to], %v;
end: ret;
}}"""
    return text.replace("cta_group::1", "cta_group::2") if pair else text


def run(text: str, schedule: str = "eager", seed: int = 0, ctas: int = 1, **options: Any) -> np.ndarray[Any, Any]:
    out = np.zeros((ctas, 128), np.uint32)
    sim.run(parse(text), grid=ctas, cluster=ctas, block=128, args=[out], schedule=schedule, seed=seed, **options)
    return out


def use(columns: int, value: str) -> str:
    """Return code in which a warp writes, reads and frees its own columns."""
    return f"""{ALLOC} [%mine], {columns};
bar.warp.sync -1;
ld.shared.u32 %base, [%mine];
shl.b32 %x, %warp, 21; add.u32 %base, %base, %x;
mov.u32 %v, {value};
tcgen05.st.sync.aligned.32x32b.x1.b32 [%base], {{%v}};
tcgen05.wait::st.sync.aligned;
mov.u32 %v, 0;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%v}}, [%base];
tcgen05.wait::ld.sync.aligned;
sub.u32 %base, %base, %x;
{DEALLOC} %base, {columns};
"""


@pytest.mark.parametrize("columns", [32, 256, 512])
def test_warps_that_want_more_than_there_is_take_turns(columns: int) -> None:
    text = kernel(use(columns, "%t"))
    for schedule, seed in ORDERS:
        assert run(text, schedule, seed)[0].tolist() == list(range(128)), (schedule, seed)


def test_a_warp_goes_on_when_another_one_has_freed_enough() -> None:
    """Warp 0 holds all columns until warp 1, which allocates columns after that, has arrived."""
    body = f"""setp.ge.u32 %p, %warp, 2;
@%p bra end;
setp.eq.u32 %p, %warp, 1;
@%p bra second;
{ALLOC} [%mine], 256;
{ALLOC} [where+8], 256;
bar.warp.sync -1;
ld.shared.u32 %base, [%mine];
wait: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
@!%q bra wait;
{DEALLOC} %base, 256;
ld.shared.u32 %base, [where+8];
{DEALLOC} %base, 256;
mov.u32 %v, 7;
st.global.u32 [%to], %v;
bra end;
second:
setp.eq.u32 %p, %t, 32;
@%p mbarrier.arrive.shared::cta.b64 _, [bar];
bar.warp.sync -1;
{use(256, "%t")}"""
    for schedule, seed in ORDERS:
        assert run(kernel(body), schedule, seed, check="none")[0, 32:64].tolist() == list(range(32, 64))
        assert run(kernel(body), schedule, seed)[0, :32].tolist() == [7] * 32


def hang(text: str, **options: Any) -> sim.Hang:
    hangs: list[sim.Hang] = []
    for check in ("none", "all"):
        for schedule in ("eager", "lazy", "random", "adversarial"):
            with raises(sim.Hang) as excinfo:
                run(text, schedule, check=check, **options)
            hangs.append(excinfo.value)
    return hangs[0]


HELD = f"""setp.ne.u32 %p, %warp, 0;
@%p bra others;
{ALLOC} [%mine], 256; // held
bar.sync 0;
bar.sync 0;
bra end;
others: bar.sync 0;
setp.ne.u32 %p, %warp, 1;
@%p bra past;
{ALLOC} [%mine], 512; // wanted
past: bar.sync 0;
"""


def place(error: PtxError) -> int:
    origin = error.diagnostics[0].origin
    assert isinstance(origin, Span)
    return origin.line


def line(text: str, mark: str) -> int:
    return next(index for index, row in enumerate(text.splitlines(), 1) if mark in row)


def test_a_hang_says_who_wants_columns_who_holds_them_and_where_they_stand() -> None:
    text = kernel(HELD)
    error = hang(text)
    (finding,) = error.diagnostics
    assert finding.code == "PTX0990"
    assert place(error) == line(text, "// wanted")
    assert (
        "CTA 0 warp 1 waits for columns of tensor memory of CTA 0: no 512 consecutive columns are free"
        in finding.message
    )
    assert "0 to 255 of CTA 0 are held by CTA 0 warp 0 since `tcgen05.alloc" in finding.message
    assert f":{line(text, '// held')}:" in finding.message
    assert "warp 2, warp 3 at `bar.sync" in str(error.report)
    assert "tcgen05.dealloc" in str(finding.help)
    assert error.report.as_json()["guilty"] == "columns of tensor memory of CTA 0"


def test_who_frees_after_a_barrier_that_the_other_does_not_reach_is_a_circle() -> None:
    text = kernel(
        HELD.replace(
            "bar.sync 0;\nbra end;", f"bar.sync 0;\nld.shared.u32 %base, [where];\n{DEALLOC} %base, 256;\nbra end;"
        )
    )
    report = hang(text).report
    assert report.cycle
    assert {node.kind for node in report.nodes} == {"columns", "bar"}


def test_columns_of_a_warp_that_has_ended_are_never_free() -> None:
    text = kernel(
        HELD.replace("bar.sync 0;\nbar.sync 0;\nbra end;", "bar.sync 0;\nbra end;").replace(
            "past: bar.sync 0;", "past:"
        )
    )
    error = hang(text)
    assert any("CTA 0 warp 0" in line and "exited after" in line for line in error.report.format_lines())


def test_one_warp_may_wait_for_itself() -> None:
    text = kernel(f"setp.ne.u32 %p, %warp, 0;\n@%p bra end;\n{ALLOC} [%mine], 512;\n{ALLOC} [%mine], 32; // again\n")
    assert place(hang(text)) == line(text, "// again")


def test_a_pair_waits_for_the_columns_of_both() -> None:
    """In turn, so that the two CTAs do not take each other's columns."""
    body = f"""setp.ge.u32 %p, %warp, 2;
@%p bra end;
setp.eq.u32 %p, %warp, 1;
@%p bra second;
{ALLOC} [%mine], 512;
bar.warp.sync -1;
ld.shared.u32 %base, [%mine];
barrier.cluster.arrive; barrier.cluster.wait;
setp.eq.u32 %p, %rank, 1;
@%p bra late;
{DEALLOC} %base, 512;
barrier.cluster.arrive; barrier.cluster.wait;
bra freed;
late:
barrier.cluster.arrive; barrier.cluster.wait;
{DEALLOC} %base, 512;
freed: mov.u32 %v, 1;
st.global.u32 [%to], %v;
barrier.cluster.arrive; barrier.cluster.wait;
bra end;
second:
barrier.cluster.arrive; barrier.cluster.wait;
barrier.cluster.arrive;
{ALLOC} [%mine], 256; // both
bar.warp.sync -1;
barrier.cluster.wait;
ld.shared.u32 %base, [%mine];
{DEALLOC} %base, 256;
mov.u32 %v, 2;
barrier.cluster.arrive; barrier.cluster.wait;
"""
    text = kernel(
        body.replace("barrier.cluster.arrive", "barrier.cluster.arrive.aligned").replace(
            "cluster.wait", "cluster.wait.aligned"
        ),
        pair=True,
    )
    for schedule, seed in ORDERS:
        out = run(text, schedule, seed, ctas=2)
        assert out[:, :64].tolist() == [[1] * 32 + [2] * 32] * 2, (schedule, seed)
    stuck_text = text.replace("late:", "late: bra freed;").replace(
        "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %base, 512;\nfreed:", "freed:"
    )
    missing = hang(stuck_text, ctas=2).diagnostics[0].message
    assert "columns of tensor memory of CTA 0 and CTA 1: no 256 consecutive columns are free" in missing
    assert "0 to 511 of CTA 1 are held by CTA 1 warp 0" in missing
    assert "of CTA 0 are held" not in missing


def test_after_the_permit_is_given_up_an_allocation_is_an_error_though_it_could_wait() -> None:
    late_allocation = use(512, "%t").replace(
        ALLOC, f"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n{ALLOC}"
    )
    with raises(PtxError, match="after relinquish_alloc_permit"):
        run(kernel(late_allocation))
    right = use(512, "%t") + "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
    right = right.replace("tcgen05.relinquish", "bar.sync 0;\ntcgen05.relinquish")
    assert run(kernel(right))[0].tolist() == list(range(128))


def test_steps_that_only_ask_again_are_not_counted() -> None:
    counts, times = set[int](), set[int]()
    for columns in (32, 512):
        text = kernel(use(columns, "%t"))
        result = sim.run(parse(text), block=128, args=[np.zeros(128, np.uint32)], timeline=True)
        assert result.timeline is not None
        counts.add(result.stats.lane_instructions)
        lines = {line.number: line.warps for line in result.timeline.recorded.lines}
        times.add(lines[line(text, ALLOC)])
    assert len(counts) == 1
    assert times == {4}
