"""Memory that a kernel returns in, and what happens to it when its context is lost."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pyptx.runtime import device_array
from pyptx.runtime.arrays import Described
from pyptx.runtime.bindings import CallError
from pyptx.runtime.device_array import DeviceArray
from tests.runtime.device_memory import DeviceMemory

ENDS = [4, 201, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719]
"""Codes of a driver that has ended, of a context that is gone, and of each fault of a kernel."""


@pytest.mark.parametrize("code", sorted({code + step for code in ENDS for step in (-1, 0, 1)}))
def test_memory_that_cannot_be_freed_is_an_error_unless_its_context_is_lost(
    device: DeviceMemory, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    array = DeviceArray(Described((4,), "float32"), 0, 0)
    failures: list[int] = []

    def refuse(name: str, *_: object) -> None:
        raise CallError(name, code, "CUDA_ERROR", "")

    def note(failure: Any) -> None:
        failures.append(failure.exc_value.code)

    monkeypatch.setattr(device_array, "call", refuse)
    monkeypatch.setattr(sys, "unraisablehook", note)
    del array
    assert failures == ([] if code in ENDS else [code])
