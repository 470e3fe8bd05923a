"""Adding an instruction to the simulator takes a row, its traits and its semantics."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import sys
import numpy as np
from pyptx import sim
from pyptx.isa.notation import form
from pyptx.isa.table import async_copy
from pyptx.parser import parse
from pyptx.sim.semantics import async_copy as semantics

async_copy.MEANING["warpcp.async"] = "Copy 4 bytes per lane from global to shared memory, a warp together."
async_copy.TRAITS["warpcp.async"] = "issues:cp.async"
async_copy.MEANING["warpcp.close"] = "End a group of copies."
async_copy.TRAITS["warpcp.close"] = "commits:cp.async"
async_copy.MEANING["warpcp.finish"] = "Wait for all but the newest groups of copies."
async_copy.TRAITS["warpcp.finish"] = "lands:cp.async"
async_copy.FORMS += tuple(
    form(line, see="", since="8.0,sm_80")
    for line in (
        "warpcp.async.sync.aligned.b32  [a@shared:w], [b@global], size:imm[4..4]",
        "warpcp.close",
        "warpcp.finish  n:imm",
    )
)
semantics.BUILDERS["warpcp"] = semantics.BUILDERS["cp"]

module = parse('''.version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    .shared .align 16 .b8 s[128];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd1, %rd1, %rd3;
    add.u64 %rd2, %rd2, %rd3;
    mov.u32 %r2, s;
    mad.lo.u32 %r2, %r1, 4, %r2;
    warpcp.async.sync.aligned.b32 [%r2], [%rd1], 4;
    WAIT
    ld.shared.u32 %r3, [%r2];
    st.global.u32 [%rd2], %r3;
    ret;
}'''.replace("WAIT", sys.argv[1]))
x, y = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
result = sim.run(module, args=[x, y], block=32, schedule="lazy", on_hazard="report", timeline=True)
assert result.timeline is not None and "cp.async" in str(result.timeline.html())
print((x == y).all(), *[finding.rule.code for finding in result.hazards])
"""


@pytest.mark.parametrize(
    ("wait", "output"),
    [
        ("cp.async.wait_all;", "True"),
        ("cp.async.commit_group; cp.async.wait_group 0;", "True"),
        ("warpcp.close; warpcp.finish 0;", "True"),
        ("warpcp.close; warpcp.finish 1;", "False PTX0931"),
        ("warpcp.finish 0;", "False PTX0931"),
        ("", "False PTX0931"),
    ],
)
def test_a_row_its_traits_and_semantics_make_an_asynchronous_collective(wait: str, output: str) -> None:
    run = subprocess.run([sys.executable, "-c", _PROGRAM, wait], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == (output, "")
