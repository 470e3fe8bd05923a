"""Where every thread is, in the error of a run that exceeds `max_steps` and for a debugger."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.messages import raises
from tests.sim.kernels import kernel

ROLES = """setp.lt.u32 %p0, %t, 16;
@%p0 exit;
shr.u32 %r1, %t, 5;
setp.eq.u32 %p1, %r1, 1;
@%p1 bra waits;
setp.ne.u32 %p1, %r1, 2;
@%p1 bra counts;
polls: mbarrier.test_wait.parity.shared::cta.b64 %p2, [full], 0;
@!%p2 bra polls;
ret;
waits: bar.sync 1, 64;
ret;
counts: add.u32 %r2, %r2, 1;
bra counts;
"""
SHARED = ".shared .align 8 .b64 full;\n"
INIT = "setp.eq.u32 %p3, %t, 127;\n@%p3 mbarrier.init.shared::cta.b64 [full], 1;\nbar.sync 0;\n"


def _list_places(text: str, threads: int, ctas: int = 1, max_steps: int = 20_000) -> list[str]:
    """Return the notes of the error of a run that never ends."""
    out = np.zeros(threads, np.int32)
    with raises(PtxError) as excinfo:
        sim.run(parse(text), grid=ctas, block=threads, args=[out], max_steps=max_steps, check="none")
    (finding,) = excinfo.value.diagnostics
    assert finding.code == "PTX1122", finding
    return list(finding.notes)


def test_the_error_of_a_run_that_never_ends_says_where_its_threads_are() -> None:
    text = kernel(INIT + ROLES, module=SHARED)
    lines = {name: number for number, line in enumerate(text.splitlines(), 1) for name in line.split(":")[:1]}
    places = _list_places(text, 128, ctas=2)
    assert [re.sub(r":\d+: ", ": ", place) for place in places] == [
        f"64 × polling at `mbarrier.test_wait.parity.shared::cta.b64` at <ptx>:{lines['polls']}: CTA 0 warp 2 …",
        f"64 × waiting at `bar.sync` at <ptx>:{lines['waits']}: CTA 0 warp 1 …",
        f"96 × running at `add.u32` at <ptx>:{lines['counts']}: CTA 0 warp 0 …",
        f"32 × exited at `exit` at <ptx>:{lines['@%p0 exit;']}: CTA 0 warp 0 …",
    ]


@pytest.mark.parametrize(("exits", "rest"), [(15, []), (17, ["and 2 more places"])])
def test_the_first_places_are_listed_and_those_of_exits_last(exits: int, rest: list[str]) -> None:
    leaves = "".join(f"setp.eq.u32 %p0, %t, {lane};\n@%p0 exit;\n" for lane in range(exits))
    places = _list_places(kernel(f"{leaves}counts: add.u32 %r2, %r2, 1;\nbra counts;"), 32)
    assert places[0].startswith(f"{32 - exits} × running at ")
    assert [place.startswith("1 × exited at `exit` at ") for place in places[1:16]] == [True] * 15
    assert places[16:] == rest


def test_a_debugger_says_what_each_warp_does() -> None:
    machine = sim.Machine(parse(kernel(INIT + ROLES, module=SHARED)), block=128, args=[np.zeros(128, np.int32)])
    machine.run(until="counts")
    machine.step(9)
    assert [re.sub(r" at <.*| `.*", "", str(stand)) for stand in machine.where()] == [
        "CTA 0 warp 0 (16 lanes) exited at", "CTA 0 warp 0 (16 lanes) is at", "CTA 0 warp 1 waits at",
        "CTA 0 warp 2 polls, now at", "CTA 0 warp 3 is at"
    ]  # fmt: skip
