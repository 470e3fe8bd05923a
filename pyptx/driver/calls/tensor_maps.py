"""Tensor maps: encoded by the parameters of the driver's functions, and checked by its rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import TypeVar

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.host_memory import read, read_ints, read_pointers, write, write_int
from pyptx.driver.process import Driver, Thread
from pyptx.driver.signatures import entry
from pyptx.tensormap import (
    MAX_RANK,
    SIZE,
    ElementType,
    Fill,
    Im2col,
    Im2colMode,
    Interleave,
    L2Promotion,
    Swizzle,
    TensorMap,
    decode,
    encode,
    needs_blackwell,
    problems,
)

T = TypeVar("T", bound=Enum)
_ALIGNMENT = 64
_BLACKWELL = (10, 0)
_ELEMENTS = {element.driver_value: element for element in ElementType}
_SWIZZLES = {swizzle.driver_value: swizzle for swizzle in Swizzle if swizzle.driver_value is not None}
_WIDE_MODES = {0: Im2colMode.W, 1: Im2colMode.W128}
_CLASSES, _SMALL = 3, 1
"""The number of values of the enum `CUtensorMapAllocClass`, and the one in effect on GPUs that have no other."""


@entry("cuTensorMapEncodeTiled", "result int uint pointer pointer pointer pointer pointer int int int int")
def encode_tiled(
    driver: Driver, thread: Thread, result: int, element: int, rank: int, address: int, dims: int, strides: int,
    box: int, steps: int, interleave: int, swizzle: int, promotion: int, fill: int,
) -> None:  # fmt: skip
    driver.get_context(thread)
    modes = interleave, swizzle, promotion, fill
    tensor = _read(driver, result, element, rank, address, dims, strides, steps, modes)
    _write(driver, result, replace(tensor, box=read_ints(box, rank)))


@entry(
    "cuTensorMapEncodeIm2col",
    "result int uint pointer pointer pointer pointer pointer uint uint pointer int int int int",
)
def encode_im2col(
    driver: Driver, thread: Thread, result: int, element: int, rank: int, address: int, dims: int, strides: int,
    lower: int, upper: int, channels: int, pixels: int, steps: int, interleave: int, swizzle: int, promotion: int,
    fill: int,
) -> None:  # fmt: skip
    driver.get_context(thread)
    modes = interleave, swizzle, promotion, fill
    tensor = _read(driver, result, element, rank, address, dims, strides, steps, modes)
    corners = max(rank - 2, 0)
    im2col = Im2col(read_ints(lower, corners), read_ints(upper, corners), channels, pixels)
    _write(driver, result, replace(tensor, im2col=im2col))


@entry(
    "cuTensorMapEncodeIm2colWide",
    "result int uint pointer pointer pointer int int uint uint pointer int int int int int",
)
def encode_im2col_wide(
    driver: Driver, thread: Thread, result: int, element: int, rank: int, address: int, dims: int, strides: int,
    lower: int, upper: int, channels: int, pixels: int, steps: int, interleave: int, mode: int, swizzle: int,
    promotion: int, fill: int,
) -> None:  # fmt: skip
    driver.get_context(thread)
    modes = interleave, swizzle, promotion, fill
    tensor = _read(driver, result, element, rank, address, dims, strides, steps, modes)
    kind = _choose(_WIDE_MODES, mode, "mode")
    _write(driver, result, replace(tensor, im2col=Im2col((lower,), (upper,), channels, pixels, kind)))


@entry("cuTensorMapReplaceAddress", "result pointer")
def replace_address(driver: Driver, thread: Thread, result: int, address: int) -> None:
    _write(driver, result, replace(_decode(driver, result), address=address))


@entry("cuTensorMapSetAllocationClass", "result int pointer")
def set_allocation_class(driver: Driver, thread: Thread, result: int, choice: int, chosen: int) -> None:
    """Report the small class, as on GPUs where the choice has no effect."""
    write_int(chosen, _SMALL)
    _decode(driver, result)
    if not 0 <= choice < _CLASSES:
        raise DriverError(Code.ERROR_INVALID_VALUE)


def _read(
    driver: Driver, result: int, element: int, rank: int, address: int, dims: int, strides: int, steps: int,
    modes: Sequence[int],
) -> TensorMap:  # fmt: skip
    """Return what all kinds of maps have."""
    _check_alignment(driver, result)
    if not 1 <= rank <= MAX_RANK:
        text = f"tensorRank is {rank}; tensors have 1 to {MAX_RANK} dimensions"
        raise DriverError(Code.ERROR_INVALID_VALUE, text)
    interleave, swizzle, promotion, fill = modes
    return TensorMap(
        _choose(_ELEMENTS, element, "tensorDataType"), address, read_pointers(dims, rank),
        read_pointers(strides, rank - 1), (), read_ints(steps, rank),
        _choose(dict(enumerate(Interleave)), interleave, "interleave"), _choose(_SWIZZLES, swizzle, "swizzle"),
        _choose(dict(enumerate(L2Promotion)), promotion, "l2Promotion"),
        _choose(dict(enumerate(Fill)), fill, "oobFill"),
    )  # fmt: skip


def _choose(members: dict[int, T], value: int, parameter: str) -> T:
    if value not in members:
        text = f"{parameter} is {value}; the values are {', '.join(map(str, sorted(members)))}"
        raise DriverError(Code.ERROR_INVALID_VALUE, text)
    return members[value]


def _check_alignment(driver: Driver, result: int) -> None:
    """Note a map at an address that the manual excludes. It is no error, as cuda.core 1.2 makes such maps."""
    if result % _ALIGNMENT:
        driver.note(f"the driver's manual requires tensor maps (CUtensorMap) at multiples of {_ALIGNMENT} bytes")


def _decode(driver: Driver, result: int) -> TensorMap:
    _check_alignment(driver, result)
    try:
        return decode(read(result, SIZE))
    except ValueError as why:
        raise DriverError(Code.ERROR_INVALID_VALUE, f"this is no tensor map: {why}") from None


def _write(driver: Driver, result: int, tensor: TensorMap) -> None:
    """Write a map that obeys the rules."""
    device = driver.devices[0]
    if device.capability < _BLACKWELL and needs_blackwell(tensor):
        missing = tensor.swizzle if tensor.dtype <= ElementType.TF32_FTZ else tensor.dtype
        text = f"tensor maps of {device.target} have no {missing.name}"
        raise DriverError(Code.ERROR_INVALID_VALUE, text)
    findings = problems(tensor)
    if findings:
        text = "; ".join(f"{item.message} ({item.help})" if item.help else item.message for item in findings)
        raise DriverError(Code.ERROR_INVALID_VALUE, text)
    write(result, encode(tensor))
