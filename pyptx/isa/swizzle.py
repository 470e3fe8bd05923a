"""Swizzled byte offsets in shared memory: where TMA, wgmma and tcgen05 place a byte, and which byte lies there.

Offsets count from the origin of the pattern, which is aligned to `Swizzle.origin_alignment` bytes; the pattern depends
only on address bits, so an address works as well as an offset. PTX manual, "Swizzling Modes".
"""

from __future__ import annotations

from pyptx.tensormap import Swizzle

_BY_NAME = {
    "NONE": Swizzle.NONE, "INTERLEAVE": Swizzle.NONE, "32B": Swizzle.B32, "64B": Swizzle.B64, "96B": Swizzle.B96,
    "128B": Swizzle.B128, "128B_BASE32B": Swizzle.B128_ATOM_32B, "128B_ATOM_32B": Swizzle.B128_ATOM_32B,
    "128B_ATOM_32B_FLIP_8B": Swizzle.B128_ATOM_32B_FLIP_8B, "128B_ATOM_64B": Swizzle.B128_ATOM_64B,
}  # fmt: skip


def find_swizzle(name: str | Swizzle | None) -> Swizzle:
    """Return the swizzle of this name (`"128B"`, `"128B_ATOM_32B"`, None …); ValueError lists them."""
    if isinstance(name, Swizzle):
        return name
    key = "NONE" if name is None else name.upper().removeprefix("SWIZZLE_")
    if key not in _BY_NAME:
        raise ValueError(f"there is no swizzle {name!r}; the swizzles are {', '.join(_BY_NAME)}")
    return _BY_NAME[key]


def xor_terms(mode: Swizzle) -> tuple[tuple[int, int], ...]:
    """Return the pattern as pairs (mask, shift): the offset is XORed with each `(offset & mask) >> shift`."""
    return _TERMS[mode]


def swizzle(offset: int, mode: Swizzle) -> int:
    """Return the swizzled offset of the byte at this linear offset, and the reverse: the bits that are read never
    change."""
    for mask, shift in _TERMS[mode]:
        offset ^= (offset & mask) >> shift
    return offset


def period(mode: Swizzle) -> int:
    """Return the number of bytes after which the pattern repeats."""
    return 1 << max((mask.bit_length() for mask, _ in _TERMS[mode]), default=4)


# (mask of the bits that are read, right shift). Chunks of 16 bytes are bits 4–6, lines are bits 7–9.
_TERMS: dict[Swizzle, tuple[tuple[int, int], ...]] = {
    Swizzle.NONE: (),
    Swizzle.B32: ((0x080, 3),),
    Swizzle.B64: ((0x180, 3),),
    Swizzle.B96: ((0x080, 3),),
    Swizzle.B128: ((0x380, 3),),
    Swizzle.B128_ATOM_32B: ((0x180, 2),),
    Swizzle.B128_ATOM_32B_FLIP_8B: ((0x180, 2), (0x080, 4)),
    Swizzle.B128_ATOM_64B: ((0x080, 1),),
}
