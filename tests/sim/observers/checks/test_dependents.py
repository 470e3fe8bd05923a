"""`check="dependents"`: global memory that a kernel accesses before its `griddepcontrol.wait`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from tests.sim.kernels import HEAD

KERNEL = """.visible .entry k(.param .u64 x, .param .u64 y)
{
.reg .b32 %t, %r<4>, %at; .reg .b64 %x, %y, %a; .reg .pred %p, %q;
.shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;
mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32; setp.eq.u32 %q, %t, 0;
ld.param.u64 %a, [x]; mad.wide.u32 %x, %t, 4, %a; ld.param.u64 %y, [y]; mad.wide.u32 %y, %t, 4, %y;
mov.u32 %at, tile; mad.lo.u32 %at, %t, 4, %at;
BODY
ret;
}
"""
LOAD, STORE, WAIT = "ld.global.u32 %r0, [%x];", "st.global.u32 [%y], %t;", "griddepcontrol.wait;"
ASYNC = "cp.async.ca.shared.global [%at], [%x], 4; cp.async.wait_all;"
BULK_STORE = ("@%q cp.async.bulk.global.shared::cta.bulk_group [%y], [tile], 16;"
              " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;")  # fmt: skip
BULK_LOAD = """@%q mbarrier.init.shared::cta.b64 [bar], 1;
@%q mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%a], 16, [bar];
bar.sync 0;
w: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra w;"""
FILL = "st.shared.u32 [%at], %t; fence.proxy.async.shared::cta; bar.sync 0;"


def find_dependents(*body: str, check: str = "all,dependents", **options: Any) -> list[Finding]:
    arrays = [np.zeros(64, "u4"), np.zeros(64, "u4")]
    text = HEAD + KERNEL.replace("BODY", "\n".join(body))
    return sim.run(parse(text), block=64, args=arrays, check=check, **options).hazards


RIGHT: dict[str, list[str]] = {
    "after the wait": [WAIT, LOAD, STORE],
    "one warp waits, and a barrier": ["@%p " + WAIT, "bar.sync 0;", LOAD, STORE],
    "copies after the wait": [WAIT, ASYNC, FILL, BULK_STORE],
    "a bulk load after the wait": [WAIT, BULK_LOAD],
    "constants before": [LOAD.replace("global", "global.nc"), WAIT, STORE],
    "shared memory before": ["st.shared.u32 [%at], %t;", WAIT, STORE],
    "no wait at all": [LOAD, STORE],
    "only a trigger": [LOAD, "griddepcontrol.launch_dependents;", STORE],
}
WRONG: dict[str, tuple[list[str], str, int]] = {
    "a load": ([LOAD, WAIT, STORE], "reads 4 bytes at x+0x0", 64),
    "a store": ([STORE, WAIT], "writes 4 bytes at y+0x0", 64),
    "an atomic": (["red.global.add.u32 [%y], %t;", WAIT], "writes 4 bytes at y+0x0", 64),
    "no barrier": (["@%p " + WAIT, LOAD], "reads 4 bytes at x+0x80", 32),
    "cp.async": ([ASYNC, WAIT], "reads 4 bytes at x+0x0", 64),
    "a bulk load": ([BULK_LOAD, WAIT], "reads 16 bytes at x+0x0", 1),
    "a bulk store": ([FILL, BULK_STORE, WAIT], "writes 16 bytes at y+0x0", 1),
}


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random", "adversarial"])
@pytest.mark.parametrize("body", list(RIGHT.values()), ids=list(RIGHT))
def test_what_comes_after_the_wait_is_fine(body: list[str], schedule: str) -> None:
    assert find_dependents(*body, schedule=schedule) == []


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize(("body", "messages", "count"), list(WRONG.values()), ids=list(WRONG))
def test_what_comes_before_is_found(body: list[str], messages: str, count: int, schedule: str) -> None:
    (finding,) = find_dependents(*body, schedule=schedule)
    assert (finding.rule.code, finding.count) == ("PTX0929", count)
    assert messages in finding.what


def test_only_who_asks_hears_of_it_and_a_grid_before_decides_by_itself() -> None:
    assert find_dependents(LOAD, WAIT, STORE, check="all") == find_dependents(LOAD, WAIT, STORE, check="strict") == []
    assert len(find_dependents(LOAD, WAIT, STORE, check="dependents")) == 1
    module = parse(HEAD + KERNEL.replace("BODY", f"{LOAD}\n{WAIT}"))
    x, y = np.zeros(64, "u4"), np.zeros(64, "u4")
    launches = [sim.Launch(module, block=64, args=[x, y], programmatic=index > 0) for index in range(2)]
    results = sim.stream(launches, check="all,dependents")
    assert {(f.rule.code, f.count) for result in results for f in result.hazards} == {("PTX0929", 64)}
