"""The modes of a tensor map: element types, swizzles, interleave, fill, L2 promotion, im2col boxes.

Values are those that PTX's `tensormap.replace` writes; the driver's enumerations differ and are listed beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from pyptx.numbers import FORMATS, Format, Kind
from pyptx.types import ALL, PtxType


class ElementType(IntEnum):
    """The element type of a tensor map. Every 16 elements of the padded types fill 16 bytes of shared memory."""

    U8 = 0
    U16 = 1
    U32 = 2
    S32 = 3
    U64 = 4
    S64 = 5
    F16 = 6
    F32 = 7
    F32_FTZ = 8
    F64 = 9
    BF16 = 10
    TF32 = 11
    TF32_FTZ = 12
    B4X16 = 13
    B4X16_P64 = 14
    B6X16_P32 = 15

    @property
    def format(self) -> Format | None:
        """The format of an element, or None for the packs of 4 and 6 bits."""
        return _FORMAT.get(self)

    @property
    def bits(self) -> int:
        """The width of one element in global memory."""
        form = self.format
        return _PACKED_BITS[self] if form is None else form.width

    @property
    def shared_bits(self) -> int:
        """The width of one element in shared memory, padding included."""
        return 8 if self.is_padded else self.bits

    @property
    def is_padded(self) -> bool:
        """Tell whether elements take more space in shared memory than in global memory."""
        return self in (ElementType.B4X16_P64, ElementType.B6X16_P32)

    @property
    def is_rounded(self) -> bool:
        """Tell whether loads round the elements."""
        return self in (ElementType.TF32, ElementType.TF32_FTZ)

    @property
    def is_float(self) -> bool:
        """Tell whether out-of-bounds elements can be NaN."""
        form = self.format
        return form is not None and form.kind is Kind.FLOAT

    @property
    def driver_value(self) -> int:
        """The value of CUtensorMapDataType."""
        return _DRIVER_VALUE.get(self, int(self))


_PACKED_BITS = {ElementType.B4X16: 4, ElementType.B4X16_P64: 4, ElementType.B6X16_P32: 6}
_FORMAT = {
    element: FORMATS[element.name.removesuffix("_FTZ").lower()] for element in ElementType
    if element not in _PACKED_BITS
}  # fmt: skip
_DRIVER_VALUE = {ElementType.F64: 8, ElementType.BF16: 9, ElementType.F32_FTZ: 10}

_OF_PACKED_TYPE = {"e2m1x2": ElementType.U8, "f16x2": ElementType.U32, "bf16x2": ElementType.U32}
_OF_SMALL_FLOAT = {4: ElementType.B4X16, 6: ElementType.B6X16_P32, 8: ElementType.U8}


def element_type(dtype: PtxType) -> ElementType:
    """Return the element type of a tensor map for elements of this type; ValueError if TMA cannot move single elements
    of it."""
    element = _find_element(dtype.name)
    if element is None:
        names = [t.name for t in ALL if _find_element(t.name) is not None]
        raise ValueError(f"TMA has no element type for {dtype}; the types are {', '.join(names)}")
    return element


def _find_element(name: str) -> ElementType | None:
    """Return the element type named like a format, else one of its width."""
    form = FORMATS.get(name)
    if form is None:
        return _OF_PACKED_TYPE.get(name)
    if form.kind in (Kind.FLOAT, Kind.POWER) and form.width <= 8:
        return _OF_SMALL_FLOAT[form.width]
    names = () if form.kind is Kind.FIXED else (name.upper(), f"U{form.width}")
    return next((ElementType[name] for name in names if name in ElementType.__members__), None)


class Interleave(IntEnum):
    """Whether channels are grouped in slices of 16 or 32 bytes."""

    NONE = 0
    B16 = 1
    B32 = 2

    @property
    def slice_bytes(self) -> int:
        """The bytes of a slice, 0 without an interleave."""
        return 16 * self


class Fill(IntEnum):
    """The value of elements outside the tensor."""

    ZERO = 0
    NAN = 1


class L2Promotion(IntEnum):
    """The number of bytes that L2 fetches at a time."""

    NONE = 0
    B64 = 1
    B128 = 2
    B256 = 3


class Swizzle(Enum):
    """How chunks of `atom` bytes are permuted within `span` bytes of shared memory, line by line. Values: the
    `swizzle_mode` and `swizzle_atomicity` of `tensormap.replace`, span, atom."""

    NONE = (0, 0, 0, 0)
    B32 = (1, 0, 32, 16)
    B64 = (2, 0, 64, 16)
    B128 = (3, 0, 128, 16)
    B96 = (4, 0, 96, 16)
    B128_ATOM_32B = (3, 1, 128, 32)
    B128_ATOM_32B_FLIP_8B = (3, 2, 128, 32)
    B128_ATOM_64B = (3, 3, 128, 64)

    @property
    def mode(self) -> int:
        """The value of `tensormap.replace.tile.swizzle_mode`."""
        return self.value[0]

    @property
    def atomicity(self) -> int:
        """The value of `tensormap.replace.tile.swizzle_atomicity`."""
        return self.value[1]

    @property
    def span(self) -> int:
        """The number of bytes of a row that the pattern covers, 0 without swizzle."""
        return self.value[2]

    @property
    def atom(self) -> int:
        """The number of bytes that stay together, 0 without swizzle."""
        return self.value[3]

    @property
    def flips_8_bytes(self) -> bool:
        """Tell whether the halves of every 16 bytes are swapped in odd lines."""
        return self is Swizzle.B128_ATOM_32B_FLIP_8B

    @property
    def driver_value(self) -> int | None:
        """The value of CUtensorMapSwizzle; None for the one that the driver does not support."""
        return None if self is Swizzle.B96 else self.mode + self.atomicity

    @property
    def origin_alignment(self) -> int:
        """The alignment at which the repeating pattern starts, 16 bytes without swizzle."""
        return {0: 16, 32: 256, 64: 512, 96: 256, 128: 1024}[self.span]


class Im2colMode(IntEnum):
    """The pixels loaded of a convolution's input: along N, D, H, W; along W; 128 of W."""

    IM2COL = 1
    W = 2
    W128 = 3


@dataclass(frozen=True, slots=True)
class Im2col:
    """The box of an im2col load. Corners are offsets of the box from the image's borders, fastest dimension (W) first;
    the W modes have one. `pixels` is ignored by W128."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int
    mode: Im2colMode = Im2colMode.IM2COL
