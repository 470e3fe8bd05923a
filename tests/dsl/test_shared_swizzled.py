"""Elements of swizzled shared memory: `tile.swizzled(row, column)`, and the warning for linear ones."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pyptx import Kernel, Layout, PtxError, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.diagnostics import Diagnostic
from pyptx.types import bf16, e2m1, f32, u32
from tests.dsl.tracing import code, make_kernel
from tests.messages import raises

Array = np.ndarray[Any, Any]
ROWS = 16


def make_copy_kernel(columns: int, copy: Callable[[Any, Any, Any], None]) -> Kernel:
    """Return a kernel that loads a tile by TMA with the swizzle that matches its width, lets each thread copy elements
    of a row to another tile, and stores that tile by TMA."""
    tile = Tile.wgmma_a(ROWS, columns, bf16)

    @kernel(arch="sm_90a", in_specs=(tile,), out_specs=(tile,), grid=(1, 1, 1), block=(32, 1, 1))
    def k(x: TensorSpec, y: TensorSpec) -> None:
        a = smem.wgmma_tile(bf16, (ROWS, columns), name="a")
        b = smem.alloc(bf16, (2, ROWS, columns), a.swizzle, name="b")
        full, thread = smem.mbarrier(1), ptx.special.tid.x()
        with ptx.if_(thread == 0):
            ptx.mbarrier.init(full[0], 1)
            ptx.mbarrier.arrive_expect_tx(full[0], a.size)
            for left in range(0, columns, 64):
                ptx.cp.async_.bulk.tensor_2d(dst=a + left * 2 * ROWS, src=x, coord=(left, 0), mbar=full[0])
        ptx.bar.sync(0)
        ptx.mbarrier.wait(full[0], 0)
        with ptx.if_(thread < ROWS):
            copy(a, b, thread)
        ptx.fence.proxy_async()
        ptx.bar.sync(0)
        with ptx.if_(thread == 0):
            ptx.cp.async_.bulk.tensor_2d.store(dst=y, src=b[1], coord=(0, 0))
            ptx.cp.async_.bulk.commit_group()
            ptx.cp.async_.bulk.wait_group(0)

    return k


def line_of(finding: Diagnostic) -> str:
    return linecache.getline(__file__, finding.line or 0).strip()


def numbers(columns: int) -> Array:
    return np.arange(ROWS * columns).reshape(ROWS, columns).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("columns", [16, 32, 64])
def test_elements_are_where_tensor_copies_put_them(columns: int) -> None:
    def copy(a: Any, b: Any, row: Any) -> None:
        for column in range(columns):
            b.swizzled(1, row, column).store(a.swizzled(row, column).load())

    x = numbers(columns)
    kernel_object = make_copy_kernel(columns, copy)
    np.testing.assert_array_equal(kernel_object.simulate(x, check="strict").outputs["y"], x)
    assert kernel_object.check() == []


def test_indices_are_numbers_or_registers_in_any_place() -> None:
    def copy(a: Any, b: Any, row: Any) -> None:
        for column in range(64):
            with ptx.if_(row == 0):
                for number in range(0, ROWS, 2):
                    ptx.st(bf16, b[1].swizzled(number, column), a.swizzled(number, column).load(), space="shared")
        for column in ptx.range_(0, 64):
            with ptx.if_(row & 1 == 1):
                b[reg.scalar(u32, 1)].swizzled(row, column).store(smem.load(bf16, a.swizzled(row, column)))

    x = numbers(64)
    np.testing.assert_array_equal(make_copy_kernel(64, copy).simulate(x, check="strict").outputs["y"], x)


def test_linear_elements_are_elsewhere_and_warn() -> None:
    def copy(a: Any, b: Any, row: Any) -> None:
        for column in range(64):
            b.swizzled(1, row, column).store(a[row, column])

    kernel_object, x = make_copy_kernel(64, copy), numbers(64)
    with pytest.warns(UserWarning, match="PTX0840"):
        output = kernel_object.simulate(x).outputs["y"]
    assert not (output == x).all()
    (warning,) = kernel_object.check()
    assert warning.code == "PTX0840"
    assert "`cp.async.bulk` takes `a` with the 128B swizzle" in warning.message
    assert warning.help is not None
    assert "a.swizzled(" in warning.help
    assert "store(a[row, column])" in line_of(warning)


@pytest.mark.parametrize("store", [True, False])
def test_what_only_threads_access_may_be_linear(store: bool) -> None:
    @kernel(arch="sm_90a", block=(32, 1, 1))
    def k() -> None:
        a, b = smem.alloc(bf16, (8, 64), "128B"), smem.wgmma_tile(bf16, (64, 64))
        if store:
            a[0, 1] = 1
        else:
            a[0, 1]
        sums = reg.array(f32, 32)
        ptx.wgmma.mma_async(
            shape=(64, 64, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, d=sums, a=b, b=b
        )  # fmt: skip

    assert "PTX0840" not in {finding.code for finding in k.check()}


def test_a_copy_without_a_swizzle_goes_with_linear_elements() -> None:
    @kernel(arch="sm_90a", in_specs=(Tile(8, 64, bf16, Layout.ROW, tma_box=(8, 64)),), block=(32, 1, 1))
    def k(x: TensorSpec) -> None:
        a, full = smem.alloc(bf16, (8, 64), "128B"), smem.mbarrier(1)
        ptx.cp.async_.bulk.tensor_2d(dst=a, src=x, coord=(0, 0), mbar=full[0])
        a[0, 1]

    assert "PTX0840" not in {finding.code for finding in k.check()}


@pytest.mark.parametrize("first", [0, 1024])
def test_the_stages_of_a_ring_count(first: int) -> None:
    @kernel(arch="sm_90a", in_specs=(Tile.wgmma_a(8, 64, bf16),), block=(32, 1, 1), extern_smem=True, smem=first)
    def k(x: TensorSpec) -> None:
        smem.alloc(bf16, (8, 64), "128B")[0, 0]
        a, full = smem.alloc(bf16, (4, 8, 64), "128B"), smem.mbarrier(1)
        ptx.cp.async_.bulk.tensor_2d(dst=a[ptx.special.ctaid.x()], src=x, coord=(0, 0), mbar=full[0])
        a[1][0, 1] = 2

    findings = [findings for findings in k.check() if findings.code == "PTX0840"]
    assert [line_of(warning) for warning in findings] == ["a[1][0, 1] = 2"]


def test_a_constant_place_takes_no_instruction() -> None:
    def body() -> None:
        tile = smem.alloc(bf16, (2, 8, 64), "128B", name="t")
        tile.swizzled(0, 0, 0).load()
        tile.swizzled(1, 3, 8).store(1)
        smem.alloc(bf16, (8, 64), name="u").swizzled(1, 2).load()

    assert code(body) == [
        "ld.shared.b16 %rs0, [t];", "st.shared.b16 [t+1440], 1;", "ld.shared.b16 %rs1, [u+132];",
    ]  # fmt: skip


def test_an_allocation_off_the_pattern_takes_arithmetic() -> None:
    def body() -> None:
        smem.alloc(bf16, (8, 64), "128B", align=128, name="t").swizzled(1, 0).load()

    assert [line.split()[0] for line in code(body)] == ["mov.u32", "and.b32", "shr.u32", "xor.b32", "ld.shared.b16"]


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        (lambda: smem.alloc(bf16, (8, 64), "128B").swizzled(1), "PTX0816", "2 dimensions, found 1"),
        (lambda: smem.alloc(bf16, (8, 64), "128B").swizzled(8, 0), "PTX0816", "0 to 7"),
        (lambda: smem.wgmma_tile(bf16, (8, 128)).swizzled(0, 128), "PTX0816", "0 to 127"),
        (lambda: smem.wgmma_tile(bf16, (8, 128))[0].swizzled(0), "PTX0816", "2 stripes"),
        (lambda: smem.wgmma_tile(e2m1, (8, 256)).swizzled(0, 0), "PTX0804", "not individually addressable"),
    ],
)
def test_a_wrong_index_is_an_error(wrong: Callable[[], Any], code: str, words: str) -> None:
    def body() -> None:
        wrong()

    with raises(PtxError, match=words) as excinfo:
        make_kernel(body).ptx()
    assert excinfo.value.diagnostics[0].code == code
    assert excinfo.value.diagnostics[0].help


@pytest.mark.parametrize("channels", [8, 16])
def test_interleaved_slices_arrive_as_the_map_says(channels: int) -> None:
    """16-byte slices are contiguous; 32-byte slices use the 32-byte swizzle."""
    image = Tile(3, 2, 24, channels, bf16, Layout.INTERLEAVED, tma_box=(1, 1, 8, channels))

    @kernel(arch="sm_90a", in_specs=(image,), out_specs=(Tile(8, channels, bf16),), grid=(1, 1, 1), block=(32, 1, 1))
    def k(x: TensorSpec, y: TensorSpec) -> None:
        (py,) = ptx.global_ptrs(y)
        a, full = smem.alloc(bf16, (8, channels), "32B" if channels == 16 else None), smem.mbarrier(1)
        thread = ptx.special.tid.x()
        with ptx.if_(thread == 0):
            ptx.mbarrier.init(full[0], 1)
            ptx.mbarrier.arrive_expect_tx(full[0], a.size)
            ptx.cp.async_.bulk.tensor_3d(dst=a, src=x, coord=(2, 1, 2), mbar=full[0])
        ptx.bar.sync(0)
        ptx.mbarrier.wait(full[0], 0)
        with ptx.if_(thread < 8):
            row = ptx.mad(thread, channels * 2, py, mode="wide")
            for column in range(channels):
                ptx.st(bf16, ptx.addr(row, column * 2), a.swizzled(thread, column).load())

    x = np.arange(3 * 2 * 24 * channels).reshape(3, 2, 24, channels).astype(ml_dtypes.bfloat16)
    output = k.simulate(x, check="strict").outputs["y"]
    np.testing.assert_array_equal(output, x[2, 1, 2:10])


@pytest.mark.parametrize("columns", [128, 256])
def test_elements_of_a_tile_in_stripes(columns: int) -> None:
    """A tile wider than the swizzle is several boxes side by side."""
    box = Tile(ROWS, columns, bf16, Layout.TMA_128B, tma_box=(ROWS, 64))

    @kernel(arch="sm_90a", in_specs=(box,), out_specs=(Tile(ROWS, columns, bf16),), grid=(1, 1, 1), block=(32, 1, 1))
    def k(x: TensorSpec, y: TensorSpec) -> None:
        (py,) = ptx.global_ptrs(y)
        a, full, thread = smem.wgmma_tile(bf16, (2, ROWS, columns)), smem.mbarrier(1), ptx.special.tid.x()
        with ptx.if_(thread == 0):
            ptx.mbarrier.init(full[0], 1)
            ptx.mbarrier.arrive_expect_tx(full[0], ROWS * columns * 2)
            for left in range(0, columns, 64):
                ptx.cp.async_.bulk.tensor_2d(dst=a[1] + left * 2 * ROWS, src=x, coord=(left, 0), mbar=full[0])
        ptx.bar.sync(0)
        ptx.mbarrier.wait(full[0], 0)
        with ptx.if_(thread < ROWS):
            row = ptx.mad(thread, columns * 2, py, mode="wide")
            for column in range(0, columns, 2):
                value = a.swizzled(1, thread, column).load()
                ptx.st(bf16, ptx.addr(row, column * 2), value)
                neighbor = a[1].swizzled(thread, reg.scalar(u32, column + 1)).load()
                ptx.st(bf16, ptx.addr(row, column * 2 + 2), neighbor)

    x = numbers(columns)
    np.testing.assert_array_equal(k.simulate(x, check="strict").outputs["y"], x)
