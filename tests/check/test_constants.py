"""Constants that have no value. ptxas checks every case."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.ir import overflows
from pyptx.parser import parse
from pyptx.toolchain import validate
from tests.check.report import HEADER, report

REFUSED = [
    "mov.b64 %rd0, 99999999999999999999;",
    "mov.b64 %rd0, 010000000000000000000000;",
    "add.u64 %rd0, %rd1, -0xF0000000000000000;",
    "mov.f64 %d0, 1e400;",
    "mov.b32 %r0, 1/0;",
    "mov.b32 %r0, 7 % (2-2);",
    "mov.b32 %r0, 1 ? 2 : 1/0;",
    "mov.b64 %rd0, g+1/0;",
    "st.global.v2.b32 [%rd0], {1/0, %r0};",
    "ld.global.b32 %r0, [%rd0+4/0];",
    "ld.global.b32 %r0, [%rd0+99999999999999999999];",
    "ld.local.b32 %r0, [1/0];",
    "ld.global.b32 %r0, g[1/0];",
    "call takes, (1/0);",
]
TAKEN = [
    "mov.b64 %rd0, 18446744073709551616;",
    "mov.b64 %rd0, 0x1FFFFFFFFFFFFFFFF;",
    "mov.b64 %rd0, -18446744073709551615;",
    "ld.global.b32 %r0, [%rd0+4294967296];",
    "mov.f64 %d0, 1e308;",
    "mov.b32 %r0, 0 ? 1 : 4/2;",
]


@pytest.mark.parametrize("line", REFUSED + TAKEN)
def test_ptxas_agrees(line: str) -> None:
    assert report(line) == (["PTX0413 1"] if line in REFUSED else [])
    text = HEADER.format(target="sm_90a", version="8.6") + f"{line}\nret;\n}}\n"
    assert (line in REFUSED) == any(d.severity is Severity.ERROR for d in validate(text))


@pytest.mark.parametrize(
    "number",
    [
        "18446744073709551615", "90000000000000000000", "99999999999999999999", "184467440737095516160",
        "184467440737095516159", "0x20000000000000000", "0xF0000000000000000", "0x1234567890123456789",
        "04000000000000000000000", "010000000000000000000000", f"0b1{'0' * 63}", f"0b1{'0' * 64}", "1e308", "1.0e309",
    ],
)  # fmt: skip
def test_ptxas_looks_at_the_highest_bit_before_each_digit(number: str) -> None:
    text = f".version 8.6\n.target sm_90a\n.address_size 64\n.global .b64 g = {number};\n"
    is_rejected = any(d.severity is Severity.ERROR for d in validate(text))
    assert overflows(number) is is_rejected
    assert bool([d for d in check(parse(text)) if d.severity is Severity.ERROR]) is is_rejected
