"""Plans run on device memory, in the simulated driver."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from pyptx import Kernel, Tile, kernel, ptx, reg, smem
from pyptx.decorator import RESERVED
from pyptx.diagnostics import PtxError
from pyptx.driver.connection import start
from pyptx.driver.modules import LoadedImage
from pyptx.driver.process import Context
from pyptx.runtime import bindings, modules
from pyptx.runtime.arrays import Described
from pyptx.runtime.bindings import call, in_context, load_api
from pyptx.runtime.launching import launch
from pyptx.runtime.planning import Plan, make_plan
from pyptx.types import f32, u32
from tests.messages import raises
from tests.runtime.conftest import Activate
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.foreign_arrays import Interface
from tests.runtime.test_calls import A, B, add_scaled, tensor_copy

pytestmark = pytest.mark.usefixtures("implementation")


def plan_call(k: Kernel, *shapes: tuple[int, ...], grid: Any = None, **keywords: Any) -> Plan:
    """Return the plan of a call with inputs of these shapes."""
    inputs = [Described(shape, "float32") for shape in shapes]
    return make_plan(k, inputs, [], grid=grid, positional=None, keywords=keywords, options=RESERVED)


def test_a_plan_runs_on_device_memory(device: DeviceMemory) -> None:
    memory = {"a": device.put(A), "b": device.put(B), "c": device.put(np.zeros_like(A))}
    launch(plan_call(add_scaled, A.shape, B.shape, scale=2.0), memory)
    np.testing.assert_array_equal(device.get(memory["c"], A.shape, A.dtype), A + np.float32(2) * B)


def test_a_tensor_map_is_passed_by_value(device: DeviceMemory) -> None:
    values = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    memory = {"a": device.put(values), "b": device.put(np.zeros_like(values))}
    launch(plan_call(tensor_copy, values.shape), memory)
    np.testing.assert_array_equal(device.get(memory["b"], values.shape, values.dtype), values)


@kernel(out_specs=[Tile(2, u32)], grid=(2,), block=(32, 1, 1), cluster=(2, 1, 1))
def write_ranks(out: Any) -> None:
    """out[i] = the rank in its cluster of the first thread of CTA i, and dynamic shared memory of 64 KiB"""
    (pointer,) = ptx.global_ptrs(out)
    scratch = smem.alloc(u32, (16384,))
    rank = ptx.special.cluster_ctarank()
    with ptx.if_(ptx.special.tid.x() == 0):
        scratch[16383] = rank
        ptx.st(u32, ptx.addr(pointer, ptx.special.ctaid.x() * 4), smem.load(u32, ptx.addr(scratch[16383])))
    ptx.ret()


def test_a_tensor_that_is_aligned_too_little_for_its_map_is_named(device: DeviceMemory) -> None:
    memory = {name: device.put(np.zeros(600, np.float32)) for name in "ab"}
    with pytest.raises(PtxError, match=r"`a`: the tensor must be aligned to 16 bytes, but its address"):
        launch(plan_call(tensor_copy, (16, 32)), {**memory, "a": memory["a"] + 4})


def test_clusters_and_much_shared_memory_are_asked_for(device: DeviceMemory) -> None:
    out = device.put(np.full(2, 9, np.uint32))
    launch(plan_call(write_ranks), {"out": out})
    assert device.get(out, (2,), np.uint32).tolist() == [0, 1]


@pytest.mark.parametrize("options", [{"cooperative": True}, {"programmatic": True}])
def test_cooperative_and_programmatic_launches_run(device: DeviceMemory, options: dict[str, bool]) -> None:
    memory = {"a": device.put(A), "b": device.put(B), "c": device.put(np.zeros_like(A))}
    launch(plan_call(add_scaled, A.shape, B.shape, scale=2.0), memory, **options)
    np.testing.assert_array_equal(device.get(memory["c"], A.shape, A.dtype), A + np.float32(2) * B)


def read_attributes(device: DeviceMemory, submit: Callable[[int], object], *names: str) -> list[Any]:
    """Return attributes of the only launch that a function submits to a stream."""
    api, stream = load_api(), device.make_stream()
    with in_context(device.device):
        call("cuStreamBeginCapture", stream, api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        submit(stream)
        (node,) = call("cuGraphGetNodes", call("cuStreamEndCapture", stream), 1)[0]
        kinds = [getattr(api.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}") for name in names]
        return [call("cuGraphKernelNodeGetAttribute", node, kind) for kind in kinds]


def read_options(device: DeviceMemory, submit: Callable[[int], object]) -> set[str]:
    """Return the options with which a function submits a launch."""
    names = "COOPERATIVE", "PROGRAMMATIC_STREAM_SERIALIZATION"
    together, follows = read_attributes(device, submit, *names)
    options = {"cooperative": together.cooperative, "programmatic": follows.programmaticStreamSerializationAllowed}
    return {name for name, value in options.items() if value}


OPTIONS = [(), ("cooperative",), ("programmatic",), ("cooperative", "programmatic")]


@pytest.mark.parametrize("given", OPTIONS)
@pytest.mark.parametrize("is_operator", [False, True])
def test_options_of_a_call_reach_the_driver(device: DeviceMemory, given: tuple[str, ...], is_operator: bool) -> None:
    def submit(stream: int) -> None:
        a, b, c = (Interface(array, stream=None) for array in arrays)
        options: dict[str, Any] = dict.fromkeys(given, True)
        if is_operator:
            add_scaled.run((a, b), c, stream=stream, keywords={"scale": 2.0}, **options)
        else:
            add_scaled(a, b, scale=2.0, out=c, stream=stream, **options)

    arrays = [device.copy(array) for array in (A, B, B)]
    assert read_options(device, submit) == {*given}


def test_a_launch_waits_in_its_stream(activate: Activate) -> None:
    activate(order="deferred")
    device = DeviceMemory()
    memory = {"a": device.put(A), "b": device.put(B), "c": device.put(np.zeros_like(A))}
    with in_context(0):
        stream = int(call("cuStreamCreate", 1))
    launch(plan_call(add_scaled, A.shape, B.shape, scale=2.0), memory, stream=stream)
    before = np.empty_like(A)
    with in_context(0):
        call("cuMemcpyDtoH", before.ctypes.data, memory["c"], before.nbytes)
        assert not before.any()
        call("cuStreamSynchronize", stream)
    np.testing.assert_array_equal(device.get(memory["c"], A.shape, A.dtype), A + np.float32(2) * B)


def test_the_second_device_runs_a_kernel(activate: Activate) -> None:
    activate(count=2)
    first, second = DeviceMemory(0), DeviceMemory(1)
    for device in (first, second):
        memory = {"a": device.put(A), "b": device.put(B), "c": device.put(np.zeros_like(A))}
        launch(plan_call(add_scaled, A.shape, B.shape, scale=2.0), memory, device=device.device)
        np.testing.assert_array_equal(device.get(memory["c"], A.shape, A.dtype), A + np.float32(2) * B)


def test_a_launch_leaves_the_current_context(activate: Activate) -> None:
    activate(count=2)
    DeviceMemory(0).put(A)
    memory = {name: DeviceMemory(1).put(A) for name in "abc"}
    launch(plan_call(add_scaled, A.shape, B.shape, scale=2.0), memory, device=1)
    assert int(call("cuCtxGetDevice")) == 0


def test_a_kernel_in_a_graph_stays_loaded(device: DeviceMemory) -> None:
    def capture() -> int:
        @kernel(out_specs=[Tile(1, f32)], grid=(1,))
        def store(out: Any) -> None:
            (pointer,) = ptx.global_ptrs(out)
            ptx.st(f32, ptx.addr(pointer), reg.scalar(f32, 3.0))
            ptx.ret()

        with in_context(0):
            call("cuStreamBeginCapture", stream, load_api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
            launch(plan_call(store), {"out": out}, stream=stream)
            return int(call("cuGraphInstantiate", call("cuStreamEndCapture", stream), 0))

    stream, out = device.make_stream(), device.put(np.zeros(1, np.float32))
    launch(plan_call(write_ranks.for_arch("sm_90")), {"out": device.put(np.zeros(2, np.uint32))})
    gc.collect()  # a module that waits to be unloaded, which must not invalidate the capture
    graph = capture()
    gc.collect()
    modules.unload_retired()
    assert [list(image.kernels) for image in start().handles.list(LoadedImage)] == [["store"]]
    with in_context(0):
        call("cuGraphLaunch", graph, stream)
    assert device.get(out, (1,), np.float32) == 3.0


def test_a_device_that_cannot_run_the_target_is_named(activate: Activate) -> None:
    activate("a100")
    memory = {name: DeviceMemory().put(A) for name in "abc"}
    with raises(PtxError, match="`add_scaled` is for sm_90a, but device 0 is sm_80"):
        launch(plan_call(add_scaled, A.shape, B.shape, scale=2.0), memory)


@pytest.mark.parametrize(("arch", "target"), [("sm_80", "sm_90"), ("sm_90", "sm_90"), ("sm_90a", "sm_90a")])
def test_code_is_for_the_device_unless_the_target_has_a_suffix(device: DeviceMemory, arch: str, target: str) -> None:
    assert device is not None
    plan = plan_call(add_scaled.for_arch(arch), A.shape, B.shape, scale=2.0)
    assert modules.choose_target(plan, 0) == target


def test_the_module_of_a_kernel_that_is_gone_is_unloaded(device: DeviceMemory) -> None:
    def run(scale: float) -> None:
        @kernel(out_specs=[Tile(1, f32)], grid=(1,))
        def store(out: Any) -> None:
            (pointer,) = ptx.global_ptrs(out)
            ptx.st(f32, ptx.addr(pointer), reg.scalar(f32, scale))
            ptx.ret()

        out = device.put(np.zeros(1, np.float32))
        launch(plan_call(store), {"out": out})
        assert device.get(out, (1,), np.float32) == scale

    run(1.0)
    gc.collect()
    modules.unload_retired()
    before = modules.count_loaded()
    run(2.0)
    assert modules.count_loaded() == before + 1
    gc.collect()
    modules.unload_retired()
    assert modules.count_loaded() == before


def test_a_module_may_outlive_its_context(device: DeviceMemory) -> None:
    context = call("cuCtxCreate", None, 0, device.device)
    add = add_scaled.for_arch("sm_90")
    add(device.copy(A), device.copy(B), scale=2.0)
    call("cuCtxDestroy", context)
    del add
    gc.collect()
    a, b = device.copy(A), device.copy(B)
    assert add_scaled.for_arch("sm_90")(a, b, scale=2.0).to_numpy().tolist() == (A + np.float32(2) * B).tolist()


def test_a_context_may_have_the_handle_of_one_that_is_gone(device: DeviceMemory) -> None:
    add, values = add_scaled.for_arch("sm_90"), (A + np.float32(2) * B).tolist()
    context = call("cuCtxCreate", None, 0, device.device)
    old = bindings.identify(int(context))
    assert add(device.copy(A), device.copy(B), scale=2.0).to_numpy().tolist() == values
    call("cuCtxDestroy", context)
    start().handles.add(lambda handle: Context(handle, device.device, is_primary=False), int(context))
    assert bindings.identify(int(context)) != old
    call("cuCtxPushCurrent", context)
    for _ in range(2):
        assert add(device.copy(A), device.copy(B), scale=2.0).to_numpy().tolist() == values
    del add
    gc.collect()
    modules.unload_retired()
    assert not start().handles.list(LoadedImage)


def test_threads_that_call_a_kernel_first_load_it_once(device: DeviceMemory) -> None:
    fresh = add_scaled.for_arch("sm_90")
    fresh.ptx(n=A.size)
    a, b = device.copy(A), device.copy(B)
    before, barrier = modules.count_loaded(), threading.Barrier(4)

    def run() -> list[float]:
        barrier.wait()
        return fresh(a, b, scale=2.0).to_numpy().tolist()

    with ThreadPoolExecutor(4) as pool:
        results = [future.result() for future in [pool.submit(run) for _ in range(4)]]
    assert results == [(A + np.float32(2) * B).tolist()] * 4
    assert modules.count_loaded() == before + 1
