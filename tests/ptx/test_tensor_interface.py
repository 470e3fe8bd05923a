"""The tensor-core wrappers have the argument names, order, kinds and defaults of the public interface."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from pyptx import ptx, reg, smem

T, W = ptx.tcgen05, ptx.wgmma
GROUP = "*, cta_group=1, pred=None"
MMA = (
    "d_tmem, a_desc, b_desc, idesc, *, cta_group=1, kind='f16', enable_input_d=True, scale_d=None, sparse=False, "
    "ashift=False, collector_a=None, a_is_tmem=False, sparse_metadata=None, pred_operand=None, scale_c=None, pred=None"
)
INTERFACE: list[tuple[Callable[..., Any], str]] = [
    (smem.wgmma_tile, "dtype, shape, major='K', *, align=None, name=None"),
    (reg.wgmma_frag, "*, m, n, dtype, name=None"),
    (ptx.ldmatrix, "*, dst, src, layout='x4', trans=False, pred=None"),
    (ptx.stmatrix, "*, smem, regs, layout='x4', trans=False, shape='m8n8', pred=None"),
    (ptx.stmatrix_x4_trans_f32_bf16, "*, frag, smem_base, lane, row_stride, tmp_bf16=None, tmp_pack=None"),
    (
        W.mma_async,
        "*, shape, dtype_d, dtype_a, dtype_b, d, a, b, scale_d=False, scale_a=1, scale_b=1, trans_a=0, trans_b=0, "
        "a_k_offset=0, b_k_offset=0, pred=None",
    ),
    (W.fence, "*, pred=None"),
    (W.commit_group, "*, pred=None"),
    (W.wait_group, "n, *, pred=None"),
    (
        W.make_descriptor,
        "smem_base, *, leading_byte_offset, stride_byte_offset, swizzle=0, base_offset=0, addr_byte_offset=0",
    ),
    (W.auto_descriptor, "smem_base, *, dtype, shape, major"),
    (W.masked_descriptor, "smem_addr, *, byte_offset=0, mask=262016, const_bits=4611686293305360384"),
    (
        ptx.mma.sync,
        "*, shape, dtype_d, dtype_a, dtype_b, dtype_c, d, a, b, c, a_layout='row', b_layout='col', pred=None",
    ),
    (T.alloc, "tmem_addr, ncols, *, cta_group=1, pred=None"),
    (T.dealloc, "taddr, ncols, *, cta_group=1, pred=None"),
    (T.relinquish_alloc_permit, GROUP),
    (T.mma, MMA),
    (T.fence_before_thread_sync, "*, pred=None"),
    (T.fence_after_thread_sync, "*, pred=None"),
    (T.commit, "mbar, *, cta_group=1, multicast=False, multicast_mask=None, space='cluster', pred=None"),
    (T.wait_ld, "*, pred=None"),
    (T.wait_st, "*, pred=None"),
    (T.ld, "dst_regs, taddr, *, shape='16x128b', count=1, dtype='b32', pack=False, pred=None"),
    (T.st, "taddr, src_regs, *, shape='16x128b', count=1, dtype='b32', unpack=False, pred=None"),
    (T.cp, "taddr, src, *, cta_group=1, size='128x256b', src_is_addr=None, pred=None"),
    (T.shift, f"taddr, {GROUP}"),
    (
        T.make_instr_desc_f16bf16_f32,
        "*, m=128, n=256, ab_dtype='bf16', a_major='K', b_major='K', scale_a=1, scale_b=1, saturate=False, "
        "sparse=False, max_shift=0",
    ),
    (
        T.descriptor,
        "smem_addr, *, byte_offset=0, stride_bytes, leading_bytes=16, swizzle='128B', version=1, base_offset=0, "
        "lbo_mode=0",
    ),
    (T.masked_descriptor, "smem_addr, *, byte_offset=0, mask=262128, const_bits=4611756662049538048"),
]


def _name(value: object) -> str:
    return getattr(value, "__qualname__", type(value).__name__) if callable(value) else str(value)


@pytest.mark.parametrize(("wrapper", "signature"), INTERFACE, ids=[_name(wrapper) for wrapper, _ in INTERFACE])
def test_a_wrapper_has_the_signature_of_the_interface(wrapper: Callable[..., Any], signature: str) -> None:
    expected = inspect.signature(eval(f"lambda {signature}: 0")).parameters
    parameters = inspect.signature(wrapper).parameters
    assert [name for name in parameters if name in expected] == list(expected)
    for name, parameter in expected.items():
        assert (parameters[name].kind, parameters[name].default) == (parameter.kind, parameter.default), name
    for name in set(parameters) - set(expected):
        assert parameters[name].default is not inspect.Parameter.empty, f"{name} is new and must have a default"
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, name


def test_the_constants_of_the_interface() -> None:
    assert (W.MASKED_DESC_B128, T.BLACKWELL_MASKED_DESC_B128) == (0x4000004000010000, 0x4000404000010000)
    assert (W.SWIZZLE_NONE, W.SWIZZLE_128B, W.SWIZZLE_64B, W.SWIZZLE_32B) == (0, 1, 2, 3)


def test_every_wrapper_says_what_it_does() -> None:
    for wrapper, _ in INTERFACE:
        text = inspect.getdoc(wrapper.__call__ if wrapper is T.mma else wrapper)
        assert text, wrapper
        first = text.split()[0]
        assert first in ("Emit", "Return", "Allocate", "Store"), text
