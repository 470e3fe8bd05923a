"""What a call hands to the C extension to be repeated, whether it is built or not: a recorder takes its place."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from pyptx import PtxError, Tile, kernel, ptx
from pyptx.dsl.trace import CURRENT
from pyptx.runtime import bindings as context_bindings
from pyptx.runtime import device_calls, device_views, extension, fast_calls, streams
from pyptx.runtime.bindings import in_context
from pyptx.runtime.simulation import SIMULATE
from pyptx.types import f32
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.test_calls import add_scaled, scale_in_place, tensor_copy
from tests.runtime.test_launching import write_ranks

pytestmark = pytest.mark.usefixtures("device")
torch: Any = import_module("torch")
FLOAT = (2, 32, 1)
"""DLPack's code, bits and lanes."""


class Recorder:
    """An extension that launches nothing, and keeps the arguments of its types."""

    def __init__(self) -> None:
        self.launchers: list[tuple[Any, ...]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.types = SimpleNamespace(Launcher=self.make_launcher, Call=self.make_call, check_guards=bool)

    def make_launcher(self, *arguments: Any) -> Callable[..., None]:
        self.launchers.append(arguments)
        return launch_nothing

    def make_call(self, *arguments: Any) -> Any:
        self.calls.append(arguments)
        return SimpleNamespace(run=repeat_nothing)


def launch_nothing(*values: int, stream: int) -> None: ...


def repeat_nothing(*arguments: Any) -> Any:
    return NotImplemented


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Return what takes the place of the extension."""
    result = Recorder()

    def load() -> Any:
        return result.types

    monkeypatch.setattr(extension, "load", load)
    return result


def make_copy(*shape: int) -> Any:
    @kernel(in_specs=[Tile(*shape, f32)], out_specs=[Tile(*shape, f32)], grid=(3, 2), block=(8, 4, 2))
    def copy(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        ptx.st(f32, ptx.addr(py), ptx.ld(f32, ptx.addr(px)))

    return copy


def test_the_extension_gets_a_launch_and_then_what_repeats_it(recorder: Recorder) -> None:
    copy, x = make_copy(4, 8), torch.zeros(4, 8)
    y = copy(x)
    first, second = recorder.launchers
    data = struct.pack("<QQ", x.data_ptr(), y.data_ptr())
    common: tuple[Any, ...] = ((3, 2, 1), (8, 4, 2), 0, [], data, [0, 8])
    with in_context(0) as context:
        identity = context_bindings.identify(context)
    assert first[:-1] == (first[0], 0, *common, [], 0, None)
    assert second[:-2] == (first[0], identity, *common, [("p", 0, 8, 0), ("p", 8, 8, 1)], 2)
    (call,) = recorder.calls
    launcher, place, inputs, outputs, kinds, checks, states, guards, busy, before, after, enter, leave = call
    assert (launcher, place) == (launch_nothing, (1, 0))
    assert inputs == outputs == [(*FLOAT, (4, 8), 4)]
    assert kinds == (torch.Tensor, torch.nn.Parameter)
    assert checks == (
        (torch.Tensor.is_neg, None), (torch.Tensor.requires_grad.__get__, torch.is_grad_enabled)
    )  # fmt: skip
    assert states == (
        (torch._C._functorch.peek_interpreter_stack, None), (torch._C._len_torch_dispatch_stack, 0)
    )  # fmt: skip
    entries = [(id(space), name, value) for space, name, value in guards]
    variables, name = vars(os.environ)["_data"], SIMULATE.encode()
    expected: list[Any] = [
        (vars(copy), "grid", (3, 2)), (variables, name, variables.get(name, ...)),
        (torch.autograd.forward_ad.__dict__, "_current_level", -1), *context_bindings.list_guards(),
        *device_views.list_guards(),
    ]  # fmt: skip
    assert all((id(space), key, value) in entries for space, key, value in expected)
    assert busy is CURRENT
    assert (before, after, leave) == (*fast_calls.HOOKS, None)
    assert callable(enter)


def test_a_given_output_is_an_input_of_the_extension(recorder: Recorder) -> None:
    copy, x = make_copy(4), torch.zeros(4)
    copy(x, out=torch.zeros(4))
    ((_, _, inputs, outputs, *_),) = recorder.calls
    assert (inputs, outputs) == ([(*FLOAT, (4,), 4)] * 2, [])


def test_numbers_are_constants_of_the_extension(recorder: Recorder) -> None:
    x = torch.zeros(100)
    y = add_scaled(x, x, scale=0.5)
    data = struct.pack("<QQQf", x.data_ptr(), x.data_ptr(), y.data_ptr(), 0.5)
    *_, parameters, offsets, slots, count, _, _ = recorder.launchers[1]
    assert (parameters, offsets, count) == (data, [0, 8, 16, 24], 3)
    assert slots == [("p", 0, 8, 0), ("p", 8, 8, 1), ("p", 16, 8, 2)]


def test_a_tensor_map_is_encoded_for_each_call(recorder: Recorder) -> None:
    x = torch.zeros(16, 32)
    tensor_copy.for_arch("sm_90")(x)
    *_, data, offsets, slots, count, encode, _ = recorder.launchers[1]
    assert (offsets, count) == ([0, 8, 128], 2)
    assert slots == [("p", 0, 8, 0), ("p", 8, 8, 1), ("m", 128, 128, 0)]
    assert encode(0, x.data_ptr()) == data[128:256]
    ((_, _, inputs, outputs, *_),) = recorder.calls
    assert inputs == outputs == [(*FLOAT, (16, 32), 16)]
    with pytest.raises(PtxError, match="the tensor must be aligned to 16 bytes"):
        encode(0, x.data_ptr() + 4)


def test_a_cluster_and_shared_memory_are_those_of_the_launch(recorder: Recorder) -> None:
    write_ranks.for_arch("sm_90")(out=torch.zeros(2, dtype=torch.uint32), cooperative=True)
    for _, _, grid, block, shared, attributes, *_ in recorder.launchers:
        assert (grid, block, shared) == ((2, 1, 1), (32, 1, 1), 65536)
        assert attributes == [(4, struct.pack("<3I", 2, 1, 1)), (2, struct.pack("<I", 1))]


def test_a_launch_that_the_driver_refuses_is_an_error_of_the_kernel(recorder: Recorder) -> None:
    make_copy(4)(torch.zeros(4))
    for *_, fail in recorder.launchers:
        with pytest.raises(PtxError, match=r"`copy` cannot be launched: .*CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
            fail(701)
        with pytest.raises(AssertionError):
            fail(0)


@pytest.mark.parametrize(("dims", "count"), [(8, 1), (9, 0)])
def test_the_extension_repeats_calls_with_outputs_of_few_dimensions(
    recorder: Recorder, dims: int, count: int
) -> None:  # fmt: skip
    shape = (*(1,) * (dims - 1), 4)
    make_copy(*shape)(torch.zeros(shape))
    assert len(recorder.calls) == count
    assert len(recorder.launchers) == 2


def test_a_call_in_another_stream_is_ordered_and_lent(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where PyTorch knows the current stream."""
    events: list[Any] = []

    def is_simulated(view: Any) -> bool:
        return False

    def find_current(library: str, device: int) -> int:
        return 70 + device if library == "torch" else 0

    def order_after(stream: int, others: list[int]) -> None:
        events.append((stream, others))

    def lend(tensors: list[Any], stream: int) -> None:
        events.append((tensors, stream))

    monkeypatch.setattr(device_views, "is_torch_simulated", is_simulated)
    make_copy(4)(torch.zeros(4))
    ((_, place, *_, before, after, enter, leave),) = recorder.calls
    assert (place, before, after) == ((2, 0), None, None)
    monkeypatch.setattr(streams, "find_current", find_current)
    monkeypatch.setattr(streams, "order_after", order_after)
    monkeypatch.setattr(device_calls, "lend", lend)
    enter(("x",), ("y",), 5)
    leave(("x",), ("y",), 5)
    assert events == [(5, [70]), (["x", "y"], 5)]


def test_cpu_tensors_are_registered_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []

    def keep(owners: list[Any], stream: int) -> None:
        events.append((owners, stream))

    monkeypatch.setattr(device_views, "register", events.append)
    monkeypatch.setattr(device_calls, "keep_until_done", keep)
    for hook in fast_calls.HOOKS:
        assert hook is not None
        hook(("x",), ("y", "z"), 5)
    assert events == ["x", "y", "z", (["x", "y", "z"], 5)]


@pytest.mark.parametrize("has_extension", [True, False])
def test_calls_that_take_arrays_as_numbers_are_bound_each_time(
    has_extension: bool, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, bindings: list[Any], device: DeviceMemory
) -> None:  # fmt: skip
    monkeypatch.setattr(extension, "load", lambda: recorder.types if has_extension else None)
    x = device.copy(torch.ones(8).numpy())
    for count in range(1, 4):
        scale_in_place(grid=(1,), args=[x, 2.0])
        assert len(bindings) == count
    assert len(recorder.launchers) == (3 if has_extension else 0)
