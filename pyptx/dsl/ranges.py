"""Registers declared as one range, `%r<n>`: `RegArray` and its construction."""

from __future__ import annotations

import operator
from typing import Any, overload

from pyptx.dsl import rules
from pyptx.dsl.emit import foreign, shown
from pyptx.dsl.registers import Dtype, Reg, move, type_of
from pyptx.dsl.trace import CURRENT, Trace, current, fail, prefixed
from pyptx.dsl.values import Register, RegisterRange, is_integer, storage, symbol_of
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
                f"`in` of {self.__describe__()}",
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
        trace = current()
        if isinstance(value, Register) and value.__trace__ is not trace:
            foreign(value)
        if isinstance(value, Register) and value.name == target.name:
            # `r[i] += x` assigns the register itself, which has already been written.
            return
        move(target, value)
        if isinstance(value, Register) and storage(value.dtype) == storage(self.dtype):
            trace.folds[id(trace.body[-1])] = value.name

    def _check_index(self, idx: int) -> int:
        if isinstance(idx, Register):
            operator.index(idx)
        if not is_integer(idx) or not -self.count <= idx < self.count:
            more = f"use reg.array({self.dtype}, {idx + 1})" if is_integer(idx, 0) else "use a slice to get a list"
            fail(
                rules.INDEX, f"`{self.base}` has registers 0 to {self.count - 1}, found index {idx!r}", help=more
            )  # fmt: skip
        return idx

    def regs(self) -> list[Reg]:
        """Return the registers."""
        return list(self.__members__)

    def hw_order(self, *, reverse: bool = False) -> list[Reg]:
        """Return the registers in order, or reversed."""
        return list(reversed(self.__members__)) if reverse else list(self.__members__)


def fresh_range(dtype: Dtype, count: int, name: str | None = None) -> RegArray:
    """Return new registers declared as one range."""
    trace = current()
    dtype = type_of(dtype)
    if not is_integer(count, 1):
        fail(rules.ARGUMENT, f"expected a count of at least 1, found {shown(count)}")
    _, storage_type = storage(dtype)
    requested = None if name is None else prefixed(name)
    base = _choose_base(trace, requested, count)
    trace.taken.update([base, *(f"{base}{i}" for i in range(count))])
    trace.declarations.ranges.append((storage_type, base, count))
    array = RegArray(base, count, dtype)
    symbol = symbol_of(dtype)
    for register in array.__members__:
        trace.scope.put(register.name, symbol)
    if trace.declarations is not trace.top:
        trace.declarations.owned += [array, *array.__members__]
    return array


def _choose_base(trace: Trace, wanted: str | None, count: int) -> str:
    """Return a base for `count` new names. A base ending in a digit could collide with another range, so it gets a
    `_`."""
    while True:
        base = trace.name_for(wanted, "%v")
        base = f"{base}_" if base[-1].isdigit() else base
        if not any(f"{base}{i}" in trace.taken for i in range(count)):
            return base
