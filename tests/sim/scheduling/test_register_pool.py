"""Registers of warps that end are available to those that wait for more."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.sim.kernels import HEAD

KERNEL = """.visible .entry k(.param .u64 out) .maxntid 256 .maxnreg 104
{
.reg .b32 %t; .reg .b64 %a, %o; .reg .pred %p;
mov.u32 %t, %tid.x;
setp.ge.u32 %p, %t, 128;
@%p bra more;
DEC
ret;
more: setmaxnreg.inc.sync.aligned.u32 COUNT;
bar.sync 1, 128;
ld.param.u64 %a, [out];
mad.wide.u32 %o, %t, 4, %a;
st.global.u32 [%o], 1;
ret;
}
"""


@pytest.mark.parametrize("order", ["eager", "lazy", "random", "adversarial"])
@pytest.mark.parametrize("decrease", ["", "setmaxnreg.dec.sync.aligned.u32 48;"])
def test_a_warp_that_ends_returns_its_registers(order: str, decrease: str) -> None:
    text = HEAD + KERNEL.replace("DEC", decrease).replace("COUNT", "208")
    out = np.zeros(256, np.uint32)
    result = sim.run(parse(text), "k", block=256, args=[out], schedule=order, on_hazard="report")
    assert out.tolist() == [0] * 128 + [1] * 128
    # The manual does not promise that ended warps return registers, so the request is reported all the same.
    assert {finding.rule.code for finding in result.hazards} == {"PTX0965"}


def test_they_are_not_more_than_it_has() -> None:
    text = HEAD + KERNEL.replace("DEC", "setmaxnreg.dec.sync.aligned.u32 48;").replace("COUNT", "216")
    with pytest.raises(sim.Hang, match="each warp that requests 216 per thread needs 3584 more"):
        sim.run(parse(text), "k", block=256, args=[np.zeros(256, np.uint32)], on_hazard="report")


_BODY = """.visible .entry k(.param .u64 out) DIRECTIVES
{
.reg .b32 %t, %w, %c, %i; .reg .b64 %o; .reg .pred %first, %middle, %last, %upper, %never;
mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mov.u32 %c, %ctaid.x; mad.lo.u32 %i, %c, 96, %t;
ld.param.u64 %o, [out]; mad.wide.u32 %o, %i, 4, %o;
setp.eq.u32 %first, %w, 0; setp.eq.u32 %middle, %w, 1; setp.eq.u32 %last, %w, 2;
setp.eq.and.u32 %upper, %c, 1, %first; setp.eq.u32 %never, %w, 9;
CODE
bar.sync 0;
st.global.u32 [%o], 1;
ret;
}
"""
_DEC, _INC = "setmaxnreg.dec.sync.aligned.u32 ", "setmaxnreg.inc.sync.aligned.u32 "


def _run_two_ctas(code: str, directives: str = ".maxntid 128 .maxnreg 60") -> np.ndarray[tuple[int, ...], Any]:
    """Run two CTAs of three warps and return what the threads stored."""
    code = re.sub(r"(dec|inc) (\d+);", lambda found: (_DEC if found[1] == "dec" else _INC) + f"{found[2]};", code)
    out = np.zeros((2, 96), np.uint32)
    text = HEAD + _BODY.replace("CODE", code).replace("DIRECTIVES", directives)
    sim.run(parse(text), "k", grid=2, block=96, args=[out], on_hazard="report")
    return out


_CASES = {
    # Code before the request of the last warp; how many registers per thread it can have beyond its 64 in each CTA.
    "one gives": ("@%first dec 40;", (24, 24)),
    "it gives once": ("@%first dec 40; @%first dec 40; @%first dec 40;", (24, 24)),
    "it cannot give less": ("@%first dec 40; @%first dec 48;", (24, 24)),
    "it cannot take less": ("@%first dec 40; @%last inc 64; @%last inc 56;", (24, 24)),
    "another takes": ("@%first dec 24; @%middle inc 88;", (16, 16)),
    "it takes twice": ("@%first dec 24; @%last inc 72; @%last inc 80;", (40, 40)),
    "no lane gives": ("@%first dec 40; @%never dec 24; @%never inc 256;", (24, 24)),
    "the first CTA gives less": ("@%upper dec 24; @%first dec 48;", (16, 40)),
    "a warp ends": ("@%middle exit;", (64, 64)),
    "a warp that gave ends": ("@%middle dec 24; @%middle exit;", (64, 64)),
    "a warp but its first lane ends": ("setp.gt.and.u32 %never, %t, 32, %middle; @%never exit; @%first dec 40;",
        (24, 24)),
    "a warp but its last lane ends": ("setp.lt.and.u32 %never, %t, 63, %middle; @%never exit; @%first dec 40;",
        (24, 24)),
    "a warp ends in two parts": ("setp.lt.and.u32 %never, %t, 50, %middle; @%never exit; @%first dec 40;"
        "@%middle exit;", (88, 88)),
}  # fmt: skip


@pytest.mark.parametrize("case", _CASES)
def test_a_warp_gets_what_the_others_of_its_cta_released_and_no_more(case: str) -> None:
    code, rooms = _CASES[case]
    expected = np.ones((2, 96), np.uint32)
    least, most = min(rooms), max(rooms)
    ended = "exit;" in code
    found = _run_two_ctas(f"{code} @%last inc {64 + least};")
    assert found[:, 64:].tolist() == expected[:, 64:].tolist()
    assert ended or found.tolist() == expected.tolist()
    before = "setp.eq.and.u32 %last, %c, 1, %last;" if rooms[0] < rooms[1] else ""
    assert _run_two_ctas(f"{code} {before} @%last inc {64 + most};")[1, 64:].tolist() == [1] * 32
    text = f"{72 + least} per thread needs {32 * (8 + least)} more, but {32 * least} are free"
    if "%last inc 80" in code:
        text = f"{72 + least} per thread needs {32 * (least - 8)} more, but {32 * (least - 16)} are free"
    with pytest.raises(sim.Hang, match=text):
        _run_two_ctas(f"{code} @%last inc {72 + least};")


@pytest.mark.parametrize("directives", ["", ".maxntid 96", ".maxntid 96 .minnctapersm 2"])
def test_without_a_count_at_entry_no_warp_waits(directives: str) -> None:
    assert _run_two_ctas("@%last inc 256; bar.sync 0; @%first dec 24; @%middle inc 256;", directives).all()
