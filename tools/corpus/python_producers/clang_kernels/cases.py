"""How each C file is compiled, on what its kernels run, and what they must compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tools.corpus.manifest import Argument, Entry, Field, Struct
from tools.corpus.python_producers.record import array, entry, launch, scalar

EXACT = (0.0, 0.0)
CLOSE = (1e-5, 1e-5)


@dataclass(frozen=True)
class Unit:
    """One compilation of a C file."""

    source: str
    target: str
    flags: Sequence[str]
    kernels: Mapping[str, Entry]
    suffix: str = ""


def run(
    algorithm: str,
    arguments: Sequence[Argument],
    outputs: Mapping[str, tuple[float, float]],
    reference: str,
    grid: int = 1,
    block: int = 64,
    cluster: int = 1,
) -> Entry:
    return entry(algorithm, launch((grid,), (block,), arguments, outputs, reference, cluster=(cluster, 1, 1)))


N = scalar("n", "int32", 60)
RECURSION = {
    "fibonacci_numbers": run("fibonacci", (array("out", "uint64", 60), N), {"out": EXACT}, "programs.fibonacci"),
    "ackermann_values": run("ackermann", (array("out", "uint32", 60), N), {"out": EXACT}, "programs.ackermann"),
    "quicksort_rows": run(
        "quicksort", (array("rows", "int32", 10, 24, init="integers", low=-500, high=500), scalar("count", "int32",
         10)),
        {"rows": EXACT}, "discrete.sorted_rows", block=32),
    "queens": run("n-queens", (array("out", "int32", 1),), {"out": EXACT}, "programs.queens", block=6),
}  # fmt: skip
BYTE_CODE = [3, 2, 0, 7, 1, 6, 0, 253, 4, 5, 3, 1, 7]
DISPATCH = {
    "shape_areas": run(
        "indirect-call",
        (array("shapes", "float32", 60, 3, init="values", values=[1.5, 2.0, 0.0, 3.0, 0.5, 1e-45, 2.5, 4.0, 3e-45]),
         array("out", "float32", 60), N), {"out": CLOSE}, "programs.shape_areas"),
    "byte_code": run(
        "interpreter",
        (array("program", "uint8", len(BYTE_CODE), init="values", values=BYTE_CODE),
         array("x", "int32", 60, init="integers", low=-50, high=50), array("out", "int32", 60), N), {"out": EXACT},
        "programs.byte_code"),
    "trace_of": run(
        "trace",
        (Struct("a_view", 16, (Field(0, array("a", "float64", 8, 8, init="normal")), Field(8, scalar("rows", "int32",
         8)),
                               Field(12, scalar("cols", "int32", 8)))), array("out", "float64", 1)),
        {"out": (1e-12, 1e-12)}, "programs.trace", block=32),
    "print_thread": entry("print", reason="only prints"),
}  # fmt: skip
ROWS = array("rows", "uint8", 60, 20, init="bits")
PAIR = (
    array("a", "uint32", 60, init="integers", low=1, high=10**6),
    array("b", "uint32", 60, init="integers", low=1, high=10**6),
)
BYTES = {
    "hex_encode": run("hex-encode", (array("data", "uint8", 60, init="bits"), array("out", "uint8", 120), N),
     {"out": EXACT},
                      "programs.hex_encode"),
    "fnv_hash": run("fnv-hash", (ROWS, array("out", "uint64", 60), N), {"out": EXACT}, "programs.fnv"),
    "adler32": run("adler32", (ROWS, array("out", "uint32", 60), N), {"out": EXACT}, "programs.adler32"),
    "murmur3": run("murmur-hash", (array("rows", "uint32", 60, 5, init="bits"), array("out", "uint32", 60), N),
                   {"out": EXACT}, "programs.murmur3"),
    "wide_multiply": run(
        "wide-multiply",
        (array("a", "uint64", 60, init="bits"), array("b", "uint64", 60, init="bits"), array("out", "uint64", 60, 2),
         N),
        {"out": EXACT}, "programs.wide_multiply"),
    "run_lengths": run(
        "run-length-encoding",
        (array("rows", "uint8", 60, 16, init="integers", low=0, high=2), array("out", "uint8", 60, 32),
         array("counts", "int32", 60), N), {"out": EXACT, "counts": EXACT}, "programs.run_lengths"),
    "greatest_divisor": run("greatest-common-divisor", (*PAIR, array("out", "uint32", 60), N), {"out": EXACT},
                            "programs.greatest_divisor"),
    "decode_utf8": run(
        "utf8-decode",
        (array("text", "uint8", 60, init="values", values=list("aé€😀z".encode())), array("out", "uint32", 60), N),
        {"out": EXACT}, "programs.decode_utf8"),
}  # fmt: skip
BLOCK = array("x", "float32", 128, init="normal"), array("out", "float32", 128)
INTS = array("x", "int32", 64, init="integers", low=-99, high=99)
MEMORY = {
    "reverse_block": run("reverse", BLOCK, {"out": EXACT}, "programs.reverse", block=128),
    "copy_async": run("async-copy", BLOCK, {"out": EXACT}, "programs.swapped_twice", block=128),
    "barrier_object": run("mbarrier-rotate", BLOCK, {"out": EXACT}, "programs.rotated", block=128),
    "scoped_counters": run(
        "scoped-atomics", (array("counters", "int32", 5), INTS), {"counters": EXACT}, "programs.scoped_counters"),
    "message_passing": run(
        "message-passing", (array("data", "int32", 1), array("flag", "int32", 1), array("out", "int32", 2)),
        {"data": EXACT, "flag": EXACT, "out": EXACT}, "programs.message", block=2),
    "votes": run("warp-vote", (INTS, array("out", "uint32", 64, 3)), {"out": EXACT}, "programs.votes", grid=2,
     block=32),
    "barrier_counts": run("barrier-reduction", (INTS, array("out", "int32", 64)), {"out": EXACT},
     "programs.barrier_counts"),
}  # fmt: skip
CLUSTERS = {
    "cluster_ranks": run(
        "cluster-rotate", (array("out", "int32", 128),), {"out": EXACT}, "programs.cluster_ranks", 4, 32, 4
    )
}
NUMBERS = {
    "half_pairs": run(
        "packed-half",
        (array("a", "float16", 60, 2, init="normal"), array("b", "float16", 60, 2, init="normal"),
         array("out", "float16", 60, 2), N), {"out": (4e-3, 4e-3)}, "programs.half_pairs"),
    "bfloat_pairs": run(
        "packed-bfloat",
        (array("a", "bfloat16", 60, 2, init="normal"), array("b", "bfloat16", 60, 2, init="normal"),
         array("out", "bfloat16", 60, 2), N), {"out": (2e-2, 2e-2)}, "programs.bfloat_pairs"),
    "normalise_vectors": run("normalise", (array("x", "float32", 60, 4, init="normal"), array("out", "float32", 60, 4),
     N),
                             {"out": CLOSE}, "programs.normalise"),
    "fixed_point": run("integer-square-root", (array("x", "uint32", 60, init="bits"), array("out", "uint32", 60), N),
                       {"out": EXACT}, "programs.fixed_point"),
    "newton_roots": run(
        "newton-iteration", (array("a", "float64", 60, init="uniform", low=0.5, high=90.0), array("out", "float64",
         60), N),
        {"out": (1e-12, 1e-12)}, "programs.cube_roots"),
    "rounding_modes": run("rounding-modes", (array("x", "float32", 60, init="normal"), array("out", "float32", 60, 4),
     N),
                          {"out": CLOSE}, "programs.rounding"),
    "simpson": run(
        "quadrature", (array("limits", "float64", 60, init="uniform", low=0.5, high=3.0), array("out", "float64", 60),
         N),
        {"out": (1e-12, 1e-12)}, "programs.simpson"),
}  # fmt: skip
TENSOR = {
    "wmma_half": run(
        "wmma-half",
        (array("a", "float16", 16, 16, init="normal"), array("b", "float16", 16, 16, init="normal"),
         array("out", "float32", 16, 16)), {"out": (2e-3, 2e-3)}, "products.matmul", block=32),
    "wmma_bytes": run(
        "wmma-bytes",
        (array("a", "int8", 16, 16, init="integers", low=-128, high=128),
         array("b", "int8", 16, 16, init="integers", low=-128, high=128), array("out", "int32", 16, 16)),
          {"out": EXACT},
        "products.matmul_transposed", block=32),
    "wmma_bits": run(
        "wmma-bits",
        (array("a", "uint32", 8, 4, init="bits"), array("b", "uint32", 8, 4, init="bits"), array("out", "int32", 8, 8)),
        {"out": EXACT}, "programs.bit_distances", block=32),
}  # fmt: skip
UNITS = [
    Unit("recursion", "sm_75", ("-O1", "-g"), RECURSION),
    Unit("dispatch", "sm_89", ("-O2",), DISPATCH),
    Unit("bytes", "sm_86", ("-O3",), BYTES),
    Unit("bytes", "sm_75", ("-O0",), BYTES, ".o0"),
    Unit("memory", "sm_80", ("-O2",), MEMORY),
    Unit("clusters", "sm_90a", ("-O2",), CLUSTERS),
    Unit("numbers", "sm_120a", ("-O2",), NUMBERS),
    Unit("tensor", "sm_75", ("-O2",), TENSOR),
]
