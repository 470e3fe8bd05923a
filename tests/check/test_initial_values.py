"""Initial values of variables. ptxas checks every case."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.parser import parse
from pyptx.toolchain import validate

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n.global .u64 before;\n"
VALUES = [
    ".global .u32 g = 1;", ".global .u32 g = {1};", ".global .u32 g = {};", ".global .u32 g = {1, 2};",
    ".global .u32 g[2] = {1, 2, 3};", ".global .u32 g[2] = {1};", ".global .u32 g[2] = {};", ".global .u32 g[2] = 1;",
    ".global .u32 g[] = {1, 2, 3};", ".global .u32 g[2][2] = {{1, 2}, {3}};",
    ".global .u32 g[2][2] = {{1, 2, 3}, {1}};", ".global .u32 g[2][2] = {{1}, {1}, {1}};",
    ".global .u32 g[2][2] = {1, 2};", ".global .u32 g[2] = {{1, 2}};", ".global .u32 g[][2] = {{1}, {2}};",
    ".global .u32 g[] = {{1}, {2}};", ".global .u32 g[2][2] = {{}, {1}};", ".global .v2 .u32 g = {1, 2};",
    ".global .v2 .u32 g = 1;", ".global .v4 .f32 g = {1.0, 2.0};", ".global .v4 .f32 g = {1.0, 2.0, 3.0, 4.0, 5.0};",
    ".global .v2 .u32 g[2] = {{1, 2}, {3, 4}};", ".global .v2 .u32 g[2] = {1, 2, 3, 4};",
    ".global .v2 .u32 g[2] = {{1, 2, 3}, {3, 4}};", ".global .v2 .u32 g = {};",
    ".global .u32 g[1] = {1}, h[1] = {1, 2};", ".global .u8 g[2] = {0xFF(1), 2};",
    ".global .u8 g[2] = {0xFF(1), 2, 3};", ".global .u64 g = before;", ".global .u64 g = nowhere;",
    ".global .u64 g = after;\n.global .u64 after;", ".global .u64 g[2] = {g, g+8};",
    ".global .u64 g[2] = {before+4, 1};", ".global .u64 g = generic(before);", ".global .u64 g = generic(nowhere);",
    ".global .u8 g[2] = {0xFF(before), 0xFF00(before)};", ".global .u8 g[2] = {0xFF(nowhere)};",
    ".global .u32 g = 1.5;", ".global .u32 g = 0f3F800000;", ".global .f32 g = 2;", ".global .f32 g = 2.0;",
    ".global .f64 g = 0f3F800000;", ".global .f32 g = 1+2;", ".global .f32 g = 1.0+2.0;", ".global .b32 g = 1.5;",
    ".global .b64 g = 1.5;", ".global .f16 g = 1.5;", ".global .b16 g = 1;", ".global .s32 g = -1;",
    ".global .u32 g = 1 ? 2 : 3;", ".global .u32 g = 1/0;", ".shared .u32 g = 1;", ".shared .u32 g;",
    ".const .u32 g[2] = {1, 2};", ".const .f32 g[2] = {1.0, 2};", ".global .v2 .u32 g[2] = {{}, {1, 2}};",
]  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_ptxas_agrees(text: str) -> None:
    source = f"{HEADER}{text}\n"
    findings = [d for d in check(parse(source)) if d.severity is Severity.ERROR]
    rejections = [d for d in validate(source) if d.severity is Severity.ERROR]
    assert bool(findings) == bool(rejections), (findings, rejections)
    assert [d.code for d in findings] in ([], ["PTX0412"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".global .u32 g[2] = {1, 2, 3};", "`g` has 2 elements here, but 3 values"),
        (".global .u64 g = nowhere;", "`nowhere` in the value of `g` must be declared before it"),
        (".global .f32 g = 2;", "`g` is .f32, which takes floating-point numbers, such as 1.0"),
        (".global .v4 .f32 g = {1.0, 2.0};", "a vector of 4 in `g` has 2 values"),
        (".global .u32 g = {1};", "so its value must be written without braces"),
        (".shared .u32 g = 1;", "`g` is in .shared; only .global and .const variables have initial values"),
    ],
)
def test_message(text: str, message: str) -> None:
    (finding,) = check(parse(f"{HEADER}{text}\n"))
    assert message in finding.message
