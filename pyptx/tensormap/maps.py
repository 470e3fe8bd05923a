"""The tensor map as a value, and derived sizes and copy lengths."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pyptx.tensormap.modes import ElementType, Fill, Im2col, Im2colMode, Interleave, L2Promotion, Swizzle

W128_PIXELS = 128


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor as TMA sees it; every tuple starts with the fastest dimension. `strides` are bytes between neighbors
    in dimensions 1 and up (dimension 0 is contiguous). `box` belongs to tiled maps, `im2col` to the others."""

    dtype: ElementType
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    interleave: Interleave = Interleave.NONE
    swizzle: Swizzle = Swizzle.NONE
    l2_promotion: L2Promotion = L2Promotion.NONE
    fill: Fill = Fill.ZERO
    im2col: Im2col | None = None

    def __post_init__(self) -> None:
        if not self.element_strides:
            object.__setattr__(self, "element_strides", (1,) * len(self.dims))

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def steps(self) -> tuple[int, ...]:
        """The elements copied along each dimension of the box; for im2col, channels and pixels."""
        if self.im2col is not None:
            pixels = W128_PIXELS if self.im2col.mode is Im2colMode.W128 else self.im2col.pixels
            return (self.im2col.channels, pixels)
        strides = (1 if self.interleave is Interleave.NONE else self.element_strides[0], *self.element_strides[1:])
        counts = tuple(-(-size // stride) for size, stride in zip(self.box, strides, strict=True))
        # Measured on an H200: dimension 0 of an interleaved tensor counts slices side by side, and the last but one
        # counts the slices of a position, of which a copy takes one.
        return counts if self.interleave is Interleave.NONE else (*counts[:-2], 1, counts[-1])

    @property
    def unit_bits(self) -> int:
        """The bits of shared memory per step of dimension 0: those of an element, or of an interleaved slice."""
        return 8 * self.interleave.slice_bytes or self.dtype.shared_bits

    @property
    def inner_bytes(self) -> int:
        """The bytes of one row of the box in shared memory, which must fit into the swizzle span."""
        inner = self.im2col.channels if self.im2col is not None else self.box[0]
        return inner * self.dtype.shared_bits // 8

    @property
    def has_gaps(self) -> bool:
        """Tell whether rows of the box are shorter than the span of the swizzle, so that gaps follow them in shared
        memory (measured on an H200)."""
        return self.interleave is Interleave.NONE and self._row_bytes < self.swizzle.span

    @property
    def footprint(self) -> int:
        """The bytes of shared memory that the box covers, including gaps."""
        return prod(self.steps[1:]) * (self.swizzle.span if self.has_gaps else self._row_bytes)

    @property
    def _row_bytes(self) -> int:
        return self.steps[0] * self.unit_bits // 8

    @property
    def box_bytes(self) -> int:
        """The bytes of shared memory that one copy fills, including elements outside the tensor and padding."""
        return prod(self.steps) * self.unit_bits // 8
