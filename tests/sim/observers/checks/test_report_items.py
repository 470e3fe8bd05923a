"""The findings that the checks promise, planted one by one: each with its code, in every kind of schedule.

In a body, `//@` marks the line of the finding and `//&` its other place; `RIGHT` has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import Diagnostic, PtxError, Severity, Span
from pyptx.parser import parse

FRAME = """.version 8.8
.target {target}
.address_size 64
.shared .align 1024 .b8 box[8192];
.shared .align 8 .b64 bar;
.const .align 4 .u32 fixed[4];
.visible .entry k(.param .u64 in, .param .u64 out)
{limits}
{{
.reg .b32 %r<20>, %t, %at, %box, %rank; .reg .b64 %rd<9>, %in, %out; .reg .pred %p<8>, %first, %low;
.reg .f32 %f<9>; .reg .b16 %h<9>;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; setp.lt.u32 %low, %t, 32; mov.u32 %rank, %cluster_ctarank;
mov.u32 %box, box; shl.b32 %at, %t, 2; add.u32 %at, %at, %box;
{body}
ret;
}}
"""


@dataclass(frozen=True)
class Item:
    """A mistake with its expected report, and the launch."""

    code: str
    body: str
    threads: int = 64
    cluster: int = 1
    limits: str = ""
    target: str = "sm_100a"


INIT = "@%first mbarrier.init.shared::cta.b64 [bar], {};\nbar.sync 0;\n"
ALLOC = """@%low tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [box], {0};
bar.sync 0;
ld.shared.u32 %r1, [box]; shl.b32 %r2, %t, 16; and.b32 %r2, %r2, 0x600000; add.u32 %r2, %r2, %r1;
"""
FREE = "\nbar.sync 0;\n@%low tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, {};"
PUT = "tcgen05.st.sync.aligned.32x32b.x1.b32 [{}], {{%t}}; {}\ntcgen05.wait::st.sync.aligned;"
WAIT = "w{0}: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], {1};\n@!%p1 bra w{0};\n"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [bar];"
EXPECT = "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {};\n"
LOAD = "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%in], 64, [bar];"
CLUSTER = "barrier.cluster.arrive; barrier.cluster.wait;\n"
FILL = "st.shared.u32 [%at], %t;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
STORE = """@%first cp.async.bulk.global.shared::cta.bulk_group [%out], [box], 256; //&
@%first cp.async.bulk.commit_group;
"""
READ = "@%first cp.async.bulk.wait_group.read 0;\n"
PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd1, 1, 1, 1, 0, 0; //@"
ZERO = "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;\nwgmma.fence.sync.aligned;\n"
PEER = "mov.u32 %r2, bar; mapa.shared::cluster.u32 %r2, %r2, 1;\n"
MULTICAST = """mov.u16 %h1, 7; setp.eq.u32 %p2, %rank, 0; and.pred %p2, %p2, %first;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [box], [%in], 64, [bar], %h1;
"""
ITEMS = {
    "out of bounds": Item("PTX1110", "ld.global.u32 %r1, [%in+8192]; //@"),
    "out of bounds of shared": Item("PTX1110", "ld.shared.u32 %r1, [%box+240000]; //@"),
    "misaligned": Item("PTX1111", "ld.global.u32 %r1, [%in+2]; //@"),
    "null": Item("PTX1110", "mov.u64 %rd1, 0;\nst.u32 [%rd1], %t; //@"),
    "a shared address as global": Item("PTX1110", "cvt.u64.u32 %rd1, %box;\nld.global.u32 %r1, [%rd1]; //@"),
    "a global address as shared": Item("PTX1110", "ld.shared.u32 %r1, [%in]; //@"),
    "a write to constants": Item("PTX1113", "mov.u64 %rd1, fixed; cvta.const.u64 %rd1, %rd1;\nst.u32 [%rd1], %t; //@"),
    "shared memory after its CTA left": Item(
        "PTX0981", "mapa.shared::cluster.u32 %r2, %at, 0; setp.eq.u32 %p1, %rank, 0; st.shared.u32 [%at], %t;\n"
        f"{CLUSTER}@%p1 ret; //&\nld.shared::cluster.u32 %r3, [%r2]; //@", cluster=2),
    "a bulk copy's address": Item(
        "PTX1111", INIT.format(1) + EXPECT.format(64) + "add.u64 %in, %in, 8;\n" + LOAD + " //@"),
    "a bulk copy beyond an array": Item(
        "PTX1110", INIT.format(1) + EXPECT.format(64) + "add.u64 %in, %in, 8160;\n" + LOAD + " //@"),
    "a descriptor beyond shared memory": Item(
        "PTX1128", "mov.u64 %rd1, 68720017407;\n" + ZERO + PRODUCT, threads=128, target="sm_90a"),
    "columns that nobody allocated": Item("PTX0945", "mov.u32 %r2, 0;\n" + PUT.format("%r2", "//@"), threads=32),
    "columns beyond the allocated ones": Item(
        "PTX0945", ALLOC.format(32) + "add.u32 %r2, %r2, 32;\n" + PUT.format("%r2", "//@") + FREE.format(32),
        threads=128),
    "columns beyond the last one": Item(
        "PTX0945", ALLOC.format(512) + "add.u32 %r2, %r2, 512;\n" + PUT.format("%r2", "//@") + FREE.format(512),
        threads=128),
    "another warp's quarter": Item(
        "PTX0948", ALLOC.format(32) + PUT.format("%r1", "//@") + FREE.format(32), threads=128),
    "freed before wait::st": Item(
        "PTX0939", ALLOC.format(32) + "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%t}; //&"
        + FREE.format(32) + " //@",
        threads=128),
    "never freed": Item("PTX0947", ALLOC.format(32), threads=128),
    "freed twice": Item("PTX0947", ALLOC.format(32) + FREE.format(32) + FREE.format(32) + " //@", threads=128),
    "allocated after the permit was given up": Item(
        "PTX0946", "@%low tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" + ALLOC.format(32).replace(
            "\n", " //@\n", 1) + FREE.format(32), threads=128),
    "a larger allocation behind a smaller one": Item(
        "PTX0946", ALLOC.format(32) + "mov.u32 %r5, %r1; bar.sync 0;\n" + ALLOC.format(64).replace("\n", " //@\n", 1)
        + FREE.format(64) + "\n@%low tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 32;", threads=128),
    "a register": Item("PTX0911", "add.u32 %r1, %r2, 1; //@"),
    "shared memory": Item("PTX0910", "ld.shared.u32 %r1, [%at]; //@"),
    "tensor memory": Item(
        "PTX0912", ALLOC.format(32) + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r2]; //@\n"
        "tcgen05.wait::ld.sync.aligned; tcgen05.fence::before_thread_sync;" + FREE.format(32), threads=128),
    "strong accesses of other sizes": Item(
        "PTX0904", "@%first st.relaxed.gpu.global.u32 [%in], 1; //&\nsetp.eq.u32 %p1, %t, 40;\n"
        "@%p1 ld.relaxed.gpu.global.u16 %h1, [%in]; //@"),
    "lanes of one store": Item("PTX0907", "mov.u32 %r5, box;\nst.shared.u32 [%r5], %t; //@", threads=32),
    "read-only loads of what was written": Item(
        "PTX0905", "@%first st.global.u32 [%in], 1; //&\nbar.sync 0;\nld.global.nc.u32 %r1, [%in]; //@"),
    "source overwritten by others, no barrier": Item("PTX0942", FILL + STORE + READ + "st.shared.u32 [%at], 1; //@"),
    "the wait of another thread": Item(
        "PTX0942", FILL + STORE + READ.replace("@", "@!") + "bar.sync 0;\nst.shared.u32 [%at], 1; //@"),
    "results behind .read only": Item(
        "PTX0932", FILL + STORE + READ + "bar.sync 0; mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, %out;\n"
        "ld.global.u32 %r1, [%rd1]; //@"),
    "a load that nobody waits for": Item("PTX0982", INIT.format(1) + EXPECT.format(64) + LOAD + " //&"),
    "a store that still reads at the end": Item("PTX0983", FILL + STORE),
    "before init": Item("PTX0950", f"{ARRIVE} //@"),
    "after inval": Item(
        "PTX0950", INIT.format(64) + ARRIVE + WAIT.format(0, 0)
        + f"bar.sync 0;\n@%first mbarrier.inval.shared::cta.b64 [bar];\nbar.sync 0;\n{ARRIVE} //@"),
    "init of a live barrier": Item(
        "PTX0951", f"@%first mbarrier.init.shared::cta.b64 [bar], 64; //&\nbar.sync 0;\n{ARRIVE}\n{WAIT.format(0, 0)}"
        "bar.sync 0;\n@%first mbarrier.init.shared::cta.b64 [bar], 64; //@"),
    "inval in use": Item(
        "PTX0951", INIT.format(64) + f"@%first {ARRIVE}\n@%first mbarrier.inval.shared::cta.b64 [bar]; //@"),
    "an ordinary store to a barrier": Item("PTX0952", INIT.format(64) + "@%first st.shared.b64 [bar], 0; //@"),
    "too many arrivals": Item(
        "PTX0953", INIT.format(8) + "@%first mbarrier.arrive.shared::cta.b64 %rd1, [bar], 9; //@"),
    "too few arrivals": Item("PTX0990", INIT.format(65) + f"{ARRIVE}\n{WAIT.format(0, 0)}".replace(";\n@", "; //@\n@")),
    "noComplete that completes": Item(
        "PTX0953", INIT.format(1) + "@%first mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [bar], 1; //@"),
    "transaction count": Item(
        "PTX0954", INIT.format(2) + "mov.u32 %r1, 1048575;\n"
        "@%first mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], %r1;\n"
        "@%first mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16; //@"),
    "more bytes than expected": Item(
        "PTX0955", INIT.format(1) + EXPECT.format(32) + LOAD + " //@\n" + WAIT.format(0, 0)),
    "fewer bytes than expected": Item("PTX0990", INIT.format(1) + EXPECT.format(128) + LOAD + "\n" + WAIT.format(0, 0)),
    "a phase nobody observed": Item("PTX0957", INIT.format(32) + f"{ARRIVE} //@\n"),
    "count of init": Item("PTX0959", "mov.u32 %r1, 0x100000;\n@%first mbarrier.init.shared::cta.b64 [bar], %r1; //@"),
    "a wait on a peer's barrier": Item(
        "PTX0958", PEER + "@%first mbarrier.init.shared::cta.b64 [bar], 64; //&\n" + CLUSTER
        + "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r2], 0; //@\n" + CLUSTER, cluster=2),
    "a peer's barrier before it is visible": Item(
        "PTX0928", PEER + "@%first mbarrier.init.shared::cta.b64 [bar], 1; //&\nbarrier.cluster.arrive.relaxed;\n"
        "barrier.cluster.wait;\n@%first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2]; //@\n" + CLUSTER,
        cluster=2),
    "caller outside its mask": Item("PTX0961", "setp.lt.u32 %p1, %t, 16;\n@%p1 bar.warp.sync 0xffff0000; //@"),
    "source outside the mask": Item(
        "PTX0962", "setp.lt.u32 %p1, %t, 16;\n@%p1 shfl.sync.idx.b32 %r1, %t, 20, 31, 0xffff; //@"),
    "elect.sync": Item("PTX0966", "elect.sync %r1|%p2, 0xffff; //@"),
    "a count that is no whole warps": Item("PTX0970", "mov.u32 %r1, 48;\nbar.sync 1, %r1; //@"),
    "a number that is not there": Item("PTX0970", "mov.u32 %r1, 17;\nbar.sync %r1; //@"),
    "two counts": Item("PTX0970", "@%low bra x;\nbar.sync 1, 64; //&\nbra y;\nx: bar.arrive 1, 96; //@\ny:"),
    "red and sync": Item(
        "PTX0971", "@%low bra x;\nbar.red.popc.u32 %r1, 1, 64, %first; //&\nbra y;\nx: bar.sync 1, 64; //@\ny:"),
    "a warp twice": Item(
        "PTX0972", "@%low bra x;\nbar.sync 2, 64;\nbar.sync 1, 64;\nbra y;\nx: bar.arrive 1, 64; //&\n"
        "bar.arrive 1, 64; //@\n"
        "bar.sync 2, 64;\ny:"),
    "registers of a dec": Item(
        "PTX0965", "setmaxnreg.dec.sync.aligned.u32 240; //@", threads=128, limits=".maxnreg 128"),
    "registers of the pool": Item(
        "PTX0965", "setp.lt.u32 %p1, %t, 128; @%p1 bra p;\nsetmaxnreg.inc.sync.aligned.u32 208; //@\nbra q;\n"
        "p: setmaxnreg.dec.sync.aligned.u32 80;\nq:", threads=256, limits=".maxnreg 128"),
    "registers of a warpgroup": Item(
        "PTX0964", "setp.lt.u32 %p1, %t, 64; @%p1 bra p;\nsetmaxnreg.dec.sync.aligned.u32 80;\nbra q;\n"
        "p: setmaxnreg.dec.sync.aligned.u32 40;\nq:", threads=128, limits=".maxnreg 128"),
    "pairs without a cluster": Item(
        "PTX0967", "@%low tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [box], 32; //@"),
    "a peer of a pair that has left": Item(
        "PTX0967", "setp.eq.u32 %p1, %rank, 0; @!%p1 ret;\n" + CLUSTER.replace(";", ";", 1)
        + "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [box], 32; //@", cluster=2, threads=32),
    "two values of cta_group": Item(
        "PTX0949", ALLOC.format(32) + "bar.sync 0;\n"
        "@%low tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [box+4], 32; //@"
        + FREE.format(32), threads=128, cluster=2),
    "multicast to an absent CTA": Item("PTX0984", INIT.format(1) + EXPECT.format(64) + CLUSTER + MULTICAST, cluster=2),
    "livelock": Item("PTX0991", "l: ld.relaxed.gpu.global.u32 %r1, [%in]; //@\nsetp.eq.u32 %p1, %r1, 0; @%p1 bra l;"),
}  # fmt: skip
RIGHT = {
    "a generic address as shared": Item("", "mov.u64 %rd1, box; cvta.shared.u64 %rd1, %rd1;\nst.shared.u32 [%rd1], 1;"),
    "source after the wait and a barrier": Item("", FILL + STORE + READ + "bar.sync 0;\nst.shared.u32 [%at], 1;"),
    "results after the whole wait": Item(
        "", FILL + STORE + READ.replace(".read", "") + "bar.sync 0; mul.wide.u32 %rd1, %t, 4;\n"
        "add.u64 %rd1, %rd1, %out;\nld.global.u32 %r1, [%rd1];"),
    "init after inval": Item(
        "", INIT.format(64) + ARRIVE + WAIT.format(0, 0) + "bar.sync 0;\n"
        "@%first mbarrier.inval.shared::cta.b64 [bar];\n" + INIT.format(64) + ARRIVE + WAIT.format(1, 0)),
    "a load that one thread waits for": Item(
        "", INIT.format(1) + EXPECT.format(64) + LOAD + "\n@!%low bra e;\n" + WAIT.format(0, 0) + "e:"),
    "registers": Item(
        "", "setp.lt.u32 %p1, %t, 128; @%p1 bra p;\nsetmaxnreg.inc.sync.aligned.u32 208;\nbra q;\n"
        "p: setmaxnreg.dec.sync.aligned.u32 40;\nq:", threads=256, limits=".maxnreg 128"),
    "tensor memory": Item("", ALLOC.format(32) + PUT.format("%r2", "") + FREE.format(32), threads=128),
}  # fmt: skip
SCHEDULES = [("eager", 0), ("lazy", 0), ("random", 1), ("adversarial", 1), ("adversarial", 2)]


def run_item(item: Item, schedule: str, seed: int) -> tuple[list[str], list[Diagnostic]]:
    text = FRAME.format(target=item.target, limits=item.limits, body=item.body)
    arrays = [np.zeros(2048, np.uint32), np.zeros(2048, np.uint32)]
    launch: dict[str, Any] = {"block": item.threads, "grid": item.cluster, "cluster": item.cluster, "args": arrays}
    try:
        result = sim.run(parse(text), **launch, schedule=schedule, seed=seed, on_hazard="report")
        findings = [finding.diagnostic() for finding in result.hazards]
    except PtxError as error:
        findings = list(error.diagnostics)
    return text.splitlines(), findings


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
def test_what_is_promised_is_reported(item: Item) -> None:
    """Some schedules may hide a mistake behind one of its consequences: at most two of five."""
    hits = 0
    for schedule, seed in SCHEDULES:
        lines, findings = run_item(item, schedule, seed)
        first_line, second_line = (
            next((n for n, line in enumerate(lines, 1) if mark in line), None) for mark in ("//@", "//&")
        )
        for finding in findings:
            line = finding.origin.line if isinstance(finding.origin, Span) else 0
            names_second = second_line is None or f"<ptx>:{second_line}:" in " ".join(finding.notes)
            if finding.code == item.code and first_line in (None, line) and names_second:
                hits += 1
                break
    assert hits >= 3, [(finding.code, finding.message, finding.notes[:1]) for finding in run_item(item, "eager", 0)[1]]


@pytest.mark.parametrize("item", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_not(item: Item) -> None:
    for schedule, seed in SCHEDULES:
        assert [
            str(finding) for finding in run_item(item, schedule, seed)[1] if finding.severity is Severity.ERROR
        ] == []
