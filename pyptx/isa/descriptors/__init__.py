"""Descriptors that matrix instructions take in registers: shared-memory operands, instruction shapes, column masks.

Pure functions on numbers: knows neither registers nor instructions.
"""

from __future__ import annotations

from pyptx.isa.descriptors.instruction import KINDS, SHIFTS, InstructionDescriptor
from pyptx.isa.descriptors.shared import Tcgen05Descriptor, WgmmaDescriptor, matrix_base_offset
from pyptx.isa.descriptors.zero_columns import ZeroColumnMask

__all__ = [
    "KINDS", "SHIFTS", "InstructionDescriptor", "Tcgen05Descriptor", "WgmmaDescriptor", "ZeroColumnMask",
    "matrix_base_offset",
]  # fmt: skip
