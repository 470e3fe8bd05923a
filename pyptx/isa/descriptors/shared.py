"""64-bit descriptors of matrices in shared memory: `wgmma` ("Matrix Descriptor Format") and `tcgen05` ("Shared memory
descriptor"). Addresses and offsets are multiples of 16 bytes, divided by 16 in the descriptor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyptx.isa.descriptors.fields import Fields, mask, pack_attributes, unpack
from pyptx.tensormap import Swizzle

_ADDRESSES: Fields = {"address": (0, 14), "leading_byte_offset": (16, 14), "stride_byte_offset": (32, 14)}
_WGMMA: Fields = {**_ADDRESSES, "base_offset": (49, 3), "swizzle": (62, 2)}
_TCGEN05: Fields = {
    **_ADDRESSES, "version": (46, 3), "base_offset": (49, 3), "lbo_mode": (52, 1), "swizzle": (61, 3),
}  # fmt: skip
_WGMMA_CODE = {Swizzle.NONE: 0, Swizzle.B128: 1, Swizzle.B64: 2, Swizzle.B32: 3}
_TCGEN05_CODE = {Swizzle.NONE: 0, Swizzle.B128_ATOM_32B: 1, Swizzle.B128: 2, Swizzle.B64: 4, Swizzle.B32: 6}
_LIMIT = 1 << 18


@dataclass(frozen=True, slots=True)
class WgmmaDescriptor:
    """A shared-memory operand of `wgmma.mma_async`."""

    address: int
    leading_byte_offset: int
    stride_byte_offset: int
    swizzle: Swizzle = Swizzle.NONE
    base_offset: int = 0

    def encode(self) -> int:
        """Return the 64 bits; ValueError for values that they cannot encode."""
        return pack_attributes(_WGMMA, _encode(self, _WGMMA_CODE, "wgmma"), self)

    @staticmethod
    def decode(bits: int) -> WgmmaDescriptor:
        """Return the descriptor in these 64 bits; unused bits are ignored, as in hardware."""
        return WgmmaDescriptor(**_decode(_WGMMA, _WGMMA_CODE, bits))


@dataclass(frozen=True, slots=True)
class Tcgen05Descriptor:
    """A shared-memory operand of `tcgen05.mma` or `tcgen05.cp`. `lbo_mode` 1: `leading_byte_offset` is an address (of
    the second chunk of a 48-byte K, sm_103a only). `version` is 1 on every Blackwell."""

    address: int
    leading_byte_offset: int
    stride_byte_offset: int
    swizzle: Swizzle = Swizzle.NONE
    base_offset: int = 0
    lbo_mode: int = 0
    version: int = 1

    def encode(self) -> int:
        """Return the 64 bits; ValueError for values that they cannot encode."""
        codes = _encode(self, _TCGEN05_CODE, "tcgen05")
        if self.lbo_mode == 1 and (self.swizzle is not Swizzle.B128 or self.base_offset):
            raise ValueError("an absolute leading address needs the 128-byte swizzle (16-byte atoms) and base offset 0")
        return pack_attributes(_TCGEN05, codes, self)

    @staticmethod
    def decode(bits: int) -> Tcgen05Descriptor:
        """Return the descriptor in these 64 bits; ValueError for an invalid swizzle code or reserved bit."""
        if stray := bits & ~mask(_TCGEN05):
            raise ValueError(f"a tcgen05 shared-memory descriptor must have 0 in bits {stray:#x}")
        return Tcgen05Descriptor(**_decode(_TCGEN05, _TCGEN05_CODE, bits))


def matrix_base_offset(pattern_start: int, swizzle: Swizzle) -> int:
    """Return the base offset for a swizzle pattern that starts at this address: 0 if it is aligned (1024, 512 or 256
    bytes), otherwise the address's bits 7–9."""
    return pattern_start >> 7 & 7 if swizzle.span and pattern_start % swizzle.origin_alignment else 0


def _encode(descriptor: WgmmaDescriptor | Tcgen05Descriptor, swizzles: dict[Swizzle, int], user: str) -> dict[str, int]:
    """Return the codes of the addresses and the swizzle."""
    codes: dict[str, int] = {}
    for name in _ADDRESSES:
        value = getattr(descriptor, name)
        if value % 16 or not 0 <= value < _LIMIT:
            raise ValueError(
                f"the {name.replace('_', ' ')} of a matrix must be a multiple of 16 below 256 KiB, got {value}"
            )
        codes[name] = value >> 4
    if descriptor.swizzle not in swizzles:
        names = ", ".join(swizzle.name for swizzle in swizzles)
        raise ValueError(f"{user} cannot read swizzle {descriptor.swizzle.name}; it reads {names}")
    return codes | {"swizzle": swizzles[descriptor.swizzle]}


def _decode(fields: Fields, swizzles: dict[Swizzle, int], bits: int) -> dict[str, Any]:
    """Return the arguments of the descriptor in these bits."""
    codes = unpack(fields, bits)
    addresses = {name: codes[name] << 4 for name in _ADDRESSES}
    return {**codes, **addresses, "swizzle": _find_swizzle(swizzles, codes["swizzle"])}


def _find_swizzle(codes: dict[Swizzle, int], code: int) -> Swizzle:
    for swizzle, number in codes.items():
        if number == code:
            return swizzle
    raise ValueError(f"there is no swizzle with the code {code}")
