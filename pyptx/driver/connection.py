"""Connects the driver library in this process with the Python that answers its calls."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from pyptx.driver.calls import ENTRIES
from pyptx.driver.process import Driver
from pyptx.driver.settings import Settings

LIBRARY = "PYPTX_DRIVER_LIBRARY"
"""The environment variable that names the library."""
_ANSWER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
_CONNECTED: list[tuple[Driver, Any]] = []


def connect(library: str = "", settings: Settings | None = None) -> Driver:
    """Answer the calls of the library in this process; return its driver."""
    if _CONNECTED:
        return _CONNECTED[0][0]
    driver = Driver(settings or Settings.from_environment(), list(ENTRIES.values()))
    callback = _ANSWER(driver.answer)
    ctypes.CDLL(library or os.environ[LIBRARY], os.RTLD_NOW | os.RTLD_GLOBAL).pyptx_driver_connect(callback)
    _CONNECTED.append((driver, callback))
    return driver


def get_driver() -> Driver | None:
    """Return the driver of this process, if it has one."""
    return _CONNECTED[0][0] if _CONNECTED else None
