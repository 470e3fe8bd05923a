"""The driver's requirements of a tensor map (`cuTensorMapEncodeTiled`, `…Im2col`, `…Im2colWide`), as findings."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from pyptx.diagnostics import Diagnostic, PtxError, format_count
from pyptx.tensormap import rules
from pyptx.tensormap.maps import TensorMap
from pyptx.tensormap.modes import ElementType, Fill, Im2col, Im2colMode, Interleave, Swizzle

MAX_RANK = 5
CORNER_BITS = {3: 16, 4: 8, 5: 5}
_PADDED_WIDTH = 128
_SHARED_MEMORY = 227 << 10
_SWIZZLES_OF_PADDED = {
    ElementType.B4X16_P64: (Swizzle.NONE, Swizzle.B128, Swizzle.B128_ATOM_32B),
    ElementType.B6X16_P32: (Swizzle.NONE, Swizzle.B128, Swizzle.B128_ATOM_32B, Swizzle.B128_ATOM_64B),
}
_SWIZZLES_OF_W_MODES = (Swizzle.B64, Swizzle.B128, Swizzle.B128_ATOM_32B)


def problems(tensor: TensorMap) -> list[Diagnostic]:
    """Return everything that the driver would reject, with remedies but without a place, which the caller knows."""
    shape = list(_check_rank(tensor))
    return shape or [*_check_memory(tensor), *_check_access(tensor), *_check_modes(tensor)]


def needs_blackwell(tensor: TensorMap) -> bool:
    """Tell whether the driver refuses a map on Hopper alone: packed types, and swizzles of larger atoms."""
    return tensor.dtype > ElementType.TF32_FTZ or bool(tensor.swizzle.atomicity)


def validate(tensor: TensorMap) -> TensorMap:
    """Return the map itself; PtxError with every finding if the driver would reject it."""
    if findings := problems(tensor):
        raise PtxError(findings)
    return tensor


def _check_rank(tensor: TensorMap) -> Iterator[Diagnostic]:
    lowest = 3 if tensor.im2col is not None or tensor.interleave is not Interleave.NONE else 1
    if not lowest <= tensor.rank <= MAX_RANK:
        why = " with im2col or an interleave" if lowest == 3 else ""
        yield rules.RANK.report(
            None,
            f"expected {lowest} to {MAX_RANK} dimensions{why}, got {tensor.rank}",
            help="merge or split dimensions" if tensor.rank > MAX_RANK else "add dimensions of size 1",
        )
    lists = {
        "strides": (tensor.strides, max(tensor.rank - 1, 0)),
        "element_strides": (tensor.element_strides, tensor.rank),
    }
    lists["box"] = (tensor.box, 0 if tensor.im2col is not None else tensor.rank)
    if tensor.im2col is not None:
        corners = tensor.rank - 2 if tensor.im2col.mode is Im2colMode.IM2COL else 1
        lists |= {"im2col.lower": (tensor.im2col.lower, corners), "im2col.upper": (tensor.im2col.upper, corners)}
    for name, (values, count) in lists.items():
        if len(values) != count:
            message = (
                f"`{name}` needs {format_count('number', count)} for a tensor of rank {tensor.rank}, got {len(values)}"
            )
            yield rules.RANK.report(None, message, help="start with the fastest-varying dimension")


def _check_memory(tensor: TensorMap) -> Iterator[Diagnostic]:
    """Check the parameters of global memory: address, sizes, strides."""
    wide = tensor.interleave is Interleave.B32 or tensor.dtype.is_padded
    alignment = 32 if wide else 16
    why = f" ({'a 32-byte interleave' if tensor.interleave is Interleave.B32 else tensor.dtype.name})" if wide else ""
    if tensor.address % alignment or not 0 <= tensor.address < 2**64:
        yield rules.ADDRESS.report(
            None,
            f"the tensor must be aligned to {alignment} bytes{why}, but its address is {tensor.address:#x}",
            help="allocate the tensor separately, or copy the slice to its own buffer",
        )
    for axis, size in enumerate(tensor.dims):
        if not 1 <= size <= 2**32:
            yield rules.SIZE.report(None, f"dimension {axis} must have 1 to 2^32 elements, got {size}")
    multiple = {ElementType.B4X16: 2}.get(tensor.dtype, _PADDED_WIDTH if tensor.dtype.is_padded else 1)
    if tensor.dims[0] % multiple:
        yield rules.SIZE.report(
            None,
            f"dimension 0 of {tensor.dtype.name} must be a multiple of {multiple}, got {tensor.dims[0]}",
            help=f"pad the rows to a multiple of {multiple} elements",
        )
    for axis, stride in enumerate(tensor.strides, 1):
        if stride % alignment or not 0 <= stride < 2**40:
            yield rules.STRIDE.report(
                None,
                f"the stride of dimension {axis} must be a multiple of {alignment} bytes below 2^40{why}, got {stride}",
                help=f"pad the rows to a multiple of {alignment} bytes",
            )


def _check_access(tensor: TensorMap) -> Iterator[Diagnostic]:
    """Check the parameters of a copy: box or corners, traversal strides."""
    for axis, stride in enumerate(tensor.element_strides):
        if not 1 <= stride <= 8:
            yield rules.ELEMENT_STRIDE.report(
                None, f"the traversal stride of dimension {axis} must be 1 to 8, got {stride}"
            )
    if tensor.im2col is not None:
        yield from _check_corners(tensor, tensor.im2col)
        return
    for axis, size in enumerate(tensor.box):
        if not 1 <= size <= 256:
            yield rules.BOX.report(
                None,
                f"the box must have 1 to 256 elements along dimension {axis}, got {size}",
                help="copy several boxes",
            )
    size = prod(count // step for count, step in zip(tensor.box, tensor.element_strides, strict=True) if step > 0)
    if size * tensor.dtype.shared_bits // 8 > _SHARED_MEMORY:
        message = (
            f"the box has {size * tensor.dtype.shared_bits // 8} bytes, but shared memory has at most {_SHARED_MEMORY}"
        )
        yield rules.BOX.report(None, message, help="copy several boxes")
    if tensor.dtype.is_padded and tensor.box[0] != _PADDED_WIDTH:
        message = f"the box of {tensor.dtype.name} must be {_PADDED_WIDTH} elements wide, got {tensor.box[0]}"
        yield rules.BOX.report(None, message)
    elif tensor.box[0] * tensor.dtype.bits % 128:
        yield rules.BOX.report(
            None,
            f"a row of the box must be a multiple of 16 bytes, got {tensor.box[0]} times {tensor.dtype.bits} bits",
            help=f"make the box a multiple of {128 // tensor.dtype.bits} elements wide",
        )


def _check_corners(tensor: TensorMap, im2col: Im2col) -> Iterator[Diagnostic]:
    bits = CORNER_BITS[tensor.rank] if im2col.mode is Im2colMode.IM2COL else 16
    limit = 1 << (bits - 1)
    for axis, (low, high) in enumerate(zip(im2col.lower, im2col.upper, strict=True), 1):
        if not (-limit <= low < limit and -limit <= high < limit):
            message = f"corners along dimension {axis} must be in [{-limit}, {limit - 1}], got {low} and {high}"
            yield rules.IM2COL.report(None, message)
        elif tensor.dims[axis] + high - low < 1:
            message = f"the box [{low}, {tensor.dims[axis] - 1 + high}] along dimension {axis} is empty"
            yield rules.IM2COL.report(None, message, help="move the corners apart: the upper one counts from the end")
    if not 1 <= im2col.channels <= 256:
        yield rules.IM2COL.report(None, f"im2col copies 1 to 256 channels per pixel, got {im2col.channels}")
    elif tensor.dtype.is_padded and im2col.channels != _PADDED_WIDTH:
        message = f"im2col copies {_PADDED_WIDTH} channels of {tensor.dtype.name} per pixel, got {im2col.channels}"
        yield rules.IM2COL.report(None, message)
    elif im2col.channels * tensor.dtype.bits % 128:
        message = (
            f"the channels of a pixel must be a multiple of 16 bytes, got {im2col.channels} times "
            f"{tensor.dtype.bits} bits"
        )
        help = f"copy a multiple of {128 // tensor.dtype.bits} channels"
        yield rules.IM2COL.report(None, message, help=help)
    if im2col.mode is not Im2colMode.W128 and not 1 <= im2col.pixels <= 1024:
        yield rules.IM2COL.report(None, f"im2col copies 1 to 1024 pixels, got {im2col.pixels}")


def _check_modes(tensor: TensorMap) -> Iterator[Diagnostic]:
    """Check the combination of modes."""
    w_mode = tensor.im2col is not None and tensor.im2col.mode is not Im2colMode.IM2COL
    if tensor.interleave is Interleave.B32 and tensor.swizzle is not Swizzle.B32:
        message = f"a 32-byte interleave needs swizzle B32, got {tensor.swizzle.name}"
        yield rules.INTERLEAVE.report(None, message, help="use Swizzle.B32")
    elif tensor.interleave is not Interleave.NONE and (w_mode or tensor.dtype is ElementType.B6X16_P32):
        subject = "the W modes of im2col" if w_mode else tensor.dtype.name
        yield rules.INTERLEAVE.report(None, f"{subject} cannot be interleaved", help="use Interleave.NONE")
    yield from _check_swizzle(tensor, w_mode)
    if tensor.fill is Fill.NAN and not tensor.dtype.is_float:
        message = f"only floating-point elements can be filled with NaN, not {tensor.dtype.name}"
        yield rules.FILL.report(None, message, help="use Fill.ZERO")


def _check_swizzle(tensor: TensorMap, w_mode: bool) -> Iterator[Diagnostic]:
    modes = _SWIZZLES_OF_PADDED.get(tensor.dtype, tuple(Swizzle))
    modes = tuple(s for s in modes if not w_mode or s in _SWIZZLES_OF_W_MODES)
    if tensor.swizzle not in modes:
        subject = "the W modes of im2col" if w_mode else tensor.dtype.name
        names = ", ".join(s.name for s in modes)
        message = f"swizzle {tensor.swizzle.name} cannot be combined with {subject}; allowed: {names}"
        yield rules.SWIZZLE.report(None, message)
        return
    span = tensor.swizzle.span
    if span and tensor.interleave is Interleave.NONE and tensor.inner_bytes > span:
        wide_enough = [s.name for s in Swizzle if s.span >= tensor.inner_bytes and s in modes]
        elements = span * 8 // tensor.dtype.shared_bits
        remedy = f"copy boxes {elements} elements wide" + (f", or use {wide_enough[0]}" if wide_enough else "")
        message = f"a row of the box is {tensor.inner_bytes} bytes, but swizzle {tensor.swizzle.name} spans {span}"
        yield rules.SWIZZLE.report(None, message, help=remedy)
