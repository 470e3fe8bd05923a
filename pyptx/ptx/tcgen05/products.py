"""`ptx.tcgen05.mma`: matrix products accumulated in tensor memory, one instruction each."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import Spelling, describe, emit, spell
from pyptx.dsl.registers import Pred
from pyptx.dsl.shared import SharedView
from pyptx.dsl.trace import fail, get_trace
from pyptx.dsl.values import Register
from pyptx.ptx.descriptors import advance_descriptor, build_matrix, check_offset, get_descriptor
from pyptx.ptx.fragments import to_hashable, to_vector
from pyptx.ptx.signatures import arrange_operands
from pyptx.ptx.tcgen05.descriptors import encode_layout
from pyptx.ptx.tcgen05.tensor_memory import check_tmem, group

_REMEDY = (
    "scale_a and scale_b are for the block-scaled kinds, sparse_metadata for sparse=True, scale_c for f16 and tf32, "
    "disable_output_lane for kinds without block scaling"
)
_ARGUMENTS = {"meta": "sparse_metadata", "lut": "lut_b"}
_BLOCK_SCALED = ("mxf8f6f4", "mxf4", "mxf4nvf4")


class Products:
    """The type of `ptx.tcgen05.mma`: call it, or `.async_2sm` for two CTAs, or `.ws` to keep B in the collector."""

    def __call__(
        self,
        d_tmem: Any,
        a_desc: Any,
        b_desc: Any,
        idesc: Any,
        *,
        cta_group: int = 1,
        kind: str = "f16",
        enable_input_d: bool | int | Pred | None = True,
        scale_d: Any | None = None,
        sparse: bool = False,
        ashift: bool = False,
        collector_a: str | None = None,
        a_is_tmem: bool = False,
        sparse_metadata: Any | None = None,
        pred_operand: Any | None = None,
        scale_c: int | None = None,
        scale_a: Any | None = None,
        scale_b: Any | None = None,
        scale_vec: str | int | None = None,
        disable_output_lane: Any | None = None,
        collector_b: str | None = None,
        lut_b: Any | None = None,
        a_k_offset: int = 0,
        b_k_offset: int = 0,
        pred: Pred | None = None,
    ) -> None:
        """Emit `tcgen05.mma[.sp].cta_group::g.kind::K…[.ashift][.collector::a::use]`: exactly one instruction.

        A and B are descriptors in 64-bit registers, or allocations with a layout (`smem.wgmma_tile`), whose descriptors
        are built as for wgmma; `a_is_tmem=True` takes A from tensor memory. `idesc`, the instruction descriptor, is a
        number or a register. `enable_input_d` False or 0: D = A*B; True, 1 or None: D += A*B; a predicate selects at
        run time. `scale_d` and `pred_operand` are other names for it.

        The block-scaled kinds take `scale_a`, `scale_b` (tensor memory) and `scale_vec`: 1, 2, 4, "block16" or
        "block32". `scale_c` (0 to 15) divides D by two so many times first. `disable_output_lane` is 4 registers, or 8
        for `cta_group=2`: lanes of D that remain unchanged. Collectors: "fill", "use", "lastuse", "discard". `lut_b`
        (tensor memory) decompresses B: `.decompress::lut::b`. `a_k_offset` and `b_k_offset` are bytes, multiples of 16,
        added to the start address (`tile.k_offset(k)`); to a descriptor in a register one `add.s64` adds them, in a
        scope `descriptor_step`.
        """
        trace = get_trace()
        sparse = sparse or sparse_metadata is not None
        modes = ashift, lut_b is not None, collector_a, collector_b
        spelling = _choose_spelling(sparse, to_hashable(cta_group), kind, to_hashable(scale_vec), *modes)
        operands = _collect_operands(d_tmem, a_desc, b_desc, idesc, a_is_tmem, (a_k_offset, b_k_offset))
        operands["accumulate"] = _convert_accumulate(enable_input_d, scale_d, pred_operand)
        if disable_output_lane is not None:
            operands["disabled"] = to_vector(disable_output_lane)
        if scale_c is not None:
            operands["scale"] = scale_c
        for name, value in (("meta", sparse_metadata), ("lut", lut_b), ("scale_a", scale_a), ("scale_b", scale_b)):
            if value is not None:
                operands[name] = check_tmem(value, _ARGUMENTS.get(name, name))
        emit(spelling, arrange_operands(trace, spelling, operands, {}, _REMEDY), pred, trace)

    def async_2sm(self, d_tmem: Any, a_desc: Any, b_desc: Any, idesc: Any, **options: Any) -> None:
        """Emit the same with `cta_group::2`: the tensor cores of this CTA and its peer compute one product."""
        if options.setdefault("cta_group", 2) != 2:
            fail(rules.ARGUMENT, f"`async_2sm` means cta_group 2, found {options['cta_group']}", help="omit it")
        self(d_tmem, a_desc, b_desc, idesc, **options)

    def ws(
        self,
        d_tmem: Any,
        a_desc: Any,
        b_desc: Any,
        idesc: Any,
        *,
        kind: str = "f16",
        enable_input_d: bool | int | Pred | None = True,
        a_is_tmem: bool = False,
        sparse_metadata: Any | None = None,
        collector_b: str | None = None,
        zero_column_mask: Any | None = None,
        a_k_offset: int = 0,
        b_k_offset: int = 0,
        pred: Pred | None = None,
    ) -> None:
        """Emit `tcgen05.mma.ws[.sp].cta_group::1.kind::K[.collector::bN::use]`: weight-stationary, exactly one
        instruction.

        `collector_b` names buffer and use, "b0::fill"; `zero_column_mask` is a 64-bit register.
        """
        trace = get_trace()
        words = ["ws", *(["sp"] if sparse_metadata is not None else []), "cta_group::1", *_spell_kind(kind, None, [])]
        words += [f"collector::{collector_b}"] if collector_b else []
        operands = _collect_operands(d_tmem, a_desc, b_desc, idesc, a_is_tmem, (a_k_offset, b_k_offset))
        operands["accumulate"] = _convert_accumulate(enable_input_d, None, None)
        if sparse_metadata is not None:
            operands["meta"] = check_tmem(sparse_metadata, "sparse_metadata")
        if zero_column_mask is not None:
            operands["columns"] = zero_column_mask
        spelling = spell("tcgen05", "mma", *words)
        emit(spelling, arrange_operands(trace, spelling, operands, {}, _REMEDY), pred, trace)


mma = Products()


@lru_cache(maxsize=4096)
def _choose_spelling(
    sparse: bool,
    cta_group: Any,
    kind: str,
    scale_vec: Any,
    ashift: bool,
    lut: bool,
    reuse: str | None,
    keep: str | None,
) -> Spelling:
    words = ["sp"] if sparse else []
    words += [group(cta_group), *_spell_kind(kind, scale_vec, ["decompress::lut::b"] if lut else [])]
    words += ["ashift"] if ashift else []
    words += [f"collector::{side}::{use}" for side, use in (("a", reuse), ("b", keep)) if use]
    return spell("tcgen05", "mma", *words)


def _spell_kind(kind: str, scale_vec: str | int | None, lut: list[str]) -> list[str]:
    """Return `.kind::…`, preceded by the decompression of B, and for the block-scaled kinds followed by `.block_scale`
    and the block size."""
    name = kind.removeprefix("kind::")
    if name not in _BLOCK_SCALED:
        if scale_vec is not None:
            fail(rules.ARGUMENT, f"kind {name} takes no `scale_vec`, found {describe(scale_vec)}", help=_REMEDY)
        return [f"kind::{name}", *lut]
    if scale_vec is None:
        # mxf4nvf4 has no default size: ue4m3 factors use 16 elements per factor.
        size = ["block16"] if name == "mxf4nvf4" else []
    else:
        size = [f"scale_vec::{scale_vec}X"] if isinstance(scale_vec, int) else [scale_vec]
    return [f"kind::{name}", "block_scale", *lut, *size]


def _collect_operands(d: Any, a: Any, b: Any, idesc: Any, a_is_tmem: bool, offsets: tuple[Any, Any]) -> dict[str, Any]:
    if a_is_tmem and offsets[0] != 0:
        fail(rules.ARGUMENT, "`a_k_offset` is for descriptors, but A is in tensor memory",
             help="add the column offset to its address")  # fmt: skip
    return {
        "d": check_tmem(d, "d_tmem"),
        "a": check_tmem(a, "a_desc") if a_is_tmem else _convert_descriptor("a", a, offsets[0]),
        "b": _convert_descriptor("b", b, offsets[1]),
        "idesc": idesc,
    }


def _convert_descriptor(name: str, value: Any, offset: Any) -> Any:
    """Return a descriptor; a 32-bit register would be interpreted as a tensor memory address."""
    start = check_offset(name, offset)
    if isinstance(value, SharedView):
        operand = build_matrix(value, value.dtype, False, f"{name}_desc")
        # The number of elements read is in the instruction descriptor, which may be a register.
        operand.check_start(name, start, 1, 1)
        return get_descriptor(operand, start, encode_layout, "tcgen05_descriptor")
    if not isinstance(value, Register | int) or (isinstance(value, Register) and value.dtype.bits != 64):
        fail(
            rules.ARGUMENT,
            f"`{name}_desc` must be a descriptor in a 64-bit register, found {describe(value)}",
            help="build it with ptx.tcgen05.descriptor; for A in tensor memory pass a_is_tmem=True",
        )
    return advance_descriptor(name, value, start) if start else value


def _convert_accumulate(enable_input_d: Any, scale_d: Any, pred_operand: Any) -> Any:
    """Return the operand, under one of its three names, that selects whether D is accumulated."""
    default = enable_input_d is True or enable_input_d is None
    values = [value for value in (None if default else enable_input_d, scale_d, pred_operand) if value is not None]
    if len(values) > 1:
        fail(
            rules.ARGUMENT,
            "`enable_input_d`, `scale_d` and `pred_operand` name the same operand: pass only one",
            help="pass enable_input_d=p",
        )
    value = values[0] if values else 1
    if isinstance(value, int) and value not in (0, 1):
        fail(rules.ARGUMENT, f"`enable_input_d` must be False, True or a predicate, found {value}",
             help="scale_c divides D by a power of two")  # fmt: skip
    return int(value) if isinstance(value, bool) else value
