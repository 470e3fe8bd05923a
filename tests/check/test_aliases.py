"""`.alias`: which functions can have a second name, and which name that can be. ptxas checks every case."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.parser import parse
from pyptx.toolchain import AssemblyError, assemble

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
BODY = "{ st.param.b32 [r], 1; ret; }"
G = f".visible .func (.param .b32 r) g(.param .b32 a) {BODY}\n"
F = ".visible .func (.param .b32 r) f(.param .b32 a);\n"
H = F.replace(" f(", " h(")
ALIAS = ".alias f, g;\n"
CALL = ".visible .entry c() {{ .param .b32 x; .param .b32 y; call (y), {}, (x); ret; }}\n"
ENTRY = ".visible .entry k() { ret; }\n"

LEGAL = {
    "as usual": G + F + ALIAS,
    "the body follows": G.replace(BODY, ";") + F + ALIAS + G,
    "the prototype again": G + F + ALIAS + F,
    "a private function": G.removeprefix(".visible ") + F + ALIAS,
    "a weak name": G + F.replace(".visible", ".weak") + ALIAS,
    "an external name": G + F.replace(".visible", ".extern") + ALIAS,
    "two names": G + F + H + ALIAS + ".alias h, g;\n",
}
ILLEGAL = {
    "twice": (G + F + ALIAS + ALIAS, "`f` already has an alias, of `g`"),
    "an alias of an alias": (G + F + H + ALIAS + ".alias h, f;\n" + CALL.format("h"), "`f` is itself an alias"),
    "undeclared": (G + ALIAS, "`f` must be declared as a function before its alias"),
    "declared later": (G + ALIAS + F, "`f` must be declared as a function before its alias"),
    "a variable": (G + ".global .u32 f;\n" + ALIAS, "`f` must be declared as a function before its alias"),
    "a name with a body": (G + F.replace(";", BODY) + ALIAS, "`f` is a function with a body"),
    "of itself": (G + ".alias g, g;\n", "`g` is a function with a body"),
    "the name of an entry": (".func g() { ret; }\n.entry f();\n" + ALIAS, "`f` is an entry"),
    "of an undeclared function": (F + ALIAS, "`g` must be declared as a function before its alias"),
    "of a later function": (F + ALIAS + G, "`g` must be declared as a function before its alias"),
    "of a variable": (".global .u32 g;\n" + F + ALIAS, "`g` must be declared as a function before its alias"),
    "of an entry": (".entry g() { ret; }\n.func f();\n" + ALIAS, "`g` is an entry"),
    "of an external function": (G.replace(".visible", ".extern").replace(BODY, ";") + F + ALIAS, "`g` is `.extern`"),
    "of a weak function": (G.replace(".visible", ".weak") + F + ALIAS, "`g` is `.weak`"),
    "of a function without a body": (
        G.replace(BODY, ";") + F + ALIAS + CALL.format("f"),
        "`g` has no body in this module",
    ),
    "the number of results": (G + ".func f(.param .b32 a);\n" + ALIAS, "which has 1 result; the alias has 0"),
    "the number of parameters": (
        G + ".func (.param .b32 r) f(.param .b32 a, .param .b32 b);\n" + ALIAS,
        "which has 1 parameter; the alias has 2",
    ),
    "the type of a parameter": (
        G + F.replace("b32 a", "s32 b") + ALIAS,
        "`f` cannot stand for `g`, whose parameter `a` is `.param .b32`; the alias has `.param .s32`",
    ),
    "the space of a result": (
        G + F.replace(".param .b32 r", ".reg .b32 r") + ALIAS,
        "whose result `r` is `.param .b32`; the alias has `.reg .b32`",
    ),
    "whether it returns": (".func g() { ret; }\n.func f() .noreturn;\n" + ALIAS, "only one of them is `.noreturn`"),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    text = HEADER + LEGAL[name] + ENTRY
    assert assemble(text)
    assert check(parse(text)) == []


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal(name: str) -> None:
    text, message = ILLEGAL[name]
    with pytest.raises(AssemblyError):
        assemble(HEADER + text + ENTRY)
    finding = next(d for d in check(parse(HEADER + text + ENTRY)) if d.code == "PTX0415")
    assert message in finding.message
    assert text.splitlines()[finding.line - 4].startswith(".alias")
