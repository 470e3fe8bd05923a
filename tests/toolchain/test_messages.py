"""Messages of ptxas and nvJitLink as diagnostics. The texts are from ptxas 13.5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.diagnostics import Origin, Severity, Span
from pyptx.toolchain import AssemblyError, assemble, parse_log, validate
from pyptx.toolchain.cubin import Engine
from tests.toolchain.modules import HEAD, SMALL

ENGINES: list[Engine] = ["ptxas", "nvjitlink"]

CASES = [
    ("ptxas a.ptx, line 9; error   : Unknown symbol 'L'", "error", "PTX0710", "a.ptx", 9, "Unknown symbol 'L'"),
    (
        "ptxas application ptx input, line 1; fatal   : Unsupported .version 9.9; current version is '9.5'",
        "error",
        "PTX0712",
        None,
        1,
        "Unsupported .version 9.9; current version is '9.5'",
    ),
    (
        "ptxas input.ptx, line 3; fatal   : Parsing error near '1': syntax error",
        "error",
        "PTX0711",
        None,
        3,
        "Parsing error near '1': syntax error",
    ),
    (
        "ptxas fatal   : Unexpected non-ASCII character encountered on line 11",
        "error",
        "PTX0712",
        None,
        11,
        "Unexpected non-ASCII character encountered on line 11",
    ),
    (
        "ptxas warning : Program uses 32-bit address on line '17' which is conflicting with .address_size 64",
        "warning",
        "PTX0713",
        None,
        17,
        None,
    ),
    ("ptxas /a b, line 3;x, line 4; warning : hm", "warning", "PTX0713", "/a b, line 3;x", 4, "hm"),
    ("error   : Undefined reference to 'ff' in 'in.ptx'", "error", "PTX0710", None, 0, None),
    ("ptxas fatal   : Value 'sm_999' is not defined for option 'gpu-name'", "error", "PTX0704", None, 0, None),
    (
        "ptxas info    : (C7517) wgmma.wait_group is injected in around line 4 by compiler",
        "note",
        "PTX0714",
        None,
        4,
        "(C7517) wgmma.wait_group is injected in around line 4 by compiler",
    ),
]


@pytest.mark.parametrize(("text", "severity", "code", "file", "line", "message"), CASES)
def test_one_message(text: str, severity: str, code: str, file: str | None, line: int, message: str | None) -> None:
    (finding,) = parse_log(text)
    assert (str(finding.severity), finding.code, finding.line) == (severity, code, line)
    assert (finding.origin.file if finding.origin else None) == file
    assert finding.message == (message or text.split(": ", 1)[1])


def test_statistics_and_closing_words_are_left_out() -> None:
    log = (
        "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas info    : Function properties for k\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 8 registers, used 0 barriers\nptxas info    : Compile time = 1.179 ms\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
        "ERROR NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX (in.ptx)\nERROR 9: complete\n"
        "info    : used 8 registers, used 5 barriers, 0 stack, 0 bytes smem, 536 bytes cmem[0], 0 bytes lmem\n"
    )
    assert parse_log(log) == ()


def test_lines_that_go_on_are_notes_and_repeats_are_dropped() -> None:
    findings = parse_log("ptxas a.ptx, line 2; error   : one\n   more of it\nptxas a.ptx, line 2; error   : two\n" * 2)
    assert [(d.message, d.notes) for d in findings] == [("one", ("more of it",)), ("two", ())]


def test_the_caret_is_on_the_word_that_the_message_quotes() -> None:
    (finding,) = parse_log("ptxas input.ptx, line 2; error   : Unknown symbol '%r1'", "x\n  add %r11, %r1, %r2;\r\n")
    assert finding.origin == Span(2, 13, 3)


def test_the_caret_is_under_the_statement_when_the_word_is_there_twice() -> None:
    (finding,) = parse_log("ptxas input.ptx, line 1; error   : Bad '%r1'", "  add %r1, %r1;\r")
    assert finding.origin == Span(1, 3, 13)


def test_a_line_past_the_end_has_a_place_all_the_same() -> None:
    (finding,) = parse_log("ptxas input.ptx, line 77; error   : x", "a\n")
    assert finding.origin == Span(77, 1, 1)


def test_lines_of_generated_ptx_are_reported_where_they_were_written() -> None:
    def map_line(line: int) -> Origin | None:
        return Span(100, 5, 1, "kernel.py") if line == 2 else None

    log = "ptxas input.ptx, line 2; error   : a\nptxas input.ptx, line 3; error   : b\n"
    first, second = parse_log(log, "\n\n\n", map_line)
    assert (str(first.origin), first.notes) == ("kernel.py:100:5", ("line 2 of the PTX",))
    assert (second.line, second.notes) == (3, ())


def test_a_named_source_is_not_mistaken_for_the_ptx() -> None:
    """`# 1 "file"` makes ptxas count lines of that file."""
    text = '# 1 "kernel.cu"\n' + SMALL.replace("add.s32", "addd.s32")
    (finding,) = validate(text)
    assert str(finding.origin) == "kernel.cu:10:1"


BROKEN = {
    "two errors": SMALL.replace("%r1, 1", "%r7, 1").replace("ld.global.u32", "ld.global.u33"),
    "syntax": SMALL.replace("%r1, 1", "%r1 1"),
    "unknown instruction": SMALL.replace("add.s32", "addd.s32"),
    "other target": SMALL.replace("sm_90a", "sm_100a"),
    "future version": SMALL.replace("8.0", "9.9"),
    "not ASCII": SMALL.replace("%r1, 1", "%r\u00e9, 1"),
    "too much constant": SMALL.replace(HEAD, HEAD + ".const .b8 c[70000];\n").replace("[%rd+4]", "[c]"),
}


@pytest.mark.parametrize("name", [n for n in BROKEN if n != "too much constant"])
def test_both_assemblers_and_the_check_alone_say_the_same(name: str) -> None:
    messages: list[tuple[tuple[str, int, int, str], ...]] = []
    for engine in ENGINES:
        with pytest.raises(AssemblyError) as excinfo:
            assemble(BROKEN[name], "sm_90a", engine=engine)
        messages.append(tuple((d.code, d.line, d.col, d.message) for d in excinfo.value.diagnostics))
    messages.append(tuple((d.code, d.line, d.col, d.message) for d in validate(BROKEN[name], "sm_90a")))
    assert messages[0] == messages[1] == messages[2] != ()


def test_several_errors_come_at_once_with_their_places() -> None:
    findings = validate(BROKEN["two errors"])
    assert {(d.line, d.col) for d in findings} >= {(9, 14), (10, 18)}
    assert all(d.severity is Severity.ERROR and d.code == "PTX0710" for d in findings)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_only_code_generation_finds(engine: Engine) -> None:
    text = (
        HEAD + ".visible .entry k()\n{\n    .shared .b8 big[300000];\n    .reg .b32 %r;\n"
        "    mov.u32 %r, big;\n    st.shared.u32 [%r], %r;\n    ret;\n}\n"
    )
    assert validate(text) == ()
    with pytest.raises(AssemblyError, match="uses too much shared data"):
        assemble(text, engine=engine)


def test_only_a_line_break_ends_a_message() -> None:
    (finding,) = parse_log("ptxas input.ptx, line 2; error   : a\u2028error : b\x0cc")
    assert (finding.message, finding.notes) == ("a\ufffderror : b\ufffdc", ())


@given(st.text())
def test_any_log_is_taken(log: str) -> None:
    for finding in parse_log(log, log):
        assert finding.message.isprintable()


@given(st.sampled_from(["error", "fatal", "info"]), st.text(), st.integers(0, 50), st.text())
def test_any_message_is_taken(word: str, file: str, line: int, text: str) -> None:
    for finding in parse_log(f"ptxas {file}, line {line}; {word} : {text}", text):
        assert finding.code.startswith("PTX07")
