"""Wrappers of one instruction each: moves, comparison, conversion, and arithmetic with special arguments."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pyptx.check.symbols import UNDECLARED
from pyptx.diagnostics import format_count
from pyptx.dsl import rules
from pyptx.dsl.arithmetic import to_unsigned, to_untyped
from pyptx.dsl.computing import compute
from pyptx.dsl.emit import describe, emit, require_special, spell
from pyptx.dsl.registers import Dtype, Pred, Reg, create_register, move_type, resolve_type
from pyptx.dsl.trace import fail, get_trace
from pyptx.dsl.values import Pair, Register, is_integer, is_pair, make_literal
from pyptx.ir.operands import RegisterOperand
from pyptx.isa.special import SPECIAL_REGISTERS, find_special_register


def sreg(name: str) -> Reg:
    """Read any special register into a new register: one `mov`, typed by the table."""
    trace = get_trace()
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        fail(
            UNDECLARED, f"the name of a special register must be a string, found {describe(name)}", help="write %tid.x"
        )
    full = name if name.startswith("%") else f"%{name}"
    special = find_special_register(full)
    if special is None or (special.vector and "." not in full):
        names = [register.name for register in SPECIAL_REGISTERS]
        close = get_close_matches(full, names, 1)
        help = (
            f"name a component: {full}.x" if special is not None else f"did you mean `{close[0]}`?" if close else None
        )
        fail(UNDECLARED, f"there is no readable special register `{full}`", help=help)
    require_special(trace, special)
    result = create_register(special.type)
    emit(spell("mov", special.type.name), (result, RegisterOperand(full)), None, trace)
    return result


def ctaid_x() -> Reg:
    """Read %ctaid.x."""
    return sreg("%ctaid.x")


def ctaid_y() -> Reg:
    """Read %ctaid.y."""
    return sreg("%ctaid.y")


FRESH: Any = object()
"""Marks an omitted destination: the operands move up, and a new register is created."""


def mov(dtype: Dtype, dst: Any, src: Any = FRESH, *, pred: Pred | None = None) -> Reg:
    """Emit `mov.T`. `mov(dtype, src)` creates a register. Returns the destination."""
    dtype = resolve_type(dtype)
    if src is FRESH:
        dst, src = create_register(dtype), dst
    if dtype.kind == "f" and (isinstance(src, int | float) or is_pair(src, dtype)):
        src = make_literal(src, dtype)
    emit(spell("mov", move_type(dtype)), (dst, src), pred)
    return dst


def bitcast(dtype: Dtype, src: Any, *, pred: Pred | None = None) -> Reg:
    """Emit `mov.bN`: copies the bits of a register into a new one of another type, `ptx.bitcast(f32, x)`; a list of
    registers is packed. Returns the new register."""
    dtype = resolve_type(dtype)
    result = create_register(dtype)
    emit(spell("mov", to_untyped(dtype).name), (result, src), pred)
    return result


def mad(*args: Any, mode: str = "lo", pred: Pred | None = None) -> Reg:
    """Emit `mad.<mode>.T` (integers) or `fma.rn.T` (floats): `mad(dtype, dst, a, b, c)`, `mad(dtype, a, b, c)` into a
    new register, or `mad(a, b, c)`, typed by its registers; `wide` doubles the width of the result."""
    if len(args) == 3:
        registers = [value for value in args if isinstance(value, Register)]
        if not registers:
            fail(rules.ARGUMENT, "`ptx.mad(a, b, c)` needs a register", help="compute constants in Python")
        args = registers[0].dtype, *args
    if len(args) not in (4, 5):
        fail(
            rules.ARGUMENT,
            f"`ptx.mad` takes (dtype, dst, a, b, c) or (a, b, c), found {format_count('argument', len(args))}",
        )
    floating = resolve_type(args[0]).kind == "f"
    return compute("fma" if floating else "mad", args[0], args[1:], ("rn" if floating else mode,), pred)


def not_(dtype: Dtype, dst: Any, src: Any = FRESH, *, pred: Pred | None = None) -> Reg:
    """Emit `not.bN` or `not.pred`. `not_(dtype, src)` creates a register. Returns the destination."""
    return compute("not", dtype, (dst,) if src is FRESH else (dst, src), (), pred)


_EITHER = frozenset(("eq", "ne"))


def setp(
    cmp_op: str,
    dtype: Dtype,
    pred_out: Reg | Pair,
    a: Any,
    b: Any,
    *,
    pred_negate: Pred | None = None,
    pred: Pred | None = None,
) -> None:
    """Emit `setp.cmp[.ftz].T p, a, b`. `pred_negate=p` is `pred=~p`."""
    dtype = resolve_type(dtype)
    if not isinstance(cmp_op, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        fail(
            rules.ARGUMENT,
            f"a comparison must be a string, found {describe(cmp_op)}",
            help='write "lt", "geu", "eq.ftz", …',
        )
    words = cmp_op.strip(".").split(".")
    if pred_negate is not None:
        if pred is not None:
            fail(rules.ARGUMENT, "`pred` and `pred_negate` cannot be combined", help="combine the two predicates first")
        pred = ~pred_negate
    kind = dtype if words[0] in _EITHER else to_unsigned(dtype)
    emit(spell("setp", *words, kind.name), (pred_out, a, b), pred)


def selp(
    dtype: Dtype, dst: Any, true_val: Any, false_val: Any, pred_reg: Any = FRESH, *, pred: Pred | None = None
) -> Reg:
    """Emit `selp.T`. `selp(dtype, true_val, false_val, p)` creates a register. Returns the destination."""
    dtype = resolve_type(dtype)
    if pred_reg is FRESH:
        dst, true_val, false_val, pred_reg = create_register(dtype), dst, true_val, false_val
    emit(spell("selp", move_type(dtype)), (dst, true_val, false_val, pred_reg), pred)
    return dst


def cvt(
    dst_type: Dtype,
    src_type: Dtype,
    dst: Any,
    src: Any = FRESH,
    *,
    rounding: str | None = None,
    ftz: bool = False,
    sat: bool = False,
    pred: Pred | None = None,
) -> Reg:
    """Emit `cvt[.rnd][.ftz][.sat].D.S`. A list of two sources, [high, low], emits a packed conversion. `cvt(D, S, src)`
    creates a register. Returns the destination."""
    dst_type = resolve_type(dst_type)
    src_type = resolve_type(src_type)
    if src is FRESH:
        dst, src = create_register(dst_type), dst
    words = [*(rounding or "").strip(".").split("."), "ftz" if ftz else "", "sat" if sat else ""]
    sources: list[Any] = list(src) if isinstance(src, list | tuple) else [src]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    emit(spell("cvt", *filter(None, words), dst_type.name, src_type.name), (dst, *sources), pred)
    return dst


def elect_sync(dst: Reg, pred_out: Reg, membermask: int | Reg) -> None:
    """Emit `elect.sync d|p, mask`. The mask has a bit for each lane."""
    emit(spell("elect", "sync"), (Pair(dst, pred_out), membermask))


def setmaxnreg(count: int, *, inc: bool = True, pred: Pred | None = None) -> None:
    """Emit `setmaxnreg.inc.sync.aligned.u32 n`, or `.dec`. The count is in registers per thread, 24 to 256, a multiple
    of 8."""
    if not is_integer(count):
        fail(rules.ARGUMENT, f"`setmaxnreg` takes a number, found {describe(count)}")
    emit(spell("setmaxnreg", "inc" if inc else "dec", "sync", "aligned", "u32"), (count,), pred)


def setmaxnreg_inc(reg_count: int, *, pred: Pred | None = None) -> None:
    """Emit `setmaxnreg.inc.sync.aligned.u32 n`. The count is in registers per thread, 24 to 256, a multiple of 8."""
    setmaxnreg(reg_count, inc=True, pred=pred)


def setmaxnreg_dec(reg_count: int, *, pred: Pred | None = None) -> None:
    """Emit `setmaxnreg.dec.sync.aligned.u32 n`. The count is in registers per thread, 24 to 256, a multiple of 8."""
    setmaxnreg(reg_count, inc=False, pred=pred)
