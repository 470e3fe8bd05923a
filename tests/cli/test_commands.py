"""The command line as users run it: a process, real files, its output and its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
GEMM = str(ROOT / "examples" / "hopper_gemm.ptx")
GOOD = """\
.version 8.0
.target sm_90
.address_size 64

.visible .entry scale(.param .u64 out, .param .f32 factor)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [out];
    ld.param.f32 %f1, [factor];
    cvta.to.global.u64 %rd2, %rd1;
    ld.global.f32 %f2, [%rd2];
    mul.f32 %f3, %f2, %f1; // in place
    st.global.f32 [%rd2], %f3;
    ret;
}
"""
UNSPELLED = GOOD.replace("mul.f32", "mul.f23")
UNDECLARED = GOOD.replace("%f3, %f2, %f1", "%f3, %f2, %g1")
UNPARSED = GOOD.replace("%f3, %f2, %f1;", "%f3, %f2, ;")


def pyptx(*arguments: str, stdin: str | bytes = "", cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    process = subprocess.run(
        [sys.executable, "-m", "pyptx", *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        timeout=120,
    )
    return subprocess.CompletedProcess(
        process.args, process.returncode, process.stdout.decode(), process.stderr.decode()
    )


def test_a_clean_file_says_nothing_and_succeeds() -> None:
    result = pyptx("check", GEMM)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("text", "line", "code", "word"),
    [(UNSPELLED, 13, "PTX01", ".f23"), (UNDECLARED, 13, "PTX04", "%g1"), (UNPARSED, 13, "PTX00", "operand")],
    ids=["spelling", "symbol", "syntax"],
)
def test_a_broken_file_is_reported_with_its_place(tmp_path: Path, text: str, line: int, code: str, word: str) -> None:
    (tmp_path / "a.ptx").write_text(text)
    result = pyptx("check", "a.ptx", cwd=tmp_path)
    assert result.returncode == 1
    first = result.stdout.splitlines()[0]
    assert first.startswith(f"a.ptx:{line}:")
    assert f"error[{code}" in first
    assert word in first
    assert "^" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 error in 1 file"


def test_several_files_are_all_checked(tmp_path: Path) -> None:
    (tmp_path / "a.ptx").write_text(UNSPELLED)
    (tmp_path / "b.ptx").write_text(GOOD)
    (tmp_path / "c.ptx").write_text(UNDECLARED)
    result = pyptx("check", "a.ptx", "b.ptx", "c.ptx", cwd=tmp_path)
    assert result.returncode == 1
    assert [line.split(":")[0] for line in result.stdout.splitlines() if "error[" in line] == ["a.ptx", "c.ptx"]
    assert result.stdout.splitlines()[-1] == "2 errors in 3 files"


def test_json_is_one_document_with_plain_values(tmp_path: Path) -> None:
    (tmp_path / "a.ptx").write_text(UNDECLARED)
    (tmp_path / "b.ptx").write_text(GOOD)
    result = pyptx("check", "--json", "a.ptx", "b.ptx", cwd=tmp_path)
    assert result.returncode == 1
    a, b = json.loads(result.stdout)
    assert (b["file"], b["diagnostics"]) == ("b.ptx", [])
    (finding,) = a["diagnostics"]
    assert (finding["file"], finding["line"], finding["severity"]) == ("a.ptx", 13, "error")
    assert UNDECLARED.splitlines()[12][finding["col"] - 1 :][: finding["length"]] == "%g1"


def test_standard_input_is_a_file_too() -> None:
    result = pyptx("check", "-", stdin=UNSPELLED)
    assert result.returncode == 1
    assert result.stdout.startswith("<stdin>:13:")


def test_another_target_can_be_asked_for() -> None:
    result = pyptx("check", "--target", "sm_80", GEMM)
    assert result.returncode == 1
    assert "error[PTX03" in result.stdout


@pytest.mark.parametrize("command", ["check", "fmt", "info", "sass"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file"),
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x7fELF\x02\x01\x01\0\0", "ELF file"),
        (b"\x50\xed\x55\xba\x01\0", "a fatbin"),
        (b".version 8.0\n\0\0garbage", "binary file"),
        (b".version 8.0\n// caf\xe9\n", "not UTF-8"),
    ],
    ids=["missing", "empty", "blank", "elf", "fatbin", "nul", "latin1"],
)
def test_what_cannot_be_read_is_one_line_and_status_2(
    tmp_path: Path, command: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "a.ptx").write_bytes(content)
    result = pyptx(command, "a.ptx", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("pyptx: a.ptx:")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_directory_is_refused(tmp_path: Path) -> None:
    result = pyptx("check", str(tmp_path))
    assert result.returncode == 2
    assert "is a directory" in result.stderr


def test_an_unreadable_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.ptx").write_text(UNSPELLED)
    result = pyptx("check", "missing.ptx", "a.ptx", cwd=tmp_path)
    assert result.returncode == 2
    assert "a.ptx:13:" in result.stdout


@pytest.mark.parametrize(
    "arguments", [[], ["chekc", "a.ptx"], ["check"], ["check", "--target", "sm_hopper", "-"], ["fmt", "--write", "-"]]
)
def test_wrong_usage_is_status_2(arguments: list[str]) -> None:
    result = pyptx(*arguments, stdin=GOOD)
    assert result.returncode == 2
    assert result.stderr
    assert "Traceback" not in result.stderr


def test_no_color_where_nobody_reads() -> None:
    assert "\x1b" not in pyptx("check", "-", stdin=UNSPELLED).stdout


@pytest.mark.parametrize(
    ("environment", "has_color"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_color_unless_it_says_no(environment: dict[str, str], has_color: bool) -> None:
    mine, theirs = os.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | environment
    process = subprocess.Popen(
        [sys.executable, "-m", "pyptx", "check", "-"], stdin=subprocess.PIPE, stdout=theirs, cwd=ROOT, env=env
    )
    process.communicate(UNSPELLED.encode(), timeout=60)
    os.close(theirs)
    output = os.read(mine, 65536)
    os.close(mine)
    assert (b"\x1b[" in output) is has_color


def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pyptx", "fmt", *[GEMM] * 20], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141


def test_control_c_ends_it_quietly(tmp_path: Path) -> None:
    pipe = tmp_path / "a.ptx"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", _HEARS_CONTROL_C, "check", pipe]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT) as process:
        writer = _open_with_reader(pipe, process)
        try:
            errors = _interrupt(process)
        finally:
            process.kill()
            os.close(writer)
    assert (process.returncode, errors) == (130, b"")


def _interrupt(process: subprocess.Popen[bytes]) -> bytes:
    """Send Control-C until the command ends, and return its error output. Python only records one that arrives between
    opening a file and reading it; the next one ends the read."""
    for _ in range(60):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=1)[1]
    raise AssertionError("it does not hear Control-C")


_HEARS_CONTROL_C = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "runpy.run_module('pyptx', run_name='__main__')"
)
"""A shell that starts the tests in the background lets its children ignore Control-C."""


def _open_with_reader(pipe: Path, process: subprocess.Popen[bytes]) -> int:
    """Open a pipe for writing once the command has opened it for reading, so that the command is in the middle of its
    work."""
    while process.poll() is None:
        with suppress(OSError):  # no reader yet
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
    raise AssertionError("the command ended without reading its file")


def test_fmt_prints_the_same_tokens_and_comments_and_is_stable(tmp_path: Path) -> None:
    ugly = GOOD.replace("    mul.f32 %f3,", "mul.f32   %f3\t ,").replace("\n", "\r\n")
    first = pyptx("fmt", "-", stdin=ugly)
    assert first.returncode == 0
    assert "".join(first.stdout.split()) == "".join(GOOD.split())
    assert first.stdout == pyptx("fmt", "-", stdin=first.stdout).stdout


def test_fmt_check_diff_and_write(tmp_path: Path) -> None:
    file = tmp_path / "a.ptx"
    ugly = GOOD.replace("    mul.f32", "  mul.f32  ")
    file.write_text(ugly)
    file.chmod(0o640)
    check = pyptx("fmt", "--check", "a.ptx", cwd=tmp_path)
    assert (check.returncode, check.stdout) == (1, "a.ptx\n")
    diff = pyptx("fmt", "--diff", "a.ptx", cwd=tmp_path)
    assert diff.returncode == 1
    assert "-  mul.f32   %f3" in diff.stdout
    assert file.read_text() == ugly
    assert pyptx("fmt", "--write", "a.ptx", cwd=tmp_path).stdout == "formatted a.ptx\n"
    assert pyptx("fmt", "--write", "a.ptx", cwd=tmp_path).stdout == ""
    assert pyptx("fmt", "--diff", "a.ptx", cwd=tmp_path).stdout == ""
    assert file.read_text() == pyptx("fmt", "-", stdin=ugly).stdout
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["a.ptx"]
    assert pyptx("fmt", "--check", "a.ptx", cwd=tmp_path).returncode == 0


def test_fmt_diff_says_where_a_last_line_does_not_end(tmp_path: Path) -> None:
    lines = ".version 8.0", ".target sm_90", ".address_size 64", "", ".entry k()", "{", "\tret;", "}"
    (tmp_path / "a.ptx").write_text("\n".join(lines))
    diff = pyptx("fmt", "--diff", "a.ptx", cwd=tmp_path).stdout
    assert diff == (
        "--- a.ptx\n+++ a.ptx (formatted)\n@@ -5,4 +5,4 @@\n .entry k()\n {\n \tret;\n"
        "-}\n\\ No newline at end of file\n+}\n"
    )


def test_fmt_goes_on_after_a_file_that_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "a.ptx").write_text(GOOD)
    result = pyptx("fmt", "b.ptx", "a.ptx", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (2, "pyptx: b.ptx: no such file\n")
    assert result.stdout == pyptx("fmt", "-", stdin=GOOD).stdout


def test_fmt_cannot_write_standard_input() -> None:
    result = pyptx("fmt", "-", "--write", stdin=GOOD)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "pyptx: --write needs files, not standard input\n"


def test_fmt_leaves_a_file_with_syntax_errors_alone(tmp_path: Path) -> None:
    (tmp_path / "a.ptx").write_text(UNPARSED)
    result = pyptx("fmt", "--write", "a.ptx", cwd=tmp_path)
    assert result.returncode == 1
    assert "a.ptx:13:" in result.stderr
    assert (tmp_path / "a.ptx").read_text() == UNPARSED


def test_info_counts_what_is_there() -> None:
    result = pyptx("info", "--json", "--ptx-only", GEMM)
    assert result.returncode == 0
    (info,) = json.loads(result.stdout)
    (entry,) = [f for f in info["functions"] if f["entry"]]
    assert (entry["name"], info["version"], info["target"]) == ("hopper_gemm", "8.0", ["sm_90a"])
    assert [p["name"] for p in entry["parameters"]] == ["a_map", "b_map", "d", "n", "k_tiles"]
    assert [p["bytes"] for p in entry["parameters"]] == [128, 128, 8, 4, 4]
    assert entry["shared_bytes"] == 64
    assert entry["registers"][".f32"] == 64
    assert entry["instructions"]["wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"] == 4
    assert (info["needs"]["version"], info["needs"]["targets"]) == ("8.0", ["sm_90a"])
    assert info["variables"][0]["name"] == "ring"


def test_info_reports_syntax_errors_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.ptx").write_text(UNPARSED)
    done = pyptx("info", "--json", "--ptx-only", "a.ptx", GEMM, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("a.ptx:13:")
    assert [info["file"] for info in json.loads(done.stdout)] == [GEMM]


def test_info_of_no_file_prints_nothing() -> None:
    result = pyptx("info", "none.ptx")
    assert (result.returncode, result.stdout) == (2, "")


def test_info_shows_resources_when_the_tools_are_there() -> None:
    result = pyptx("info", "--json", GEMM)
    (info,) = json.loads(result.stdout)
    assert info["resources"]["hopper_gemm"]["registers"] == 168
    assert "168" in pyptx("info", GEMM).stdout


def test_sass_prints_machine_code() -> None:
    result = pyptx("sass", GEMM)
    assert result.returncode == 0
    assert "HGMMA.64x128x16.F32.BF16" in result.stdout


def test_sass_reports_what_the_assembler_says(tmp_path: Path) -> None:
    (tmp_path / "a.ptx").write_text(UNSPELLED)
    result = pyptx("sass", "a.ptx", cwd=tmp_path)
    assert result.returncode == 1
    assert "a.ptx:13:" in result.stderr


def test_explain_prints_a_rule_and_lists_them_all() -> None:
    index = pyptx("explain")
    assert index.returncode == 0
    code = index.stdout.split()[0]
    page = pyptx("explain", code.lower())
    assert page.stdout.startswith(f"{code}: ")
    assert pyptx("explain", "PTX9999").returncode == 2
    assert pyptx("explain", "data").stderr == "pyptx: data: no such code; `pyptx explain` lists them\n"
    rules: list[dict[str, Any]] = json.loads(pyptx("explain", "--json").stdout)
    assert {"code", "title", "why", "wrong", "right", "severity"} == set(rules[0])
    assert len(rules) == len(index.stdout.splitlines())
