"""Warp-level matrix products of registers: `ptx.mma.sync`, dense, sparse and block-scaled. The table knows which shapes
and types exist."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import Spelling, describe, emit, spell
from pyptx.dsl.ranges import RegArray
from pyptx.dsl.registers import Dtype, Pred, Reg, make_destination, resolve_type
from pyptx.dsl.trace import fail, get_trace
from pyptx.dsl.values import is_integer
from pyptx.numbers import FORMATS, is_float
from pyptx.ptx.fragments import spell_shape, to_hashable, to_vector
from pyptx.ptx.signatures import arrange_operands
from pyptx.types import PtxType

__all__ = ["sync"]

_Fragment = RegArray | list[Any] | tuple[Reg, ...] | Reg
_Operands = dict[str, Any]


def sync(
    *,
    shape: tuple[int, int, int],
    dtype_d: Dtype,
    dtype_a: Dtype,
    dtype_b: Dtype,
    dtype_c: Dtype,
    d: _Fragment,
    a: _Fragment,
    b: _Fragment,
    c: Any,
    a_layout: str = "row",
    b_layout: str = "col",
    satfinite: bool = False,
    rounding: str | None = None,
    bit_op: str | None = None,
    kind: str | None = None,
    sparse_metadata: Reg | None = None,
    sparsity_selector: int = 0,
    ordered_metadata: bool = True,
    scale_a: Reg | None = None,
    scale_b: Reg | None = None,
    scale_a_id: tuple[Any, Any] = (0, 0),
    scale_b_id: tuple[Any, Any] = (0, 0),
    scale_vec: int | None = None,
    scale_dtype: Dtype | None = None,
    pred: Pred | None = None,
) -> Any:
    """Emit `mma.sync.aligned.mMnNkK.row.col.D.A.B.C {d}, {a}, {b}, {c}`: exactly one instruction. `d=[f32] * 4` creates
    registers; `d` is returned.

    `satfinite` clamps integers, `rounding` is for f64, `bit_op` "xor" or "and" (the default) for b1. `kind` is
    "f8f6f4", "mxf8f6f4", "mxf4" or "mxf4nvf4"; the default for 6- and 4-bit types is "f8f6f4".

    `sparse_metadata` selects `.sp::ordered_metadata`, or `.sp` with `ordered_metadata=False`. `scale_a` and `scale_b`,
    registers with scale factors, select `.block_scale`; their ids are (byte, thread), `scale_vec` is 1, 2 or 4,
    `scale_dtype` ue8m0 or ue4m3.
    """
    trace = get_trace()
    is_scaled = scale_a is not None or scale_b is not None
    sparse = None if sparse_metadata is None else ordered_metadata
    types = resolve_type(dtype_d), resolve_type(dtype_a), resolve_type(dtype_b), resolve_type(dtype_c)
    scale_type = None if scale_dtype is None else resolve_type(scale_dtype)
    spelling = _choose_spelling(
        to_hashable(shape), types, sparse, (a_layout, b_layout, rounding), satfinite, bit_op, kind, is_scaled,
        to_hashable(scale_vec), scale_type,
    )  # fmt: skip
    d = make_destination(d)
    operands: _Operands = {"d": to_vector(d), "a": to_vector(a), "b": to_vector(b), "c": to_vector(c)}
    if sparse_metadata is not None:
        operands |= {"meta": sparse_metadata, "selector": sparsity_selector}
    elif not (is_integer(sparsity_selector) and sparsity_selector == 0):
        fail(rules.ARGUMENT, "`sparsity_selector` needs `sparse_metadata`", help="pass the register with the metadata")
    if is_scaled:
        operands |= _name_scales(scale_a, scale_a_id, scale_b, scale_b_id)
    emit(spelling, arrange_operands(trace, spelling, operands, {}, _REMEDY), pred, trace)
    return d


def _name_scales(scale_a: Reg | None, a_id: tuple[Any, Any], scale_b: Reg | None, b_id: tuple[Any, Any]) -> _Operands:
    if scale_a is None or scale_b is None:
        fail(rules.ARGUMENT, "block scaling needs two registers, found one", help="pass scale_a and scale_b")
    return {"scale_a": scale_a, "which_a": to_vector(a_id), "scale_b": scale_b, "which_b": to_vector(b_id)}


_REMEDY = "pass sparse_metadata for a sparse product, or scale_a and scale_b for a block-scaled one"
_SCALED_KINDS = ("mxf8f6f4", "mxf4", "mxf4nvf4")


@lru_cache(maxsize=4096)
def _choose_spelling(
    shape: Any,
    dtypes: tuple[PtxType, PtxType, PtxType, PtxType],
    sparse: bool | None,
    modes: tuple[str | None, ...],
    satfinite: bool,
    bit_op: str | None,
    kind: str | None,
    is_scaled: bool,
    scale_vec: Any,
    scale_dtype: PtxType | None,
) -> Spelling:
    """Return the instruction's spelling; `sparse` says whether the metadata is ordered, or is None for a dense A."""
    types = tuple(dtype.name for dtype in dtypes)
    words = [] if sparse is None else ["sp::ordered_metadata" if sparse else "sp"]
    words += ["sync", "aligned", spell_shape(shape, "mma.sync"), *(mode.strip(".") for mode in modes if mode)]
    words += _spell_kind(kind, types, is_scaled, scale_vec)
    words += ["satfinite"] if satfinite else []
    words += types
    words += _spell_scale(kind, is_scaled, scale_dtype, scale_vec)
    words += [bit_op or "and", "popc"] if types[1] == "b1" or bit_op else []
    return spell("mma", *words)


def _spell_kind(kind: str | None, types: tuple[str, ...], is_scaled: bool, scale_vec: Any) -> list[str]:
    """Return `.kind::…` and the modifiers that follow it."""
    if kind is not None:
        kind = kind.removeprefix("kind::")
    if is_scaled != (kind in _SCALED_KINDS):
        fail(
            rules.ARGUMENT,
            f"kind {kind!r} {'takes no' if is_scaled else 'needs'} `scale_a` and `scale_b`",
            help=f"the block-scaled kinds are {', '.join(_SCALED_KINDS)}; pass both scale_a and scale_b",
        )
    if kind is None and any(is_float(name) and FORMATS[name].width < 8 for name in types[1:3]):
        kind = "f8f6f4"
    words = [] if kind is None else [f"kind::{kind}"]
    if not is_scaled:
        if scale_vec is not None:
            fail(
                rules.ARGUMENT,
                f"`scale_vec` {describe(scale_vec)} needs scale factors",
                help="pass scale_a and scale_b",
            )
        return words
    if scale_vec is None and kind != "mxf4nvf4":
        return [*words, "block_scale"]
    return [*words, "block_scale", f"scale_vec::{scale_vec or 4}X"]


def _spell_scale(kind: str | None, is_scaled: bool, dtype: PtxType | None, scale_vec: Any) -> list[str]:
    """Return the type of the scale factors: ue8m0, or ue4m3 if four of them share a register."""
    if not is_scaled:
        if dtype is not None:
            fail(rules.ARGUMENT, f"`scale_dtype` {dtype} needs scale factors", help="pass scale_a and scale_b")
        return []
    if dtype is not None:
        return [dtype.name]
    return ["ue4m3" if kind == "mxf4nvf4" and scale_vec in (None, 4) else "ue8m0"]


def __dir__() -> list[str]:
    return __all__
