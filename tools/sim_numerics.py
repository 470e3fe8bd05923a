"""Compares the simulator's number formats, arithmetic and tensor core sums with slow exact references.

`python -m tools.sim_numerics [CASES]` prints, for every form, how many cases differ, and exits 1 if any do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from pyptx.numbers import FORMATS
from pyptx.sim.numerics import double
from pyptx.sim.numerics.arrays import quiet
from pyptx.sim.numerics.formats import code_dtype, decode
from pyptx.sim.numerics.rounding import encode
from pyptx.sim.semantics import rounding as single
from tests.sim.lanes import compute
from tests.sim.numerics import exact, precise, samples
from tools.sim_products import products

Array = NDArray[Any]
Row = tuple[str, int, int]
DIRECTIONS = ("rn", "rz", "rm", "rp")
SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")


def main(argv: list[str]) -> int:
    cases = int(argv[1]) if len(argv) > 1 else 2000
    print(f"{'form':<40}{'cases':>9}{'differing':>11}")
    differing = 0
    for name, count, wrong in (
        *encodings(max(2000 // cases, 1)),
        *operations(cases),
        *functions(cases),
        *products(cases),
    ):
        print(f"{name:<40}{count:>9}{wrong:>11}")
        differing += wrong
    print(f"{differing} differ")
    return 1 if differing else 0


def encodings(stride: int) -> Iterator[Row]:
    """Yield conversions of every finite f16 and bf16 number (or every n-th) to every small format, in every
    direction."""
    halves = np.arange(1 << 16, dtype=np.uint16)
    with quiet():
        values = np.concatenate([decode(halves, name).astype(np.float64) for name in ("f16", "bf16")])
    values = np.unique(values[np.isfinite(values)])[::stride] + 0.0
    fractions = [Fraction(value) for value in values.tolist()]
    for name in SMALL:
        for rounding in (*DIRECTIONS, "rna"):
            got = encode(values, name, rounding, satfinite=True).tolist()
            expectations = [exact.encode(value, name, rounding, satfinite=True) for value in fractions]
            yield (
                f"cvt.{rounding}.satfinite.{name}",
                len(got),
                sum(x != y for x, y in zip(got, expectations, strict=True)),
            )
    for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        is_equal = np.array_equal(decode(halves, name), halves.view(dtype).astype(np.float32), equal_nan=True)
        yield f"decode {name}", len(halves), 0 if is_equal else len(halves)


def operations(cases: int) -> Iterator[Row]:
    """Yield sums, products, quotients and fused multiply-adds of random operands of all exponents."""
    terms: dict[str, Callable[..., Fraction]] = {"add": _add, "mul": _mul, "div": _div, "fma": _fma}
    for name in ("f32", "f64"):
        operands = [_draw(name, cases, seed) for seed in (1, 2, 3)]
        columns = [[Fraction(x) for x in decode(x, name).astype(np.float64).tolist()] for x in operands]
        for operation, term in terms.items():
            count = 3 if operation == "fma" else 2
            for rounding in DIRECTIONS:
                got = _apply(name, operation, operands[:count], rounding)
                wrong = total = 0
                for code, values in zip(got, zip(*columns[:count], strict=True), strict=True):
                    if (operation == "div" and values[1] == 0) or (value := term(*values)) == 0:
                        continue
                    total += 1
                    wrong += code != exact.encode(value, name, rounding)
                yield f"{operation}.{rounding}.{name}", total, wrong


def _add(a: Fraction, b: Fraction) -> Fraction:
    return a + b


def _mul(a: Fraction, b: Fraction) -> Fraction:
    return a * b


def _div(a: Fraction, b: Fraction) -> Fraction:
    return a / b


def _fma(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    return a * b + c


def _draw(name: str, cases: int, seed: int) -> Array:
    draw = samples.floats32 if name == "f32" else samples.floats64
    return np.concatenate([draw(cases // 2, seed), draw(cases - cases // 2, seed + 9, narrow=True)])


def _apply(name: str, operation: str, operands: list[Array], rounding: str) -> list[int]:
    function = getattr(double, operation) if name == "f64" else getattr(single, f"{operation}32")
    with quiet():
        return function(*operands, rounding).view(code_dtype(FORMATS[name])).tolist()


def functions(cases: int) -> Iterator[Row]:
    """Yield the approximate functions of f32, which must be correctly rounded."""
    generator = np.random.default_rng(7)
    for function in ("ex2", "lg2", "sin", "cos", "tanh", "sqrt", "rsqrt", "rcp"):
        x = generator.uniform(0.001, 100.0, cases).astype(np.float32)
        got = compute(f"{function}.approx.f32 %d, %a;", {"a": x}, {"d": np.uint32})["d"].tolist()
        expectations = [exact.encode(precise.evaluate(function, value), "f32", "rn") for value in x.tolist()]
        yield f"{function}.approx.f32", cases, sum(a != b for a, b in zip(got, expectations, strict=True))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv))
