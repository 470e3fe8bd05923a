"""`pyptx transpile`, `pyptx diff` and `pyptx info` through `main`: what they print, write and return."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from pyptx.cli import main
from pyptx.codegen import ptx_to_python
from pyptx.toolchain import find_tool

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry scale()
{
	.reg .b32 %r<4>;
	mov.u32 %r1, 1;
$L:
	add.s32 %r2, %r1, 1;
	ret;
}
"""
WRONG = PTX.replace("%r1, 1;\n\tret", "%r1 1;\n\tret")
KERNEL = """from pyptx import kernel, ptx, reg
from pyptx.types import f32, u32
@kernel
def scale():
    ptx.inst.add.f32(reg.scalar(u32), 1, 2)
"""
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a PTX file, its Python, and a file with a syntax error."""
    monkeypatch.chdir(tmp_path)
    Path("scale.ptx").write_text(PTX)
    Path("wrong.ptx").write_text(WRONG)
    Path("scale.py").write_text(ptx_to_python(PTX, sugar=False, kernel_name="scale"))
    Path("kernel.py").write_text(KERNEL)
    return tmp_path


def test_a_removed_statement_stands_after_the_one_before(capsys: Output) -> None:
    text = Path("scale.py").read_text()
    Path("less.py").write_text("".join(line for line in text.splitlines(True) if "add.s32" not in line))
    line = next(number for number, row in enumerate(text.splitlines(), 1) if '"$L"' in row)
    assert main(["diff", "scale.ptx", "scale.py"]) == 0
    assert capsys.readouterr().out == "scale.py emits the same statements as scale.ptx\n"
    assert main(["diff", "scale.ptx", "less.py"]) == 1
    assert capsys.readouterr().out == (f"- add.s32 %r2, %r1, 1;    [scale.ptx line 9]\n  (after less.py:{line}: $L:)\n")


def test_a_kernel_that_cannot_be_traced_is_reported_at_its_line(capsys: Output) -> None:
    assert main(["diff", "scale.ptx", "kernel.py"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("kernel.py:5: error[PTX0203]: `d` is .f32, found `%r0` of type .u32\n")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["diff", "none.ptx", "scale.py"], 2, "pyptx: none.ptx: no such file\n"),
        (["diff", "scale.ptx", "none.py"], 2, "pyptx: none.py: no such file\n"),
        (["diff", "scale.ptx", "wrong.ptx"], 1, "wrong.ptx:9:19: error[PTX0001]: expected `,` or `;`"),
        (["info", "wrong.ptx"], 1, "wrong.ptx:9:19: error[PTX0001]: expected `,` or `;`"),
        (["transpile", "wrong.ptx", "-o", "new.py"], 1, "wrong.ptx:9:19: error[PTX0001]: expected `,` or `;`"),
        (["transpile", "none.ptx"], 2, "pyptx: none.ptx: no such file\n"),
        (["transpile", "scale.ptx", "-o", "none/scale.py"], 2, "pyptx: none/scale.py: No such file or directory\n"),
        (["transpile", "scale.ptx", "--watch"], 2, "pyptx: --watch needs an input file and -o OUT\n"),
        (["transpile", "-", "--watch", "-o", "new.py"], 2, "pyptx: --watch needs an input file and -o OUT\n"),
        (["transpile", "scale.ptx", "--from", "x"], 2,
         "pyptx: scale.ptx: a text file has only one PTX; omit --from x\n"),
        (["transpile", "-", "--from", "x"], 2, "pyptx: -: a text file has only one PTX; omit --from x\n"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said(words: list[str], status: int, message: str, capsys: Output) -> None:
    assert main(words) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert not Path("new.py").exists()


def test_a_binary_with_several_texts_asks_which(capsys: Output) -> None:
    fatbinary = Path(find_tool("cuobjdump").path).with_name("fatbinary")
    if fatbinary.exists():
        images = [f"--image3=kind=ptx,sm={sm},file=scale.ptx" for sm in (80, 90)]
        subprocess.run([fatbinary, "--create=two.fatbin", *images], check=True)
        for more, problem in (([], "several PTX texts"), (["--from", "x"], "no PTX named x")):
            assert main(["transpile", "two.fatbin", *more]) == 2
            err = capsys.readouterr().err
            assert err.startswith(f"pyptx: two.fatbin: {problem}; select one with --from: ")


def test_watching_writes_each_change_once(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = 0

    def wait(seconds: float) -> None:
        nonlocal rounds
        assert seconds == 0.5
        rounds += 1
        if rounds == 2:
            Path("scale.ptx").write_text(PTX.replace("%r1, 1;", "%r1, 12;"))
        elif rounds == 4:
            Path("scale.ptx").write_text(WRONG)
        elif rounds == 6:
            Path("scale.ptx").unlink()
        elif rounds == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", wait)
    assert main(["transpile", "scale.ptx", "--watch", "-o", "new.py"]) == 130
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("new.py")]
    assert lines == ["new.py: written", "new.py: written", "new.py: not written"]
    assert "12" in Path("new.py").read_text()


def test_an_output_that_is_full_is_said_once(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert main(["explain", "PTX0001"]) == 2
        full.write("to nowhere")
        full.flush()
    assert capsys.readouterr().err == "pyptx: the output cannot be written: No space left on device\n"


def test_too_little_memory_is_said(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> bytes:
        raise MemoryError

    monkeypatch.setattr(Path, "read_bytes", fail)
    assert main(["transpile", "scale.ptx"]) == 2
    assert capsys.readouterr().err == "pyptx: out of memory\n"
