"""spcompress and spdecompress: structured sparsity in registers (PTX 9.4, in no manual of ours; ptxas' rules).

`.xN` counts 32-bit registers, `.sp::s:t` says how many of how many elements stay, then come the widths of an element
and of its index. An operand has as many registers as its bits fill, at least one.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from pyptx.isa.model import Form
from pyptx.isa.notation import form

MEANING = {
    "spcompress": "Keep two of every four elements, with their indices.",
    "spdecompress": "Restore the kept elements to their positions, with zeros between them.",
}

_COMPRESS = "data-movement-and-conversion-instructions-spcompress"
_DECOMPRESS = "data-movement-and-conversion-instructions-spdecompress"
_SINCE = "9.4,sm_107a"
_NUMBERS = (1, 2, 4, 8, 16, 32, 64)
_RATIOS = ((1, 2), (1, 4), (2, 4), (1, 8), (1, 16), (2, 8), (2, 16), (4, 8), (4, 16))


def _registers(bits: int) -> str:
    """Return the count of `.xN` times bits / 32 registers as the notation says it."""
    common = gcd(bits, 32)
    times, by = bits // common, 32 // common
    return "*num" + (f"*{times}" if times > 1 else f"/{by}" if by > 1 else "")


def _decompressions() -> Iterator[Form]:
    for nonzeros, of in _RATIOS:
        for element in (8, 16):
            for index in (2, 4):
                if nonzeros * element > 32 or (index == 2 and of > 4):
                    continue
                bits = of * element
                numbers = [n for n in _NUMBERS if 32 <= n * bits <= 128 * 32]
                yield form(
                    f"spdecompress.num.sp::{nonzeros}:{of}.b{element}.b{index}  d:w.b32{_registers(bits)}, "
                    f"metadata:.b32{_registers(nonzeros * index)}, values:.b32{_registers(nonzeros * element)}",
                    num=" ".join(f"x{n}" for n in numbers), since=_SINCE, see=_DECOMPRESS,
                )  # fmt: skip


_X = "x1 x2 x4 x8 x16 x32 x64"

FORMS = (
    form(
        "spcompress.num.sp::2:4.b8.b2   metadata:w.b32*num/4, values:w.b32*num, a:.b32*num*2, descriptor:reg.b32",
        num=_X, since=_SINCE, see=_COMPRESS,
    ),
    form(
        "spcompress.num.sp::2:4.b8.b4   metadata:w.b32*num/2, values:w.b32*num, a:.b32*num*2, descriptor:reg.b32",
        num=_X, since=_SINCE, see=_COMPRESS,
    ),
    form(
        "spcompress.num.sp::2:4.b16.b2  metadata:w.b32*num/8, values:w.b32*num, a:.b32*num*2, descriptor:reg.b32",
        num=_X, since=_SINCE, see=_COMPRESS,
    ),
    form(
        "spcompress.num.sp::2:4.b16.b4  metadata:w.b32*num/4, values:w.b32*num, a:.b32*num*2, descriptor:reg.b32",
        num=_X, since=_SINCE, see=_COMPRESS,
    ),
    *_decompressions(),
)  # fmt: skip
