"""Registers of warps that end are available to those that wait for more."""

from __future__ import annotations

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
