"""Compile every case with numba-cuda, which needs no device for it.

Run by `tools.corpus.python_producers.build`, inside numba's own environment.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from numba import cuda, from_dtype, types
from numba.cuda import dispatcher
from numpy import dtype

from tools.corpus.manifest import Argument, Array, Entry, File, Manifest, Scalar, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.numba_kernels.cases import CASES, Case

RECIPE = "tools.corpus.python_producers.build numba"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    files = tuple(compile_case(case, arguments.out) for case in CASES)
    save(Manifest("numba", RECIPE, files), arguments.out)


def compile_case(case: Case, out: Path) -> File:
    """Compile one case and write its file."""
    kernel = case.kernel
    signature = types.void(*(_type(argument) for argument in case.arguments))
    # numba asks the current device for which target to compile the functions that a kernel calls; there is no device.
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=case.target)
    options = {"abi": "numba", "output": "ptx", "device": False} | dict(case.options)
    text, _ = cuda.compile(kernel, signature, cc=case.target, **options)
    run = None
    if case.reason is None:
        scalars_and_arrays = [part for argument in case.arguments for part in _unpack(argument)]
        run = record.launch(case.grid, case.block, scalars_and_arrays, case.outputs, case.reference)
    row = Entry("", case.algorithm, run, case.reason)
    flags = [f"cc={case.target}", *(f"{name}={value}" for name, value in case.options.items())]
    source = kernel.__code__.co_filename
    return record.write(
        out,
        kernel.__name__,
        text.encode(),
        {"": row},
        version=record.installed("numba-cuda"),
        flags=flags,
        source=source,
    )


def _type(argument: Argument) -> Any:
    assert isinstance(argument, Array | Scalar)
    element = from_dtype(dtype(argument.dtype))
    return element if isinstance(argument, Scalar) else types.Array(element, len(argument.shape), "C")


def _unpack(argument: Argument) -> Iterator[Argument]:
    """What numba passes for an array: two owners, size, item size, data, shape, strides."""
    if not isinstance(argument, Array):
        yield argument
        return
    name, step = argument.name, dtype(argument.dtype).itemsize
    strides = [step]
    for extent in argument.shape[:0:-1]:
        strides.insert(0, strides[0] * extent)
    size = 1
    for extent in argument.shape:
        size *= extent
    before = {"owner": 0, "parent": 0, "size": size, "itemsize": step}
    after = {f"shape{k}": extent for k, extent in enumerate(argument.shape)}
    after |= {f"stride{k}": stride for k, stride in enumerate(strides)}
    yield from (record.scalar(f"{name}.{part}", "uint64", value) for part, value in before.items())
    yield argument
    yield from (record.scalar(f"{name}.{part}", "uint64", value) for part, value in after.items())


if __name__ == "__main__":
    main()
