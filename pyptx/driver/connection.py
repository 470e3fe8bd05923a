"""Connects the driver library in this process with the Python that answers its calls."""

from __future__ import annotations

import atexit
import ctypes
import os
from typing import Any

from pyptx.driver.calls import ENTRIES
from pyptx.driver.process import Driver
from pyptx.driver.settings import Settings
from pyptx.driver.streams import finish

LIBRARY = "PYPTX_DRIVER_LIBRARY"
"""The environment variable that names the library."""
_ANSWER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
_DRIVERS: list[Driver] = []
_CALLBACKS: list[Any] = []


def start(settings: Settings | None = None) -> Driver:
    """Return the driver of this process; create it if there is none yet."""
    if not _DRIVERS:
        _DRIVERS.append(Driver(settings or Settings.from_environment(), list(ENTRIES.values())))
    return _DRIVERS[0]


def finish_all() -> None:
    """End what the program has begun."""
    for driver in _DRIVERS:
        finish(driver)


def connect() -> None:
    """Answer the calls of the library in this process."""
    if not _CALLBACKS:
        driver = start()
        _CALLBACKS.append(_ANSWER(driver.answer))
        atexit.register(finish_all)
        ctypes.CDLL(os.environ[LIBRARY], os.RTLD_NOW | os.RTLD_GLOBAL).pyptx_driver_connect(_CALLBACKS[0])
