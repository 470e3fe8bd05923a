"""The handler for GPUs, in C, called with frames made by hand: it loads kernels into the simulated driver and launches
them on the stream of the frame."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyptx.runtime
from pyptx.driver.build import find_compiler
from pyptx.runtime.bindings import call, in_context, load_api
from pyptx.runtime.jax_attributes import KEY, write_attributes
from pyptx.runtime.xla_frames import INITIALIZE

from .conftest import Activate
from .device_memory import DeviceMemory
from .test_calls import A, B, add_scaled, tensor_copy
from .test_failures import use_both_memories
from .test_launching import OPTIONS, plan_call, read_attributes, read_options, write_ranks
from .xla_calls import Xla

SOURCE = Path(pyptx.runtime.__file__).parent / "csrc" / "xla_handler.c"
COMMAND_BUFFER_COMPATIBLE = 1
REMEDY = (
    "; with PYPTX_SIMULATE=1 in the environment while JAX compiles the function, it runs on the simulator, which finds "
    "the cause"
)
SHAPE = A.shape
Arrays = tuple[list[tuple[int, tuple[int, ...]]], list[tuple[int, tuple[int, ...]]]]
"""The inputs and outputs of a call."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handler, compiled without a warning."""
    library = tmp_path_factory.mktemp("xla") / "xla_handler.so"
    options = "-shared -fPIC -O1 -Wall -Wextra -Werror -o".split()
    subprocess.run([*find_compiler(), *options, str(library), str(SOURCE), "-ldl", "-lpthread"], check=True)
    return library


@pytest.fixture
def handler(library: Path, tmp_path: Path) -> Any:
    """The handler, which has loaded nothing yet: a copy of a library has variables of its own."""
    function = ctypes.CDLL(str(shutil.copy(library, tmp_path))).pyptx_xla_handler
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    return function


def write(
    k: Any, *shapes: tuple[int, ...], cooperative: bool = False, programmatic: bool = False, **keywords: Any
) -> Any:
    """Return the attributes of a call with inputs of these shapes."""
    plan = plan_call(k, *shapes, **keywords)
    dtypes = ["float32"] * len(plan.definition.tensors)
    return write_attributes(plan, dtypes, cooperative=cooperative, programmatic=programmatic)


def launch(handler: Any, buffers: Arrays, attributes: Any) -> Callable[[int], None]:
    """Return the function that launches a kernel by a frame of a stream."""

    def submit(stream: int) -> None:
        assert Xla(handler, stream=stream).call(*buffers, attributes) is None

    return submit


def test_it_says_that_graphs_may_contain_it(handler: Any) -> None:
    metadata = Xla(handler, minor=7).ask()
    assert (metadata.version.major, metadata.version.minor) == (0, 7)
    assert metadata.traits == COMMAND_BUFFER_COMPATIBLE
    assert Xla(handler).ask(silent=True).version.minor == 1


@pytest.fixture
def arrays(device: DeviceMemory) -> Arrays:
    """The buffers of `add_scaled` on the device: its inputs, and its output filled with zeros."""
    return [(device.put(A), SHAPE), (device.put(B), SHAPE)], [(device.put(np.zeros_like(A)), SHAPE)]


def test_a_frame_launches_the_kernel_on_its_buffers(handler: Any, device: DeviceMemory, arrays: Arrays) -> None:
    attributes = write(add_scaled, SHAPE, SHAPE, scale=2.0)
    (a, b), (c,) = arrays
    with in_context(0):
        assert Xla(handler).call([a, b], [c], attributes) is None
        # The second call finds the kernel loaded.
        assert Xla(handler).call([c, b], [c], attributes) is None
    np.testing.assert_array_equal(device.get(c[0], SHAPE, A.dtype), A + 2 * B + 2 * B)


def test_kernels_that_differ_in_a_number_stay_apart(handler: Any, device: DeviceMemory, arrays: Arrays) -> None:
    with in_context(0):
        for scale in (2.0, 4.0, 2.0):
            assert Xla(handler).call(*arrays, write(add_scaled, SHAPE, SHAPE, scale=scale)) is None
            np.testing.assert_array_equal(device.get(arrays[1][0][0], SHAPE, A.dtype), A + np.float32(scale) * B)


def test_initial_values_are_where_the_outputs_are(handler: Any, device: DeviceMemory, arrays: Arrays) -> None:
    (a, b), (c,) = arrays
    with in_context(0):
        assert Xla(handler).call([a, b, c], [c], write(add_scaled, SHAPE, SHAPE, scale=1.0)) is None
    np.testing.assert_array_equal(device.get(c[0], SHAPE, A.dtype), A + B)


def test_a_tensor_map_holds_the_address_of_each_call(handler: Any, device: DeviceMemory) -> None:
    attributes, shape = write(tensor_copy, (16, 32)), (16, 32)
    for first in (0, 1000):
        values = np.arange(first, first + 512, dtype=np.float32).reshape(shape)
        b = device.put(np.zeros_like(values))
        with in_context(0):
            assert Xla(handler).call([(device.put(values), shape)], [(b, shape)], attributes) is None
        np.testing.assert_array_equal(device.get(b, shape, values.dtype), values)


def test_clusters_and_much_shared_memory_are_asked_for(handler: Any, device: DeviceMemory) -> None:
    out = device.put(np.full(2, 9, np.uint32))
    with in_context(0):
        assert Xla(handler).call([], [(out, (2,))], write(write_ranks)) is None
        assert device.get(out, (2,), np.uint32).tolist() == [0, 1]
    submit = launch(handler, ([], [(out, (2,))]), write(write_ranks))
    (value,) = read_attributes(device, submit, "CLUSTER_DIMENSION")
    size = value.clusterDim
    assert (size.x, size.y, size.z) == (2, 1, 1)


def test_dynamic_shared_memory_is_asked_for_beside_static(handler: Any, device: DeviceMemory) -> None:
    out = device.put(np.zeros(1, np.uint32))
    with in_context(0):
        assert Xla(handler).call([], [(out, (1,))], write(use_both_memories, grid=(1,))) is None
    assert device.get(out, (1,), np.uint32).tolist() == [5]


def test_the_launch_is_in_the_stream_of_the_frame(handler: Any, activate: Activate) -> None:
    activate(order="deferred")
    device = DeviceMemory()
    stream, inputs = device.make_stream(), [(device.put(A), SHAPE), (device.put(B), SHAPE)]
    c, before = device.put(np.zeros_like(A)), np.empty_like(A)
    with in_context(0):
        assert (
            Xla(handler, stream=stream).call(inputs, [(c, SHAPE)], write(add_scaled, SHAPE, SHAPE, scale=2.0)) is None
        )
        call("cuMemcpyDtoH", before.ctypes.data, c, before.nbytes)
        assert not before.any()
        call("cuStreamSynchronize", stream)
    np.testing.assert_array_equal(device.get(c, SHAPE, A.dtype), A + 2 * B)


def test_a_graph_replays_the_launch(handler: Any, device: DeviceMemory, arrays: Arrays) -> None:
    stream, attributes = device.make_stream(), write(add_scaled, SHAPE, SHAPE, scale=2.0)
    (a, b), (c,) = arrays
    xla = Xla(handler, stream=stream)
    with in_context(0):
        assert xla.call([a, b], [c], attributes, stage=INITIALIZE) is None
        call("cuStreamBeginCapture", stream, load_api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        assert xla.call([c, b], [c], attributes) is None
        graph = call("cuStreamEndCapture", stream)
        assert not device.get(c[0], SHAPE, A.dtype).any()
        executable = call("cuGraphInstantiate", graph, 0)
        for _ in range(3):
            call("cuGraphLaunch", executable, stream)
    np.testing.assert_array_equal(device.get(c[0], SHAPE, A.dtype), 2 * B + 2 * B + 2 * B)


def test_early_stages_launch_nothing(handler: Any, device: DeviceMemory, arrays: Arrays) -> None:
    with in_context(0):
        for stage in (0, 1, INITIALIZE):
            assert Xla(handler).call(*arrays, write(add_scaled, SHAPE, SHAPE, scale=2.0), stage=stage) is None
    assert not device.get(arrays[1][0][0], SHAPE, A.dtype).any()


@pytest.mark.parametrize("given", OPTIONS)
def test_options_of_the_launch_reach_the_driver(
    handler: Any, device: DeviceMemory, arrays: Arrays, given: tuple[str, ...]
) -> None:
    attributes = write(add_scaled, SHAPE, SHAPE, scale=2.0, **dict.fromkeys(given, True))
    assert read_options(device, launch(handler, arrays, attributes)) == {*given}


def test_what_the_driver_refuses_is_said(handler: Any, device: DeviceMemory, arrays: Arrays) -> None:
    attributes = write(add_scaled, SHAPE, SHAPE, scale=2.0)
    broken = {**attributes, KEY: attributes[KEY] ^ 1, "module": attributes["module"].replace("fma.rn", "fma.xx")}
    missing = {**attributes, KEY: attributes[KEY] ^ 2, "entry": "other"}
    shape = attributes["shape"].copy()
    shape[3] = 5000
    large = {**attributes, KEY: attributes[KEY] ^ 4, "shape": shape}
    with in_context(0):
        text = Xla(handler).call(*arrays, broken, stage=INITIALIZE)
        assert text is not None
        assert text.startswith("`add_scaled`: cuLibraryLoadData returned CUDA_ERROR_INVALID_PTX (218): ")
        assert "fma.xx" in text
        assert text.splitlines()[-1].startswith("  help: check(...) and cubin(...) of the kernel, which needs ptxas, ")
        text = Xla(handler).call(*arrays, missing)
        assert text == f"`other`: cuLibraryGetKernel returned CUDA_ERROR_NOT_FOUND (500){REMEDY}"
        text = Xla(handler).call(*arrays, large)
        assert text == f"`add_scaled`: cuLaunchKernelEx returned CUDA_ERROR_INVALID_VALUE (1){REMEDY}"


def test_a_grid_that_does_not_fit_at_once_is_refused_with_a_remedy(handler: Any, device: DeviceMemory) -> None:
    out = device.put(np.zeros(1, np.uint32))
    attributes = write(use_both_memories, grid=(20_000,), cooperative=True)
    with in_context(0):
        text = Xla(handler).call([], [(out, (1,))], attributes)
    assert text is not None
    assert text.startswith(
        "`use_both_memories`: cuLaunchKernelEx returned CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720); use a smaller "
    )
    assert text.endswith("it runs on the simulator, which has no such limit")


def test_buffers_and_attributes_of_another_call_are_refused(handler: Any, device: DeviceMemory, arrays: Arrays) -> None:
    attributes = write(add_scaled, SHAPE, SHAPE, scale=2.0)
    with in_context(0):
        refused = Xla(handler).call(arrays[0][:1], arrays[1], attributes)
        assert refused == "the buffers are not those of the kernel"
        for wrong in (
            {},
            {KEY: attributes[KEY] ^ 1},
            {**attributes, KEY: attributes[KEY] ^ 2, "shape": np.ones(3, int)},
        ):
            assert Xla(handler).call(*arrays, wrong) == "the attributes are not those of a kernel"


def test_a_frame_without_a_stream_is_not_launched(handler: Any, device: DeviceMemory, arrays: Arrays) -> None:
    xla = Xla(handler)
    xla.stream_error = 1
    xla.errors.append("no stream")
    with in_context(0):
        assert xla.call(*arrays, write(add_scaled, SHAPE, SHAPE, scale=2.0)) == "no stream"
    assert not device.get(arrays[1][0][0], SHAPE, A.dtype).any()


def test_threads_may_call_it_at_the_same_time(handler: Any, device: DeviceMemory) -> None:
    start = threading.Barrier(4)

    def run(number: int) -> bool:
        attributes = write(add_scaled, SHAPE, SHAPE, scale=float(number % 2))
        buffers = [device.put(A), device.put(B), device.put(np.zeros_like(A))]
        a, b, c = [(address, SHAPE) for address in buffers]
        start.wait()
        with in_context(0):
            error = Xla(handler).call([a, b], [c], attributes)
        return error is None and bool(np.array_equal(device.get(c[0], SHAPE, A.dtype), A + np.float32(number % 2) * B))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(4)))
