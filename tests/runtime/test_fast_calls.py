"""Calls that are repeated, by the C extension and by Python: only those that would be bound in the same way again."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Generator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from pyptx import Kernel, Tile, kernel, ptx
from pyptx.diagnostics import PtxError
from pyptx.driver.connection import start
from pyptx.driver.modules import LoadedImage
from pyptx.driver.operations import Launch
from pyptx.runtime import calls, modules, simulation, streams
from pyptx.runtime.bindings import call, in_context, load_api
from pyptx.runtime.streams import order_after
from pyptx.types import f32, s32
from tests.messages import raises
from tests.runtime.conftest import Activate
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.foreign_arrays import Exporter, Interface
from tests.runtime.test_calls import A, B, add_scaled, tensor_copy
from tests.runtime.test_device_calls import copy_halves

pytestmark = pytest.mark.usefixtures("device", "implementation")
torch: Any = import_module("torch")
SCALE = 2


def make_scale(grid: Any = (4,)) -> Kernel:
    """Return a kernel that multiplies by the global SCALE."""

    @kernel(in_specs=[Tile("n", s32)], out_specs=[Tile("n", s32)], grid=grid, block=(32, 1, 1))
    def scale(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        offset = (ptx.special.ctaid.x() * 32 + ptx.special.tid.x()) * 4
        ptx.st(s32, ptx.addr(py, offset), ptx.ld(s32, ptx.addr(px, offset)) * SCALE)

    return scale


def count_blocks(n: int) -> tuple[int]:
    """Return the grid for the kernel."""
    return (n // 32,)


def test_the_second_call_of_a_shape_is_not_bound(bindings: list[Any]) -> None:
    scale, x = make_scale(count_blocks), torch.arange(128, dtype=torch.int32)
    for values in (x, x + 5, x[:64], x * 3, x[:64].clone()):
        assert torch.equal(scale(values), values * SCALE)
    assert len(bindings) == 2


def test_several_outputs_and_other_types_are_repeated(bindings: list[Any]) -> None:
    @kernel(in_specs=[Tile(32, s32)], out_specs=[Tile(32, s32), Tile(1, s32)], grid=(1,), block=(32, 1, 1))
    def copy(x: Any, y: Any, z: Any) -> None:
        px, py, pz = ptx.global_ptrs(x, y, z)
        offset = ptx.special.tid.x() * 4
        ptx.st(s32, ptx.addr(py, offset), ptx.ld(s32, ptx.addr(px, offset)))
        with ptx.if_(offset == 0):
            ptx.st(s32, ptx.addr(pz), 7)

    x = torch.arange(32, dtype=torch.int32)
    for _ in range(2):
        y, z = copy(x)
        assert torch.equal(y, x)
        assert z.tolist() == [7]
    half = torch.arange(32).to(torch.bfloat16)
    for _ in range(2):
        assert torch.equal(copy_halves(half), half)
    assert len(bindings) == 2


def test_a_tensor_map_follows_its_tensor(bindings: list[Any]) -> None:
    copy, kept = tensor_copy.for_arch("sm_90"), list[Any]()
    for first in range(4):
        kept.append(torch.arange(first, first + 16 * 32, dtype=torch.float32).reshape(16, 32))
        assert torch.equal(copy(kept[-1]), kept[-1])
    assert len(bindings) == 1


def test_a_changed_global_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    assert torch.equal(scale(x), x * 2)
    assert torch.equal(scale(x), x * 2)
    monkeypatch.setitem(globals(), "SCALE", 5)
    assert torch.equal(scale(x), x * 5)


def test_another_grid_is_noticed() -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    assert torch.equal(scale(x), x * SCALE)
    scale.grid = (1,)
    assert torch.equal(scale(x)[:32], x[:32] * SCALE)
    assert not torch.equal(scale(x)[32:], x[32:] * SCALE)


def test_tensors_that_do_not_fit_are_still_refused() -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    scale(x)
    for value in (x.double(), x.short(), x.reshape(2, 64), torch.zeros(256, dtype=torch.int32)[::2], x.tolist()):
        with raises(PtxError):
            scale(value)


def test_a_misaligned_tensor_is_still_refused() -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    scale(x)
    memory = torch.zeros(516, dtype=torch.uint8)
    with raises(PtxError, match="aligned"):
        scale(torch.frombuffer(memory.numpy().data, dtype=torch.int32, count=128, offset=2))


def test_a_negative_view_is_still_refused() -> None:
    copy = make_copy()
    x = torch.arange(32, dtype=torch.float32)
    copy(x)
    with raises(PtxError, match="negative view"):
        copy(torch._neg_view(x))


def test_tensors_that_autograd_records_are_still_refused(implementation: str, bindings: list[Any]) -> None:
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    parameter = torch.nn.Parameter(x)
    with torch.no_grad():
        assert torch.equal(copy(parameter), x)
    assert len(bindings) == (1 if implementation == "extension" else 2)
    assert copy(parameter).requires_grad


def test_transformed_and_compiled_calls_are_not_repeated(bindings: list[Any]) -> None:
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    rows = torch.arange(64, dtype=torch.float32).reshape(2, 32)
    assert torch.equal(torch.func.vmap(copy)(rows), rows)

    def add_one(y: Any) -> Any:
        return copy(y) + 1

    compiled = torch.compile(add_one, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x), x + 1)


def test_observed_calls_are_not_repeated() -> None:
    names: list[str] = []

    class Observer(import_module("torch.utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(function))
            return function(*args, **(kwargs or {}))

    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    with Observer():
        assert torch.equal(copy(x), x)
    assert any(name.startswith("pyptx.") for name in names)


def test_calls_in_another_context_run_in_that_of_their_device(
    activate: Activate, implementation: str, bindings: list[Any]
) -> None:  # fmt: skip
    activate(count=2)
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    with in_context(1):
        assert torch.equal(copy(x), x)
    assert len(bindings) == (2 if implementation == "extension" else 1)


def test_calls_after_a_reset_of_the_context_are_bound(activate: Activate, bindings: list[Any]) -> None:
    """The primary context has the same handle afterwards, and no modules."""
    activate()
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    for _ in range(2):
        assert torch.equal(copy(x), x)
    call("cuDevicePrimaryCtxReset", 0)
    for _ in range(2):
        assert torch.equal(copy(x), x)
    assert len(bindings) == 2


def make_copy() -> Kernel:
    @kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
    def copy(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        offset = ptx.special.tid.x() * 4
        ptx.st(f32, ptx.addr(py, offset), ptx.ld(f32, ptx.addr(px, offset)))

    return copy


def test_cpu_tensors_run_on_the_simulator_after_the_driver(activate: Activate, bindings: list[Any]) -> None:
    import_module("pyptx.driver").deactivate()
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    activate()
    for _ in range(3):
        assert torch.equal(copy(x), x)
    assert len(bindings) == 2
    import_module("pyptx.driver").deactivate()
    assert torch.equal(copy(x), x)
    activate(order="deferred")
    result = copy(x + 100)
    assert not torch.equal(result, x + 100)
    import_module("tests.runtime.device_memory").DeviceMemory().get(result.data_ptr(), (1,), np.float32)
    assert torch.equal(result, x + 100)


def test_a_kernel_is_not_called_in_a_trace() -> None:
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)

    @kernel(grid=(1,))
    def outer() -> None:
        copy(x)

    with raises(PtxError, match="kernels cannot call kernels"):
        outer.ptx()


def test_a_fault_of_a_repeated_call_names_the_kernel() -> None:
    @kernel(in_specs=[Tile(32, s32)], out_specs=[Tile(32, s32)], grid=(1,))
    def follow(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        ptx.st(s32, ptx.addr(py, ptx.ld(s32, ptx.addr(px))), 1)

    x = torch.zeros(32, dtype=torch.int32)
    follow(x)
    follow(x)
    with raises(PtxError, match="`follow` cannot be launched: .*ILLEGAL_ADDRESS"):
        follow(x + (1 << 30))


def test_calls_with_outputs_and_constants_are_repeated(bindings: list[Any]) -> None:
    @kernel(in_specs=[Tile("n", s32)], out_specs=[Tile("n", s32)], grid=(4,), block=(32, 1, 1),
            raw_params=[("u32", "shift")])  # fmt: skip
    def scale(x: Any, y: Any, *, factor: int = 1) -> None:
        px, py = ptx.global_ptrs(x, y)
        shift = ptx.param("u32", "shift")
        offset = (ptx.special.ctaid.x() * 32 + ptx.special.tid.x()) * 4
        ptx.st(s32, ptx.addr(py, offset), (ptx.ld(s32, ptx.addr(px, offset)) * factor) << shift)

    x = torch.arange(128, dtype=torch.int32)
    for shift in range(2):
        for factor in (2, 3, 3, 2):
            x, y = torch.arange(128, dtype=torch.int32) + shift, torch.zeros(128, dtype=torch.int32)
            version = y._version
            assert scale(x, out=y, shift=shift, factor=factor, grid=(4,)) is y
            assert torch.equal(y, x * factor << shift)
            assert y._version == version + 1
            assert torch.equal(scale(x, shift=shift, factor=factor), y)
    assert len(bindings) == 8
    half = torch.zeros(128, dtype=torch.int32)
    scale(x, out=half, shift=1, factor=2, grid=(2,))
    assert not half[64:].any()
    assert half[:64].any()


def test_constants_of_another_type_are_no_repetition(bindings: list[Any]) -> None:
    @kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
    def divide(x: Any, y: Any, *, by: Any = 1) -> None:
        px, py = ptx.global_ptrs(x, y)
        offset = ptx.special.tid.x() * 4
        ptx.st(f32, ptx.addr(py, offset), ptx.ld(f32, ptx.addr(px, offset)) * (1.0 if by is True else 0.5))

    x = torch.ones(32)
    for _ in range(2):
        for by, expected in ((1, 0.5), (True, 1.0), (1.0, 0.5)):
            assert divide(x, by=by).tolist() == [expected] * 32
    assert len(bindings) == 3


def test_an_output_that_does_not_fit_is_still_refused() -> None:
    scale, x = make_scale(count_blocks), torch.arange(128, dtype=torch.int32)
    out = torch.empty_like(x)
    for _ in range(2):
        assert scale(x, out=out) is out
    for wrong in (out[:64], out.float(), torch.empty(256, dtype=torch.int32)[::2], (out, out)):
        with raises(PtxError, "`y`|`out=`"):
            scale(x, out=wrong)
    pair = scale(x, out=[out])
    assert pair is out


def test_inputs_that_a_kernel_writes_are_noted_each_time() -> None:
    @kernel(in_specs=[Tile(32, s32)], grid=(1,), block=(32, 1, 1))
    def clear(x: Any) -> None:
        ptx.st(s32, ptx.addr(ptx.global_ptrs(x)[0], ptx.special.tid.x() * 4), 0)

    x = torch.ones(32, dtype=torch.int32)
    for count in range(1, 4):
        clear(x)
        assert x._version == count


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Return a list that grows with the device of every call that is bound, None for the simulator."""
    chosen, choose = list[int | None](), calls.choose_device

    def note(*arguments: Any) -> int | None:
        chosen.append(choose(*arguments))
        return chosen[-1]

    monkeypatch.setattr(calls, "choose_device", note)
    return chosen


def test_calls_are_simulated_from_when_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, devices: list[int | None]
) -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    for value in (None, "1", "1", "0"):
        if value is not None:
            monkeypatch.setenv(simulation.SIMULATE, value)
        for _ in range(2):
            assert torch.equal(scale(x), x * SCALE)
    assert devices == [0, None, None, None, None, 0]


@pytest.fixture
def stream(device: DeviceMemory, monkeypatch: pytest.MonkeyPatch) -> Generator[int]:
    """Make a stream the current one of PyTorch, whose tensors of the CPU have none."""
    handle = device.make_stream()

    @CURRENT_STREAM
    def write_stream(kind: int, number: int, result: Any) -> int:
        result[0] = handle
        return 0

    def find_stream(library: str, number: int) -> int:
        return handle

    find_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    find_pointer.restype, find_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = torch.Tensor.__dlpack_c_exchange_api__
    functions = (ctypes.c_void_p * 7).from_address(find_pointer(capsule, b"dlpack_exchange_api") or 0)
    own, functions[6] = functions[6], ctypes.cast(write_stream, ctypes.c_void_p).value
    monkeypatch.setattr(streams, "find_current", find_stream)
    yield handle
    functions[6] = own


CURRENT_STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
"""DLPack's function that writes the current stream, of its exchange functions the seventh word."""


def test_a_call_in_a_capture_keeps_its_kernel_loaded(stream: int, implementation: str, bindings: list[Any]) -> None:
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    for _ in range(2):
        copy(x)
    bound = len(bindings)
    with in_context(0):
        call("cuStreamBeginCapture", stream, load_api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        y = copy(x)
        graph = call("cuGraphInstantiate", call("cuStreamEndCapture", stream), 0)
    assert len(bindings) == bound + (implementation == "extension")
    bindings.clear()
    del copy
    gc.collect()
    modules.unload_retired()
    x += 1
    with in_context(0):
        call("cuGraphLaunch", graph, stream)
        call("cuStreamSynchronize", stream)
    assert torch.equal(y, x)


def test_a_call_in_a_stream_that_joins_a_capture_keeps_its_kernel_loaded(
    stream: int, device: DeviceMemory, bindings: list[Any]
) -> None:  # fmt: skip
    copy, x, other = make_copy(), torch.arange(32, dtype=torch.float32), device.make_stream()
    y = torch.zeros(32)
    for _ in range(2):
        copy(x, out=y, stream=other)
    with in_context(0):
        call("cuStreamBeginCapture", stream, load_api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
        copy(x, out=y, stream=other)
        order_after(stream, [other])
        graph = call("cuGraphInstantiate", call("cuStreamEndCapture", stream), 0)
    bindings.clear()
    del copy
    gc.collect()
    modules.unload_retired()
    assert [list(image.kernels) for image in start().handles.list(LoadedImage)] == [["copy"]]
    x += 1
    with in_context(0):
        call("cuGraphLaunch", graph, stream)
        call("cuStreamSynchronize", stream)
    assert torch.equal(y, x)


def test_calls_are_repeated_with_the_options_of_their_launch(
    bindings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    launches: list[tuple[bool, bool]] = []
    run = Launch.run

    def note(self: Launch, driver: Any) -> Any:
        launches.append((self.request.cooperative, self.is_programmatic))
        return run(self, driver)

    monkeypatch.setattr(Launch, "run", note)
    for name in (None, "cooperative", "programmatic") * 2:
        options: dict[str, Any] = {name: True} if name else {}
        assert torch.equal(copy(x, **options), x)
    assert len(bindings) == 3
    assert launches == [(False, False), (True, False), (False, True)] * 2


def test_raw_parameters_in_order_are_constants(bindings: list[Any]) -> None:
    a, b = torch.from_numpy(A.copy()), torch.from_numpy(B.copy())
    for scale in (2.0, 4.0) * 3:
        np.testing.assert_array_equal(add_scaled(a, b, args=[scale]).numpy(), A + np.float32(scale) * B)
    assert len(bindings) == 2


def test_calls_in_streams_are_repeated(bindings: list[Any]) -> None:
    copy, x, memory = make_copy(), torch.arange(32, dtype=torch.float32), DeviceMemory()
    for stream in (memory.make_stream(), memory.make_stream(), 0, 1, Stream(memory.make_stream())):
        result = copy(x, stream=stream)
        with in_context(0):
            call("cuStreamSynchronize", streams.read_stream(stream))
        assert torch.equal(result, x)
    assert len(bindings) == 1
    copy(x)
    assert len(bindings) == 2


class Stream:
    """A stream of another library."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


def test_streams_of_repeated_calls_are_checked(activate: Activate) -> None:
    activate(count=2)
    copy, memory = make_copy(), DeviceMemory()
    x, stream = torch.arange(32, dtype=torch.float32), memory.make_stream()
    array = memory.copy(x.numpy())
    for value in (x, array):
        copy(value, stream=stream)
    with in_context(0):
        call("cuStreamDestroy", stream)
    for wrong, message in (
        (stream, "expected the handle of a stream"),
        (DeviceMemory(1).make_stream(), "expected a stream of device 0, where the arrays are, found one of device 1"),
        (-1, "expected a non-negative handle"),
        ("x", "expected a handle or an object with __cuda_stream__"),
    ):
        for value in (x, array):
            with pytest.raises(PtxError, match=message):
                copy(value, stream=wrong)


@pytest.mark.parametrize("wrap", [Interface, Exporter])
def test_arrays_of_other_libraries_are_repeated(bindings: list[Any], wrap: Any) -> None:
    memory, copy, values = DeviceMemory(), make_copy(), np.arange(32, dtype=np.float32)
    for step in range(3):
        result = copy(wrap(memory.copy(values + step)))
        np.testing.assert_array_equal(result.to_numpy(), values + step)
        out = memory.copy(values)
        target = wrap(out)
        assert copy(result, out=target) is target
        np.testing.assert_array_equal(out.to_numpy(), values + step)
    assert len(bindings) == 2
    with raises(PtxError, match="expected dtype float32, found int32"):
        copy(wrap(memory.copy(values.astype(np.int32))))
    with pytest.raises(PtxError, match="dimension 0 must be 32, got 31"):
        copy(wrap(memory.copy(values[:31])))


def test_an_output_of_another_library_is_checked_each_time() -> None:
    memory, copy, values = DeviceMemory(), make_copy(), np.arange(32, dtype=np.float32)
    x, out = memory.copy(values), memory.copy(values)
    copy(x, out=Interface(out))
    with raises(PtxError, match="expected a writable array, found a read-only one"):
        copy(x, out=Interface(out, data=(out.address, True)))
    with raises(PtxError, match="expected elements aligned to 4 bytes"):
        copy(x, out=Interface(out, data=(out.address + 2, False)))


def test_a_captured_call_of_another_library_keeps_its_module(bindings: list[Any]) -> None:
    memory, copy, values = DeviceMemory(), make_copy(), np.arange(32, dtype=np.float32)
    stream = memory.make_stream()
    x, out = memory.copy(values, stream), memory.copy(values * 0, stream)
    copy(x, out=out)
    with in_context(0):
        call("cuStreamSynchronize", stream)
        call("cuStreamBeginCapture", stream, load_api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        copy(x, out=out)
        graph = call("cuGraphInstantiate", call("cuStreamEndCapture", stream), 0)
    assert len(bindings) == 1
    bindings.clear()
    del copy
    gc.collect()
    modules.unload_retired()
    with in_context(0):
        call("cuMemsetD32Async", out.address, 0, 32, stream)
        call("cuGraphLaunch", graph, stream)
    np.testing.assert_array_equal(out.to_numpy(), values)


def test_a_compiled_function_is_simulated_from_when_the_environment_says_so(
    monkeypatch: pytest.MonkeyPatch, devices: list[int | None]
) -> None:
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)

    def add_one(y: Any) -> Any:
        return copy(y) + 1

    function = torch.compile(add_one, fullgraph=True, backend="eager")
    for value in ("0", "1", "1", "0"):
        monkeypatch.setenv(simulation.SIMULATE, value)
        assert torch.equal(function(x), x + 1)
    assert devices == [0, None, None]


@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_call_in_a_forked_process_is_refused_before_it_is_repeated(bindings: list[Any]) -> None:
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    for _ in range(2):
        copy(x)
    bindings.clear()
    child = os.fork()
    if not child:
        try:
            copy(x)
        except PtxError as error:
            is_refused = "a process forked from one that has used it" in str(error)
            os._exit(7 if is_refused and bindings else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def make_scale_by() -> Kernel:
    """Return a kernel that multiplies by a number."""

    @kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1),
            raw_params=[("f32", "factor")])  # fmt: skip
    def scale_by(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        offset = ptx.special.tid.x() * 4
        ptx.st(f32, ptx.addr(py, offset), ptx.ld(f32, ptx.addr(px, offset)) * ptx.param("f32", "factor"))

    return scale_by


def test_floats_are_constants_with_their_own_digits(bindings: list[Any]) -> None:
    """Zeros of either sign are equal, and a NaN equals nothing."""
    scale_by, x, factors = make_scale_by(), torch.ones(32), (0.5, 0.0, -0.0, float("nan"), 1, True)
    for _ in range(2):
        for factor in factors:
            expected = np.full(32, factor, np.float32)
            np.testing.assert_array_equal(scale_by(x, factor=factor).numpy(), expected)
            assert np.signbit(scale_by(x, factor=factor).numpy()[0]) == np.signbit(expected[0])
    assert len(bindings) == len(factors)
