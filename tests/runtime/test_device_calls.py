"""Calls of kernels on arrays in device memory, in the simulated driver."""

from __future__ import annotations

import gc
import sys
import weakref
from contextlib import nullcontext
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pyptx import Tile, kernel, ptx, reg
from pyptx.diagnostics import PtxError
from pyptx.runtime import device_calls, streams
from pyptx.runtime.arrays import DeviceView
from pyptx.runtime.bindings import CallError, call, in_context, load_api
from pyptx.runtime.device_array import DeviceArray
from pyptx.types import bf16, f32, s32, u64
from tests.messages import raises
from tests.runtime.conftest import Activate
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.foreign_arrays import Exporter, Interface
from tests.runtime.test_calls import A, B, add_scaled, reverse_and_count, scale_in_place, tensor_copy

pytestmark = pytest.mark.usefixtures("implementation")

torch: Any = import_module("torch")
SUM = A + np.float32(2) * B


def export_unversioned(array: DeviceArray) -> Exporter:
    """Return an array of a library that knows the first version of DLPack only."""
    return Exporter(array, versioned=False)


@pytest.mark.parametrize("wrap", [Interface, Exporter, export_unversioned])
def test_arrays_of_any_library_run_on_their_device(device: DeviceMemory, wrap: Any) -> None:
    result = add_scaled(wrap(device.copy(A)), wrap(device.copy(B)), scale=2.0)
    assert isinstance(result, DeviceArray)
    np.testing.assert_array_equal(result.to_numpy(), SUM)


def test_a_capsule_that_nobody_takes_releases_its_array(device: DeviceMemory) -> None:
    array = device.copy(A)
    capsules = [array.__dlpack__(), array.__dlpack__(max_version=(1, 0))]
    died = weakref.ref(array)
    del array
    gc.collect()
    assert died() is not None
    del capsules
    gc.collect()
    assert died() is None


def test_cpu_tensors_run_on_the_simulated_device(device: DeviceMemory) -> None:
    a, b = torch.from_numpy(A.copy()), torch.from_numpy(B.copy())
    result = add_scaled(a, b, scale=2.0)
    assert isinstance(result, torch.Tensor)
    np.testing.assert_array_equal(result.numpy(), SUM)
    out = torch.zeros(1000)
    version = out._version
    assert add_scaled(a, b, scale=2.0, out=out) is out
    np.testing.assert_array_equal(out.numpy(), SUM)
    assert out._version > version


def test_several_outputs_and_template_parameters(device: DeviceMemory) -> None:
    reverse, count = reverse_and_count(device.copy(np.arange(32, dtype=np.int32)), step=5)
    np.testing.assert_array_equal(reverse.to_numpy(), np.arange(32)[::-1] + 5)
    assert count.to_numpy().tolist() == [32]


def test_a_tensor_map_is_of_the_memory_of_the_device(device: DeviceMemory) -> None:
    values = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    np.testing.assert_array_equal(tensor_copy(device.copy(values)).to_numpy(), values)


def test_an_output_may_be_an_input(device: DeviceMemory) -> None:
    a = device.copy(A)
    assert add_scaled(a, device.copy(B), scale=2.0, out=a) is a
    np.testing.assert_array_equal(a.to_numpy(), SUM)


def test_raw_parameters_are_addresses_and_numbers(device: DeviceMemory) -> None:
    a = device.copy(A[:8])
    scale_in_place(grid=(1,), args=[a, 3.0])
    np.testing.assert_array_equal(a.to_numpy(), A[:8] * 3)
    tensor = torch.from_numpy(A[:8].copy())
    scale_in_place(grid=(1,), args=[tensor, 3.0])
    np.testing.assert_array_equal(tensor.numpy(), A[:8] * 3)


def test_raw_parameters_that_do_not_fit_are_named(device: DeviceMemory) -> None:
    a = device.copy(A[:8])
    strided = Interface(device.copy(A[:16]), shape=(8,), strides=(8,))
    for args, message in (
        ([strided, 3.0], "`x`: expected a contiguous row-major array; pass a contiguous copy, and copy"),
        (
            [torch.zeros(16)[::2], 3.0],
            r"`x`: expected a contiguous row-major array; use x\.contiguous\(\)",
        ),
        ([a, a], "`scale`: expected a number for .f32, found an array"),
        (
            [a, torch.tensor(3.0)],
            r"`scale`: expected a number, found a Tensor without dimensions",
        ),
        ([a, None], "the raw parameter `scale` has no value"),
        ([a, 1e300], r"`scale` is \.f32, but 1e\+300 does not fit"),
    ):
        with raises(PtxError, match=message) as excinfo:
            scale_in_place(grid=(1,), args=args)
        assert excinfo.value.diagnostics[0].origin is not None
    scale_in_place(grid=(1,), args=[Interface(a), 3.0])
    np.testing.assert_array_equal(a.to_numpy(), A[:8] * 3)


@kernel(raw_params=[("b8[8]", "pair"), ("u64", "target")], grid=(1,))
def store_pair() -> None:
    """target[0] = the bytes of the structure"""
    pair, address = reg.scalar(u64), reg.scalar(u64)
    ptx.inst.ld.param.u64(pair, ptx.addr("pair"))
    ptx.inst.ld.param.u64(address, ptx.addr("target"))
    ptx.st(u64, ptx.addr(address), pair)


def test_a_structure_is_passed_by_its_bytes(device: DeviceMemory) -> None:
    target = device.copy(np.zeros(8, np.uint8))
    store_pair(args=[b"\1\2\3\4\5\6\7\x08", target])
    assert target.to_numpy().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    with raises(PtxError, match="`pair` is"):
        store_pair(args=[b"\1\2", target])


@kernel(in_specs=[Tile(32, bf16)], out_specs=[Tile(32, bf16)], grid=(1,), block=(32, 1, 1))
def copy_halves(a: Any, b: Any) -> None:
    """b = a"""
    pa, pb = ptx.global_ptrs(a, b)
    offset = ptx.special.tid.x() * 2
    ptx.st(bf16, ptx.addr(pb, offset), ptx.ld(bf16, ptx.addr(pa, offset)))


def test_results_go_from_one_kernel_to_the_next(device: DeviceMemory) -> None:
    tensor = torch.arange(32).to(torch.bfloat16)
    assert torch.equal(copy_halves(copy_halves(tensor)), tensor)


def fail(a: Any, b: Any, **keywords: Any) -> None:
    with raises(PtxError):
        add_scaled(a, b, scale=1.0, **keywords)


def test_arrays_that_do_not_fit_are_named(device: DeviceMemory) -> None:
    a = device.copy(A)
    fail(a, B)
    fail(a.to_numpy().astype(np.float64), device.copy(B.astype(np.float64)))
    fail(B, torch.from_numpy(A), out=torch.zeros(1000))
    fail(a, device.copy(A[:500]))
    fail(a, device.copy(A.astype(np.float64)))
    fail(a, device.copy(A.reshape(10, 100)))
    fail(a, torch.zeros(2000)[::2])
    fail(torch.zeros(1000).double(), a)
    fail(a, Interface(device.copy(A), strides=(8,)))
    fail(a, Interface(device.copy(A), data=(a.address + 2, False)))
    fail(a, Interface(device.copy(A), data=(12, False)))
    fail(a, Interface(device.copy(A), typestr="<M8[s]"))
    fail(a, Interface(device.copy(A), mask=a))
    fail(a, a, out=Interface(device.copy(A), data=(a.address, True)))
    fail(a, device.copy(A[:0]))
    fail(a, a, stream="first")
    fail(a, a, stream=-5)
    fail(a, a, stream=0xDEADBEEF)
    fail(a, a, stream=SimpleNamespace(__cuda_stream__=lambda: None))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_nested_tensor_is_refused(device: DeviceMemory) -> None:
    fail(torch.zeros(1000), torch.nested.nested_tensor([torch.zeros(1000)]))


def test_arrays_of_two_devices_are_named(activate: Activate) -> None:
    activate(count=2)
    fail(DeviceMemory(1).copy(A), DeviceMemory(0).copy(B))
    result = add_scaled(DeviceMemory(1).copy(A), DeviceMemory(1).copy(B), scale=2.0)
    assert result.device == 1
    np.testing.assert_array_equal(result.to_numpy(), SUM)


def test_a_stream_of_another_device_is_refused_before_the_launch(activate: Activate) -> None:
    activate(count=2)
    own, other = DeviceMemory(0), DeviceMemory(1)
    a, b, stream = own.copy(A), own.copy(B), other.make_stream()
    fail(a, b, stream=stream)
    np.testing.assert_array_equal(add_scaled(a, b, scale=2.0, stream=own.make_stream()).to_numpy(), SUM)
    assert count_up(stream=stream, n=32).device == 1


def test_a_stream_without_a_device_is_refused() -> None:
    fail(A, B, stream=0)


@kernel(out_specs=[Tile("n", s32)], grid=(1,), block=(32, 1, 1))
def count_up(out: Any) -> None:
    """out = 0, 1, 2, …"""
    (pointer,) = ptx.global_ptrs(out)
    lane = ptx.special.tid.x()
    ptx.st(s32, ptx.addr(pointer, lane * 4), lane)


def test_a_stream_for_arrays_of_the_cpu_is_refused_at_the_kernel() -> None:
    with raises(PtxError, match=r"test_calls.py:\d+: error\[PTX1001\]: `stream`: the arrays are in the CPU's memory"):
        add_scaled(A, B, scale=1.0, stream=0)


def test_a_stream_chooses_the_device_of_a_kernel_without_inputs(device: DeviceMemory) -> None:
    result = count_up(stream=device.make_stream(), n=32)
    assert isinstance(result, DeviceArray)
    assert result.to_numpy().tolist() == [*range(32)]


def test_a_call_leaves_captures_of_other_streams_alone(device: DeviceMemory) -> None:
    """What keeps arrays asks for their events."""
    a, b = Exporter(device.copy(A)), Exporter(device.copy(B))
    add_scaled(a, b, scale=2.0)
    captured = device.make_stream()
    with in_context(0):
        call("cuStreamBeginCapture", captured, load_api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
        for scale in (2.0, 3.0):
            add_scaled(a, b, scale=scale, stream=device.make_stream())
        call("cuStreamEndCapture", captured)


def test_an_array_of_a_result_tells_its_stream(device: DeviceMemory) -> None:
    stream = device.make_stream()
    result = add_scaled(device.copy(A), device.copy(B), scale=2.0, stream=stream)
    assert result.__cuda_stream__() == (0, stream)
    # It is an object that a call takes as its stream.
    assert add_scaled(device.copy(A), device.copy(B), scale=2.0, stream=result).stream == stream


class OwnedStream:
    """A stream that is destroyed with its object, as those of CuPy are."""

    def __init__(self, destroyed: list[int]) -> None:
        with in_context(0):
            self.handle, self.destroyed = int(call("cuStreamCreate", 1)), destroyed

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __del__(self) -> None:
        with in_context(0):
            call("cuStreamDestroy", self.handle)
        self.destroyed.append(self.handle)


def test_a_result_keeps_its_stream(device: DeviceMemory) -> None:
    destroyed: list[int] = []
    result = add_scaled(device.copy(A), device.copy(B), scale=2.0, stream=OwnedStream(destroyed))
    gc.collect()
    assert destroyed == []
    np.testing.assert_array_equal(result.to_numpy(), SUM)
    del result
    gc.collect()
    assert len(destroyed) == 1


def test_the_current_stream_of_cupy_is_kept(device: DeviceMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = OwnedStream([])
    cuda = SimpleNamespace(Device=nullcontext, get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    assert streams.find_owner(None, "cupy", 0) is stream
    assert streams.find_owner(7, "cupy", 0) == 7
    assert streams.find_owner(None, "device", 0) is None


def test_the_environment_reroutes_calls_to_the_simulator(device: DeviceMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTX_SIMULATE", "1")
    a, b = device.copy(A), device.copy(B)
    result = add_scaled(a, b, scale=2.0)
    assert isinstance(result, DeviceArray)
    np.testing.assert_array_equal(result.to_numpy(), SUM)
    assert add_scaled(a, b, scale=2.0, out=a) is a
    np.testing.assert_array_equal(a.to_numpy(), SUM)
    values = torch.from_numpy(A[:8].copy())
    scale_in_place(grid=(1,), args=[values, 3.0])
    np.testing.assert_array_equal(values.numpy(), A[:8] * 3)


def test_simulate_takes_arrays_of_a_device(device: DeviceMemory) -> None:
    result = add_scaled.simulate(device.copy(A), device.copy(B), scale=2.0)
    np.testing.assert_array_equal(result.outputs["c"], SUM)


ROOM = np.arange(16 * 32 + 8, dtype=np.float32)
MISALIGNED = r"PTX1202.*: `a`: the tensor must be aligned to 16 bytes, but its address is 0x[0-9a-f]+[48c]\n"


def select(start: int) -> Any:
    """Return a view that starts at an element of an array."""
    return ROOM[start:][:512].reshape(16, 32)


@pytest.mark.parametrize("start", [1, 2, 3])
def test_a_tensor_map_of_a_misaligned_view_is_refused_anywhere(device: DeviceMemory, start: int) -> None:
    """By its own address, which no list of messages can have: the simulator's own is always aligned."""
    tensor = torch.from_numpy(ROOM)[start:][:512].reshape(16, 32)
    with pytest.raises(PtxError, match=MISALIGNED):
        tensor_copy(tensor)
    for array in (select(start), tensor):
        with pytest.raises(PtxError, match=MISALIGNED):
            tensor_copy.simulate(array)
    with pytest.raises(PtxError, match=MISALIGNED):
        tensor_copy.simulate(select(start), out=ROOM[:512].reshape(16, 32))
    np.testing.assert_array_equal(tensor_copy(select(4)), select(4))


@kernel(in_specs=[Tile(4, f32)], out_specs=[Tile(4, f32)], grid=(1,), block=(1, 1, 1))
def copy_vector(x: Any, y: Any) -> None:
    px, py = ptx.global_ptrs(x, y)
    ptx.st(f32, ptx.addr(py), ptx.ld(f32, ptx.addr(px), vec=4))


def test_after_a_fault_only_a_new_process_can_simulate(device: DeviceMemory) -> None:
    tensor = torch.from_numpy(ROOM)[1:5]
    with raises(PtxError, match=r"MISALIGNED_ADDRESS[^$]*in a new process, copy_vector.simulate\(…\) with the same"):
        copy_vector(tensor)
    with raises(PtxError, match=r"MISALIGNED_ADDRESS[^$]*in a new process"):
        copy_vector.simulate(tensor)


def test_no_memory_remains_after_many_calls(activate: Activate) -> None:
    activate(check="none")
    device = DeviceMemory()
    a, b = device.copy(A), device.copy(B)
    add_scaled(a, b, scale=2.0)
    with in_context(0):
        free, _ = call("cuMemGetInfo")
        for _ in range(20):
            add_scaled(a, b, scale=2.0)
        assert call("cuMemGetInfo")[0] == free


def test_the_copy_of_an_array_is_aligned_like_the_array(device: DeviceMemory) -> None:
    values = np.arange(40, dtype=np.int16)
    array = device.copy(values)
    for start in range(10):
        view = DeviceView(array.address + 2 * start, (3, 10), "int16", True, 0, array)
        copy = device_calls.fetch(view)
        assert copy.ctypes.data % 16 == view.address % 16
        np.testing.assert_array_equal(copy, values[start : start + 30].reshape(3, 10))
        device_calls.store(view, copy + 1)
        values[start : start + 30] += 1
    np.testing.assert_array_equal(array.to_numpy(), values)


class Owner:
    """An array whose library knows the streams that use its memory."""

    def __init__(self, kind: str) -> None:
        self.device = SimpleNamespace(type=kind)
        self.record_stream = (kind, "records").__eq__


def test_memory_is_kept_by_its_library_or_until_the_launch_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, lent, captures = list[Any](), list[Any](), [False]

    def keep(owners: list[Any], stream: int) -> None:
        kept.append((owners, stream))

    def lend(tensors: list[Any], stream: int) -> None:
        lent.append((tensors, stream))

    def is_capturing(stream: int) -> bool:
        return captures[0]

    monkeypatch.setattr(device_calls, "keep_until_done", keep)
    monkeypatch.setattr(device_calls, "lend", lend)
    monkeypatch.setattr(streams, "is_capturing", is_capturing)
    on_cpu, on_device, exported, plain = Owner("cpu"), Owner("cuda"), object(), object()
    views = [DeviceView(64, (4,), "int8", True, 0, owner, None, owner is exported)
             for owner in (plain, on_cpu, exported, on_device)]  # fmt: skip
    for captures[0], is_current in ((False, False), (False, True), (True, False)):
        device_calls._keep(views, 5, is_current=is_current)  # pyright: ignore[reportPrivateUsage]
    assert kept == [([exported, on_cpu], 5)] * 2
    assert lent == [([on_device], 5)] * 2
    device_calls._keep(views[:1], 5, is_current=False)  # pyright: ignore[reportPrivateUsage]
    assert (len(kept), len(lent)) == (2, 2)


def test_tensors_are_lent_to_a_stream_of_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[Any] = []

    def make_stream(handle: int, *, device: Any) -> Any:
        return handle, device

    tensors = [SimpleNamespace(device=name, record_stream=records.append) for name in ("cuda:1", "cuda:2")]
    monkeypatch.setattr(torch.cuda, "ExternalStream", make_stream)
    device_calls.lend(tensors, 5)
    assert records == [(5, "cuda:1")] * 2


def test_objects_are_kept_until_the_work_of_their_stream_has_ended(
    activate: Activate, monkeypatch: pytest.MonkeyPatch
) -> None:
    activate(order="deferred")
    memory, pending = DeviceMemory(), list[Any]()
    monkeypatch.setattr(device_calls, "_PENDING", pending)
    first, second = memory.make_stream(), memory.make_stream()
    target = memory.put(np.zeros(4, np.uint32))
    with in_context(0):
        for stream in (first, second):
            call("cuMemsetD32Async", target, 7, 4, stream)
            device_calls.keep_until_done([stream], stream)
        assert sorted(owners[0] for _, owners in pending) == sorted((first, second))
        ((ended, _),) = [item for item in pending if item[1] == [first]]
        call("cuStreamSynchronize", first)
        device_calls.keep_until_done([0], second)
        assert sorted(owners[0] for _, owners in pending) == sorted((0, second))
        with pytest.raises(CallError):
            call("cuEventQuery", ended)
        call("cuStreamSynchronize", second)
