"""A warning for memory that a kernel writes through a parameter and accesses on both sides of `griddepcontrol.wait`."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.diagnostics import Diagnostic
from pyptx.parser import parse

KERNEL = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)
{
.reg .b64 %x, %y, %xi, %yi, %g, %o; .reg .b32 %r, %t, %n, %s; .reg .pred %p;
.shared .align 16 .b8 tile[16];
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %n, [n];
mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, %n; mov.u32 %r, 0; mov.u32 %s, tile; mul.wide.u32 %o, %n, 4;
mad.wide.u32 %xi, %t, 4, %x; add.s64 %xi, %xi, %o; mad.wide.u32 %yi, %t, 4, %y; cvta.to.global.u64 %g, %xi;
BODY
ret;
}
"""
LOAD, STORE, WAIT = "ld.global.u32 %r, [%xi];", "st.global.u32 [%xi+4], %r;", "griddepcontrol.wait;"
OTHER = "st.global.u32 [%yi], %r;"


def find_violations(*body: str) -> list[Diagnostic]:
    module = parse(KERNEL.replace("BODY", "\n".join(body)))
    return [diagnostic for diagnostic in check(module) if diagnostic.code == "PTX0979"]


WRONG: dict[str, tuple[list[str], str, str]] = {
    "a load, then a store": ([LOAD, WAIT, STORE], "`ld.global.u32` reads memory of `x`",
                             "and `st.global.u32` on line 13 writes it after"),
    "a store, then a load": ([STORE, WAIT, LOAD], "`st.global.u32` writes memory of `x`",
                             "and `ld.global.u32` on line 13 reads it after"),
    "an atomic": (["red.global.add.u32 [%x], 1;", WAIT, LOAD], "`red.global.add.u32` writes", "reads it after"),
    "a copy": (["cp.async.ca.shared.global [%s], [%xi], 4;", WAIT, STORE], "`cp.async.ca.shared.global`", "writes"),
    "a generic address": (["ld.u32 %r, [%xi];", WAIT, "st.global.u32 [%g], %r;"], "`ld.u32` reads", "writes it after"),
    "a branch to the wait": ([LOAD, "@%p bra wait;", "mov.u32 %r, 1;", "wait: " + WAIT, STORE], "reads", "writes"),
    "a loop behind": ([LOAD, WAIT, "again: add.u32 %t, %t, 1; setp.lt.u32 %p, %t, %n;", STORE, "@%p bra again;"],
                      "reads memory of `x`", "on line 14 writes"),
}  # fmt: skip
WRONG["a guard"] = (["@%p " + LOAD, "@%p " + WAIT, "@%p " + STORE], "reads", "writes it after")
RIGHT: dict[str, list[str]] = {
    "all after": [WAIT, LOAD, STORE],
    "constants on both sides": [LOAD, WAIT, LOAD, OTHER],
    "memory of its own before": [LOAD, WAIT, OTHER],
    "nothing after": [LOAD, STORE, WAIT],
    "a prefetch": ["prefetch.global.L2 [%xi];", WAIT, STORE],
    "no wait": [LOAD, STORE],
    "only a trigger": [LOAD, "griddepcontrol.launch_dependents;", STORE],
    "a branch that does not wait": ["@!%p bra go;", LOAD, "ret;", "go: " + WAIT, STORE],
    "a register of two parameters": ["selp.b64 %xi, %x, %y, %p;", LOAD, WAIT, STORE],
    "an address from memory": ["ld.global.u64 %xi, [%y];", LOAD, WAIT, STORE],
}


@pytest.mark.parametrize(("body", "first", "second"), list(WRONG.values()), ids=list(WRONG))
def test_what_is_accessed_on_both_sides_and_written(body: list[str], first: str, second: str) -> None:
    (finding,) = find_violations(*body)
    assert finding.line == 11
    assert first in finding.message
    assert "before `griddepcontrol.wait`" in finding.message
    assert second in finding.message
    assert finding.help


@pytest.mark.parametrize("body", list(RIGHT.values()), ids=list(RIGHT))
def test_what_may_be_meant_is_left_alone(body: list[str]) -> None:
    assert find_violations(*body) == []
