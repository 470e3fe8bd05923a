"""Connects the driver library in this process with the Python that answers its calls."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.driver import AFTER_RESTART
from pyptx.driver.calls import ENTRIES
from pyptx.driver.conflicts import report_host_access
from pyptx.driver.library import NAME, find_library
from pyptx.driver.process import Driver, find_caller
from pyptx.driver.settings import LIBRARY, Settings
from pyptx.driver.streams import finish
from pyptx.driver.watching import HostWatch
from pyptx.sim.observers.checks import parse_choice

_ANSWER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
_FAULT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_int)
_DRIVERS: list[Driver] = []
_CALLBACKS: list[Any] = []
_ACTIVE = threading.Event()


def start() -> Driver:
    """Return the driver of this process; create it from the environment if there is none yet."""
    if not _DRIVERS:
        _DRIVERS.append(_make(Settings.from_environment()))
    return _DRIVERS[0]


def restart(device: str | None, options: Mapping[str, Any]) -> Driver:
    """Replace the driver of this process. What the program does not choose is as in the environment: `pyptx simulate`
    gets its records. TypeError or ValueError for options that do not exist."""
    chosen = {**options} if device is None else {"device": device, **options}
    names = [item.name for item in fields(Settings)]
    for name in chosen:
        if name not in names:
            raise TypeError(f"no option {name!r}; the options are {', '.join(names)}")
    driver, is_first = _make(replace(Settings.from_environment(), **chosen)), not _DRIVERS
    finish_all()
    _DRIVERS[:] = [driver]
    if _CALLBACKS:
        driver.is_initialized = True
        # The name in the library finds the one that is loaded; another copy would answer no one.
        _answer_with(driver, NAME)
    if not is_first:
        for forget in AFTER_RESTART:
            forget()
    return driver


def _make(settings: Settings) -> Driver:
    """Return a driver. Raise ValueError for choices that the simulator or the file system refuses."""
    try:
        parse_choice(settings.check, "report")
    except PtxError as why:
        raise ValueError(why.diagnostics[0].message) from None
    for name, folder in (("records", settings.records), ("dump", settings.dump)):
        if folder and not Path(folder).is_dir():
            raise ValueError(f"{name}: there is no folder {folder}")
    return Driver(settings, [ENTRIES[symbol] for symbol in sorted(ENTRIES)])


def finish_all() -> None:
    """End what the program has begun."""
    for driver in _DRIVERS:
        finish(driver)


def is_active() -> bool:
    """Return whether `activate` has been called, and `deactivate` not since."""
    return _ACTIVE.is_set()


def connect() -> None:
    """Answer the calls of the library in this process, unless the environment asks for what does not exist."""
    if _CALLBACKS:
        return
    try:
        driver = start()
    except (ValueError, OSError) as why:
        text = f"{why.filename}: {why.strerror}" if isinstance(why, OSError) else str(why)
        sys.stderr.write(f"pyptx: the simulated CUDA driver cannot start: {text}\n")
        return
    atexit.register(finish_all)
    _answer_with(driver, os.environ[LIBRARY])


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


def activate(device: str | None, options: Mapping[str, Any]) -> None:
    """Make a new driver the CUDA driver of this process."""
    try:
        loaded = ctypes.CDLL(NAME, os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        loaded = None
    if loaded is not None and not hasattr(loaded, "pyptx_driver_connect"):
        raise RuntimeError("this process has loaded another CUDA driver: activate the simulated one earlier")
    driver = restart(device, options)
    if not _CALLBACKS:
        atexit.register(finish_all)
        _answer_with(driver, NAME if loaded is not None else str(find_library()))
    _ACTIVE.set()


def list_guards() -> tuple[tuple[object, object, object], ...]:
    """Return a dictionary, a key and the value that it has while the driver is active."""
    return ((vars(_ACTIVE), "_flag", True),) if _ACTIVE.is_set() else ()


def deactivate() -> None:
    """Undo `activate`, except that the library stays loaded."""
    _ACTIVE.clear()
