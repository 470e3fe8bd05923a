"""Which function is compiled for which device, on what it runs, and what it must compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.corpus.manifest import Array
from tools.corpus.python_producers.jax_kernels import functions, pallas
from tools.corpus.python_producers.record import array

EXACT = (0.0, 0.0)
CLOSE = (1e-5, 1e-5)
COARSE = (2e-2, 2e-2)
PARTIAL = "one kernel of several that XLA launches for this function"
PACKED = "takes its tensor maps inside one structure"


@dataclass(frozen=True)
class Case:
    """One compilation; the last arguments are what the function returns."""

    function: Any
    algorithm: str
    device: str
    arguments: Sequence[Array]
    outputs: Mapping[str, tuple[float, float]]
    reference: str = ""
    reason: str | None = None


def f32(name: str, *shape: int, init: str = "normal", **options: Any) -> Array:
    return array(name, "float32", *shape, init=init, **options)


def xla_cases() -> list[Case]:
    """XLA's own kernels."""
    # Long: a table of cases.
    x, out = f32("x", 8, 128), f32("out", 8, 128, init="zeros")
    vector, flat = f32("x", 500), f32("out", 500, init="zeros")
    halves = array("a", "bfloat16", 64, 64, init="normal"), array("b", "bfloat16", 64, 64, init="normal")
    square = f32("out", 64, 64, init="zeros")
    double = array("x", "float64", 300, init="normal"), array("out", "float64", 300)
    words = array("x", "uint32", 500, init="bits"), array("out", "uint32", 500)
    ints = [array(n, "int32", 500, init="integers", low=lo, high=hi) for n, lo, hi in (("x", -99, 99), ("y", 1, 20))]
    index = array("index", "int32", 6, init="integers", low=0, high=16)
    return [
        Case(functions.softmax, "softmax", "sm_80", (x, out), {"out": CLOSE}, "rows.softmax"),
        Case(functions.layernorm, "layernorm", "sm_90", (x, f32("weight", 128), f32("bias", 128), out), {"out": CLOSE},
             "arrays.layernorm"),
        Case(functions.gelu, "gelu", "sm_75", (vector, flat), {"out": CLOSE}, "pointwise.gelu"),
        Case(functions.argmax, "argmax", "sm_89", (x, array("out", "int32", 8)), {"out": EXACT}, "arrays.argmax"),
        Case(functions.cumsum, "scan", "sm_80", (x, out), {"out": (1e-4, 1e-4)}, "rows.cumsum"),
        Case(functions.sort, "bitonic-sort", "sm_90", (x, out), {"out": EXACT}, "rows.sort"),
        Case(functions.gather_rows, "embedding-gather", "sm_86", (f32("table", 16, 32), index, f32("out", 6, 32,
             init="zeros")),
             {"out": EXACT}, "pointwise.gather_rows"),
        Case(functions.scatter_add, "scatter-add", "sm_80",
             (f32("x", 6, 32), index, f32("out", 16, 32, init="zeros")), {"out": CLOSE}, "pointwise.scatter_add"),
        Case(functions.transpose, "transpose", "sm_120", (f32("x", 64, 96), f32("out", 96, 64, init="zeros")),
             {"out": EXACT}, "pointwise.transpose"),
        Case(functions.column_sums, "reduction-columns", "sm_90", (f32("x", 64, 96), f32("out", 96, init="zeros")),
             {"out": (1e-4, 1e-4)}, "arrays.column_sums"),
        Case(functions.matmul, "matmul", "sm_100", (*halves, square), {"out": COARSE}, "products.matmul"),
        Case(functions.matmul_gelu, "matmul-gelu", "sm_80", (*halves, square), {"out": COARSE}, "arrays.matmul_gelu"),
        Case(functions.random_bits, "threefry", "sm_86", (array("key", "uint32", 2, init="bits"), array("out",
             "uint32", 512)),
             {"out": EXACT}, reason="JAX's layout of the counters has no short NumPy equivalent"),
        Case(functions.convert_fp8, "convert-fp8", "sm_89", (vector, array("out", "float8_e4m3fn", 500)),
             {"out": EXACT},
             "warps.to_fp8"),
        Case(functions.complex_exp, "complex-exponential", "sm_75",
             (array("x", "complex64", 200, init="normal"), array("out", "complex64", 200)), {"out": CLOSE},
             "arrays.exponential"),
        Case(functions.gamma_functions, "gamma-functions", "sm_100", (f32("x", 300, init="uniform", low=0.5, high=9.0),
             f32("out", 300, init="zeros")), {"out": (1e-3, 1e-3)}, reason="NumPy has no digamma"),
        Case(functions.inverse_error, "inverse-error-function", "sm_90",
             (f32("x", 300, init="uniform", low=-0.9, high=0.9), f32("out", 300, init="zeros")), {"out": (1e-4, 1e-4)},
             "arrays.inverse_error"),
        Case(functions.max_pool, "max-pool", "sm_75", (f32("x", 16, 24), f32("out", 8, 12, init="zeros")),
             {"out": EXACT},
             "arrays.max_pool"),
        Case(functions.population_count, "population-count", "sm_86", words, {"out": EXACT},
             "pointwise.population_count"),
        Case(functions.clamp_reverse, "clamp-reverse", "sm_120", (x, out), {"out": EXACT}, "arrays.clamp_reverse"),
        Case(functions.power_iteration, "fixed-point-iteration", "sm_89", (vector, flat), {"out": CLOSE},
             "arrays.power_iteration"),
        Case(functions.double_trigonometry, "trigonometry", "sm_80", double, {"out": (1e-11, 1e-11)},
             "arrays.trigonometry"),
        Case(functions.bilinear_gradient, "gradient-stencil", "sm_90", (f32("x", 16, 24), f32("out", 16, 24,
             init="zeros")),
             {"out": CLOSE}, "arrays.gradient"),
        Case(functions.logsumexp, "logsumexp", "sm_100", (x, f32("out", 8, init="zeros")), {"out": CLOSE},
             "rows.logsumexp"),
        Case(functions.integer_divisions, "integer-division", "sm_75", (*ints, array("out", "int32", 500)),
             {"out": EXACT},
             "arrays.divisions"),
    ]  # fmt: skip


def pallas_cases() -> list[Case]:
    """Pallas: names that start with `triton` use the Triton lowering, the others Mosaic GPU."""
    x, y, out = f32("x", 256), f32("y", 256), f32("out", 256, init="zeros")
    rows, zeros = f32("x", 4, 128), f32("out", 4, 128, init="zeros")
    tile = f32("x", 128, 64), f32("out", 128, 64, init="zeros")
    half = [array(n, "float16", 64, 64, init="normal") for n in ("q", "k", "v")]
    deep = array("a", "float16", 64, 128, init="normal"), array("b", "float16", 128, 64, init="normal")
    big = array("a", "float16", 128, 64, init="normal"), array("b", "float16", 64, 128, init="normal")
    return [
        Case(pallas.triton_add, "vector-add", "sm_80", (x, y, out), {"out": EXACT}, "pointwise.vector_add"),
        Case(pallas.triton_softmax, "softmax", "sm_90", (rows, zeros), {"out": CLOSE}, "rows.softmax"),
        Case(pallas.triton_matmul, "matmul", "sm_80",
             (array("a", "float16", 64, 64, init="normal"), array("b", "float16", 64, 64, init="normal"),
              f32("out", 64, 64, init="zeros")), {"out": COARSE}, "products.matmul"),
        Case(pallas.triton_attention, "attention", "sm_90", (*half, array("out", "float16", 64, 64)), {"out": (4e-3,
             4e-3)},
             "arrays.attention"),
        Case(pallas.triton_rmsnorm, "rmsnorm", "sm_89", (rows, f32("weight", 128), zeros), {"out": CLOSE},
             "arrays.rmsnorm"),
        Case(pallas.mosaic_add, "vector-add", "sm_90", (x, y, out), {"out": EXACT}, reason=PACKED),
        Case(pallas.mosaic_exp, "activation", "sm_100", tile, {"out": CLOSE}, reason=PACKED),
        Case(pallas.mosaic_softmax, "softmax", "sm_90", tile, {"out": CLOSE}, reason=PACKED),
        Case(pallas.mosaic_wgmma, "matmul-wgmma", "sm_90", (*deep, array("out", "float16", 64, 64)), {"out": COARSE},
             reason=PACKED),
        Case(pallas.mosaic_tcgen05, "matmul-tcgen05", "sm_100", (*big, array("out", "float16", 128, 128)),
             {"out": COARSE}, reason=PACKED),
    ]  # fmt: skip


CASES = {"xla": xla_cases, "pallas": pallas_cases}
