"""Which Triton kernel is compiled for which target, on what it runs, and what it must compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import triton.language as tl

from tools.corpus.manifest import Argument, TensorMap
from tools.corpus.python_producers.record import array, scalar
from tools.corpus.python_producers.triton_kernels import layouts, pointwise, products, rows

EXACT = (0.0, 0.0)
CLOSE = (1e-5, 1e-5)
HALF = (4e-3, 4e-3)
COARSE = (2e-2, 2e-2)


@dataclass(frozen=True)
class Case:
    """One compilation: a kernel, a target, constants, and a launch with its expected outputs or a reason for none."""

    stem: str
    kernel: Any
    algorithm: str
    target: int
    arguments: Sequence[Argument]
    constants: Mapping[str, Any]
    grid: Sequence[int] = (1,)
    outputs: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reference: str = ""
    warps: int = 4
    stages: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    types: Sequence[str] = ()
    reason: str | None = None
    fuse: bool = True
    line_info: bool = False


def row_cases() -> list[Case]:
    """Rows: softmax, norms, losses, order statistics, scans."""
    x = array("x", "float32", 4, 200, init="normal")
    cols, eps = scalar("cols", "int32", 200), scalar("eps", "float32", 1e-5)
    out = array("out", "float32", 4, 200)
    weight, bias = (array(name, "float32", 200, init="normal") for name in ("weight", "bias"))
    wide = {"BLOCK": 256}
    vector = array("mean", "float32", 4, init="normal"), array("rstd", "float32", 4, init="uniform", low=0.5, high=2.0)
    labels = array("labels", "int32", 4, init="integers", low=0, high=200)
    x256 = array("x", "float32", 2, 256, init="normal")
    out256 = array("out", "float32", 2, 256)
    half = array("x", "bfloat16", 4, 200, init="normal"), array("weight", "bfloat16", 200, init="normal")
    ints = array("x", "int32", 2, 256, init="integers", low=-50, high=50)
    flags = array("flags", "int32", 2, 256, init="integers", low=0, high=2)
    return [
        Case("softmax", rows.softmax_rows, "softmax", 80, (x, out, cols), wide, (4,), {"out": CLOSE}, "rows.softmax"),
        Case("softmax_fused", rows.softmax_rows, "softmax", 120, (x, out, cols), wide, (4,), {"out": CLOSE},
             "rows.softmax", warps=1, line_info=True),
        Case("logsumexp", rows.online_logsumexp, "logsumexp", 86, (x, array("out", "float32", 4), cols), {"BLOCK": 64},
             (4,), {"out": CLOSE}, "rows.logsumexp", warps=2),
        Case("layernorm", rows.layernorm_forward, "layernorm", 75,
             (x, weight, bias, out, array("mean_out", "float32", 4), array("rstd_out", "float32", 4), cols, eps), wide,
             (4,), {"out": CLOSE, "mean_out": CLOSE, "rstd_out": CLOSE}, "rows.layernorm", line_info=True),
        Case("layernorm_backward", rows.layernorm_backward, "layernorm-backward", 86,
             (x, array("dout", "float32", 4, 200, init="normal"), weight, *vector, array("dx", "float32", 4, 200),
              cols),
             wide, (4,), {"dx": CLOSE}, "rows.layernorm_backward"),
        Case("rmsnorm", rows.rmsnorm, "rmsnorm", 90, (*half, array("out", "bfloat16", 4, 200), cols, eps), wide, (4,),
             {"out": (8e-3, 1e-3)}, "rows.rmsnorm"),
        Case("cross_entropy", rows.cross_entropy, "cross-entropy", 90,
             (array("logits", "float32", 4, 200, init="normal"), labels, array("loss", "float32", 4),
              array("grad", "float32", 4, 200), cols), wide, (4,), {"loss": CLOSE, "grad": CLOSE},
               "rows.cross_entropy"),
        Case("argmax", rows.argmax_rows, "argmax", 80,
             (x, array("out_value", "float32", 4), array("out_index", "int32", 4), cols), wide, (4,),
             {"out_value": EXACT, "out_index": EXACT}, "rows.argmax"),
        Case("sort", rows.sort_rows, "bitonic-sort", 89, (x256, out256), wide, (2,), {"out": EXACT}, "rows.sort"),
        Case("topk", rows.topk_rows, "top-k", 100, (x256, array("out", "float32", 2, 8)), wide | {"K": 8}, (2,),
             {"out": EXACT}, "rows.top_k"),
        Case("quantise_int8", rows.quantise_rows, "quantise-int8", 80,
             (x, array("out", "int8", 4, 200), array("scales", "float32", 4), cols), wide, (4,),
             {"out": (0.0, 1.0), "scales": CLOSE}, "rows.quantise_int8"),
        Case("quantise_fp8", rows.quantise_fp8, "quantise-fp8", 89,
             (x256, array("out", "float8_e4m3fn", 2, 256), array("scales", "float32", 2)), wide, (2,),
             {"out": (0.13, 0.01), "scales": CLOSE}, "rows.quantise_fp8"),
        Case("welford", rows.welford_rows, "welford", 75,
             (x, array("mean_out", "float32", 4), array("var_out", "float32", 4), cols), wide, (4,),
             {"mean_out": CLOSE, "var_out": CLOSE}, "rows.moments"),
        Case("cumsum", rows.cumsum_rows, "scan", 86, (x256, out256), wide, (2,), {"out": (1e-4, 1e-4)}, "rows.cumsum"),
        Case("linear_recurrence", rows.linear_recurrence, "linear-recurrence", 90,
             (array("decay", "float32", 2, 256, init="uniform"), x256, out256), wide, (2,), {"out": (1e-4, 1e-4)},
             "rows.linear_recurrence"),
        Case("segmented_scan", rows.segmented_scan, "segmented-scan", 80, (ints, flags, array("out", "int32", 2, 256)),
             wide, (2,), {"out": EXACT}, "rows.segmented_scan", warps=2),
    ]  # fmt: skip


def pointwise_cases() -> list[Case]:
    """No reduction: activations, gathers, atomics, random numbers, stencils."""
    # Long: a table of cases.
    n = scalar("n", "int32", 500)
    x, y = (array(name, "float32", 500, init="normal") for name in "xy")
    out = array("out", "float32", 500)
    wide = {"BLOCK": 256}
    table, index = (
        array("table", "float16", 64, 96, init="normal"),
        array("index", "int64", 6, init="integers", low=0, high=64),
    )
    state = tuple(array(name, "float32", 500, init="normal") for name in ("param", "grad", "m"))
    rates = tuple(scalar(k, "float32", v) for k, v in (("lr", 1e-2), ("beta1", 0.9), ("beta2", 0.99), ("eps", 1e-8)))
    pairs = tuple(array(name, "float32", 300, 2, init="normal") for name in "ab")
    bytes_ab = tuple(array(name, "uint8", 1000, init="integers", low=0, high=256) for name in "ab")
    return [
        Case("vector_add", pointwise.vector_add, "vector-add", 75, (x, y, out, n), wide, (2,), {"out": EXACT},
             "pointwise.vector_add"),
        Case("swiglu", pointwise.swiglu, "swiglu", 90,
             (array("gate", "float16", 500, init="normal"), array("up", "float16", 500, init="normal"),
              array("out", "float16", 500), n), wide, (2,), {"out": HALF}, "pointwise.swiglu"),
        Case("gelu", pointwise.gelu, "gelu", 80, (x, out, n), wide, (2,), {"out": CLOSE}, "pointwise.gelu"),
        Case("embedding", pointwise.embedding_gather, "embedding-gather", 75,
             (table, index, array("out", "float16", 6, 96), scalar("width", "int32", 96)), {"BLOCK": 128}, (6,),
             {"out": EXACT}, "pointwise.gather_rows", warps=1, line_info=True),
        Case("scatter_add", pointwise.scatter_add, "scatter-add", 80,
             (array("x", "float32", 6, 96, init="normal"), array("index", "int32", 6, init="integers", low=0, high=3),
              array("out", "float32", 3, 96), scalar("width", "int32", 96)), {"BLOCK": 128}, (6,), {"out": CLOSE},
             "pointwise.scatter_add"),
        Case("transpose", pointwise.transpose, "transpose", 86,
             (array("x", "float32", 40, 56, init="normal"), array("out", "float32", 56, 40), scalar("rows", "int32",
              40),
              scalar("cols", "int32", 56)), {"BLOCK": 32}, (2, 2), {"out": EXACT}, "pointwise.transpose"),
        Case("histogram", pointwise.histogram, "histogram", 75,
             (array("x", "int32", 500, init="integers", low=0, high=64), array("out", "int32", 64), n),
             wide | {"BINS": 64}, (2,), {"out": EXACT}, "pointwise.histogram"),
        Case("dropout", pointwise.dropout, "dropout", 80,
             (x, out, n, scalar("p", "float32", 0.25), scalar("seed", "int32", 7)), wide, (2,), {"out": CLOSE},
             "pointwise.dropout"),
        Case("philox", pointwise.philox_words, "philox", 90, (array("out", "int32", 256, 4), scalar("seed", "int32",
             11)),
             {"BLOCK": 128}, (2,), {"out": EXACT}, "pointwise.philox_words", line_info=True),
        Case("adam", pointwise.adam_step, "adam", 89,
             (*state, array("v", "float32", 500, init="uniform"), n, *rates), wide, (2,),
             {"param": CLOSE, "m": CLOSE, "v": CLOSE}, "pointwise.adam"),
        Case("rotary", pointwise.rotary, "rotary-embedding", 100,
             (array("x", "float32", 4, 96, init="normal"), array("cos", "float32", 4, 48, init="uniform"),
              array("sin", "float32", 4, 48, init="uniform"), array("out", "float32", 4, 96), scalar("half", "int32",
               48)),
             {"BLOCK": 64}, (4,), {"out": CLOSE}, "pointwise.rotary", warps=2),
        Case("mandelbrot", pointwise.mandelbrot, "mandelbrot", 75,
             (array("out", "int32", 16, 32), scalar("width", "int32", 32), scalar("height", "int32", 16),
              scalar("limit", "int32", 12)), wide, (2,), {"out": (0.0, 1.0)}, "simulations.mandelbrot"),
        Case("life", pointwise.life, "game-of-life", 80,
             (array("cells", "int8", 16, 24, init="integers", low=0, high=2), array("out", "int8", 16, 24),
              scalar("width", "int32", 24), scalar("height", "int32", 16)), wide, (2,), {"out": EXACT},
               "pointwise.life"),
        Case("causal_conv1d", pointwise.causal_conv1d, "convolution-1d", 120,
             (array("x", "float32", 3, 200, init="normal"), array("weight", "float32", 3, 4, init="normal"),
              array("out", "float32", 3, 200), scalar("length", "int32", 200)), {"TAPS": 4, "BLOCK": 128}, (3, 2),
             {"out": CLOSE}, "pointwise.causal_conv1d"),
        Case("complex_multiply", pointwise.complex_multiply, "complex-multiply", 80,
             (*pairs, array("out", "float32", 300, 2), scalar("n", "int32", 300)), {"BLOCK": 256}, (2,), {"out": CLOSE},
             "pointwise.complex_multiply"),
        Case("locked_sum", pointwise.locked_sum, "spin-lock", 75,
             (array("x", "float32", 512, init="uniform"), array("lock", "int32", 1), array("out", "float32", 1)),
             {"BLOCK": 128}, (4,), {"out": CLOSE}, "pointwise.total"),
        Case("popcount", pointwise.population_count, "population-count", 75,
             (array("x", "int32", 500, init="bits"), array("out", "int32", 500), n), wide, (2,), {"out": EXACT},
             "pointwise.population_count"),
        Case("byte_difference", pointwise.byte_absolute_difference, "absolute-difference", 90,
             (*bytes_ab, array("out", "uint8", 1000), scalar("n", "int32", 1000)), {"BLOCK": 512}, (2,), {"out": EXACT},
             "pointwise.absolute_difference"),
        Case("shuffle_columns", pointwise.shuffle_columns, "permute", 80,
             (array("x", "float32", 2, 128, init="normal"), array("order", "int32", 128, init="permutation"),
              array("out", "float32", 2, 128)), {"BLOCK": 128}, (2,), {"out": EXACT}, "pointwise.take_columns"),
        Case("checked_divide", pointwise.checked_divide, "checked-divide", 86,
             (array("x", "int32", 500, init="integers", low=-900, high=900),
              array("y", "int32", 500, init="integers", low=1, high=30), array("out", "int32", 500), n), wide, (2,),
             {"out": EXACT}, "pointwise.floor_divide", options={"debug": True}),
        Case("device_print", pointwise.print_block, "print", 75, (x,), {"BLOCK": 64}, reason="only prints"),
    ]  # fmt: skip


def _tiles(dtype: str, out: str, m: int, n: int, k: int, is_transposed: bool = False) -> tuple[Argument, ...]:
    right = (n, k) if is_transposed else (k, n)
    return array("a", dtype, m, k, init="normal"), array("b", dtype, *right, init="normal"), array("out", out, m, n)


def _sizes(**values: int) -> tuple[Argument, ...]:
    return tuple(scalar(name, "int32", value) for name, value in values.items())


def _matmul(
    stem: str, target: int, dtype: str, out: str, out_type: Any, m: int, n: int, k: int, bk: int, **options: Any
) -> Case:
    blocks = {"BM": options.pop("bm", m), "BN": options.pop("bn", n), "BK": bk, "OUT": out_type}
    grid = (m // blocks["BM"], n // blocks["BN"])
    arguments = (*_tiles(dtype, out, m, n, k), *_sizes(m=m, n=n, k=k))
    return Case(
        stem, products.matmul, "matmul", target, arguments, blocks, grid, {"out": COARSE}, "products.matmul", **options
    )


def product_cases() -> list[Case]:
    """Matrix products by target and type."""
    # Long: a table of cases.
    heads = tuple(array(name, "float16", 2, 64, 32, init="normal") for name in ("q", "k", "v"))
    tall = tuple(array(name, "bfloat16", 1, 128, 64, init="normal") for name in ("q", "k", "v"))
    length, scale = scalar("length", "int32", 64), scalar("scale", "float32", 0.176776695)
    decode = (
        array("q", "float32", 2, 32, init="normal"),
        *(array(n, "float32", 2, 100, 32, init="normal") for n in "kv"),
    )
    parts = array("part", "float32", 2, 2, 32), array("top_out", "float32", 2, 2), array("total_out", "float32", 2, 2)
    flash = {"BM": 32, "BN": 32, "D": 32}
    return [
        _matmul("matmul_f16", 75, "float16", "float16", tl.float16, 64, 64, 64, 32, bm=32, bn=32),
        _matmul("matmul_f16", 80, "float16", "float32", tl.float32, 64, 64, 128, 32, bm=32),
        _matmul("matmul_tf32", 86, "float32", "float32", tl.float32, 32, 32, 64, 32),
        _matmul("matmul_bf16", 89, "bfloat16", "bfloat16", tl.bfloat16, 64, 64, 64, 32, bn=32),
        _matmul("matmul_fp8", 89, "float8_e4m3fn", "float32", tl.float32, 64, 32, 64, 32),
        _matmul("matmul_f16", 90, "float16", "float16", tl.float16, 64, 64, 128, 64, line_info=True),
        _matmul("matmul_fp8", 90, "float8_e5m2", "float32", tl.float32, 64, 32, 128, 64),
        _matmul("matmul_f16", 100, "float16", "float16", tl.float16, 128, 64, 128, 64),
        _matmul("matmul_f16", 120, "float16", "float32", tl.float32, 32, 64, 64, 32, warps=2),
        Case("matmul_int8", products.matmul_int8, "matmul-int8", 80,
             (array("a", "int8", 32, 64, init="integers", low=-128, high=128),
              array("b", "int8", 32, 64, init="integers", low=-128, high=128), array("out", "int32", 32, 32),
              *_sizes(n=32, k=64)), {"BM": 32, "BN": 32, "BK": 32}, (1, 1), {"out": EXACT},
               "products.matmul_transposed"),
        Case("matmul_f64", products.matmul_double, "matmul-double", 80,
             (*_tiles("float64", "float64", 32, 32, 16), *_sizes(n=32, k=16)), {"BM": 16, "BN": 16, "BK": 16}, (2, 2),
             {"out": (1e-12, 1e-12)}, "products.matmul", warps=1),
        Case("split_k", products.matmul_split_k, "matmul-split-k", 86,
             (*_tiles("float16", "float32", 32, 32, 128), *_sizes(n=32, k=128)), {"BM": 32, "BN": 32, "BK": 64}, (1, 1,
              2),
             {"out": COARSE}, "products.matmul"),
        _make_scaled_case(90, "e4m3"),
        _make_scaled_case(100, "e2m1"),
        _make_scaled_case(100, "e4m3"),
        _make_scaled_case(120, "e4m3"),
        _make_scaled_case(120, "e2m1"),
        _make_mapped_case(90),
        _make_mapped_case(100),
        *(Case("matmul_persistent", products.matmul_persistent, "matmul-persistent", target,
               (*_tiles("float16", "float16", 256, 64, 128, True), *_sizes(m=256, n=64, k=128)),
               {"BM": 128, "BN": 64, "BK": 64, "CTAS": 1}, (1,), {"out": COARSE}, "products.matmul_transposed")
          for target in (90, 100, 120)),
        *(Case("grouped_matmul", products.grouped_matmul, "grouped-gemm", target,
               (array("a", "float16", 80, 32, init="normal"), array("b", "float16", 2, 32, 32, init="normal"),
                array("out", "float16", 80, 32), array("offsets", "int32", 3, init="values", values=[0, 30, 80]),
                *_sizes(n=32, k=32)), {"BM": 32, "BN": 32, "BK": 32}, (2, 1), {"out": COARSE},
                 "products.grouped_matmul")
          for target in (86,)),
        Case("attention", products.attention, "attention", 80, (*heads, array("out", "float16", 2, 64, 32), length,
             scale),
             flash | {"CAUSAL": False}, (2, 2), {"out": HALF}, "products.attention"),
        Case("attention_causal", products.attention, "attention-causal", 90,
             (*tall, array("out", "bfloat16", 1, 128, 64), scalar("length", "int32", 128), scalar("scale", "float32",
              0.125)),
             {"BM": 64, "BN": 64, "D": 64, "CAUSAL": True}, (2, 1), {"out": COARSE}, "products.attention_causal"),
        Case("attention", products.attention, "attention", 100,
             (*tall, array("out", "bfloat16", 1, 128, 64), scalar("length", "int32", 128), scalar("scale", "float32",
              0.125)),
             {"BM": 128, "BN": 64, "D": 64, "CAUSAL": False}, (1, 1), {"out": COARSE}, "products.attention"),
        Case("decode_split", products.decode_split, "attention-decode", 89,
             (*decode, *parts, scalar("length", "int32", 100), scale), {"SPLIT": 64, "D": 32}, (2, 2),
             {"part": CLOSE, "top_out": CLOSE, "total_out": CLOSE}, "products.decode_split"),
        Case("conv2d", products.conv2d_implicit, "convolution-2d", 86,
             (array("x", "float16", 8, 10, 16, init="normal"), array("weight", "float16", 9, 16, 16, init="normal"),
              array("out", "float32", 6, 8, 16)), {"CH": 16, "H": 8, "W": 10, "OUTS": 16, "BM": 16}, (3,),
             {"out": COARSE}, "products.conv2d"),
        Case("kmeans", products.kmeans_assign, "kmeans", 80,
             (array("points", "float32", 64, 16, init="normal"), array("centres", "float32", 16, 16, init="normal"),
              array("out", "int32", 64)), {"COUNT": 16, "D": 16, "BLOCK": 32}, (2,), {"out": EXACT},
             "products.nearest_centre"),
    ]  # fmt: skip


def layout_cases() -> list[Case]:
    """Gluon."""
    x, out = array("x", "float32", 512, init="normal"), array("out", "float32", 512)
    sizes = {"M": 64, "N": 32, "K": 64}
    return [
        Case("gluon_async_scale", layouts.async_scale, "async-copy", 80, (x, out), {"BLOCK": 256}, (1,), {"out": EXACT},
             "small.doubled"),
        Case("gluon_wgmma", layouts.wgmma_tile, "matmul-wgmma", 90, _tiles("float16", "float32", 64, 32, 64), sizes,
             (1,), {"out": COARSE}, "products.matmul"),
        Case("gluon_tcgen05", layouts.tcgen05_tile, "matmul-tcgen05", 100, _tiles("float16", "float32", 128, 32, 64),
             sizes | {"M": 128}, (1,), {"out": COARSE}, "products.matmul"),
        Case("gluon_packed", layouts.packed_polynomial, "polynomial", 100, (x, out), {"BLOCK": 256}, (2,),
             {"out": CLOSE}, "small.cubic"),
    ]  # fmt: skip


def _make_mapped_case(target: int) -> Case:
    """Operands and result by tensor maps of the host; each map is followed by its shape and its strides."""
    arguments: list[Argument] = []
    for name, height, width, block in (("a", 128, 128, 128), ("b", 128, 64, 64), ("out", 128, 64, 128)):
        arguments.append(TensorMap(f"{name}_map", name, "float16", (width, height), (64, block), "128B"))
        sizes = {"rows": height, "cols": width}, {"row_stride": width, "col_stride": 1}
        for kind, values in zip(("int32", "int64"), sizes, strict=True):
            arguments += [scalar(f"{name}.{key}", kind, value) for key, value in values.items()]
    arguments.append(scalar("k", "int32", 128))
    arguments += [
        array(name, "float16", 128, cols, init="normal", hidden=True) for name, cols in (("a", 128), ("b", 64))
    ]
    arguments.append(array("out", "float16", 128, 64, hidden=True))
    types = "tensordesc<fp16[128,64]>", "tensordesc<fp16[64,64]>", "tensordesc<fp16[128,64]>", "i32"
    return Case("matmul_tma", products.matmul_descriptor, "matmul-tma", target, arguments,
                {"BM": 128, "BN": 64, "BK": 64}, (1, 1), {"out": COARSE}, "products.matmul", types=types)  # fmt: skip


def _make_scaled_case(target: int, form: str) -> Case:
    pack = 2 if form == "e2m1" else 1
    kind = (
        {"dtype": "uint8", "init": "integers", "low": 0, "high": 256}
        if pack == 2
        else {"dtype": "float8_e4m3fn", "init": "normal"}
    )
    scales = {"dtype": "uint8", "init": "integers", "low": 124, "high": 130}
    arguments = (
        _tile("a", 128, 128 // pack, kind),
        _tile("a_scale", 128, 4, scales),
        _tile("b", 64, 128 // pack, kind),
        _tile("b_scale", 64, 4, scales),
        array("out", "float32", 128, 64),
        *_sizes(n=64, k=128),
    )
    constants = {"FORMAT": form, "BM": 128, "BN": 64, "BK": 128}
    return Case(f"matmul_mx_{form}", products.matmul_scaled, "matmul-block-scaled", target, arguments, constants,
                outputs={"out": COARSE}, reference="products.matmul_scaled")  # fmt: skip


def _tile(name: str, rows: int, cols: int, kind: Mapping[str, Any]) -> Argument:
    options = {key: value for key, value in kind.items() if key != "dtype"}
    return array(name, kind["dtype"], rows, cols, **options)


CASES = row_cases() + pointwise_cases() + product_cases() + layout_cases()
