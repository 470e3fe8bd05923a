"""`pyptx sim` of kernels in Python files, through `main`: results, options and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pyptx.cli import main
from tests.cli.conftest import Command


def test_a_python_file_that_cannot_run_and_options_that_the_kernel_has_itself(pyptx: Command, tmp_path: Path) -> None:
    (tmp_path / "imports.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "open.py").write_text("f(\n")
    (tmp_path / "own.py").write_text(
        "from pyptx import Tile, kernel, ptx\nfrom pyptx.types import f32\n"
        "@kernel(in_specs=[Tile('n', f32)], out_specs=[Tile('n', f32)], grid=(1,), block=(32, 1, 1))\n"
        "def own(a, b):\n    ptx.ret()\n"
    )
    for name, words in (("imports.py:f", "No module named 'nothing_of_this_name'"), ("open.py:f", "SyntaxError")):
        result = pyptx(name)
        assert (result.status, result.err.count("\n")) == (2, 1)
        assert words in result.err
    for option in (("--block", "3"), ("--cluster", "2"), ("--shared", "8"), ("--cooperative",), ("--entry", "x")):
        result = pyptx("own.py:own", "--arg", "f32[8]=ones", *option)
        assert (result.status, result.out) == (2, "")
        assert f"{option[0]} is not for a Python kernel" in result.err
    assert pyptx("own.py:own", "--arg", "f32[8]=ones", "--grid", "2").status == 0


def test_the_remedy_for_an_uninitialized_output_is_another_argument(pyptx: Command, tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text(
        "from pyptx import Tile, kernel, ptx\nfrom pyptx.types import u32\n"
        "@kernel(in_specs=[Tile(64, u32)], out_specs=[Tile(64, u32)], grid=(1,), block=(32, 1, 1))\n"
        "def part(a, b):\n"
        "    _, pb = ptx.global_ptrs(a, b)\n"
        "    ptx.st(u32, ptx.addr(pb, ptx.special.tid.x() * 4), 1)\n"
    )
    result = pyptx("part.py:part", "--arg", "u32[64]=ones")
    assert "part.py:4: warning[PTX0998]: output elements never written: `b`: 32 of 64, the first at [32]" in result.err
    assert "with values as another --arg" in result.err
    assert "out=" not in result.err
    assert "not checked: numerics, unused, dependents;" in result.out


VECTORS = str(Path(__file__).parents[2] / "examples" / "any" / "01_vector_add.py")


def test_a_kernel_of_a_python_file_is_run(pyptx: Command) -> None:
    words = (f"{VECTORS}:make", "--arg", "f32[1000]=arange", "--arg", "f32[1000]=1.5")
    assert pyptx(*words, "--save", "c=c.npy", "--timeline", "run.html", "--stats").status == 0
    assert np.array_equal(np.load("c.npy"), np.arange(1000, dtype="f4") + 1.5)
    assert "01_vector_add.py" in Path("run.html").read_text("utf-8")
    np.save("ref.npy", np.zeros(1000, "f4"))
    result = pyptx(*words, "--expect", "2=ref.npy", "--repeat", "2")
    assert result.status == 1
    assert f"pyptx sim {VECTORS}:make" in result.err


def test_warnings_are_status_1_with_check_strict_only(pyptx: Command) -> None:
    words = (f"{VECTORS}:make", "--arg", "f32[2048]=1", "--arg", "f32[2048]=1", "--grid", "1,1")
    assert pyptx(*words).status == 0
    assert pyptx(*words, "--check", "strict").status == 1


def test_check_strict_without_a_finding_is_status_0(pyptx: Command) -> None:
    result = pyptx(f"{VECTORS}:make", "--arg", "f32[1024]=1", "--arg", "f32[1024]=1", "--check", "strict")
    assert (result.status, result.err) == (0, "")


def test_a_python_kernel_takes_its_outputs_with_values_behind_its_inputs(pyptx: Command) -> None:
    words = (str(Path(VECTORS).with_name("04_histogram.py")) + ":make", "--arg", "u8[400]=7")
    result = pyptx(*words)
    assert result.status == 1
    assert "PTX0913" in result.err
    assert pyptx(*words, "--arg", "u32[256]=1", "--save", "counts=counts.npy").status == 0
    assert np.load("counts.npy").tolist() == [1 + 400 * (index == 7) for index in range(256)]


def test_a_function_that_needs_values_returns_no_kernel_to_run(pyptx: Command) -> None:
    Path("factory.py").write_text("def make(width):\n    return None\n", "utf-8")
    assert pyptx("factory.py:make").err == (
        "pyptx: factory.py:1: `make` needs width: give defaults, or add a function without parameters that calls it; a "
        "function that is the kernel itself needs @kernel\n"
    )


BAD_KERNELS: dict[str, tuple[list[str], str]] = {
    "no file": (["none.py:make"], "none.py: no such file"),
    "no name": ([VECTORS], f"also name the kernel: {VECTORS}:NAME"),
    "no kernel": ([f"{VECTORS}:Array"], "has no kernel `Array`"),
    "nothing": ([f"{VECTORS}:nothing"], "has no kernel `nothing`"),
    "too few": ([f"{VECTORS}:make", "--arg", "f32[8]=1"], "the parameters are: a, b"),
    "sizes that differ": ([f"{VECTORS}:make", "--arg", "f32[8]=1", "--arg", "f32[9]=1"], "8"),
    "another type": ([f"{VECTORS}:make", "--arg", "f32[8]=1", "--arg", "f64[8]=1"], "float64"),
}


@pytest.mark.parametrize(("words", "reason"), list(BAD_KERNELS.values()), ids=list(BAD_KERNELS))
def test_a_python_kernel_that_cannot_be_run_is_status_2(pyptx: Command, words: list[str], reason: str) -> None:
    result = pyptx(*words)
    assert (result.status, result.out) == (2, "")
    assert reason in result.err


def test_a_transpiled_file_is_run_through_its_ptx(pyptx: Command) -> None:
    assert main(["transpile", "copy.ptx", "-o", "copied.py"]) == 0
    result = pyptx("copied.py:copy")
    assert result.status == 2
    assert "`python copied.py --no-assembly | pyptx sim - --entry copy`" in result.err
