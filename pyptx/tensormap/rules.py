"""Rules PTX1201 to PTX1210: invalid tensor maps. `wrong` and `right` are Python expressions that build a map."""

from __future__ import annotations

from pyptx.diagnostics import Rule

_MAP = "TensorMap(ElementType.F16, {address}, dims={dims}, strides={strides}, box={box}{more})"
_GOOD = {"address": "0x1000", "dims": "(256, 64)", "strides": "(512,)", "box": "(64, 64)", "more": ""}


def _format_example(**changes: str) -> str:
    return _MAP.format(**{**_GOOD, **changes})


RANK = Rule(
    "PTX1201",
    "invalid tensor map rank",
    "A tensor has 1 to 5 dimensions (3 to 5 with an interleave or im2col), and every list has one entry per dimension.",
    _format_example(box="(64,)"),
    _format_example(),
)
ADDRESS = Rule(
    "PTX1202",
    "misaligned tensor address",
    "The first element must be 16-byte aligned, or 32-byte aligned with a 32-byte interleave or a padded element type.",
    _format_example(address="0x1008"),
    _format_example(),
)
SIZE = Rule(
    "PTX1203",
    "tensor size out of range",
    "Every dimension has 1 to 2^32 elements; the inner dimension of a packed type must be a multiple of its packing.",
    _format_example(dims="(256, 0)"),
    _format_example(),
)
STRIDE = Rule(
    "PTX1204",
    "invalid tensor stride",
    (
        "Strides must be multiples of 16 bytes below 2^40 (of 32 bytes with a 32-byte interleave or a padded element "
        "type)."
    ),
    _format_example(strides="(500,)"),
    _format_example(),
)
BOX = Rule(
    "PTX1205",
    "box out of range",
    "A box has 1 to 256 elements along each dimension; its inner dimension must be a multiple of 16 bytes.",
    _format_example(box="(64, 512)"),
    _format_example(),
)
ELEMENT_STRIDE = Rule(
    "PTX1206",
    "traversal stride out of range",
    "The traversal stride of each dimension must be 1 to 8 elements.",
    _format_example(more=", element_strides=(1, 9)"),
    _format_example(more=", element_strides=(1, 8)"),
)
INTERLEAVE = Rule(
    "PTX1207",
    "incompatible interleave",
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
    "incompatible swizzle",
    (
        "A row of the box must fit into the swizzle span; padded element types and the W modes of im2col allow only "
        "some swizzles."
    ),
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
    "Corners are signed 16-, 8- or 5-bit numbers for rank 3, 4 or 5. The box must not be empty, and a copy takes up "
    "to 256 channels of up to 1024 pixels.",
    _format_example(dims="(8, 8, 8)", strides="(16, 128)", box="()", more=", im2col=Im2col((0,), (-8,), 8, 8)"),
    _format_example(dims="(8, 8, 8)", strides="(16, 128)", box="()", more=", im2col=Im2col((0,), (-7,), 8, 8)"),
)

RULES = (RANK, ADDRESS, SIZE, STRIDE, BOX, ELEMENT_STRIDE, INTERLEAVE, SWIZZLE, FILL, IM2COL)
