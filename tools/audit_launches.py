"""Launches many kernels on a driver that does nothing but count. Calls with changing shapes must not leave objects of
the driver, modules, memory or Python objects behind; threads that launch at the same time must not disturb each other.

python -m tools.audit_launches [--small]
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.launch import add, load_stub
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.runtime import modules
from pyptx.runtime.arrays import Described
from pyptx.runtime.device_array import DeviceArray
from pyptx.types import f32

CALLS, THREADS, LAUNCHES, SHAPES, KERNELS = 10_000, 64, 1000, 100, 300
MOST_GROWTH = 8 << 20
"""Bytes by which the process may grow: the interpreter and its allocators keep some."""
COUNTERS = ("stub_modules", "stub_events", "stub_allocations")


def read_memory() -> int:
    """Return the bytes of memory that this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def count(stub: ctypes.CDLL) -> dict[str, int]:
    """Return how many objects of the driver exist, by kind."""
    gc.collect()
    return {name: ctypes.c_long.in_dll(stub, name).value for name in COUNTERS}


def make_kernel(value: float) -> Kernel:
    """Return a kernel of its own."""

    @kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,))
    def store(x: TensorSpec, y: TensorSpec) -> None:
        reg.scalar(f32, value)
        ptx.ret()

    return store


def call_with_changing_shapes(torch: Any, calls: int) -> None:  # noqa: ANN401
    """Call one kernel on tensors, and on arrays of this package."""
    for number in range(calls):
        size = 32 + number % SHAPES
        add(torch.ones(size), torch.ones(size))
        if number % 10 == 0:
            array = DeviceArray(Described((size,), "float32"), 0, 0)
            add(array, array)


def launch_in_threads(torch: Any, threads: int) -> int:  # noqa: ANN401
    """Launch in many threads; return how many results have a wrong shape."""

    def run(number: int) -> int:
        x = torch.ones(32 + number)
        return sum(tuple(add(x, x).shape) != (32 + number,) for _ in range(LAUNCHES))

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(run, range(threads)))


def main(argv: Sequence[str] | None = None) -> int:
    """Return 1 if something remains, or a thread got a wrong result."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--small", action="store_true", help="fewer calls, kernels and threads")
    is_small = options.parse_args(argv).small
    calls, kernels, threads = (1000, 20, 8) if is_small else (CALLS, KERNELS, THREADS)
    stub, torch = load_stub(), import_module("torch")
    call_with_changing_shapes(torch, calls)
    before, memory, objects = count(stub), read_memory(), len(gc.get_objects())
    call_with_changing_shapes(torch, calls)
    after, growth, new = count(stub), read_memory() - memory, len(gc.get_objects()) - objects
    failed = after != before or growth > MOST_GROWTH or new > 1000
    print(f"{calls} calls with {SHAPES} shapes: {'FAILED: ' if failed else ''}{before} before, {after} after")
    if failed:
        print(f"{growth} bytes, {new} objects of Python")
    for number in range(kernels):
        make_kernel(float(number))(torch.ones(32))
    gc.collect()
    modules.unload_retired()
    left = count(stub)["stub_modules"] - after["stub_modules"]
    print(f"{kernels} kernels that are gone: {left} modules remain")
    launched = ctypes.c_long.in_dll(stub, "stub_launches")
    start = launched.value
    wrong = launch_in_threads(torch, threads)
    launches = launched.value - start
    print(f"{threads} threads: {launches} launches, {wrong} wrong results")
    return int(failed or left > 1 or wrong > 0 or launches != threads * LAUNCHES)


if __name__ == "__main__":
    sys.exit(main())
