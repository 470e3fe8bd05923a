"""Planted hangs: the report names the awaited event, the line, and what is missing; without the bug the kernel runs.

A body contains its bug; `fix` repairs it by replacing text. `// here` marks the instruction that the error points to,
`// there` the one that the notes name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pyptx
from examples.parts import operand_ring
from examples.parts.example import find_example
from pyptx import ptx, sim, smem
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.types import u8
from tests.messages import assert_message, raises
from tests.sim.kernels import assert_reported, kernel

SHARED = """.shared .align 8 .b64 full[4];
.shared .align 8 .b64 empty[4];
.shared .align 8 .b64 done;
.shared .align 128 .b8 box[1024];
.shared .u32 cell;
.global .u32 flag;
.global .u32 lock;
.global .align 16 .b8 source[1024];
"""
FUNCTIONS = """.func arrives() { mbarrier.arrive.shared::cta.b64 _, [full]; ret; }
.func waits()
{
.reg .pred p;
again: mbarrier.try_wait.parity.shared::cta.b64 p, [empty], 0; // here
@!p bra again;
ret;
}
.func spins()
{
.reg .pred p; .reg .u32 r; .local .u32 own[4];
st.volatile.local.u32 [own+8], 5;
again: ld.volatile.local.u32 r, [own+8]; // here
setp.eq.u32 p, r, 5;
@p bra again;
ret;
}
"""
LEADER = "setp.eq.u32 %p0, %t, 0;\nsetp.ge.u32 %p1, %t, 32;\nsetp.eq.u32 %p7, %t, 32;\n"
CONSUME = "wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0; // here\n@!%p2 bra wait;\n"
COPY = """@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [source], 64, [full];
"""


@dataclass(frozen=True)
class Hang:
    """A kernel that hangs: words of the message and of the notes, and its fix."""

    body: str
    fix: tuple[str, str]
    event: str
    missing: str
    notes: tuple[str, ...] = ()
    code: str = "PTX0990"
    threads: int = 64
    launch: dict[str, Any] = field(default_factory=dict[str, Any])
    target: str = "sm_90a"
    registers: int = 0


def init(count: int, *names: str) -> str:
    """Initialize barriers, `full` if none is named."""
    initialization = "".join(f"@%p0 mbarrier.init.shared::cta.b64 [{name}], {count};\n" for name in names or ("full",))
    return f"{LEADER}{initialization}bar.sync 0;\n"


def roles(producer: str, consumer: str) -> str:
    """Warp 0 produces, warp 1 consumes; both meet at the end."""
    return f"@%p1 bra consumer;\n{producer}\nbra end;\nconsumer:\n{consumer}\nend: bar.sync 0;\n"


ARRIVE = "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n"


def empty_first(signal: str) -> Hang:
    """Return a producer that waits for an empty slot with the parity of consumers, and signals like this."""
    slot = "slot: mbarrier.try_wait.parity.shared::cta.b64 %p3, [empty], 0; // here\n@!%p3 bra slot;\n"
    consumer = CONSUME.replace("// here", "") + "@%p7 mbarrier.arrive.shared::cta.b64 _, [empty];"
    return Hang(
        init(1, "full", "empty") + roles(slot + signal, consumer), ("[empty], 0", "[empty], 1"),
        "mbarrier `empty` of CTA 0, phase 0", "1 of 1 arrivals missing",
        ("circular wait: mbarrier `empty`", "→ mbarrier `full` of CTA 0, phase 0"),
    )  # fmt: skip


HANGS: dict[str, Hang] = {
    "missing arrive": Hang(
        init(1) + roles("add.u32 %r1, %r1, 1;", CONSUME), ("add.u32 %r1, %r1, 1;", ARRIVE),
        "mbarrier `full` of CTA 0, phase 0", "1 of 1 arrivals missing",
        ("no instruction of the kernel arrives at it", "CTA 0 warp 0 at `bar.sync`"),
    ),
    "count too high": Hang(
        init(2) + roles(ARRIVE, CONSUME), ("[full], 2", "[full], 1"),
        "mbarrier `full` of CTA 0, phase 0", "1 of 2 arrivals missing",
        ("declared: `mbarrier.init", "was last executed by CTA 0 warp 0 lane 0"),
    ),
    "one lane arrives for all": Hang(
        init(32) + roles(ARRIVE, CONSUME), (ARRIVE, ARRIVE.removeprefix("@%p0 ")),
        "mbarrier `full`", "31 of 32 arrivals missing",
    ),
    "wrong parity": Hang(
        init(1) + roles(ARRIVE, CONSUME.replace("// here", "")
                        + "again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 1; // here\n@!%p2 bra again;"),
        ("[full], 1; // here", "[full], 0;"),
        "mbarrier `full` of CTA 0, phase 1", "1 of 1 arrivals missing, phase 0 completed; phase 1 has not begun",
    ),
    "producer starts with the parity of consumers": empty_first(ARRIVE),
    "producer that would arrive in a function": empty_first("@%p0 call arrives;\n"),
    "producer that would arrive behind a branch table": empty_first(
        "labels: .branchtargets skip, signal;\nmov.u32 %r1, 1;\nbrx.idx %r1, labels;\nskip: trap;\nsignal: " + ARRIVE
    ),
    "producer that waits in a function": Hang(
        init(1, "full", "empty") + roles("call waits;\n" + ARRIVE, CONSUME.replace("// here", "")
                                         + "@%p7 mbarrier.arrive.shared::cta.b64 _, [empty];"),
        ("call waits;", ""), "mbarrier `empty` of CTA 0, phase 0", "1 of 1 arrivals missing",
        ("circular wait: mbarrier `empty`", "→ mbarrier `full` of CTA 0, phase 0"),
    ),
    "too many bytes expected": Hang(
        init(1) + roles("@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;\n" + COPY, CONSUME),
        ("[full], 128", "[full], 64"), "mbarrier `full` of CTA 0, phase 0", "64 bytes arrived, 128 expected",
        ("cp.async.bulk.shared::cluster.global",),
    ),
    "too few bytes expected": Hang(
        init(1) + roles("@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 32;\n" + COPY, CONSUME),
        ("[full], 32", "[full], 64"), "mbarrier `full` of CTA 0, phase 0", "64 bytes arrived, 32 expected",
    ),
    "nothing copied": Hang(
        init(1) + roles("@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 64;\n"
                        + COPY.replace("%p0", "%p1").replace(";", "; // there"),
                        CONSUME),
        ("@%p1 cp", "@%p0 cp"), "mbarrier `full` of CTA 0, phase 0", "0 bytes arrived, 64 expected",
        ("complete_tx::bytes` at <ptx>:{there}:6 was never executed on it",),
    ),
    "bytes for the neighbor": Hang(
        init(1, "full", "full+8") + roles(
            "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 64;\n" + COPY.replace("[full]", "[full+8]"),
            CONSUME),
        ("64, [full+8]", "64, [full]"), "mbarrier `full` of CTA 0", "0 bytes arrived, 64 expected",
    ),
    "expected on the neighbor": Hang(
        init(1, "full", "full+8") + roles(
            "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full+8], 64;\n" + COPY, CONSUME),
        ("_, [full+8], 64", "_, [full], 64"), "mbarrier `full` of CTA 0",
        "1 of 1 arrivals missing, 64 bytes arrived, 0 expected",
    ),
    "producer exited": Hang(
        init(1) + "@%p1 bra consumer;\n@%p0 ret; // there\n" + ARRIVE + "ret;\nconsumer:\n" + CONSUME,
        ("@%p0 ret;", "@%p1 ret;"), "mbarrier `full` of CTA 0, phase 0", "1 of 1 arrivals missing",
        ("CTA 0 warp 0 lane 0 exited after `ret` at <ptx>:{there}:6", "was never executed on it"),
    ),
    "producer guarded off": Hang(
        init(1) + "setp.eq.u32 %p3, %t, 99;\n" + roles(ARRIVE.replace("%p0", "%p3"), CONSUME), ("99", "0"),
        "mbarrier `full` of CTA 0", "1 of 1 arrivals missing", ("was never executed on it",),
    ),
    "wrong barrier": Hang(
        init(1, "full", "done") + roles(ARRIVE.replace("full", "done"), CONSUME), ("_, [done]", "_, [full]"),
        "mbarrier `full` of CTA 0", "1 of 1 arrivals missing", ("no instruction of the kernel arrives at it",),
    ),
    "consumer loop too long": Hang(
        init(2) + roles(
            "mov.u32 %r1, 0;\nmore: " + ARRIVE + "ack: mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], %r1;\n"
            "@!%p3 bra ack;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p3, %r1, 3;\n@%p3 bra more;",
            "mov.u32 %r2, 0;\nround: @%p7 mbarrier.arrive.shared::cta.b64 _, [full];\n"
            "next: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], %r2; // here\n@!%p2 bra next;\n"
            "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 4;\n@%p2 bra round;"),
        ("%r2, 4", "%r2, 3"), "mbarrier `full` of CTA 0, phase 3", "1 of 2 arrivals missing",
        ("was last executed by CTA 0 warp 0 lane 0", "CTA 0 warp 0 at `bar.sync`"),
    ),
    "ring of another length": Hang(
        init(1, "full", "full+8", "full+16") + roles(
            "mov.u32 %r1, full;\nmov.u32 %r3, 0;\n"
            "fill: @%p0 mbarrier.arrive.shared::cta.b64 _, [%r1];\nadd.u32 %r1, %r1, 8;\nadd.u32 %r3, %r3, 1;\n"
            "setp.lt.u32 %p3, %r3, 2;\n@%p3 bra fill;",
            "mov.u32 %r2, full;\nmov.u32 %r4, 0;\n"
            "wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; // here\n@!%p2 bra wait;\n"
            "add.u32 %r2, %r2, 8;\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p3, %r4, 3;\n@%p3 bra wait;"),
        ("%r3, 2;", "%r3, 3;"), "mbarrier `full`+16 of CTA 0, phase 0", "1 of 1 arrivals missing",
    ),
    "slot never released": Hang(
        init(1, "full", "empty") + roles(
            "mov.u32 %r1, 1;\nslot: mbarrier.try_wait.parity.shared::cta.b64 %p3, [empty], %r1; // here\n"
            "@!%p3 bra slot;\n" + ARRIVE + "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p3, %r1, 3;\n@%p3 bra slot;",
            "mov.u32 %r2, 0;\nnext: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], %r2;\n@!%p2 bra next;\n"
            "// release\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 2;\n@%p2 bra next;"),
        ("// release", "@%p7 mbarrier.arrive.shared::cta.b64 _, [empty];"), "mbarrier `empty` of CTA 0, phase 0",
        "1 of 1 arrivals missing", ("no instruction of the kernel arrives at it", "mbarrier `full` of CTA 0, phase 1"),
    ),
    "circular mbarriers": Hang(
        init(1, "full", "empty") + roles(
            "one: mbarrier.try_wait.parity.shared::cta.b64 %p3, [empty], 0; // here\n@!%p3 bra one;\n" + ARRIVE,
            "two: mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;\n@!%p3 bra two;\n"
            "@%p7 mbarrier.arrive.shared::cta.b64 _, [empty];"),
        ("@%p1 bra consumer;", "@%p7 mbarrier.arrive.shared::cta.b64 _, [empty];\n@%p1 bra consumer;"),
        "mbarrier `empty` of CTA 0", "1 of 1 arrivals missing", ("circular wait",),
    ),
    "stale token": Hang(
        init(2) + "@%p0 mbarrier.arrive.shared::cta.b64 %rd5, [full];\n@!%p0 ret;\n"
        "wait: mbarrier.try_wait.shared::cta.b64 %p2, [full], %rd5; // here\n@!%p2 bra wait;",
        ("[full], 2", "[full], 1"), "mbarrier `full` of CTA 0, phase 0", "1 of 2 arrivals missing",
    ),
    "half of the copies tell": Hang(
        init(64) + roles("cp.async.ca.shared.global [box], [source], 16;\n"
                         "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];", CONSUME),
        ("[full], 64", "[full], 32"), "mbarrier `full` of CTA 0", "32 of 64 arrivals missing",
        ("`cp.async.mbarrier.arrive.noinc.shared::cta.b64` at",),
    ),
    "copies that count their own arrivals": Hang(
        init(1) + roles("cp.async.ca.shared.global [box], [source], 16;\n"
                        "cp.async.mbarrier.arrive.shared::cta.b64 [full];\n// arrive", CONSUME),
        ("// arrive", ARRIVE), "mbarrier `full` of CTA 0, phase 0", "phase 0: 1 of 1 arrivals missing",
        ("`cp.async.mbarrier.arrive.shared::cta.b64` at",),
    ),
    "commit is missing": Hang(
        init(1, "done") + roles("// commit", CONSUME.replace("full", "done")),
        ("// commit", "@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];"),
        "mbarrier `done` of CTA 0", "1 of 1 arrivals missing", target="sm_100a",
    ),
    "arrive on another CTA's barrier": Hang(
        init(1) + "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
        "mov.u32 %r1, full;\nmov.u32 %r2, %cluster_ctarank;\nsetp.eq.and.u32 %p3, %r2, 0, %p0;\n"
        "mapa.shared::cluster.u32 %r3, %r1, 0;\n"
        "@%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\n"
        "setp.eq.u32 %p4, %r2, 0;\n@%p4 bra end;\n" + CONSUME + "end: barrier.cluster.arrive.aligned;\n"
        "barrier.cluster.wait.aligned;",
        ("%r1, 0;", "%r1, 1;"), "mbarrier `full` of CTA 1, phase 0", "1 of 1 arrivals missing",
        ("CTA 0 warp 0, warp 1 at `barrier.cluster.wait.aligned`",),
        launch={"grid": 2, "cluster": 2},
    ),
    "bar ids differ": Hang(
        LEADER + "@%p1 bra other;\nbar.sync 1, 64; // here\nbra end;\nother: bar.sync 2, 64;\nend:",
        ("bar.sync 2", "bar.sync 1"), "barrier 1 of CTA 0", "1 of 2 warps have arrived",
        ("barrier 2 of CTA 0", "CTA 0 warp 1 at `bar.sync`"),
    ),
    "bar count too high": Hang(
        "bar.sync 1, 96; // here", ("96", "64"), "barrier 1 of CTA 0",
        "2 of 3 warps have arrived, but only 2 warps are live",
    ),
    "bar count too low": Hang(
        LEADER + "@%p1 bar.arrive 1, 64;\n@%p1 bra end;\nbar.sync 1, 96; // here\nend:", ("96", "64"),
        "barrier 1 of CTA 0", "2 of 3 warps have arrived", ("CTA 0 warp 1 exited after",),
    ),
    "nobody arrives": Hang(
        LEADER + "@%p1 bra end;\nbar.sync 3, 64; // here\nend:", ("end:", "end: @%p1 bar.arrive 3, 64;"),
        "barrier 3 of CTA 0", "1 of 2 warps have arrived", ("CTA 0 warp 1 exited after `ret`",),
    ),
    "bars in another order": Hang(
        LEADER + "@%p1 bra other;\nbar.sync 1, 64; // here\nbar.sync 2, 64;\nbra end;\n"
        "other: bar.sync 2, 64;\nbar.sync 1, 64;\nend:",
        ("other: bar.sync 2, 64;\nbar.sync 1, 64;", "other: bar.sync 1, 64;\nbar.sync 2, 64;"),
        "barrier 1 of CTA 0", "1 of 2 warps have arrived",
        ("circular wait: barrier 1 of CTA 0 → barrier 2 of CTA 0 → barrier 1 of CTA 0",),
    ),
    "half a warp at a bar": Hang(
        "setp.ge.u32 %p0, %t, 16;\n@%p0 bra low;\nbar.warp.sync 0xffffffff; // here\nbra end;\n"
        "low: bar.sync 1, 32;\nend:",
        ("low: bar.sync 1, 32;", "low: bar.warp.sync 0xffffffff;"), "the warp at `bar.warp.sync`",
        "16 lanes have not arrived: CTA 0 warp 0 (16 lanes)", threads=32,
    ),
    "shuffle with absent lanes": Hang(
        "setp.ge.u32 %p0, %t, 24;\n@%p0 bra low;\nshfl.sync.idx.b32 %r1, %t, 0, 31, 0xffffffff; // here\nbra end;\n"
        "low: bar.sync 1, 32;\nend:",
        ("0xffffffff; // here\nbra end;\nlow: bar.sync 1, 32;", "0x00ffffff;\nbra end;\nlow: add.u32 %r1, %r1, 1;"),
        "the warp at `shfl.sync.idx.b32`", "8 lanes have not arrived", threads=32,
    ),
    "cluster barrier of one half": Hang(
        LEADER + "@%p1 bra other;\nbarrier.cluster.arrive;\nbarrier.cluster.wait; // here\nbar.sync 1, 64;\nbra end;\n"
        "other: bar.sync 1, 64;\nend:",
        ("other:", "other: barrier.cluster.arrive;\nbarrier.cluster.wait;\n"), "cluster barrier of CTAs 0, 1",
        "64 threads have not arrived: CTA 0 warp 1, CTA 1 warp 1", launch={"grid": 2, "cluster": 2},
    ),
    "a CTA leaves the rounds": Hang(
        LEADER + "@%p0 mbarrier.init.shared::cta.b64 [full], 1;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
        "mov.u32 %r2, %cluster_ctarank;\nsetp.eq.u32 %p4, %r2, 1;\n@%p4 bra wait;\n"
        "barrier.cluster.arrive;\nbarrier.cluster.wait; // here\nbra end;\n"
        + CONSUME.replace("// here", "") + "end:",
        ("@%p4 bra wait;", "@%p4 bra end;"), "cluster barrier of CTAs 0, 1",
        "64 threads have not arrived: CTA 1 warp 0, warp 1",
        ("mbarrier `full` of CTA 1", "CTA 1 warp 0, warp 1 at `mbarrier.try_wait"),
        launch={"grid": 2, "cluster": 2},
    ),
    "registers of nobody": Hang(
        LEADER + "setp.ge.u32 %p4, %t, 128;\n@%p4 bra more;\n// give back\nbar.sync 1, 256;\nbra end;\n"
        "more: setmaxnreg.inc.sync.aligned.u32 168; // here\nbar.sync 1, 256;\nend:",
        ("// give back", "setmaxnreg.dec.sync.aligned.u32 40;"), "registers of CTA 0",
        "each warp that requests 168 per thread needs 2048 more, but 0 are free",
        ("CTA 0 warp 0, warp 1, warp 2, warp 3 at `bar.sync`",), threads=256, registers=104,
    ),
    "too few registers given back": Hang(
        LEADER + "setp.ge.u32 %p4, %t, 128;\n@%p4 bra more;\nsetmaxnreg.dec.sync.aligned.u32 80;\n"
        "bar.sync 1, 256;\nbra end;\n"
        "more: setmaxnreg.inc.sync.aligned.u32 160; // here\nbar.sync 1, 256;\nend:",
        ("aligned.u32 80", "aligned.u32 48"), "registers of CTA 0",
        "each warp that requests 160 per thread needs 1792 more, but 1280 are free", (), threads=256, registers=104,
    ),
    "registers that one warpgroup requests": Hang(
        LEADER + "setp.ge.u32 %p4, %t, 128;\n@!%p4 setmaxnreg.dec.sync.aligned.u32 80;\n"
        "@%p4 setmaxnreg.inc.sync.aligned.u32 160; // here\nbar.sync 1, 256;",
        ("aligned.u32 80", "aligned.u32 48"), "registers of CTA 0",
        "each warp that requests 160 per thread needs 1792 more, but 1280 are free",
        ("barrier 1 of CTA 0: 5 of 8 warps have arrived",), threads=256, registers=104,
    ),
    "local memory of a function": Hang(
        "call spins;", ("call spins;", ""), "poll", "it holds 5", (), "PTX0991",
    ),
    "flag that nobody sets": Hang(
        "poll: ld.acquire.gpu.global.u32 %r1, [flag]; // here\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra poll;",
        ("poll:", "st.release.gpu.global.u32 [flag], 1;\npoll:"), "poll `flag`",
        "it holds 0, and no thread that can still",
        ("CTA 1 warp 0, warp 1 at `ld.acquire.gpu.global.u32`",), "PTX0991", launch={"grid": 2},
    ),
    "flag of another CTA": Hang(
        "mov.u32 %r2, %ctaid.x;\nld.param.u64 %rd1, [out];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra set;\n"
        "poll: ld.acquire.gpu.global.u32 %r1, [%rd1]; // here\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra poll;\nbra end;\n"
        "set: st.release.gpu.global.u32 [%rd1+4], 1; // there\nend:",
        ("%rd1+4", "%rd1"), "poll `out`", "it holds 0, and no thread that can still",
        ("`st.release.gpu.global.u32` at <ptx>:{there}:6 may write it", "CTA 0 warp 0, warp 1 exited"), "PTX0991",
        launch={"grid": 2},
    ),
    "flag of the last CTA that is searched": Hang(
        "mov.u32 %r2, %ctaid.x;\nld.param.u64 %rd1, [out];\nsetp.eq.u32 %p1, %r2, 31;\n@%p1 bra set;\n"
        "poll: ld.acquire.gpu.global.u32 %r1, [%rd1]; // here\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra poll;\nbra end;\n"
        "set: st.release.gpu.global.u32 [%rd1+4], 1; // there\nend:",
        ("%rd1+4", "%rd1"), "poll `out`", "it holds 0, and no thread that can still",
        ("`st.release.gpu.global.u32` at <ptx>:{there}:6 may write it", "CTA 31 warp 0, warp 1 exited"), "PTX0991",
        launch={"grid": 32},
    ),
    "flag in shared memory": Hang(
        LEADER + roles("@%p0 st.volatile.shared.u32 [cell], 1;",
                       "poll: ld.volatile.shared.u32 %r1, [cell]; // here\nsetp.ne.u32 %p2, %r1, 2;\n@%p2 bra poll;"),
        ("[cell], 1", "[cell], 2"), "polls `cell`", "it holds 1, and no thread that can still",
        ("CTA 0 warp 0 at `bar.sync`",), "PTX0991",
    ),
    "lock not given back": Hang(
        "try: atom.global.cas.b32 %r1, [lock], 0, 1; // here\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra try;\n// give back",
        ("// give back", "atom.global.exch.b32 %r1, [lock], 0;"), "poll `lock`", "it holds 1", (), "PTX0991",
        launch={"grid": 3},
    ),
    "test_wait for ever": Hang(
        init(1) + roles("// arrive", CONSUME.replace("try_wait", "test_wait")), ("// arrive", ARRIVE),
        "polls mbarrier `full` of CTA 0, phase 0", "1 of 1 arrivals missing", (), "PTX0991",
    ),
    "loop without an end": Hang(
        "mov.u32 %r1, 5;\nagain: setp.ne.u32 %p0, %r1, 4; // here\n@%p0 bra again;", ("%r1, 4", "%r1, 5"),
        "CTA 0 warp 0, warp 1 run forever", "the loop at lines 20 to 21 never ends", (), "PTX0991",
    ),
    "wait before init": Hang(
        LEADER + CONSUME.replace("], 0;", "], 1;"),
        ("wait:", "@%p0 mbarrier.init.shared::cta.b64 [full], 1;\nbar.sync 0;\nwait:"),
        "mbarrier.try_wait.parity", "no mbarrier was initialized there", (), "PTX1126",
    ),
}  # fmt: skip


def text_of(case: Hang, body: str) -> str:
    functions = FUNCTIONS if "call " in body else ""
    text = kernel(body, module=SHARED + functions)
    if case.registers:
        text = text.replace("\n{\n.reg", f"\n.maxnreg {case.registers}\n{{\n.reg", 1)
    return text.replace("sm_90a", case.target).replace(".version 8.7", ".version 9.1")


def launch(case: Hang, body: str, **options: Any) -> sim.Result:
    out = np.zeros(4 * case.threads, np.int32)
    options = {"check": "none", **case.launch, **options}
    return sim.run(parse(text_of(case, body)), block=case.threads, args=(out,), **options)


@pytest.mark.parametrize("schedule", ["eager", "adversarial"])
@pytest.mark.parametrize("name", HANGS)
def test_a_hang_is_explained(name: str, schedule: str) -> None:
    case = HANGS[name]
    with raises(PtxError) as excinfo:
        launch(case, case.body, schedule=schedule)
    if case.code != "PTX1126":
        assert isinstance(excinfo.value, sim.Hang)
        assert json.loads(json.dumps(excinfo.value.report.as_json()))["nodes"] or "forever" in case.event
    (finding,) = excinfo.value.diagnostics
    assert finding.code == case.code, str(excinfo.value)
    assert case.event in finding.message
    assert case.missing in finding.message
    lines = text_of(case, case.body).splitlines()
    assert "// here" in lines[finding.line - 1], str(excinfo.value)
    second_line = next((n for n, text in enumerate(lines, 1) if "// there" in text), 0)
    text = f"{excinfo.value}\n{excinfo.value.report if isinstance(excinfo.value, sim.Hang) else ''}"
    for words in case.notes:
        assert words.format(there=second_line) in text
    if schedule == "eager":
        assert_message("hangs", name, text)
    assert len(finding.details) <= 19, finding.details


RING = HANGS["producer starts with the parity of consumers"]


def test_a_hang_begins_with_the_circle_and_the_remedy() -> None:
    with raises(sim.Hang) as excinfo:
        launch(RING, RING.body)
    first, *tail = str(excinfo.value).splitlines()
    assert "deadlock: circular wait: mbarrier `" in first
    (help,) = (index for index, row in enumerate(tail) if row.startswith("  help: "))
    below = [row.split(":")[0].split(",")[0] for row in tail[help + 1 :]]
    assert below == [
        "  mbarrier `empty` of CTA 0", "    waiting", "    signaled by", "  mbarrier `full` of CTA 0", "    waiting",
        "    signaled by",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "remedy", "signal"),
    [
        ("circular mbarriers", "let one of these waits pass first: a consumer's first wait",
         ("mbarrier.arrive.shared::cta.b64 _, [empty];", "after the wait of CTA 0 warp 1 for mbarrier `full` of")),
        ("bars in another order", "let all warps reach these barriers in one order",
         ("bar.sync 1, 64;\nend:", "after the wait of CTA 0 warp 1 for barrier 2 of CTA 0")),
    ],
)  # fmt: skip
def test_a_circle_says_which_signal_is_behind_which_wait(name: str, remedy: str, signal: tuple[str, str]) -> None:
    case = HANGS[name]
    with raises(sim.Hang) as excinfo:
        launch(case, case.body)
    (finding,) = excinfo.value.diagnostics
    assert (finding.help or "").startswith(remedy)
    text = text_of(case, case.body)
    line = text.count("\n", 0, text.rindex(signal[0])) + 1
    (row, *_) = (row for row in finding.details if "signaled by" in row)
    assert f"at <ptx>:{line}:" in row
    assert signal[1] in row


def test_barriers_in_dynamic_memory_are_told_apart() -> None:
    @pyptx.kernel(arch="sm_90a", raw_params=[("u64", "unused")], grid=(1,), block=(64, 1, 1))
    def releases_nothing() -> None:
        smem.alloc(u8, 65536)
        full, empty, done = (smem.mbarrier(2, name=name) for name in ("full", "empty", "done"))
        slot = ptx.pipeline(2)
        with ptx.if_(ptx.special.tid.x() == 0):
            for barrier in (*full, *empty, *done):
                barrier.init(32)
        ptx.bar.sync(0)
        with ptx.if_(ptx.special.tid.x() < 32):
            empty[slot.stage].wait(slot.phase)
            full[slot.stage].arrive()
        with ptx.else_():
            full[slot.stage].wait(slot.phase)
            done[slot.stage].arrive()

    with raises(sim.Hang) as excinfo:
        releases_nothing.simulate(unused=0)
    assert "circular" not in str(excinfo.value)
    assert excinfo.value.report.guilty is not None
    assert excinfo.value.report.guilty.history == ["no instruction of the kernel arrives at it"]


def test_a_forgotten_init_is_one_finding() -> None:
    body = "mbarrier.arrive.shared::cta.b64 _, [full];"
    for check, code in (("all", "PTX0950"), ("mbarriers", "PTX0950"), ("races", "PTX1126"), ("none", "PTX1126")):
        with raises(PtxError) as excinfo:
            sim.run(parse(kernel(body, module=SHARED)), args=[np.zeros(1, np.int32)], check=check)
        assert [d.code for d in excinfo.value.diagnostics] == [code]


def test_warps_that_cannot_reach_a_barrier_are_not_named_at_it() -> None:
    with raises(sim.Hang) as excinfo:
        launch(HANGS["missing arrive"], HANGS["missing arrive"].body)
    node = excinfo.value.report.guilty
    assert node is not None
    assert node.what == "mbarrier `full` of CTA 0, phase 0"
    assert node.could == []


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_count_of_init_that_is_too_low_is_what_the_error_names(schedule: str) -> None:
    arrives = "setp.lt.u32 %p3, %t, 2;\n@%p3 mbarrier.arrive.shared::cta.b64 _, [full];\n"
    waits = "again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0; // here\n@!%p2 bra again;\n"
    text = kernel(init(1) + roles(arrives, "nanosleep.u32 9;\nbar.sync 1, 32;\n" + waits), module=SHARED)
    with raises(sim.Hang) as excinfo:
        sim.run(parse(text), block=64, args=[np.zeros(64, np.int32)], schedule=schedule)
    first = excinfo.value.diagnostics[0]
    assert first.code == "PTX0990"
    assert "`mbarrier.init.shared::cta.b64` at" in first.notes[0]
    assert "correct the count of `mbarrier.init`" in str(first.help)


def test_a_producer_that_runs_ahead_is_what_the_error_names() -> None:
    waits = "nanosleep.u32 9;\nagain: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;\n@!%p2 bra again;\n"
    text = kernel(init(1) + roles(ARRIVE + ARRIVE, waits), module=SHARED)
    with raises(sim.Hang) as excinfo:
        sim.run(parse(text), block=64, args=[np.zeros(64, np.int32)], schedule="eager")
    hang, phase = excinfo.value.diagnostics
    assert (hang.code, phase.code) == ("PTX0990", "PTX0957")
    assert "let the arriving threads wait for the waiting ones" in str(hang.help)


def test_pieces_of_dynamic_shared_memory_have_the_names_that_the_caller_gives() -> None:
    body = """mov.u32 %r1, smem;
@%p0 mbarrier.init.shared::cta.b64 [%r1+520], 1;
bar.sync 0;
wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1+520], 0;
@!%p2 bra wait;"""
    text = kernel("setp.eq.u32 %p0, %t, 0;\n" + body, module=".extern .shared .align 128 .b8 smem[];")
    messages: list[str] = []
    for parts in (None, {"tile": 0, "full": 512}):
        with raises(PtxError) as excinfo:
            sim.run(parse(text), block=32, args=(np.zeros(32, np.int32),), shared=1024, check="none", parts=parts)
        messages.append(excinfo.value.diagnostics[0].message)
    assert "mbarrier `smem`+520 of CTA 0" in messages[0]
    assert "mbarrier `full`+8 of CTA 0" in messages[1]


def test_an_mbarrier_below_every_name_has_its_address() -> None:
    body = "mbarrier.init.shared::cta.b64 [%r1], 2;\nwait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n"
    with raises(sim.Hang) as caught:
        sim.run(parse(kernel(f"mov.u32 %r1, 1024;\n{body}@!%p2 bra wait;")), args=(np.zeros(1, np.int32),), shared=64)
    assert "mbarrier shared 0x400 of CTA 0, phase 0: 2 of 2 arrivals missing" in caught.value.diagnostics[0].message


def test_a_hang_after_phases_that_nobody_saw_names_them_too() -> None:
    body = """@%p0 mbarrier.init.shared::cta.b64 [full], 4;
bar.sync 0;
mbarrier.arrive.shared::cta.b64 _, [full];
wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
@!%p2 bra wait;"""
    text = kernel("setp.eq.u32 %p0, %t, 0;\n" + body, module=".shared .align 8 .b64 full;")
    with raises(sim.Hang) as excinfo:
        sim.run(parse(text), block=32, args=(np.zeros(32, np.int32),))
    codes = [finding.code for finding in excinfo.value.diagnostics]
    assert codes[0] == "PTX0990"
    assert set(codes[1:]) == {"PTX0957"}
    assert "arrive on `full` of CTA 0" in excinfo.value.diagnostics[1].message


def test_a_kernel_in_python_names_its_barriers_and_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    example = find_example("hopper/cluster_gemm")
    count_bytes = operand_ring.count_bytes

    def count_too_many(ring: operand_ring.OperandRing) -> int:
        return count_bytes(ring) + 16

    monkeypatch.setattr(operand_ring, "count_bytes", count_too_many)
    a = np.zeros((256, 128), ml_dtypes.bfloat16)
    with raises(PtxError) as excinfo:
        example.make().simulate(a, a, check="none")
    (finding,) = excinfo.value.diagnostics
    assert finding.code == "PTX0990"
    assert "mbarrier `full` of CTA 0, phase 0: 49152 bytes arrived, 49168 expected" in finding.message
    assert finding.origin is not None
    assert str(finding.origin.file).endswith("operand_ring.py")
    assert "ptx.mbarrier.wait(ring.full[" in Path(str(finding.origin.file)).read_text().splitlines()[finding.line - 1]


@pytest.mark.parametrize("name", HANGS)
def test_without_the_bug_it_runs(name: str) -> None:
    case = HANGS[name]
    wrong, right = case.fix
    assert wrong in case.body
    for seed in range(3):
        launch(case, case.body.replace(wrong, right, 1), schedule="random" if seed else "eager", seed=seed)


@pytest.mark.parametrize(("kind", "value"), [("u8", 8), ("b16", 0x708), ("s32", 0x5060708), ("u64", 0x102030405060708)])
def test_a_polled_value_has_the_width_of_the_load(kind: str, value: int) -> None:
    register = {"u64": "%rd1", "b16": "%h1"}.get(kind, "%r1")
    body = f"""st.shared.u64 [word], 0x0102030405060708;
poll: ld.volatile.shared.{kind} {register}, [word]; setp.ne.u32 %p0, %t, 1; @%p0 bra poll;"""
    text = kernel(body, module=".shared .align 8 .b64 word;\n")
    assert_reported(text, "PTX0991", f"polls `word`: it holds {value}, and no thread", args=[np.zeros(1, np.uint32)])


@pytest.mark.parametrize("load", ["ld.u64.volatile.shared %rd1, [word]", "atom.shared.b64.cas %rd1, [word], 1, 1"])
def test_a_polled_value_has_its_width_with_modifiers_in_any_order(load: str) -> None:
    body = f"st.shared.u64 [word], 0x0102030405060708;\npoll: {load}; setp.ne.u32 %p0, %t, 1; @%p0 bra poll;"
    text = kernel(body, module=".shared .align 8 .b64 word;\n")
    words = ("PTX0991", "polls `word`: it holds 72623859790382856, and")
    assert_reported(text, *words, args=[np.zeros(1, np.uint32)], check="none")
