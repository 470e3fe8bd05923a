"""Addresses and first contents of module variables: `.global`, `.const`, `.shared`. Knows the address map, no lanes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from pyptx.check.symbols import Kind, Scope, Symbol
from pyptx.ir import (
    BinaryOperand,
    Function,
    GenericOperand,
    ImmediateOperand,
    LabelOperand,
    MaskOperand,
    Module,
    RegisterOperand,
    VarDecl,
    VectorOperand,
    evaluate,
    visit,
)
from pyptx.ir.nodes import Declarator
from pyptx.ir.operands import Operand, number_value
from pyptx.sim.base.formats import Array
from pyptx.sim.program.frames import aligned, declarator_of, size_and_alignment
from pyptx.sim.program.shared_names import SharedNames
from pyptx.sim.rules import faults

PARAM_BASE = 0x1_0000_0000
SHARED_WINDOW = 0x2_0000_0000
LOCAL_WINDOW = 0x3_0000_0000
FUNCTION_BASE = 0x4_0000_0000
FUNCTION_STEP = 16
GLOBAL_BASE = 0x7F_0000_0000
"""The generic address space: kernel parameters, the windows of shared and local memory, functions, and from
GLOBAL_BASE on global memory and constants."""

RESERVED_SHARED = 1024
"""Bytes at the start of the shared window that belong to the system from sm_90 on; below, variables start at 0."""
_OPAQUE = frozenset((".texref", ".samplerref", ".surfref"))
"""Types whose initializers describe an object, not bytes."""
GUARD = 256
"""Bytes between two global allocations that belong to nobody."""


@dataclass(slots=True)
class Allocation:
    """Bytes of global memory with one owner, as they are at the start; `lent` ones belong to the caller."""

    address: int
    size: int
    name: str
    data: Array
    space: str = "global"
    writable: bool = True
    lent: bool = False
    fresh: bool = False
    """Whether the bytes are uninitialized until the kernel writes them."""


class Valueless(Exception):
    """A part of an initializer that has no value; the caller names the variable."""


@dataclass(slots=True)
class Globals:
    """Variables in global and constant memory, by name and declaration: one set for all programs that run on the same
    memory."""

    next: int = GLOBAL_BASE
    placed: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    allocations: list[Allocation] = field(default_factory=list[Allocation])

    def place(self, key: tuple[str, int], size: int, alignment: int) -> int:
        """Return the address of a new variable."""
        address = self.placed[key] = aligned(self.next, max(alignment, 256))
        self.next = address + size + GUARD
        return address


@dataclass(slots=True)
class Variables:
    """The variables that a program names; `functions` numbers a function whose address is taken."""

    module: Module
    names: Scope
    functions: Callable[[str], int]
    shared_base: int
    globals: Globals = field(default_factory=Globals)
    next_shared: int = 0
    dynamic_alignment: int = 16
    placed: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    dynamic: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    shared: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Where each variable of shared memory starts, and its name."""
    sizes: dict[int, int] = field(default_factory=dict[int, int])
    """The bytes of those of a known size, by where they start."""
    in_shared: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """The same by name and declaration."""
    waiting: dict[tuple[str, int], Symbol] = field(default_factory=dict[tuple[str, int], Symbol])
    """Variables of shared memory that the program names: where they lie depends on all of them."""

    def __post_init__(self) -> None:
        self.next_shared = self.shared_base

    def use(self, name: str, symbol: Symbol) -> None:
        """Note that the program names a variable."""
        if symbol.space == "shared":
            self.waiting[name, id(symbol)] = symbol
        else:
            self.address(name, symbol)

    def address(self, name: str, symbol: Symbol) -> int:
        """Return a variable's address in its space, placing it on first sight. One of shared memory has an address only
        when all are settled."""
        key = (name, id(symbol))
        found = self.placed.get(key)
        if found is None:
            self._place(key, symbol)
            found = self.placed[key]
        return found

    def dynamic_base(self) -> int:
        """Return where dynamic shared memory starts."""
        return aligned(self.next_shared, self.dynamic_alignment)

    def settle(self, entry: Function) -> None:
        """Place the shared variables that the program of an entry names, those of dynamic shared memory last."""
        order = _order_of_shared(self.module, entry)
        for key, symbol in sorted(self.waiting.items(), key=lambda item: order[id(item[1].declaration), item[0][0]]):
            self.address(key[0], symbol)
        for key in self.dynamic:
            self.placed[key] = self.dynamic_base()
            self.shared.append((self.dynamic_base(), key[0]))

    def shared_names(self, parts: Mapping[str, int]) -> SharedNames:
        """Return the names of places of shared memory; `parts` names some behind the dynamic symbol."""
        dynamic = ((self.dynamic_base() + offset, name) for name, offset in parts.items())
        return SharedNames((*self.shared, *dynamic), self.sizes)

    def shared_symbol(self, address: int) -> str:
        """Return the variable that a place of shared memory lies in or behind, empty if there is none."""
        return max(((start, name) for start, name in self.shared if start <= address), default=(0, ""))[1]

    def _place(self, key: tuple[str, int], symbol: Symbol) -> None:
        declared = symbol.declaration
        assert isinstance(declared, VarDecl)
        item = declarator_of(key[0], declared)
        extern = declared.linking is not None and declared.linking.ptx == ".extern"
        defined = self._definition(key[0], declared) if extern else None
        if defined is not None:
            declared, item = defined
        elif extern and symbol.space != "shared":
            raise faults.error(
                faults.UNDEFINED_EXTERN, declared.origin, f"`{key[0]}` is external and nothing defines it"
            )
        size, alignment = size_and_alignment(declared, item)
        if symbol.space == "shared":
            self._place_shared(key, declared, size, alignment)
            return
        known = self.globals.placed.get((key[0], id(declared)))
        if known is not None:
            self.placed[key] = known
            return
        address = self.placed[key] = self.globals.place((key[0], id(declared)), size, alignment)
        try:
            data = np.zeros(size, np.uint8)
        except MemoryError:
            text = f"no memory for `{key[0]}`, {size} bytes"
            raise faults.error(faults.OUT_OF_MEMORY, declared.origin, text) from None
        self.globals.allocations.append(
            Allocation(address, size, key[0], data, symbol.space, symbol.space != "const", lent=True)
        )
        self._initialise(data, declared, item)

    def _definition(self, name: str, declared: VarDecl) -> tuple[VarDecl, Declarator] | None:
        for statement in self.module.directives:
            if isinstance(statement, VarDecl) and statement is not declared:
                for item in statement.declarators:
                    if item.name == name and (statement.linking is None or statement.linking.ptx != ".extern"):
                        return statement, item
        return None

    def _place_shared(self, key: tuple[str, int], declared: VarDecl, size: int, alignment: int) -> None:
        if not size:
            self.dynamic_alignment = max(self.dynamic_alignment, alignment)
            self.dynamic.append(key)
            self.placed[key] = self.shared_base
            return
        known = self.in_shared.get((key[0], id(declared)))
        if known is not None:
            self.placed[key] = known
            return
        address = aligned(self.next_shared, alignment)
        self.placed[key] = self.in_shared[key[0], id(declared)] = address
        self.shared.append((address, key[0]))
        self.sizes[address] = size
        self.next_shared = address + size

    def _initialise(self, data: Array, declared: VarDecl, item: Declarator) -> None:
        if item.initializer is None or declared.type.ptx in _OPAQUE:
            return
        width = max(8, declared.type.bits) // 8
        kind = declared.type.ptx[1:]
        sizes = ([int(item.array_size)] if item.array_size is not None else []) + [int(d) for d in item.dims]
        if declared.vector:
            sizes.append(declared.vector)
        try:
            self._fill(data, 0, list(item.initializer), sizes[1:], width, kind)
        except Valueless as why:
            text = f"the value of `{item.name}` is not legal: {why}"
            raise faults.error(faults.ILLEGAL, declared.origin, text) from None

    def _fill(
        self, contents: Array, offset: int, values: list[str | Operand], inner: list[int], width: int, kind: str
    ) -> None:
        step = width
        for size in inner:
            step *= size
        for value in values:
            if isinstance(value, VectorOperand):
                self._fill(contents, offset, list(value.elements), inner[1:], width, kind)
                offset += step
            else:
                data = self._bytes(value, width, kind)
                if offset + len(data) > len(contents):
                    raise Valueless("it has more values than elements")
                contents[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
                offset += len(data)

    def _bytes(self, value: str | Operand, width: int, kind: str) -> bytes:
        if isinstance(value, MaskOperand):
            whole = self._value(value.operand)
            mask = int(number_value(value.mask))
            picked, shift = 0, 0
            for byte in range(8):
                if mask >> 8 * byte & 0xFF:
                    picked |= (int(whole) >> 8 * byte & 0xFF) << shift
                    shift += 8
            return picked.to_bytes(width, "little")
        number = self._value(value)
        if kind in ("f32", "f64"):
            return struct.pack("<f" if kind == "f32" else "<d", float(number))
        if isinstance(number, float):
            return struct.pack("<f" if width == 4 else "<d", number)[:width]
        return (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")

    def _value(self, value: str | Operand) -> int | float:
        if isinstance(value, str):
            try:
                return number_value(value)
            except ValueError:
                return self._symbol(value)
        if isinstance(value, GenericOperand):
            return self._symbol(value.symbol)
        if isinstance(value, LabelOperand | RegisterOperand):
            return self._symbol(value.name)
        if isinstance(value, BinaryOperand) and value.operator in "+-":
            left, right = self._value(value.left), self._value(value.right)
            return left + right if value.operator == "+" else left - right
        if isinstance(value, ImmediateOperand):
            return value.value
        found = evaluate(value)
        if found is None:
            raise Valueless("a constant expression without a value")
        return found

    def _symbol(self, name: str) -> int:
        symbol = self.names.find(name)
        if symbol is None:
            raise Valueless(f"`{name}` is not declared")
        if symbol.kind is Kind.FUNCTION:
            number = self.functions(name)
            return FUNCTION_BASE + FUNCTION_STEP * number if number >= 0 else 0
        if symbol.space == "shared":
            raise Valueless(f"`{name}` is shared memory, an initializer names global memory and constants")
        return self.address(name, symbol)


def _order_of_shared(module: Module, entry: Function) -> dict[tuple[int, str], int]:
    """Return the order in which ptxas 13.5 places shared variables, for every target: those that other modules may see,
    the entry's own, the module's, those of functions. Each lies at the next multiple of its own alignment; those that
    nothing names take no addresses. Functions count from their first declaration."""
    at_module = [statement for statement in module.directives if isinstance(statement, VarDecl)]
    functions: dict[str, list[VarDecl]] = {}
    for function in module.directives:
        if isinstance(function, Function) and function is not entry:
            functions.setdefault(function.name, []).extend(_declared_in(function))
    order: dict[tuple[int, str], int] = {}
    for declared in (
        *(item for item in at_module if item.linking is not None),
        *_declared_in(entry),
        *at_module,
        *chain.from_iterable(functions.values()),
    ):
        for item in declared.declarators:
            order.setdefault((id(declared), item.name), len(order))
    return order


def _declared_in(function: Function) -> list[VarDecl]:
    return [statement for statement in visit(function) if isinstance(statement, VarDecl)]
