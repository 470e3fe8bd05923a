"""Connects the driver library in this process with the Python that answers its calls."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from functools import partial
from typing import Any

from pyptx.driver import AFTER_RESTART
from pyptx.driver.calls import ENTRIES
from pyptx.driver.conflicts import report_host_access
from pyptx.driver.library import NAME, find_library
from pyptx.driver.process import Driver, find_caller
from pyptx.driver.settings import LIBRARY, Settings
from pyptx.driver.streams import finish
from pyptx.driver.watching import HostWatch

_ANSWER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
_FAULT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_int)
_DRIVERS: list[Driver] = []
_CALLBACKS: list[Any] = []
_ACTIVE = threading.Event()


def start(settings: Settings | None = None) -> Driver:
    """Return the driver of this process; create it if there is none yet."""
    if not _DRIVERS:
        _DRIVERS.append(
            Driver(settings or Settings.from_environment(), [ENTRIES[symbol] for symbol in sorted(ENTRIES)])
        )
    return _DRIVERS[0]


def finish_all() -> None:
    """End what the program has begun."""
    for driver in _DRIVERS:
        finish(driver)


def is_active() -> bool:
    """Return whether `activate` has been called, and `deactivate` not since."""
    return _ACTIVE.is_set()


def connect(library: str | None = None) -> None:
    """Answer the calls of the library in this process."""
    if not _CALLBACKS:
        atexit.register(finish_all)
        _answer_with(start(), library or os.environ[LIBRARY])


def _answer_with(driver: Driver, library: str) -> None:
    # Other threads may still be in a call that an earlier driver answers.
    _CALLBACKS.append(_ANSWER(driver.answer))
    loaded = ctypes.CDLL(library, os.RTLD_NOW | os.RTLD_GLOBAL)
    loaded.pyptx_driver_connect(_CALLBACKS[-1])
    if driver.settings.watch_host:
        driver.watch = HostWatch(
            driver.heap, driver.order, driver.lock, find_caller, partial(report_host_access, driver)
        )
        _CALLBACKS.append(_FAULT(driver.watch.answer))
        if not loaded.pyptx_driver_watch(_CALLBACKS[-1]):
            raise RuntimeError("the host's accesses cannot be watched on this machine")


def activate(device: str, **options: Any) -> None:  # noqa: ANN401
    """Make a new driver the CUDA driver of this process."""
    settings = Settings(device=device, **options)
    try:
        loaded = ctypes.CDLL(NAME, os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        loaded = None
    if loaded is not None and not hasattr(loaded, "pyptx_driver_connect"):
        raise RuntimeError("this process has loaded another CUDA driver: activate the simulated one earlier")
    finish_all()
    _DRIVERS.clear()
    driver = start(settings)
    if _CALLBACKS:
        driver.is_initialized = True
        for forget in AFTER_RESTART:
            forget()
    else:
        atexit.register(finish_all)
    _ACTIVE.set()
    # The name in the library makes a later search for the driver find this one; another copy would answer no one.
    _answer_with(driver, NAME if loaded is not None else str(find_library()))


def list_guards() -> tuple[tuple[object, object, object], ...]:
    """Return a dictionary, a key and the value that it has while the driver is active."""
    return ((vars(_ACTIVE), "_flag", True),) if _ACTIVE.is_set() else ()


def deactivate() -> None:
    """Undo `activate`, except that the library stays loaded."""
    _ACTIVE.clear()
