"""Syntax errors: place, message, remedy; several per text; recovery loses nothing."""

from __future__ import annotations

import pickle

import pytest

from pyptx.diagnostics import PtxError
from pyptx.emitter import emit
from pyptx.ir import Function, FunctionDirective, Instruction, SkippedText, visit
from pyptx.parser import LexError, ParseError, PtxSyntaxError, parse
from tests.messages import assert_listed, raises

HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"


def kernel(body: str) -> str:
    """Return a module in which the lines of `body` start at line 7."""
    return f"{HEAD}.entry k()\n{{\n    .reg .b32 %r<4>;\n{body}\n    ret;\n}}\n"


CASES = [
    ("add.s32 %r1, %r2, %r3\nmov.b32 %r1, 1;", "PTX0002", 7, 22, "expected `;` after the operands, found `mov`"),
    ("add.s32 %r1, %r2 %r3;", "PTX0001", 7, 18, "expected `,` or `;` after the operands, found `%r3`"),
    ("add.s32 %r1, %r2,\nmov.b32 %r1, 1;", "PTX0001", 7, 17, "expected an operand, found the instruction `mov.b32`"),
    ("setp.eq.s32 %p1|%p2|%p3, %r1, 1;", "PTX0001", 7, 20, "expected `,` or `;` after the operands, found `|`"),
    ("setp.eq.s32 !%p1|%p2, %r1, 1;", "PTX0001", 7, 17, "expected `,` or `;` after the operands, found `|`"),
    ("ret\n", "PTX0002", 7, 4, "expected `;` after `ret`, found `ret`"),
    (".reg .b32 %x\n.reg .b32 %y;", "PTX0002", 7, 13, "expected `;` after the declaration, found `.reg`"),
    ("add.s32 %r1, %r2, 09;", "PTX0006", 7, 19, "`09` is not a valid number"),
    ("mov.f32 %r1, 1.5f;", "PTX0006", 7, 14, "`1.5f` is not a valid number"),
    ("ld.shared.b32 %r1, [%r2-4];", "PTX0012", 7, 24, "expected `+`, found `-`"),
    ("ld.shared.b32 %r1, [%r2;", "PTX0001", 7, 24, "expected `,` or `]`, found `;`"),
    ("mov.b32 %r1, 1+%r2;", "PTX0012", 7, 16, "expected a constant, found `%r2`"),
    ("mov.f32 %r1, -0f3F800000;", "PTX0012", 7, 15, "is an exact value and cannot have an operator"),
    ("mov.b32 %r1, 1 ? 2;", "PTX0001", 7, 19, "expected `:`, found `;`"),
    ("mov.b32 %r1, (%r2);", "PTX0001", 7, 14, "expected an operand, found a parenthesized list"),
    ("mov.b32 {}, %r1;", "PTX0001", 7, 10, "expected an operand, found `}`"),
    (".regs .b32 %x;", "PTX0008", 7, 1, "`.regs` is not allowed in a function body"),
    (".reg .f33 %x;", "PTX0009", 7, 6, "expected a type such as `.b32`, found `.f33`"),
    ("%r1 = 4;", "PTX0001", 7, 1, "expected an instruction, found `%r1`"),
    ("mov.b32 %r1, %r2;;", "PTX0001", 7, 18, "expected a statement, found `;`"),
    ("@_ ret;", "PTX0001", 7, 2, "expected a predicate register, found `_`"),
    ("mov.b32 %r1, `;", "PTX0005", 7, 14, "unexpected character '`'"),
    ("/* never", "PTX0004", 7, 1, "this comment is never closed"),
    ('.pragma "never;', "PTX0004", 7, 9, "this string is never closed"),
    ("{ ret;", "PTX0003", 4, 1, "the `{` of this function is never closed"),
    ("}", "PTX0010", 8, 5, "expected a directive, found `ret`"),
]


@pytest.mark.parametrize(("body", "code", "line", "col", "message"), CASES, ids=[case[0] for case in CASES])
def test_an_error_says_where_and_what(body: str, code: str, line: int, col: int, message: str) -> None:
    text = kernel(body)
    with pytest.raises(PtxSyntaxError) as excinfo:
        parse(text)
    assert_listed(excinfo.value.diagnostics, text)
    first = excinfo.value.diagnostics[0]
    assert (first.code, first.line, first.col) == (code, line, col)
    assert message in first.message
    assert (excinfo.value.line, excinfo.value.col) == (line, col)
    assert "^" in str(excinfo.value)


@pytest.mark.parametrize("body", [case[0] for case in CASES])
def test_recovery_keeps_every_byte(body: str) -> None:
    text = kernel(body)
    module, diagnostics = parse(text, recover=True)
    assert diagnostics
    assert emit(module) == text


EXACT: list[tuple[str, list[tuple[str, int, int, str, str | None]]]] = [
    (kernel("mov.b32 %r1, 1+(%r2);"),
     [("PTX0001", 7, 20, "expected a constant expression in these parentheses, found `)`", None)]),
    (kernel("mov.b32 %r1, 1+(-%r2);"),
     [("PTX0001", 7, 21, "expected a constant expression in these parentheses, found `)`", None)]),
    (kernel("mov.b32 %r1, 1+(-2);"), []),
    (kernel("mov.b32 %r1, 1+(~2);"), []),
    (kernel("mov.b32 %r1, 1+[%r2];"), [("PTX0001", 7, 16, "expected a constant, found `[`", None)]),
    (kernel("ld.b32 %r1, [{%r2}];"),
     [("PTX0001", 7, 19, "expected a register, a symbol or a constant as the address, found `]`", None)]),
    (kernel("ld.b32 %r1, [-%r2];"),
     [("PTX0001", 7, 18, "expected a register, a symbol or a constant as the address, found `]`", None)]),
    (kernel("ld.b32 %r1, [-2];"), []),
    (kernel("ld.b32 %r1, [%r2+4, {%r1}];"),
     [("PTX0001", 7, 26, "an address with coordinates cannot have an offset", "add the offset to a register first")]),
    (kernel("mov.f32 %r1, 0f3F800000+1;"),
     [("PTX0012", 7, 24, "`0f3F800000` is an exact value and cannot have an operator",
       "use the 0d form or a decimal number")]),
    (HEAD + ".global .attribute(managed) .u32 x;\n",
     [("PTX0001", 4, 20, "expected an attribute such as `.managed`, found `managed`", None)]),
    (HEAD + ".entry k() .language x {}\n", [("PTX0001", 4, 22, "expected an integer or a string, found `x`", None)]),
    (HEAD + '.entry k() .pragma "a", b; {}\n', [("PTX0001", 4, 25, "expected a string, found `b`", None)]),
    (HEAD + ".section a {}\n",
     [("PTX0001", 4, 10, "expected the name of a section, such as `.debug_info`, found `a`", None)]),
    (HEAD + ".section .a { .b8 WARP_SZ }\n",
     [("PTX0001", 4, 19, "expected an integer, a label or a section, found `WARP_SZ`", None)]),
    (HEAD + ".section .a { .b8 ( }\n",
     [("PTX0001", 4, 19, "expected an integer, a label or a section, found `(`", None)]),
    (HEAD + '@@DWARF "x"\n', [("PTX0001", 4, 9, 'expected a directive or a label, found `"x"`', None)]),
    (HEAD + "@@DWARF .byte 1,",
     [("PTX0001", 4, 17, "expected an integer, a label or a section, found the end of the file", None)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), EXACT)
def test_an_error_states_exactly(text: str, expected: list[tuple[str, int, int, str, str | None]]) -> None:
    module, diagnostics = parse(text, recover=True)
    assert [(d.code, d.line, d.col, d.message, d.help) for d in diagnostics] == expected
    assert_listed(diagnostics, text)
    assert emit(module) == text


def test_the_directives_of_a_function_keep_their_values() -> None:
    module = parse(HEAD + '.entry k() .pragma "a", "b"; .language "ptx", 5 {}\n')
    (entry,) = module.directives
    assert isinstance(entry, Function)
    assert entry.directives == (FunctionDirective("pragma", ("a", "b")), FunctionDirective("language", ("ptx", 5)))


def test_an_error_travels_to_another_process() -> None:
    with raises(PtxSyntaxError) as caught:
        parse(kernel("add.s32 %r1 %r2;\nmov.b32 %r1 1;"))
    error = caught.value
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is PtxSyntaxError
    assert (copied.message, copied.line, copied.col) == (error.message, error.line, error.col) == (error.message, 7, 13)
    assert (copied.diagnostics, str(copied)) == (error.diagnostics, str(error))


def test_all_errors_are_reported() -> None:
    text = kernel("add.s32 %r1 %r2;\nmov.b32 %r1, 1;\nmov.b32 %r1 1;\n.reg %x;")
    with raises(PtxSyntaxError) as excinfo:
        parse(text)
    assert [d.line for d in excinfo.value.diagnostics] == [7, 9, 10]


def test_recovery_keeps_the_good_statements() -> None:
    module, diagnostics = parse(kernel("add.s32 %r1 %r2;\nmov.b32 %r1, 1;"), recover=True)
    assert len(diagnostics) == 1
    assert [s.opcode for s in visit(module) if isinstance(s, Instruction)] == ["mov", "ret"]
    assert sum(isinstance(s, SkippedText) for s in visit(module)) == 1


def test_a_missing_semicolon_does_not_cost_the_next_statement() -> None:
    module, _ = parse(kernel("add.s32 %r1, %r2, %r3\nmov.b32 %r1, 1;"), recover=True)
    assert [s.opcode for s in visit(module) if isinstance(s, Instruction)] == ["mov", "ret"]


def test_the_body_after_a_bad_header_is_still_read() -> None:
    text = f"{HEAD}.entry k() .maxntd 32\n{{\nadd.s32 %r1 1;\nret;\n}}\n.entry l() {{ ret; }}\n"
    module, diagnostics = parse(text, recover=True)
    assert [d.line for d in diagnostics] == [4, 6]
    assert diagnostics[0].help == "did you mean `.maxntid`?"
    assert [s.name for s in visit(module) if isinstance(s, Function)] == ["l"]
    assert emit(module) == text


@pytest.mark.parametrize(
    "text", ["", "\n", "hello", ".target sm_90\n", ".version 8\n", ".version 8.0\n.globl x;", "\0"]
)
def test_a_module_needs_its_header(text: str) -> None:
    module, diagnostics = parse(text, recover=True)
    assert len(diagnostics) >= 1
    assert emit(module) == text


def test_a_text_that_is_no_ptx_at_all_ends_early() -> None:
    module, diagnostics = parse(HEAD + "} " * 5000, recover=True)
    assert len(diagnostics) == 1000
    assert emit(module) == HEAD + "} " * 5000


def test_the_error_is_one_type() -> None:
    assert ParseError is LexError is PtxSyntaxError
    error = ParseError("no", 3, 4)
    assert isinstance(error, PtxError)
    assert (error.message, error.line, error.col) == ("no", 3, 4)
    assert "no" in str(error)
    assert ParseError("no", 3).col == 0
    bare = ParseError("no")
    assert (bare.line, bare.col, str(bare)) == (0, 0, "error[PTX0001]: no")


def test_crlf_and_tabs_count_as_columns() -> None:
    with raises(PtxSyntaxError) as excinfo:
        parse(kernel("\tadd.s32 %r1 %r2;").replace("\n", "\r\n"))
    assert (excinfo.value.line, excinfo.value.col) == (7, 14)


def test_a_missing_opening_brace_is_one_error() -> None:
    text = f"{HEAD}.entry k()\n.reg .b32 %r<4>;\nmov.b32 %r1, 1;\nL: bra L;\nret;\n}}\n.entry l() {{ ret; }}\n"
    module, diagnostics = parse(text, recover=True)
    assert [(d.line, d.message) for d in diagnostics] == [(5, "expected `{` before the body, found `.reg`")]
    assert [s.name for s in visit(module) if isinstance(s, Function)] == ["l"]


def test_statements_outside_functions_are_one_error_until_the_next_function() -> None:
    text = f"{HEAD}mov.b32 %r1, 1;\nret;\n}}\n.entry k() {{ ret; }}\n}}\nret;\n"
    assert [(d.line, d.code) for d in parse(text, recover=True)[1]] == [(4, "PTX0010"), (8, "PTX0003"), (9, "PTX0010")]


@pytest.mark.parametrize(
    ("body", "help"),
    [
        ("%p1 bra L;", "a guard starts with `@`: `@%p1`"),
        ("%r1 = add.s32 %r2, %r3;", "the destination is the first operand: `mov.b32 %r1, %r2;`"),
        (".extern .shared .b8 x[];", "move it outside the function"),
        (".entry x() { ret; }", "move it outside the function"),
        (
            "# a comment",
            'a comment starts with `//`; `#` is allowed only in a line marker such as `# 1 "file.cu"`, on its own line',
        ),
    ],
)
def test_the_remedy_is_what_was_meant(body: str, help: str) -> None:
    assert parse(kernel(body), recover=True)[1][0].help == help


def test_a_misspelled_word_after_visible() -> None:
    assert parse(f"{HEAD}.visible .enrty k() {{ ret; }}\n", recover=True)[1][0].help == "did you mean `.entry`?"


@pytest.mark.parametrize("body", ["mov.b64 %r1, {};", "ld.b32 %r1, [%r2+{}];", ".reg .b32 %x<{}>;", ".loc 1 {} 1"])
@pytest.mark.parametrize("number", ["9" * 5000, "0" * 5000])
def test_a_number_too_long_to_read_is_an_error(body: str, number: str) -> None:
    assert {d.code for d in parse(kernel(body.format(number)), recover=True)[1]} <= {"PTX0006", "PTX0001"}
    with raises(PtxSyntaxError):
        parse(kernel(body.format(number)))


def test_a_version_too_long_to_read_is_an_error() -> None:
    with raises(PtxSyntaxError, match="expected a version such as"):
        parse(f".version {'9' * 5000}.0\n.target sm_90\n")
