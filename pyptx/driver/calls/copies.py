"""Copies between host and device, and memset."""

from __future__ import annotations

import struct

from pyptx.driver import host_memory
from pyptx.driver.captures import forbid_waiting
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.operations import ANY_MEMORY, ARRAY, DEVICE_MEMORY, HOST_MEMORY, Copy, Fill, Operation, Side
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.driver.streams import find_stream, submit

_DIRECTIONS = {"d": DEVICE_MEMORY, "a": ANY_MEMORY}


def _run(driver: Driver, thread: Thread, stream: int | None, operation: Operation) -> None:
    """Run an operation in a stream; without one, in the default stream, and wait for it if the host takes part."""
    queue = find_stream(driver, thread, stream or 0)
    if stream is None:
        forbid_waiting(driver, queue)
    submit(driver, queue, operation, is_async=stream is not None)


def _copy(
    driver: Driver, thread: Thread, target: int, source: int, size: int, stream: int | None, directions: str
) -> None:
    """Copy bytes; `directions` names the memory of target and source: `d` of the device, `a` any."""
    to, come = (_DIRECTIONS[direction] for direction in directions)
    _run(driver, thread, stream, Copy(Side(to, target), Side(come, source), size))


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


COPY_3D = struct.Struct("<4QI4x6Q 4QI4x6Q 3Q")
"""A `CUDA_MEMCPY3D`."""
_COPY_2D = struct.Struct("<QQI4xQQQQ QQI4xQQQQ QQ")
_SIDE_SIZE = 11


@entry("cuMemcpy2D_v2 cuMemcpy2DUnaligned_v2", "pointer")
def copy_rows(driver: Driver, thread: Thread, description: int) -> None:
    _run(driver, thread, None, _read_rows(driver, thread, description))


@entry("cuMemcpy2DAsync_v2", "pointer pointer")
def copy_rows_in_order(driver: Driver, thread: Thread, description: int, stream: int) -> None:
    _run(driver, thread, stream, _read_rows(driver, thread, description))


@entry("cuMemcpy3D_v2", "pointer")
def copy_box(driver: Driver, thread: Thread, description: int) -> None:
    driver.get_context(thread)
    _run(driver, thread, None, read_box(description))


@entry("cuMemcpy3DAsync_v2", "pointer pointer")
def copy_box_in_order(driver: Driver, thread: Thread, description: int, stream: int) -> None:
    driver.get_context(thread)
    _run(driver, thread, stream, read_box(description))


def _read_rows(driver: Driver, thread: Thread, description: int) -> Copy:
    """Return the copy that a `CUDA_MEMCPY2D` describes."""
    driver.get_context(thread)
    values = _COPY_2D.unpack(host_memory.read(description, _COPY_2D.size))
    source, target = (
        _make_side(y * (pitch or values[-2]) + x, memory, host, device, pitch, 0)
        for x, y, memory, host, device, _, pitch in (values[:7], values[7:14])
    )
    return Copy(target, source, *values[14:])


def read_box(description: int) -> Copy:
    """Return the copy that a `CUDA_MEMCPY3D` describes."""
    values = COPY_3D.unpack(host_memory.read(description, COPY_3D.size))
    source, target = (
        _make_side((z * (rows or values[-2]) + y) * (pitch or values[-3]) + x, memory, host, device, pitch, rows)
        for x, y, z, _, memory, host, device, _, _, pitch, rows in (values[:_SIDE_SIZE], values[_SIDE_SIZE:-3])
    )
    return Copy(target, source, *values[-3:])


def _make_side(offset: int, memory: int, host: int, device: int, pitch: int, rows: int) -> Side:
    """Return one side of a copy between linear memory."""
    if memory == ARRAY:
        raise DriverError(Code.ERROR_NOT_SUPPORTED, "copies of CUDA arrays are not simulated")
    if memory not in (HOST_MEMORY, DEVICE_MEMORY, ANY_MEMORY):
        raise DriverError(Code.ERROR_INVALID_VALUE)
    address = host if memory == HOST_MEMORY else device
    return Side(memory, address + offset, pitch, rows)


def pack_box(copy: Copy) -> bytes:
    """Return the `CUDA_MEMCPY3D` of a copy."""
    source, target = (
        (0, 0, 0, 0, side.memory, is_host and side.address, not is_host and side.address, 0, 0, side.pitch, side.rows)
        for side in (copy.source, copy.target)
        for is_host in (side.memory == HOST_MEMORY,)
    )
    return COPY_3D.pack(*source, *target, copy.width, copy.height, copy.depth)


def _set(
    driver: Driver, thread: Thread, address: int, pitch: int, value: bytes, width: int, height: int,
    stream: int | None,
) -> None:  # fmt: skip
    """Fill rows of elements."""
    number, size = int.from_bytes(value, "little"), len(value)
    _run(driver, thread, stream, Fill(address, pitch, number, size, width, height))


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


@entry("cuMemsetD2D16_v2", "pointer size ushort size size")
def set_rows_of_halves(
    driver: Driver, thread: Thread, address: int, pitch: int, value: int, width: int, height: int
) -> None:
    _set(driver, thread, address, pitch, value.to_bytes(2, "little"), width, height, None)


@entry("cuMemsetD2D16Async", "pointer size ushort size size pointer")
def set_rows_of_halves_in_order(
    driver: Driver, thread: Thread, address: int, pitch: int, value: int, width: int, height: int, stream: int
) -> None:
    _set(driver, thread, address, pitch, value.to_bytes(2, "little"), width, height, stream)
