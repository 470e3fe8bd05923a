"""Copies between host and device, and memset."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pyptx.driver import host_memory
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.heap import Bytes
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import find_stream, submit, synchronize


def _view(driver: Driver, address: int, size: int, *, is_device: bool) -> Bytes:
    """Return memory: of the device, or any of the host."""
    view = driver.heap.view(address, size)
    if view is not None:
        return view
    if is_device or not address:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return host_memory.view(address, size)


def _copy(
    driver: Driver, thread: Thread, target: int, source: int, size: int, stream: int | None, directions: str
) -> None:
    """Copy bytes; `directions` names the memory of target and source: `d` of the device, `a` any."""
    queue = find_stream(driver, thread, stream or 0)
    if not size:
        return
    to, come = (
        _view(driver, address, size, is_device=direction == "d")
        for address, direction in zip((target, source), directions, strict=True)
    )
    _run(driver, queue, stream, lambda: np.copyto(to, come))


def _run(driver: Driver, queue: object, stream: int | None, work: Callable[[], object]) -> None:
    """Run work in a stream; without one, wait for it."""
    submit(driver, queue, work)  # pyright: ignore[reportArgumentType]
    if stream is None:
        synchronize(driver)


@entry("cuMemcpyHtoD_v2", "pointer pointer size")
def copy_to_device(driver: Driver, thread: Thread, target: int, source: int, size: int) -> None:
    _copy(driver, thread, target, source, size, None, "da")


@entry("cuMemcpyHtoDAsync_v2", "pointer pointer size pointer")
def copy_to_device_in_order(driver: Driver, thread: Thread, target: int, source: int, size: int, stream: int) -> None:
    _copy(driver, thread, target, source, size, stream, "da")


@entry("cuMemcpyDtoH_v2", "pointer pointer size")
def copy_to_host(driver: Driver, thread: Thread, target: int, source: int, size: int) -> None:
    _copy(driver, thread, target, source, size, None, "ad")


@entry("cuMemcpyDtoHAsync_v2", "pointer pointer size pointer")
def copy_to_host_in_order(driver: Driver, thread: Thread, target: int, source: int, size: int, stream: int) -> None:
    _copy(driver, thread, target, source, size, stream, "ad")


@entry("cuMemcpyDtoD_v2", "pointer pointer size")
def copy_on_device(driver: Driver, thread: Thread, target: int, source: int, size: int) -> None:
    _copy(driver, thread, target, source, size, None, "dd")


@entry("cuMemcpyDtoDAsync_v2", "pointer pointer size pointer")
def copy_on_device_in_order(driver: Driver, thread: Thread, target: int, source: int, size: int, stream: int) -> None:
    _copy(driver, thread, target, source, size, stream, "dd")


@entry("cuMemcpy", "pointer pointer size")
def copy(driver: Driver, thread: Thread, target: int, source: int, size: int) -> None:
    _copy(driver, thread, target, source, size, None, "aa")


@entry("cuMemcpyAsync", "pointer pointer size pointer")
def copy_in_order(driver: Driver, thread: Thread, target: int, source: int, size: int, stream: int) -> None:
    _copy(driver, thread, target, source, size, stream, "aa")


@entry("cuMemcpyPeer", "pointer pointer pointer pointer size")
def copy_to_peer(
    driver: Driver, thread: Thread, target: int, target_context: int, source: int, source_context: int, size: int
) -> None:
    _copy(driver, thread, target, source, size, None, "dd")


@entry("cuMemcpyPeerAsync", "pointer pointer pointer pointer size pointer")
def copy_to_peer_in_order(
    driver: Driver, thread: Thread, target: int, target_context: int, source: int, source_context: int, size: int,
    stream: int,
) -> None:  # fmt: skip
    _copy(driver, thread, target, source, size, stream, "dd")


_MEMORY_TYPES = {1: "host", 2: "device", 4: "device"}
_COPY_2D = struct.Struct("<QQI4xQQQQ QQI4xQQQQ QQ")


@entry("cuMemcpy2D_v2 cuMemcpy2DUnaligned_v2", "pointer")
def copy_rows(driver: Driver, thread: Thread, description: int) -> None:
    _copy_rows(driver, thread, description, None)


@entry("cuMemcpy2DAsync_v2", "pointer pointer")
def copy_rows_in_order(driver: Driver, thread: Thread, description: int, stream: int) -> None:
    _copy_rows(driver, thread, description, stream)


def _copy_rows(driver: Driver, thread: Thread, description: int, stream: int | None) -> None:
    """Copy the rows of a `CUDA_MEMCPY2D` between linear memory."""
    queue = find_stream(driver, thread, stream or 0)
    if not description:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    values = _COPY_2D.unpack(host_memory.read(description, _COPY_2D.size))
    source, target, (width, height) = values[:7], values[7:14], values[14:]
    if not width or not height:
        return
    come, to = (_view_rows(driver, side, width, height) for side in (source, target))
    _run(driver, queue, stream, lambda: np.copyto(to, come))


def _view_rows(driver: Driver, side: tuple[int, ...], width: int, height: int) -> NDArray[np.uint8]:
    x, y, kind, host, device, array, pitch = side
    if kind not in _MEMORY_TYPES or array:
        raise DriverError(Code.ERROR_NOT_SUPPORTED, "2D copies of CUDA arrays are not simulated")
    pitch = pitch or width
    if width > pitch:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    is_device = _MEMORY_TYPES[kind] == "device"
    begin = (device if is_device else host) + y * pitch + x
    view = _view(driver, begin, (height - 1) * pitch + width, is_device=is_device and kind == 2)
    return np.lib.stride_tricks.as_strided(view, (height, width), (pitch, 1))


def _set(
    driver: Driver, thread: Thread, address: int, pitch: int, value: bytes, width: int, height: int,
    stream: int | None,
) -> None:  # fmt: skip
    """Fill rows of elements."""
    queue = find_stream(driver, thread, stream or 0)
    row = width * len(value)
    if address % len(value) or (height > 1 and pitch < row):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    if not row or not height:
        return
    view = _view(driver, address, (height - 1) * pitch + row, is_device=True)
    rows = np.lib.stride_tricks.as_strided(view, (height, row), (pitch, 1))
    pattern = np.tile(np.frombuffer(value, np.uint8), width)
    _run(driver, queue, stream, lambda: np.copyto(rows, pattern))


@entry("cuMemsetD8_v2", "pointer byte size")
def set_bytes(driver: Driver, thread: Thread, address: int, value: int, count: int) -> None:
    _set(driver, thread, address, 0, value.to_bytes(1, "little"), count, 1, None)


@entry("cuMemsetD8Async", "pointer byte size pointer")
def set_bytes_in_order(driver: Driver, thread: Thread, address: int, value: int, count: int, stream: int) -> None:
    _set(driver, thread, address, 0, value.to_bytes(1, "little"), count, 1, stream)


@entry("cuMemsetD16_v2", "pointer ushort size")
def set_halves(driver: Driver, thread: Thread, address: int, value: int, count: int) -> None:
    _set(driver, thread, address, 0, value.to_bytes(2, "little"), count, 1, None)


@entry("cuMemsetD16Async", "pointer ushort size pointer")
def set_halves_in_order(driver: Driver, thread: Thread, address: int, value: int, count: int, stream: int) -> None:
    _set(driver, thread, address, 0, value.to_bytes(2, "little"), count, 1, stream)


@entry("cuMemsetD32_v2", "pointer uint size")
def set_words(driver: Driver, thread: Thread, address: int, value: int, count: int) -> None:
    _set(driver, thread, address, 0, value.to_bytes(4, "little"), count, 1, None)


@entry("cuMemsetD32Async", "pointer uint size pointer")
def set_words_in_order(driver: Driver, thread: Thread, address: int, value: int, count: int, stream: int) -> None:
    _set(driver, thread, address, 0, value.to_bytes(4, "little"), count, 1, stream)


@entry("cuMemsetD2D8_v2", "pointer size byte size size")
def set_rows_of_bytes(
    driver: Driver, thread: Thread, address: int, pitch: int, value: int, width: int, height: int
) -> None:
    _set(driver, thread, address, pitch, value.to_bytes(1, "little"), width, height, None)


@entry("cuMemsetD2D8Async", "pointer size byte size size pointer")
def set_rows_of_bytes_in_order(
    driver: Driver, thread: Thread, address: int, pitch: int, value: int, width: int, height: int, stream: int
) -> None:
    _set(driver, thread, address, pitch, value.to_bytes(1, "little"), width, height, stream)


@entry("cuMemsetD2D32_v2", "pointer size uint size size")
def set_rows_of_words(
    driver: Driver, thread: Thread, address: int, pitch: int, value: int, width: int, height: int
) -> None:
    _set(driver, thread, address, pitch, value.to_bytes(4, "little"), width, height, None)


@entry("cuMemsetD2D32Async", "pointer size uint size size pointer")
def set_rows_of_words_in_order(
    driver: Driver, thread: Thread, address: int, pitch: int, value: int, width: int, height: int, stream: int
) -> None:
    _set(driver, thread, address, pitch, value.to_bytes(4, "little"), width, height, stream)
