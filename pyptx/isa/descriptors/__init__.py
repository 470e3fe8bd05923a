"""Descriptors that matrix instructions take in registers: shared-memory operands, instruction shapes, column masks.

Numbers in, numbers out: which registers hold them and which instruction reads them is others' business.
"""

from __future__ import annotations

from pyptx.isa.descriptors.instruction import KINDS, InstructionDescriptor
from pyptx.isa.descriptors.shared import Tcgen05Descriptor, WgmmaDescriptor, matrix_base_offset
from pyptx.isa.descriptors.zero_columns import ZeroColumnMask

__all__ = [
    "KINDS", "InstructionDescriptor", "Tcgen05Descriptor", "WgmmaDescriptor", "ZeroColumnMask", "matrix_base_offset",
]  # fmt: skip
