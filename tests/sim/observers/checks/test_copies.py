"""Arrivals at mbarriers that wait for copies: what a waiting thread then knows."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.sim.kernels import kernel

BODY = """.shared .align 8 .b64 bar; .shared .b32 box;
setp.eq.u32 %p0, %t, 0; setp.eq.u32 %p1, %t, 32;
@%p0 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0;
@!%p0 bra others;
cp.async.ca.shared.global [box], [%o], 4;
{arrive}
others:
@!%p1 ret;
again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra again;
ld.shared.b32 %r0, [box]; st.global.b32 [%o], %r0;"""
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [bar];"
ARRIVALS = {
    "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];": True,
    "cp.async.mbarrier.arrive.shared::cta.b64 [bar]; " + ARRIVE: True,
    ARRIVE: False,
}


@pytest.mark.parametrize("schedule", ["eager", "lazy", "adversarial"])
@pytest.mark.parametrize(("arrive", "covers"), ARRIVALS.items())
def test_an_arrival_after_copies_orders_them_before_a_waiting_thread(arrive: str, covers: bool, schedule: str) -> None:
    array = np.arange(7, 71, dtype=np.uint32)
    module = parse(kernel(BODY.format(arrive=arrive)))
    hazards = sim.run(module, block=64, args=[array], on_hazard="report", schedule=schedule).hazards
    assert "PTX0931" not in [finding.rule.code for finding in hazards] if covers else hazards[0].rule.code == "PTX0931"
    assert array[32] == 7 or not covers
