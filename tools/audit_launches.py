"""Launches many kernels on a driver that does nothing but count. Calls with changing shapes must not leave objects of
the driver, modules, memory or Python objects behind; threads that launch at the same time must not disturb each other.

python -m tools.audit_launches
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
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

CALLS, THREADS, SHAPES, KERNELS = 10_000, 64, 100, 300
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


def call_with_changing_shapes(torch: Any) -> None:  # noqa: ANN401
    """Call one kernel on tensors, and on arrays of this package."""
    for number in range(CALLS):
        size = 32 + number % SHAPES
        add(torch.ones(size), torch.ones(size))
        if number % 10 == 0:
            array = DeviceArray(Described((size,), "float32"), 0, 0)
            add(array, array)


def launch_in_threads(torch: Any) -> int:  # noqa: ANN401
    """Launch in many threads; return how many results have a wrong shape."""

    def run(number: int) -> int:
        x = torch.ones(32 + number)
        return sum(tuple(add(x, x).shape) != (32 + number,) for _ in range(1000))

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(run, range(THREADS)))


def main() -> int:
    """Return 1 if something remains, or a thread got a wrong result."""
    stub, torch = load_stub(), import_module("torch")
    call_with_changing_shapes(torch)
    before, memory, objects = count(stub), read_memory(), len(gc.get_objects())
    call_with_changing_shapes(torch)
    after, growth, new = count(stub), read_memory() - memory, len(gc.get_objects()) - objects
    failed = after != before or growth > MOST_GROWTH or new > 1000
    print(f"{CALLS} calls with {SHAPES} shapes: {'FAILED: ' if failed else ''}{before} before, {after} after")
    if failed:
        print(f"{growth} bytes, {new} objects of Python")
    for number in range(KERNELS):
        make_kernel(float(number))(torch.ones(32))
    gc.collect()
    modules.unload_retired()
    left = count(stub)["stub_modules"] - after["stub_modules"]
    print(f"{KERNELS} kernels that are gone: {left} modules remain")
    launched = ctypes.c_long.in_dll(stub, "stub_launches")
    start = launched.value
    wrong = launch_in_threads(torch)
    launches = launched.value - start
    print(f"{THREADS} threads: {launches} launches, {wrong} wrong results")
    return int(failed or left > 1 or wrong > 0 or launches != THREADS * 1000)


if __name__ == "__main__":
    sys.exit(main())
