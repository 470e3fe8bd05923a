"""Times the simulator: `python benchmarks/sim.py`. Prints lane-instructions per second, the best of several runs.

GEMMs of 256³ to 2048³ on the tensor cores of Hopper and Blackwell, in processor seconds, and how much more checks, a
random order and the sums of the hardware cost; a size as argument runs only these. Then three kernels, without and with
every check: RMSNorm of 2048 rows of 8192 (many CTAs, vector loads, shuffles), lanes that all part, and one CTA of 128
threads that works in shared memory with two barriers per round. All are compared with NumPy.
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

from pyptx import sim
from pyptx.ir import Module
from pyptx.parser import parse

RUNS = 3
ROWS, COLUMNS, THREADS = 2048, 8192, 256
ROUNDS = 3000
WARP, STEPS, TURNS, WIDE = 32, 8, 64, 256
SIZES = (256, 512, 1024, 2048)
SLOWEST = 1024
"""The largest size that is run in every way."""
WAYS: dict[str, dict[str, Any]] = {
    "checked": {"check": "all"},
    "random order": {"check": "none", "schedule": "random", "seed": 1},
    "hardware sums": {"check": "none", "precision": "hardware"},
}
ROOT = Path(__file__).parents[1]
_HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"


def rmsnorm() -> Module:
    """Return y = x / sqrt(mean(x²) + 1e-5) * w, a row per CTA, four elements per thread and step."""
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


def one_cta() -> Module:
    """Return x[t] = the result of rounds in which a thread writes its cell and reads the first one."""
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


def rounds_in_numpy(count: int) -> NDArray[Any]:
    """Return what `one_cta` computes."""
    thread = np.arange(128, dtype=np.int32)
    half, scale = np.float32(0.5), np.float32(2.0**-11)
    x = thread.astype(np.float32)
    for at in range(count):
        first = x[0]
        y = np.maximum((x * half + first - x) * half + first, first)
        x = (y + ((thread + (at & 7)) ^ (at & 7)).astype(np.float32)) * scale
    return x


def parted() -> Module:
    """Return a kernel in which every lane of a warp goes a way of its own, of 32, in every round, by its data."""
    names = ", ".join(f"$way{n}" for n in range(WARP))
    step = "mad.lo.u32 %x, %x, {}, {};"
    ways = "\n".join(
        f"$way{n}: " + " ".join([step.format(2 * n + 3, n)] * STEPS) + " bra.uni $meet;" for n in range(WARP)
    )
    return parse(f"""{_HEAD}.visible .entry parted(.param .u64 out)
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


def parted_in_numpy(count: int) -> NDArray[Any]:
    """Return what `parted` computes."""
    x = np.arange(count, dtype=np.uint32)
    thread = x % 128
    for _ in range(TURNS):
        way = (x >> 11 ^ thread) % WARP
        for _ in range(STEPS):
            x = x * (2 * way + 3) + way
    return x


def timed(name: str, run: Callable[[], sim.Result]) -> None:
    """Print the best rate of several runs."""
    best, lanes = float("inf"), 0
    for _ in range(RUNS):
        started = time.perf_counter()
        lanes = run().stats.lane_instructions
        best = min(best, time.perf_counter() - started)
    print(f"{name:34}{lanes / 1e6:9.1f} M lane-instructions {best:8.3f} s {lanes / best / 1e6:8.0f} M/s")


def gemms(size: int) -> None:
    """Run and time every GEMM of the examples with tensor cores: unchecked, checked, and in ways that cost more."""
    sys.path.insert(0, str(ROOT))
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size)).astype(ml_dtypes.bfloat16) for _ in "ab")
    want = a.astype(np.float32) @ b.astype(np.float32).T
    demo = import_module("examples.demo")
    module, d = parse((ROOT / "examples" / "hopper_gemm.ptx").read_text("utf-8")), np.zeros((size, size), np.float32)
    launch: dict[str, Any] = {
        "grid": (size // 128, size // 128), "block": demo.THREADS, "shared": demo.DYNAMIC_SHARED,
        "args": (sim.Tensor(a, demo.tiles_of(a)), sim.Tensor(b, demo.tiles_of(b)), d, size, size // 64),
    }  # fmt: skip
    compared("hopper_gemm.ptx", size, partial(sim.run, module, **launch))
    np.testing.assert_allclose(d, want, atol=1e-2)
    for name in ("hopper_gemm", "tcgen05_gemm"):
        kernel, c = import_module(f"examples.kernels.{name}").make(), np.zeros((size, size), ml_dtypes.bfloat16)
        compared(f"{name}.py", size, partial(kernel.simulate, a, b, out=c))
        np.testing.assert_allclose(c.astype(np.float32), want, rtol=1e-2, atol=1e-2)


def compared(name: str, size: int, run: Callable[..., object]) -> None:
    """Print what a run without checks takes of the processor, and how much more the others do."""
    plain = processor(partial(run, check="none"))
    line = f"{name + ' ' + str(size):22}{plain * 1e3:7.0f} ms"
    for word, options in WAYS.items():
        if size <= SLOWEST or word == "checked":
            taken = processor(partial(run, **options))
            line += f"   {word} {taken * 1e3:6.0f} ms = {taken / plain:4.1f} x"
    print(line, flush=True)


def processor(run: Callable[[], object]) -> float:
    """Return the least time of the processor in several runs, after one that prepares the kernel."""
    run()
    best = float("inf")
    for _ in range(RUNS):
        started = time.process_time()
        run()
        best = min(best, time.process_time() - started)
    return best


def main() -> None:
    if len(sys.argv) > 1:
        gemms(int(sys.argv[1]))
        return
    for size in SIZES:
        gemms(size)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((ROWS, COLUMNS), np.float32), rng.standard_normal(COLUMNS, np.float32)
    y, cells = np.zeros_like(x), np.zeros(128, np.float32)
    norm, rounds = rmsnorm(), one_cta()
    sim.run(norm, grid=8, block=THREADS, args=(x, w, y))
    want = x[:8] / np.sqrt((x[:8].astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(y[:8], want, rtol=1e-5, atol=1e-6)
    sim.run(rounds, block=128, args=(cells, 50))
    np.testing.assert_array_equal(cells, rounds_in_numpy(50))
    apart, out = parted(), np.zeros(WIDE * 128, np.uint32)
    for check, said in (("none", ""), ("all", ", checked")):
        run = partial(sim.run, check=check)
        timed(f"32 ways, {WIDE} CTAs{said}", partial(run, apart, grid=WIDE, block=128, args=(out,)))
        np.testing.assert_array_equal(out, parted_in_numpy(out.size))
        timed(f"RMSNorm {ROWS} x {COLUMNS}{said}", partial(run, norm, grid=ROWS, block=THREADS, args=(x, w, y)))
        timed(f"one CTA, {ROUNDS} rounds{said}", partial(run, rounds, block=128, args=(cells, ROUNDS)))


if __name__ == "__main__":
    main()
