"""What each syntax error underlines in statements and directives: the list of messages quotes it."""

from __future__ import annotations

import pytest

from pyptx.emitter import emit
from pyptx.parser import parse
from tests.messages import assert_listed
from tests.parser.test_errors import HEAD, kernel

STATEMENTS = [
    "mov.u64 %r1, g-4;", "mov.f32 %r1, 1+0f3F800000;", "mov.f32 %r1, -0f3F800000;", "mov.b32 %r1, 1+g;",
    "mov.b32 %r1, 1+%r2;", "mov.b32 %r1, (.u32)4;", "mov.b32 %r1, (.s64 4;", "mov.b32 %r1, %r2.q;",
    "mov.b32 %r1, 1?2;", "mov.b32 %r1, 1?2,3;", "add.s32 (%r1), %r2, %r3;", "mov.b32 %r1, {%r2;",
    "mov.b32 %r1, {%r2, };", "ld.b32 %r1, [%r2;", "call (%r1, f;", "call f, (%r1;", "mov.b32 %r1, 1é;",
    "mov.b32 %r1, $;", "mov.b32 %r1, %;", "mov.b32 %r1, 'a';", "mov.b32 %r1, 0x;", "mov.b32 %r1, 09;",
    "mov.b32 %r1, 1.5.2;", "mov.b32 %r1, 0f12;", "ret\nret;", "ret", "bra L\n}", "@%p1\nret", "@ret;", ".loc 1 2;",
    ".loc x;", ".reg .b32 1;", ".reg .b99 %r;", ".reg %r;", ".reg .b32 %r<>;", ".reg .b32 %r<4;", ".shared .b8 a[;",
    ".shared .b8 a[4;", ".shared .align x .b8 a;", ".local .b8 a = 4", ".pragma nounroll;", '.pragma "a"',
    "foo: .branchtargets 5;", "foo: .callprototype ;", ".branchtargets a b;", "call f, (%r1), g h;",
    "mov.b32 %r1, ~%r2;", "mov.b32 %r1, a[;", "mov.b32 %r1, a[1;", "mov.b32 %r1, a[1][2];",
    "mov.b32 %r1, generic(a);", "mov.b32 %r1, (1;", "mov.b32 %r1, 0xFF(a);", "{ ret; ", "} }", ".entry x() {}",
    ".b8 1;", "ld.b32 %r1, [g+%r2];", "ld.b32 %r1, [%r2-%r3];", "ld.b32 %r1, [];", "ld.b32 %r1, [4 5];",
    "mov.\nb32 %r1, %r2;", "mov.b32. %r1;",
]  # fmt: skip
DIRECTIVES = [
    ".global .u32 x = ;", ".global .u32 x = {1;", ".global .u32 x = {1,};", ".global .u32 x = generic(;",
    ".global .u32 x = generic(4);", ".global .u32 x = 0xFF(;", ".global .u32 x = 0xFF(y;", ".global u32 x;",
    ".global .u32 x,;", ".const[x] .u32 a;", ".entry k(.b32 a) {}", ".entry k(.param b32 a) {}",
    ".func (.reg .b32 a f() {}", ".func (.global .b32 a) f() {}", ".entry {}", ".entry k() .maxntid {}",
    ".entry k() .maxntid x {}", ".entry k() .nothing {}", ".visible .target sm_90;", ".alias a;", ".alias a, 4;",
    ".file x;", ".file 1 a;", ".section .a", ".section .a { x }", ".section .a { .b8 1 2 }", ".section .a { .b8 a- }",
    ".versio 1", "x: .b8", "@@DWARF", "@@DWARF .byte", "@@x", ".target", ".entry k() {} }", '"a"', ".func _() {}",
    ".address_size x", ".address_size 64.0", ".entry k(.param .u64 .ptr .global .align a) {}",
    ".entry k(.param .u64 .ptr .foo a) {}", ".entry k(.param .b8 a[) {}", '.pragma "x" "y";', ".weak",
    ".extern .func f() {", "é", "`",
]  # fmt: skip


HEADERS = ["", ".version 8.8", ".version 8.8 `", ".version 8.8\n.address_size 64\n", ".version 8\n", ".target sm_90a\n"]


@pytest.mark.parametrize("text", [*map(kernel, STATEMENTS), *(f"{HEAD}{text}\n" for text in DIRECTIVES), *HEADERS])
def test_an_error_underlines(text: str) -> None:
    module, diagnostics = parse(text, recover=True)
    assert diagnostics
    assert_listed(diagnostics, text)
    assert emit(module) == text
