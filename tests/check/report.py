"""The helper of these tests: the findings of `check` for the body of a kernel."""

from __future__ import annotations

from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.parser import parse
from tests.messages import assert_listed

HEADER = """\
.version {version}
.target {target}
.address_size 64
.global .align 16 .u32 g[64];
.const .u32 c[4];
.func takes(.param .b32 a) {{ ret; }}
.func (.reg .b32 y) f(.reg .b32 x) {{ add.s32 y, x, 1; ret; }}
.func (.reg .b32 y) none {{ mov.b32 y, 1; ret; }}
.func nothing() {{ ret; }}
.visible .entry k(.param .u64 p, .param .align 128 .b8 map[128])
{{
    .reg .pred %p<4>;
    .reg .b16 %h<8>;
    .reg .b32 %r<32>;
    .reg .f32 %f<32>;
    .reg .b64 %rd<8>;
    .reg .f64 %d<4>;
    .reg .v2 .f32 %v;
    .shared .align 128 .b8 tile[4096];
"""
BODY_LINE = HEADER.count("\n") + 1
"""The line of the body's first statement."""


def report(body: str, target: str = "sm_90a", version: str = "8.6") -> list[str]:
    """Return `CODE line` of every error and warning, with lines counted from the body's first as 1. Findings about
    writes and reads of registers are omitted: these cases test other rules."""
    text = HEADER.format(target=target, version=version) + body + "\n    ret;\n}\n"
    findings = [d for d in check(parse(text)) if d.code not in ("PTX0501", "PTX0502")]
    assert_listed(findings, text)
    return [f"{d.code} {d.line - BODY_LINE + 1}" for d in findings if d.severity is not Severity.NOTE]
