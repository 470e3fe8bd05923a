"""Launches that are accepted, and messages for invalid launches."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.launch import room
from pyptx.sim.launch.prepared import Options, prepare_launch
from tests.sim.kernels import HEAD, assert_reported, kernel

BODY = "mov.u32 %r0, %ctaid.x;\nst.global.u32 [%o], %r0;"
OUT = np.zeros(4, np.int32)


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ({"args": ()}, "PTX1102", "the kernel has 1 parameter, found 0 arguments; the parameters are: "),
        ({"args": (OUT, 1)}, "PTX1102", "found 2"),
        ({"args": (np.float32(1),)}, "PTX1102", "8 bytes"),
        ({"args": ("text",)}, "PTX1102", "a value of type str cannot be passed; pass a NumPy array or a number"),
        ({"args": {"in": OUT}}, "PTX1102", "missing argument `out`; unknown argument `in`"),
        ({"args": {"ou": OUT, "a": 1, "b": 2}}, "PTX1102", "missing argument `out`; unknown arguments `ou`, `a`, `b`"),
        ({"args": {"out": OUT, "in": 1}}, "PTX1102", "unknown argument `in`"),
        ({"args": (OUT,), "grid": 0}, "PTX1103", "grid"),
        ({"args": (OUT,), "block": (2000,)}, "PTX1103", "1024"),
        ({"args": (OUT,), "shared": 300000}, "PTX1103", "shared memory"),
        ({"args": (OUT,), "grid": 3, "cluster": 2}, "PTX1103", "cluster"),
        ({"args": (OUT,), "entry": "other"}, "PTX1101", "`k`"),
    ],
)
def test_wrong_launches(options: dict[str, Any], code: str, word: str) -> None:
    assert_reported(kernel(BODY), code, word, **options)


def test_a_text_is_to_be_parsed_first() -> None:
    text: Any = kernel(BODY)
    for run in (sim.run, sim.Machine):
        with pytest.raises(TypeError, match=r"found str: pyptx\.parser\.parse\(text\)"):
            run(text, args=(OUT,))


def test_every_way_to_launch_has_the_same_defaults() -> None:
    functions = sim.run, sim.stream, sim.Launch, Options
    parameters = [item for function in functions for item in inspect.signature(function).parameters.items()]
    defaults: dict[str, set[Any]] = {}
    for name, parameter in parameters:
        defaults.setdefault(name, set()).add(parameter.default)
    assert [name for name, values in defaults.items() if len(values) > 1] == []
    assert len(parameters) - len(defaults) > 20


def test_undefined_symbols() -> None:
    text = kernel("ld.global.u32 %r0, [there];", module=".extern .global .u32 there;")
    assert_reported(text, "PTX1104", "`there`", args=(OUT,))
    text = kernel("call missing;", module=".extern .func missing;")
    assert_reported(text, "PTX1104", "`missing`", args=(OUT,))


def test_an_illegal_instruction_is_named() -> None:
    assert_reported(kernel("add.s32 %r0, %rd1, %r1;"), "PTX1106", "add.s32", args=(OUT,))


@pytest.mark.parametrize("line", ["{}", "add.s32 %r0, %r0, %r1; {}", "{} add.s32 %r0, %r1, 1/0;", "{} {}"])
def test_an_illegal_instruction_is_explained_by_its_own_finding(line: str) -> None:
    body = line.format(*["@%p0 add.s32 %r0, %rd1, %r1;"] * 2)
    error = assert_reported(kernel(body), "PTX1106", args=(OUT,))
    assert error.diagnostics[0].notes == ("`a` is .s32, found `%rd1` declared .b64",)


def test_scalars_and_bytes() -> None:
    params = ".param .u64 out, .param .f32 f, .param .s16 h, .param .b64 d, .param .u8 c"
    text = kernel("""ld.param.f32 %f1, [f]; cvt.rzi.s32.f32 %r1, %f1;
ld.param.s16 %r2, [h]; ld.param.u64 %rd1, [d]; cvt.u32.u64 %r3, %rd1; ld.param.u8 %r4, [c];
add.s32 %r0, %r1, %r2; add.s32 %r0, %r0, %r3; add.s32 %r0, %r0, %r4;
st.global.u32 [%o], %r0;""", params=params)  # fmt: skip
    out = np.zeros(1, np.int32)
    sim.run(parse(text), args=(out, 7.9, -3, (1000).to_bytes(8, "little"), np.uint8(200)))
    assert out.tolist() == [7 - 3 + 1000 + 200]


def test_the_same_array_twice_is_one_buffer() -> None:
    text = kernel("ld.param.u64 %rd1, [x];\nst.global.u32 [%rd1], 5;\nld.global.u32 %r0, [%o];\nadd.u32 %r0, %r0, 1;\n"
                  "st.global.u32 [%o], %r0;", params=".param .u64 out, .param .u64 x")  # fmt: skip
    out = np.zeros(1, np.int32)
    sim.run(parse(text), args=(out, out))
    assert out.tolist() == [6]


def test_arrays_that_are_not_contiguous_are_written_back() -> None:
    out = np.zeros((4, 2), np.int32)
    sim.run(parse(kernel("mov.u32 %r0, 3;\nst.global.u32 [%o], %r0;")), block=4, args=(out[:, 1],))
    assert out.tolist() == [[0, 3]] * 4


def test_batches_do_not_change_results() -> None:
    text = kernel("""mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x;
mad.lo.u32 %r4, %r2, %r3, %r1; mov.u32 %r5, %ntid.x; mad.lo.u32 %r4, %r4, %r5, %t;
ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r4, 4, %rd1; st.global.u32 [%rd1], %r4;""")  # fmt: skip
    for lanes in (1, 100, 8192):
        out = np.zeros(5 * 3 * 33, np.int32)
        result = sim.run(parse(text), grid=(5, 3), block=33, args=(out,), batch_lanes=lanes)
        assert out.tolist() == list(range(495))
        assert result.stats.lane_instructions == 495 * 13
    assert result.stats.batches == 1


def test_one_entry_needs_no_name() -> None:
    text = f"{HEAD}.visible .entry a() {{ ret; }}\n.visible .entry b() {{ ret; }}"
    assert_reported(text, "PTX1101", "`a`, `b`")


def test_every_launch_starts_with_fresh_module_variables() -> None:
    body = """atom.global.add.u32 %r0, [count], 1;
mov.f32 %f1, 0f00000000;
ex2.approx.f32 %f1, %f1;
st.global.u32 [%o], %r0;"""
    module = parse(kernel(body, module=".global .u32 count = 5;"))
    for _ in range(2):
        out = np.zeros(1, np.int32)
        result = sim.run(module, args=(out,))
        assert out.tolist() == [5]
        assert result.stats.approximate == {"ex2.approx.f32"}


def test_a_resident_grid_that_does_not_fit() -> None:
    text = kernel("st.global.u32 [%o], %r0;")
    assert_reported(
        text, "PTX1107", "not enough memory", args=(OUT,), grid=(1 << 30, 1 << 10), block=1024, cooperative=True
    )


NAMED = {
    "race": ("PTX0901", "shl.b32 %r1, %t, 2; mov.u32 %r2, cells; add.u32 %r1, %r1, %r2; @%p1 ret;\n"
             "st.shared.u32 [%r1], %t;\n"
             "xor.b32 %r1, %r1, 128;\nld.shared.u32 %r2, [%r1];"),
    "hang": ("PTX0990", "@%p1 ret;\nbar.sync 1, 128;"),
    "out of bounds": ("PTX1110", "@%p1 ret;\nld.global.u32 %r1, [%o+4096];"),
    "register": ("PTX0911", "@%p1 ret;\nadd.u32 %r1, %r2, 1;"),
    "divergence": ("PTX0960", "@%p1 ret;\nsetp.lt.u32 %p2, %t, 16; @%p2 bra x;\nbar.sync 0;\n"
                   "x: st.global.u32 [%o], %t;"),
}  # fmt: skip


@pytest.mark.parametrize(("grid", "name"), [(6, "4"), ((3, 2), "(1, 1, 0)"), ((1, 1, 5), "(0, 0, 4)")])
@pytest.mark.parametrize(("code", "body"), NAMED.values(), ids=NAMED)
def test_ctas_have_one_name_everywhere(code: str, body: str, grid: int | tuple[int, ...], name: str) -> None:
    branch = "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z; mov.u32 %r6, %nctaid.x;\n"
    branch += "mad.lo.u32 %r3, %r4, %r6, %r3; add.u32 %r3, %r3, %r5; setp.ne.u32 %p1, %r3, 4;\n"
    text = kernel(branch + body, module=".shared .u32 cells[64];")
    for check in ("all", "none"):
        try:
            sim.run(
                parse(text), grid=grid, block=64, args=(np.zeros(64, np.uint32),), check=check, poison=code == "PTX0911"
            )
        except PtxError as error:
            finding = next(item for item in error.diagnostics if item.code == code)
            assert f"CTA {name}" in " ".join((finding.message, *finding.notes))
        else:
            assert check == "none"
            assert code in ("PTX0901", "PTX0960")


@pytest.mark.parametrize("check", ["all", "none"])
@pytest.mark.parametrize(("block", "shared", "local"), [(1, 0, 8), (32, 8192, 8), (1024, 0, 8), (1024, 0, 512)])
def test_the_memory_of_a_resident_grid_is_known_before_it_starts(
    check: str, block: int, shared: int, local: int
) -> None:
    text = f".local .b32 values[{local // 4}]; st.local.u32 [values], %t;"
    module, grid, is_checked = parse(kernel(text)), 4096 // min(block, 128), check == "all"

    def run(grid: int) -> None:
        sim.run(module, grid=grid, block=block, args=(OUT,), shared=shared, check=check, cooperative=True)

    options = Options(grid=grid, block=block, args=(OUT,), shared=shared, cooperative=True)
    estimate = room.estimate_size(prepare_launch(module, None, options, is_checked=is_checked).launch, grid)
    run(1)
    tracemalloc.start()
    run(grid)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.7 < estimate / peak < 1.4


def test_the_limit_of_a_container_is_a_limit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cgroup, memory = tmp_path / "memory.max", tmp_path / "meminfo"
    monkeypatch.setattr(room, "_CGROUP", cgroup)
    monkeypatch.setattr(room, "_MEMORY", memory)
    assert room.find_free_memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory.write_text("MemTotal:       24000 kB\nMemAvailable:    9000 kB\n")
    for text, size in (("max\n", 9000 << 10), (f"{3 << 20}\n", 3 << 20), (f"{9001 << 10}\n", 9000 << 10)):
        cgroup.write_text(text)
        assert room.find_free_memory() == size
    cgroup.write_text(f"{1 << 20}\n")
    monkeypatch.setattr(room, "_SMALL", 0)
    words = "not enough memory to run 2048 CTAs (131072 threads) at once: they take 0 GiB"
    for block in (64, (8, 4, 2)):
        assert_reported(kernel(BODY), "PTX1107", words, args=(OUT,), grid=2048, block=block, cooperative=True)


def test_a_resident_grid_of_a_hundred_million_threads_is_refused_before_it_takes_memory() -> None:
    program = f"""
import resource, numpy
from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
_, limit = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, limit))
module = parse({kernel("st.global.u32 [%o], %t;")!r})
for check in ("all", "none"):
    try:
        sim.run(module, grid=100000, block=1024, args=[numpy.zeros(1024, "i4")], check=check, cooperative=True)
    except PtxError as why:
        print(why.diagnostics[0].message.partition(":")[0])
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    lines = process.stdout.splitlines()
    assert lines[0] == "not enough memory to run 100000 CTAs (102400000 threads) at once", process.stderr
    assert lines[1].startswith("not enough memory "), process.stderr
