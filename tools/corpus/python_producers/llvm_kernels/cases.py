"""For which target each file of LLVM IR is compiled, on what its kernels run, and what they must compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tools.corpus.manifest import Argument, Entry, Field, Struct
from tools.corpus.python_producers.record import array, entry, launch, scalar

EXACT = (0.0, 0.0)


@dataclass(frozen=True)
class Unit:
    """One compilation of a file of LLVM IR."""

    source: str
    target: str
    features: str
    level: int
    kernels: Mapping[str, Entry]


def run(
    algorithm: str,
    arguments: Sequence[Argument],
    reference: str,
    tolerance: tuple[float, float] = EXACT,
    block: int = 32,
    outputs: Sequence[str] = ("out",),
) -> Entry:
    tolerances = dict.fromkeys(outputs, tolerance)
    return entry(algorithm, launch((1,), (block,), arguments, tolerances, f"lowlevel.{reference}"))


X = array("x", "int32", 32, init="bits")
OUT = array("out", "int32", 32)
PARTS = Struct("p", 16, (Field(0, scalar("p.n", "int32", -7)), Field(8, scalar("p.d", "float64", 3.75))))
SMALL = array("x", "float32", 32, init="uniform", low=-1.5, high=1.5)
MODEL = {
    "atomic_orders": run(
        "atomic-orders",
        (array("cells", "int32", 6, init="values", values=[0, 0, -1, 0, 0, 0]),
         array("x", "int32", 32, init="integers", low=1, high=10**6)), "atomic_orders", outputs=("cells",)),
    "ordered_copy": run("acquire-release-copy", (X, OUT), "doubled"),
    "vector_lanes": run(
        "vector-reverse", (array("x", "int32", 32, 4, init="bits"), array("out", "int32", 32, 4)), "lanes"),
    "integer_intrinsics": run(
        "integer-intrinsics",
        (array("x", "uint32", 32, init="bits"), array("y", "uint32", 32, init="bits"), array("out", "uint32", 32, 6)),
        "integers"),
    "jump_table": run("jump-table", (X, OUT), "jump_table"),
    "reverse_shared": run("reverse", (X,), "reversed_in_place", outputs=("x",)),
    "structure_by_value": run("structure-by-value", (PARTS, array("out", "int32", 4)), "swapped_parts"),
}  # fmt: skip
FLOATS = {
    "narrow_conversions": run(
        "narrow-conversion",
        (array("x", "float32", 32, 2, init="uniform", low=0.1, high=4.0), array("out", "uint16", 32, 5)), "narrowed"),
    "widening_conversions": run(
        "widening-conversion", (array("x", "uint16", 32, init="arange"), array("out", "uint16", 32, 8)), "widened"),
    "approximate_functions": run(
        "approximate-functions", (SMALL, array("out", "float32", 32, 5)), "approximate", (1e-4, 1e-5)),
    "packed_arithmetic": run(
        "packed-arithmetic",
        (array("x", "float16", 32, 2, init="normal"), array("y", "float32", 32, 2, init="normal")), "packed",
        (2e-3, 2e-3), outputs=("x", "y")),
    "saturating_integers": run(
        "saturating-conversion",
        (array("x", "float64", 32, init="uniform", low=-4.0, high=4.0), array("out", "int64", 32)),
        "saturated"),
}  # fmt: skip
BULK = {
    "bulk_copy": run(
        "bulk-copy", (array("x", "float32", 64, init="normal"), array("out", "float32", 64)), "doubled", block=64),
    "tensor_copies": entry("tensor-map-forms", reason="issues one copy of each form and waits for none of them"),
    "launch_control": run("launch-control", (array("x", "int32", 128),), "counted", block=128, outputs=("x",)),
}  # fmt: skip
UNITS = [
    Unit("model", "sm_80", "+ptx75", 2, MODEL),
    Unit("small_floats", "sm_100a", "+ptx87", 3, FLOATS),
    Unit("bulk", "sm_90a", "+ptx86", 3, BULK),
]
