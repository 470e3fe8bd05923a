"""The order of launches and the lifetime of memory, and that the simulated driver reports mistakes in either."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from pyptx.diagnostics import PtxError
from pyptx.runtime import device_array, device_calls, fast_calls, streams
from pyptx.runtime.bindings import CallError, call, in_context, load_api
from tests.runtime.conftest import Activate
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.foreign_arrays import Exporter, Interface, StreamExporter, StreamInterface
from tests.runtime.test_calls import A, B, add_scaled
from tests.runtime.torch_kernels import product

pytestmark = pytest.mark.usefixtures("implementation")

torch: Any = import_module("torch")
SUM = A + np.float32(2) * B
Wrap = Callable[[Any], Any]


def keep(array: Any) -> Any:
    return array


def call_in_streams(wrap: Wrap) -> None:
    """Call a kernel on arrays of two streams in a third one, drop the arrays, and read the result."""
    device = DeviceMemory()
    first, second, third = (device.make_stream() for _ in range(3))
    a = add_scaled(device.copy(A, first), device.copy(A, first), scale=0.0, stream=first)
    b = add_scaled(device.copy(B, second), device.copy(B, second), scale=0.0, stream=second)
    result = add_scaled(wrap(a), wrap(b), scale=2.0, stream=third)
    del a, b
    copied = np.empty_like(A)
    with in_context(0):
        call("cuMemcpyDtoHAsync", copied.ctypes.data, result.address, copied.nbytes, third)
        call("cuStreamSynchronize", third)
    np.testing.assert_array_equal(copied, SUM)
    np.testing.assert_array_equal(result.to_numpy(), SUM)
    del result
    with in_context(0):
        call("cuCtxSynchronize")


def write_to_a_given_array(wrap: Wrap) -> None:
    """Call a kernel on an output that is being written in its own stream, and read it there."""
    device = DeviceMemory()
    own, other = device.make_stream(), device.make_stream()
    out = device.copy(np.zeros_like(A), own)
    add_scaled(device.copy(A, other), device.copy(B, other), scale=2.0, out=wrap(out), stream=other)
    np.testing.assert_array_equal(out.to_numpy(), SUM)


def call_on_tensors(wrap: Wrap) -> None:
    """Call a kernel on tensors that are freed before it runs."""
    stream = DeviceMemory().make_stream()
    result = add_scaled(torch.from_numpy(A.copy()), torch.from_numpy(B.copy()), scale=2.0, stream=stream)
    copies = [torch.zeros(1000) for _ in range(4)]
    with in_context(0):
        call("cuCtxSynchronize")
    assert not any(copy.any() for copy in copies)
    np.testing.assert_array_equal(result.numpy(), SUM)


def call_after_the_current_stream(wrap: Wrap) -> None:
    """Call a kernel in a stream on a tensor that the current stream is computing."""
    stream, zeros = DeviceMemory().make_stream(), torch.zeros(1000)
    total = add_scaled(torch.from_numpy(A.copy()), zeros, scale=2.0)
    result = add_scaled(total, torch.from_numpy(B.copy()), scale=2.0, stream=stream)
    with in_context(0):
        call("cuStreamSynchronize", stream)
    np.testing.assert_array_equal(result.numpy(), SUM)


def call_again(wrap: Wrap) -> None:
    """Repeat a call, on tensors that are freed before it runs."""
    for _ in range(3):
        result = product(torch.full((32,), 3.0), torch.full((32,), 5.0))
        copies = [torch.zeros(32) for _ in range(4)]
        with in_context(0):
            call("cuCtxSynchronize")
        assert not any(copy.any() for copy in copies)
        assert (result == 15).all()


def call_on_exports(wrap: Wrap) -> None:
    """Call a kernel on arrays whose library orders its work before a stream that it is told."""
    call_in_streams(Exporter)


def find_codes(capsys: pytest.CaptureFixture[str]) -> set[str]:
    return set(re.findall(r"\[(PTX\d+)\]", capsys.readouterr().err))


@pytest.mark.parametrize("wrap", [keep, Interface, Exporter, StreamInterface, StreamExporter])
@pytest.mark.parametrize("order", ["sync", "deferred"])
def test_arrays_of_other_streams_are_waited_for(
    activate: Activate, capsys: pytest.CaptureFixture[str], order: str, wrap: Wrap
) -> None:
    activate(order=order)
    call_in_streams(wrap)
    assert not find_codes(capsys)


@pytest.mark.parametrize("order", ["sync", "deferred"])
def test_tensors_may_be_freed_before_their_launch_runs(
    activate: Activate, capsys: pytest.CaptureFixture[str], order: str
) -> None:
    activate(order=order)
    call_on_tensors(keep)
    call_again(keep)
    call_after_the_current_stream(keep)
    assert not find_codes(capsys)


@pytest.mark.parametrize("wrap", [keep, Interface, StreamInterface, StreamExporter])
@pytest.mark.parametrize("order", ["sync", "deferred"])
def test_the_stream_of_an_output_waits_for_the_launch(
    activate: Activate, capsys: pytest.CaptureFixture[str], order: str, wrap: Wrap
) -> None:
    activate(order=order)
    write_to_a_given_array(wrap)
    assert not find_codes(capsys)


@pytest.mark.parametrize("run", [call_in_streams, call_on_tensors, call_after_the_current_stream])
@pytest.mark.parametrize("wrap", [keep, Interface, Exporter])
def test_repeated_calls_are_ordered_like_the_first(
    activate: Activate, capsys: pytest.CaptureFixture[str], run: Callable[[Wrap], None], wrap: Wrap
) -> None:
    activate(order="deferred")
    for _ in range(2):
        run(wrap)
    assert not find_codes(capsys)


def test_a_repeated_call_must_wait_for_the_current_stream(
    activate: Activate, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    activate(order="deferred")
    call_after_the_current_stream(keep)
    monkeypatch.setattr(streams, "order_after", do_nothing)
    with suppress(AssertionError):
        call_after_the_current_stream(keep)
    assert find_codes(capsys) == {"PTX1301"}


def do_nothing(*arguments: Any, **keywords: Any) -> None: ...


def wait_for_nothing(stream: int, other: int) -> None:
    """Wait for an event, and record it only then."""
    event = call("cuEventCreate", load_api().CUevent_flags.CU_EVENT_DISABLE_TIMING)
    call("cuStreamWaitEvent", stream, event, 0)
    call("cuEventRecord", event, other)


def choose_first(stream: Any, current: Any, views: Any) -> int:
    """Choose the stream of the first array in place of the caller's."""
    return views[0].stream


def free_at_once(address: int, device: int, *_: object) -> None:
    """Free memory in the order of the default stream."""
    with in_context(device):
        call("cuMemFreeAsync", address, 0)


MUTANTS: dict[str, tuple[Any, str, Any, Callable[[Wrap], None], set[str]]] = {
    "missing wait before": (streams, "order_after", do_nothing, call_in_streams, {"PTX1302"}),
    "current stream ignored": (streams, "order_after", do_nothing, call_after_the_current_stream, {"PTX1301"}),
    "missing wait after": (streams, "order_before", do_nothing, call_in_streams, {"PTX1301", "PTX1302"}),
    "wait before the record": (streams, "_wait", wait_for_nothing, call_in_streams, {"PTX1302", "PTX1303"}),
    "wrong stream": (device_calls, "_choose_stream", choose_first, call_in_streams, {"PTX1301", "PTX1302"}),
    "free in a wrong stream": (device_array, "_free", free_at_once, call_in_streams, {"PTX1301", "PTX1302"}),
    "early free of a tensor": (device_calls, "keep_until_done", do_nothing, call_on_tensors, {"PTX1110"}),
    "early free by a repeated call": (fast_calls, "HOOKS", (fast_calls.HOOKS[0], None), call_again, {"PTX1110"}),
    "stream not told to an exporter": (device_calls, "_synchronize_exports", do_nothing, call_on_exports,
                                       {"PTX1301", "PTX1302"}),
}  # fmt: skip
BY_EXTENSION = {"early free by a repeated call"}
"""Mutants of what only the extension runs."""


@pytest.mark.parametrize("name", MUTANTS)
def test_the_simulated_driver_reports_mistakes_of_the_runtime(
    activate: Activate, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, implementation: str,
    name: str,
) -> None:  # fmt: skip
    if name in BY_EXTENSION and implementation == "python":
        pytest.skip("only the extension repeats calls")
    activate(order="deferred")
    module, function, mutant, run, codes = MUTANTS[name]
    monkeypatch.setattr(module, function, mutant)
    # Whether a wrong result or an error of a kernel follows, and whether memory is reused at once, is a matter of luck.
    with suppress(AssertionError, PtxError, CallError):
        run(keep)
    assert find_codes(capsys) & codes
