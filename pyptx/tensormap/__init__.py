"""Tensor maps: the parameters of TMA tensors, the driver's rules for them, and their 128 bytes.

Knows nothing about PTX text, arrays or the driver itself: maps for a GPU are encoded by the driver.
"""

from __future__ import annotations

from pyptx.tensormap.bits import SIZE, decode, encode, replace_field
from pyptx.tensormap.maps import TensorMap
from pyptx.tensormap.modes import ElementType, Fill, Im2col, Im2colMode, Interleave, L2Promotion, Swizzle, element_type
from pyptx.tensormap.requirements import MAX_RANK, needs_blackwell, problems, validate
from pyptx.tensormap.rules import RULES
from pyptx.tensormap.tiles import tensor_map

__all__ = [
    "MAX_RANK", "RULES", "SIZE", "ElementType", "Fill", "Im2col", "Im2colMode", "Interleave", "L2Promotion", "Swizzle",
    "TensorMap", "decode", "element_type", "encode", "needs_blackwell", "problems", "replace_field", "tensor_map",
    "validate",
]  # fmt: skip
