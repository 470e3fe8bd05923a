"""Kernels together with cuda.core: captured in its graphs, and what it frees when the process ends."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import Tile, kernel, ptx, reg
from pyptx.diagnostics import PtxError
from pyptx.runtime.bindings import call
from pyptx.types import s8, s32
from tests.messages import raises
from tests.runtime.conftest import Activate
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.test_calls import A, B, add_scaled, tensor_copy

END = """\
import pyptx.driver
pyptx.driver.activate()
from cuda.core import Device
device = Device(0)
device.set_current()
stream = device.create_stream()
buffer = device.allocate(4000, stream=stream)
print("the end")
"""


@pytest.mark.usefixtures("implementation")
def test_a_graph_of_cuda_core_replays_kernels(device: DeviceMemory) -> None:
    core: Any = import_module("cuda.core")
    own = core.Device(0)
    own.set_current()
    stream = own.create_stream()
    builder = stream.create_graph_builder()
    a, b, c, d = (device.copy(array, int(stream.handle)) for array in (A, B, np.zeros_like(A), np.zeros_like(A)))
    tile = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    source, target = (device.copy(array, int(stream.handle)) for array in (tile, np.zeros_like(tile)))
    builder.begin_building()
    add_scaled(a, b, scale=2.0, out=c, stream=builder)
    add_scaled(c, b, scale=1.0, out=d, stream=builder)
    tensor_copy.for_arch("sm_90")(source, out=target, stream=builder)
    graph = builder.end_building().complete()
    stream.sync()
    assert not d.to_numpy().any()
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    np.testing.assert_array_equal(d.to_numpy(), A + np.float32(2) * B + B)
    np.testing.assert_array_equal(target.to_numpy(), tile)


@pytest.mark.usefixtures("implementation")
def test_a_captured_call_is_given_its_outputs(device: DeviceMemory) -> None:
    """An allocation in the graph would fail in the second replay."""
    core: Any = import_module("cuda.core")
    own = core.Device(0)
    own.set_current()
    stream = own.create_stream()
    builder = stream.create_graph_builder()
    a, b, c = (device.copy(array, int(stream.handle)) for array in (A, B, np.zeros_like(A)))
    builder.begin_building()
    for _ in range(2):
        with raises(PtxError, match="`c`: a call that is captured in a graph cannot allocate its outputs"):
            add_scaled(a, b, scale=2.0, stream=builder)
    add_scaled(a, b, scale=2.0, out=c, stream=builder)
    graph = builder.end_building().complete()
    for _ in range(2):
        graph.launch(stream)
    np.testing.assert_array_equal(c.to_numpy(), A + np.float32(2) * B)


@kernel(in_specs=[Tile("n", s8)], out_specs=[Tile("n", s8)], grid=(1,), block=(64, 1, 1))
def negate(x: Any, y: Any) -> None:
    """y = -x, byte by byte"""
    px, py = ptx.global_ptrs(x, y)
    i, value = ptx.special.tid.x(), reg.scalar(s32)
    ptx.inst.ld.s8(value, ptx.addr(px, i))
    ptx.inst.st.s8(ptx.addr(py, i), -value)


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("order", ["sync", "deferred"])
def test_buffers_and_views_of_cuda_core_are_arrays(activate: Activate, order: str) -> None:
    """A buffer holds bytes. Its work on a stream of its own comes before the launch, as its views say."""
    activate("h100", order=order)
    core: Any = import_module("cuda.core")
    view: Any = import_module("cuda.core.utils").StridedMemoryView
    own = core.Device(0)
    own.set_current()
    stream = own.create_stream()
    # The device itself keeps the pool of an earlier driver.
    pool = core.DeviceMemoryResource(own)
    buffers = [pool.allocate(4000, stream=stream) for _ in range(3)]
    for buffer, pattern in zip(buffers, (b"\0\0\x80\x3f", b"\0\0\0\x40", b"\0"), strict=True):
        buffer.fill(pattern, stream=stream)
    ones, twos, result = (view.from_buffer(buffer, (1000,), dtype=np.dtype(np.float32)) for buffer in buffers)
    assert add_scaled(ones, twos, scale=2.0, out=result, stream=stream) is result
    host = core.LegacyPinnedMemoryResource().allocate(4000)
    buffers[2].copy_to(host, stream=stream)
    small = pool.allocate(64, stream=stream)
    small.fill(3, stream=stream)
    negated = negate(small, stream=stream)
    stream.sync()
    assert np.array_equal(np.from_dlpack(host).view(np.float32), np.full(1000, 5, np.float32))
    assert np.array_equal(negated.to_numpy(), np.full(64, -3, np.int8))


def test_a_capture_refuses_arrays_of_other_streams(device: DeviceMemory) -> None:
    core: Any = import_module("cuda.core")
    own = core.Device(0)
    own.set_current()
    builder = own.create_stream().create_graph_builder()
    a, b, c = device.copy(A), device.copy(B), device.copy(B)
    builder.begin_building()
    with raises(PtxError, match="`a`, `b`, `c`: a call that is captured in a graph cannot wait for the stream of an"):
        add_scaled(a, b, scale=2.0, out=c, stream=builder)
    x = import_module("torch").ones(1000)
    with raises(PtxError, match="`stream`: a call that is captured in a graph cannot wait for the current stream"):
        add_scaled(x, x, scale=2.0, out=x, stream=builder)
    builder.end_building().complete()


def test_what_cuda_core_destroys_after_another_driver_started_is_not_of_that_driver(activate: Activate) -> None:
    core: Any = import_module("cuda.core")
    activate()
    own = core.Device(0)
    own.set_current()
    old = own.create_stream()
    activate()
    new = DeviceMemory().make_stream()
    old.close()
    assert call("cuStreamQuery", new) is None


def test_memory_that_cuda_core_frees_last_is_no_error() -> None:
    environment = {"PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    process = subprocess.run(
        [sys.executable, "-c", END], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert (process.stdout, process.stderr) == ("the end\n", "")
