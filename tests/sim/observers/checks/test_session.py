"""Checked runs of small kernels: the correct version is clean, and without its marked line the finding has both places.

In a body, `//-` marks the line to remove, `//@` the line of the finding, `//&` its other place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import Severity, Span
from pyptx.parser import parse

FRAME = """.version 8.6
.target {target}
.address_size 64
.shared .align 1024 .b8 box[4096];
.shared .align 8 .b64 bar;
.visible .entry k(.param .u64 in, .param .u64 out)
{{
.reg .b32 %r<20>, %t, %at, %box, %c<4>; .reg .b64 %rd<9>, %in, %out; .reg .pred %p<4>, %first;
.reg .f32 %f<9>; .reg .b32 %v<33>;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0;
mov.u32 %box, box; shl.b32 %at, %t, 2; add.u32 %at, %at, %box;
{body}
ret;
}}
"""


@dataclass(frozen=True)
class Case:
    """A body, the code reported without its marked line, and the launch."""

    name: str
    code: str
    body: str
    threads: int = 64
    grid: int = 1
    cluster: int = 1
    target: str = "sm_90a"


WAIT = "wait{0}: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], {1}; {2}\n@!%p1 bra wait{0};"
LOAD = """@%first mbarrier.init.shared::cta.b64 [bar], 1;
bar.sync 0;
@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%in], 256, [bar]; //&
{}
ld.shared.u32 %r1, [%at]; //@"""
STORE = """st.shared.u32 [%at], %t; {}
fence.proxy.async.shared::cta; {}
bar.sync 0;
@!%first bra after;
cp.async.bulk.global.shared::cta.bulk_group [%out], [box], 256; {}
cp.async.bulk.commit_group;
{}
after: bar.sync 0;
st.shared.u32 [%at], 1; {}"""

CASES = [
    Case("barrier", "PTX0901", """st.shared.u32 [%at], %t; //&
bar.sync 0; //-
xor.b32 %r1, %t, 32; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %box;
ld.shared.u32 %r2, [%r1]; //@"""),
    Case("lanes", "PTX0902", """st.shared.u32 [%at], %t; //&
bar.warp.sync -1; //-
xor.b32 %r1, %t, 1; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %box;
ld.shared.u32 %r2, [%r1]; //@""", 32),
    Case("named barrier", "PTX0901", """st.shared.u32 [%at], %t; //&
bar.sync 3, 64; //-
xor.b32 %r1, %t, 32; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %box;
ld.shared.u32 %r2, [%r1]; //@"""),
    Case("barrier of those that stay", "PTX0901", """setp.gt.u32 %p2, %t, 49;
@%p2 bra end; // Lanes 18 to 31 of the second warp end after the others have come to the barrier.
st.shared.u32 [%at], %t; //&
bar.sync 0; //-
sub.u32 %r1, 49, %t; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %box;
ld.shared.u32 %r2, [%r1]; //@
end:"""),
    Case("count of warps that are not whole any more", "PTX0901", """setp.gt.u32 %p2, %t, 40;
@%p2 bra end;
st.shared.u32 [%at], %t; //&
bar.sync 3, 64; //-
sub.u32 %r1, 40, %t; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %box;
ld.shared.u32 %r2, [%r1]; //@
end:""", 64),
    Case("uninitialised", "PTX0910", """st.shared.u32 [%at], %t; //-
ld.shared.u32 %r2, [%at]; //@"""),
    Case("mbarrier", "PTX0901", """@%first mbarrier.init.shared::cta.b64 [bar], 64;
bar.sync 0;
st.shared.u32 [%at], %t; //&
mbarrier.arrive.shared::cta.b64 _, [bar];
wait0: mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0; //-
@!%p1 bra wait0; //-
xor.b32 %r1, %t, 32; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %box;
ld.shared.u32 %r2, [%r1]; //@"""),
    Case("initialization", "PTX0928", """@%first mbarrier.init.shared::cta.b64 [bar], 64; //&
bar.sync 0; //-
mbarrier.arrive.shared::cta.b64 _, [bar]; //@"""),
    Case("second initialization", "PTX0928", """mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 1;
mov.u32 %r2, bar; mapa.shared::cluster.u32 %r2, %r2, %r1;
@%first mbarrier.init.shared::cta.b64 [bar], 1;
@%first fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed; barrier.cluster.wait;
@%first mbarrier.inval.shared::cta.b64 [bar];
@%first mbarrier.init.shared::cta.b64 [bar], 1; //&
@%first fence.mbarrier_init.release.cluster; //-
barrier.cluster.arrive.relaxed; barrier.cluster.wait;
@%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2]; //@
barrier.cluster.arrive; barrier.cluster.wait;""", 32, 2, 2),
    Case("bulk load", "PTX0930", LOAD.format(WAIT.format(0, 0, "//-").replace("bra wait0;", "bra wait0; //-"))),
    Case("bulk store", "PTX0920", STORE.format("//&", "//-", "//@", "cp.async.bulk.wait_group.read 0;", "")),
    Case("bulk source", "PTX0942", STORE.format("", "", "//&", "cp.async.bulk.wait_group.read 0; //-", "//@")),
    Case("cp.async", "PTX0931", """mul.wide.u32 %rd1, %t, 4; add.s64 %rd1, %rd1, %in;
cp.async.ca.shared.global [%at], [%rd1], 4; //&
cp.async.commit_group;
cp.async.wait_group 0; //-
ld.shared.u32 %r1, [%at]; //@"""),
    Case("global flag", "PTX0901", """mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0;
@%p1 bra wait;
st.global.u32 [%out+16], 7; //&
fence.acq_rel.gpu; //-
st.relaxed.gpu.global.u32 [%out], 1;
bra done;
wait: ld.acquire.gpu.global.u32 %r2, [%out];
setp.eq.u32 %p2, %r2, 0;
@%p2 bra wait;
ld.global.u32 %r3, [%out+16]; //@
done: nanosleep.u32 1;""", 1, 2),
    Case("peer", "PTX0980", """mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 1;
barrier.cluster.arrive; //-
barrier.cluster.wait; //-
mapa.shared::cluster.u32 %r2, %at, %r1;
st.shared::cluster.u32 [%r2], %t; //@
barrier.cluster.arrive; barrier.cluster.wait;""", 32, 2, 2),
    Case("peer's end", "PTX0981", """mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 1;
barrier.cluster.arrive; barrier.cluster.wait;
mapa.shared::cluster.u32 %r2, %at, %r1;
st.shared::cluster.u32 [%r2], %t; //&
barrier.cluster.arrive; //-
barrier.cluster.wait; //-
""", 32, 2, 2),
    Case("products", "PTX0933", """mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
st.shared.u32 [%at], 0; st.shared.u32 [%at+512], 0; st.shared.u32 [%at+1024], 0; st.shared.u32 [%at+1536], 0;
st.shared.u32 [%at+2048], 0; fence.proxy.async.shared::cta; bar.sync 0;
shr.u32 %r1, %box, 4; cvt.u64.u32 %rd1, %r1; or.b64 %rd1, %rd1, 68720001024;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd1, 1, 1, 1, 0, 0; //&
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0; //-
add.f32 %f5, %f1, %f2; //@
""", 128),
    Case("tensor memory", "PTX0938", """setp.lt.u32 %p1, %t, 32;
@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [box], 32;
bar.sync 0;
ld.shared.u32 %r1, [box]; shl.b32 %r2, %t, 16; and.b32 %r2, %r2, 0x600000; add.u32 %r2, %r2, %r1;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%t};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r2]; //&
tcgen05.wait::ld.sync.aligned; //-
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32; //@""", 128, target="sm_100a"),
]  # fmt: skip


def line_of(lines: list[str], mark: str) -> int | None:
    return next((number for number, line in enumerate(lines, 1) if mark in line), None)


def findings(case: Case, body: str, **options: Any) -> tuple[list[str], list[Any]]:
    text = FRAME.format(target=case.target, body=body)
    arrays = [np.zeros(256, np.uint32), np.zeros(256, np.uint32)]
    launch = {"grid": case.grid, "block": case.threads, "cluster": case.cluster, "args": arrays}
    result = sim.run(parse(text), **launch, on_hazard="report", **options)
    return text.splitlines(), result.hazards


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_right_version_is_clean(case: Case, schedule: str) -> None:
    _, reports = findings(case, case.body, schedule=schedule)
    assert [str(finding) for finding in reports if finding.severity is Severity.ERROR] == []


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_without_the_marked_line_both_places_are_found(case: Case, schedule: str) -> None:
    body = "\n".join("" if "//-" in line else line for line in case.body.splitlines())
    lines, reports = findings(case, body, schedule=schedule)
    matches = [finding for finding in reports if finding.rule.code == case.code]
    assert matches, [str(finding) for finding in reports]
    first_line, second_line = line_of(lines, "//@"), line_of(lines, "//&")
    places = [(span(finding.place.origin), finding.other and span(finding.other.origin)) for finding in matches]
    assert any(first_line in (None, line_at) and second_line in (None, other_line) for line_at, other_line in places), (
        places
    )


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_every_lane_that_initializes_a_barrier_counts(lanes: int) -> None:
    body = f"setp.lt.u32 %p1, %t, {lanes};\n@%p1 mbarrier.init.shared::cta.b64 [bar], 1;"
    _, reports = findings(Case("", "", ""), body)
    assert [(finding.rule.code, finding.count, finding.help) for finding in reports] == [
        ("PTX0951", lanes - 1, "let one thread execute `mbarrier.init`")
    ][: lanes - 1]


def span(origin: object) -> int:
    assert isinstance(origin, Span)
    return origin.line


@pytest.mark.parametrize("ctas", [1, 5, 24])
def test_a_finding_names_its_cta(ctas: int) -> None:
    """The warps of one CTA write the same bytes, in batches of one, some or all CTAs."""
    body = """mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
mad.lo.u32 %r1, %r2, 10, %r1; mad.lo.u32 %r1, %r3, 100, %r1; setp.eq.u32 %p1, %r1, PLACE;
@%p1 st.shared.u32 [%box], %t;"""
    grid = 2, 3, 4
    for x, y, z in np.ndindex(grid):
        text = FRAME.format(target="sm_90a", body=body.replace("PLACE", str(x + 10 * y + 100 * z)))
        arrays = [np.zeros(1, np.uint32)] * 2
        result = sim.run(parse(text), grid=grid, block=64, args=arrays, on_hazard="report", batch_lanes=64 * ctas)
        assert {str(finding.agent) for finding in result.hazards} == {f"CTA ({x}, {y}, {z}) warp 0 lane 0"}
