"""The target of a kernel with `arch="auto"`: the device's, as a driver names it."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from pyptx import PtxError, detect_arch
from tests.messages import raises

from .tracing import make_kernel


def test_auto_arch_is_the_device_or_a_note_that_there_is_none() -> None:
    def body() -> None: ...

    kernel_object = make_kernel(body, arch="auto")
    text = kernel_object.ptx()
    if not kernel_object.notes:
        assert f".target {detect_arch()}\n" in text
        return
    assert kernel_object.notes == ["arch='auto': no GPU found, traced for sm_90a"]
    assert ".target sm_90a\n" in text
    with raises(PtxError, match=r"PTX0818\]: (no CUDA driver|the CUDA driver reports no device)[\s\S]*'sm_90a'"):
        detect_arch()


def make_driver(*capability: int, status: int = 0) -> Any:
    """Return CUDA's driver library with a device of this compute capability, or without one."""

    def find_device(device: Any, ordinal: int) -> int:
        assert ordinal == 0
        device._obj.value = 7
        return 0 if capability else 100

    def read_attribute(value: Any, attribute: int, device: Any) -> None:
        assert device.value == 7
        value._obj.value = capability[attribute - 75]

    def start(flags: int) -> int:
        assert flags == 0
        return status

    return SimpleNamespace(cuInit=start, cuDeviceGet=find_device, cuDeviceGetAttribute=read_attribute)


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((9, 0), "sm_90a"), ((8, 0), "sm_80"), ((7, 5), "sm_75"), ((12, 1), "sm_121a")],
)
def test_the_target_of_a_device_has_the_suffix_a_where_there_is_one(
    capability: tuple[int, int], arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", {"libcuda.so.1": make_driver(*capability)}.__getitem__)
    assert detect_arch() == arch


@pytest.mark.parametrize("driver", [make_driver(), make_driver(9, 0, status=100)])
def test_a_driver_without_a_device_is_refused(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", {"libcuda.so.1": driver}.__getitem__)
    with raises(PtxError) as caught:
        detect_arch()
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.help) == (
        "PTX0818", "the CUDA driver reports no device", "pass the architecture: 'sm_90a'",
    )  # fmt: skip
