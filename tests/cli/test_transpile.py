"""`pyptx transpile`, `pyptx diff`, `python -m pyptx.codegen`, and the programs that they write."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyptx.toolchain import find_tool

ROOT = Path(__file__).parent.parent.parent
SCALE = """\
.version 8.0
.target sm_90
.address_size 64

.visible .entry scale(.param .u64 out, .param .f32 factor, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [out];
    ld.param.f32 %f1, [factor];
    ld.param.u32 %r2, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, %r2;
    @%p ret;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd1, %rd3;
    ld.global.f32 %f2, [%rd2];
    add.f32 %f3, %f2, %f1; // in place
    st.global.f32 [%rd2], %f3;
    ret;
}
"""


def run(*words: str, stdin: str = "", cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words], input=stdin, capture_output=True, text=True, cwd=cwd, env=environment, timeout=120
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a PTX file and its Python transcript."""
    (tmp_path / "scale.ptx").write_text(SCALE)
    result = run("-m", "pyptx", "transpile", "scale.ptx", "--name", "scale", "-o", "scale.py", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    return tmp_path


def test_the_file_prints_its_ptx_and_what_it_takes(folder: Path) -> None:
    result = run("scale.py", cwd=folder)
    assert result.stdout == SCALE
    assert result.stderr.startswith("the PTX is identical to the original, byte for byte\nscale: ")
    assert "registers" in result.stderr
    assert result.returncode == 0


def test_a_kernel_keeps_its_name_unless_another_is_given(folder: Path) -> None:
    default, override = (
        run("-m", "pyptx", "transpile", "scale.ptx", *words, cwd=folder) for words in ((), ("--name", "f"))
    )
    assert "\ndef scale() -> None:" in default.stdout
    assert "\ndef f() -> None:" in override.stdout


def test_the_file_runs_its_kernel_on_made_up_arguments(folder: Path) -> None:
    result = run("scale.py", "--quiet", "--no-assembly", "--run", "--bytes", "1024", "--number", "16", cwd=folder)
    assert result.stdout == ""
    assert "out: a buffer of 1024 bytes" in result.stderr
    assert "factor: 1.0" in result.stderr
    assert "n: 16" in result.stderr
    assert "of 1024 bytes changed" in result.stderr
    assert result.stderr.rstrip().endswith("finished; 0 hazards found")


def test_a_readable_file_and_one_without_layouts_are_the_original_word_for_word(folder: Path) -> None:
    (folder / "plain.py").write_text(re.sub(r"\n +ptx\.layout\(.*\)", "", (folder / "scale.py").read_text()))
    (folder / "sugar.py").write_text(run("-m", "pyptx.codegen", "scale.ptx", "--sugar", cwd=folder).stdout)
    for name in ("plain.py", "sugar.py"):
        result = run(name, "--no-assembly", cwd=folder)
        assert result.stderr.startswith("the PTX is identical to the original except for spacing, comments and .loc\n")
        assert "// in place" not in result.stdout


def test_an_edited_file_says_so_and_a_wrong_one_where(folder: Path) -> None:
    source = (folder / "scale.py").read_text()
    (folder / "edited.py").write_text(source.replace("ptx.inst.add.f32", "ptx.inst.mul.f32"))
    result = run("edited.py", cwd=folder)
    assert "mul.f32 %f3, %f2, %f1; // in place" in result.stdout
    assert "the PTX is different from the original" in result.stderr
    (folder / "wrong.py").write_text(source.replace("ptx.inst.add.f32", "ptx.inst.ad.f32"))
    result = run("wrong.py", cwd=folder)
    line = next(i for i, text in enumerate(source.split("\n"), 1) if "inst.add.f32" in text)
    assert result.returncode == 1
    assert f"wrong.py:{line}: error[PTX01" in result.stderr


def test_a_kernel_that_cannot_be_run_is_said(folder: Path) -> None:
    words = ("scale.py", "--quiet", "--no-assembly", "--run")
    result = run(*words, "--entry", "other", cwd=folder)
    expected = "no kernel other to simulate; the kernels are scale"
    assert (result.returncode, result.stderr.splitlines()[1:]) == (1, [expected])
    result = run(*words, "--entry", "scale", "--block", "2000", cwd=folder)
    assert result.returncode == 1
    assert "error[PTX11" in result.stderr
    source = SCALE.replace(".visible .entry", ".visible .func").replace("ret;\n}", "ret;\n}\n.extern .entry e();")
    (folder / "none.ptx").write_text(source)
    run("-m", "pyptx", "transpile", "none.ptx", "-o", "none.py", cwd=folder)
    result = run("none.py", *words[1:], cwd=folder)
    assert (result.returncode, result.stderr.splitlines()[1:]) == (1, ["no kernel  to simulate; the kernels are e"])


def test_a_file_works_without_ptxas(folder: Path) -> None:
    source = (folder / "scale.py").read_text()
    hide = "import os, sys\nos.access = lambda *_: False\nsys.modules['cuda'] = None\n"
    (folder / "hidden.py").write_text(source.replace("import sys\n", hide))
    process = subprocess.run(
        [sys.executable, "hidden.py", "--quiet"], capture_output=True, text=True, cwd=folder, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": "/nonexistent"},
    )  # fmt: skip
    assert process.stderr.splitlines()[1].startswith("not assembled: ")


def test_what_ptxas_refuses_is_said(folder: Path) -> None:
    source = (folder / "scale.py").read_text().replace("f[3], f[2], f[1]", "f[3], rd[2], f[1]")
    (folder / "wrong.py").write_text(source)
    result = run("wrong.py", "--quiet", cwd=folder)
    assert result.returncode == 1
    assert "error[" in result.stderr


def test_diff_names_the_python_lines(folder: Path) -> None:
    source = (folder / "scale.py").read_text()
    assert run("-m", "pyptx", "diff", "scale.ptx", "scale.py", cwd=folder).returncode == 0
    new = "ptx.inst.mul.f32(f[3], f[2], f[1])\n    ptx.inst.bar.sync(0)"
    (folder / "edited.py").write_text(source.replace("ptx.inst.add.f32(f[3], f[2], f[1])", new))
    result = run("-m", "pyptx", "diff", "scale.ptx", "edited.py", cwd=folder)
    line = next(i for i, text in enumerate(source.split("\n"), 1) if "inst.add.f32" in text)
    assert result.returncode == 1
    assert result.stdout.split("\n")[:-1] == [
        "- add.f32 %f3, %f2, %f1;    [scale.ptx line 20]",
        f"+ mul.f32 %f3, %f2, %f1;    [edited.py:{line}]",
        f"+ bar.sync 0;    [edited.py:{line + 1}]",
    ]


def test_diff_as_json_has_both_sides_of_each_change(folder: Path) -> None:
    (folder / "other.ptx").write_text(SCALE.replace("@%p ret;", "@!%p ret;"))
    result = run("-m", "pyptx", "diff", "--json", "scale.ptx", "other.ptx", cwd=folder)
    assert result.returncode == 1
    sides = {"old": [{"text": "@%p ret;", "at": "line 16"}], "new": [{"text": "@!%p ret;", "at": "line 16"}]}
    assert json.loads(result.stdout) == [sides]


def test_diff_compares_ptx_too_and_spacing_is_no_difference(folder: Path) -> None:
    (folder / "other.ptx").write_text(SCALE.replace("    ", "\t"))
    assert run("-m", "pyptx", "diff", "scale.ptx", "other.ptx", cwd=folder).returncode == 0
    (folder / "other.ptx").write_text(SCALE.replace("@%p ret;", "@!%p ret;"))
    result = run("-m", "pyptx", "diff", "scale.ptx", "other.ptx", cwd=folder)
    assert result.stdout == "- @%p ret;    [scale.ptx line 16]\n+ @!%p ret;    [line 16]\n"


def test_diff_finds_no_change_in_a_readable_file_that_nobody_edited(folder: Path) -> None:
    lines = SCALE.replace("    ret;\n}", "    .loc 1 2 3\n    ret;\n}")
    assert lines != SCALE
    (folder / "lines.ptx").write_text(lines)
    assert run("-m", "pyptx", "transpile", "--sugar", "lines.ptx", "-o", "lines.py", cwd=folder).returncode == 0
    result = run("-m", "pyptx", "diff", "lines.ptx", "lines.py", cwd=folder)
    assert (result.returncode, result.stdout) == (0, "lines.py emits the same statements as lines.ptx\n")


def test_diff_of_a_file_without_a_kernel_is_wrong_usage(folder: Path) -> None:
    (folder / "empty.py").write_text("x = 1\n")
    result = run("-m", "pyptx", "diff", "scale.ptx", "empty.py", cwd=folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert "no module or kernel" in result.stderr


def test_watch_writes_again_when_the_file_changes(folder: Path) -> None:
    words = ["-m", "pyptx", "transpile", "scale.ptx", "-o", "watched.py", "--watch"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, *words], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "watched.py: written\n"
        (folder / "scale.ptx").write_text(SCALE.replace("add.f32", "sub.f32"))
        assert process.stderr.readline() == "watched.py: written\n"
        assert "ptx.inst.sub.f32" in (folder / "watched.py").read_text()
    finally:
        process.kill()
        process.communicate()


def test_ptx_is_taken_out_of_a_fatbin(folder: Path) -> None:
    tool = Path(find_tool("cuobjdump").path)
    ptxas = find_tool("ptxas").path
    subprocess.run([ptxas, "-arch", "sm_90", "scale.ptx", "-o", "scale.cubin"], cwd=folder, check=True)
    result = run("-m", "pyptx", "transpile", "scale.cubin", cwd=folder)
    assert result.returncode == 2
    assert "no PTX in this file" in result.stderr
    fatbinary = tool.with_name("fatbinary")
    if not fatbinary.exists():
        return
    images = ["--image3=kind=elf,sm=90,file=scale.cubin", "--image3=kind=ptx,sm=90,file=scale.ptx"]
    subprocess.run([fatbinary, "--create=scale.fatbin", *images], cwd=folder, check=True)
    result = run("-m", "pyptx", "transpile", "scale.fatbin", "--name", "scale", cwd=folder)
    assert result.returncode == 0
    assert "ptx.inst.add.f32(f[3], f[2], f[1])" in result.stdout


def test_the_module_as_a_program(folder: Path) -> None:
    result = run("-m", "pyptx.codegen", "-", "--name", "scale", stdin=SCALE)
    assert result.stdout == (folder / "scale.py").read_text()
    result = run("-m", "pyptx.codegen", "-", stdin=SCALE.replace("[%rd2], %f3;", "[%rd2] %f3;"))
    assert (result.returncode, result.stdout) == (1, "")
    assert "<stdin>:21:" in result.stderr
    output = folder / "written.py"
    result = run("-m", "pyptx.codegen", str(folder / "scale.ptx"), "--name", "scale", "-o", str(output))
    assert (result.returncode, result.stdout, output.read_text()) == (0, "", (folder / "scale.py").read_text())
    (folder / "latin.ptx").write_bytes(SCALE.encode() + b"// \xe9")
    result = run("-m", "pyptx.codegen", "latin.ptx", cwd=folder)
    assert (result.returncode, result.stderr) == (1, f"latin.ptx: byte {len(SCALE) + 3} is not UTF-8 text\n")
    assert run("-m", "pyptx.codegen").returncode == 2
    assert run("-m", "pyptx.codegen", "missing.ptx").returncode == 2
    assert run("-m", "pyptx.codegen", str(folder / "scale.ptx"), "-o", str(folder / "no" / "x.py")).returncode == 2


def test_syntax_errors_name_the_file_and_leave_the_output_alone(folder: Path) -> None:
    (folder / "scale.ptx").write_text(SCALE.replace("ret;", "ret"))
    before = (folder / "scale.py").read_text()
    result = run("-m", "pyptx", "transpile", "scale.ptx", "-o", "scale.py", cwd=folder)
    assert result.returncode == 1
    assert "scale.ptx:16:" in result.stderr
    assert (folder / "scale.py").read_text() == before


def test_generated_files_pass_ruff_and_pyright(folder: Path) -> None:
    text = (ROOT / "tests/corpus/triton/matmul_tma.sm_100a.ptx").read_text()
    (folder / "triton.py").write_text(run("-m", "pyptx.codegen", "-", stdin=text).stdout)
    files = ["scale.py", "triton.py"]
    result = run("-m", "ruff", "check", "--isolated", *files, cwd=folder)
    assert result.returncode == 0, result.stdout
    (folder / "pyrightconfig.json").write_text(f'{{"typeCheckingMode": "basic", "extraPaths": ["{ROOT}"]}}')
    result = run("-m", "pyright", "--pythonpath", sys.executable, *files, cwd=folder)
    assert result.returncode == 0, result.stdout
