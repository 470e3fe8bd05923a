"""The zero-column mask descriptor of `tcgen05.mma.ws`: which columns of B are treated as zero.

"Zero-Column Mask Descriptor" describes the two spans in contradiction to its own four worked examples. This module
follows the names and the examples, which agree: a skipped column is a 1 in the mask (zeros), a used column a 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.isa.descriptors.fields import Fields, mask, pack, unpack

_FIELDS: Fields = {
    **{f"start{i}": (8 * i, 8) for i in range(4)},
    **{f"first{i}": (32 + i, 1) for i in range(4)},
    "non_zero": (39, 1), "skip": (40, 8), "use": (48, 8), "shift": (56, 6),
}  # fmt: skip
SUB_MASKS = {128: 1, 64: 2, 32: 4}
"""The number of sub-masks for each M."""


@dataclass(frozen=True, slots=True)
class ZeroColumnMask:
    """Alternating runs of `skip` zeroed and `use` used columns. Per sub-mask: `starts` omits columns at the start of
    the pattern, `firsts` selects the first run (1: skipped). Without `non_zero` every column is used."""

    skip: int
    use: int
    starts: tuple[int, int, int, int] = (0, 0, 0, 0)
    firsts: tuple[int, int, int, int] = (0, 0, 0, 0)
    shift: int = 0
    non_zero: bool = True

    def encode(self) -> int:
        """Return the 64 bits; ValueError for values that they cannot encode."""
        values = {f"start{i}": n for i, n in enumerate(self.starts)} | {
            f"first{i}": n for i, n in enumerate(self.firsts)
        }
        values |= {"non_zero": int(self.non_zero), "skip": self.skip - 1, "use": self.use - 1, "shift": self.shift}
        return pack(_FIELDS, values)

    @staticmethod
    def decode(bits: int) -> ZeroColumnMask:
        """Return the mask in these 64 bits; ValueError for reserved bits that are not 0."""
        if stray := bits & ~mask(_FIELDS):
            raise ValueError(f"a zero-column mask must have 0 in bits {stray:#x}")
        f = unpack(_FIELDS, bits)
        return ZeroColumnMask(
            f["skip"] + 1,
            f["use"] + 1,
            (f["start0"], f["start1"], f["start2"], f["start3"]),
            (f["first0"], f["first1"], f["first2"], f["first3"]),
            f["shift"],
            bool(f["non_zero"]),
        )

    def columns(self, m: int, n: int) -> int:
        """Return the mask of an M x N operation: bit *i* set means that column *i* (before the shift) is zero."""
        if m not in SUB_MASKS:
            raise ValueError(f"zero-column masks need M = {', '.join(map(str, SUB_MASKS))}, not {m}")
        width = n // SUB_MASKS[m]
        return sum(self._build_sub_mask(i, width) << i * width for i in range(SUB_MASKS[m])) if self.non_zero else 0

    def _build_sub_mask(self, i: int, width: int) -> int:
        period = self.skip + self.use
        used_first = self.use if self.firsts[i] == 0 else 0
        bits = (((self.starts[i] + column - used_first) % period < self.skip) << column for column in range(width))
        return sum(bits)
