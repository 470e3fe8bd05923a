"""The placement of matrix elements in the registers of a warp or warpgroup, and in tensor memory.

Pure functions on indices: a `Fragment` maps (lane, element) to (row, column) and back. Sources are the manual's
formulas; where it has only a figure, the module names the layout it follows.
"""

from __future__ import annotations

from pyptx.isa.fragments.layout import Fragment, Place, element_bits
from pyptx.isa.fragments.matrix_move import ldmatrix, ldmatrix_row_lane, movmatrix_source, stmatrix, stmatrix_row_lane
from pyptx.isa.fragments.mma import mma_a, mma_accumulator, mma_b, volta_a, volta_accumulator, volta_b
from pyptx.isa.fragments.scales import mma_scale_a, mma_scale_b, tmem_scale
from pyptx.isa.fragments.sparsity import Metadata, mma_metadata, nonzero_columns, tmem_metadata, wgmma_metadata
from pyptx.isa.fragments.tensor_memory import Datapath, datapath, tmem_register_count, tmem_registers
from pyptx.isa.fragments.wgmma import wgmma_a, wgmma_accumulator
from pyptx.isa.fragments.wmma import wmma_fragment

__all__ = [
    "Datapath", "Fragment", "Metadata", "Place", "datapath", "element_bits", "ldmatrix", "ldmatrix_row_lane", "mma_a",
    "mma_accumulator", "mma_b", "mma_metadata", "mma_scale_a", "mma_scale_b", "movmatrix_source", "nonzero_columns",
    "stmatrix", "stmatrix_row_lane", "tmem_metadata", "tmem_register_count", "tmem_registers", "tmem_scale", "volta_a",
    "volta_accumulator", "volta_b", "wgmma_a", "wgmma_accumulator", "wgmma_metadata", "wmma_fragment",
]  # fmt: skip
