"""Barriers allocated by `smem.mbarrier`: operands, and objects with the operations on one barrier."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.dsl import rules
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.registers import Reg, create_register, move
from pyptx.dsl.scopes import Named
from pyptx.dsl.shared import (
    BARRIER,
    check_owner,
    find_last_symbol,
    get_memory,
    make_address,
    make_symbol_value,
    to_index32,
)
from pyptx.dsl.trace import CURRENT, fail, get_trace
from pyptx.dsl.values import Register, Value, is_integer
from pyptx.ir.operands import Operand
from pyptx.ptx.mbarrier import Barrier
from pyptx.types import PtxType, u32


class MbarrierRef(Barrier):
    """One barrier: as an address, `[name+8*i]`; as a value, that address. The index is a number or a register."""

    def __init__(self, array: MbarrierArray, idx: int | Reg) -> None:
        self.array, self.idx = array, idx
        self.register: Reg | None = None
        if isinstance(idx, Reg):
            with Named(BARRIER, array.name):
                base, self.register = create_register(u32), create_register(u32)
                move(base, make_symbol_value(array.name, array.byte_offset))
                emit(spell("mad", "lo", "u32"), (self.register, to_index32(idx), 8, base))
            self.register.__held__ = f"the address of a barrier of `{array.name}`"

    @property
    def name(self) -> str:
        """The symbol."""
        return self.array.name

    @property
    def byte_offset(self) -> int:
        """Offset from its symbol."""
        return self.array.byte_offset + (8 * self.idx if isinstance(self.idx, int) else 0)

    def __operand__(self) -> Operand:
        check_owner(self.array.__trace__, self.name)
        return make_symbol_value(self.name, self.byte_offset) if self.register is None else self.register.__node__

    def __address__(self) -> Operand:
        check_owner(self.array.__trace__, self.name)
        if self.register is not None:
            return self.register.__address__()
        return make_address(self.name, self.byte_offset)

    def __ring_base__(self) -> tuple[str | Register, int]:
        check_owner(self.array.__trace__, self.name)
        return (self.name, self.byte_offset) if self.register is None else (self.register, 0)

    def addr_reg(self) -> Reg:
        """Return a register with the address: emits a `mov`, or nothing if a register already holds it."""
        if self.register is not None:
            return self.register
        result = create_register(u32)
        move(result, self.__operand__())
        return result

    address = addr_reg

    def __repr__(self) -> str:
        return f"MbarrierRef({self.name!r}, {self.idx!r})"


class MbarrierArray(Value):
    """Consecutive barriers of 8 bytes each."""

    def __init__(self, name: str, count: int, byte_offset: int = 0) -> None:
        self.name, self.count, self.byte_offset = name, count, byte_offset
        self.__trace__ = CURRENT.get()

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[MbarrierRef]:
        return iter([self[index] for index in range(self.count)])

    def __describe__(self) -> str:
        return f"`{self.name}` is an array of barriers"

    def __alternative__(self) -> str:
        return f"select one: {self.name}[0].wait(phase)"

    def __getitem__(self, idx: int | Reg) -> MbarrierRef:
        check_owner(self.__trace__, self.name)
        if isinstance(idx, Reg):
            return MbarrierRef(self, idx)
        if not is_integer(idx) or not -self.count <= idx < self.count:
            remedy = f"use smem.mbarrier({idx + 1})" if is_integer(idx, 0) else "pass a number or a register"
            fail(
                rules.INDEX, f"`{self.name}` has barriers 0 to {self.count - 1}, found {describe(idx)}", help=remedy
            )  # fmt: skip
        return MbarrierRef(self, idx % self.count)

    def __operand__(self) -> Operand:
        check_owner(self.__trace__, self.name)
        return make_symbol_value(self.name, self.byte_offset)

    def __address__(self) -> Operand:
        check_owner(self.__trace__, self.name)
        return make_address(self.name, self.byte_offset)

    def __ring_base__(self) -> tuple[str | Register, int]:
        check_owner(self.__trace__, self.name)
        return self.name, self.byte_offset

    def address(self) -> Reg:
        """Return a register with the address of the first barrier."""
        return self[0].address()

    def __repr__(self) -> str:
        return f"MbarrierArray({self.name!r}, {self.count})"


def allocate_barriers(count: int, name: str | None) -> MbarrierArray:
    """Return new barriers."""
    trace, memory = get_trace(), get_memory(get_trace())
    if not is_integer(count, 1):
        fail(rules.ARGUMENT, f"expected the number of barriers, found {describe(count)}")
    full = memory.add(trace, _BARRIER, count, 8 * count, 8, name, "mbar")
    symbol, offset = find_last_symbol(memory, full)
    return MbarrierArray(symbol, count, offset)


_BARRIER = PtxType("b64", 64)
