"""Time the cost of checking: `python benchmarks/sim_checked.py [NAME…]`. Print processor times with and without checks.

The kernels are the examples, and some that Triton, Numba and nvcc generated, launched with more data than in the tests.
Each result is compared with NumPy, and a finding is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from benchmarks.ratios import Pairs, Round, interleave, show
from examples.parts.example import find_dtype, find_example
from pyptx import sim
from pyptx.ir import Module
from pyptx.parser import parse

ROOT = Path(__file__).parents[1]
Array = NDArray[Any]
Shape = int | tuple[int, ...]
Run = Callable[[str], object]
Case = Callable[[], tuple[Run, Callable[[], None]]]
"""Returns functions that run a kernel with a choice of checks, and compare its result with NumPy."""
SCRATCH = [np.zeros(0, np.uint8)] * 2
"""Two pointers that Triton passes, unused by these kernels."""
RANDOM = np.random.default_rng(0)


@cache
def read_corpus(name: str) -> Module:
    """Return a file of the corpus."""
    return parse((ROOT / "tests" / "corpus" / name).read_text("utf-8").rstrip("\0"))


def assert_close(actual: Array, expected: Array, tolerance: float = 1e-2) -> None:
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def draw_normal(*shape: int, dtype: object = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(np.dtype(cast("Any", dtype)))


def draw_integers(count: int, below: int) -> Array:
    return RANDOM.integers(0, below, count).astype(np.int32)


def make_example(name: str, *inputs: Array, tolerance: float = 2e-2) -> Case:
    """Return the case of an example kernel, whose results are compared with the example's reference."""

    def prepare() -> tuple[Run, Callable[[], None]]:
        example = find_example(name)
        kernel, computed = example.make(), example.reference(*inputs)
        expected = cast("tuple[Array, ...]", computed if isinstance(computed, tuple) else (computed,))
        outputs = [np.zeros(x.shape, find_dtype(tile)) for x, tile in zip(expected, kernel.out_specs, strict=True)]

        def run(check: str) -> object:
            for output in outputs:
                output.fill(0)
            return kernel.simulate(*inputs, out=outputs[0] if len(outputs) == 1 else tuple(outputs), check=check)

        def confirm() -> None:
            for output, desired in zip(outputs, expected, strict=True):
                assert_close(output, np.asarray(desired, np.float64), tolerance)

        return run, confirm

    return prepare


def pack_arrays(*arrays: Array) -> list[Any]:
    """Return arrays as Numba passes them: owner, parent, size, item size, address, shape, strides."""
    return [v for a in arrays for v in (0, 0, a.size, a.itemsize, a, *a.shape, *a.strides)]


def make_corpus(
    file: str, grid: Shape, block: Shape, args: list[Any], output: Array, compute_expected: Callable[[], Array],
    shared: int = 0, entry: str = "", tolerance: float = 1e-2,
) -> Case:  # fmt: skip
    """Return the case of a corpus kernel: an entry by name, or the first of its file."""

    def prepare() -> tuple[Run, Callable[[], None]]:
        module, expected = read_corpus(file), compute_expected()
        arrays: list[Array] = [array for array in args if isinstance(array, np.ndarray)]
        start = [array.copy() for array in arrays]

        def run(check: str) -> object:
            for array, initial in zip(arrays, start, strict=True):
                array[...] = initial
            return sim.run(module, entry or None, grid=grid, block=block, args=args, shared=shared, check=check)

        return run, lambda: assert_close(output, expected, tolerance)

    return prepare


def make_sort_case(count: int, threads: int) -> Case:
    """Return the case of a bitonic sort of one key per thread, with barriers around each exchange in shared memory."""
    steps = [(size, gap) for size in list_powers(threads) for gap in reversed(list_powers(size))]
    body = "\n".join(
        f"""xor.b32 %r5, %r1, {gap // 2}; shl.b32 %r6, %r5, 2; add.s32 %r6, %r6, %r10;
        st.shared.s32 [%r4], %r3; bar.sync 0; ld.shared.s32 %r7, [%r6]; bar.sync 0;
        min.s32 %r8, %r3, %r7; max.s32 %r9, %r3, %r7;
        and.b32 %r11, %r1, {size}; and.b32 %r12, %r1, {gap // 2};
        setp.ne.s32 %p1, %r11, 0; setp.ne.s32 %p2, %r12, 0; xor.pred %p1, %p1, %p2; selp.b32 %r3, %r9, %r8, %p1;"""
        for size, gap in steps
    )
    module = parse(f""".version 8.5
.target sm_90
.address_size 64
.visible .entry sort(.param .u64 x) {{
.reg .b64 %rd<4>; .reg .b32 %r<14>; .reg .pred %p<3>; .shared .align 4 .b8 keys[{4 * threads}];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r2, %r2, {threads}, %r1; ld.param.u64 %rd1, [x];
mul.wide.u32 %rd2, %r2, 4; add.s64 %rd1, %rd1, %rd2; ld.global.s32 %r3, [%rd1];
mov.u32 %r10, keys; shl.b32 %r4, %r1, 2; add.s32 %r4, %r4, %r10;
{body}
st.global.s32 [%rd1], %r3; ret; }}""")
    start = draw_integers(count, 1 << 20)
    keys = start.copy()

    def run(check: str) -> object:
        keys[...] = start
        return sim.run(module, grid=count // threads, block=threads, args=[keys], check=check)

    return lambda: (run, lambda: assert_close(keys, np.sort(start.reshape(-1, threads)).reshape(-1)))


def list_powers(up_to: int) -> list[int]:
    """Return the powers of two from 2 to `up_to`."""
    return [1 << n for n in range(1, up_to.bit_length())]


def make_row_cases() -> dict[str, Case]:
    """Return the cases that process vectors and rows."""
    wide, tall, length = draw_normal(1024, 1024), draw_normal(2048, 200), 1 << 17
    gain, shift, y = draw_normal(200), draw_normal(200), np.zeros((2048, 200), np.float32)
    mean, deviation = np.zeros(2048, np.float32), np.zeros(2048, np.float32)
    norm = (tall - tall.mean(1, keepdims=True)) / np.sqrt(tall.var(1, keepdims=True) + 1e-5) * gain + shift
    x, sums, total = draw_integers(length, 100), np.zeros(length, np.int32), np.zeros(1, np.int32)
    state, few_keys, grid = np.zeros(length // 64, np.uint64), draw_integers(length, 64), draw_normal(1024, 1024)
    bins, relaxed, long = np.zeros(64, np.int32), np.zeros_like(grid), draw_normal(2048, 256)
    running = np.zeros_like(long)
    expected = np.zeros_like(grid)
    np.copyto(expected[1:-1, 1:-1], (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) / 4)
    bytes_ = draw_integers(1 << 20, 256).astype(np.uint8)
    return {
        "vector add": make_example("any/vector_add", draw_normal(1 << 20), draw_normal(1 << 20)),
        "softmax": make_example("any/softmax", wide),
        "RMSNorm": make_example("any/rmsnorm", wide, draw_normal(1024)),
        "transpose": make_example("any/transpose", wide),
        "histogram": make_example("any/histogram", bytes_),
        "bitonic sort": make_sort_case(1 << 16, 256),
        "layer norm (Triton)": make_corpus(
            "triton/layernorm.sm_75.ptx", 2048, 128, [tall, gain, shift, y, mean, deviation, 200, 1e-5, *SCRATCH], y,
            lambda: norm, 1024,
        ),
        "scan of rows (Triton)": make_corpus(
            "triton/cumsum.sm_86.ptx", 2048, 128, [long, running, *SCRATCH], running, lambda: long.cumsum(1), 16
        ),
        "scan by flags (nvcc)": make_corpus(
            "nvcc/scan.sm_86.ptx", 512, 64, [x[: 512 * 64], sums[: 512 * 64], state[:512]], sums[: 512 * 64],
            lambda: x[: 512 * 64].cumsum(), entry="lookback_scan",
        ),
        "reduction (Numba)": make_corpus(
            "numba/reduce_block.sm_75.ptx", length // 128, 128, pack_arrays(x, total), total,
            lambda: x.sum(keepdims=True),
        ),
        "histogram (Numba)": make_corpus(
            "numba/histogram_shared.sm_86.ptx", 32, 64, pack_arrays(few_keys, bins), bins,
            lambda: np.bincount(few_keys, minlength=64),
        ),
        "stencil (Numba)": make_corpus(
            "numba/jacobi_step.sm_89.ptx", (128, 128), (8, 8), pack_arrays(grid, relaxed), relaxed, lambda: expected
        ),
    }  # fmt: skip


def make_matrix_cases() -> dict[str, Case]:
    """Return the cases of matrix products and attention."""
    a, b = (draw_normal(512, 512, dtype=ml_dtypes.bfloat16) for _ in "ab")
    left, right = (draw_normal(512, 512, dtype=np.float16) for _ in "ab")
    narrow, single = (
        np.zeros((512, 512), np.float32),
        [draw_normal(128, 128), draw_normal(128, 128), np.zeros((128, 128), np.float32)],
    )
    q, k, v = (draw_normal(4, 256, 32, dtype=np.float16) for _ in "qkv")
    heads, out = [draw_normal(2, 256, 128, dtype=ml_dtypes.bfloat16) for _ in "qkv"], np.zeros_like(q)
    thin, deep = draw_normal(256, 128, dtype=np.float16), draw_normal(128, 256, dtype=np.float16)
    parts = np.zeros((256, 256), np.float32)
    return {
        "mma.sync GEMM": make_example("ampere/pipelined_gemm", a, b, tolerance=0.3),
        "wgmma GEMM": make_example("hopper/cluster_gemm", a, b, tolerance=0.3),
        "tcgen05 GEMM": make_example("blackwell/two_sm_gemm", a, b, tolerance=0.3),
        "wgmma attention": make_example("hopper/attention", *heads),
        "cp.async GEMM (Triton)": make_corpus(
            "triton/matmul_f16.sm_80.ptx", (16, 8), 128, [left, right, narrow, 512, 512, 512, *SCRATCH], narrow,
            lambda: multiply(left, right), 12288,
        ),
        "GEMM by atomics (Triton)": make_corpus(
            "triton/split_k.sm_86.ptx", (8, 8, 2), 128, [thin, deep, parts, 256, 128, *SCRATCH], parts,
            lambda: multiply(thin, deep), 8192,
        ),
        "tiled GEMM (Numba)": make_corpus(
            "numba/matmul_tiled.sm_100.ptx", (16, 16), (8, 8), pack_arrays(*single), single[2],
            lambda: multiply(single[0], single[1]),
        ),
        "attention (Triton)": make_corpus(
            "triton/attention.sm_80.ptx", (8, 4), 128, [q, k, v, out, 256, 32**-0.5, *SCRATCH], out,
            lambda: attention(q, k, v), 10240,
        ),
    }  # fmt: skip


def multiply(x: Array, y: Array) -> Array:
    return x.astype(np.float32) @ y.astype(np.float32)


def attention(q: Array, k: Array, v: Array) -> Array:
    """Compute softmax(q kᵀ / √d) v of each head."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    weights = np.exp(q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5)
    return weights / weights.sum(2, keepdims=True) @ v


def list_pairs() -> Pairs:
    """Compare runs with every check with unchecked runs."""
    return {
        f"{name}: checked / unchecked": partial(compare, case)
        for name, case in (make_row_cases() | make_matrix_cases()).items()
    }


def compare(case: Case) -> Round:
    """Compare both runs of a kernel."""
    run, confirm = case()
    return interleave(lambda: run("all"), lambda: run("none"), confirm=confirm)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    show(list_pairs(), sys.argv[1:])
