"""What the main program of a generated file prints, and its exit status."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pyptx.codegen import ptx_to_python
from pyptx.codegen.program import main

Report = Callable[..., tuple[int, str, list[str]]]
SCALE = """\
.version 8.0
.target sm_90
.address_size 64
.entry scale(.param .u64 out, .param .u32 n)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r2, [n];
    ld.global.f32 %f1, [%rd1]; // read
    mul.f32 %f1, %f1, 0f40000000;
    st.global.u32 [%rd1+4], %r2;
    ret;
}
"""
SAME = "the PTX is identical to the original, byte for byte"
EDITED = "the PTX is different from the original"


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Report:
    """Return a function that runs the main program of a transcript, after an edit: its status and its two outputs."""

    def run(words: str, old: str = "", new: str = "", ptx: str = SCALE) -> tuple[int, str, list[str]]:
        python = ptx_to_python(ptx)
        assert not old or re.search(old, python)
        scope: dict[str, Any] = {"__name__": "generated"}
        exec(compile(re.sub(old, new, python) if old else python, "generated.py", "exec"), scope)
        status = main(scope["module"], scope["ORIGINAL"], words.split())
        captured = capsys.readouterr()
        return status, captured.out, captured.err.splitlines()

    return run


@pytest.mark.parametrize(
    ("old", "new", "likeness"),
    [
        ("", "", SAME),
        (r"ptx\.layout\(after=.*", "", "the PTX is identical to the original except for spacing, comments and .loc"),
        (r"mul\.f32", "add.f32", EDITED),
    ],
)
def test_the_ptx_is_printed_and_compared_with_the_original(report: Report, old: str, new: str, likeness: str) -> None:
    status, text, lines = report("--no-assembly", old, new)
    assert (status, lines) == (0, [likeness])
    assert (text == SCALE) == (likeness == SAME)
    assert text.startswith(".version 8.0\n.target sm_90\n")
    assert report("--no-assembly --quiet", old, new) == (0, "", [likeness])


def test_a_wrong_edit_is_reported_instead(report: Report) -> None:
    status, text, lines = report("", r"mul\.f32", "mull.f32")
    assert (status, text) == (1, "")
    assert re.match(r"generated\.py:\d+: error\[PTX0101\]: .*`mull`", lines[0])


def test_the_resources_of_each_kernel_follow(report: Report) -> None:
    status, _, (likeness, resources) = report("--quiet")
    assert (status, likeness) == (0, SAME)
    assert re.fullmatch(r"scale: \d+ registers, 0 bytes of shared memory", resources)
    loads, stores = (
        "".join(f"{line}\n" for line in lines)
        for lines in (
            [f"ld.volatile.global.u32 %q{i}, [%rd1+{4 * i}];" for i in range(60)],
            [f"st.volatile.global.u32 [%rd1+{4 * i}], %q{59 - i};" for i in range(60)],
        )
    )
    ptx = SCALE.replace(
        "    ret;", f".reg .b32 %q<60>; .shared .b32 tile[9];\n{loads}{stores}st.shared.u32 [tile], 1;ret;"
    )
    _, _, (_, resources) = report("--quiet", ptx=ptx.replace("n)\n{", "n)\n.maxnreg 24\n{"))
    assert re.fullmatch(r"scale: 24 registers, 36 bytes of shared memory, [1-9]\d* bytes spilled", resources)


def test_at_most_ten_errors_of_the_assembler_are_shown(report: Report) -> None:
    wrong = 11 * "ptx.inst.mul.f32(f[1], f[2], rd[1])\n    "
    status, _, lines = report("--quiet", r"ptx\.inst\.ret", f"{wrong}ptx.inst.ret")
    assert (status, lines[0]) == (1, EDITED)
    assert sum("error[" in line for line in lines) == 10
    assert not any("warning" in line for line in lines)


def test_a_simulation_has_the_arguments_of_the_command_line(report: Report) -> None:
    assert report("--quiet --no-assembly --run") == (0, "", [
        SAME, "  out: a buffer of 1048576 bytes", "  n: 64", "simulating scale with grid=1, block=(128,), shared=0",
        "  out: 1 of 1048576 bytes changed", "finished; 0 hazards found",
    ])  # fmt: skip
    words = "--quiet --no-assembly --run --entry scale --grid 2 --block 32 --bytes 64 --number 7"
    assert report(words)[2][1:4] == [
        "  out: a buffer of 64 bytes", "  n: 7", "simulating scale with grid=2, block=(32,), shared=0",
    ]  # fmt: skip


def test_a_simulation_that_fails_has_status_1(report: Report) -> None:
    words = "--quiet --no-assembly --run"
    assert report(f"{words} --entry other") == (
        1, "", [SAME, "no kernel other to simulate; the kernels are scale"],
    )  # fmt: skip
    status, _, lines = report(f"{words} --bytes 4")
    assert status == 1
    assert any("error[PTX11" in line for line in lines)
    without = ".version 8.0\n.target sm_90\n.address_size 64\n.func f() { ret; }\n"
    assert report(words, ptx=without) == (1, "", [SAME, "no kernel  to simulate; the kernels are none"])


def test_a_kernel_is_chosen_by_its_name_among_those_with_a_body(report: Report) -> None:
    ptx = f"{SCALE}.extern .entry absent();\n.entry second() {{ ret; }}\n"
    status, _, lines = report("--quiet --no-assembly --run --entry second", ptx=ptx)
    assert (status, lines[1]) == (0, "simulating second with grid=1, block=(128,), shared=0")
    assert report("--quiet --no-assembly --run --entry absent", ptx=ptx)[2][1:] == [
        "no kernel absent to simulate; the kernels are scale, absent, second"
    ]
