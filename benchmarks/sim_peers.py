"""Time the simulator against others that run GPU kernels on a CPU: `python benchmarks/sim_peers.py`.

The peers are Numba's CUDA simulator on a vector kernel and Triton's interpreter on a tiled GEMM, both in this process.
Triton compiles the PTX of the GEMM from the same kernel that it interprets. Needs the `bench` extra.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.ratios import Pairs, Round, interleave, show
from pyptx import sim
from pyptx.parser import parse

PEERS = Path(__file__).with_name("peers")
"""The directory of the peers' kernels, peers/numba_saxpy.py and peers/triton_gemm.py."""
LENGTH, THREADS = 4096, 128
SIZE, TILE, DEPTH = 256, 64, 32

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


def list_pairs() -> Pairs:
    """Compare runs of pyptx with the same kernels in the peers."""
    checks = ("none", "all")
    return {
        **{f"saxpy of {LENGTH}, check={check} / Numba": partial(compare_with_numba, check) for check in checks},
        **{f"GEMM of {SIZE}³, check={check} / Triton": partial(compare_with_triton, check) for check in checks},
    }


def compare_with_numba(check: str) -> Round:
    """Compare y = a x + y with Numba, which runs a Python thread per CUDA thread."""
    saxpy = load_peer("numba_saxpy").saxpy
    x = np.random.default_rng(0).standard_normal(LENGTH, np.float32)
    module, y, peer = parse(SAXPY), np.ones(LENGTH, np.float32), np.ones(LENGTH, np.float32)
    launch: dict[str, Any] = {"grid": LENGTH // THREADS, "block": THREADS, "args": [x, y, 3.0], "check": check}
    return interleave(
        lambda: sim.run(module, **launch),
        lambda: saxpy[LENGTH // THREADS, THREADS](x, peer, np.float32(3)),
        confirm=lambda: np.testing.assert_allclose(y, 3 * x + 1, rtol=1e-6, atol=1e-6),
    )


def compare_with_triton(check: str) -> Round:
    """Compare C = A B in f16, one tile per CTA, with Triton."""
    torch, kernel = importlib.import_module("torch"), load_peer("triton_gemm").gemm
    ptx = compile_gemm(SIZE, TILE, DEPTH)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE)).astype(np.float16) for _ in range(2))
    ours, peer = np.zeros((SIZE, SIZE), np.float32), np.zeros((SIZE, SIZE), np.float32)
    tensors = [torch.from_numpy(array) for array in (a, b, peer)]
    grid, expected = (SIZE // TILE, SIZE // TILE), a.astype(np.float64) @ b.astype(np.float64)
    module, args = parse(ptx["ptx"]), [a, b, ours, *[np.zeros(0, np.uint8)] * 2]
    kernel[grid](*tensors, size=SIZE, tile=TILE, depth=DEPTH)
    np.testing.assert_allclose(peer, expected, rtol=1e-3, atol=1e-2)
    return interleave(
        lambda: sim.run(module, grid=grid, block=128, shared=ptx["shared"], args=args, check=check),
        lambda: kernel[grid](*tensors, size=SIZE, tile=TILE, depth=DEPTH),
        confirm=lambda: np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-2),
    )


def load_peer(name: str) -> ModuleType:
    """Import a file of kernels that a peer interprets."""
    os.environ |= {"NUMBA_ENABLE_CUDASIM": "1", "TRITON_INTERPRET": "1"}
    if str(PEERS) not in sys.path:
        sys.path.append(str(PEERS))
    return importlib.import_module(name)


def compile_gemm(*sizes: int) -> dict[str, Any]:
    """Return the PTX that Triton compiles from its GEMM, and its size of shared memory."""
    command = [sys.executable, str(PEERS / "triton_gemm.py"), *map(str, sizes)]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    show(list_pairs(), sys.argv[1:])
