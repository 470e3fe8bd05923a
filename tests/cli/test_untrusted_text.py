"""Control characters in PTX files, in names of kernels and in the output of tools never reach a terminal."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pytest

from pyptx.cli import main
from pyptx.diagnostics import Rule, Span, escape_unprintable, render

ESCAPE = "\x1b]0;owned\x07\u202e"
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
PRINTS = f"""{HEAD}.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 text[] = {{27, 93, 48, 59, 120, 7, 9, 111, 107, 10, 0}};
.visible .entry k(.param .u32 fails)
{{
    .reg .b64 %rd<2>;
    .reg .b32 %r<3>;
    .reg .pred %p;
    mov.u64 %rd1, text;
    cvta.global.u64 %rd1, %rd1;
    call.uni (%r1), vprintf, (%rd1, 0);
    ld.param.u32 %r2, [fails];
    setp.ne.u32 %p, %r2, 0;
    @%p call.uni __assertfail, (%rd1, %rd1, 0, %rd1, 1);
    ret;
}}
"""


@pytest.fixture
def printing(tmp_path: Path) -> str:
    path = tmp_path / "k.ptx"
    path.write_text(PRINTS)
    return str(path)


def test_what_a_kernel_prints_reaches_a_pipe_as_it_is(printing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", printing, "--arg", "u32=0"]) == 0
    assert capsys.readouterr().out.startswith("\x1b]0;x\x07\tok\n")


def test_what_a_kernel_prints_is_shown_on_a_terminal(
    printing: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["sim", printing, "--arg", "u32=0"]) == 0
    assert capsys.readouterr().out.startswith("\\x1b]0;x\\x07\tok\n")


def test_findings_hold_no_control_characters(printing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", printing, "--arg", "u32=1"]) == 1
    error = capsys.readouterr().err
    assert "assertion failed: \\x1b]0;x\\x07\tok" in error
    assert "\x1b" not in error


@pytest.mark.parametrize("words", [["sim", f"{ESCAPE}.ptx"], ["sass", f"{ESCAPE}.ptx"], ["sim", "k", "--arg", ESCAPE]])
def test_names_of_files_and_arguments_are_shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.rstrip("\n").isprintable()
    assert "\\x1b]0;owned\\x07\\u202e" in error


def test_names_of_source_files_in_machine_code_are_shown_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'{HEAD}.file 1 "a\x1b[31m.cu"\n.visible .entry k()\n{{\n.loc 1 1 1\nret;\n}}\n'
    (tmp_path / "k.ptx").write_text(text)
    assert main(["sass", "--lines", str(tmp_path / "k.ptx")]) == 0
    assert "a\x1b[31m.cu" in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["sass", "--lines", str(tmp_path / "k.ptx")]) == 0
    assert "a\\x1b[31m.cu" in capsys.readouterr().out


TEXT = f"""{HEAD}.file 1 "a{ESCAPE}.cu"
// {ESCAPE}
.visible .entry k() .pragma "{ESCAPE}"; {{ // {ESCAPE}
.reg .b32 %r<4>;
.pragma "{ESCAPE}";
  mov.b32   %r1, 1; /* {ESCAPE} */
ret; }}
@@DWARF .string "{ESCAPE}"
"""


@pytest.mark.parametrize(
    "words",
    [
        ["check", "A"], ["check", "WRONG"], ["check", "--json", "WRONG"], ["check", "BROKEN"], ["fmt", "A"],
        ["fmt", "--check", "A"], ["fmt", "--diff", "A"], ["fmt", "--write", "A"], ["fmt", "BROKEN"],
        ["info", "--ptx-only", "A"], ["info", "--json", "--ptx-only", "A"], ["transpile", "A"],
        ["transpile", "--sugar", "A"], ["transpile", "BROKEN"], ["diff", "A", "A"], ["diff", "A", "WRONG"],
        ["diff", "A", "BROKEN"], ["diff", "--json", "A", "WRONG"], ["sim", "A"], ["sim", "WRONG"], ["sass", "WRONG"],
        ["explain", ESCAPE], ["check", "--target", ESCAPE, "A"], ["transpile", "--from", ESCAPE, "A"], [ESCAPE],
        ["info", "A", ESCAPE], ["check", f"--{ESCAPE}"],
    ],
)  # fmt: skip
def test_no_command_hands_an_escape_to_the_terminal(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"A": TEXT, "WRONG": TEXT.replace("%r1, 1;", "%zz, 2; bar.sync 99;"), "BROKEN": TEXT.replace("%r1,", ",,")}
    for name, text in texts.items():
        (tmp_path / f"{name}{ESCAPE[:3]}.ptx").write_text(text)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    with suppress(SystemExit):
        main([str(tmp_path / f"{word}{ESCAPE[:3]}.ptx") if word in texts else word for word in words])
    output = "".join(capsys.readouterr())
    assert escape_unprintable(output) == output


def test_every_part_of_a_finding_is_shown() -> None:
    rule = Rule("PTX0000", "title", "why", "", "")
    finding = rule.report(Span(1, 1, 1, ESCAPE), ESCAPE, notes=[ESCAPE], help=ESCAPE)
    assert render([finding], ESCAPE).replace("\n", "").isprintable()


def test_text_in_any_language_stays() -> None:
    assert escape_unprintable("größe\t漢字\n") == "größe\t漢字\n"
