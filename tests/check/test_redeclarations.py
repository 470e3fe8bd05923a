"""Two declarations of one name: what the second must repeat from the first. ptxas checks every pair."""

from __future__ import annotations

from itertools import product

import pytest

from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.parser import parse
from pyptx.toolchain import validate

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
LINKINGS = ("", ".visible", ".extern", ".weak")
PROTOTYPES = [
    (".func f(.param .b32 r);", ".func f(.param .b32 r){ret;}"),
    (".func f(.param .b32 r);", ".func f(.param .u32 r){ret;}"),
    (".func f(.param .b32 r);", ".func f(.reg .b32 r){ret;}"),
    (".func f(.param .b32 r);", ".func f(.param .b32 r, .param .b32 q){ret;}"),
    (".func f(.param .b8 r[8]);", ".func f(.param .b8 r[16]){ret;}"),
    (".func f(.param .b8 r[]);", ".func f(.param .b8 r[4]){ret;}"),
    (".func f(.param .align 8 .b8 r[8]);", ".func f(.param .b8 r[8]){ret;}"),
    (".func f(.param .align 4 .b32 r);", ".func f(.param .b32 r){ret;}"),
    (".func f(.reg .align 8 .b64 r);", ".func f(.reg .b64 r){ret;}"),
    (".func f(.param .v2 .b32 r);", ".func f(.param .b64 r){ret;}"),
    (".func (.param .b32 o) f();", ".func (.param .b64 o) f(){ret;}"),
    (".func (.param .b32 o) f();", ".func f(){ret;}"),
    (".func f() .noreturn;", ".func f(){ret;}"),
    (".func f() .noreturn;", ".func f() .noreturn {ret;}"),
    (".entry f(.param .u64 .ptr .global r);", ".entry f(.param .u64 r){ret;}"),
    (".entry f(.param .align 64 .b8 r[64]);", ".entry f(.param .align 128 .b8 r[64]){ret;}"),
    (".entry f(){ret;}", ".func f(){ret;}"),
    ("", ".extern .func f(){ret;}"),
    ("", ".extern .entry f(){ret;}"),
]
VARIABLES = [
    (".extern .global .u32 g[];", ".visible .global .u32 g[4];"),
    (".extern .global .u32 g[4];", ".visible .global .u32 g[8];"),
    (".extern .global .u32 g[][3];", ".visible .global .u32 g[2][3];"),
    (".extern .global .u32 g[];", ".visible .global .u32 g[2][3];"),
    (".extern .global .u32 g;", ".visible .global .u64 g;"),
    (".extern .global .v2 .u32 g;", ".visible .global .u64 g;"),
    (".extern .global .align 8 .u32 g;", ".visible .global .u32 g;"),
    (".extern .shared .b8 s[];", ".extern .shared .align 16 .b8 s[];"),
    (".extern .shared .b8 s[];", ".extern .shared .b32 s[];"),
    (".common .global .u32 g;", ".common .global .u32 g;"),
    (".visible .global .u32 g; .extern .global .u32 g;", ".visible .global .u32 g;"),
    (".extern .global .u32 g; .visible .global .u32 g;", ".extern .global .u32 g;"),
    (".extern .global .u32 a,", "b = 3;"),
    *((f"{a} .global .u32 g;", f"{b} .global .u32 g;") for a, b in product(LINKINGS, LINKINGS)),
    *((f"{a} .global .u32 g;", f"{b} .global .u32 g = 1;") for a, b in product(LINKINGS, LINKINGS)),
]
FUNCTIONS = [(f"{a} .func f();", f"{b} .func f(){{ret;}}") for a, b in product(LINKINGS, LINKINGS)]


@pytest.mark.parametrize(("first", "second"), PROTOTYPES + VARIABLES + FUNCTIONS)
def test_ptxas_agrees(first: str, second: str) -> None:
    text = f"{HEADER}{first}\n{second}\n"
    findings = [d for d in check(parse(text)) if d.severity is Severity.ERROR]
    rejections = [d for d in validate(text) if d.severity is Severity.ERROR]
    assert bool(findings) == bool(rejections), (findings, rejections)
    assert all(d.line >= len(HEADER.splitlines()) + 1 for d in findings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ".func f(.param .b32 r);\n.func f(.param .u32 r){ret;}",
            "`r` was declared `.param .b32`, and now `.param .u32`",
        ),
        (
            ".func f(.param .align 8 .v2 .b32 r);\n.func f(.param .b8 r[16]){ret;}",
            "`r` was declared `.param .align 8 .v2 .b32`, and now `.param .b8[16]`",
        ),
        (
            ".func f(.param .b8 .align 8 r[8]);\n.func f(.param .b8 r[4]){ret;}",
            "`r` was declared `.param .align 8 .b8[8]`, and now `.param .b8[4]`",
        ),
        (".func f();\n.func f(.param .u32 r){ret;}", "it was declared with 0 parameters, and now with 1"),
        (".extern .func f();\n.func f(){ret;}", "it was declared `.extern`, and now without a linking directive"),
        (".extern .global .u32 g[4];\n.visible .global .u32 g[8];", "with size [4], and now [8]"),
        (".extern .global .u32 g;\n.global .u32 g;", "the definition needs a linking directive such as `.visible`"),
        (".extern .global .u32 g = 4;", "`g` is `.extern` but has an initial value"),
        (".extern .func f(){ret;}", "`f` is `.extern` but has a body"),
    ],
)
def test_message(text: str, message: str) -> None:
    (finding,) = check(parse(f"{HEADER}{text}\n"))
    assert message in finding.message


def test_the_definition_is_the_one_that_counts() -> None:
    text = ".extern .global .b32 g[];\n.visible .global .b32 g[4];\n.visible .global .b32 g[4];"
    (finding,) = check(parse(HEADER + text))
    assert finding.code == "PTX0402"
