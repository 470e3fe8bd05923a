"""64-bit descriptors of matrices in shared memory: `wgmma` ("Matrix Descriptor Format") and `tcgen05` ("Shared memory
descriptor"). Addresses and offsets are multiples of 16 bytes, divided by 16 in the descriptor."""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.isa.descriptors.fields import Fields, mask, pack, unpack
from pyptx.tensormap import Swizzle

_WGMMA: Fields = {"start": (0, 14), "leading": (16, 14), "stride": (32, 14), "base_offset": (49, 3), "swizzle": (62, 2)}
_TCGEN05: Fields = {
    "start": (0, 14), "leading": (16, 14), "stride": (32, 14), "version": (46, 3), "base_offset": (49, 3),
    "lbo_mode": (52, 1), "swizzle": (61, 3),
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
        values = _encode_addresses(self.address, self.leading_byte_offset, self.stride_byte_offset)
        code = _find_code(_WGMMA_CODE, self.swizzle, "wgmma")
        return pack(_WGMMA, {**values, "base_offset": self.base_offset, "swizzle": code})

    @staticmethod
    def decode(bits: int) -> WgmmaDescriptor:
        """Return the descriptor in these 64 bits; unused bits are ignored, as in hardware."""
        fields = unpack(_WGMMA, bits)
        return WgmmaDescriptor(
            fields["start"] << 4,
            fields["leading"] << 4,
            fields["stride"] << 4,
            _find_swizzle(_WGMMA_CODE, fields["swizzle"]),
            fields["base_offset"],
        )


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
        values = _encode_addresses(self.address, self.leading_byte_offset, self.stride_byte_offset)
        code = _find_code(_TCGEN05_CODE, self.swizzle, "tcgen05")
        if self.lbo_mode == 1 and (self.swizzle is not Swizzle.B128 or self.base_offset):
            raise ValueError("an absolute leading address needs the 128-byte swizzle (16-byte atoms) and base offset 0")
        rest = {"version": self.version, "base_offset": self.base_offset, "lbo_mode": self.lbo_mode, "swizzle": code}
        return pack(_TCGEN05, {**values, **rest})

    @staticmethod
    def decode(bits: int) -> Tcgen05Descriptor:
        """Return the descriptor in these 64 bits; ValueError for an invalid swizzle code or reserved bit."""
        fields = unpack(_TCGEN05, bits)
        if stray := bits & ~mask(_TCGEN05):
            raise ValueError(f"a tcgen05 shared-memory descriptor must have 0 in bits {stray:#x}")
        return Tcgen05Descriptor(
            fields["start"] << 4,
            fields["leading"] << 4,
            fields["stride"] << 4,
            _find_swizzle(_TCGEN05_CODE, fields["swizzle"]),
            fields["base_offset"],
            fields["lbo_mode"],
            fields["version"],
        )


def matrix_base_offset(pattern_start: int, swizzle: Swizzle) -> int:
    """Return the base offset for a swizzle pattern that starts at this address: 0 if it is aligned (1024, 512 or 256
    bytes), otherwise the address's bits 7–9."""
    return pattern_start >> 7 & 7 if swizzle.span and pattern_start % swizzle.origin_alignment else 0


def _encode_addresses(address: int, leading: int, stride: int) -> dict[str, int]:
    for noun, value in (("start address", address), ("leading byte offset", leading), ("stride byte offset", stride)):
        if value % 16 or not 0 <= value < _LIMIT:
            raise ValueError(f"the {noun} of a matrix must be a multiple of 16 below 256 KiB, got {value}")
    return {"start": address >> 4, "leading": leading >> 4, "stride": stride >> 4}


def _find_code(codes: dict[Swizzle, int], swizzle: Swizzle, user: str) -> int:
    if swizzle not in codes:
        raise ValueError(f"{user} cannot read swizzle {swizzle.name}; it reads {', '.join(s.name for s in codes)}")
    return codes[swizzle]


def _find_swizzle(codes: dict[Swizzle, int], code: int) -> Swizzle:
    for swizzle, number in codes.items():
        if number == code:
            return swizzle
    raise ValueError(f"there is no swizzle with the code {code}")
