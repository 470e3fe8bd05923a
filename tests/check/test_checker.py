"""Findings as they stand: severity, code, place, message and help. ptxas rejects exactly the modules with an error."""

from __future__ import annotations

import pytest

from pyptx import kernel, ptx
from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.parser import parse
from pyptx.toolchain import validate
from pyptx.types import b64
from tests.check.report import HEADER
from tests.messages import assert_listed

Finding = tuple[str, int, int, str, str | None]
HANDLES = ".global .texref tx;\n.global .samplerref sm;\n.global .surfref sf;\n"
MODULE = ".version 8.6\n.target sm_90a\n.address_size 64\n"
BRX = "mov.u32 %r0, {};\nts: .branchtargets A, B;\nbrx.idx %r0, ts;\nA: bar.sync 0;\nbra C;\nB: mov.u32 %r1, 2;\nC:"


def body(text: str, target: str = "sm_90a", version: str = "8.6", declared: str = "") -> str:
    """Return a module with these statements in its kernel, from line 20 on without declarations of its own."""
    head = HEADER.format(target=target, version=version).replace("\n.visible", f"\n{declared}.visible")
    return f"{head}{text}\nret;\n}}\n"


def sampled(text: str) -> str:
    """Return a module with this statement in line 23, and with a texture, a sampler and a surface."""
    return body(text, "sm_90a, texmode_independent", declared=HANDLES)


TEX = "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, "
CASES: list[tuple[str, list[Finding]]] = [
    (body("mov.b64 %rd0, nosuch+4;"),
     [("error PTX0401", 20, 15, "`nosuch` is not declared here", None)]),
    (body("mov.u32 %r0, %tid;"),
     [("error PTX0202", 20, 14, "`%tid` is a vector", "name one component: %tid.x")]),
    (body("st.global.v4.b32 [g], %tid;"),
     [("error PTX0202", 20, 23, "the special register `%tid` cannot be used here",
       "first read it into a register: mov.u32 %r, %tid")]),
    (body("st.global.v2.b32 [g], %tid;"),
     [("error PTX0202", 20, 23, "`%tid` is a vector", "name one component: %tid.x")]),
    (body("mov.u32 %tid.x, %r0;"),
     [("error PTX0202", 20, 9, "the special register `%tid.x` can only be read", None)]),
    (body("mov.u32 %r0, %aggr_smem_size;", version="8.0"),
     [("error PTX0301", 20, 14, "`%aggr_smem_size` needs PTX 8.1 on sm_90 and newer", None)]),
    (body("mov.u32 %r0, %aggr_smem_size;", version="8.1"), []),
    (body("mov.u32 %r0, %clusterid.x;", "sm_80"),
     [("error PTX0302", 20, 14, "`%clusterid.x` needs PTX 7.8 on sm_90 and newer", None)]),
    (body("ld.global.b32 %r0, [f];"),
     [("error PTX0202", 20, 20, "`a` must be an address, found `f`, the name of a function", None)]),
    (body("{ L: ld.global.b32 %r0, [L]; }"),
     [("error PTX0202", 20, 25, "`a` must be an address, found `L`, the name of a label", None)]),
    (body("add.s32 %r0, %r1, [1*4];"),
     [("error PTX0202", 20, 19, "`b` must be a register or a number, found `[1*4]`, an address", None)]),
    (body("add.s32 %r0, %r1, g[2];"),
     [("error PTX0202", 20, 19, "`b` must be a register or a number, found `g[2]`, an address", None)]),
    (sampled(TEX + "[tx, sm, {%r0}];"), []),
    (sampled(TEX + "[tx, sf, {%r0}];"),
     [("error PTX0201", 23, 41, "expected the address `[a:.texref, c:.s32]`, found 3 parts", None)]),
    (sampled(TEX + "[sf, sm, {%r0}];"),
     [("error PTX0203", 23, 41, "`a` is .texref, found `sf` declared .surfref", "use a register declared .b64")]),
    (sampled(TEX + "[g, sm, {%r0}];"),
     [("error PTX0203", 23, 41, "`a` is .texref, found `g` declared .u32", "use a register declared .b64")]),
    (sampled("suq.width.b32 %r0, [tx];"),
     [("error PTX0203", 23, 20, "`a` is .surfref, found `tx` declared .texref", "use a register declared .b64")]),
    (sampled("suq.width.b32 %r0, [sf];"), []),
    (sampled("txq.filter_mode.b32 %r0, [sm];"), []),
    (sampled("txq.width.b32 %r0, [tx];"), []),
    (body(BRX.format("%tid.x")),
     [("warning PTX0601", 23, 4,
       "`bar.sync` needs all threads of the warp, but the branch on line 22 can diverge before it",
       "move it out of the branch, or branch on a warp-uniform condition")]),
    (body(BRX.format("%ctaid.x")), []),
    (MODULE + ".entry f();\n.func f() { ret; }\n",
     [("error PTX0410", 5, 7,
       "function `f` was already declared on line 4: it was declared as an entry",
       "make the two declarations agree")]),
    (MODULE + ".func f();\n.entry f() { ret; }\n",
     [("error PTX0410", 5, 8,
       "function `f` was already declared on line 4: it was declared as a function",
       "make the two declarations agree")]),
    (MODULE + ".entry k(.param .u32 a, .param .u32 a) { ret; }\n",
     [("error PTX0402", 4, 10, "parameter `a` is already declared in this block", "rename one of them")]),
    (MODULE + ".global .u32 x = 1/0;\n",
     [("error PTX0412", 4, 14, "a constant is divided by `0`, which is zero, in the value of `x`", None)]),
    (MODULE + ".global .u32 x = ~1.5;\n",
     [("error PTX0412", 4, 14, "a constant expression in the value of `x` cannot be evaluated", None)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_findings_are_exactly(text: str, expected: list[Finding]) -> None:
    found = [d for d in check(parse(text)) if d.code not in ("PTX0501", "PTX0502")]
    assert [(f"{d.severity} {d.code}", d.line, d.col, d.message, d.help) for d in found] == expected
    assert_listed(found, text)
    rejected = any(d.severity is Severity.ERROR for d in validate(text))
    assert rejected == any(d.severity is Severity.ERROR for d in found)


def test_a_conditional_address_is_of_declared_names() -> None:
    @kernel(exact=True)
    def k() -> None:
        ptx.inst.mov.b64(ptx.decl.reg(b64, "%rd"), ptx.op.conditional(1, "nosuch", 2))

    assert [(d.code, d.message) for d in k.check() if d.code == "PTX0401"] == [
        ("PTX0401", "`nosuch` is not declared here")
    ]
