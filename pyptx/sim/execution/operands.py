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
    VectorOperand,
    displacement,
    evaluate,
)
from pyptx.ir.operands import Operand as Actual
from pyptx.isa.special import find_special_register
from pyptx.sim.base.formats import CLASSES, Value, dtype_of, make_constant, suffix_of
from pyptx.sim.program.blocks import Block, Program, resolve_name
from pyptx.sim.program.registers import Row
from pyptx.sim.program.variables import FUNCTION_BASE, FUNCTION_STEP
from pyptx.sim.state.special import MOVING, explain_missing_value

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
        self.written: dict[str, bool] = {}
        self.gathered: set[str] = set()
        self.touched: dict[int, bool] = {}
        """The 32-bit registers named since the last clear, and whether they are written."""

    def constant(self, value: Value) -> str:
        """Return the name of a value that the code uses."""
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def view(self, row: Row, suffix: str = "", element: int = 0, reads: bool = True) -> str:
        """Return the name of a register's view, which is read unless `reads` is false."""
        index = row.index + element
        name = f"{row.letter}{index}{suffix}"
        self.views[name] = (row.letter, suffix, index)
        if row.letter == "r":
            self.touched[index] = self.touched.get(index, False) or not reads
        if reads and f"{row.letter}{index}" not in self.written:
            self.gathered.add(f"{row.letter}{index}")
        return name

    def wrote(self, view: str, partly: bool) -> None:
        """Record that a view is written, in some lanes only or in all."""
        letter, _, index = self.views[view]
        if partly and f"{letter}{index}" not in self.written:
            self.gathered.add(f"{letter}{index}")
        self.written[f"{letter}{index}"] = True

    def row(self, name: str, scope: Scope) -> Row | None:
        """Return the register of a name."""
        symbol = scope.find(name)
        if symbol is None or symbol.kind is not Means.REGISTER:
            return None
        return self.code.rows.add((name, id(symbol)), symbol)

    def read(self, given: Actual, type_name: str | None, scope: Scope) -> str:
        """Return an expression for an operand's value as a type; without one, as its register's bits."""
        if isinstance(given, NegatedOperand):
            return f"(~{self.read(given.operand, 'pred', scope)})"
        if isinstance(given, RegisterOperand | LabelOperand):
            return self._named(given.name, type_name, scope)
        if isinstance(given, UnaryOperand) and isinstance(given.operand, RegisterOperand):
            return f"(-{self.read(given.operand, type_name, scope)}.astype('i8'))"
        if isinstance(given, VectorOperand) and len(given.elements) == 1:
            return self.read(given.elements[0], type_name, scope)
        number = given.value if isinstance(given, ImmediateOperand) else evaluate(given)
        if number is None and isinstance(given, BinaryOperand):
            return self._symbol_sum(given, type_name, scope)
        if number is None or type_name == "b128":
            raise Unreadable(f"a number of {type_name}" if type_name == "b128" else type(given).__name__)
        return self.constant(make_constant(number, type_name or "b64"))

    def _named(self, name: str, type_name: str | None, scope: Scope) -> str:
        found = self.row(name, scope)
        if found is not None:
            return self._register(found, type_name)
        symbol, _ = resolve_name(name, scope)
        if symbol is not None and symbol.kind is not Means.REGISTER:
            return self.address_of(name, symbol, type_name or "u64")
        special = find_special_register(name)
        if special is not None:
            return self._special(name, type_name)
        base, _, part = name.rpartition(".")
        found = self.row(base, scope)
        if found is None or not part:
            raise Unreadable(name)
        return self._part(found, part, type_name or "u32")

    def _register(self, row: Row, type_name: str | None) -> str:
        if type_name is None:
            return self.view(row)
        dtype, own = dtype_of(type_name), np.dtype(CLASSES[row.letter])
        if dtype.itemsize == own.itemsize:
            return self.view(row, suffix_of(dtype))
        whole = self.view(row)
        if dtype.kind == "f":
            return f"{whole}.astype('u{dtype.itemsize}').view('{dtype.str}')"
        if dtype.kind == "i" and dtype.itemsize > own.itemsize:
            whole = self.view(row, "i")
        return f"{whole}.astype('{dtype.str}')"

    def _part(self, row: Row, part: str, type_name: str) -> str:
        """Read bytes or halves of a register as video instructions select them (`.b0`, `.h1`), extended."""
        kind, at = part[0], int(part[1])
        unit = _PART[kind].replace("u", "i") if type_name.startswith("s") else _PART[kind]
        whole = self.view(row)
        bits = 8 if kind == "b" else 16
        return f"({whole} >> {bits * at}).astype('{unit}').astype('{dtype_of(type_name).str}')"

    def _special(self, name: str, type_name: str | None) -> str:
        lacking = explain_missing_value(name, self.program.target)
        if lacking is not None:
            raise Valueless(f"`{name}` has no value: {lacking}")
        if name in MOVING:
            expression = f"M.clock({name!r}, {self.position})"
        else:
            expression = self.specials.setdefault(name, f"s{len(self.specials)}")
        wanted = dtype_of(type_name or "u32")
        return f"({expression} != 0)" if wanted.kind == "b" else f"{expression}.astype('{wanted.str}', copy=False)"

    def address_of(self, name: str, symbol: Symbol, type_name: str) -> str:
        """Return the address of a variable or function as a value."""
        at = self.place(name, symbol)
        dtype = dtype_of(type_name)
        if isinstance(at, int):
            number = self.constant(make_constant(at, type_name))
            return f"({number} + {_PAIR}).astype('{dtype.str}')" if self._shows_pair(symbol) else number
        return f"({at}).astype('{dtype.str}')"

    def _shows_pair(self, symbol: Symbol) -> bool:
        """Tell whether the address of a variable depends on the CTA."""
        return self.program.pairs and symbol.kind is Means.VARIABLE and symbol.space == "shared"

    def place(self, name: str, symbol: Symbol) -> int | str:
        """Return the address of a symbol in its space: a number, or an expression relative to the stack."""
        if symbol.kind is Means.FUNCTION:
            target = self.program.by_name.get(name)
            number = target.number if target is not None else len(self.program.codes)
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

    def _symbol_sum(self, given: BinaryOperand, type_name: str | None, scope: Scope) -> str:
        extra = evaluate(given.right)
        if not isinstance(extra, int) or given.operator not in ("+", "-"):
            raise Unreadable("a constant expression without a value")
        extra = -extra if given.operator == "-" else extra
        found = self.row(given.left.name, scope) if isinstance(given.left, RegisterOperand | LabelOperand) else None
        if found is not None:
            return self._register_sum(found, extra, type_name)
        return (
            f"({self.read(given.left, type_name, scope)} + {self.constant(make_constant(extra, type_name or 'u64'))})"
        )

    def _register_sum(self, row: Row, extra: int, type_name: str | None) -> str:
        """Add a number to a register's bits, with wraparound, before they are read as a type."""
        own = np.dtype(CLASSES[row.letter])
        dtype = dtype_of(type_name) if type_name is not None else own
        widens = dtype.kind == "i" and dtype.itemsize > own.itemsize
        number = self.constant(make_constant(extra, f"{'s' if widens else 'b'}{8 * own.itemsize}"))
        whole = f"({self.view(row, 'i' if widens else '')} + {number})"
        return (
            f"{whole}.astype('{dtype.str}')" if widens else f"{whole}.astype('u{dtype.itemsize}').view('{dtype.str}')"
        )

    def address(self, given: Actual, space: str | None, step: Step) -> tuple[str, str]:
        """Return the space of an address operand as memory names it, and the expression of its value."""
        where = "shared" if space and space.startswith("shared") else (space or "").partition("::")[0]
        if isinstance(given, ConstantAddressOperand):
            return where, str(_integer(evaluate(given.expression)))
        if isinstance(given, LabelOperand | RegisterOperand):
            return self._based(given.name, 0, where, step)
        if isinstance(given, IndexedOperand):
            return self._based(given.name, _integer(evaluate(given.index)), where, step)
        if not isinstance(given, AddressOperand):
            raise Unreadable(type(given).__name__)
        offset = displacement(given)
        if given.base[0] in "-.0123456789":
            return where, str(_integer(evaluate(ImmediateOperand(given.base))) + (offset or 0))
        if offset is None:
            raise Unreadable("displacement")
        return self._based(given.base, offset, where, step)

    def _based(self, name: str, offset: int, space: str, step: Step) -> tuple[str, str]:
        found = self.row(name, step.scope)
        if found is None:
            symbol, _ = resolve_name(name, step.scope)
            if symbol is None:
                raise Unreadable(name)
            at = self.place(name, symbol)
            own = "shared" if symbol.space == "shared" else symbol.space
            if own == "param" and not (isinstance(symbol.declaration, Param) and self.code.function.is_entry):
                own = "local"
            if space in ("", own) or own == "local":
                space = own
            if isinstance(at, int) and self._shows_pair(symbol):
                return space, f"(np.uint32({at + offset}) + {_PAIR})"
            return space, str(at + offset) if isinstance(at, int) else f"{at} + {offset}"
        if space == "param" and not self.code.function.is_entry:
            space = "local"
        base = self.view(found)
        if found.letter != "d" and space != "shared":
            base += ".astype('u8')"
        if not offset:
            return space, base
        width = "b32" if found.letter == "r" and space == "shared" else "b64"
        return space, f"({base} + {self.constant(make_constant(offset, width))})"


def _integer(value: int | float | None) -> int:
    if not isinstance(value, int):
        raise Unreadable("address")
    return value
