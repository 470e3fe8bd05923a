"""Checks of calls on arrays in device memory: streams, libraries, graphs, tensor maps, and what a launch costs."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np

from examples.parts.example import find_example
from pyptx import Layout, PtxError, TensorSpec, Tile, kernel, ptx
from pyptx.decorator import RESERVED
from pyptx.emitter import emit
from pyptx.parser import parse
from pyptx.runtime import extension, modules
from pyptx.runtime.arrays import Array, Described
from pyptx.runtime.bindings import CallError, call, in_context
from pyptx.runtime.device_array import DeviceArray
from pyptx.runtime.launching import launch
from pyptx.runtime.parameters import find_map
from pyptx.runtime.planning import make_plan
from pyptx.runtime.simulation import SIMULATE
from pyptx.tensormap import decode, encode, tensor_map
from pyptx.toolchain.tools import ToolMissing
from pyptx.types import bf16, u32, u64
from tools.gpu.checks import Machine, check

VECTOR_ADD = find_example("any/vector_add")

TORCH = "PyTorch with CUDA"
SIZE = 4096


def copy_to_device(array: Array, stream: int, device: int = 0) -> DeviceArray:
    """Return a copy of an array, made in the order of a stream of the device."""
    copy = DeviceArray(Described(array.shape, array.dtype.name), device, stream)
    with in_context(device):
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
            data = find_map(tile, dims, 0x7F00_0000_0000)
        expected = tensor_map(tile, dict(dims), 0x7F00_0000_0000)
        if data != encode(expected):
            raise AssertionError(f"{layout}: the driver's map is {data.hex()}, which reads as {decode(data)}")
    return f"{len(layouts)} maps"


@check(
    "CUDA tensors: current and other streams, out=, repeated calls, captured ones, memory that is freed",
    TORCH,
)
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
    graph, new = torch.cuda.CUDAGraph(), VECTOR_ADD.make()
    with torch.cuda.graph(graph):
        # The second kernel is loaded during the capture.
        captured = new(add(x, y), y)
    x.fill_(3)
    graph.replay()
    assert torch.equal(captured, x + y + y)
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


@check("launches with cooperative= and programmatic=, after each other in a stream")
def launch_options(machine: Machine) -> str:
    """Compare sums whose launches have options with NumPy's."""
    add, values = VECTOR_ADD.make(), np.arange(SIZE, dtype=np.float32)
    with in_context(0):
        stream = int(call("cuStreamCreate", 1))
    total, term = copy_to_device(values, stream), copy_to_device(values, stream)
    launches: list[dict[str, Any]] = [{"cooperative": True}, {"programmatic": True}, {"programmatic": False}]
    for options in launches:
        total = add(total, term, stream=stream, grid=VECTOR_ADD.module.grid(SIZE), **options)
    np.testing.assert_array_equal(total.to_numpy(), (len(launches) + 1) * values)
    return f"{len(launches)} launches"


@check("calls without the C extension: the launches of Python")
def launch_python(machine: Machine) -> str:
    """Compare sums of launches by Python with NumPy's."""
    with patch.object(extension, "load", return_value=None):
        return launch_streams(machine)


@check("calls that PYPTX_SIMULATE=1 sends to the simulator, on arrays in device memory")
def launch_rerouted(machine: Machine) -> str:
    """Compare a sum by the simulator with NumPy's."""
    add, values = VECTOR_ADD.make(), np.arange(SIZE, dtype=np.float32)
    array = copy_to_device(values, 0)
    with patch.dict(os.environ, {SIMULATE: "1"}):
        total = add(array, array, grid=VECTOR_ADD.module.grid(SIZE))
    np.testing.assert_array_equal(total.to_numpy(), 2 * values)
    return "a sum"


@check("a process that is forked after a launch is refused")
def launch_forked(machine: Machine) -> str:
    """Call a kernel in a child, whose exit status says how it ended."""
    add, values = VECTOR_ADD.make(), np.arange(SIZE, dtype=np.float32)
    array, grid = copy_to_device(values, 0), VECTOR_ADD.module.grid(SIZE)
    add(array, array, grid=grid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of every fork
        child = os.fork()
    if not child:
        try:
            add(array, array, grid=grid)
        except PtxError as error:
            os._exit(0 if FORKED in str(error) else 1)
        os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise AssertionError(f"the child ended with {status}, expected a PtxError: {FORKED}")
    return "a child"


FORKED = "the CUDA driver does not work in a process forked"


@kernel(in_specs=[Tile(1, u64)], out_specs=[Tile(1, u32)], grid=(1,), arch="sm_80")
def store_at(where: TensorSpec, out: TensorSpec) -> None:
    """Write to the address that an array holds, which is not that of any memory."""
    pointer, _ = ptx.global_ptrs(where, out)
    ptx.st(u32, ptx.addr(ptx.ld(u64, ptx.addr(pointer))), 1)
    ptx.ret()


@check("a fault of a kernel: a PtxError that says that the context is lost", "a GPU")
def launch_fault(machine: Machine) -> str:
    """Launch a kernel that writes to no memory, and another one after it."""
    array = copy_to_device(np.ones(1, np.uint64), 0)
    try:
        for _ in range(2):
            store_at(array)
            with suppress(CallError):
                call("cuCtxSynchronize")
    except PtxError as error:
        if "the context is lost" not in str(error):
            raise AssertionError(f"the error does not say that the context is lost: {error}") from None
        return error.diagnostics[0].message
    raise AssertionError("no launch after the fault was refused")


@check("PTX that the driver's compiler refuses: its log, in a PtxError at the line")
def jit_log(machine: Machine) -> str:
    """Load PTX with an undeclared register without the assembler's tools."""
    plan = make_plan(store_at, [Described((1,), "uint64")], [], grid=None, positional=None, keywords={},
                     options=RESERVED)  # fmt: skip
    broken = parse(emit(plan.module).replace("ret;", "mov.u32 %absent, 0;\n    ret;", 1))
    try:
        with patch.object(modules, "assemble_cached", side_effect=ToolMissing([])):
            launch(replace(plan, traced=(broken, plan.kernel_trace)), dict.fromkeys(("where", "out"), 0))
    except PtxError as error:
        if "absent" not in str(error):
            raise AssertionError(f"the log is missing: {error}") from None
        return f"{len(error.diagnostics)} diagnostics"
    raise AssertionError("the driver accepted an undeclared register")
