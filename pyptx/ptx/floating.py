"""One wrapper, one instruction: division, roots, fused multiply-add, and the approximations of the special function
unit."""

from __future__ import annotations

from typing import Any

from pyptx.dsl.arithmetic import unsigned
from pyptx.dsl.emit import emit, spelled
from pyptx.dsl.registers import Dtype, Pred, Reg, destination, fresh, type_of
from pyptx.ptx.scalar import FRESH
from pyptx.types import PtxType


def _emitted(opcode: str, dtype: Dtype, operands: tuple[Any, ...], pred: Pred | None, *words: str | None) -> Reg:
    """Emit an instruction and return its destination: the first operand, or a fresh register where it was left out."""
    dtype = type_of(dtype)
    dst, *sources = (
        (fresh(dtype), *operands[:-1]) if operands[-1] is FRESH else (destination(operands[0]), *operands[1:])
    )
    emit(spelled(opcode, *filter(None, words), unsigned(dtype).name), (dst, *sources), pred)
    return dst


def _said(word: str, flag: bool) -> str | None:
    return word if flag else None


def _nearest(dtype: PtxType, rounding: str | None, *others: bool) -> str | None:
    """Return the rounding: to the nearest even unless something else is asked for; integers have none."""
    return "rn" if rounding is None and dtype.kind == "f" and not any(others) else rounding


def fma(
    dtype: Dtype,
    dst: Any,
    a: Any,
    b: Any,
    c: Any = FRESH,
    *,
    rounding: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    oob: bool = False,
    relu: bool = False,
    pred: Pred | None = None,
) -> Reg:
    """Emit `fma.rnd[.ftz][.sat][.oob][.relu].T`. `fma(dtype, a, b, c)` makes a fresh register. Returns the
    destination."""
    words = rounding, _said("ftz", ftz), _said("sat", sat), _said("oob", oob), _said("relu", relu)
    return _emitted("fma", dtype, (dst, a, b, c), pred, *words)


def div(
    dtype: Dtype,
    dst: Any,
    a: Any,
    b: Any = FRESH,
    *,
    rounding: str | None = None,
    approx: bool = False,
    full: bool = False,
    ftz: bool = False,
    pred: Pred | None = None,
) -> Reg:
    """Emit `div.T` for integers, `div.rnd[.ftz].T`, `div.approx[.ftz].f32` or `div.full[.ftz].f32`; floats are rounded
    to the nearest even unless said otherwise. `div(dtype, a, b)` makes a fresh register. Returns the destination."""
    dtype = type_of(dtype)
    words = _nearest(dtype, rounding, approx, full), _said("approx", approx), _said("full", full), _said("ftz", ftz)
    return _emitted("div", dtype, (dst, a, b), pred, *words)


def rcp(
    dtype: Dtype,
    dst: Any,
    a: Any = FRESH,
    *,
    rounding: str | None = None,
    approx: bool = False,
    ftz: bool = False,
    pred: Pred | None = None,
) -> Reg:
    """Emit `rcp.rnd[.ftz].T` or `rcp.approx[.ftz].T`, 1/a; rounded to the nearest even unless said otherwise.
    `rcp(dtype, a)` makes a fresh register. Returns the destination."""
    dtype = type_of(dtype)
    words = _nearest(dtype, rounding, approx), _said("approx", approx), _said("ftz", ftz)
    return _emitted("rcp", dtype, (dst, a), pred, *words)


def sqrt(
    dtype: Dtype,
    dst: Any,
    a: Any = FRESH,
    *,
    rounding: str | None = None,
    approx: bool = False,
    ftz: bool = False,
    pred: Pred | None = None,
) -> Reg:
    """Emit `sqrt.rnd[.ftz].T` or `sqrt.approx[.ftz].f32`; rounded to the nearest even unless said otherwise.
    `sqrt(dtype, a)` makes a fresh register. Returns the destination."""
    dtype = type_of(dtype)
    words = _nearest(dtype, rounding, approx), _said("approx", approx), _said("ftz", ftz)
    return _emitted("sqrt", dtype, (dst, a), pred, *words)


def rsqrt(
    dtype: Dtype, dst: Any, a: Any = FRESH, *, approx: bool = True, ftz: bool = False, pred: Pred | None = None
) -> Reg:
    """Emit `rsqrt.approx[.ftz].T`, 1/√a. `rsqrt(dtype, a)` makes a fresh register. Returns the destination."""
    return _emitted("rsqrt", dtype, (dst, a), pred, _said("approx", approx), _said("ftz", ftz))


def ex2(
    dtype: Dtype, dst: Any, a: Any = FRESH, *, approx: bool = True, ftz: bool = False, pred: Pred | None = None
) -> Reg:
    """Emit `ex2.approx[.ftz].T`, 2 to the power of a; bf16 needs `ftz=True`. `ex2(dtype, a)` makes a fresh register.
    Returns the destination."""
    return _emitted("ex2", dtype, (dst, a), pred, _said("approx", approx), _said("ftz", ftz))


def lg2(
    dtype: Dtype, dst: Any, a: Any = FRESH, *, approx: bool = True, ftz: bool = False, pred: Pred | None = None
) -> Reg:
    """Emit `lg2.approx[.ftz].f32`, the logarithm to base 2. `lg2(dtype, a)` makes a fresh register. Returns the
    destination."""
    return _emitted("lg2", dtype, (dst, a), pred, _said("approx", approx), _said("ftz", ftz))


def sin(
    dtype: Dtype, dst: Any, a: Any = FRESH, *, approx: bool = True, ftz: bool = False, pred: Pred | None = None
) -> Reg:
    """Emit `sin.approx[.ftz].f32` of an angle in radians. `sin(dtype, a)` makes a fresh register. Returns the
    destination."""
    return _emitted("sin", dtype, (dst, a), pred, _said("approx", approx), _said("ftz", ftz))


def cos(
    dtype: Dtype, dst: Any, a: Any = FRESH, *, approx: bool = True, ftz: bool = False, pred: Pred | None = None
) -> Reg:
    """Emit `cos.approx[.ftz].f32` of an angle in radians. `cos(dtype, a)` makes a fresh register. Returns the
    destination."""
    return _emitted("cos", dtype, (dst, a), pred, _said("approx", approx), _said("ftz", ftz))


def tanh(dtype: Dtype, dst: Any, a: Any = FRESH, *, approx: bool = True, pred: Pred | None = None) -> Reg:
    """Emit `tanh.approx.T`. `tanh(dtype, a)` makes a fresh register. Returns the destination."""
    return _emitted("tanh", dtype, (dst, a), pred, _said("approx", approx))
