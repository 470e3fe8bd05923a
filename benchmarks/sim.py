"""Time the simulator: `python benchmarks/sim.py`. Print lane-instructions per second, the best of several runs.

First GEMMs of 256³ to 2048³ on the tensor cores of Hopper and Blackwell, in processor seconds, and the extra cost of
checks, a random schedule and hardware sums; with a size as argument, only these. Then three kernels, unchecked and with
every check: RMSNorm of 2048 rows of 8192 (many CTAs, vector loads, shuffles), a kernel whose lanes all diverge, and one
CTA of 128 threads that uses shared memory with two barriers per round. All results are compared with NumPy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from benchmarks.ratios import Pairs, Round, interleave, measure_best
from pyptx import sim
from pyptx.ir import Module
from pyptx.parser import parse

RUNS = 3
ROWS, COLUMNS, THREADS = 2048, 8192, 256
ROUNDS = 3000
WARP, STEPS, TURNS, WIDE = 32, 8, 64, 256
SIZES = (256, 512, 1024, 2048)
SLOWEST = 1024
"""The largest size that runs with all options."""
WAYS: dict[str, dict[str, Any]] = {
    "checked": {"check": "all"},
    "random order": {"check": "none", "schedule": "random", "seed": 1},
    "hardware sums": {"check": "none", "precision": "hardware"},
}
ROOT = Path(__file__).parents[1]
Gemm = tuple[Callable[..., object], Callable[[], None]]
"""Runs a kernel with options, and compares its result with NumPy."""
_HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"


def make_rmsnorm() -> Module:
    """Return a kernel for y = x / sqrt(mean(x²) + 1e-5) * w: one row per CTA, four elements per thread and step."""
    steps = COLUMNS // (4 * THREADS)
    squares = "\n".join(f"fma.rn.f32 %f30, %f{n}, %f{n}, %f30;" for n in range(1, 5))
    fold = "\n".join(f"shfl.sync.bfly.b32 %f5, %f30, {n}, 31, -1;\nadd.f32 %f30, %f30, %f5;" for n in (16, 8, 4, 2, 1))
    scale = "\n".join(f"mul.f32 %f{n}, %f{n}, %f20;\nmul.f32 %f{n}, %f{n}, %f{n + 5};" for n in range(1, 5))
    total = "\n".join(f"ld.shared.f32 %f6, [part+{4 * n}];\nadd.f32 %f1, %f1, %f6;" for n in range(THREADS // 32))
    return parse(f"""{_HEAD}.visible .entry rmsnorm(.param .u64 x, .param .u64 w, .param .u64 y)
{{
.reg .b64 %rd<12>; .reg .b32 %r<12>; .reg .f32 %f<40>; .reg .pred %p<4>;
.shared .align 4 .b8 part[{THREADS // 8}];
ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [w]; ld.param.u64 %rd3, [y];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;
mul.wide.u32 %rd4, %r1, {4 * COLUMNS}; mul.wide.u32 %rd5, %r2, 16; add.s64 %rd6, %rd4, %rd5;
add.s64 %rd7, %rd1, %rd6; add.s64 %rd8, %rd3, %rd6; add.s64 %rd9, %rd2, %rd5;
mov.f32 %f30, 0f00000000; mov.u32 %r3, 0;
$sum: ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd7];
{squares}
add.s64 %rd7, %rd7, {16 * THREADS}; add.s32 %r3, %r3, 1;
setp.lt.s32 %p1, %r3, {steps};
@%p1 bra $sum;
{fold}
and.b32 %r4, %r2, 31; setp.ne.s32 %p2, %r4, 0; shr.u32 %r5, %r2, 5; shl.b32 %r5, %r5, 2;
mov.u32 %r6, part; add.s32 %r7, %r6, %r5;
@%p2 bra $stored;
st.shared.f32 [%r7], %f30;
$stored: bar.sync 0;
mov.f32 %f1, 0f00000000;
{total}
mul.f32 %f1, %f1, 0f39000000; add.f32 %f1, %f1, 0f3727C5AC; rsqrt.approx.f32 %f20, %f1;
sub.s64 %rd7, %rd7, {4 * COLUMNS}; mov.u32 %r3, 0;
$scale: ld.global.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd7];
ld.global.v4.f32 {{%f6, %f7, %f8, %f9}}, [%rd9];
{scale}
st.global.v4.f32 [%rd8], {{%f1, %f2, %f3, %f4}};
add.s64 %rd7, %rd7, {16 * THREADS}; add.s64 %rd8, %rd8, {16 * THREADS}; add.s64 %rd9, %rd9, {16 * THREADS};
add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, {steps};
@%p1 bra $scale;
ret;
}}""")


def compute_rmsnorm(x: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
    """Compute the result of `make_rmsnorm` in NumPy."""
    return x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5) * w


def make_rounds() -> Module:
    """Return a kernel of rounds in which each thread writes its own cell and reads the first one."""
    return parse(f"""{_HEAD}.visible .entry rounds(.param .u64 x, .param .u32 n)
{{
.reg .b64 %rd<4>; .reg .b32 %r<12>; .reg .f32 %f<12>; .reg .pred %p<2>;
.shared .align 4 .b8 cells[512];
ld.param.u64 %rd1, [x]; ld.param.u32 %r9, [n]; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2;
mov.u32 %r4, cells; add.s32 %r4, %r4, %r3; cvt.rn.f32.u32 %f1, %r2; mov.u32 %r5, 0;
$round: st.shared.f32 [%r4], %f1;
bar.sync 0;
ld.shared.f32 %f2, [cells];
mul.f32 %f3, %f1, 0f3F000000; add.f32 %f4, %f3, %f2; sub.f32 %f5, %f4, %f1; mul.f32 %f6, %f5, 0f3F000000;
add.f32 %f7, %f6, %f2; max.f32 %f8, %f7, %f2; and.b32 %r6, %r5, 7; add.s32 %r7, %r6, %r2; xor.b32 %r8, %r7, %r6;
cvt.rn.f32.s32 %f9, %r8; add.f32 %f1, %f8, %f9; mul.f32 %f1, %f1, 0f3A000000;
bar.sync 0;
add.s32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r9;
@%p1 bra $round;
mul.wide.u32 %rd2, %r2, 4; add.s64 %rd1, %rd1, %rd2; st.global.f32 [%rd1], %f1;
ret;
}}""")


def compute_rounds(count: int) -> NDArray[Any]:
    """Compute the result of `make_rounds` in NumPy."""
    thread = np.arange(128, dtype=np.int32)
    half, scale = np.float32(0.5), np.float32(2.0**-11)
    x = thread.astype(np.float32)
    for at in range(count):
        first = x[0]
        y = np.maximum((x * half + first - x) * half + first, first)
        x = (y + ((thread + (at & 7)) ^ (at & 7)).astype(np.float32)) * scale
    return x


def make_diverging() -> Module:
    """Return a kernel in which each lane of a warp takes one of 32 branches in every round, depending on its data."""
    names = ", ".join(f"$way{n}" for n in range(WARP))
    step = "mad.lo.u32 %x, %x, {}, {};"
    ways = "\n".join(
        f"$way{n}: " + " ".join([step.format(2 * n + 3, n)] * STEPS) + " bra.uni $meet;" for n in range(WARP)
    )
    return parse(f"""{_HEAD}.visible .entry diverging(.param .u64 out)
{{
.reg .b64 %o; .reg .b32 %r<8>, %x; .reg .pred %p;
ld.param.u64 %o, [out];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %x, %r1, %r2, %r3;
mad.wide.u32 %o, %x, 4, %o;
mov.u32 %r5, 0;
$ways: .branchtargets {names};
$round: shr.u32 %r4, %x, 11; xor.b32 %r4, %r4, %r3; and.b32 %r4, %r4, {WARP - 1};
brx.idx %r4, $ways;
{ways}
$meet: add.u32 %r5, %r5, 1; setp.lt.u32 %p, %r5, {TURNS};
@%p bra $round;
st.global.u32 [%o], %x;
ret;
}}""")


def compute_diverging(count: int) -> NDArray[Any]:
    """Compute the result of `make_diverging` in NumPy."""
    x = np.arange(count, dtype=np.uint32)
    thread = x % 128
    for _ in range(TURNS):
        way = (x >> 11 ^ thread) % WARP
        for _ in range(STEPS):
            x = x * (2 * way + 3) + way
    return x


def print_rate(name: str, run: Callable[[], sim.Result]) -> None:
    """Print the best rate of several runs."""
    least, lanes = float("inf"), 0
    for _ in range(RUNS):
        start = time.perf_counter()
        lanes = run().stats.lane_instructions
        least = min(least, time.perf_counter() - start)
    print(f"{name:34}{lanes / 1e6:9.1f} M lane-instructions {least:8.3f} s {lanes / least / 1e6:8.0f} M/s")


def make_ptx_gemm(size: int) -> Gemm:
    """Return functions that run the PTX example and compare its result with NumPy."""
    sys.path.insert(0, str(ROOT))
    demo, (a, b) = import_module("examples.demo"), draw_factors(size)
    module, d = parse((ROOT / "examples" / "hopper_gemm.ptx").read_text("utf-8")), np.zeros((size, size), np.float32)
    launch: dict[str, Any] = {
        "grid": (size // 128, size // 128), "block": demo.THREADS, "shared": demo.DYNAMIC_SHARED,
        "args": (sim.Tensor(a, demo.make_map(a)), sim.Tensor(b, demo.make_map(b)), d, size, size // 64),
    }  # fmt: skip
    return partial(sim.run, module, **launch), lambda: np.testing.assert_allclose(d, multiply(a, b), atol=1e-2)


def make_python_gemm(name: str, size: int) -> Gemm:
    """Return functions that run a Python example and compare its result with NumPy."""
    sys.path.insert(0, str(ROOT))
    kernel, c = (
        import_module("examples.parts.example").find_example(name).make(),
        np.zeros((size, size), ml_dtypes.bfloat16),
    )
    a, b = draw_factors(size)
    return partial(kernel.simulate, a, b, out=c), lambda: np.testing.assert_allclose(
        c.astype(np.float32), multiply(a, b), rtol=1e-2, atol=1e-2
    )


GEMMS: dict[str, Callable[[int], Gemm]] = {
    "hopper_gemm.ptx": make_ptx_gemm,
    "hopper_gemm.py": partial(make_python_gemm, "hopper/cluster_gemm"),
    "tcgen05_gemm.py": partial(make_python_gemm, "blackwell/two_sm_gemm"),
}


def draw_factors(size: int) -> list[NDArray[Any]]:
    """Return two random square matrices."""
    random = np.random.default_rng(0)
    return [random.standard_normal((size, size)).astype(ml_dtypes.bfloat16) for _ in "ab"]


def multiply(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return a bᵀ."""
    return a.astype(np.float32) @ b.astype(np.float32).T


def time_gemms(size: int) -> None:
    """Run and time every tensor-core GEMM of the examples: unchecked, checked, and with costlier options."""
    for name, make in GEMMS.items():
        run, confirm = make(size)
        print_times(name, size, run)
        confirm()


def print_times(name: str, size: int, run: Callable[..., object]) -> None:
    """Print the processor time of an unchecked run, and the times and ratios of the others."""
    plain = time_warm(partial(run, check="none"))
    line = f"{name + ' ' + str(size):22}{plain * 1e3:7.0f} ms"
    for word, options in WAYS.items():
        if size <= SLOWEST or word == "checked":
            elapsed = time_warm(partial(run, **options))
            line += f"   {word} {elapsed * 1e3:6.0f} ms = {elapsed / plain:4.1f} x"
    print(line, flush=True)


def time_warm(run: Callable[[], object]) -> float:
    """Return the least processor time of several runs, after one that prepares the kernel."""
    run()
    return measure_best(run, RUNS)


def list_pairs() -> Pairs:
    """Compare GEMMs of 256³ with costlier options with plain runs, and three kernels with NumPy."""
    return {
        f"{name} 256, {way} / plain": partial(compare_ways, name, options)
        for name in GEMMS
        for way, options in WAYS.items()
    } | {
        f"{name}, unchecked / NumPy": prepare
        for name, prepare in {
            "RMSNorm of 256 rows": compare_rmsnorm,
            "one CTA, 300 rounds": compare_rounds,
            "32 ways, 16 CTAs": compare_diverging,
        }.items()
    }


def compare_ways(name: str, options: dict[str, Any]) -> Round:
    """Compare a GEMM with and without options."""
    run, confirm = GEMMS[name](256)
    return interleave(partial(run, **options), partial(run, check="none"), confirm=confirm)


def compare_rmsnorm() -> Round:
    """Compare RMSNorm in the simulator and in NumPy."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((256, COLUMNS), np.float32), rng.standard_normal(COLUMNS, np.float32)
    y, module = np.zeros_like(x), make_rmsnorm()
    return interleave(
        lambda: sim.run(module, grid=256, block=THREADS, args=(x, w, y), check="none"),
        lambda: compute_rmsnorm(x, w),
        confirm=lambda: np.testing.assert_allclose(y, compute_rmsnorm(x, w), rtol=1e-5, atol=1e-6),
    )


def compare_rounds() -> Round:
    """Compare the rounds of one CTA in the simulator and in NumPy."""
    cells, module = np.zeros(128, np.float32), make_rounds()
    return interleave(
        lambda: sim.run(module, block=128, args=(cells, 300), check="none"),
        lambda: compute_rounds(300),
        confirm=lambda: np.testing.assert_array_equal(cells, compute_rounds(300)),
    )


def compare_diverging() -> Round:
    """Compare lanes that all diverge in the simulator with their arithmetic in NumPy."""
    out, module = np.zeros(16 * 128, np.uint32), make_diverging()
    return interleave(
        lambda: sim.run(module, grid=16, block=128, args=(out,), check="none"),
        lambda: compute_diverging(out.size),
        confirm=lambda: np.testing.assert_array_equal(out, compute_diverging(out.size)),
    )


def main() -> None:
    if len(sys.argv) > 1:
        time_gemms(int(sys.argv[1]))
        return
    for size in SIZES:
        time_gemms(size)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((ROWS, COLUMNS), np.float32), rng.standard_normal(COLUMNS, np.float32)
    y, cells = np.zeros_like(x), np.zeros(128, np.float32)
    norm, rounds = make_rmsnorm(), make_rounds()
    sim.run(norm, grid=8, block=THREADS, args=(x, w, y))
    np.testing.assert_allclose(y[:8], compute_rmsnorm(x[:8], w), rtol=1e-5, atol=1e-6)
    sim.run(rounds, block=128, args=(cells, 50))
    np.testing.assert_array_equal(cells, compute_rounds(50))
    diverging, out = make_diverging(), np.zeros(WIDE * 128, np.uint32)
    for check, label in (("none", ""), ("all", ", checked")):
        run = partial(sim.run, check=check)
        print_rate(f"32 ways, {WIDE} CTAs{label}", partial(run, diverging, grid=WIDE, block=128, args=(out,)))
        np.testing.assert_array_equal(out, compute_diverging(out.size))
        print_rate(f"RMSNorm {ROWS} x {COLUMNS}{label}", partial(run, norm, grid=ROWS, block=THREADS, args=(x, w, y)))
        print_rate(f"one CTA, {ROUNDS} rounds{label}", partial(run, rounds, block=128, args=(cells, ROUNDS)))


if __name__ == "__main__":
    main()
