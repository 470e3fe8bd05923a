"""Which CuTe DSL kernel is compiled for which target, on what it runs, and what it must compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.corpus.manifest import Array, Scalar, TensorMap
from tools.corpus.python_producers.cutedsl_kernels import hosts, products, threads
from tools.corpus.python_producers.record import array, scalar

EXACT = (0.0, 0.0)
CLOSE = (1e-5, 1e-5)
COARSE = (2e-2, 2e-2)
TILES = 24576


@dataclass(frozen=True)
class Case:
    """One compilation; `host` where the launch needs more than a grid, `maps` where arrays travel as tensor maps.

    `mma_bytes` is the size of the tiled product's run-time state (negations, masked lanes), which is passed as zeros.
    """

    stem: str
    kernel: Any
    algorithm: str
    target: str
    arguments: Sequence[Array | Scalar]
    grid: Sequence[int] = (1,)
    block: Sequence[int] = (32,)
    outputs: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reference: str = ""
    host: Any = None
    maps: Sequence[TensorMap] = ()
    cluster: tuple[int, int, int] = (1, 1, 1)
    smem: int = 0
    mma_bytes: int = 0
    reason: str | None = None

    @property
    def source(self) -> str:
        """The file that holds the kernel."""
        return str(products.__file__ if self.host else threads.__file__)


def thread_cases() -> list[Case]:
    """Thread by thread."""
    row = array("x", "float32", 2, 128, init="normal"), array("weight", "float32", 128, init="normal")
    x, out = array("x", "float32", 128, init="normal"), array("out", "float32", 128)
    pair = array("x", "float32", 64, init="normal"), array("out", "float32", 64)
    return [
        Case("vector_add", threads.vector_add, "vector-add", "sm_80",
             (array("x", "float32", 512, init="normal"), array("y", "float32", 512, init="normal"),
              array("out", "float32", 512)), (2,), (64,), {"out": EXACT}, "pointwise.vector_add"),
        Case("rmsnorm", threads.rmsnorm_rows, "rmsnorm", "sm_90a",
             (*row, array("out", "float32", 2, 128), scalar("eps", "float32", 1e-5)), (2,), (128,), {"out": CLOSE},
             "rows.rmsnorm", smem=1024),
        Case("softmax", threads.softmax_warp, "softmax", "sm_100a",
             (array("x", "float32", 2, 32, init="normal"), array("out", "float32", 2, 32)), (2,), (32,), {"out": CLOSE},
             "rows.softmax"),
        Case("redux", threads.redux_warp, "warp-redux", "sm_80",
             (array("x", "int32", 64, init="integers", low=-99, high=99), array("out", "int32", 64, 4)), (2,), (32,),
             {"out": EXACT}, "warps.redux"),
        Case("bit_fields", threads.bit_fields, "bit-fields", "sm_120a",
             (array("x", "uint32", 32, init="bits"), array("out", "uint32", 32, 4)), (1,), (32,), {"out": EXACT},
             "warps.bit_fields"),
        Case("transpose", threads.transpose_tile, "transpose", "sm_90a",
             (array("x", "float32", 64, 32, init="normal"), array("out", "float32", 32, 64)), (1, 2), (32, 4),
             {"out": EXACT}, "pointwise.transpose", smem=4224),
        Case("histogram", threads.histogram, "histogram", "sm_100a",
             (array("x", "int32", 512, init="integers", low=0, high=64), array("out", "int32", 64)), (2,), (64,),
             {"out": EXACT}, "pointwise.histogram", smem=1024),
        Case("packed_axpy", threads.packed_axpy, "axpy", "sm_100a",
             (scalar("alpha", "float32", 2.5), array("x", "float32", 32, 2, init="normal"),
              array("y", "float32", 32, 2, init="normal")), (1,), (32,), {"y": CLOSE}, "pointwise.axpy"),
        Case("cluster_sum", threads.cluster_sum, "cluster-sum", "sm_90a", pair, (2,), (32,), {"out": EXACT},
             "warps.cluster_sum", cluster=(2, 1, 1), smem=1024),
        Case("cluster_exchange", threads.cluster_exchange, "cluster-exchange", "sm_90a",
             (array("x", "int32", 64, init="bits"), array("out", "int32", 64)), (2,), (32,), {"out": EXACT},
             "warps.cluster_exchange", cluster=(2, 1, 1), smem=1024),
        Case("dependent_scale", threads.dependent_scale, "dependent-launch", "sm_120a", (x, out), (2,), (64,),
             {"out": EXACT}, "warps.tripled"),
        Case("quantise_fp8", threads.quantise_pairs, "convert-fp8", "sm_89",
             (array("x", "float32", 512, init="normal"), array("out", "float8_e4m3fn", 512)), (1,), (32,),
              {"out": EXACT},
             "warps.to_fp8"),
        Case("polynomial", threads.polynomial, "polynomial", "sm_90a",
             (array("x", "float64", 128, init="uniform", low=0.1, high=9.0), array("out", "float64", 128)), (2,), (64,),
             {"out": (1e-12, 1e-12)}, "warps.polynomial"),
        Case("binary_search", threads.binary_search, "binary-search", "sm_86",
             (array("keys", "int32", 64, init="sorted", low=0, high=1000),
              array("queries", "int32", 32, init="integers", low=0, high=1000), array("out", "int32", 32)), (1,), (32,),
             {"out": EXACT}, "warps.lower_bound"),
        Case("print_lane", threads.print_lane, "print", "sm_90a", (array("x", "float32", 32),), reason="only prints"),
    ]  # fmt: skip


def _gemm(stem: str, host: Any, target: str, kind: str, m: int, n: int, k: int, depth: int) -> Case:
    arguments = (
        array("a", kind, m, k, init="normal"),
        array("b", kind, n, k, init="normal"),
        array("out", "float32", m, n),
    )
    maps = (
        TensorMap("a_map", "a", kind, (k, m), (depth, m), "128B"),
        TensorMap("b_map", "b", kind, (k, n), (depth, n), "128B"),
    )
    name = f"matmul-{stem.split('_')[0]}"
    smem = (m + n) * 128 + 4096
    return Case(stem, None, name, target, arguments, (1,), (128,), {"out": COARSE}, "products.matmul_transposed", host,
                maps, smem=smem, mma_bytes=32 if host is hosts.gemm_tcgen05 else 1)  # fmt: skip


def product_cases() -> list[Case]:
    """Tensor cores and tensor maps."""
    tiles = array("x", "float32", 32, 32, init="normal"), array("out", "float32", 32, 32, init="normal")
    box = (32, 32), (32, 16)
    maps = TensorMap("x_map", "x", "float32", *box), TensorMap("out_map", "out", "float32", *box)
    small = (array("a", "float16", 16, 64, init="normal"), array("b", "float16", 8, 64, init="normal"),
             array("out", "float32", 16, 8))  # fmt: skip
    mma = {"outputs": {"out": COARSE}, "reference": "products.matmul_transposed", "host": hosts.gemm_mma}
    return [
        Case("gemm_mma", None, "matmul-mma", "sm_80", small, (1,), (32,), smem=4096, **mma),
        Case("tensor_map_copy", None, "tensor-map-copy", "sm_90a", tiles, (2,), (64,), {"out": EXACT}, "warps.plus_one",
             hosts.tensor_map_copy, maps, smem=4096),
        Case("tensor_map_reduce", None, "tensor-map-reduce", "sm_100a", tiles, (2,), (64,), {"out": CLOSE},
             "warps.add_plus_one", hosts.tensor_map_reduce, maps, smem=4096),
        _gemm("wgmma_f16", hosts.gemm_wgmma, "sm_90a", "float16", 64, 64, 128, 64),
        _gemm("wgmma_bf16", hosts.gemm_wgmma, "sm_90a", "bfloat16", 64, 32, 128, 64),
        _gemm("wgmma_fp8", hosts.gemm_wgmma, "sm_90a", "float8_e4m3fn", 64, 128, 256, 128),
        _gemm("tcgen05_f16", hosts.gemm_tcgen05, "sm_100a", "float16", 128, 64, 128, 64),
        _gemm("tcgen05_bf16", hosts.gemm_tcgen05, "sm_100a", "bfloat16", 128, 32, 64, 64),
    ]  # fmt: skip


CASES = thread_cases() + product_cases()
