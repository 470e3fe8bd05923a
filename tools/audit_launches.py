"""Launches many kernels on a driver that does nothing but count. Calls with changing shapes must not leave objects of
the driver, modules, memory or Python objects behind; threads that launch at the same time must not disturb each other.
Finally it times a kernel of one thread on the simulated driver, beside thousands of allocations.

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

from benchmarks.driver import ALLOCATIONS, WITH_ALLOCATIONS, compare_launches
from benchmarks.launch import add, load_stub
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.runtime import modules
from pyptx.runtime.arrays import Described
from pyptx.runtime.device_array import DeviceArray
from pyptx.types import f32

CALLS, THREADS, LAUNCHES, WARM_UP, KERNELS = 10_000, 64, 1000, 500, 300
NUMBERS = 4
"""Few, so that calls are repeated."""
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


def call_with_shapes(torch: Any, sizes: Sequence[int]) -> None:  # noqa: ANN401
    """Call one kernel on tensors, and on arrays of this package, of these sizes."""
    for size in sizes:
        add(torch.ones(size), torch.ones(size))
        if size % 10 == 0:
            array = DeviceArray(Described((size,), "float32"), 0, 0)
            add(array, array)


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), raw_params=[("u64", "number")])
def note(x: TensorSpec, y: TensorSpec) -> None:
    """Do nothing: the stub reads the three parameters."""
    ptx.ret()


def launch_in_threads(stub: ctypes.CDLL, torch: Any, threads: int, **options: Any) -> int:  # noqa: ANN401
    """Launch in many threads; return how many launches had parameters that are not those of their call."""
    stub.stub_get_word.restype = ctypes.c_uint64

    def run(thread: int) -> int:
        x, number, wrong = torch.ones(32), thread % NUMBERS, 0
        for _ in range(LAUNCHES):
            y = note(x, number=number, **options)
            expected = [x.data_ptr(), y.data_ptr(), number]
            wrong += [stub.stub_get_word(index) for index in range(len(expected))] != expected
        return wrong

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(run, range(threads)))


def main(argv: Sequence[str] | None = None) -> int:
    """Return 1 if something remains, or a thread launched with the parameters of another."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--small", action="store_true", help="fewer calls, kernels and threads")
    is_small = options.parse_args(argv).small
    calls, kernels, threads = (1000, 20, 8) if is_small else (CALLS, KERNELS, THREADS)
    stub, torch = load_stub(), import_module("torch")
    call_with_shapes(torch, range(1, WARM_UP))
    before, memory, blocks = count(stub), read_memory(), sys.getallocatedblocks()
    call_with_shapes(torch, range(WARM_UP, WARM_UP + calls))
    after, growth, new = count(stub), read_memory() - memory, sys.getallocatedblocks() - blocks
    failed = after != before or growth > MOST_GROWTH or new > calls // 10
    print(f"{calls} calls with {calls} shapes: {'FAILED: ' if failed else ''}{before} before, {after} after")
    if failed:
        print(f"{growth} bytes, {new} blocks of Python's memory")
    for number in range(kernels):
        make_kernel(float(number))(torch.ones(32))
    gc.collect()
    modules.unload_retired()
    left = count(stub)["stub_modules"] - after["stub_modules"]
    print(f"{kernels} kernels that are gone: {left} modules remain")
    ctypes.c_long.in_dll(stub, "stub_words").value = 3
    launched, is_mixed = ctypes.c_long.in_dll(stub, "stub_launches"), False
    for kind, words in {"repeated": {}, "bound": {"stream": 0}}.items():
        start = launched.value
        wrong = launch_in_threads(stub, torch, threads, **words)
        assert note._repeats.calls, "the C extension is not built"  # pyright: ignore[reportPrivateUsage]
        launches = launched.value - start
        print(f"{threads} threads: {launches} launches by {kind} calls, {wrong} with wrong parameters")
        is_mixed = is_mixed or wrong > 0 or launches != threads * LAUNCHES
    for check in ("none", "all"):
        seconds, _ = compare_launches(WITH_ALLOCATIONS, check)()
        print(f"a simulated launch, check={check}, with {ALLOCATIONS} allocations: {seconds * 1e3:.2f} ms")
    return int(failed or left > 1 or is_mixed)


if __name__ == "__main__":
    sys.exit(main())
