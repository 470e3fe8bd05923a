"""Detects the GPU through the driver itself, without any package."""

from __future__ import annotations

import ctypes

from pyptx.dsl import rules
from pyptx.dsl.trace import fail
from pyptx.isa.targets import FIRST_PTX

_MAJOR, _MINOR = 75, 76


def detect_arch() -> str:
    """Return the target of the first CUDA device, with the suffix `a` if the architecture has one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        fail(
            rules.ARGUMENT,
            "no CUDA driver (libcuda.so.1), so the device cannot be detected",
            help="pass the architecture: 'sm_90a'",
        )
    device, major, minor = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        fail(rules.ARGUMENT, "the CUDA driver reports no device", help="pass the architecture: 'sm_90a'")
    driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
    name = f"sm_{major.value}{minor.value}"
    return f"{name}a" if f"{name}a" in FIRST_PTX else name
