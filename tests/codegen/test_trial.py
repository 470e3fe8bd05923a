"""The trial run of a generated file: the block that a kernel allows, and arguments made for its parameters."""

from __future__ import annotations

import pytest

from pyptx.codegen.trial import find_pointers, run_trial
from pyptx.diagnostics import PtxError
from pyptx.ir import Function, visit
from pyptx.parser import parse
from tests.messages import raises


def trial(
    directives: str, params: str = "", body: str = "", block: int | None = None, number: int = 5, before: str = ""
) -> list[str]:
    """Return what the run of a kernel prints."""
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    module = parse(f"{head}{before}.entry k({params}) {directives}\n{{\n{body}\nret;\n}}\n")
    (entry,) = (node for node in visit(module) if isinstance(node, Function))
    return list(run_trial(module, entry, 1, block, 64, number))


@pytest.mark.parametrize(
    ("directives", "block", "expected"),
    [
        ("", None, "(128,)"), (".maxntid 64", None, "(64,)"), (".maxntid 512", None, "(128,)"),
        (".maxntid 256, 1, 1", None, "(128,)"), (".maxntid 8, 4, 1", None, "(8, 4, 1)"),
        (".reqntid 32, 2", None, "(32, 2)"), (".minnctapersm 1 .maxntid 32", None, "(32,)"),
        (".maxntid 64", 16, "(16,)"),
    ],
)  # fmt: skip
def test_the_block_is_what_the_kernel_allows(directives: str, block: int | None, expected: str) -> None:
    assert trial(directives, block=block) == [
        f"simulating k with grid=1, block={expected}, shared=0", "finished; 0 hazards found",
    ]  # fmt: skip


def test_structures_have_buffers_where_the_kernel_reads_pointers() -> None:
    params = (
        ".param .u64 p, .param .align 8 .b64 s[3], .param .b8 z[4], .param .f32 f, .param .s8 n, .param .u64 .ptr q"
    )
    body = ".reg .b64 %r<2>; .reg .b32 %x;\nld.param.u64 %r1, [s+8];\nmov.b32 %x, 1;\nst.global.b32 [%r1], %x;"
    assert trial(".maxntid 1", params, body) == [
        "  p: 5", "  s: 24 bytes, buffers at offsets 8, else zero", "  z: 4 bytes, all zero", "  f: 1.0", "  n: 5",
        "  q: a buffer of 64 bytes", "simulating k with grid=1, block=(1,), shared=0", "finished; 0 hazards found",
    ]  # fmt: skip


def test_pointers_that_are_loaded_as_a_vector_have_buffers() -> None:
    params = ".param .align 16 .b64 s[4], .param .u64 p"
    body = """.reg .b64 %a<4>; .reg .b32 %x; mov.b32 %x, 1; ld.param.v2.u64 {%a0, %a1}, [s+16];
        ld.param.v2.u64 {%a2, _}, [s]; st.global.b32 [%a1], %x; add.u64 %a3, %a2, %a0;"""
    assert trial(".maxntid 1", params, body)[:2] == ["  s: 32 bytes, buffers at offsets 24, else zero", "  p: 5"]


def test_a_pointer_may_reach_an_address_earlier_in_the_text() -> None:
    body = """.reg .b64 %a<4>; .reg .b32 %x; mov.b32 %x, 1; bra load; use: st.global.b32 [%a3], %x; ret;
        add: add.u64 %a3, %a2, 4; bra use; move: mov.u64 %a2, %a1; bra add; load: ld.param.u64 %a1, [p]; bra move;"""
    assert trial(".maxntid 1", ".param .u64 p", body)[:1] == ["  p: a buffer of 64 bytes"]


@pytest.mark.parametrize("load", ["ld.param.foo %a0, [s];", "ld.param.v2.u32 {%x, %y}, [s]; st.shared.b32 [%y], %x;"])
def test_loads_of_no_pointer_leave_a_structure_without_buffers(load: str) -> None:
    text = f".entry k(.param .align 16 .b64 s[4]) {{ .reg .b64 %a<4>; .reg .b32 %x, %y; {load} ret; }}"
    module, _ = parse(f".version 8.0\n.target sm_90\n.address_size 64\n{text}\n", recover=True)
    (entry,) = (node for node in visit(module) if isinstance(node, Function))
    assert not find_pointers(entry) - {("s", 0)}


def test_a_number_is_at_most_the_largest_of_its_type() -> None:
    params = ".param .s8 a, .param .u16 b, .param .u32 c, .param .f64 d"
    assert trial(".maxntid 1", params, number=100_000)[:4] == ["  a: 127", "  b: 32767", "  c: 100000", "  d: 1.0"]


def test_dynamic_shared_memory_has_48_kilobytes() -> None:
    assert "shared=49152" in trial(".maxntid 1", before=".extern .shared .b8 pool[];\n")[0]


def test_a_kernel_that_reports_hazards_and_changes_bytes() -> None:
    body = ".reg .b32 %t;\n.reg .b64 %p;\nld.param.u64 %p, [p];\nmov.u32 %t, %tid.x;\nst.global.b32 [%p], %t;"
    lines = trial(".maxntid 64", ".param .u64 p", body)
    assert lines[:3] == [
        "  p: a buffer of 64 bytes", "simulating k with grid=1, block=(64,), shared=0", "  p: 1 of 64 bytes changed",
    ]  # fmt: skip
    assert lines[3] == "finished; 1 hazards found"
    assert "PTX09" in lines[4]


def test_a_kernel_that_does_not_end_is_stopped() -> None:
    body = ".reg .b64 %n;\nmov.b64 %n, 0;\nL:\nadd.u64 %n, %n, 1;\nbra L;"
    with raises(PtxError, match="more than 2000000 instructions"):
        trial(".maxntid 1", body=body)
