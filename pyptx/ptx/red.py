"""Atomic operations without a result: `ptx.red.add(f32, address, x)`. The arguments are those of `ptx.atom`, without
the destination."""

from __future__ import annotations

from typing import Any

from pyptx.dsl.registers import Dtype, Pred
from pyptx.ptx.orders import emit_atomic

__all__ = ["add", "and_", "dec", "inc", "max", "min", "or_", "xor_"]


class _Red:
    """One operation of `red`; calling it emits an instruction."""

    def __init__(self, op: str) -> None:
        self._op = op

    def __call__(
        self,
        dtype: Dtype,
        addr: Any,
        value: Any,
        *,
        space: str = "global",
        sem: str | None = None,
        scope: str | None = None,
        cache_hint: Any = None,
        pred: Pred | None = None,
    ) -> None:
        """Emit `red[.sem][.scope][.space].op[.noftz][.L2::cache_hint][.vN].T [a], b[, policy]`; `sem` is "relaxed" or
        "release"."""
        emit_atomic("red", self._op, dtype, (addr, value), (sem, scope, space), cache_hint, pred)

    def __repr__(self) -> str:
        return f"ptx.red.{self._op}"


add = _Red("add")
min, max = _Red("min"), _Red("max")
inc, dec = _Red("inc"), _Red("dec")
and_, or_, xor_ = _Red("and"), _Red("or"), _Red("xor")


def __dir__() -> list[str]:
    return __all__
