"""NVIDIA's driver API through the package cuda-bindings, loaded on first use, and contexts of devices.

Knows no kernel: what the driver refuses is a `CallError`, which whoever knows the kernel turns into a diagnostic.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.driver import AFTER_RESTART
from pyptx.runtime.rules import DRIVER

_PACKAGES = "pip install 'cuda-bindings>=13'"
_LOCK = threading.Lock()
_state: dict[str, Any] = {"number": 0}
"""The loaded API, the process that loaded it, and the number of the driver."""
_CONTEXTS: dict[int, int] = {}
"""The primary contexts that this process has retained, by device."""


class CallError(Exception):
    """A function of the driver API failed."""

    def __init__(self, function: str, code: int, name: str, text: str) -> None:
        super().__init__(f"{function} returned {name} ({code}): {text}")
        self.code, self.name = code, name


def load_api() -> Any:
    """Return the module of the driver API, initialized. PtxError if there is no package, driver or device, or if a
    parent of this process has already used the driver."""
    api = _state.get("api")
    if api is None:
        with _LOCK:
            api = _state.get("api") or _load()
    if _state["process"] != os.getpid():
        message = "the CUDA driver does not work in a process forked from one that has used it"
        raise PtxError([DRIVER.report(None, message, help='multiprocessing.set_start_method("spawn")')])
    return api


def _load() -> Any:
    try:
        api: Any = import_module("cuda.bindings.driver")
    except ImportError as why:
        message = f"running kernels on a GPU needs NVIDIA's package cuda-bindings: {why}"
        raise PtxError([DRIVER.report(None, message, help=_PACKAGES)]) from None
    try:
        (code,) = api.cuInit(0)
    except RuntimeError as why:
        message = f"no CUDA driver (libcuda.so.1): {why}"
        help = "install NVIDIA's driver, or simulate one: pyptx.driver.activate(), or pyptx simulate PROGRAM"
        raise PtxError([DRIVER.report(None, message, help=help)]) from None
    if code:
        message = f"the CUDA driver does not start: {_describe(api, 'cuInit', code)}"
        raise PtxError([DRIVER.report(None, message)])
    _state.update(api=api, process=os.getpid())
    return api


def call(name: str, *arguments: Any) -> Any:
    """Call a function of the driver API; return its result, a tuple of several, or None. CallError if it fails."""
    api = load_api()
    code, *results = getattr(api, name)(*arguments)
    if code:
        raise _describe(api, name, code)
    return results[0] if len(results) == 1 else tuple(results) or None


@cache
def find_library() -> Any:
    """Return the driver's library for calls with `ctypes`: the same one for the life of the process."""
    load_api()
    return ctypes.CDLL("libcuda.so.1")


def check(name: str, code: int) -> None:
    """Raise CallError if a call of the library failed."""
    if code:
        api = load_api()
        raise _describe(api, name, api.CUresult(code))


def _describe(api: Any, function: str, code: Any) -> CallError:
    _, name = api.cuGetErrorName(code)
    _, text = api.cuGetErrorString(code)
    return CallError(function, int(code), (name or b"an unknown error").decode(), (text or b"").decode())


@contextmanager
def in_context(device: int) -> Generator[int]:
    """Make a context of a device current, and yield its handle: the current one if it belongs to the device, otherwise
    the primary one, which stays current only in a thread that had none."""
    current = int(call("cuCtxGetCurrent"))
    if current and int(call("cuCtxGetDevice")) == device:
        yield current
        return
    primary = retain(device)
    if not current:
        call("cuCtxSetCurrent", primary)
        yield primary
        return
    call("cuCtxPushCurrent", primary)
    try:
        yield primary
    finally:
        call("cuCtxPopCurrent")


@contextmanager
def relax_captures() -> Generator[None]:
    """Permit calls in this thread that would invalidate a capture, its own or one of another thread: graphs need not
    repeat them."""
    mode = call("cuThreadExchangeStreamCaptureMode", load_api().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        yield
    finally:
        call("cuThreadExchangeStreamCaptureMode", mode)


def identify(context: int) -> int:
    """Return the identity of a context. No other has it, also after this one: a driver may use its handle again."""
    return int(call("cuCtxGetId", context))


def retain(device: int) -> int:
    """Return the primary context of a device."""
    context = _CONTEXTS.get(device)
    if context is None:
        api = load_api()
        with _LOCK:
            context = _CONTEXTS.get(device)
            if context is None:
                context = _CONTEXTS[device] = int(_check(api, "cuDevicePrimaryCtxRetain", device))
    return context


def _check(api: Any, name: str, *arguments: Any) -> Any:
    code, result = getattr(api, name)(*arguments)
    if code:
        raise _describe(api, name, code)
    return result


def forget() -> None:
    """Forget contexts of a driver that has been replaced."""
    _CONTEXTS.clear()
    _state["number"] = number_driver() + 1


def number_driver() -> int:
    """Return the number of the driver of this process, which grows when another replaces it."""
    return _state.get("number", 0)


def list_guards() -> list[tuple[object, object, object]]:
    """Return what must stay the same for handles of the driver to be valid (`pyptx.dsl.guards`)."""
    return [(_state, "number", _state["number"])]


os.register_at_fork(after_in_child=lambda: _state.update(number=-1))


AFTER_RESTART.append(forget)


def get_capability(device: int) -> tuple[int, int]:
    """Return the compute capability of a device."""
    attribute = load_api().CUdevice_attribute
    return (
        call("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
        call("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
    )
