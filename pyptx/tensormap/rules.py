"""What each PTX12xx code means: the driver's demands on a tensor map. `wrong` and `right` are Python expressions."""

from __future__ import annotations

from pyptx.diagnostics import Rule

_MAP = "TensorMap(ElementType.F16, {address}, dims={dims}, strides={strides}, box={box}{more})"
_GOOD = {"address": "0x1000", "dims": "(256, 64)", "strides": "(512,)", "box": "(64, 64)", "more": ""}


def _format_example(**changed: str) -> str:
    return _MAP.format(**{**_GOOD, **changed})


RANK = Rule(
    "PTX1201",
    "tensor map of a rank that TMA does not have",
    "A tensor has 1 to 5 dimensions, 3 to 5 with an interleave or im2col, and one entry for each in every list.",
    _format_example(box="(64,)"),
    _format_example(),
)
ADDRESS = Rule(
    "PTX1202",
    "tensor at an address that TMA cannot use",
    "The first element lies on 16 bytes; on 32 with a 32-byte interleave or a padded element type.",
    _format_example(address="0x1008"),
    _format_example(),
)
SIZE = Rule(
    "PTX1203",
    "tensor size out of range",
    "Every dimension has 1 to 2^32 elements; the inner one of packed types is a multiple of what is packed together.",
    _format_example(dims="(256, 0)"),
    _format_example(),
)
STRIDE = Rule(
    "PTX1204",
    "tensor stride that TMA cannot express",
    "Strides are multiples of 16 bytes below 2^40 (of 32 with a 32-byte interleave or a padded element type).",
    _format_example(strides="(500,)"),
    _format_example(),
)
BOX = Rule(
    "PTX1205",
    "box out of range",
    "A copy takes 1 to 256 elements along each dimension, and along the inner one a multiple of 16 bytes.",
    _format_example(box="(64, 512)"),
    _format_example(),
)
ELEMENT_STRIDE = Rule(
    "PTX1206",
    "traversal stride out of range",
    "Along each dimension a copy takes every element, or every second to eighth.",
    _format_example(more=", element_strides=(1, 9)"),
    _format_example(more=", element_strides=(1, 8)"),
)
INTERLEAVE = Rule(
    "PTX1207",
    "interleave that does not go with the rest",
    "A 32-byte interleave needs the 32-byte swizzle; 6-bit elements and the W modes of im2col have no interleave.",
    _format_example(dims="(8, 8, 8)", strides="(128, 1024)", box="(8, 8, 8)", more=", interleave=Interleave.B32"),
    _format_example(
        dims="(8, 8, 8)",
        strides="(128, 1024)",
        box="(8, 8, 8)",
        more=", interleave=Interleave.B32, swizzle=Swizzle.B32",
    ),
)
SWIZZLE = Rule(
    "PTX1208",
    "swizzle that does not go with the rest",
    "A row of the box fits into the swizzle's span; padded element types and the W modes of im2col allow a few only.",
    _format_example(more=", swizzle=Swizzle.B64"),
    _format_example(more=", swizzle=Swizzle.B128"),
)
FILL = Rule(
    "PTX1209",
    "NaN fill of elements that are not floats",
    "Only floating-point elements can be NaN.",
    _format_example(more=", fill=Fill.NAN").replace("F16", "U16"),
    _format_example(more=", fill=Fill.NAN"),
)
IM2COL = Rule(
    "PTX1210",
    "im2col box out of range",
    "Corners are signed numbers of 16, 8 or 5 bits for rank 3, 4 or 5, enclose something, and a copy takes up to 256 "
    "channels of up to 1024 pixels.",
    _format_example(dims="(8, 8, 8)", strides="(16, 128)", box="()", more=", im2col=Im2col((0,), (-8,), 8, 8)"),
    _format_example(dims="(8, 8, 8)", strides="(16, 128)", box="()", more=", im2col=Im2col((0,), (-7,), 8, 8)"),
)

RULES = (RANK, ADDRESS, SIZE, STRIDE, BOX, ELEMENT_STRIDE, INTERLEAVE, SWIZZLE, FILL, IM2COL)
