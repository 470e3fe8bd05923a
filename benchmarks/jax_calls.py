"""Compare kernels in functions that JAX compiles for the CPU with `jax.pure_callback`, which calls Python as well:
`python benchmarks/jax_calls.py [NAME…]` prints processor times.

A function makes 50 calls in a row. In the first pair they run no kernel, so that the ratio shows the way into Python
and back; in the second all simulate the same one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.ratios import Pairs, Round, interleave, show
from examples.parts.example import find_example
from pyptx.runtime import simulation

VECTOR_ADD = find_example("any/vector_add")

CALLS, SIZE = 50, 32
Function = Callable[[Any], Any]


class _Nothing:
    """The result of a run without hazards."""

    hazards = ()


def list_pairs() -> Pairs:
    """Compare the handler with `jax.pure_callback`."""
    names = {False: "a call that runs nothing", True: "a call that simulates a kernel"}
    return {f"{name}: handler / pure_callback": partial(compare, runs) for runs, name in names.items()}


def compare(runs: bool) -> Round:
    """Compare both ways to call a kernel, or nothing."""
    jax: Any = import_module("jax")
    add = VECTOR_ADD.make()
    shape = jax.ShapeDtypeStruct((SIZE,), np.float32)

    def call_python(x: Any) -> Any:
        array = np.asarray(x)
        return add(array, array) if runs else array

    def call_back(x: Any) -> Any:
        return jax.pure_callback(call_python, shape, x)

    def call_kernel(x: Any) -> Any:
        return add(x, x)

    x = jax.numpy.ones(SIZE)
    ours, peer = repeat(jax, call_kernel, x), repeat(jax, call_back, x)
    if runs:
        return interleave(ours, peer)

    def call_handler() -> None:
        with patch.object(simulation, "simulate", return_value=_Nothing):
            ours()

    return interleave(call_handler, peer)


def repeat(jax: Any, function: Function, x: Any) -> Callable[[], None]:
    """Return what makes all calls."""

    def chain(x: Any) -> Any:
        for _ in range(CALLS):
            x = function(x)
        return x

    compiled = jax.jit(chain)
    return lambda: compiled(x).block_until_ready()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    show(list_pairs(), sys.argv[1:])
