"""The 128 bytes of a tensor map: encoding, decoding, and the effect of `tensormap.replace`.

NVIDIA documents them as opaque. The fields of tiled maps are placed where ptxas 13.5 makes `tensormap.replace` write
them (a test disassembles it); L2 promotion, the im2col fields and two sums of the driver are where a driver for CUDA
13.0 put them for an H200. Maps for a GPU come from the driver, never from here.
"""

from __future__ import annotations

import struct
from math import prod

from pyptx.tensormap.maps import TensorMap
from pyptx.tensormap.modes import ElementType, Fill, Im2col, Im2colMode, Interleave, L2Promotion, Swizzle

SIZE = 128
_WORDS = 32
_MASK32 = 0xFFFFFFFF

# Word 2 holds the choices: (lowest bit, number of bits).
_MODE, _RANK, _ELEMENT, _INTERLEAVE, _SWIZZLE, _FILL = (0, 2), (4, 3), (7, 4), (11, 2), (13, 2), (15, 1)
_TF32, _L2, _ATOMICITY, _ADDRESS_FLAG, _SWIZZLE_96 = (16, 1), (17, 2), (19, 2), (21, 1), (22, 1)
_CHOICES, _STRIDE_LOW, _STRIDE_HIGH, _DIMS, _TRAVERSAL, _BOX, _CORNERS, _PIXELS = 2, 3, 7, 8, 13, 14, 14, 15
_BYTES, _PERIOD, _UPPER_BIT = 16, 18, 16

# TF32 is F32 with a flag, and the packed types use the two codes that this frees.
_ELEMENT_CODE = {e: int(e) for e in ElementType if e <= ElementType.BF16} | {
    ElementType.TF32: 7,
    ElementType.TF32_FTZ: 8,
    ElementType.B4X16: 11,
    ElementType.B4X16_P64: 12,
    ElementType.B6X16_P32: 13,
}
_FLAGGED = (ElementType.TF32, ElementType.TF32_FTZ)
_NO_PERIOD = 16
_CORNER_BITS = {3: 16, 4: 8, 5: 5}


def encode(tensor: TensorMap) -> bytes:
    """Return the 128 bytes of a map, which should have passed `validate`: numbers too wide for their fields are
    truncated."""
    words = [0] * _WORDS
    _put_address(words, tensor.address)
    _put(words, _CHOICES, _RANK, tensor.rank - 1)
    _put_element(words, tensor.dtype)
    _put(words, _CHOICES, _INTERLEAVE, tensor.interleave)
    _put_swizzle_mode(words, tensor.swizzle.mode)
    _put(words, _CHOICES, _ATOMICITY, tensor.swizzle.atomicity)
    _put(words, _CHOICES, _FILL, tensor.fill)
    _put(words, _CHOICES, _L2, tensor.l2_promotion)
    for i, size in enumerate(tensor.dims):
        _put_dim(words, i, size)
    for i, stride in enumerate(tensor.strides):
        _put_stride(words, i, stride)
    for i, step in enumerate(tensor.element_strides):
        _put(words, _TRAVERSAL, (3 * i, 3), step - 1)
    for i, size in enumerate(tensor.box):
        _put_box(words, i, size)
    if tensor.im2col is not None:
        _put_im2col(words, tensor.im2col, tensor.rank)
    words[_BYTES] = _count_whole_steps(tensor) * tensor.dtype.shared_bits // 8 & _MASK32
    words[_PERIOD] = 8 * tensor.swizzle.span or _NO_PERIOD
    return struct.pack("<32I", *words)


def decode(data: bytes) -> TensorMap:
    """Return the map in these 128 bytes; ValueError if they cannot be one. Other bits are ignored."""
    words = _unpack(data)
    rank = _get(words, _CHOICES, _RANK) + 1
    mode = _get(words, _CHOICES, _MODE)
    return TensorMap(
        _read_element(words),
        address=words[0] | words[1] << 32,
        dims=tuple(words[_DIMS + i] + 1 for i in range(_check_rank(rank))),
        strides=tuple(_read_stride(words, i) for i in range(rank - 1)),
        box=() if mode else tuple(_read_box(words, i) for i in range(rank)),
        element_strides=tuple(_get(words, _TRAVERSAL, (3 * i, 3)) + 1 for i in range(rank)),
        interleave=_convert_to_member(Interleave, _get(words, _CHOICES, _INTERLEAVE)),
        swizzle=_read_swizzle(words),
        l2_promotion=L2Promotion(_get(words, _CHOICES, _L2)),
        fill=Fill(_get(words, _CHOICES, _FILL)),
        im2col=_read_im2col(words, Im2colMode(mode), rank) if mode else None,
    )


def replace_field(data: bytes, field: str, value: int, ordinal: int = 0) -> bytes:
    """Return the bytes after `tensormap.replace.tile.<field>` with this new value (and ordinal). Values are those of
    the instruction: sizes and steps count from 1, the rank from 0, choices use the manual's table."""
    words = _unpack(data)
    if field in _REPLACE_ORDINAL:
        limit = 4 if field == "global_stride" else 5
        if not 0 <= ordinal < limit:
            raise ValueError(f"`.{field}` must have an ordinal from 0 to {limit - 1}, got {ordinal}")
        _REPLACE_ORDINAL[field](words, ordinal, value)
    elif field in _REPLACE:
        _REPLACE[field](words, value)
    else:
        raise ValueError(
            f"tensormap.replace has no field `.{field}`; the fields are {', '.join((*_REPLACE, *_REPLACE_ORDINAL))}"
        )
    return struct.pack("<32I", *words)


def _unpack(data: bytes) -> list[int]:
    if len(data) != SIZE:
        raise ValueError(f"a tensor map has {SIZE} bytes, got {len(data)}")
    return list(struct.unpack("<32I", data))


def _put(words: list[int], word: int, field: tuple[int, int], value: int) -> None:
    low, width = field
    mask = ((1 << width) - 1) << low
    words[word] = words[word] & ~mask | value << low & mask


def _get(words: list[int], word: int, field: tuple[int, int]) -> int:
    low, width = field
    return words[word] >> low & ((1 << width) - 1)


def _put_address(words: list[int], address: int) -> None:
    words[0], words[1] = address & _MASK32, address >> 32 & _MASK32
    _put(words, _CHOICES, _ADDRESS_FLAG, 0)


def _put_rank(words: list[int], value: int) -> None:
    _put(words, _CHOICES, _RANK, value)


def _put_element(words: list[int], value: int) -> None:
    """Set the element type. The TF32 flag is set and never cleared, as in ptxas: a map that was TF32 remains so until
    it is created anew."""
    element = ElementType(value)
    _put(words, _CHOICES, _ELEMENT, _ELEMENT_CODE[element])
    if element in _FLAGGED:
        _put(words, _CHOICES, _TF32, 1)


def _put_swizzle_mode(words: list[int], value: int) -> None:
    _put(words, _CHOICES, _SWIZZLE, 0 if value == Swizzle.B96.mode else value)
    _put(words, _CHOICES, _SWIZZLE_96, int(value == Swizzle.B96.mode))


def _put_interleave(words: list[int], value: int) -> None:
    _put(words, _CHOICES, _INTERLEAVE, value)


def _put_atomicity(words: list[int], value: int) -> None:
    _put(words, _CHOICES, _ATOMICITY, value)


def _put_fill(words: list[int], value: int) -> None:
    _put(words, _CHOICES, _FILL, value)


def _put_dim(words: list[int], i: int, size: int) -> None:
    words[_DIMS + i] = size - 1 & _MASK32


def _put_stride(words: list[int], i: int, stride: int) -> None:
    words[_STRIDE_LOW + i] = stride >> 4 & _MASK32
    _put(words, _STRIDE_HIGH, (4 * i, 4), stride >> 36)


def _put_traversal(words: list[int], i: int, step: int) -> None:
    _put(words, _TRAVERSAL, (3 * i, 3), step - 1)


def _put_box(words: list[int], i: int, size: int) -> None:
    word, field = (_TRAVERSAL, (24, 8)) if i == 0 else (_BOX, (8 * (i - 1), 8))
    _put(words, word, field, size - 1)


_REPLACE = {
    "global_address": _put_address,
    "rank": _put_rank,
    "elemtype": _put_element,
    "interleave_layout": _put_interleave,
    "swizzle_mode": _put_swizzle_mode,
    "swizzle_atomicity": _put_atomicity,
    "fill_mode": _put_fill,
}
_REPLACE_ORDINAL = {
    "box_dim": _put_box,
    "global_dim": _put_dim,
    "global_stride": _put_stride,
    "element_stride": _put_traversal,
}


def _count_whole_steps(tensor: TensorMap) -> int:
    """Return the elements of the box in whole steps, as the driver counts them."""
    if tensor.im2col is not None:
        return prod(tensor.steps)
    return prod(size // step for size, step in zip(tensor.box, tensor.element_strides, strict=True))


def _put_im2col(words: list[int], im2col: Im2col, rank: int) -> None:
    _put(words, _CHOICES, _MODE, im2col.mode)
    _put(words, _TRAVERSAL, (24, 8), im2col.channels - 1)
    words[_PIXELS] = im2col.pixels - 1 & _MASK32
    width = _compute_corner_width(im2col.mode, rank)
    for i, (low, high) in enumerate(zip(im2col.lower, im2col.upper, strict=True)):
        _put(words, _CORNERS, (width * i, width), low)
        _put(words, _CORNERS, (width * i + _UPPER_BIT, width), high)


def _read_im2col(words: list[int], mode: Im2colMode, rank: int) -> Im2col:
    width = _compute_corner_width(mode, rank)
    count = rank - 2 if mode is Im2colMode.IM2COL else 1
    return Im2col(
        tuple(_convert_to_signed(_get(words, _CORNERS, (width * i, width)), width) for i in range(count)),
        tuple(_convert_to_signed(_get(words, _CORNERS, (width * i + _UPPER_BIT, width)), width) for i in range(count)),
        channels=_get(words, _TRAVERSAL, (24, 8)) + 1,
        pixels=words[_PIXELS] + 1,
        mode=mode,
    )


def _compute_corner_width(mode: Im2colMode, rank: int) -> int:
    if rank not in _CORNER_BITS:
        raise ValueError(f"im2col needs a tensor of 3 to 5 dimensions, got {rank}")
    return _CORNER_BITS[rank] if mode is Im2colMode.IM2COL else 16


def _convert_to_signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


def _check_rank(rank: int) -> int:
    if rank > 5:
        raise ValueError(f"not a tensor map: it has {rank} dimensions, but the maximum is 5")
    return rank


def _read_element(words: list[int]) -> ElementType:
    code = _get(words, _CHOICES, _ELEMENT)
    has_flag = bool(_get(words, _CHOICES, _TF32)) and code in (7, 8)
    for element, number in _ELEMENT_CODE.items():
        if number == code and (element in _FLAGGED) == has_flag:
            return element
    raise ValueError(f"not a tensor map: element type code {code} is unknown")


def _read_stride(words: list[int], i: int) -> int:
    return (words[_STRIDE_LOW + i] | _get(words, _STRIDE_HIGH, (4 * i, 4)) << 32) << 4


def _read_box(words: list[int], i: int) -> int:
    return (_get(words, _TRAVERSAL, (24, 8)) if i == 0 else _get(words, _BOX, (8 * (i - 1), 8))) + 1


def _convert_to_member(kind: type[Interleave], value: int) -> Interleave:
    if value not in set(kind):
        raise ValueError(f"not a tensor map: {kind.__name__.lower()} code {value} is unknown")
    return kind(value)


def _read_swizzle(words: list[int]) -> Swizzle:
    """Return the swizzle. Atomicity matters only for the 128-byte swizzle: `tensormap.replace` sets the two fields
    separately."""
    if _get(words, _CHOICES, _SWIZZLE_96):
        return Swizzle.B96
    mode = _get(words, _CHOICES, _SWIZZLE)
    atomicity = _get(words, _CHOICES, _ATOMICITY) if mode == Swizzle.B128.mode else 0
    return next(s for s in Swizzle if (s.mode, s.atomicity) == (mode, atomicity))
