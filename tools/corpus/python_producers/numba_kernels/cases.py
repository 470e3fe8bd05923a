"""Which numba-cuda kernel is compiled for which compute capability, on what it runs, and what it must compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.corpus.manifest import Argument
from tools.corpus.python_producers.numba_kernels import discrete, numeric
from tools.corpus.python_producers.record import array, scalar

EXACT = (0.0, 0.0)
CLOSE = (1e-5, 1e-5)
TIGHT = (1e-11, 1e-11)


@dataclass(frozen=True)
class Case:
    """One compilation: a kernel, a compute capability, and a launch with its expected outputs or a reason for none."""

    kernel: Any
    algorithm: str
    target: tuple[int, int]
    arguments: Sequence[Argument]
    grid: Sequence[int] = (1,)
    block: Sequence[int] = (64,)
    outputs: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reference: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    stem: str = ""


def numeric_cases() -> list[Case]:
    """Floating point."""
    # Long: a table of cases.
    options = [
        array(n, "float64", 100, init="uniform", low=lo, high=hi)
        for n, lo, hi in (("price", 5.0, 30.0), ("strike", 5.0, 30.0), ("years", 0.25, 5.0))
    ]
    bodies = array("position", "float32", 64, 4, init="uniform", low=-1.0, high=1.0)
    systems = [
        array(n, "float64", 10, 64, init="uniform", low=lo, high=hi)
        for n, lo, hi in (("lower", -1, 1), ("diagonal", 3, 5), ("upper", -1, 1), ("right", -9, 9))
    ]
    return [
        Case(numeric.black_scholes, "black-scholes", (8, 0),
             (array("call", "float64", 100), array("put", "float64", 100), *options, scalar("rate", "float64", 0.02),
              scalar("volatility", "float64", 0.3)), (2,), (64,), {"call": (1e-9, 1e-9), "put": (1e-9, 1e-9)},
             "numeric.black_scholes"),
        Case(numeric.nbody_forces, "nbody", (7, 5),
             (bodies, array("force", "float32", 64, 3), scalar("softening", "float32", 0.01)), (2,), (32,),
             {"force": (1e-4, 1e-3)}, "numeric.nbody", {"fastmath": True}),
        Case(numeric.julia_set, "julia-set", (8, 6),
             (array("out", "int32", 12, 20), scalar("c", "complex128", 0), scalar("limit", "int32", 20)), (3, 2), (8,
              8),
             reason="takes a complex number by value"),
        Case(numeric.jacobi_step, "jacobi-stencil", (8, 9),
             (array("grid", "float32", 14, 18, init="normal"), array("out", "float32", 14, 18)), (3, 2), (8, 8),
             {"out": CLOSE}, "numeric.jacobi"),
        Case(numeric.wave_steps, "wave-equation", (9, 0),
             (array("u", "float32", 128, init="normal"), array("previous", "float32", 128, init="normal"),
              scalar("steps", "int32", 6), scalar("courant", "float32", 0.25)), (1,), (128,),
             {"u": (1e-4, 1e-4), "previous": (1e-4, 1e-4)}, "numeric.wave"),
        Case(numeric.matmul_tiled, "matmul", (10, 0),
             (array("a", "float32", 16, 24, init="normal"), array("b", "float32", 24, 16, init="normal"),
              array("out", "float32", 16, 16)), (2, 2), (8, 8), {"out": CLOSE}, "products.matmul"),
        Case(numeric.fft_64, "fft", (8, 0),
             (array("x", "complex64", 2, 64, init="normal"), array("out", "complex64", 2, 64)), (2,), (32,),
             {"out": (1e-4, 1e-4)}, "numeric.fft"),
        Case(numeric.cholesky_16, "cholesky", (9, 0),
             (array("a", "float64", 16, 16, init="positive_definite"), array("out", "float64", 16, 16)), (1,), (16,),
             {"out": TIGHT}, "numeric.cholesky"),
        Case(numeric.gauss_jordan, "gauss-jordan", (12, 0),
             (array("a", "float64", 12, 12, init="normal"), array("b", "float64", 12, init="normal")), (1,), (12,),
             {"b": (1e-9, 1e-9)}, "numeric.linear_solve"),
        Case(numeric.thomas_solver, "tridiagonal-solver", (7, 5), systems, (2,), (32,), {"right": TIGHT},
             "numeric.tridiagonal"),
        Case(numeric.runge_kutta, "runge-kutta", (8, 6),
             (array("state", "float64", 40, 3, init="normal"), scalar("steps", "int32", 10), scalar("h", "float64",
              0.01)),
             (2,), (32,), {"state": (1e-9, 1e-9)}, "numeric.lorenz"),
        Case(numeric.separable_blur, "convolution-1d", (7, 5),
             (array("image", "float32", 10, 20, init="normal"), array("out", "float32", 10, 20)), (3, 2), (8, 8),
             {"out": CLOSE}, "numeric.blur"),
        Case(numeric.special_functions, "special-functions", (8, 0),
             (array("x", "float64", 40, init="uniform", low=0.2, high=5.0), array("out", "float64", 40, 5)), (2,),
              (32,),
             {"out": (1e-9, 1e-9)}, "numeric.special"),
        Case(numeric.axpy_strided, "axpy", (8, 6),
             (scalar("alpha", "float64", 0.5), array("x", "float64", 150, init="normal"),
              array("y", "float64", 150, init="normal")), (1,), (64,), {"y": TIGHT}, "pointwise.axpy"),
        Case(numeric.monte_carlo_pi, "monte-carlo", (10, 0), (array("hits", "int64", 1), scalar("rounds", "int32", 8)),
             (2,), (32,), {"hits": EXACT}, "numeric.darts"),
        Case(numeric.ray_spheres, "ray-sphere", (12, 0),
             (array("origins", "float32", 40, 3, init="normal"), array("directions", "float32", 40, 3, init="normal"),
              array("spheres", "float32", 6, 4, init="uniform", low=-3.0, high=3.0), array("out", "float32", 40)),
             (2,), (32,), {"out": (1e-3, 1e-3)}, "numeric.ray_spheres"),
        Case(numeric.inclusive_moving_average, "moving-average", (8, 9),
             (array("x", "float64", 100, init="normal"), array("out", "float64", 100), scalar("window", "int32", 7)),
             (2,), (64,), {"out": TIGHT}, "numeric.moving_average", {"lineinfo": True}),
    ]  # fmt: skip


def discrete_cases() -> list[Case]:
    """Integers, bytes, graphs."""
    # Long: a table of cases.
    ints = array("x", "int32", 250, init="integers", low=-100, high=100)
    letters = {"init": "integers", "low": 97, "high": 101}
    edges = array("offsets", "int32", 41, init="offsets", low=0, high=5)
    sparse = array("offsets", "int32", 7, init="offsets", low=10, high=50)
    return [
        Case(discrete.reduce_block, "reduction", (7, 5), (ints, array("out", "int32", 1)), (2,), (128,), {"out": EXACT},
             "discrete.total"),
        Case(discrete.reduce_warp, "reduction-max", (8, 0),
             (array("x", "int32", 128, init="integers", low=-900, high=900), array("out", "int32", 1)), (2,), (64,),
             {"out": EXACT}, "discrete.largest"),
        Case(discrete.blelloch_scan, "scan", (7, 5),
             (array("x", "int32", 256, init="integers", low=-9, high=9), array("out", "int32", 256)), (1,), (128,),
             {"out": EXACT}, "discrete.exclusive_scan"),
        Case(discrete.odd_even_merge_sort, "odd-even-merge-sort", (9, 0), (array("x", "int32", 128,
             init="permutation"),),
             (1,), (128,), {"x": EXACT}, "discrete.sorted_in_place"),
        Case(discrete.histogram_shared, "histogram", (8, 6),
             (array("x", "int32", 500, init="integers", low=0, high=64), array("out", "int32", 64)), (2,), (64,),
             {"out": EXACT}, "pointwise.histogram"),
        Case(discrete.transpose_padded, "transpose", (7, 5),
             (array("x", "uint32", 20, 28, init="bits"), array("out", "uint32", 28, 20)), (2, 2), (16, 16),
             {"out": EXACT}, "pointwise.transpose"),
        Case(discrete.substring_search, "substring-search", (8, 9),
             (array("text", "uint8", 250, **letters), array("pattern", "uint8", 3, **letters),
              array("found", "int32", 2, init="values", values=[9999, 0])), (4,), (64,), {"found": EXACT},
             "discrete.substring"),
        Case(discrete.base64_encode, "base64", (8, 0),
             (array("data", "uint8", 150, init="bits"), array("out", "uint8", 200)), (1,), (64,), {"out": EXACT},
             "discrete.base64"),
        Case(discrete.crc32, "crc32", (9, 0), (array("messages", "uint8", 40, 24, init="bits"), array("out", "uint32",
             40)),
             (2,), (32,), {"out": EXACT}, "discrete.crc32"),
        Case(discrete.sha256_block, "sha256", (10, 0),
             (array("messages", "uint32", 8, 16, init="bits"), array("out", "uint32", 8, 8)), (1,), (8,),
              {"out": EXACT},
             "discrete.sha256"),
        Case(discrete.bfs_level, "breadth-first-search", (7, 5),
             (edges, array("edges", "int32", 200, init="integers", low=0, high=40),
              array("distance", "int32", 40, init="values", values=[0, -1, -1, -1, -1]), scalar("level", "int32", 0),
              array("changed", "int32", 1)), (1,), (64,), {"distance": EXACT, "changed": EXACT}, "discrete.bfs_level"),
        Case(discrete.spmv_csr, "spmv", (12, 0),
             (sparse, array("columns", "int32", 300, init="integers", low=0, high=64),
              array("values", "float64", 300, init="normal"), array("x", "float64", 64, init="normal"),
              array("out", "float64", 6)), (3,), (64,), {"out": TIGHT}, "discrete.spmv"),
        Case(discrete.floyd_warshall, "all-pairs-shortest-path", (8, 0),
             (array("distance", "int32", 16, 16, init="integers", low=1, high=100),), (1,), (16, 16),
             {"distance": EXACT}, "discrete.floyd_warshall"),
        Case(discrete.levenshtein, "edit-distance", (8, 6),
             (array("a", "uint8", 32, **letters), array("b", "uint8", 32, **letters), array("out", "int32", 1)), (1,),
             (33,), {"out": EXACT}, "discrete.edit_distance"),
        Case(discrete.nearest_neighbours, "nearest-neighbours", (9, 0),
             (array("points", "int32", 50, 3, init="integers", low=-1000, high=1000),
              array("queries", "int32", 20, 3, init="integers", low=-1000, high=1000), array("out", "int32", 20, 4)),
             (1,), (32,), {"out": EXACT}, "discrete.nearest"),
        Case(discrete.insertion_sort, "insertion-sort", (7, 5),
             (array("rows", "int16", 20, 16, init="integers", low=-999, high=999),), (1,), (32,), {"rows": EXACT},
             "discrete.sorted_rows"),
        Case(discrete.compact_warp, "stream-compaction", (8, 9),
             (array("x", "int32", 64, init="integers", low=0, high=1000), array("out", "int32", 64),
              array("count", "int32", 1)), (1,), (64,), reason="the order of the warps in the output is not fixed"),
        Case(discrete.match_groups, "warp-match", (7, 5),
             (array("keys", "int32", 64, init="values", values=[5] * 32 + [1, 2, 3, 1]), array("out", "int32", 64)),
              (2,),
             (32,), {"out": EXACT}, "discrete.match_groups"),
        Case(discrete.morton_code, "morton-code", (10, 0),
             (array("x", "uint32", 60, init="integers", low=0, high=65536),
              array("y", "uint32", 60, init="integers", low=0, high=65536), array("out", "uint32", 60)), (1,), (64,),
             {"out": EXACT}, "discrete.morton"),
        Case(discrete.bit_counts, "bit-counts", (12, 0), (array("x", "uint32", 60, init="bits"), array("out", "uint32",
             60, 4)),
             (1,), (64,), {"out": EXACT}, "discrete.bit_counts"),
        Case(discrete.atomic_medley, "atomics", (9, 0),
             (array("x", "uint32", 64, init="integers", low=1, high=100000),
              array("ints", "uint32", 8, init="values", values=[0, 0, -1, 0, 0, 0, 999999, 0]),
              array("longs", "uint64", 2, init="values", values=[0, 1 << 40]), array("floats", "float64", 3,
               init="ones")),
             (2,), (32,), {"ints": EXACT, "longs": EXACT, "floats": EXACT}, "discrete.atomics"),
        Case(discrete.collatz, "collatz", (8, 6), (array("out", "int32", 60),), (2,), (32,), {"out": EXACT},
             "discrete.collatz"),
        Case(discrete.sieve, "prime-sieve", (8, 0), (array("flags", "uint8", 300, init="ones"),), (1,), (32,),
             {"flags": EXACT}, "discrete.sieve"),
        Case(discrete.modular_power, "modular-power", (12, 0),
             (array("base", "uint64", 40, init="integers", low=1, high=1 << 30),
              array("exponent", "uint64", 40, init="integers", low=0, high=1000), scalar("modulus", "uint64", 1000003),
              array("out", "uint64", 40)), (1,), (64,), {"out": EXACT}, "discrete.modular_power"),
        Case(discrete.sobel, "sobel", (8, 9),
             (array("image", "uint8", 12, 18, init="bits"), array("out", "int32", 12, 18)), (3, 2), (8, 8),
             {"out": EXACT}, "discrete.sobel"),
        Case(discrete.connected_components, "connected-components", (8, 0),
             (array("sources", "int32", 50, init="integers", low=0, high=40),
              array("targets", "int32", 50, init="integers", low=0, high=40), array("label", "int32", 40,
               init="arange"),
              array("changed", "int32", 1)), (1,), (64,), reason="one round depends on the order of the threads"),
        Case(discrete.count_words, "word-count", (7, 5),
             (array("text", "uint8", 200, init="integers", low=30, high=36), array("out", "int32", 2)), (2,), (128,),
             {"out": EXACT}, "discrete.word_count"),
        Case(discrete.checked_reciprocal, "checked-divide", (8, 6),
             (array("x", "int32", 60, init="integers", low=1, high=50), array("out", "int32", 60)), (1,), (64,),
             {"out": EXACT}, "discrete.reciprocal", {"debug": True, "opt": False}),
        Case(discrete.print_values, "print", (8, 0), (ints,), reason="only prints"),
    ]  # fmt: skip


CASES = numeric_cases() + discrete_cases()
