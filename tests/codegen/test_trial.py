"""The trial run of a generated file: the block that a kernel allows, and arguments made for its parameters."""

from __future__ import annotations

import pytest

from pyptx.codegen.trial import run_trial
from pyptx.ir import Function, visit
from pyptx.parser import parse


def trial(directives: str, params: str = "", body: str = "", block: int | None = None) -> list[str]:
    """Return what the run of a kernel prints."""
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    module = parse(f"{head}.entry k({params}) {directives}\n{{\n{body}\nret;\n}}\n")
    (entry,) = (node for node in visit(module) if isinstance(node, Function))
    return list(run_trial(module, entry, 1, block, 64, 5))


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
