"""Blackwell's fifth-generation tensor cores: tensor memory, its copies, products, and their descriptors."""

from __future__ import annotations

from pyptx.ptx.tcgen05.descriptors import (
    BLACKWELL_MASKED_DESC_B128,
    descriptor,
    make_instr_desc,
    make_instr_desc_f8f6f4,
    make_instr_desc_f16bf16_f32,
    make_instr_desc_i8,
    make_instr_desc_mxf4,
    make_instr_desc_mxf4nvf4,
    make_instr_desc_mxf8f6f4,
    masked_descriptor,
    zero_column_mask,
)
from pyptx.ptx.tcgen05.products import mma
from pyptx.ptx.tcgen05.tensor_memory import (
    alloc,
    commit,
    cp,
    dealloc,
    fence_after_thread_sync,
    fence_before_thread_sync,
    ld,
    ld_spcompress,
    relinquish_alloc_permit,
    shift,
    st,
    wait_ld,
    wait_st,
)

__all__ = [
    "BLACKWELL_MASKED_DESC_B128", "alloc", "commit", "cp", "dealloc", "descriptor", "fence_after_thread_sync",
    "fence_before_thread_sync", "ld", "ld_spcompress", "make_instr_desc", "make_instr_desc_f16bf16_f32",
    "make_instr_desc_f8f6f4", "make_instr_desc_i8", "make_instr_desc_mxf4", "make_instr_desc_mxf4nvf4",
    "make_instr_desc_mxf8f6f4", "masked_descriptor", "mma", "relinquish_alloc_permit", "shift", "st", "wait_ld",
    "wait_st", "zero_column_mask",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
