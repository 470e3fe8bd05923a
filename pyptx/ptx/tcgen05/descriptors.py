"""Descriptors for `tcgen05` instructions: of matrices in shared memory, of the operation, and of zeroed columns."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import describe
from pyptx.dsl.registers import Dtype, Reg, resolve_type
from pyptx.dsl.scopes import intrinsic
from pyptx.dsl.trace import fail
from pyptx.dsl.values import is_integer
from pyptx.isa.descriptors import SHIFTS, InstructionDescriptor, Tcgen05Descriptor, ZeroColumnMask
from pyptx.isa.swizzle import find_swizzle
from pyptx.ptx.descriptors import BASE_OFFSET, START, check_bytes, check_field, emit_descriptor, encode_or_fail
from pyptx.tensormap import Swizzle
from pyptx.types import e2m1, e4m3, f32, s8, s32, u8, ue4m3, ue8m0
from pyptx.wgmma_layout import GmmaLayout, Major

BLACKWELL_MASKED_DESC_B128 = Tcgen05Descriptor(0, 16, 1024, Swizzle.B128).encode()
"""The constant bits for rows of 128 swizzled bytes: leading offset 16, stride 1024."""

_SWIZZLES = ("NONE", "32B", "64B", "128B", "128B_BASE32B")
_TABLES = "the kind determines types and shapes: f16 tf32 f8f6f4 i8 mxf8f6f4 mxf4 mxf4nvf4"


@intrinsic
def descriptor(
    smem_addr: Any,
    *,
    byte_offset: int = 0,
    stride_bytes: int,
    leading_bytes: int = 16,
    swizzle: str = "128B",
    version: int = 1,
    base_offset: int = 0,
    lbo_mode: int = 0,
) -> Reg:
    """Return a register with the descriptor of a matrix in shared memory; `swizzle` is "NONE", "32B", "64B", "128B" or
    "128B_BASE32B". `byte_offset`, `stride_bytes` and `leading_bytes` are in bytes, multiples of 16; `base_offset`
    counts lines of 128 bytes, 0 to 7.

    Emits the address (`mov.u32` for an allocation or a symbol, `cvt.u32.u64` for a 64-bit register, `add.s32` for an
    offset to a register), then `and.b32`, `shr.u32`, `cvt.u64.u32`, `or.b64`.
    """
    try:
        mode = find_swizzle(swizzle)
    except (ValueError, AttributeError):
        fail(
            rules.ARGUMENT, f"`swizzle` must be one of {', '.join(_SWIZZLES)}, found {describe(swizzle)}",
            help="use swizzle='128B'",
        )  # fmt: skip
    check_bytes(stride_bytes=stride_bytes, leading_bytes=leading_bytes, byte_offset=byte_offset)
    check_field("base_offset", base_offset, 7, BASE_OFFSET)
    check_field("version", version, 7, "1 on every Blackwell")
    check_field("lbo_mode", lbo_mode, 1, "1: `leading_bytes` is an address, for 48 bytes of K (sm_103a)")
    encoding = Tcgen05Descriptor(0, leading_bytes, stride_bytes, mode, base_offset, lbo_mode, version)
    return emit_descriptor(
        smem_addr,
        byte_offset,
        encode_or_fail("descriptor", encoding.encode, f"the swizzles are {', '.join(_SWIZZLES)}"),
    )


@intrinsic
def masked_descriptor(
    smem_addr: Any, *, byte_offset: int = 0, mask: int = START, const_bits: int = BLACKWELL_MASKED_DESC_B128
) -> Reg:
    """Return a register with `((smem_addr + byte_offset) & mask) >> 4 | const_bits`. Emits what `descriptor` emits.
    `byte_offset` is in bytes."""
    return emit_descriptor(smem_addr, byte_offset, const_bits, mask)


def encode_layout(layout: GmmaLayout) -> int:
    """Return the constant bits for a canonical layout, whose strides are the same as for wgmma."""
    encoding = Tcgen05Descriptor(
        0, layout.leading_byte_offset, layout.stride_byte_offset, find_swizzle(layout.smem_swizzle)
    )
    return encode_or_fail("the layout", encoding.encode)


def make_instr_desc(
    kind: str,
    *,
    m: int,
    n: int,
    a_dtype: Dtype,
    b_dtype: Dtype | None = None,
    d_dtype: Dtype = f32,
    a_major: str = "K",
    b_major: str = "K",
    scale_a: int = 1,
    scale_b: int = 1,
    saturate: bool = False,
    sparse: bool = False,
    sparsity_selector: int = 0,
    max_shift: int = 0,
    scale_dtype: Dtype | None = None,
    a_scale_id: int = 0,
    b_scale_id: int = 0,
    k96: bool = False,
) -> int:
    """Return the 32-bit instruction descriptor of any kind as a number.

    `scale_a` and `scale_b` are 1 or -1. `max_shift` (`.ws` only) is 0, 8, 16 or 32 columns, or its code 0 to 3. The
    scale-factor ids are bytes of a word. Combinations that the manual's tables do not allow are refused.
    """
    numbers = {"m": m, "n": n, "sparsity_selector": sparsity_selector, "max_shift": max_shift}
    for name, number in {**numbers, "a_scale_id": a_scale_id, "b_scale_id": b_scale_id}.items():
        if not is_integer(number):
            fail(rules.ARGUMENT, f"`{name}` must be a number, found {describe(number)}",
                 help="the descriptor is encoded while the kernel is traced, so it cannot use registers")  # fmt: skip
    operation = InstructionDescriptor(
        kind.removeprefix("kind::"), m, n, resolve_type(a_dtype), resolve_type(a_dtype if b_dtype is None else b_dtype),
        resolve_type(d_dtype), _is_transposed(a_major), _is_transposed(b_major), _is_negated("scale_a", scale_a),
        _is_negated("scale_b", scale_b), sparse, sparsity_selector, saturate,
        SHIFTS[max_shift] if max_shift in range(4) else max_shift,
        None if scale_dtype is None else resolve_type(scale_dtype), a_scale_id, b_scale_id, k96,
    )  # fmt: skip
    bits = encode_or_fail("instruction descriptor", operation.encode, _TABLES)
    _check_operation(operation)
    return bits


def _check_operation(operation: InstructionDescriptor) -> None:
    """Check the operation for each CTA group and `.ws`, which the descriptor does not encode: one of them must be
    valid."""
    ways = [(1, False), (2, False), (1, True)]
    problems = [operation.problems(cta_group=cta_group, ws=ws) for cta_group, ws in ways]
    if all(problems):
        best = min(problems, key=len)
        fail(rules.ARGUMENT, f"instruction descriptor: {'; '.join(best)}", help=_TABLES)


def _is_transposed(major: str) -> bool:
    try:
        return Major.of(major) is Major.MN
    except ValueError as wrong:
        fail(rules.ARGUMENT, str(wrong), help="use 'K' or 'MN'")


def _is_negated(name: str, scale: Any) -> bool:
    if scale not in (1, -1):
        fail(rules.ARGUMENT, f"`{name}` must be 1 or -1, found {describe(scale)}", help="-1 negates the matrix")
    return scale == -1


# The builder of a kind lists the arguments that the kind has: editors complete them, and Python refuses others.
def make_instr_desc_f16bf16_f32(
    *,
    m: int = 128,
    n: int = 256,
    ab_dtype: Dtype = "bf16",
    a_major: str = "K",
    b_major: str = "K",
    scale_a: int = 1,
    scale_b: int = 1,
    saturate: bool = False,
    sparse: bool = False,
    max_shift: int = 0,
) -> int:
    """Return the descriptor of kind f16 (f16 or bf16) or tf32, accumulating in f32."""
    name = resolve_type(ab_dtype).name
    return make_instr_desc(
        "tf32" if name == "tf32" else "f16", m=m, n=n, a_dtype=ab_dtype, a_major=a_major, b_major=b_major,
        scale_a=scale_a, scale_b=scale_b, saturate=saturate, sparse=sparse, max_shift=max_shift,
    )  # fmt: skip


def make_instr_desc_i8(
    *,
    m: int = 128,
    n: int = 256,
    a_dtype: Dtype = s8,
    b_dtype: Dtype = s8,
    a_major: str = "K",
    b_major: str = "K",
    saturate: bool = False,
    sparse: bool = False,
    max_shift: int = 0,
) -> int:
    """Return the descriptor of kind i8: s8 or u8, accumulating in s32."""
    for dtype in (a_dtype, b_dtype):
        if resolve_type(dtype) not in (s8, u8):
            fail(rules.ARGUMENT, f"kind i8 takes s8 and u8, found {dtype}", help="use the builder of another kind")
    return make_instr_desc(
        "i8", m=m, n=n, a_dtype=a_dtype, b_dtype=b_dtype, d_dtype=s32, a_major=a_major, b_major=b_major,
        saturate=saturate, sparse=sparse, max_shift=max_shift,
    )  # fmt: skip


def make_instr_desc_f8f6f4(
    *,
    m: int = 128,
    n: int = 256,
    a_dtype: Dtype = e4m3,
    b_dtype: Dtype = e4m3,
    d_dtype: Dtype = f32,
    a_major: str = "K",
    b_major: str = "K",
    scale_a: int = 1,
    scale_b: int = 1,
    sparse: bool = False,
    max_shift: int = 0,
) -> int:
    """Return the descriptor of kind f8f6f4: e4m3, e5m2, e2m3, e3m2, e2m1 in any pair, accumulating in f32 or f16."""
    return make_instr_desc(
        "f8f6f4", m=m, n=n, a_dtype=a_dtype, b_dtype=b_dtype, d_dtype=d_dtype, a_major=a_major, b_major=b_major,
        scale_a=scale_a, scale_b=scale_b, sparse=sparse, max_shift=max_shift,
    )  # fmt: skip


def make_instr_desc_mxf8f6f4(
    *,
    m: int = 128,
    n: int = 256,
    a_dtype: Dtype = e4m3,
    b_dtype: Dtype = e4m3,
    a_major: str = "K",
    b_major: str = "K",
    scale_a: int = 1,
    scale_b: int = 1,
    sparse: bool = False,
    a_scale_id: int = 0,
    b_scale_id: int = 0,
) -> int:
    """Return the descriptor of kind mxf8f6f4: the types of f8f6f4, scale factors ue8m0."""
    return make_instr_desc(
        "mxf8f6f4", m=m, n=n, a_dtype=a_dtype, b_dtype=b_dtype, a_major=a_major, b_major=b_major, scale_a=scale_a,
        scale_b=scale_b, sparse=sparse, scale_dtype=ue8m0, a_scale_id=a_scale_id, b_scale_id=b_scale_id,
    )  # fmt: skip


def make_instr_desc_mxf4(
    *,
    m: int = 128,
    n: int = 256,
    scale_a: int = 1,
    scale_b: int = 1,
    sparse: bool = False,
    a_scale_id: int = 0,
    b_scale_id: int = 0,
    k96: bool = False,
) -> int:
    """Return the descriptor of kind mxf4: e2m1, K-major, scale factors ue8m0."""
    return make_instr_desc(
        "mxf4", m=m, n=n, a_dtype=e2m1, scale_a=scale_a, scale_b=scale_b, sparse=sparse, scale_dtype=ue8m0,
        a_scale_id=a_scale_id, b_scale_id=b_scale_id, k96=k96,
    )  # fmt: skip


def make_instr_desc_mxf4nvf4(
    *,
    m: int = 128,
    n: int = 256,
    scale_dtype: Dtype = ue4m3,
    scale_a: int = 1,
    scale_b: int = 1,
    sparse: bool = False,
    a_scale_id: int = 0,
    b_scale_id: int = 0,
    k96: bool = False,
) -> int:
    """Return the descriptor of kind mxf4nvf4: e2m1, K-major, scale factors ue4m3 or ue8m0."""
    return make_instr_desc(
        "mxf4nvf4", m=m, n=n, a_dtype=e2m1, scale_a=scale_a, scale_b=scale_b, sparse=sparse, scale_dtype=scale_dtype,
        a_scale_id=a_scale_id, b_scale_id=b_scale_id, k96=k96,
    )  # fmt: skip


def zero_column_mask(*, skip: int, use: int, shift: int = 0, starts: Any = (0,) * 4, firsts: Any = (0,) * 4) -> int:
    """Return the 64-bit mask of `mma.ws`: alternating runs of `skip` zeroed and `use` used columns of B."""
    for name, run in (("skip", skip), ("use", use)):
        if not is_integer(run, 1) or run > 256:
            fail(
                rules.ARGUMENT,
                f"`{name}` must be 1 to 256 columns, found {describe(run)}",
                help="runs alternate along N",
            )
    mask = ZeroColumnMask(skip, use, tuple(starts), tuple(firsts), shift)
    return encode_or_fail("zero-column mask", mask.encode, "runs are 1 to 256 columns long")
