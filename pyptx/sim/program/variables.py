"""Addresses and initial contents of variables in `.global`, `.const` and `.shared`. Knows the address map, no lanes."""

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
from pyptx.sim.program.frames import align_up, find_declarator, measure_declaration
from pyptx.sim.program.shared_names import SharedNames
from pyptx.sim.rules import faults

PARAM_BASE = 0x1_0000_0000
SHARED_WINDOW = 0x2_0000_0000
LOCAL_WINDOW = 0x3_0000_0000
FUNCTION_BASE = 0x4_0000_0000
FUNCTION_STEP = 16
GLOBAL_BASE = 0x7F_0000_0000
"""The generic address space: kernel parameters, the windows of shared and local memory, and functions. Global memory
and constants start at GLOBAL_BASE."""

_OPAQUE = frozenset((".texref", ".samplerref", ".surfref"))
"""Types whose initializers describe an object, not bytes."""
GUARD = 256
"""The number of unused bytes between two global allocations."""


@dataclass(slots=True)
class Allocation:
    """An allocation of global memory with its initial contents; `lent` data belongs to the caller."""

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
    """Raised for a part of an initializer that has no value; the caller adds the variable's name."""


@dataclass(slots=True)
class Globals:
    """The variables in global and constant memory, shared by all programs that run on the same memory. Keys are names
    and declarations."""

    next: int = GLOBAL_BASE
    addresses: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    allocations: list[Allocation] = field(default_factory=list[Allocation])

    def place(self, name: str, declaration: VarDecl, size: int, alignment: int) -> Allocation:
        """Place a new variable and return its memory, which is zero."""
        address, data = self.allocate(size, max(alignment, 256))
        self.addresses[name, id(declaration)] = address
        space = declaration.state_space.ptx.removeprefix(".")
        allocation = Allocation(address, size, name, data, space, space != "const", lent=True)
        self.allocations.append(allocation)
        return allocation

    def allocate(self, size: int, alignment: int) -> tuple[int, Array]:
        """Return an address and that many bytes for a variable."""
        address = align_up(self.next, alignment)
        self.next = address + size + GUARD
        return address, np.zeros(size, np.uint8)


@dataclass(slots=True)
class Variables:
    """The variables that a program names; `functions` returns the number of a function whose address is taken."""

    module: Module
    names: Scope
    functions: Callable[[str], int]
    shared_base: int
    globals: Globals = field(default_factory=Globals)
    next_shared: int = 0
    dynamic_alignment: int = 16
    addresses: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    dynamic: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    shared: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """The start and name of each shared variable."""
    sizes: dict[int, int] = field(default_factory=dict[int, int])
    """The sizes of shared variables, if known, by start."""
    in_shared: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """The starts of shared variables by name and declaration."""
    pending_shared: dict[tuple[str, int], Symbol] = field(default_factory=dict[tuple[str, int], Symbol])
    """Shared variables that the program names; their addresses depend on all of them."""

    def __post_init__(self) -> None:
        self.next_shared = self.shared_base

    def add(self, name: str, symbol: Symbol) -> None:
        """Add a variable that the program names."""
        if symbol.space == "shared":
            self.pending_shared[name, id(symbol)] = symbol
        else:
            self.find_address(name, symbol)

    def find_address(self, name: str, symbol: Symbol) -> int:
        """Return a variable's address in its space, placing it on first use. A shared variable has its final address
        after `place_shared`."""
        key = (name, id(symbol))
        address = self.addresses.get(key)
        if address is None:
            self._place(key, symbol)
            address = self.addresses[key]
        return address

    def find_dynamic_base(self) -> int:
        """Return the start of dynamic shared memory."""
        return align_up(self.next_shared, self.dynamic_alignment)

    def place_shared(self, entry: Function) -> None:
        """Place the shared variables that the program of an entry names, dynamic shared memory last."""
        order = _order_shared_variables(self.module, entry)
        for key, symbol in sorted(
            self.pending_shared.items(), key=lambda item: order[id(item[1].declaration), item[0][0]]
        ):
            self.find_address(key[0], symbol)
        for key in self.dynamic:
            self.addresses[key] = self.find_dynamic_base()
            self.shared.append((self.find_dynamic_base(), key[0]))

    def list_shared_names(self, parts: Mapping[str, int]) -> SharedNames:
        """Return the names of addresses in shared memory; `parts` are names by offset in dynamic memory."""
        dynamic = ((self.find_dynamic_base() + offset, name) for name, offset in parts.items())
        return SharedNames((*self.shared, *dynamic), self.sizes)

    def find_shared_symbol(self, address: int) -> str:
        """Return the last variable that starts at or before a shared address, or an empty string."""
        return max(((start, name) for start, name in self.shared if start <= address), default=(0, ""))[1]

    def _place(self, key: tuple[str, int], symbol: Symbol) -> None:
        declaration = symbol.declaration
        assert isinstance(declaration, VarDecl)
        item = find_declarator(key[0], declaration)
        extern = declaration.linking is not None and declaration.linking.ptx == ".extern"
        definition = self._find_definition(key[0], declaration) if extern else None
        if definition is not None:
            declaration, item = definition
        elif extern and symbol.space != "shared":
            raise faults.error(
                faults.UNDEFINED_EXTERN, declaration.origin, f"`{key[0]}` is external, but no module defines it"
            )
        size, alignment = measure_declaration(declaration, item)
        if symbol.space == "shared":
            self._place_shared(key, declaration, size, alignment)
            return
        global_address = self.globals.addresses.get((key[0], id(declaration)))
        if global_address is not None:
            self.addresses[key] = global_address
            # Other programs placed it; this one must know the functions whose addresses it contains.
            self._initialize(np.zeros(size, np.uint8), declaration, item)
            return
        try:
            allocation = self.globals.place(key[0], declaration, size, alignment)
        except MemoryError:
            text = f"not enough memory for the {size} bytes of `{key[0]}`"
            raise faults.error(faults.OUT_OF_MEMORY, declaration.origin, text) from None
        self.addresses[key] = allocation.address
        self._initialize(allocation.data, declaration, item)

    def _find_definition(self, name: str, declaration: VarDecl) -> tuple[VarDecl, Declarator] | None:
        for statement in self.module.directives:
            if isinstance(statement, VarDecl) and statement is not declaration:
                for item in statement.declarators:
                    if item.name == name and (statement.linking is None or statement.linking.ptx != ".extern"):
                        return statement, item
        return None

    def _place_shared(self, key: tuple[str, int], declaration: VarDecl, size: int, alignment: int) -> None:
        if not size:
            self.dynamic_alignment = max(self.dynamic_alignment, alignment)
            self.dynamic.append(key)
            self.addresses[key] = self.shared_base
            return
        shared_address = self.in_shared.get((key[0], id(declaration)))
        if shared_address is not None:
            self.addresses[key] = shared_address
            return
        address = align_up(self.next_shared, alignment)
        self.addresses[key] = self.in_shared[key[0], id(declaration)] = address
        self.shared.append((address, key[0]))
        self.sizes[address] = size
        self.next_shared = address + size

    def _initialize(self, data: Array, declaration: VarDecl, item: Declarator) -> None:
        if item.initializer is None or declaration.type.ptx in _OPAQUE:
            return
        width = max(8, declaration.type.bits) // 8
        kind = declaration.type.ptx[1:]
        sizes = ([int(item.array_size)] if item.array_size is not None else []) + [int(d) for d in item.dims]
        if declaration.vector:
            sizes.append(declaration.vector)
        try:
            self._fill(data, 0, list(item.initializer), sizes[1:], width, kind)
        except Valueless as why:
            text = f"the value of `{item.name}` is not legal: {why}"
            raise faults.error(faults.ILLEGAL, declaration.origin, text) from None

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
                data = self._encode_value(value, width, kind)
                if offset + len(data) > len(contents):
                    raise Valueless("it has more values than elements")
                contents[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
                offset += len(data)

    def _encode_value(self, value: str | Operand, width: int, kind: str) -> bytes:
        if isinstance(value, MaskOperand):
            number, mask = int(self._evaluate(value.operand)), int(number_value(value.mask))
            # A mask is one byte: 0xFF, 0xFF00, …
            return (((number & mask) >> max(0, mask.bit_length() - 8)) & 0xFF).to_bytes(width, "little")
        number = self._evaluate(value)
        if kind in ("f32", "f64"):
            return struct.pack("<f" if kind == "f32" else "<d", float(number))
        if isinstance(number, float):
            return struct.pack("<f" if width == 4 else "<d", number)[:width]
        return (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")

    def _evaluate(self, value: str | Operand) -> int | float:
        if isinstance(value, str):
            try:
                return number_value(value)
            except ValueError:
                return self._resolve_symbol(value)
        if isinstance(value, GenericOperand):
            return self._resolve_symbol(value.symbol)
        if isinstance(value, LabelOperand | RegisterOperand):
            return self._resolve_symbol(value.name)
        if isinstance(value, BinaryOperand) and value.operator in "+-":
            lhs, rhs = self._evaluate(value.left), self._evaluate(value.right)
            return lhs + rhs if value.operator == "+" else lhs - rhs
        if isinstance(value, ImmediateOperand):
            return value.value
        number = evaluate(value)
        if number is None:
            raise Valueless("a constant expression without a value")
        return number

    def _resolve_symbol(self, name: str) -> int:
        symbol = self.names.find(name)
        if symbol is None:
            raise Valueless(f"`{name}` is not declared")
        if symbol.kind is Kind.FUNCTION:
            number = self.functions(name)
            return FUNCTION_BASE + FUNCTION_STEP * number if number >= 0 else 0
        if symbol.space == "shared":
            raise Valueless(f"`{name}` is in shared memory; an initializer may name only global and constant memory")
        return self.find_address(name, symbol)


def _order_shared_variables(module: Module, entry: Function) -> dict[tuple[int, str], int]:
    """Return the order in which ptxas 13.5 places shared variables on every target: variables with linking, the
    entry's own, the module's, those of functions in the order of their first declaration.

    Each variable lies at the next multiple of its alignment; a variable that nothing names has no address.
    """
    at_module = [statement for statement in module.directives if isinstance(statement, VarDecl)]
    functions: dict[str, list[VarDecl]] = {}
    for function in module.directives:
        if isinstance(function, Function) and function is not entry:
            functions.setdefault(function.name, []).extend(_find_declarations(function))
    order: dict[tuple[int, str], int] = {}
    for declaration in (
        *(item for item in at_module if item.linking is not None),
        *_find_declarations(entry),
        *at_module,
        *chain.from_iterable(functions.values()),
    ):
        for item in declaration.declarators:
            order.setdefault((id(declaration), item.name), len(order))
    return order


def _find_declarations(function: Function) -> list[VarDecl]:
    return [statement for statement in visit(function) if isinstance(statement, VarDecl)]
