"""Registers: `reg.scalar(u32, 0)`, `reg.array(f32, 64)`."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import describe
from pyptx.dsl.exact_declarations import register
from pyptx.dsl.ranges import RegArray, create_range
from pyptx.dsl.registers import Dtype, NegPred, PipeRef, Pred, Reg, create_register, move, resolve_type
from pyptx.dsl.trace import fail, get_trace
from pyptx.dsl.values import is_integer
from pyptx.types import from_name

__all__ = [
    "NegPred",
    "PipeRef",
    "Pred",
    "Reg",
    "RegArray",
    "alloc",
    "alloc_array",
    "array",
    "from_",
    "scalar",
    "use",
    "wgmma_frag",
]


def scalar(dtype: Dtype, init: int | float | tuple[float, float] | None = None, name: str | None = None) -> Reg:
    """Return one register, initialized by a `mov` if `init` is passed. Pair types such as f16x2 take (low, high) or one
    number for both halves."""
    register = create_register(dtype, name)
    if init is not None:
        move(register, init)
    return register


def array(dtype: Dtype, count: int, name: str | None = None) -> RegArray:
    """Return `count` registers, declared as one range `%base<count>`."""
    return create_range(dtype, count, name)


def from_(src: Any, dtype: Dtype) -> Reg:
    """Return a new register with a copy of a register, number or symbol's address: one `mov`."""
    register = create_register(dtype)
    move(register, src)
    return register


def wgmma_frag(*, m: int, n: int, dtype: Dtype, name: str | None = None) -> RegArray:
    """Return the registers of one thread's part of an m×n warpgroup accumulator. `m` and `n` count elements."""
    if not is_integer(m, 1) or not is_integer(n, 1):
        fail(rules.ARGUMENT, f"`m` and `n` must be positive integers, found {describe(m)} and {describe(n)}",
             help="use the instruction's shape: m=64, n=8 to 256")  # fmt: skip
    dtype = resolve_type(dtype)
    bits = m * n * dtype.bits
    if bits % (128 * 32):
        fail(rules.ARGUMENT, f"{m}×{n} values of .{dtype} do not fill whole registers of 128 threads")
    packed = dtype if dtype.bits == 32 else from_name(f"{dtype}x2")
    return create_range(packed, bits // (128 * 32), name)


def use(name: str, dtype: Dtype) -> Reg:
    """Return a declared register under another type: `reg.use("%rd289", s64)`; emits nothing."""
    trace = get_trace()
    is_known = name in trace.scope.names if trace.exact is None else trace.exact.find_type(name) is not None
    if not is_known:
        fail(rules.NAME, f"no register `{name}` is declared here", help="declare it first: ptx.decl.reg(b32, '%r<24>')")
    return register(name, resolve_type(dtype))


def alloc(dtype: Dtype) -> Reg:
    """Return an uninitialized register."""
    return create_register(dtype)


def alloc_array(dtype: Dtype, count: int) -> RegArray:
    """Return `count` uninitialized registers."""
    return create_range(dtype, count)


def __dir__() -> list[str]:
    return __all__
