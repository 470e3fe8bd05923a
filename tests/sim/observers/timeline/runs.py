"""Small runs whose timelines can be computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.observers.timeline import Timeline

HEAD = """\
.version 8.6
.target sm_90a
.address_size 64
"""

HAND_OVER = f"""{HEAD}.visible .entry k(.param .u64 out)
{{
    .reg .b32 %t;
    .reg .pred %p<3>;
    .shared .align 8 .b64 full[2];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p0, %t, 0;
    @%p0 mbarrier.init.shared::cta.b64 [full+8], 32;
    bar.sync 0;
    setp.ge.u32 %p1, %t, 32;
    @%p1 bra consume;
    add.u32 %t, %t, 1;
    add.u32 %t, %t, 1;
    add.u32 %t, %t, 1;
    mbarrier.arrive.shared::cta.b64 _, [full+8];
    ret;
consume:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [full+8], 0;
    @!%p2 bra consume;
    ret;
}}
"""
"""Warp 0 arrives after three additions, at its steps 6 to 9; warp 1 waits from its step 6 on."""

BULK = f"""{HEAD}.visible .entry k(.param .u64 from)
{{
    .reg .b32 %t, %a, %b;
    .reg .b64 %g;
    .reg .pred %p<3>;
    .shared .align 8 .b64 bar;
    .shared .align 128 .b8 box[1024];
    mov.u32 %t, %tid.x;
    mov.u32 %a, box;
    mov.u32 %b, bar;
    ld.param.u64 %g, [from];
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra meet;
    mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%g], 512, [%b];
meet:
    bar.sync 0;
again:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
    @!%p1 bra again;
    mad.lo.u32 %b, %t, 8, %a;
    st.shared.v2.b32 [%b+512], {{%t, %t}};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p0 ret;
    cp.async.bulk.global.shared::cta.bulk_group [%g], [%a+512], 512;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}}
"""


def timeline(text: str, threads: int, args: Any = None, **options: Any) -> Timeline:
    """Run a module's entry and return its timeline."""
    source = [np.zeros(256, np.uint32)] if args is None else args
    timeline = sim.run(parse(text), block=threads, args=source, timeline=True, **options).timeline
    assert timeline is not None
    return timeline


def find_track(record: Timeline, cta: int, name: str) -> int:
    """Return the number of a track."""
    return next(index for index, t in enumerate(record.recorded.tracks) if (t.cta, t.name) == (cta, name))
