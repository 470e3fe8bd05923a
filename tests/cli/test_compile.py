"""`pyptx compile`: what it writes, and what it says about mistakes in the command line and in kernels."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pyptx.cli import FINDINGS, OK, UNUSABLE, main

_KERNEL = """
from functools import cache
from pyptx import Tile, kernel, ptx, reg
from pyptx.types import f32

def grid(n):
    return (-(-n // 64),)

@kernel(arch="sm_80", in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=grid, block=(64, 1, 1))
def double(x, y, *, factor=2, kind="plain"):
    px, py = ptx.global_ptrs(x, y)
    at, value = ptx.special.tid.x() * 4, reg.scalar(f32)
    ptx.ld(f32, value, ptx.addr(px, at))
    ptx.st(f32, ptx.addr(py, at), value * float(factor) if kind == "plain" else value & 1)

@kernel
def nothing():
    ptx.ret()

def read_factor(factors):
    return factors["low"]

@kernel(grid=lambda n: (64 // (n - 64),), in_specs=[Tile("n", f32)])
def fails(x, *, factors=None):
    if factors is not None:
        with ptx.if_(ptx.special.tid.x() == 0):
            read_factor(factors)
    ptx.ret()

def make(stages, depth=2, *, width):
    return nothing

@cache
def make_scaled(scale, /, n, *, kind="plain"):
    @kernel(arch="sm_80", in_specs=[Tile("n", f32)], grid=(n,), block=(scale, 1, 1))
    def scaled(x, *, kind=kind, depth=1):
        ptx.ret()
    return scaled

def double_twice(x, y):
    ptx.ret()

def forget():
    nothing
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder with a file of kernels."""
    monkeypatch.chdir(tmp_path)
    Path("kernels.py").write_text(_KERNEL, "utf-8")
    Path("broken.py").write_text("\ndef make(:", "utf-8")
    Path("folder.py").mkdir()


def test_it_writes_a_kernel_with_its_launcher(capsys: pytest.CaptureFixture[str]) -> None:
    words = "kernels.py:double n=128 factor=3 --out built --arch sm_86 --target sm_86 --target sm_90"
    assert main(["compile", *words.split()]) == OK
    names = ["double.ptx", "double.sm_86.cubin", "double.sm_90.cubin", "double.fatbin", "double.h", "double.c"]
    assert capsys.readouterr().out.split() == [f"built/{name}" for name in [*names, "double.json"]]
    assert sorted(os.listdir("built")) == sorted([*names, "double.json"])
    text = Path("built/double.ptx").read_text("utf-8")
    assert ".target sm_86" in text
    assert "0f40400000" in text.lower()
    assert "DOUBLE_N 128" in Path("built/double.h").read_text("utf-8")


def test_a_kernel_without_a_grid_takes_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "kernels.py:nothing", "--grid", "8,4"]) == OK
    assert "config.gridDimY = 4;" in Path("nothing.c").read_text("utf-8")
    assert capsys.readouterr().out.split()[-1] == "nothing.json"


def test_it_says_once_why_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = "compile kernels.py:double n=128 --out built --target sm_80 --target sm_90".split()
    assert main(words) == OK
    assert capsys.readouterr().err == ""
    folder = tmp_path / "cache" / "pyptx" / "cubins"
    folder.chmod(0o770)
    assert main(words) == OK
    assert capsys.readouterr().err == (
        f"pyptx: nothing is kept in the cache, so compiling again takes as long: {folder} belongs to another user or "
        "is writable by others: remove it, or set XDG_CACHE_HOME\n"
    )
    monkeypatch.setenv("PYPTX_CACHE", "0")
    assert main(words) == OK
    assert capsys.readouterr().err == ""


def test_a_function_that_returns_a_kernel_gets_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", *"kernels.py:make_scaled scale=64 n=128 depth=3".split()]) == OK
    manifest = json.loads(Path("scaled.json").read_text("utf-8"))
    assert (manifest["grid"], manifest["block"], manifest["shape_variables"]) == ([128], [64, 1, 1], {"n": 128})
    assert capsys.readouterr().err == ""


WRONG = [
    ("kernels.py:double", "pyptx: kernel `double`: missing: n; pass by keyword: n, factor, kind"),
    ("kernels.py:double n=64 m=3", "pyptx: kernel `double`: unknown: m; pass by keyword: n, factor, kind"),
    ("kernels.py:double n=x", "pyptx: kernel `double`: shape variables must be integers of at least 0, found n='x'"),
    ("kernels.py:double n", "pyptx: expected VARIABLE=VALUE, found n"),
    ("kernels.py:double n=64 n=32", "pyptx: n has two values: 64 and 32"),
    ("kernels.py:double n=64 --target sm_75", (
        "pyptx: a kernel for sm_80 cannot be assembled for sm_75; code for targets with suffix a or f runs only "
        "there; other code runs on newer ones"
    )),
    ("kernels.py:double n=64 --target sm_9", "pyptx: unknown target sm_9; use one of sm_75, "),
    ("kernels.py:double n=64 --arch sm_9", "pyptx: unknown arch 'sm_9'; use one of sm_75, "),
    ("kernels.py:double n=64 --grid 0", "pyptx: the grid: expected one to three positive integers, found (0,)"),
    ("kernels.py:double n=64 --grid x", "pyptx: --grid x: expected one to three positive integers, such as 8,4,1"),
    ("kernels.py:double n=64 --grid=-1,2", "pyptx: --grid -1,2: expected one to three positive integers, such as"),
    ("kernels.py:double n=64 --grid -1,2", "pyptx: argument --grid: expected one to three positive integers, such as"),
    ("kernels.py:double n=64 --grid", "pyptx: argument --grid: expected one to three positive integers, such as 8,4,1"),
    ("", "pyptx: the following arguments are required: FILE.py:NAME (see `pyptx compile --help`)"),
    ("kernels.py:make depth=3", (
        "pyptx: kernels.py:30: `make` needs stages, width: add stages=VALUE width=VALUE; a function that is the kernel "
        "itself needs @kernel"
    )),
    ("kernels.py:make stages=3 width=4 m=1 k=2", (
        "pyptx: kernels.py:30: neither `make` nor its kernel `nothing` takes m, k; they take stages, depth, width"
    )),
    ("kernels.py:forget", (
        "pyptx: kernels.py:43: expected `forget` to return a kernel, found NoneType; a function that is the kernel "
        "itself needs @kernel"
    )),
    ("kernels.py:nothing", "pyptx: the kernel has no grid; pass grid= to @kernel or to the call"),
    ("kernels.py:absent", (
        "pyptx: kernels.py has no kernel `absent`, nor a function of this name that returns one; its kernels: double, "
        "nothing, fails\n"
    )),
    ("absent.py:double", "pyptx: absent.py: no such file"),
    ("kernels.ptx", "pyptx: expected FILE.py:NAME, found kernels.ptx"),
    ("kernels.py:double n=64 --out kernels.py", "pyptx: --out kernels.py: expected a directory, found a file"),
    ("broken.py:make", "pyptx: broken.py:2: SyntaxError: invalid syntax\n"),
    ("folder.py:make", "pyptx: folder.py: is a directory\n"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[words for words, _ in WRONG])
def test_a_wrong_command_line_is_one_line(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(["compile", *words.split()])
    except SystemExit as stopped:
        status = stopped.code
    assert status == UNUSABLE
    printed = capsys.readouterr()
    assert printed.err.startswith(message)
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_a_mistake_in_a_kernel_is_at_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "kernels.py:double", "n=64", "kind=other"]) == FINDINGS
    assert capsys.readouterr().err.startswith("kernels.py:14: error[PTX08")


def test_a_grid_that_no_launch_can_have_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "kernels.py:double", "n=100000000000000"]) == FINDINGS
    expected = (
        "kernels.py:10: error[PTX1004]: `double` for sm_80: the grid's x must not exceed 2147483647, found 1562500"
    )
    assert capsys.readouterr().err.startswith(expected)
    assert sorted(os.listdir()) == ["broken.py", "folder.py", "kernels.py"]


@pytest.mark.parametrize(
    ("words", "places", "message"),
    [
        ("n=128 factors={}", ["27, in fails", "21, in read_factor"], "KeyError: 'low'"),
        ("n=64", ["23, in <lambda>"], "ZeroDivisionError: "),
    ],
    ids=["kernel", "grid"],
)
def test_an_exception_of_the_file_has_its_frames(
    words: str, places: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", "kernels.py:fails", *words.split()]) == FINDINGS
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [line for line in lines if line.startswith("  File ")] == [
        f'  File "kernels.py", line {place}' for place in places
    ]
    assert lines[-1].startswith(message)
    assert sorted(os.listdir()) == ["broken.py", "folder.py", "kernels.py"]


def test_an_exception_of_the_package_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(json, "dumps")
    with pytest.raises(AttributeError, match="dumps"):
        main(["compile", "kernels.py:nothing", "--grid", "1"])
