"""Times an example at its large shape on a GPU: cold L2 cache, random inputs, in turns with a library's function.

Knows PyTorch, which holds the tensors, and `pyptx.benchmark`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from examples.parts.example import Array, Example, Run, find_dtype, list_keywords
from examples.parts.peers import make_peer
from pyptx import driver
from pyptx.benchmark import Comparison, compare


@dataclass(frozen=True)
class Report:
    """The times of a kernel and of its peer."""

    example: Example
    run: Run
    comparison: Comparison

    def __str__(self) -> str:
        times, shape = self.comparison.times["pyptx"], self.run.shape
        if times.is_simulated:
            return f"{self.run}: ran on the simulated driver, which has no times"
        rates = list[str]()
        if self.example.flops:
            rates.append(f"{times.teraflops(self.example.flops(shape)):.0f} TFLOP/s")
        if self.example.traffic:
            rates.append(f"{times.gigabytes(self.example.traffic(shape)):.0f} GB/s")
        return "\n".join([f"{self.run}: {', '.join(rates) or 'no rate'}", str(self.comparison)])


def bench(example: Example, arch: str, run: Run | None = None, runs: int = 30) -> Report:
    """Time an example on the GPU, or with `run` on the simulated driver to try the program."""
    import torch

    if not (torch.cuda.is_available() or driver.is_active()):
        raise SystemExit("--bench needs a GPU and PyTorch with CUDA; torch.cuda.is_available() is False")
    run, kernel = run or Run(example.large), example.make(arch)
    inputs = tuple(to_tensor(array) for array in example.draw_inputs(run))
    keywords = list_keywords(kernel, run)
    arrays = (
        example.outputs(run.shape)
        if example.outputs
        else [np.zeros(tile.resolve_shape(dict(run.shape)), find_dtype(tile)) for tile in kernel.out_specs]
    )
    outputs = tuple(map(to_tensor, arrays))
    out = outputs[0] if len(outputs) == 1 else outputs
    works = {"pyptx": lambda: kernel(*inputs, out=out, **keywords)}
    if example.peer:
        works[f"torch {example.peer}"] = make_peer(example.peer, inputs)
    stream = torch.cuda.current_stream() if torch.cuda.is_available() else 0
    return Report(example, run, compare(works, runs=runs, stream=stream))


def to_tensor(array: Array) -> Any:
    """Return a tensor with an array's values, on the GPU if there is one."""
    torch: Any = import_module("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    small = {"bfloat16": torch.bfloat16, "float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}
    if array.dtype.name in small:
        bits = array.view(np.int16 if array.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(bits).view(small[array.dtype.name]).to(device)
    return torch.from_numpy(array).to(device)
