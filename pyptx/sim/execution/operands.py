"""Write operands as expressions over register views and constants. Generated text contains only our own names and
checked numbers, never text of the PTX."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.check.symbols import Kind as Means
from pyptx.check.symbols import Scope, Symbol
from pyptx.ir import (
    AddressOperand,
    BinaryOperand,
    ConstantAddressOperand,
    ImmediateOperand,
    IndexedOperand,
    LabelOperand,
    NegatedOperand,
    Param,
    RegisterOperand,
    UnaryOperand,
    VarDecl,
    VectorOperand,
    displacement,
    evaluate,
)
from pyptx.ir.operands import Operand as Actual
from pyptx.isa.special import find_special_register
from pyptx.sim.base.formats import CLASSES, Value, dtype_of, make_constant, suffix_of
from pyptx.sim.program.blocks import Block, Program, resolve_name
from pyptx.sim.program.frames import find_declarator, measure_declaration
from pyptx.sim.program.registers import Row
from pyptx.sim.program.variables import FUNCTION_BASE, FUNCTION_STEP
from pyptx.sim.state.special import MOVING, explain_missing_value
from pyptx.types import from_name

_PAIR = "L.select_values('pair', L.shape.pair)"
_PART = {"b": "u1", "h": "u2"}


class Unreadable(Exception):
    """An operand that the simulator cannot read; the caller names the instruction."""


class Valueless(Unreadable):
    """A special register that has no value here."""


class Operands:
    """The expressions of one block. `views` are the register views it uses, by name; `constants` its numbers."""

    def __init__(self, program: Program, block: Block) -> None:
        self.program, self.block, self.code = program, block, block.code
        self.views: dict[str, tuple[str, str, int]] = {}
        self.specials: dict[str, str] = {}
        self.constants: dict[str, Any] = {}
        self.uses_stack = False
        self.position = 0
        """The position of the current instruction in the block."""
        self.writes: dict[str, bool] = {}
        self.gathers: set[str] = set()
        self.named_registers: dict[int, bool] = {}
        """The 32-bit registers named since the last clear, and whether they are written."""

    def add_constant(self, value: Value) -> str:
        """Return the name of a value that the code uses."""
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def name_view(self, row: Row, suffix: str = "", element: int = 0, reads: bool = True) -> str:
        """Return the name of a register's view, which is read unless `reads` is false."""
        index = row.index + element
        name = f"{row.letter}{index}{suffix}"
        self.views[name] = (row.letter, suffix, index)
        if row.letter == "r":
            self.named_registers[index] = self.named_registers.get(index, False) or not reads
        if reads and f"{row.letter}{index}" not in self.writes:
            self.gathers.add(f"{row.letter}{index}")
        return name

    def record_write(self, view: str, partly: bool) -> None:
        """Record that a view is written, in some lanes only or in all."""
        letter, _, index = self.views[view]
        if partly and f"{letter}{index}" not in self.writes:
            self.gathers.add(f"{letter}{index}")
        self.writes[f"{letter}{index}"] = True

    def find_row(self, name: str, scope: Scope) -> Row | None:
        """Return the register of a name."""
        symbol = scope.find(name)
        if symbol is None or symbol.kind is not Means.REGISTER:
            return None
        return self.code.rows.add((name, id(symbol)), symbol)

    def read(self, operand: Actual, type_name: str, scope: Scope) -> str:
        """Return an expression for an operand's value as a type. A number of 128 bits has an upper half of zeros."""
        if isinstance(operand, NegatedOperand):
            return f"(~{self.read(operand.operand, 'pred', scope)})"
        if isinstance(operand, RegisterOperand | LabelOperand):
            return self._read_name(operand.name, type_name, scope)
        if isinstance(operand, UnaryOperand) and isinstance(operand.operand, RegisterOperand):
            return f"(-{self.read(operand.operand, type_name, scope)}.astype('i8'))"
        if isinstance(operand, VectorOperand) and len(operand.elements) == 1:
            return self.read(operand.elements[0], type_name, scope)
        number = operand.value if isinstance(operand, ImmediateOperand) else evaluate(operand)
        if number is None and isinstance(operand, BinaryOperand):
            return self._read_symbol_sum(operand, type_name, scope)
        if number is None:
            raise Unreadable(type(operand).__name__)
        if type_name == "b128":
            return f"({self.add_constant(make_constant(number, 'b64'))}, {self.add_constant(make_constant(0, 'b64'))})"
        return self.add_constant(make_constant(number, type_name))

    def _read_name(self, name: str, type_name: str, scope: Scope) -> str:
        row = self.find_row(name, scope)
        if row is not None:
            return self._read_register(row, type_name)
        symbol, _ = resolve_name(name, scope)
        if symbol is not None and symbol.kind is not Means.REGISTER:
            return self.address_of(name, symbol, type_name)
        special = find_special_register(name)
        if special is not None:
            return self._read_special(name, type_name)
        base, _, part = name.rpartition(".")
        row = self.find_row(base, scope)
        if row is None or not part:
            raise Unreadable(name)
        return self._read_part(row, part, type_name)

    def _read_register(self, row: Row, type_name: str) -> str:
        dtype, own = dtype_of(type_name), np.dtype(CLASSES[row.letter])
        if dtype.itemsize == own.itemsize:
            return self.name_view(row, suffix_of(dtype))
        view = self.name_view(row)
        if dtype.kind == "f":
            return f"{view}.astype('u{dtype.itemsize}').view('{dtype.str}')"
        if dtype.kind == "i" and dtype.itemsize > own.itemsize:
            view = self.name_view(row, "i")
        return f"{view}.astype('{dtype.str}')"

    def _read_part(self, row: Row, part: str, type_name: str) -> str:
        """Read bytes or halves of a register as video instructions select them (`.b0`, `.h1`), extended."""
        kind, index = part[0], int(part[1])
        unit = _PART[kind].replace("u", "i") if type_name.startswith("s") else _PART[kind]
        view = self.name_view(row)
        bits = 8 if kind == "b" else 16
        return f"({view} >> {bits * index}).astype('{unit}').astype('{dtype_of(type_name).str}')"

    def _read_special(self, name: str, type_name: str) -> str:
        reason = explain_missing_value(name, self.program.target)
        if reason is not None:
            raise Valueless(f"`{name}` has no value: {reason}")
        if name in MOVING:
            expression = f"M.read_clock({name!r}, {self.position})"
        else:
            expression = self.specials.setdefault(name, f"s{len(self.specials)}")
        dtype = dtype_of(type_name)
        return f"({expression} != 0)" if dtype.kind == "b" else f"{expression}.astype('{dtype.str}', copy=False)"

    def address_of(self, name: str, symbol: Symbol, type_name: str) -> str:
        """Return the address of a variable or function as a value."""
        address = self.place(name, symbol)
        dtype = dtype_of(type_name)
        if isinstance(address, int):
            number = self.add_constant(make_constant(address, type_name))
            return f"({number} + {_PAIR}).astype('{dtype.str}')" if self._shows_pair(symbol) else number
        return f"({address}).astype('{dtype.str}')"

    def _shows_pair(self, symbol: Symbol) -> bool:
        """Tell whether the address of a variable depends on the CTA."""
        return self.program.pairs and symbol.kind is Means.VARIABLE and symbol.space == "shared"

    def place(self, name: str, symbol: Symbol) -> int | str:
        """Return the address of a symbol in its space: a number, or an expression relative to the stack."""
        if symbol.kind is Means.FUNCTION:
            target = self.program.by_name.get(name)
            number = target.number if target is not None else len(self.program.module.directives)
            return FUNCTION_BASE + FUNCTION_STEP * number
        if symbol.kind is not Means.VARIABLE:
            raise Unreadable(name)
        if symbol.space not in ("local", "param"):
            return self.program.variables.find_address(name, symbol)
        if isinstance(symbol.declaration, Param) and self.code.function.is_entry:
            return next(offset for param, offset, _ in self.code.frame.params if param.name == name)
        offset = self.code.frame.find_offset(name, symbol)
        if self.code.function.is_entry:
            return offset
        self.uses_stack = True
        return f"sp + {offset}"

    def _read_symbol_sum(self, operand: BinaryOperand, type_name: str, scope: Scope) -> str:
        extra = evaluate(operand.right)
        if not isinstance(extra, int) or operand.operator not in ("+", "-"):
            raise Unreadable("a constant expression without a value")
        extra = -extra if operand.operator == "-" else extra
        row = (
            self.find_row(operand.left.name, scope)
            if isinstance(operand.left, RegisterOperand | LabelOperand)
            else None
        )
        if row is not None:
            return self._read_register_sum(row, extra, type_name)
        left = self.read(operand.left, type_name, scope)
        return f"({left} + {self.add_constant(make_constant(extra, type_name))})"

    def _read_register_sum(self, row: Row, extra: int, type_name: str) -> str:
        """Add a number to a register's bits, with wraparound, before they are read as a type."""
        own = np.dtype(CLASSES[row.letter])
        dtype = dtype_of(type_name)
        widens = dtype.kind == "i" and dtype.itemsize > own.itemsize
        number = self.add_constant(make_constant(extra, f"{'s' if widens else 'b'}{8 * own.itemsize}"))
        total = f"({self.name_view(row, 'i' if widens else '')} + {number})"
        return (
            f"{total}.astype('{dtype.str}')" if widens else f"{total}.astype('u{dtype.itemsize}').view('{dtype.str}')"
        )

    def read_address(self, operand: Actual, space: str | None, step: Step) -> tuple[str, str]:
        """Return the space of an address operand as memory names it, and the expression of its value."""
        memory_space = "shared" if space and space.startswith("shared") else (space or "").partition("::")[0]
        if isinstance(operand, ConstantAddressOperand):
            return memory_space, str(_integer(evaluate(operand.expression)))
        if isinstance(operand, IndexedOperand):
            return self._read_indexed(operand, memory_space, step)
        if not isinstance(operand, AddressOperand):
            raise Unreadable(type(operand).__name__)
        offset = displacement(operand)
        if operand.base[0] in "-.0123456789":
            return memory_space, str(_integer(evaluate(ImmediateOperand(operand.base))) + (offset or 0))
        if offset is None:
            raise Unreadable("displacement")
        return self._read_based(operand.base, offset, memory_space, step)

    def _read_indexed(self, operand: IndexedOperand, space: str, step: Step) -> tuple[str, str]:
        """Return the address of an element. As in ptxas 13.5, the index is taken and multiplied in 32 bits, and counts
        bytes if the array has no size."""
        symbol, _ = resolve_name(operand.name, step.scope)
        if symbol is None or symbol.kind is not Means.VARIABLE:
            raise Unreadable(operand.name)
        size = from_name(symbol.type).bits // 8 if _has_size(operand.name, symbol) else 1
        number = evaluate(operand.index)
        if number is not None:
            return self._read_based(operand.name, _integer(number) * size, space, step)
        space, base = self._read_based(operand.name, 0, space, step)
        index = f"({self.read(operand.index, 'u32', step.scope)} * {self.add_constant(make_constant(size, 'u32'))})"
        target = {"shared": "u4", "local": "i8"}.get(space, "u8")
        return space, f"({index}.astype('{target}') + ({base}))"

    def _read_based(self, name: str, offset: int, space: str, step: Step) -> tuple[str, str]:
        row = self.find_row(name, step.scope)
        if row is None:
            symbol, _ = resolve_name(name, step.scope)
            if symbol is None:
                raise Unreadable(name)
            address = self.place(name, symbol)
            own = "shared" if symbol.space == "shared" else symbol.space
            if own == "param" and not (isinstance(symbol.declaration, Param) and self.code.function.is_entry):
                own = "local"
            if space in ("", own) or own == "local":
                space = own
            if isinstance(address, int) and self._shows_pair(symbol):
                return space, f"(np.uint32({address + offset}) + {_PAIR})"
            return space, str(address + offset) if isinstance(address, int) else f"{address} + {offset}"
        if space == "param" and not self.code.function.is_entry:
            space = "local"
        base = self.name_view(row)
        if row.letter != "d" and space != "shared":
            base += ".astype('u8')"
        if not offset:
            return space, base
        width = "b32" if row.letter == "r" and space == "shared" else "b64"
        return space, f"({base} + {self.add_constant(make_constant(offset, width))})"


def _has_size(name: str, symbol: Symbol) -> bool:
    """Return whether the declaration of a variable gives its size."""
    declaration = symbol.declaration
    return isinstance(declaration, Param) or (
        isinstance(declaration, VarDecl) and measure_declaration(declaration, find_declarator(name, declaration))[0] > 0
    )


def _integer(value: int | float | None) -> int:
    if not isinstance(value, int):
        raise Unreadable("address")
    return value
