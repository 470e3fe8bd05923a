"""Atomic operations that return the old value: `ptx.atom.add(u32, old, address, 1)`; `None` as `old` discards it.

`sem` is "relaxed" (the default of PTX), "acquire", "release" or "acq_rel"; `scope` "cta", "cluster", "gpu" (the
default) or "sys"; `space` "global", "shared", … or "" for a generic address. Lists of registers make vectors.
"""

from __future__ import annotations

from typing import Any

from pyptx.dsl.registers import Dtype, Pred, make_destination
from pyptx.ptx.orders import emit_atomic

__all__ = ["add", "and_", "cas", "dec", "exch", "inc", "max", "min", "or_", "xor_"]


class _Atom:
    """One operation of `atom`; calling it emits an instruction."""

    def __init__(self, op: str) -> None:
        self._op = op

    def __call__(
        self,
        dtype: Dtype,
        dst: Any,
        addr: Any,
        value: Any,
        *,
        space: str = "global",
        sem: str | None = None,
        scope: str | None = None,
        cache_hint: Any = None,
        pred: Pred | None = None,
    ) -> Any:
        """Emit `atom[.sem][.scope][.space].op[.noftz][.L2::cache_hint][.vN].T d, [a], b[, policy]`; f16 and bf16 have
        `.noftz`. A type as `dst` makes a fresh register; the destination is returned."""
        result = make_destination(dst)
        emit_atomic("atom", self._op, dtype, (result, addr, value), (sem, scope, space), cache_hint, pred)
        return result

    def __repr__(self) -> str:
        return f"ptx.atom.{self._op}"


add, exch = _Atom("add"), _Atom("exch")
min, max = _Atom("min"), _Atom("max")
inc, dec = _Atom("inc"), _Atom("dec")
and_, or_, xor_ = _Atom("and"), _Atom("or"), _Atom("xor")


def cas(
    dtype: Dtype,
    dst: Any,
    addr: Any,
    compare: Any,
    value: Any,
    *,
    space: str = "global",
    sem: str | None = None,
    scope: str | None = None,
    pred: Pred | None = None,
) -> Any:
    """Emit `atom[.sem][.scope][.space].cas.bN d, [a], b, c`: store `value` if the old value equals `compare`. A type as
    `dst` makes a fresh register; the destination is returned."""
    result = make_destination(dst)
    emit_atomic("atom", "cas", dtype, (result, addr, compare, value), (sem, scope, space), None, pred)
    return result


def __dir__() -> list[str]:
    return __all__
