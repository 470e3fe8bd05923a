"""Definite assignment: registers that may be read before they are written."""

from __future__ import annotations

import pytest

from pyptx.parser import parse
from pyptx.sim.program.assignment import find_unproven_registers
from pyptx.sim.program.blocks import prepare
from tests.sim.kernels import kernel

NONE = set[str]()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("mov.u32 %r0, 1;\nadd.u32 %r1, %r0, %t;", NONE),
        ("add.u32 %r1, %r0, %t;", {"%r0"}),
        ("setp.eq.u32 %p0, %t, 0;\n@%p0 mov.u32 %r0, 1;\nadd.u32 %r1, %r0, 1;", {"%r0"}),
        ("setp.eq.u32 %p0, %t, 0;\n@%p0 bra $x;\nmov.u32 %r0, 1;\n$x: add.u32 %r1, %r0, 1;", {"%r0"}),
        ("setp.eq.u32 %p0, %t, 0;\nmov.u32 %r0, 2;\n@%p0 bra $x;\nmov.u32 %r0, 1;\n$x: add.u32 %r1, %r0, 1;", NONE),
        ("setp.eq.u32 %p0, %t, 0;\n@%p0 exit;\nbar.sync 0;\nmov.u32 %r0, 2;\nadd.u32 %r1, %r0, 1;", NONE),
        ("mov.u32 %r2, 0;\n$l: add.u32 %r2, %r2, 1;\nmov.u32 %r3, %r2;\nsetp.lt.u32 %p0, %r3, 4;\n@%p0 bra $l;", NONE),
        ("bra $end;\nadd.u32 %r1, %r0, %t;\n$end:", NONE),
    ],
)  # fmt: skip
def test_paths(body: str, names: set[str]) -> None:
    program = prepare(parse(kernel(body)), "k")
    assert {name for name, _ in find_unproven_registers(program.blocks, program.entry)} == names
