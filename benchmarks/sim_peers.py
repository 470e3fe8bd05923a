"""Times the simulator against what else runs GPU kernels on a CPU: `python benchmarks/sim_peers.py`.

Two peers, both in this process: Numba's CUDA simulator on a vector kernel, and Triton's interpreter on a tiled GEMM.
The GEMM's PTX is what Triton itself makes of the very kernel that it interprets. Needs the `bench` extra.
"""

from __future__ import annotations

import os

os.environ |= {"NUMBA_ENABLE_CUDASIM": "1", "TRITON_INTERPRET": "1"}

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pyptx import sim
from pyptx.parser import parse

PEERS = Path(__file__).with_name("peers")
"""Kernels in the peers' languages: peers/numba_saxpy.py and peers/triton_gemm.py."""
LENGTH, THREADS = 32768, 128
SIZE, TILE, DEPTH = 512, 64, 32

SAXPY = f"""\
.version 8.5
.target sm_90
.address_size 64
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a)
{{
    .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [a];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r1, {THREADS}, %r2;
    mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
    ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd2];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%rd2], %f3;
    ret;
}}
"""


def timed(run: Callable[[], object], runs: int = 3) -> float:
    """Return the best time of several runs, in seconds."""
    best = float("inf")
    for _ in range(runs):
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return best


def report(name: str, ours: float, peer: str, theirs: float) -> None:
    """Print both times and their ratio."""
    print(f"{name:<34}pyptx {1e3 * ours:9.1f} ms   {peer} {1e3 * theirs:9.1f} ms   {theirs / ours:8.1f} times")


def against_numba() -> None:
    """y = a x + y on one array. Numba runs a Python thread per CUDA thread."""
    saxpy = importlib.import_module("numba_saxpy").saxpy
    x = np.random.default_rng(0).standard_normal(LENGTH, np.float32)
    start = np.ones(LENGTH, np.float32)
    theirs, ours = start.copy(), start.copy()
    saxpy[LENGTH // THREADS, THREADS](x, theirs, np.float32(3))
    module = parse(SAXPY)
    shape: dict[str, Any] = {"grid": LENGTH // THREADS, "block": THREADS}
    started = time.perf_counter()
    sim.run(module, args=[x, ours, 3.0], **shape)
    print(f"{'saxpy, the first run of all':<34}pyptx {1e3 * (time.perf_counter() - started):9.1f} ms")
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours, 3 * x + 1, rtol=1e-6, atol=1e-6)
    peer = timed(lambda: saxpy[LENGTH // THREADS, THREADS](x, theirs, np.float32(3)))
    for check in ("none", "all"):
        own = timed(partial(sim.run, module, args=[x, ours, 3.0], check=check, **shape))
        report(f"saxpy of {LENGTH}, check={check}", own, "Numba", peer)


def against_triton() -> None:
    """C = A B of halves, a tile per CTA."""
    torch, kernel = importlib.import_module("torch"), importlib.import_module("triton_gemm").gemm
    made = compiled(SIZE, TILE, DEPTH)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(np.float16) for _ in range(2))
    ours, theirs = np.zeros((SIZE, SIZE), np.float32), np.zeros((SIZE, SIZE), np.float32)
    tensors = [torch.from_numpy(array) for array in (a, b, theirs)]
    peer = timed(lambda: kernel[(SIZE // TILE, SIZE // TILE)](*tensors, size=SIZE, tile=TILE, depth=DEPTH))
    module, scratch = parse(made["ptx"]), [np.zeros(0, np.uint8)] * 2
    shape: dict[str, Any] = {"grid": (SIZE // TILE, SIZE // TILE), "block": 128, "shared": made["shared"]}
    sim.run(module, args=[a, b, ours, *scratch], **shape)
    want = a.astype(np.float64) @ b.astype(np.float64)
    for found in (ours, theirs):
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-2)
    for check in ("none", "all"):
        own = timed(partial(sim.run, module, args=[a, b, ours, *scratch], check=check, **shape))
        report(f"GEMM of {SIZE}³, check={check}", own, "Triton", peer)


def compiled(*sizes: int) -> dict[str, Any]:
    """Return the PTX that Triton makes of its GEMM, and the shared memory that it needs."""
    command = [sys.executable, str(PEERS / "triton_gemm.py"), *map(str, sizes)]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    sys.path.append(str(PEERS))
    against_numba()
    against_triton()
