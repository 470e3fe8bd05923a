"""Checks of calls on the second of several GPUs, while the first is current: contexts, modules, streams, peers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from examples.parts.example import find_example
from pyptx import PtxError, TensorSpec, Tile, kernel, ptx
from pyptx.runtime import modules
from pyptx.runtime.arrays import Array
from pyptx.runtime.bindings import call, in_context, retain
from pyptx.types import u32
from tools.gpu.checks import Machine, check
from tools.gpu.launches import SIZE, TORCH, copy_to_device

VECTOR_ADD = find_example("any/vector_add")
TWO = "two GPUs"


def make_stream(device: int) -> int:
    """Return a new stream of a device."""
    with in_context(device):
        return int(call("cuStreamCreate", 1))


@check("arrays on the second GPU while the first is current: its context, modules and streams", TWO)
def second_device(machine: Machine) -> str:
    """Compare sums on two devices, one after the other, with NumPy's."""
    add, values, grid = VECTOR_ADD.make(), np.arange(SIZE, dtype=np.float32), VECTOR_ADD.module.grid(SIZE)
    call("cuCtxSetCurrent", retain(0))
    before = modules.count_loaded()
    for device in (1, 0, 1):
        for stream in (None, make_stream(device)):
            array = copy_to_device(values, stream or 0, device)
            total = add(array, array, stream=stream, grid=grid)
            assert (total.device, int(call("cuCtxGetDevice"))) == (device, 0)
            np.testing.assert_array_equal(total.to_numpy(), 2 * values)
    loads = modules.count_loaded() - before
    assert loads == 2, f"{loads} modules are loaded in two contexts"
    return "6 launches"


@check("arrays of two GPUs in one call, and streams of the other one, are refused", TWO)
def devices_together(machine: Machine) -> str:
    """Call a kernel on arrays and streams that are not together."""
    add, values, grid = VECTOR_ADD.make(), np.ones(SIZE, np.float32), VECTOR_ADD.module.grid(SIZE)
    first, second = (copy_to_device(values, 0, device) for device in (0, 1))
    refuse(lambda: add(first, second, grid=grid), "expected an array on device 0, like `a`, found one on device 1")
    refuse(lambda: add(first, first, out=second, grid=grid), "found one on device 1")
    refuse(lambda: add(second, second, stream=make_stream(0), grid=grid), "expected a stream of device 1")
    return "3 calls"


def refuse(function: Callable[[], object], words: str) -> None:
    """AssertionError unless a call is refused with these words."""
    try:
        function()
    except PtxError as error:
        message = str(error)
    else:
        message = "no error"
    assert words in message, f"expected {words!r}, found {message}"


@kernel(out_specs=[Tile(32, u32)], raw_params=[("u64", "source")], grid=(1,), block=(32, 1, 1), arch="sm_80")
def copy_from(out: TensorSpec) -> None:
    """Copy 32 numbers from an address, which may be that of another device's memory."""
    (to,) = ptx.global_ptrs(out)
    offset = ptx.special.tid.x() * 4
    ptx.st(u32, ptx.addr(to, offset), ptx.ld(u32, ptx.addr(ptx.param("u64", "source"), offset)))


@check("memory of the first GPU that a kernel on the second one reads, with peer access", TWO)
def peer_access(machine: Machine) -> str:
    """Compare what a kernel reads from its peer with what is there."""
    if not call("cuDeviceCanAccessPeer", 1, 0):
        return "not run, the second GPU cannot access the first"
    values = np.arange(32, dtype=np.uint32)
    address = put(values, 0)
    with in_context(1):
        call("cuCtxEnablePeerAccess", retain(0), 0)
    total = copy_from(source=address, stream=make_stream(1))
    assert total.device == 1
    np.testing.assert_array_equal(total.to_numpy(), values)
    return "32 numbers"


def put(values: Array, device: int) -> int:
    """Return the address of a copy that is in no pool: access to a pool is given in another way."""
    with in_context(device):
        address = int(call("cuMemAlloc", values.nbytes))
        call("cuMemcpyHtoD", address, values.ctypes.data, values.nbytes)
        call("cuCtxSynchronize")
    return address


@check("CUDA tensors on the second GPU while the first is current, and on both in one call", TORCH, TWO)
def torch_second_device(machine: Machine) -> str:
    """Compare sums of tensors on the second device with PyTorch's."""
    torch: Any = import_module("torch")
    add = VECTOR_ADD.make()
    x, y = (torch.randn(SIZE, device="cuda:1") for _ in range(2))
    other = torch.ones(SIZE, device="cuda:0")
    for _ in range(3):  # bound, then repeated by the extension
        total = add(x, y)
        assert (total.device, torch.cuda.current_device()) == (x.device, 0)
        assert torch.equal(total, x + y)
        assert torch.equal(add(other, other), other + other)
    side, out = torch.cuda.Stream(device=1), torch.empty_like(x)
    assert add(x, y, out=out) is out
    assert torch.equal(out, x + y)
    total = add(x, out, stream=side)
    side.synchronize()
    assert torch.equal(total, x + out)
    with torch.cuda.device(1):
        assert torch.equal(add(x, total), x + total)
    refuse(lambda: add(x, other), "expected an array on device 1")
    refuse(lambda: add(x, y, stream=torch.cuda.Stream(device=0)), "expected a stream of device 1")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(1), torch.cuda.graph(graph):
        captured = add(x, y)
    x.fill_(3)
    graph.replay()
    torch.cuda.synchronize(1)
    assert torch.equal(captured, x + y)
    return "calls, streams and a graph"
