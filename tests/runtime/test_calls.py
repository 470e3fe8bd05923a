"""Calling a kernel with NumPy arrays runs it on the simulator; arguments that do not fit are reported before the
run."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import HazardWarning, Tile, kernel, ptx, reg, sim, smem
from pyptx.diagnostics import Origin, PtxError
from pyptx.types import f32, s32, u32, u64
from tests.dsl.tracing import text_of
from tests.messages import raises

A = np.arange(1000, dtype=np.float32)
B = np.linspace(-4, 4, 1000, dtype=np.float32)


def blocks(n: int) -> tuple[int]:
    """Return the grid: 128 elements per block."""
    return (-(-n // 128),)


@kernel(
    in_specs=[Tile("n", f32), Tile("n", f32)], out_specs=[Tile("n", f32)], grid=blocks,
    block=(128, 1, 1), raw_params=[("f32", "scale")],
)  # fmt: skip
def add_scaled(a: Any, b: Any, c: Any) -> None:
    """c = a + scale * b"""
    pa, pb, pc = ptx.global_ptrs(a, b, c)
    i = ptx.special.tid.x() + ptx.special.ctaid.x() * 128
    with ptx.if_(i < a.shape[0]):
        offset, x, y = reg.scalar(u64), reg.scalar(f32), reg.scalar(f32)
        ptx.inst.cvt.u64.u32(offset, i * 4)
        ptx.ld(f32, x, ptx.addr(pa, offset))
        ptx.ld(f32, y, ptx.addr(pb, offset))
        ptx.inst.fma.rn.f32(x, ptx.param(f32, "scale"), y, x)
        ptx.st(f32, ptx.addr(pc, offset), x)
    ptx.ret()


@kernel(in_specs=[Tile(32, s32)], out_specs=[Tile(32, s32), Tile(1, s32)], grid=(1,), block=(32, 1, 1))
def reverse_and_count(a: Any, b: Any, count: Any, *, step: int = 1) -> None:
    """b = a reversed + step; count = 32"""
    pa, pb, pc = ptx.global_ptrs(a, b, count)
    lane = ptx.special.laneid()
    forward, backward, x = reg.scalar(u64), reg.scalar(u64), reg.scalar(s32)
    ptx.inst.mul.wide.u32(forward, lane, 4)
    ptx.inst.sub.s64(backward, 124, forward)
    ptx.ld(s32, x, ptx.addr(pa, forward))
    ptx.st(s32, ptx.addr(pb, backward), x + step)
    with ptx.if_(lane == 0):
        ptx.st(s32, ptx.addr(pc), 0)
    ptx.bar.sync(0)
    ptx.inst.red.global_.add.s32(ptx.addr(pc), 1)
    ptx.ret()


@kernel(in_specs=[Tile(16, 32, f32, tma_box=(16, 32))], out_specs=[Tile(16, 32, f32)], grid=(1,), block=(32, 1, 1))
def tensor_copy(a: Any, b: Any) -> None:
    """b = a, through a tensor map and shared memory"""
    (out,) = ptx.global_ptrs(b)
    tile = smem.alloc(f32, (16, 32))
    full = smem.mbarrier(1)
    lane = ptx.special.laneid()
    first = lane == 0
    with ptx.if_(first):
        ptx.mbarrier.init(full[0], 1)
        ptx.fence.mbarrier_init()
    ptx.inst.bar.warp.sync(-1)
    with ptx.if_(first):
        ptx.mbarrier.arrive_expect_tx(full[0], 16 * 32 * 4)
        ptx.cp.async_.bulk.tensor_2d(dst=tile, src=a.tma_desc(), coord=(0, 0), mbar=full[0])
    ptx.mbarrier.wait(full[0], 0)
    offset, x, address = reg.scalar(u64), reg.scalar(f32), reg.scalar(u32)
    for row in range(16):
        ptx.inst.mad.lo.u32(address, lane, 4, row * 128)
        ptx.inst.cvt.u64.u32(offset, address)
        element_address = reg.from_(tile.name, u32) + address
        ptx.inst.ld.shared.f32(x, ptx.addr(element_address))
        ptx.st(f32, ptx.addr(out, offset), x)
    ptx.ret()


def test_outputs_are_allocated_and_returned() -> None:
    result = add_scaled(A, B, scale=2.0)
    assert result.dtype == np.float32
    assert np.array_equal(result, A + np.float32(2) * B)


def test_outputs_may_be_given() -> None:
    out = np.full(1000, 7, np.float32)
    assert add_scaled(A, B, scale=0.0, out=out) is out
    assert np.array_equal(out, A)


def test_another_size_is_another_specialization() -> None:
    assert np.array_equal(add_scaled(A[:130].copy(), B[:130].copy(), scale=1.0), A[:130] + B[:130])


def test_several_outputs_are_a_tuple_and_templates_are_keywords() -> None:
    data = np.arange(32, dtype=np.int32)
    reversal, count = reverse_and_count(data, step=5)
    assert np.array_equal(reversal, data[::-1] + 5)
    assert count.tolist() == [32]


def test_simulate_takes_the_arguments_of_a_call() -> None:
    result = add_scaled.simulate(A, B, scale=1.0, stream=0, programmatic=True, cooperative=True)
    np.testing.assert_array_equal(result.outputs["c"], A + B)


def test_simulate_runs_all_ctas_of_a_cooperative_grid_at_once() -> None:
    with pytest.raises(PtxError, match="not enough memory to run 2147483647 CTAs"):
        add_scaled.simulate(A, B, scale=1.0, grid=(2**31 - 1,), cooperative=True, max_steps=1000)


def test_simulate_counts_instructions() -> None:
    result = add_scaled.simulate(A, B, scale=1.0)
    assert result.stats.lanes == 1024
    assert np.array_equal(result.outputs["c"], A + B)


def test_a_tensor_map_is_made_of_the_array() -> None:
    data = np.arange(512, dtype=np.float32).reshape(16, 32)
    assert np.array_equal(tensor_copy(data), data)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((A,), "expected 2 input arrays (a, b), found 1"),
        ((A, B[:10].copy()), "`b`: dimension n is 1000 in one tensor and 10 in another"),
        ((A, B, A), "expected 2 input arrays (a, b), found 3\nhelp: pass outputs as out=: add_scaled(a, b, out=c)"),
        ((A.astype(np.float64), B), "`a`: expected dtype float32, found float64; use a.astype(numpy.float32)"),
        ((A.reshape(10, 100), B), "`a`: expected 1 dimension, found shape (10, 100)"),
        ((A[::2], B[::2].copy()), "`a`: expected a contiguous row-major array; use numpy.ascontiguousarray(a)"),
        ((list(A), B), "`a`: expected an array, found list"),
    ],
)
def test_arrays_that_do_not_fit_are_named(arrays: tuple[Any, ...], message: str) -> None:
    with raises(PtxError) as excinfo:
        add_scaled(*arrays, scale=1.0)
    assert all(line in str(excinfo.value) for line in message.split("\n"))
    place = excinfo.value.diagnostics[0].origin
    assert place is not None
    assert (Path(place.file or "").name, read_line(place)) == ("test_calls.py", "def add_scaled")


def read_line(place: Origin) -> str:
    """Return the text that a place underlines."""
    line = Path(place.file or "").read_text("utf-8").splitlines()[place.line - 1]
    return line[place.col - 1 : place.col - 1 + place.length]


def test_elements_that_are_not_aligned_are_refused() -> None:
    odd = np.frombuffer(bytes(4001), np.uint8)[1:].view(np.float32)
    with raises(PtxError, match=r"`b`: expected elements aligned to 4 bytes; use b\.copy\(\)"):
        add_scaled(A, odd, scale=1.0)


def test_the_remedy_for_an_output_does_not_write_to_a_copy() -> None:
    with raises(PtxError, match="`c`: expected a contiguous row-major array; pass a contiguous one, and copy from it"):
        add_scaled(A, B, out=np.zeros(2000, np.float32)[::2], scale=1.0)


class DlpackArray:
    """An object with only DLPack, in memory of one of its kinds of devices."""

    shape, dtype = (1000,), np.dtype(np.float32)

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.kind, 0)


_HOSTS = {"kDLCPU": 1, "kDLCUDAHost": 3, "kDLROCMHost": 11}


@pytest.mark.parametrize("kind", sorted({*range(1, 18)} - {2, 13}))
def test_only_memory_of_the_host_is_taken_with_numpy(kind: int) -> None:
    remedy = r"; use numpy\.asarray\(b\)$" if kind in _HOSTS.values() else " in the memory of another kind of device"
    with raises(PtxError, match=f"(?m)expected an array, found DlpackArray{remedy}"):
        add_scaled(A, DlpackArray(kind), scale=1.0)


def test_a_call_warns_of_what_is_probably_not_meant() -> None:
    @kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(1, 1, 1))
    def accumulate(x: Any, y: Any) -> None:
        total = reg.scalar(f32, 0)
        for _ in ptx.range_(0, 4):
            total = total + 1.0
        (py,) = ptx.global_ptrs(y)
        ptx.st(f32, ptx.addr(py), total)

    for run in (accumulate, accumulate.simulate, accumulate.stream_launch):
        with pytest.warns(UserWarning, match=r"test_calls\.py:\d+: warning\[PTX0831\].*`total \+= …`") as records:
            run(A[:1])
        assert records[0].filename == __file__


def test_a_grid_and_an_output_name_the_dimensions_that_they_lack() -> None:
    def of(grid: Any, out: Tile) -> Any:
        @kernel(in_specs=[Tile("m", f32)], out_specs=[out], grid=grid, block=(32, 1, 1))
        def do_nothing(x: Any, y: Any) -> None:
            ptx.ret()

        return do_nothing

    def bind_dimensions(m: int, k: int) -> tuple[int, int]:
        return m, k

    def small(m: int) -> tuple[int]:
        return (m // 1024,)

    for grid, out, words in (
        (bind_dimensions, Tile("m", f32), "does not accept the dimensions m: missing a required argument: 'k'"),
        (small, Tile("m", f32), f"the grid for m={len(A)}: expected one to three positive integers, found (0,)"),
        ((1,), Tile("q", f32), "`y`: its dimension q does not occur in any input"),
    ):
        with raises(PtxError, match=re.escape(words)):
            of(grid, out)(A)


def test_a_grid_function_may_name_template_parameters() -> None:
    def spread(n: int, ctas: int) -> tuple[int]:
        return (min(ctas, n),)

    @kernel(in_specs=[Tile("n", s32)], out_specs=[Tile("n", s32)], grid=spread, block=(1, 1, 1))
    def count_ctas(x: Any, y: Any, *, ctas: int = 2, step: int = 1) -> None:
        (py,) = ptx.global_ptrs(y)
        for i in ptx.range_(ptx.special.ctaid.x(), x.shape[0], ptx.special.nctaid.x()):
            ptx.st(s32, ptx.addr(py, i * 4), ptx.special.nctaid.x().view(s32) * step)

    x = np.zeros(8, np.int32)
    assert count_ctas(x).tolist() == [2] * 8
    assert count_ctas(x, ctas=3, step=10).tolist() == [30] * 8
    assert count_ctas(x[:4], ctas=5).tolist() == [4] * 4


@pytest.mark.parametrize("grid", [(0,), (1, 2, 3, 4), (1.5,), "ab"])
def test_a_grid_is_positive_integers(grid: Any) -> None:
    with raises(PtxError, match="one to three positive integers"):
        add_scaled(A, B, scale=1.0, grid=grid)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"scale": 1.0, "n": 10}, "n=10, but the arrays have 1000"),
        ({"scale": 1.0, "sclae": 2}, "unknown: sclae\nhelp: did you mean `scale=`?"),
        ({"scale": 1.0, "strem": 0}, "unknown: strem\nhelp: did you mean `stream=`?"),
        (
            {"scale": 1.0, "schedule": "lazy"},
            "unknown: schedule\nhelp: add_scaled.simulate(…) takes the options of simulated runs, add_scaled.ptx(…) "
            "those of PTX text",
        ),
        ({"scale": 1.0, "q": 0}, "unknown: q\nhelp: pass by keyword: n"),
        ({}, "the raw parameter `scale` has no value\nhelp: pass scale= by keyword, or all in order: args=[scale]"),
        ({"scale": None}, "the raw parameter `scale` has no value"),
    ],
)
def test_keywords_that_do_not_fit_are_named(keywords: dict[str, Any], message: str) -> None:
    with raises(PtxError) as excinfo:
        add_scaled(A, B, **keywords)
    assert all(line in str(excinfo.value) for line in message.split("\n"))


def test_a_kernel_without_a_grid_says_so() -> None:
    @kernel(block=(32, 1, 1))
    def do_nothing() -> None:
        ptx.ret()

    with raises(PtxError, match="has no grid"):
        do_nothing()
    assert do_nothing(grid=(1,)) == ()


@kernel(raw_params=[("u64", "x"), ("f32", "scale")], block=(8, 1, 1))
def scale_in_place() -> None:
    """x *= scale"""
    offset, value = reg.scalar(u64), reg.scalar(f32)
    ptx.inst.mul.wide.u32(offset, ptx.special.tid.x(), 4)
    address = ptx.addr(ptx.param(u64, "x"), offset)
    ptx.ld(f32, value, address)
    ptx.st(f32, address, value * ptx.param(f32, "scale"))


@pytest.mark.parametrize("step", [-1, -3, -5])
@pytest.mark.parametrize(("start", "stop"), [(10, 0), (9, 0), (10, 2), (7, 7), (3, 9), (1, 0), (2**32 - 1, 2**32 - 7)])
def test_counting_down_without_a_sign_ends_where_python_does(start: int, stop: int, step: int) -> None:
    @kernel(raw_params=[("u32", "start"), ("u32", "stop")], out_specs=[Tile(16, u32), Tile(1, u32)], grid=(1,))
    def count(output: Any, rounds: Any) -> None:
        address, n = reg.scalar(u64), reg.scalar(u32, 0)
        values, total = ptx.global_ptrs(output, rounds)
        for i in ptx.range_(ptx.param(u32, "start"), ptx.param(u32, "stop"), step):
            ptx.inst.mul.wide.u32(address, n, 4)
            ptx.st(u32, ptx.addr(values, address), i)
            ptx.add(u32, n, n, 1)
        ptx.st(u32, total, n)

    values, rounds = count(args=[start, stop], out=(np.zeros(16, np.uint32), np.zeros(1, np.uint32)))
    assert values[: rounds[0]].tolist() == list(range(start, stop, step))


def test_a_kernel_without_tensors_takes_its_parameters_as_a_list() -> None:
    x = np.arange(8, dtype=np.float32)
    assert scale_in_place(grid=(1,), args=[x, 3.0]) == ()
    assert x.tolist() == [0, 3, 6, 9, 12, 15, 18, 21]
    scale_in_place(grid=(1,), x=x, scale=2.0)
    assert x[1] == 6
    with raises(PtxError, match=r"expected 2 values in `args=` \(x, scale\), found 1"):
        scale_in_place(grid=(1,), args=[x])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([np.zeros(16, np.float32)[::2], 1.0], "`x`: expected a contiguous row-major array; use numpy.ascontiguous"),
        ([np.frombuffer(bytearray(41), np.uint8)[1:].view(np.float32), 1.0], "`x`: expected elements aligned to 4 b"),
        ([np.zeros(8, np.float32), np.zeros(8, np.float32)], "`scale`: expected a number for .f32, found an array"),
        ([None, None], "the raw parameters `x`, `scale` have no value"),
    ],
)
def test_raw_parameters_that_do_not_fit_are_named(args: list[Any], message: str) -> None:
    with raises(PtxError) as excinfo:
        scale_in_place(grid=(1,), args=args)
    assert message in text_of(excinfo.value)
    place = excinfo.value.diagnostics[0].origin
    assert place is not None
    assert read_line(place) == "def scale_in_place"


def test_a_raw_parameter_named_out_is_passed_by_keyword() -> None:
    @kernel(raw_params=[("u64", "out")], grid=(1,))
    def seven() -> None:
        ptx.st(u32, ptx.addr(ptx.param(u64, "out")), 7)

    x = np.zeros(1, np.uint32)
    assert seven(out=x) == ()
    assert x[0] == 7
    seven.simulate(out=np.zeros(1, np.uint32))


def test_a_raw_parameter_behind_an_option_of_the_call_is_passed_in_a_list() -> None:
    @kernel(raw_params=[("u32", "seed")], out_specs=[Tile(1, u32)], grid=(1,))
    def store(y: Any) -> None:
        ptx.st(u32, ptx.global_ptrs(y)[0], ptx.param(u32, "seed"))

    with raises(PtxError, match=r"PTX1001.*`seed=` is an option of the call[\s\S]*args=\[seed\]"):
        store.simulate(seed=3)
    assert store.simulate(args=[3]).outputs["y"][0] == store(seed=3)[0] == 3

    @kernel(raw_params=[("u32", "out")], out_specs=[Tile(1, u32)], grid=(1,))
    def store_parameter(y: Any) -> None:
        ptx.st(u32, ptx.global_ptrs(y)[0], ptx.param(u32, "out"))

    with raises(PtxError, match=r"PTX1001.*`out=` is an option of the call"):
        store_parameter(out=np.zeros(1, np.uint32))
    assert store_parameter(args=[3])[0] == 3


def test_a_masked_array_is_refused() -> None:
    with raises(PtxError, match=r"`b`: expected an array without a mask, .* use b\.filled\(value\) or b\.data"):
        add_scaled(A, np.ma.masked_less(B, 0), scale=1.0)


def test_a_read_only_output_is_refused() -> None:
    read_only = np.zeros(1000, np.float32)
    read_only.flags.writeable = False
    with raises(PtxError, match="`c`: expected a writable array, found a read-only one"):
        add_scaled(A, B, out=read_only, scale=1.0)


@kernel(arch="sm_90", in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=blocks, block=(128, 1, 1))
def plus_one(x: Any, y: Any, *, waits: bool = True) -> None:
    """y = x + 1; may start before the previous grid has ended"""
    px, py = ptx.global_ptrs(x, y)
    ptx.griddepcontrol.launch_dependents()
    i = ptx.special.tid.x() + ptx.special.ctaid.x() * 128
    if waits:
        ptx.griddepcontrol.wait()
    with ptx.if_(i < x.shape[0]):
        address = i * 4
        ptx.st(f32, ptx.addr(py, address), ptx.ld(f32, ptx.addr(px, address)) + 1.0)


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_kernels_overlap_in_a_stream(schedule: str) -> None:
    y, z = np.zeros(1000, np.float32), np.zeros(1000, np.float32)

    def launches(waits: bool) -> list[sim.Launch]:
        first = add_scaled.stream_launch(A, B, out=y, scale=2.0, label="sum")
        assert (first.programmatic, first.label) == (False, "sum")
        return [first, plus_one.stream_launch(y, out=z, waits=waits, programmatic=True)]

    results = sim.stream(launches(waits=True), schedule=schedule)
    np.testing.assert_array_equal(z, A + 2 * B + 1)
    assert [result.hazards for result in results] == [[], []]
    assert results[1].outputs["y"] is z
    with raises(PtxError, match=r"error\[PTX0906\](.|\n)*`sum`"):
        sim.stream(launches(waits=False), schedule=schedule)


def test_a_launch_for_a_stream_is_checked_as_a_call_is() -> None:
    with raises(PtxError, match="scale"):
        sim.stream([add_scaled.stream_launch(A, B)])
    with raises(PtxError, match=r"\bb\b"):
        add_scaled.stream_launch(A, B[:10], scale=1.0)


def test_a_call_shows_the_warnings_of_its_run_at_the_line_that_calls() -> None:
    first = np.zeros(48, np.int32)

    @kernel(in_specs=[Tile("n", s32)], out_specs=[Tile("n", s32)], grid=(1,), block=(32, 1, 1))
    def half(a: Any, b: Any) -> None:
        ptx.st(s32, ptx.addr(ptx.global_ptrs(a, b)[1], ptx.special.tid.x() * 4), 1)

    with pytest.warns(HazardWarning, match=r"PTX0998.*`b`: 16 of 48, the first at \[32\]; let the") as records:
        half(first)
    assert [Path(record.filename).name for record in records] == ["test_calls.py"]
    with warnings.catch_warnings(record=True, action="default") as records:
        for _ in range(3):
            half(first)
    assert len(records) == 1
    half(first, out=np.zeros(48, np.int32))
