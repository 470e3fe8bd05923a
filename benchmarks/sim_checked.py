"""Times what checking costs: `python benchmarks/sim_checked.py [NAME…]`. Prints processor time with and without checks.

Kernels of many kinds: those of the examples, and some that Triton, Numba and nvcc made, launched with more data than
the tests give them. Each result is compared with NumPy, and a kernel with a finding ends in an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from benchmarks.ratios import Pairs, Round, interleave, show
from pyptx import sim
from pyptx.ir import Module
from pyptx.parser import parse

ROOT = Path(__file__).parents[1]
Array = NDArray[Any]
Shape = int | tuple[int, ...]
Run = Callable[[str], object]
Case = Callable[[], tuple[Run, Callable[[], None]]]
"""Makes what runs a kernel, given what to check, and what compares its result with NumPy."""
SCRATCH = [np.zeros(0, np.uint8)] * 2
"""Two pointers that Triton passes and none of these kernels uses."""
RANDOM = np.random.default_rng(0)


@cache
def corpus(name: str) -> Module:
    """Return a file of the corpus."""
    return parse((ROOT / "tests" / "corpus" / name).read_text("utf-8").rstrip("\0"))


def close(got: Array, want: Array, tolerance: float = 1e-2) -> None:
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


def normal(*shape: int, dtype: object = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(np.dtype(cast("Any", dtype)))


def numbers(count: int, below: int) -> Array:
    return RANDOM.integers(0, below, count).astype(np.int32)


def example(name: str, out: tuple[int, ...], dtype: object, *given: Array, tolerance: float = 2e-2) -> Case:
    """Return a kernel of the examples, which compares with its own reference."""

    def made() -> tuple[Run, Callable[[], None]]:
        module = import_module(f"examples.kernels.{name}")
        kernel, result = module.make(), np.zeros(out, np.dtype(cast("Any", dtype)))

        def run(check: str) -> object:
            result.fill(0)
            return kernel.simulate(*given, out=result, check=check)

        return run, lambda: close(result, np.asarray(module.reference(*given), np.float64), tolerance)

    return made


def numba(*arrays: Array) -> list[Any]:
    """Return arrays as Numba passes them: owner, parent, size, size of an item, address, shape, strides."""
    return [v for a in arrays for v in (0, 0, a.size, a.itemsize, a, *a.shape, *a.strides)]


def launched(
    file: str, grid: Shape, block: Shape, args: list[Any], output: Array, want: Callable[[], Array], shared: int = 0,
    entry: str = "", tolerance: float = 1e-2,
) -> Case:  # fmt: skip
    """Return a kernel of the corpus, the first of its file or one by name."""

    def made() -> tuple[Run, Callable[[], None]]:
        module, wanted = corpus(file), want()
        arrays: list[Array] = [one for one in args if isinstance(one, np.ndarray)]
        start = [one.copy() for one in arrays]

        def run(check: str) -> object:
            for held, fresh in zip(arrays, start, strict=True):
                held[...] = fresh
            return sim.run(module, entry or None, grid=grid, block=block, args=args, shared=shared, check=check)

        return run, lambda: close(output, wanted, tolerance)

    return made


def bitonic(count: int, threads: int) -> Case:
    """Return a sort of as many keys as threads in each CTA: a barrier after each exchange in shared memory."""
    steps = [(size, gap) for size in powers(threads) for gap in reversed(powers(size))]
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
    start = numbers(count, 1 << 20)
    keys = start.copy()

    def run(check: str) -> object:
        keys[...] = start
        return sim.run(module, grid=count // threads, block=threads, args=[keys], check=check)

    return lambda: (run, lambda: close(keys, np.sort(start.reshape(-1, threads)).reshape(-1)))


def powers(up_to: int) -> list[int]:
    """Return the powers of two from 2 on."""
    return [1 << n for n in range(1, up_to.bit_length())]


def rows() -> dict[str, Case]:
    """Return kernels that go through vectors and rows."""
    wide, tall, length = normal(1024, 1024), normal(2048, 200), 1 << 17
    gain, shift, y = normal(200), normal(200), np.zeros((2048, 200), np.float32)
    mean, deviation = np.zeros(2048, np.float32), np.zeros(2048, np.float32)
    norm = (tall - tall.mean(1, keepdims=True)) / np.sqrt(tall.var(1, keepdims=True) + 1e-5) * gain + shift
    x, sums, total = numbers(length, 100), np.zeros(length, np.int32), np.zeros(1, np.int32)
    state, few, grid = np.zeros(length // 64, np.uint64), numbers(length, 64), normal(1024, 1024)
    bins, relaxed, long = np.zeros(64, np.int32), np.zeros_like(grid), normal(2048, 256)
    running = np.zeros_like(long)
    wanted = np.zeros_like(grid)
    np.copyto(wanted[1:-1, 1:-1], (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) / 4)
    bytes_ = numbers(1 << 20, 256).astype(np.uint8)
    return {
        "vector add": example("vector_add", (1 << 20,), np.float32, normal(1 << 20), normal(1 << 20)),
        "softmax": example("softmax", wide.shape, np.float32, wide),
        "RMSNorm": example("rmsnorm", wide.shape, np.float32, wide, normal(1024)),
        "transpose": example("transpose", wide.shape, np.float32, wide),
        "histogram": example("histogram", (256,), np.uint32, bytes_),
        "bitonic sort": bitonic(1 << 16, 256),
        "layer norm (Triton)": launched(
            "triton/layernorm.sm_75.ptx", 2048, 128, [tall, gain, shift, y, mean, deviation, 200, 1e-5, *SCRATCH], y,
            lambda: norm, 1024,
        ),
        "scan of rows (Triton)": launched(
            "triton/cumsum.sm_86.ptx", 2048, 128, [long, running, *SCRATCH], running, lambda: long.cumsum(1), 16
        ),
        "scan by flags (nvcc)": launched(
            "nvcc/scan.sm_86.ptx", 512, 64, [x[: 512 * 64], sums[: 512 * 64], state[:512]], sums[: 512 * 64],
            lambda: x[: 512 * 64].cumsum(), entry="lookback_scan",
        ),
        "reduction (Numba)": launched(
            "numba/reduce_block.sm_75.ptx", length // 128, 128, numba(x, total), total, lambda: x.sum(keepdims=True)
        ),
        "histogram (Numba)": launched(
            "numba/histogram_shared.sm_86.ptx", 32, 64, numba(few, bins), bins, lambda: np.bincount(few, minlength=64)
        ),
        "stencil (Numba)": launched(
            "numba/jacobi_step.sm_89.ptx", (128, 128), (8, 8), numba(grid, relaxed), relaxed, lambda: wanted
        ),
    }  # fmt: skip


def matrices() -> dict[str, Case]:
    """Return products of matrices and attention."""
    a, b = (normal(512, 512, dtype=ml_dtypes.bfloat16) for _ in "ab")
    left, right = (normal(512, 512, dtype=np.float16) for _ in "ab")
    narrow, single = (
        np.zeros((512, 512), np.float32),
        [normal(128, 128), normal(128, 128), np.zeros((128, 128), np.float32)],
    )
    q, k, v = (normal(4, 256, 32, dtype=np.float16) for _ in "qkv")
    heads, out = [normal(2, 256, 128, dtype=ml_dtypes.bfloat16) for _ in "qkv"], np.zeros_like(q)
    thin, deep = normal(256, 128, dtype=np.float16), normal(128, 256, dtype=np.float16)
    parts = np.zeros((256, 256), np.float32)
    return {
        "mma.sync GEMM": example("mma_gemm", (512, 512), ml_dtypes.bfloat16, a, b, tolerance=0.3),
        "wgmma GEMM": example("hopper_gemm", (512, 512), ml_dtypes.bfloat16, a, b, tolerance=0.3),
        "tcgen05 GEMM": example("tcgen05_gemm", (512, 512), ml_dtypes.bfloat16, a, b, tolerance=0.3),
        "wgmma attention": example("attention", heads[0].shape, ml_dtypes.bfloat16, *heads),
        "cp.async GEMM (Triton)": launched(
            "triton/matmul_f16.sm_80.ptx", (16, 8), 128, [left, right, narrow, 512, 512, 512, *SCRATCH], narrow,
            lambda: product(left, right), 12288,
        ),
        "GEMM by atomics (Triton)": launched(
            "triton/split_k.sm_86.ptx", (8, 8, 2), 128, [thin, deep, parts, 256, 128, *SCRATCH], parts,
            lambda: product(thin, deep), 8192,
        ),
        "tiled GEMM (Numba)": launched(
            "numba/matmul_tiled.sm_100.ptx", (16, 16), (8, 8), numba(*single), single[2],
            lambda: product(single[0], single[1]),
        ),
        "attention (Triton)": launched(
            "triton/attention.sm_80.ptx", (8, 4), 128, [q, k, v, out, 256, 32**-0.5, *SCRATCH], out,
            lambda: attention(q, k, v), 10240,
        ),
    }  # fmt: skip


def product(x: Array, y: Array) -> Array:
    return x.astype(np.float32) @ y.astype(np.float32)


def attention(q: Array, k: Array, v: Array) -> Array:
    """Return softmax(q kᵀ / √d) v of each head."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    weights = np.exp(q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5)
    return weights / weights.sum(2, keepdims=True) @ v


def pairs() -> Pairs:
    """Return runs with every check against runs without any."""
    return {f"{name}: checked / unchecked": partial(compare, case) for name, case in (rows() | matrices()).items()}


def compare(case: Case) -> Round:
    """Return both runs of a kernel."""
    run, confirm = case()
    return interleave(lambda: run("all"), lambda: run("none"), confirm=confirm)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    show(pairs(), sys.argv[1:])
