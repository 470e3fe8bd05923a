"""Barriers of CTAs that complete apart."""

from __future__ import annotations

import numpy as np

from pyptx import sim
from pyptx.parser import parse
from tests.sim.kernels import SCHEDULES, kernel


def test_threads_counted_in_one_cta_remain_counted_while_another_completes() -> None:
    """Odd lanes have left. The barrier of CTA 1 needs those of both warps; its second warp waits for CTA 0."""
    body = """and.b32 %r1, %t, 1; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %t;
@%p1 exit;
setp.eq.u32 %p2, %r2, 0; setp.lt.or.u32 %p3, %t, 32, %p2; mov.u64 %rd1, flag;
@%p3 bra meet;
poll: ld.acquire.gpu.global.u32 %r4, [%rd1]; setp.eq.u32 %p4, %r4, 0;
@%p4 bra poll;
meet: bar.sync 1, 64;
setp.eq.and.u32 %p5, %t, 0, %p2;
@%p5 st.release.gpu.global.u32 [%rd1], 1;
mul.wide.u32 %rd2, %r2, 256; add.u64 %o, %o, %rd2; add.u32 %r3, %r3, 1; st.global.u32 [%o], %r3;"""
    for schedule, seed in SCHEDULES:
        out = np.zeros(128, np.uint32)
        sim.run(
            parse(kernel(body, module=".global .u32 flag = 0;")),
            grid=2,
            block=64,
            args=[out],
            schedule=schedule,
            seed=seed,
            max_steps=100_000,
        )
        assert out.tolist() == [0 if n % 2 else n + 1 for n in range(128)]
