"""Registers declared as one range, `%r<n>`: `RegArray` and its construction."""

from __future__ import annotations

import operator
from typing import Any, overload

from pyptx.dsl import rules
from pyptx.dsl.emit import describe, refuse_foreign
from pyptx.dsl.registers import Dtype, Reg, move, resolve_type
from pyptx.dsl.trace import CURRENT, Trace, fail, get_trace, prefix_name
from pyptx.dsl.values import Register, RegisterRange, choose_storage, is_integer, make_symbol
from pyptx.types import PtxType


class RegArray(RegisterRange):
    """Registers declared as one range; as an operand, the vector of all of them."""

    __slots__ = ()
    __members__: tuple[Reg, ...]

    def __init__(self, base: str, count: int, dtype: PtxType) -> None:
        super().__init__(base, dtype, tuple([Reg(f"{base}{i}", dtype) for i in range(count)]), CURRENT.get())

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Any:
        return iter(self.__members__)

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, Register):
            fail(
                rules.TRUTH,
                f"{self.__describe__()} and does not support `in` with other values",
                help="compare with each register: (x[0] == 1) | (x[1] == 1)",
            )
        return any(value is member for member in self.__members__)

    def __repr__(self) -> str:
        return f"RegArray({self.base!r}, {self.count}, {self.dtype})"

    @overload
    def __getitem__(self, idx: int) -> Reg: ...
    @overload
    def __getitem__(self, idx: slice) -> list[Reg]: ...
    def __getitem__(self, idx: int | slice) -> Reg | list[Reg]:
        if isinstance(idx, slice):
            return list(self.__members__[idx])
        return self.__members__[self._check_index(idx)]

    def __setitem__(self, idx: int, value: Any) -> None:
        target = self.__members__[self._check_index(idx)]
        trace = get_trace()
        if isinstance(value, Register) and value.__trace__ is not trace:
            refuse_foreign(value)
        if isinstance(value, Register) and value.name == target.name:
            # `r[i] += x` assigns the register itself, which has already been written.
            return
        move(target, value)
        if isinstance(value, Register) and choose_storage(value.dtype) == choose_storage(self.dtype):
            trace.folds[id(trace.body[-1])] = value.name

    def _check_index(self, idx: int) -> int:
        if isinstance(idx, Register):
            operator.index(idx)
        if not is_integer(idx) or not -self.count <= idx < self.count:
            remedy = f"use reg.array({self.dtype}, {idx + 1})" if is_integer(idx, 0) else "use a slice to get a list"
            fail(
                rules.INDEX, f"`{self.base}` has registers 0 to {self.count - 1}, found index {idx!r}", help=remedy
            )  # fmt: skip
        return idx

    def regs(self) -> list[Reg]:
        """Return the registers."""
        return list(self.__members__)

    def hw_order(self, *, reverse: bool = False) -> list[Reg]:
        """Return the registers in order, or reversed."""
        return list(reversed(self.__members__)) if reverse else list(self.__members__)


def create_range(dtype: Dtype, count: int, name: str | None = None) -> RegArray:
    """Return new registers declared as one range."""
    trace = get_trace()
    dtype = resolve_type(dtype)
    if not is_integer(count, 1):
        fail(rules.ARGUMENT, f"expected a count of at least 1, found {describe(count)}")
    _, storage_type = choose_storage(dtype)
    full_name = None if name is None else prefix_name(name)
    base = _choose_base(trace, full_name, count)
    trace.used_names.update([base, *(f"{base}{i}" for i in range(count))])
    trace.declarations.ranges.append((storage_type, base, count))
    array = RegArray(base, count, dtype)
    symbol = make_symbol(dtype)
    for register in array.__members__:
        trace.scope.put(register.name, symbol)
    if trace.declarations is not trace.top:
        trace.declarations.owned += [array, *array.__members__]
    return array


def _choose_base(trace: Trace, hint: str | None, count: int) -> str:
    """Return a base for `count` new names. A base ending in a digit could collide with another range, so it gets a
    `_`."""
    while True:
        base = trace.choose_name(hint, "%v")
        base = f"{base}_" if base[-1].isdigit() else base
        if not any(f"{base}{i}" in trace.used_names for i in range(count)):
            return base
