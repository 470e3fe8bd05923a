"""Names: scopes, ranges, labels, functions. ptxas agrees on each case."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.diagnostics import Severity, Span
from pyptx.parser import parse
from pyptx.toolchain import validate
from tests.check.report import BODY_LINE, HEADER, report

CASES: list[tuple[str, list[str]]] = [
    (".reg .b32 %r2;", ["PTX0402 1"]),
    (".reg .f32 %r<4>;", ["PTX0402 1"]),
    (".reg .b32 x, x;", ["PTX0402 1"]),
    ("{ .reg .f32 %r2; add.f32 %r2, %r2, %r2; }", []),
    ("{ .reg .b32 b; mov.b32 b, 1; }\nmov.b32 b, 1;", ["PTX0401 2"]),
    ("{ .reg .b32 b; mov.b32 b, 1; }\n{ .reg .b32 b; mov.b32 b, 1; }", []),
    ("mov.b32 %r32, 1;", ["PTX0401 1"]),
    ("mov.b32 %r31, 1;", []),
    ("mov.b32 %r031, 1;", []),
    ("mov.b32 %nobody, 1;", ["PTX0401 1"]),
    ("mov.u32 %r0, %tidx;", ["PTX0401 1"]),
    ("L: { bra L; }", []),
    ("{ L: bra L; }\nbra L;", ["PTX0403 2"]),
    ("{ L: bra L; }\n{ L: bra L; }", []),
    ("L: mov.b32 %r0, 1;\nL: ret;", ["PTX0402 2"]),
    ("bra nowhere;", ["PTX0403 1"]),
    ("call nobody;", ["PTX0404 1"]),
    ("call (%r0), f, (%r1, %r2);", ["PTX0405 1"]),
    ("call (%r0), f, (%rd1);", ["PTX0406 1"]),
    ("call k;", ["PTX0407 1"]),
    (".local .b32 l;\nld.local.b32 %r0, [l];", []),
    (".shared .b32 tile;", ["PTX0402 1"]),
]


@pytest.mark.parametrize(("body", "findings"), CASES)
def test_names(body: str, findings: list[str]) -> None:
    assert [f for f in report(body) if f[:7] != "PTX0503"] == findings


@pytest.mark.parametrize(("body", "findings"), CASES)
def test_ptxas_agrees(body: str, findings: list[str]) -> None:
    text = HEADER.format(target="sm_90a", version="8.6") + body + "\n    ret;\n}\n"
    assert bool([d for d in validate(text) if d.severity is Severity.ERROR]) == bool(findings)


@pytest.mark.parametrize(
    ("directive", "target", "version", "code"),
    [
        (".blocksareclusters .reqntid 128 .reqnctapercluster 2", "sm_90", "8.0", "PTX0301"),
        (".blocksareclusters .reqntid 128 .reqnctapercluster 2", "sm_90", "9.0", None),
        (".reqnctapercluster 2", "sm_80", "8.0", "PTX0302"),
    ],
)
def test_directives_are_available(directive: str, target: str, version: str, code: str | None) -> None:
    text = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {directive} {{ ret; }}\n"
    assert [d.code for d in check(parse(text))] == ([code] if code else [])
    assert bool([d for d in validate(text) if d.severity is Severity.ERROR]) == bool(code)


@pytest.mark.parametrize(
    ("declaration", "line"),
    [
        (".shared .align 12 .b8 x[16];", 1),
        (".local .align 0 .b8 x[16];", 1),
        (".shared .align 1 .b8 x[16];", None),
        (".shared .align 4096 .b8 x[16];", None),
    ],
)
def test_alignments_are_powers_of_two(declaration: str, line: int | None) -> None:
    assert report(declaration) == ([f"PTX0408 {line}"] if line else [])
    text = HEADER.format(target="sm_90a", version="8.6") + declaration + "\n    ret;\n}\n"
    assert bool(validate(text)) == bool(line)


def test_the_alignment_of_a_parameter() -> None:
    text = ".version 8.6\n.target sm_90\n.address_size 64\n.entry k(.param .align 12 .b8 x[16]) { ret; }\n"
    assert [d.code for d in check(parse(text))] == ["PTX0408"]


@pytest.mark.parametrize(
    ("functions", "codes"),
    [
        (".func f(); .func f() { ret; }", []),
        (".func f() { ret; } .func f();", ["PTX0402"]),
        (".func f(); .func f();", []),
        (".func f() { ret; } .func f() { ret; }", ["PTX0402"]),
        (".global .u32 f; .func f() { ret; }", ["PTX0402"]),
    ],
)
def test_a_function_is_declared_often_and_then_defined_once(functions: str, codes: list[str]) -> None:
    text = f".version 8.6\n.target sm_90\n.address_size 64\n{functions}\n"
    assert [d.code for d in check(parse(text))] == codes
    assert bool([d for d in validate(text) if d.severity is Severity.ERROR]) == bool(codes)


@pytest.mark.parametrize(
    ("version", "target", "pragma", "codes"),
    [
        ("8.2", "sm_90", "used_bytes_mask 3", ["PTX0301"]),
        ("8.3", "sm_90", "used_bytes_mask 3", []),
        ("8.7", "sm_70", "enable_smem_spilling", ["PTX0302"]),
        ("8.7", "sm_75", "enable_smem_spilling", []),
        ("8.7", "sm_75", "unheard_of", []),
    ],
)
def test_a_pragma_is_available(version: str, target: str, pragma: str, codes: list[str]) -> None:
    text = f'.version {version}\n.target {target}\n.address_size 64\n.entry k() {{ .pragma "{pragma}"; ret; }}\n'
    assert [d.code for d in check(parse(text))] == codes


def test_a_guard_is_pointed_at() -> None:
    text = HEADER.format(target="sm_90a", version="8.6") + "@!%r1 ret;\n@%p9 ret;\n    ret;\n}\n"
    findings = [(d.code, d.origin) for d in check(parse(text)) if d.code < "PTX0500"]
    assert findings == [("PTX0206", Span(BODY_LINE, 1, 5)), ("PTX0401", Span(BODY_LINE + 1, 1, 4))]


def test_a_second_declaration_names_the_line_of_the_first() -> None:
    text = ".version 8.6\n.target sm_90\n.address_size 64\n.entry k() {\n.reg .b32 x;\n.reg .f32 y, x;\nret; }\n"
    finding = check(parse(text))[0]
    assert (finding.line, finding.col) == (6, 14)
    assert finding.message == "register `x` is already declared in this block, on line 5"
