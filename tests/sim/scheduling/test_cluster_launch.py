"""Cluster launch control: running CTAs take over clusters that have not started; each CTA's work is done exactly
once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse

TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 work, .param .u64 started)
{{
.reg .b32 %x, %y, %z, %t, %r<4>; .reg .b64 %work, %started, %at; .reg .b128 %answer; .reg .pred %p, %q;
.shared .align 16 .b8 said[16]; .shared .align 8 .b64 bar;
ld.param.u64 %work, [work]; ld.param.u64 %started, [started];
mov.u32 %t, %tid.x; mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %r2, 0;
setp.ne.u32 %p, %t, 0;
@!%p mbarrier.init.shared::cta.b64 [bar], 1;
@!%p red.global.add.u32 [%started], 1;
barrier.cluster.arrive; barrier.cluster.wait;
again:
@!%p mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [bar], 16;
mov.u32 %r0, %cluster_ctarank;
or.b32 %r1, %r0, %t;
setp.ne.u32 %q, %r1, 0;
{cancel}
mad.lo.u32 %r1, %y, {width}, %x;
mad.wide.u32 %at, %r1, 4, %work;
@!%p red.global.add.u32 [%at], 1;
wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [bar], %r2;
@!%q bra wait;
xor.b32 %r2, %r2, 1;
ld.shared.b128 %answer, [said];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %q, %answer;
@!%q bra done;
{first}
mov.u32 %r0, %cluster_ctaid.x; add.u32 %x, %x, %r0;
mov.u32 %r0, %cluster_ctaid.y; add.u32 %y, %y, %r0;
fence.proxy.async.shared::cta;
barrier.cluster.arrive; barrier.cluster.wait;
bra again;
done:
barrier.cluster.arrive; barrier.cluster.wait;
ret;
}}
"""
ALONE = "@!%q clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [said], [bar];"
VECTOR = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%x, %y, _, _}, %answer;"
SINGLE = """clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %x, %answer;
clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %y, %answer;"""


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
@pytest.mark.parametrize(("cluster", "first"), [((1, 1), SINGLE), ((2, 2), VECTOR), ((4, 1), SINGLE)])
def test_every_cta_is_worked_on_once(cluster: tuple[int, int], first: str, schedule: str) -> None:
    cancel = ALONE if cluster == (1, 1) else ALONE.replace(".b128", ".multicast::cluster::all.b128")
    module = parse(TEXT.format(width=12, cancel=cancel, first=first))
    work, start_count = np.zeros((6, 12), "u4"), np.zeros(1, "u4")
    sim.run(module, grid=(12, 6), block=32, cluster=cluster, args=[work, start_count], schedule=schedule, seed=3)
    assert (work == 1).all()
    size = cluster[0] * cluster[1]
    assert size <= start_count[0] < 72
    assert start_count[0] % size == 0


def test_responses_to_several_clusters_land_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each response is recorded when it lands: with hazard checks, no cluster reads one before that."""
    monkeypatch.setattr("pyptx.sim.state.effects._APART", 1.0)
    cancel = ALONE.replace(".b128", ".multicast::cluster::all.b128")
    module = parse(TEXT.format(width=96, cancel=cancel, first=SINGLE))
    work = np.zeros((1, 96), "u4")
    sim.run(module, grid=(96, 1), block=32, cluster=(2, 1), args=[work, np.zeros(1, "u4")], schedule="random", seed=0)
    assert (work == 1).all()


def test_responses_that_no_cta_waits_for_are_pending_when_it_exits() -> None:
    cancel = ALONE.replace(".b128", ".multicast::cluster::all.b128")
    text = TEXT.format(width=4, cancel=cancel, first=VECTOR)
    wait = text[text.index("wait:") : text.index("xor.b32")]
    args = [np.zeros(16, "u4"), np.zeros(1, "u4")]
    options: dict[str, Any] = {"grid": (4, 2), "cluster": (2, 1), "block": 32, "args": args, "schedule": "lazy"}
    hazards = sim.run(parse(text.replace(wait, "")), on_hazard="report", **options).hazards
    assert {finding.rule.code: finding.count for finding in hazards} == {"PTX0930": 128, "PTX0982": 6, "PTX0981": 2}


def test_a_small_grid_starts_whole() -> None:
    module = parse(TEXT.format(width=1, cancel=ALONE, first=SINGLE))
    work, start_count = np.zeros((1, 1), "u4"), np.zeros(1, "u4")
    sim.run(module, block=32, args=[work, start_count])
    assert work[0, 0] == start_count[0] == 1
