"""The result of each pass on a few statements, and on statements that it must not change."""

from __future__ import annotations

import re

import pytest

from pyptx.codegen import ptx_to_python
from pyptx.codegen.analysis.demangle import demangle
from tests.codegen.sugared import body, find_difference, statements
from tests.codegen.transcripts import kernel

READS = {
    "special registers and roles": (
        "mov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 31;\nadd.u32 %r3, %r1, %r2;\nadd.u32 %r4, %r2, %r1;\n",
        ["tid = ptx.special.tid.x()", "lane = tid & 31", "tid + lane", "lane + tid"],
    ),
    "a signed reading": (
        "mov.u32 %r1, %tid.x;\nsetp.lt.s32 %p1, %r1, 5;\nshr.s32 %r2, %r1, 1;\nadd.s32 %r3, %r1, 1;\n",
        ["tid = ptx.special.tid.x().s32", "tid < 5", "tid >> 1", "tid + 1"],
    ),
    "expressions": (
        "mov.u32 %r1, %ctaid.x;\nshl.b32 %r2, %r1, 7;\nmov.u32 %r3, %tid.x;\nor.b32 %r4, %r2, %r3;\n"
        "st.shared.b32 [%r4], %r4;\n",
        ["r4 = (ptx.special.ctaid.x() << 7) | ptx.special.tid.x()", 'ptx.st(b32, r4, r4, space="shared")'],
    ),
    "in place": (
        "mov.u32 %r1, 0;\nadd.u32 %r1, %r1, 4;\nxor.b32 %r1, %r1, 1;\n",
        ["ptx.mov(u32, i, 0)", "i += 4", "i ^= 1"],
    ),
    "no operator where the DSL has another instruction": (
        "ld.shared.f32 %f1, [%rd1];\nadd.rn.ftz.f32 %f2, %f1, 0f3F800000;\nst.shared.f32 [%rd1], %f2;\n",
        ['f2 = ptx.inst.add.rn.ftz.f32(f32, ptx.ld(f32, rd[1], space="shared"), 1.0)',
         'ptx.st(f32, rd[1], f2, space="shared")'],
    ),
    "if and else": (
        "setp.eq.s32 %p1, %r1, 0;\n@%p1 bra A;\nmov.u32 %r2, 1;\nbra.uni B;\nA:\nmov.u32 %r2, 2;\nB:\nret;\n",
        ["with ptx.if_(~(r[1].s32 == 0)):", "ptx.mov(u32, r[2], 1)", "with ptx.else_(uni=True):",
         "ptx.mov(u32, r[2], 2)", "ptx.ret()"],
    ),
    "a loop with a condition at its end": (
        "mov.u32 %r1, 0;\nL:\nadd.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 9;\n@%p1 bra L;\nret;\n",
        ["i = r[1].s32", "ptx.mov(u32, i, 0)", 'with ptx.loop("L", pred=lambda: i < 9):', "i += 1", "ptx.ret()"],
    ),
    "a loop that is left": (
        "L:\nld.shared.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra D;\nbra L;\nD:\nret;\n",
        ['with ptx.loop("L", end="D"):', 'ptx.break_(pred=ptx.ld(u32, rd[1], space="shared") == 0)', "ptx.ret()"],
    ),
    "conditions with a common end": (
        "@%p1 bra D;\n@%p2 bra D;\nmov.u32 %r1, 0;\nmov.u32 %r1, 1;\nD:\nret;\n",
        ["with ptx.if_(~p[1]), ptx.if_(~p[2], place=False):", "ptx.mov(u32, r[1], 0)", "ptx.mov(u32, r[1], 1)",
         "ptx.ret()"],
    ),
    "branches that do not nest stay": (
        "@%p1 bra A;\n@%p2 bra B;\nmov.u32 %r1, 0;\nA:\nmov.u32 %r1, 1;\nB:\nret;\n",
        ["with ptx.if_(~p[1]):", 'ptx.bra("B", pred=p[2])', "ptx.mov(u32, r[1], 0)", "ptx.mov(u32, r[1], 1)",
         'ptx.label("B")', "ptx.ret()"],
    ),
    "wait loops": (
        "{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], %r2;\n@P1 bra DONE;\n"
        "bra LAB_WAIT;\nDONE:\n}\nW:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;\n@!%p1 bra W;\n",
        ["ptx.mbarrier.wait(mbar, phase, loop=WAIT)", 'ptx.mbarrier.wait(mbar, phase, labels=("W",))'],
    ),
    "waits with an order": (
        "W:\nmbarrier.try_wait.parity.relaxed.cluster.shared.b64 %p1, [%r1], %r2;\n@!%p1 bra W;\n",
        ['ptx.mbarrier.wait(mbar, phase, labels=("W",), sem="relaxed", scope="cluster")'],
    ),
    "a loop that waits for something else": (
        "W:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;\n@%p1 bra W;\n",
        ['ptx.loop("W", pred=lambda: ptx.mbarrier.try_wait(mbar, phase))'],
    ),
    "repeated statements": (
        "".join(f"st.global.f32 [%rd1+{4 * i}], %f{i};\n" for i in range(8)),
        ["for j in range(8):", "ptx.st(f32, ptx.addr(rd[1], 4 * j), f[j])"],
    ),
    "statements that repeat but for one": (
        "".join(f"st.global.f32 [%rd1+{4 * i + (i == 6)}], %f{i};\n" for i in range(8)),
        ["for j, x in enumerate((0, 4, 8, 12, 16, 20, 25, 28)):", "ptx.st(f32, ptx.addr(rd[1], x), f[j])"],
    ),
    "accumulators": (
        "mov.f32 %f9, 0f00000000;\nmov.f32 %f10, 0f00000000;\nmov.f32 %f11, 0f00000000;\nmov.f32 %f12, 0f00000000;\n"
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f9,%f10,%f11,%f12}, {%r1,%r2,%r3,%r4}, {%r5,%r6},"
        " {%f9,%f10,%f11,%f12};\n",
        ["acc = f[9:13]", "for j in range(4):", "ptx.mov(f32, acc[j], 0.0)", "d=acc"],
    ),
    "fragments": (
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r9];\nst.shared.v2.b32 [%r9], {%r2, %r3};\n"
        "st.shared.v2.b32 [%r9], {%r1, %r4};\n",
        ["frag = ptx.ldmatrix(dst=[b32] * 4, src=r[9])", "frag[1:3]", "[frag[0], frag[3]]"],
    ),
    "fragments written again": (
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r9];\nL:\nst.shared.v2.b32 [%r9], {%r1, %r2};\n"
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [%r9];\nbra L;\n",
        ['ptx.ldmatrix(dst=r[1:3], src=r[9], layout="x2")',
         'ptx.ldmatrix(dst=r[1:3], src=r[9], layout="x2", trans=True)'],
    ),
    "masks": (
        "and.b32 %r1, %r9, 8064;\nst.shared.b32 [%r1], %r9;\nst.shared.b32 [%r1], %r1;\nand.b32 %r2, %r9, 63;\n",
        ["r1 = r[9] & 0x1f80", "r[9] & 63"],
    ),
    "large numbers": (
        "mov.b32 %r1, 1572864;\nmov.b32 %r2, 1048575;\nst.shared.v2.b32 [%r9], {%r1, %r2};\n"
        "st.shared.v2.b32 [%r9], {%r2, %r1};\n",
        ["ptx.mov(b32, 0x180000)", "ptx.mov(b32, 1048575)"],
    ),
    "shuffles": (
        "shfl.sync.bfly.b32 %r1, %r9, 16, 31, -1;\nshfl.sync.idx.b32 %r2|%p1, %r1, 0, 31, -1;\n"
        "st.shared.b32 [%r2], %r2;\n",
        ["r1 = ptx.warp.shfl_bfly(r[9], 16, mask=-1)", 'r2, _ = ptx.warp.shfl("idx", r1, 0, 31, -1, valid=True)'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_what_it_reads_like(name: str) -> None:
    ptx, expected = READS[name]
    lines = statements(ptx)
    line_number = 0
    for line in expected:
        line_number = next((i + 1 for i in range(line_number, len(lines)) if line in lines[i]), -1)
        assert line_number > 0, f"{line!r} is not in\n" + "\n".join(lines)
    assert find_difference(ptx) is None


def test_comments_say_what_long_blocks_do() -> None:
    ptx = "@%p1 bra A;\n" + "".join(f"ld.global.f32 %f{i}, [%rd1+{i * i}];\n" for i in range(7)) + "A:\nret;\n"
    assert "    # reads global memory\n    with ptx.if_(~p[1]):" in body(ptx)


def test_lines_of_the_source_are_cited_where_they_change() -> None:
    loc, file = ".loc 1 {0} 9;\n".replace(";", ""), '.file 1 "/home/me/kernels.py"\n'
    add = "add.u32 %r1, %r9, %r8;\nst.shared.u32 [%r9], %r1;\n"
    ptx = loc.format(7) + add + "st.shared.u32 [%r8], %r8;\n" + loc.format(9) + "st.shared.u32 [%r8], %r9;\n"
    comments = [line.partition("  # ")[2] for line in statements(ptx, file) if "ptx.st" in line]
    assert comments == ["kernels.py:7", "", "kernels.py:9"]
    assert find_difference(ptx, file) is None


def test_rings_name_their_stage_and_phase() -> None:
    ptx = (
        "mad.lo.u32 %r1, %r8, 8, %r7;\nxor.b32 %r2, %r9, 1;\nW:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;\n"
        "@!%p1 bra W;\nadd.u32 %r8, %r8, 1;\nxor.b32 %r9, %r9, 1;\n"
    )
    text = body(ptx)
    assert "stage += 1" in text
    assert "phase ^= 1" in text
    assert find_difference(ptx) is None


def test_long_symbols_become_constants() -> None:
    name = "_ZN6Vector" + "3dotERKS_" * 6
    ptx = f"mov.u64 %rd1, {name};\nld.global.u32 %r1, [%rd1];\n"
    assert find_difference(ptx, f".global .u32 {name};\n") is None
    assert f'"{name}"' not in body(ptx, f".global .u32 {name};\n")


@pytest.mark.parametrize(("symbol", "name"), [
    ("_Z4halfPf", "half"), ("_ZN7cutlass13device_kernelINS_4gemmEEEvT_", "device_kernel"),
    ("_ZZ8sum_treeE4part", "part"), ("_ZN3FooIiLi128EE3barEv", "bar"), ("plain", "plain"),
    ("_ZN4core3ptr8drop_box17h0123456789abcdefE", "drop_box"),
    ("_ZN", "_ZN"), ("_Z999x", "_Z999x"), ("_ZNSt6vectorIfE4sizeEv", "size"), ("_ZN1AC1Ev", "A"),
])  # fmt: skip
def test_demangled_names(symbol: str, name: str) -> None:
    assert demangle(symbol) == name


def test_what_nobody_reads_has_no_name() -> None:
    declarations = ".reg .b16 %spare<3>;\n.reg .b32 %r<3>;\n"
    python = ptx_to_python(kernel(declarations + "mov.u32 %r1, 0;\nadd.u32 %r1, %r1, 4;\n"), sugar=True)
    assert re.search(r"^ +ptx\.decl\.reg\(b16, ", python, re.MULTILINE)
    assert re.search(r"^ +r = ptx\.decl\.reg\(b32, ", python, re.MULTILINE)


def test_a_name_that_a_step_in_place_reads_stays() -> None:
    ptx = "mov.u32 %r1, 0;\nadd.u32 %r1, %r1, 4;\n"
    assert "i += 4" in statements(ptx)
    assert find_difference(ptx) is None
