"""What launches cost: the host's time for calls on CUDA tensors, and a GPU's for kernels in a graph."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from examples.parts.example import find_example
from tools.gpu.checks import Machine, check

TORCH = "PyTorch with CUDA"
SIZE = 1024
CALLS, ROUNDS = 200, 25
"""Calls in a round: fewer than a stream holds before a call waits for the GPU."""
Work = Callable[[], object]


@check("the host's time for a call on two CUDA tensors, next to others'; nothing is compared", TORCH, alone=True)
def torch_call_cost(machine: Machine) -> str:
    """Measure calls in turns, without waiting for what they submit."""
    works = make_works()
    torch: Any = import_module("torch")
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                work()
            times[name].append((time.perf_counter() - start) / CALLS)
    return ", ".join(f"{name} {statistics.median(seconds) * 1e6:.2f} µs" for name, seconds in times.items())


@check("the time of a kernel in a graph of 200 small ones; nothing is compared", TORCH, alone=True)
def torch_graph_cost(machine: Machine) -> str:
    """Measure the replay of graphs that hold nothing but small kernels."""
    torch: Any = import_module("torch")
    times = dict[str, float]()
    for name, work in make_works().items():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                work()
        seconds = list[float]()
        for _ in range(ROUNDS):
            torch.cuda.synchronize()
            start = time.perf_counter()
            graph.replay()
            torch.cuda.synchronize()
            seconds.append((time.perf_counter() - start) / CALLS)
        times[name] = statistics.median(seconds)
    return ", ".join(f"{name} {value * 1e6:.2f} µs" for name, value in times.items())


def make_works() -> dict[str, Work]:
    """Return calls that add two tensors, by name, each of which has run once."""
    torch: Any = import_module("torch")
    x, out = torch.ones(SIZE, device="cuda"), torch.empty(SIZE, device="cuda")
    add = find_example("any/vector_add").make()
    works: dict[str, Work] = {
        "a kernel": lambda: add(x, x),
        "a kernel with out=": lambda: add(x, x, out=out),
        "torch.add": lambda: torch.add(x, x),
        "torch.add with out=": lambda: torch.add(x, x, out=out),
    }
    if find_spec("triton"):
        peer: Any = import_module("benchmarks.peers.triton_add")
        works["a kernel of Triton, which does nothing"] = lambda: peer.add[(1,)](x, x, out, SIZE, BLOCK=SIZE)
    for work in works.values():
        work()
    torch.cuda.synchronize()
    return works
