"""`pyptx sim`, through `main`: arguments, results, hazards, hangs, and errors in the command line."""

from __future__ import annotations

import os
import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from pyptx.sim.observers.checks.choice import CLASSES, OPTIONAL
from tests.cli.conftest import HEAD, SCALE, Command

Array = NDArray[Any]


def test_arrays_are_read_scaled_and_saved(pyptx: Command, tmp_path: Path) -> None:
    data = np.linspace(-3, 3, 256, dtype=np.float32)
    np.save(tmp_path / "in.npy", data)
    result = pyptx(
        "scale.ptx", "--grid", "2", "--block", "128", "--arg", "f32[256]=in.npy", "--arg", "f32=2", "--save",
        "0=out.npy",
    )  # fmt: skip
    assert (result.status, result.err) == (0, "")
    assert "256 threads" in result.out
    assert np.array_equal(np.load(tmp_path / "out.npy"), data * np.float32(2))


FILLS: list[tuple[str, Array]] = [
    ("u32[4]=arange", np.arange(4, dtype="u4")), ("f32[4]=arange", np.arange(4, dtype="f4")),
    ("i32[2,2]=-1", np.full(4, -1, "i4")), ("u32[4]=0x10", np.full(4, 16, "u4")), ("f32[4]=ones", np.ones(4, "f4")),
    ("b32[2x2]=zeros", np.zeros(4, "u4")), ("f32[4]=1e-3", np.full(4, 1e-3, "f4")),
    ("u8[16]=255", np.full(4, -1, "i4")), ("i32[4]=-0x80000000", np.full(4, -(1 << 31), "i4")),
    ("i32[4]=0x7fffffff", np.full(4, (1 << 31) - 1, "i4")),
    ("bf16[8]=arange", np.arange(8).astype(ml_dtypes.bfloat16).view("u4")),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "expected"), FILLS, ids=[spec for spec, _ in FILLS])
def test_arrays_are_filled_as_asked_for(pyptx: Command, tmp_path: Path, spec: str, expected: Array) -> None:
    assert pyptx("copy.ptx", "--block", "4", "--arg", spec, "--arg", "u32[4]=zeros", "--save", "to=o.npy").status == 0
    assert np.array_equal(np.load(tmp_path / "o.npy"), expected.view("u4"))


def test_random_arrays_are_the_same_until_another_seed_is_named(pyptx: Command, tmp_path: Path) -> None:
    def values(spec: str, *options: str) -> Array:
        words = ("copy.ptx", "--block", "512", "--arg", spec, "--arg", "b32[512]=zeros", "--save", "to=o.npy", *options)
        assert pyptx(*words).status == 0
        return np.load(tmp_path / "o.npy").view("f4")

    uniform, normal = values("f32[512]=uniform(2,3)"), values("f32[512]=randn")
    assert uniform.min() >= 2
    assert uniform.max() < 3
    assert len(set(uniform.tolist())) > 400
    assert abs(normal.std() - 1) < 0.2
    assert np.array_equal(normal, values("f32[512]=randn"))
    assert not np.array_equal(normal, values("f32[512]=randn", "--data-seed", "1"))
    assert set(values("i32[512]=randint(-2,3)").view("i4").tolist()) == {-2, -1, 0, 1, 2}


def test_hazards_are_reported_with_both_places(pyptx: Command) -> None:
    result = pyptx("racy.ptx", "--block", "64", "--arg", "u32[4]=zeros")
    assert result.status == 1
    assert re.search(r"racy\.ptx:\d+:\d+: error\[PTX09\d\d\]", result.err)
    assert "^" in result.err
    assert re.search(r"error\[PTX0901\].* `\w+`(\+\d+)? of CTA 0", result.err)
    assert re.search(r"the other place: .* at racy\.ptx:\d+:\d+", result.err)
    assert pyptx("racy.ptx", "--block", "64", "--arg", "u32[4]=zeros", "--check", "none").status == 0


def test_a_hang_is_explained(pyptx: Command) -> None:
    result = pyptx("hangs.ptx", "--block", "64", "--arg", "u32[4]=zeros")
    assert result.status == 1
    assert "hangs.ptx:" in result.err
    assert "bar.sync" in result.err


def test_an_endless_loop_ends(pyptx: Command) -> None:
    result = pyptx("loops.ptx", "--max-steps", "1000")
    assert result.status == 1
    assert "1000" in result.err


def test_the_first_failing_seed_is_printed_with_its_command(pyptx: Command) -> None:
    words = ("racy.ptx", "--block", "64", "--arg", "u32[4]=zeros", "--schedule", "random", "--repeat", "5")
    result = pyptx(*words, "--seed", "3")
    assert result.status == 1
    line = next(line for line in result.err.splitlines() if line.startswith("seed "))
    command = shlex.split(line.partition("to repeat it: ")[2])
    assert command[:2] == ["pyptx", "sim"]
    assert command[-2:] == ["--seed", re.findall(r"seed (\d+) failed", line)[0]]
    repetition = pyptx(*command[2:])
    assert repetition.status == 1
    assert re.findall(r"PTX09\d\d", repetition.err)[0] == re.findall(r"PTX09\d\d", result.err)[0]


def test_seeds_that_pass_are_counted(pyptx: Command) -> None:
    words = ("copy.ptx", "--block", "32", "--arg", "u32[32]=arange", "--arg", "u32[32]=zeros")
    result = pyptx(*words, "--schedule", "adversarial", "--repeat", "4")
    assert result.status == 0
    assert "4 seeds" in result.out


def test_json_is_one_document(pyptx: Command) -> None:
    result = pyptx("racy.ptx", "--block", "64", "--arg", "u32[4]=zeros", "--json", "--repeat", "2")
    assert result.status == 1
    document = result.document
    (run,) = document["runs"]
    assert (document["entry"], document["failed_seed"], run["ok"]) == ("racy", 0, False)
    assert "linked" not in document
    assert run["hazards"][0]["code"] == run["diagnostics"][0]["code"]
    assert run["stats"]["lanes"] == 64
    assert document["repeat"] == "pyptx sim racy.ptx --block 64 --arg 'u32[4]=zeros' --seed 0"


def test_statistics_are_printed_and_part_of_the_document(pyptx: Command) -> None:
    words = ("copy.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[64]=zeros", "--stats")
    result = pyptx(*words)
    assert result.status == 0
    assert "not timing" in result.out
    assert re.search(r"ld\.global\.b32 +global +2 +8 +8 +1\.0×", result.out)
    (run,) = pyptx(*words, "--json").document["runs"]
    assert run["stats"]["accesses"][0]["sectors"] == 8


@pytest.mark.parametrize("name", ["run.html", "run.json"])
def test_a_timeline_is_written(pyptx: Command, tmp_path: Path, name: str) -> None:
    words = ("copy.ptx", "--block", "64", "--arg", "u32[64]=arange", "--arg", "u32[64]=zeros", "--timeline", name)
    assert pyptx(*words).status == 0
    assert "copy" in (tmp_path / name).read_text("utf-8")
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    result = pyptx(*words)
    assert (result.status, result.err) == (2, f"pyptx: {name}: Is a directory\n")


def test_a_tensor_map_is_an_argument(pyptx: Command) -> None:
    gemm = str(Path(__file__).parents[2] / "examples" / "hopper_gemm.ptx")
    matrix = "bf16[128,64]=randint(-3,4) map(box=128x64, swizzle=128B)"
    words = [gemm, "--block", "384", "--shared", "131072", "--check", "none"]
    specs = (matrix, matrix.replace("randint(-3,4)", "ones"), "f32[128,128]=zeros", "i32=128", "i32=1")
    for spec in specs:
        words += ["--arg", spec]
    assert pyptx(*words, "--save", "2=d.npy").status == 0
    copy = np.load("d.npy")
    assert (copy == copy[:, :1]).all()
    assert copy.any()


def test_all_schedules_print_a_line_for_each_that_failed(pyptx: Command, tmp_path: Path) -> None:
    words = ("racy.ptx", "--block", "64", "--arg", "u32[64]=zeros", "--schedule", "all", "--repeat", "3")
    result = pyptx(*words)
    failures = [line for line in result.err.splitlines() if "to repeat it:" in line]
    assert (result.status, len(failures)) == (1, 8)
    assert failures[0].startswith("eager, seed 0 failed (PTX0901")
    assert "8 of 8 orders failed" in result.err
    repetition = pyptx(*shlex.split(failures[-1].partition("to repeat it: ")[2])[2:])
    assert "schedule adversarial" in repetition.out
    assert "to repeat it" in repetition.err
    document = pyptx(*words, "--json").document
    assert [(run["schedule"], run["seed"]) for run in document["runs"]][:3] == [
        ("eager", 0),
        ("lazy", 0),
        ("random", 0),
    ]
    assert all(run["repeat"].startswith("pyptx sim racy.ptx") for run in document["runs"])
    result = pyptx("scale.ptx", "--block", "4", "--arg", "f32[4]=ones", "--arg", "f32=2", "--schedule", "all")
    omissions = ", ".join(name for name in CLASSES if name in OPTIONAL)
    assert (result.status, result.out) == (
        0,
        "scale: 4 threads, 44 instructions, 12 orders\n"
        f"covers one input in 12 orders (every schedule); hazards not checked: {omissions}; not modeled: timing\n",
    )
    assert pyptx("scale.ptx", "--block", "2048", "--schedule", "all").status == 2


TWO = ("--arg", "u32[4]=0", "--arg", "u32[4]=0")
BAD: dict[str, tuple[list[str], str]] = {
    "no such file": (["none.ptx"], "no such file"),
    "no such kernel": (["scale.ptx", "--entry", "skale"], "no kernel `skale` in the file; its kernels: scale"),
    "too few arguments": (["scale.ptx", "--arg", "f32=1"], "the parameters are: data (.u64), factor (.f32)"),
    "too many arguments": (["loops.ptx", "--arg", "f32=1"],
                           "has 0 parameters, found 1 --arg; the parameters are: none"),
    "another size": (["scale.ptx", "--arg", "f32[4]=ones", "--arg", "f64=1"], "`factor` is .f32 of 4 bytes"),
    "no type": (["scale.ptx", "--arg", "float[4]=ones", "--arg", "f32=1"], "`float` is not a type"),
    "no value": (["scale.ptx", "--arg", "f32[4]", "--arg", "f32=1"], "TYPE[SHAPE]=VALUE"),
    "a value of nothing": (["scale.ptx", "--arg", "f32[4]=", "--arg", "f32=1"], "TYPE[SHAPE]=VALUE"),
    "unknown filling": (["scale.ptx", "--arg", "f32[4]=rnd", "--arg", "f32=1"], "`rnd` is none of zeros, ones"),
    "zero elements": (["scale.ptx", "--arg", "f32[0]=ones", "--arg", "f32=1"],
                      "[0] is not a list of positive integers"),
    "too many elements": (["scale.ptx", "--arg", "f32[99999999999]=ones", "--arg", "f32=1"], "more than 4 GiB"),
    "out of range": (["copy.ptx", "--arg", "u8[4]=256", "--arg", "u32[4]=0"], "256 does not fit into u8"),
    "below the range": (["copy.ptx", "--arg", "i32[4]=-2147483649", "--arg", "u32[4]=0"], "does not fit into i32"),
    "integers from a bell curve": (["copy.ptx", "--arg", "u8[4]=randn", "--arg", "u32[4]=0"], "randint(low,high)"),
    "an empty range": (["copy.ptx", "--arg", "f32[4]=uniform(1,1)", "--arg", "u32[4]=0"], "1 is not below 1"),
    "no range": (["copy.ptx", "--arg", "f32[4]=uniform(1)", "--arg", "u32[4]=0"], "expected two numbers"),
    "missing array": (["copy.ptx", "--arg", "f32[4]=no.npy", "--arg", "u32[4]=0"], "no.npy: no such file"),
    "no array": (["copy.ptx", "--arg", "f32[4]=bad.npy", "--arg", "u32[4]=0"], "bad.npy: "),
    "another shape": (["copy.ptx", "--arg", "i64[4]=three.npy", "--arg", "u32[4]=0"], "has shape (3,), not (4,)"),
    "another type": (["copy.ptx", "--arg", "f32[3]=three.npy", "--arg", "u32[4]=0"], "holds int64, not f32"),
    "a map without an array": (["copy.ptx", "--arg", "f32=1 map(box=4)", "--arg", "u32[4]=0"], "needs an array"),
    "a map without a box": (["copy.ptx", "--arg", "f32[4]=1 map(swizzle=32B)", "--arg", "u32[4]=0"], "box=ROWS"),
    "a box of another rank": (["copy.ptx", "--arg", "f32[4]=1 map(box=2x2)", "--arg", "u32[4]=0"], "box of 1 sizes"),
    "no grid": (["loops.ptx", "--grid", "0"], "--grid 0: expected one to three positive integers"),
    "four dimensions": (["loops.ptx", "--block", "1,1,1,1"], "--block 1,1,1,1"),
    "too large a block": (["loops.ptx", "--block", "2048"], "the block has 2048 threads"),
    "no seeds": (["loops.ptx", "--repeat", "0"], "--repeat: expected an integer of at least 1"),
    "a seed below zero": (["loops.ptx", "--seed", "-1"], "--seed: expected an integer of at least 0"),
    "a data seed below zero": (["loops.ptx", "--data-seed", "-1"], "--data-seed: expected an integer of at least 0"),
    "steps of many digits": (["loops.ptx", "--max-steps", "9" * 5000],
                             "--max-steps: expected an integer of at least 1"),
    "a grid of many digits": (["loops.ptx", "--grid", "9" * 5000], "expected one to three positive integers"),
    "a grid of other digits": (["loops.ptx", "--grid", "٤"], "--grid ٤: expected one to three positive integers"),
    "shared memory in words": (["loops.ptx", "--shared", "1e3"], "--shared: expected an integer of at least 0"),
    "no tolerance": (["loops.ptx", "--tolerance", "nan"], "--tolerance nan: expected a number of at least 0"),
    "an endless tolerance": (["loops.ptx", "--tolerance", "inf"], "--tolerance inf: expected a number of at least 0"),
    "an empty name": (["loops.ptx", "--entry", ""], "no kernel `` in the file; its kernels: on"),
    "a timeline with a NUL": (["loops.ptx", "--timeline", "\0.html"], "--timeline: a file name cannot contain NUL"),
    "saving to nowhere": (["copy.ptx", *TWO, "--save", "to=none/x.npy"], "there is no directory none"),
    "saving to a NUL": (["copy.ptx", *TWO, "--save", "to=\0"], "a file name cannot contain NUL"),
    "an argument of many digits": (["copy.ptx", *TWO, "--save", "9" * 5000 + "=x.npy"], "expected ARG=FILE"),
    "a map that is too wide": (
        ["copy.ptx", "--arg", "f32[512]=zeros map(box=512)", "--arg", "u32[4]=0"], "PTX1205"),
    "unknown schedule": (["loops.ptx", "--schedule", "fast"], "'fast'"),
    "unknown check": (["loops.ptx", "--check", "rases"], "'rases'"),
    "unknown precision": (["loops.ptx", "--precision", "double"], "'double'"),
    "a timeline of nothing": (["loops.ptx", "--timeline", "run.png"], ".html or .json"),
    "a timeline to nowhere": (["loops.ptx", "--timeline", "none/run.html"], "there is no directory none"),
    "saving a scalar": (["scale.ptx", "--arg", "f32[4]=1", "--arg", "f32=1", "--save", "1=x.npy"], "is not an array"),
    "saving nothing": (["scale.ptx", "--arg", "f32[4]=1", "--arg", "f32=1", "--save", "out=x.npy"], "data or 0"),
    "comparing with nothing": (["copy.ptx", "--arg", "u32[4]=0", "--arg", "u32[4]=0", "--expect", "to=n.npy"],
                               "n.npy: no such file"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "reason"), list(BAD.values()), ids=list(BAD))
def test_what_cannot_be_done_is_said_and_is_status_2(
    pyptx: Command, tmp_path: Path, words: list[str], reason: str
) -> None:
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY nothing")
    np.save(tmp_path / "three.npy", np.arange(3))
    result = pyptx(*words)
    assert (result.status, result.out) == (2, "")
    assert reason in result.err
    assert "Traceback" not in result.err
    assert len(result.err.splitlines()) == 1 or "error[PTX" in result.err


def test_verbose_lists_what_happened_before_a_hang(pyptx: Command) -> None:
    words = ("hangs.ptx", "--block", "64", "--arg", "u32[64]=zeros")
    short, long = pyptx(*words), pyptx(*words, "--verbose")
    assert short.status == long.status == 1
    assert "could complete it" not in short.err
    assert "could complete it: CTA 0 warp " in long.err


class Harmful:
    """An object that creates a folder when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("unpickled",)


def test_a_pickle_is_not_loaded(pyptx: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([Harmful(), Harmful()], dtype=object), allow_pickle=True)
    result = pyptx("copy.ptx", "--arg", "u32[2]=objects.npy", "--arg", "u32[4]=0")
    assert result.status == 2
    assert "objects.npy" in result.err
    assert not (tmp_path / "unpickled").exists()


def test_a_file_that_does_not_parse_is_reported_as_check_does(pyptx: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.ptx").write_text(SCALE.replace("%f3, %f2, %f1;", "%f3, %f2, ;"))
    result = pyptx("broken.ptx")
    assert result.status == 1
    assert "broken.ptx:18:" in result.err


MAIN = f"""{HEAD}
.extern .func fill(.param .u64 to);
.visible .entry main(.param .u64 out)
{{
    .reg .b64 %a;
    ld.param.u64 %a, [out];
    {{ .param .u64 to; st.param.u64 [to], %a; call fill, (to); }}
    ret;
}}
"""
LIBRARY = f"""{HEAD}
.visible .func fill(.param .u64 to)
{{
    .reg .b64 %a;
    .reg .b32 %t;
    ld.param.u64 %a, [to];
    mov.u32 %t, %tid.x;
    st.global.u32 [%a], %t;
    ret;
}}
"""


@pytest.fixture
def two_files(tmp_path: Path) -> None:
    (tmp_path / "main.ptx").write_text(MAIN)
    (tmp_path / "library.ptx").write_text(LIBRARY)


@pytest.mark.usefixtures("two_files")
def test_several_files_are_linked(pyptx: Command) -> None:
    words = ("main.ptx", "library.ptx", "--arg", "u32[1]=ones", "--save", "out=out.npy")
    result = pyptx(*words)
    assert (result.status, result.err) == (0, "")
    assert np.load("out.npy").tolist() == [0]
    document = pyptx(*words, "--json").document
    assert (document["file"], document["linked"], document["entry"]) == ("main.ptx", ["library.ptx"], "main")


@pytest.mark.usefixtures("two_files")
def test_a_finding_is_shown_in_its_file_of_several(pyptx: Command) -> None:
    result = pyptx("main.ptx", "library.ptx", "--block", "64", "--arg", "u32[1]=ones", "--schedule", "random")
    assert result.status == 1
    assert "library.ptx:11:5: error[PTX0901]" in result.err
    assert "st.global.u32 [%a], %t;" in result.err
    assert "pyptx sim main.ptx library.ptx --block 64" in result.err


@pytest.mark.usefixtures("two_files")
def test_files_that_do_not_link_are_reported(pyptx: Command, tmp_path: Path) -> None:
    result = pyptx("library.ptx", "main.ptx", "library.ptx", "--arg", "u32[1]=ones")
    assert result.status == 1
    assert "library.ptx:5:1: error[PTX1108]: `fill` is defined here and at library.ptx:5:1" in result.err
    (tmp_path / "wrong.ptx").write_text(HEAD + ".visible .func fill(.param .u32 to) { ret }\n")
    result = pyptx("main.ptx", "wrong.ptx", "--arg", "u32[1]=ones")
    assert result.status == 1
    assert result.err.startswith("wrong.ptx:4:")
    result = pyptx("main.ptx", "here.py:kernel", "--arg", "u32[1]=ones")
    assert (result.status, "a Python kernel runs alone" in result.err) == (2, True)


def test_a_launch_that_takes_very_long_says_so_in_a_line_of_standard_error(
    pyptx: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyptx.sim.launch.progress._SETTLED", 0)
    monkeypatch.setattr("pyptx.sim.launch.progress._VERY_LONG", 1e-9)
    monkeypatch.setattr("pyptx.sim.launch.progress._FASTEST", float("inf"))
    words = ("scale.ptx", "--grid", "512", "--block", "32", "--arg", "f32[16384]=zeros", "--arg", "f32=1")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = pyptx(*words, "--json")
    assert result.status == 0
    assert result.document["runs"][0]["ok"]
    assert re.fullmatch(
        r"pyptx: a grid of 512 CTAs of 32 threads needs about .*; Control-C stops the run\n", result.err
    )
