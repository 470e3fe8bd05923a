"""Checks of calls on arrays in device memory: streams, libraries, graphs, tensor maps, and what a launch costs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from examples.parts.example import find_example
from pyptx import Layout, PtxError, Tile
from pyptx.runtime.arrays import Array, Described
from pyptx.runtime.bindings import call, in_context
from pyptx.runtime.device_array import DeviceArray
from pyptx.runtime.parameters import find_map
from pyptx.tensormap import decode, encode, tensor_map
from pyptx.types import bf16
from tools.gpu.checks import Machine, check

VECTOR_ADD = find_example("any/vector_add")

TORCH = "PyTorch with CUDA"
SIZE = 4096


def copy_to_device(array: Array, stream: int) -> DeviceArray:
    """Return a copy of an array, made in the order of a stream."""
    copy = DeviceArray(Described(array.shape, array.dtype.name), 0, stream)
    with in_context(0):
        call("cuMemcpyHtoDAsync", copy.address, array.ctypes.data, copy.nbytes, stream)
    return copy


@check("arrays of two streams added in a third, 20 in a row, while their memory is freed")
def launch_streams(machine: Machine) -> str:
    """Compare sums of arrays whose streams nothing but the launches orders."""
    add, values = VECTOR_ADD.make(), np.arange(SIZE, dtype=np.float32)
    with in_context(0):
        first, second, third = (int(call("cuStreamCreate", 1)) for _ in range(3))
    total, expected = copy_to_device(values, first), values.copy()
    for _ in range(20):
        total = add(total, copy_to_device(values, second), stream=third, grid=VECTOR_ADD.module.grid(SIZE))
        expected += values
    np.testing.assert_array_equal(total.to_numpy(), expected)
    return "20 launches"


@check("tensor maps: the driver's bits against those of pyptx.tensormap", "a GPU")
def tensor_map_bits(machine: Machine) -> str:
    """Compare tensor maps that the driver encodes with our own."""
    layouts = {Layout.ROW: 64, Layout.TMA_32B: 16, Layout.TMA_64B: 32, Layout.TMA_128B: 64}
    for layout, width in layouts.items():
        tile, dims = Tile("m", "k", bf16, layout=layout, tma_box=(64, width)), (("m", 256), ("k", 512))
        with in_context(0):
            found = find_map(tile, dims, 0x7F00_0000_0000)
        expected = tensor_map(tile, dict(dims), 0x7F00_0000_0000)
        if found != encode(expected):
            raise AssertionError(f"{layout}: the driver's map is {found.hex()}, which reads as {decode(found)}")
    return f"{len(layouts)} maps"


@check("CUDA tensors: current and other streams, out=, repeated calls, a captured graph, memory that is freed", TORCH)
def torch_tensors(machine: Machine) -> str:
    """Compare sums of CUDA tensors with PyTorch's."""
    torch: Any = import_module("torch")
    add = VECTOR_ADD.make()
    x, y = (torch.randn(SIZE, device="cuda") for _ in range(2))
    for _ in range(3):
        assert torch.equal(add(x, y), x + y)
    out, side = torch.empty_like(x), torch.cuda.Stream()
    assert add(x, y, out=out) is out
    assert torch.equal(out, x + y)
    with torch.cuda.stream(side):
        for _ in range(3):
            x = add(x, y)
    torch.cuda.current_stream().wait_stream(side)
    total = add(x, torch.full_like(x, 2), stream=side)
    side.synchronize()
    assert torch.equal(total, x + 2)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = add(x, y)
    x.fill_(3)
    graph.replay()
    assert torch.equal(captured, x + y)
    return "calls, streams and a graph"


@check("CUDA tensors mixed with the CPU's, of a wrong type, or not contiguous are refused", TORCH)
def torch_refusals(machine: Machine) -> str:
    """Call a kernel on tensors that do not fit."""
    torch: Any = import_module("torch")
    add, x = VECTOR_ADD.make(), torch.ones(SIZE, device="cuda")
    wrong = [x.cpu(), x.double(), torch.ones(2 * SIZE, device="cuda")[::2], torch._neg_view(x)]
    for y in wrong:
        try:
            add(x, y)
        except PtxError:
            continue
        raise AssertionError(f"accepted {y.dtype} on {y.device} with strides {y.stride()}")
    return f"{len(wrong)} tensors"


@check("CuPy's arrays, in its current stream", "CuPy")
def cupy_arrays(machine: Machine) -> str:
    """Compare sums of CuPy's arrays with its own."""
    cupy: Any = import_module("cupy")
    add = VECTOR_ADD.make()
    with cupy.cuda.Stream(non_blocking=True):
        x = cupy.arange(SIZE, dtype=cupy.float32)
        result = add(x, x)
        assert isinstance(result, cupy.ndarray)
        assert bool((result == x + x).all())
    return "a sum"
