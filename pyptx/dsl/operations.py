"""Python operations that have no meaning in a kernel, with what to write instead: one table, for registers and all
other operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from pyptx.dsl import rules
from pyptx.dsl.trace import fail

_SEVERAL = "a register has no length; reg.array creates several"
_NUMBER = (
    "Python cannot use it as an integer: use ptx.range_ for loops; index shared memory or compute an address instead"
)
_ROUND = "use ptx.cvt(s32, f32, x, rounding='{}') when the kernel runs"

_CONVERSIONS = (
    ("__int__ __index__", "int()", _NUMBER),
    ("__float__", "float()", "ptx.sqrt, ptx.sin, … compute when the kernel runs; use ptx.cvt to convert"),
    ("__complex__", "complex()", "PTX has no complex numbers: use one register for each part"),
    ("__bytes__", "bytes()", "x.view(b32) reads the bits; >> and & extract them"),
    ("__round__", "round()", _ROUND.format("rni")),
    ("__trunc__", "math.trunc()", _ROUND.format("rzi")),
    ("__floor__", "math.floor()", _ROUND.format("rmi")),
    ("__ceil__", "math.ceil()", _ROUND.format("rpi")),
    ("__iter__ __next__ __reversed__", "iter()", _SEVERAL),
    ("__len__", "len()", _SEVERAL),
    ("__contains__", "in", "compare with each value: (x == 1) | (x == 2)"),
    ("__getitem__ __setitem__ __delitem__", "[…]", f"{_SEVERAL}; (x >> n) & 1 reads a bit"),
    ("__enter__", "with", "write `with ptx.if_(p):`"),
)
_COMPUTATIONS = (
    ("__divmod__ __rdivmod__", "divmod()", "write x // y and x % y"),
    ("__pow__ __rpow__", "**", "PTX has no power operator: multiply, or use ptx.ex2 and ptx.lg2"),
    ("__matmul__ __rmatmul__", "@", "ptx.mma, ptx.wgmma and ptx.tcgen05 multiply matrices; `*` multiplies registers"),
    ("__pos__", "+x", "use x itself; reg.from_(x, dtype) copies it"),
    ("__neg__", "-x", ""), ("__invert__", "~", ""), ("__abs__", "abs()", ""),
    ("__add__ __radd__", "+", ""), ("__sub__ __rsub__", "-", ""), ("__mul__ __rmul__", "*", ""),
    ("__truediv__ __rtruediv__", "/", ""), ("__floordiv__ __rfloordiv__", "//", ""), ("__mod__ __rmod__", "%", ""),
    ("__and__ __rand__", "&", ""), ("__or__ __ror__", "|", ""), ("__xor__ __rxor__", "^", ""),
    ("__lshift__ __rlshift__", "<<", ""), ("__rshift__ __rrshift__", ">>", ""),
    ("__lt__", "<", ""), ("__le__", "<=", ""), ("__gt__", ">", ""), ("__ge__", ">=", ""),
)  # fmt: skip
"""The method that Python calls, the operation as written, and the remedy for a register. Registers implement the
operations with an empty remedy; other values define their own remedies."""


def refuse_operations(cls: Any) -> None:
    """Define all of Python's operations on a class as errors; its subclasses override those that are valid."""
    for rule, table in ((rules.TRUTH, _CONVERSIONS), (rules.TYPES, _COMPUTATIONS)):
        for names, operation, help in table:
            for name in names.split():
                setattr(cls, name, _make_refusal(rule, operation, help))
    # `with` looks up both methods.
    cls.__exit__ = None


def _make_refusal(rule: Any, operation: str, help: str) -> Callable[..., NoReturn]:
    def refuse(value: Any, *operands: Any) -> NoReturn:
        fail(rule, f"{value.__describe__()} and does not support `{operation}`", help=value.__alternative__() or help)

    return refuse
