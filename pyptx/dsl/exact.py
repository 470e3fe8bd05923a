"""Exact transcripts: a trace whose statements are emitted as written; nothing is hoisted, added, folded or commented.

`Exact` is attached to the trace. It builds instructions from Python values (the table must have the spelling and the
kinds of operands; `check` judges whether they fit), and assigns given names to operator results.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from pyptx.check.complaint import Complaint
from pyptx.check.operand_rules import GUARD
from pyptx.dsl import rules
from pyptx.dsl.emit import (
    SINK,
    Spelling,
    describe,
    find_plans,
    place,
    refuse,
    refuse_count,
    refuse_foreign,
    require_plans,
)
from pyptx.dsl.exact_layout import apply_layout
from pyptx.dsl.origin import find_user_frame
from pyptx.dsl.trace import Trace, fail
from pyptx.dsl.values import Negation, Register, Value, make_float_literal
from pyptx.emitter.styles import Style
from pyptx.ir.kinds import ScalarType
from pyptx.ir.nodes import Instruction, Predicate, Statement
from pyptx.ir.operands import (
    AddressOperand,
    ConstantAddressOperand,
    ImmediateOperand,
    LabelOperand,
    NegatedOperand,
    Operand,
    ParenthesizedOperand,
    RegisterOperand,
    VectorOperand,
    text_of,
)
from pyptx.isa.model import Kind
from pyptx.isa.targets import Target, Version
from pyptx.types import PtxType, f32

NAME = re.compile(r"(?:[A-Za-z_][\w$]*|[$%][\w$]+)", re.ASCII)
_SYMBOL = re.compile(rf"{NAME.pattern}(?:\.\w+)?", re.ASCII)
Places = tuple[bool, ...]


class NameQueues:
    """Names that `ptx.names` assigns to registers, by class and in order, and to labels created inside it."""

    def __init__(self, exact: Exact, registers: Sequence[Register], labels: Sequence[str]) -> None:
        self.queues: dict[tuple[str, int], deque[str]] = {}
        for register in registers:
            self.queues.setdefault(exact.find_class(register), deque()).append(register.name)
        self.labels = deque(labels)

    def take(self, dtype: PtxType) -> str | None:
        """Return the next register for a value of this type, or None if none is left."""
        for key in _list_classes(dtype):
            queue = self.queues.get(key)
            if queue:
                return queue.popleft()
        return None


def _list_classes(dtype: PtxType) -> tuple[tuple[str, int], ...]:
    """Return the register classes that can hold a value: floats prefer float registers, everything fits untyped
    ones."""
    if dtype.name == "pred":
        return (("pred", 1),)
    bits = 16 if dtype.bits < 16 else dtype.bits
    own = ("f", bits) if dtype.kind == "f" and dtype.name in ("f16", "f32", "f64", "bf16") else ("i", bits)
    return own, ("b", bits), *((("i", bits),) if dtype.kind == "b" else ())


class Exact:
    """The state of an exact trace besides its statements."""

    def __init__(self, trace: Trace, style: Style | None = None) -> None:
        self.trace = trace
        self.style = style
        """The spacing of the body when the trace ends; None leaves it to the enclosing module."""
        self.name_queues: list[NameQueues] = []
        self.types: dict[str, ScalarType] = {}
        self.ranges: dict[str, list[tuple[int, ScalarType]]] = {}
        """The lengths and types of the ranges of each base."""
        self.blocks: list[Any] = []
        self.places: dict[tuple[Spelling, int], Places] = {}
        self.symbols: dict[str, Operand] = {}
        self.numbers: dict[int, ImmediateOperand] = {}
        trace.top.prefix = "fresh_"

    def find_class(self, register: Register) -> tuple[str, int]:
        """Return the declared class of a register."""
        kind = self.find_type(register.name)
        name = register.__type_name__ if kind is None else kind.ptx[1:]
        bits = register.dtype.bits if kind is None else kind.bits
        if name == "pred":
            return "pred", 1
        return ("f" if name[0] == "f" else "b" if name[0] == "b" and name[1] != "f" else "i"), max(bits, 16)

    def find_type(self, name: str) -> ScalarType | None:
        """Return the declared type of a register."""
        scalar_type = self.types.get(name)
        if scalar_type is not None:
            return scalar_type
        for index in range(len(name) - 1, 0, -1):
            if not "0" <= name[index] <= "9":
                return None
            for count, kind in (
                self.ranges.get(name[:index], ()) if name[index] != "0" or index == len(name) - 1 else ()
            ):
                if int(name[index:]) < count:
                    return kind
        return None

    def take(self, dtype: PtxType) -> str | None:
        """Return the name for a new register, or None to generate one."""
        return self.name_queues[-1].take(dtype) if self.name_queues else None

    def take_label(self, kind: str) -> str:
        """Return the next given label, or generate one."""
        if self.name_queues and self.name_queues[-1].labels:
            return self.name_queues[-1].labels.popleft()
        trace = self.trace
        while True:
            name = f"$fresh_{kind}_{trace.number(f'exact {kind}')}"
            if name not in trace.used_names:
                return name

    def emit(self, spelling: Spelling, values: Sequence[Any], pred: Any, *, is_unchecked: bool = False) -> Instruction:
        """Add one instruction as written."""
        trace = self.trace
        places = self.places.get((spelling, len(values)))
        if places is None:
            places = self._find_places(spelling, len(values), is_unchecked)
        operands: list[Operand] = []
        for value, is_address in zip(values, places, strict=True):
            if isinstance(value, Register):
                if value.__trace__ is not trace and value.__trace__ is not None:
                    refuse_foreign(value)
                operands.append(value.__address__() if is_address else value.__node__)
            elif isinstance(value, Operand):
                operands.append(value)
            else:
                operands.append(self._place(spelling, len(operands), value, is_address, len(values)))
        guard = None if pred is None else self.make_guard(pred)
        origin = find_user_frame(trace.root, trace.frames)
        node = Instruction(spelling.opcode, spelling.dotted, tuple(operands), guard, None, origin)
        trace.append(node)
        return node

    def _find_places(self, spelling: Spelling, count: int, is_unchecked: bool) -> Places:
        """Return which operands are addresses; refuse a spelling that the table does not have."""
        if is_unchecked:
            return (False,) * count
        trace = self.trace
        entry = find_address_places(spelling, count, trace.target, trace.table_version)
        if entry is None:
            refuse_count(trace, spelling, require_plans(trace, spelling, count), count)
        require_plans(trace, spelling, count)
        places, version = entry
        if version > trace.least_version:
            trace.require_version(version, f"`{spelling}`")
        self.places[spelling, count] = places
        return places

    def _place(self, spelling: Spelling, index: int, value: Any, is_address: bool, count: int) -> Operand:
        if isinstance(value, float):
            for plan in self.trace.plans.get(spelling, {}).get(count, ()):
                operand = place(value, plan.signature[index], self.trace)
                if isinstance(operand, Operand):
                    return operand
        if is_address and isinstance(value, str | int) and not isinstance(value, bool):
            return AddressOperand(str(value))
        if is_address and isinstance(value, Value):
            return value.__address__()
        return self.convert_operand(value)

    def convert_operand(self, value: Any) -> Operand:
        """Return a Python value as the operand that it spells."""
        if isinstance(value, Register):
            return value.__node__
        if isinstance(value, Operand):
            return value
        if isinstance(value, str):
            node = self.symbols.get(value)
            return node if node is not None else self._make_symbol(value)
        if isinstance(value, int):
            node = self.numbers.get(value)
            if node is None:
                node = self.numbers[value] = ImmediateOperand(str(int(value)))
            return node
        if value is None:
            return SINK
        if isinstance(value, list):
            return VectorOperand(tuple([self.convert_operand(item) for item in cast("list[Any]", value)]))
        if isinstance(value, tuple):
            return ParenthesizedOperand(tuple([self.convert_operand(item) for item in cast("tuple[Any, ...]", value)]))
        if isinstance(value, Value):
            return value.__operand__()
        if isinstance(value, float):
            return make_float_literal(value, f32)
        return fail(
            rules.OPERAND,
            f"an operand cannot be {describe(value)}",
            help="pass a register, a number, a name (str), a list, a tuple, ptx.addr(...) or a ptx.op value",
        )

    def _make_symbol(self, name: str) -> Operand:
        if not _SYMBOL.fullmatch(name):
            fail(rules.NAME, f"expected the name of a symbol or register, found {describe(name)}")
        node = RegisterOperand(name) if name[0] == "%" or name == "_" or "." in name else LabelOperand(name)
        self.symbols[name] = node
        return node

    def build_address(self, base: Any, offset: Any, extras: Sequence[Any]) -> Operand:
        """Return `[base]`, `[base+offset]`, `[map, {…}]` as written."""
        parts: Sequence[Any] = extras
        if offset is not None and (extras or type(offset) in (list, tuple)):
            parts, offset = (offset, *extras), None
        coordinates = tuple([self.convert_operand(part) for part in parts])
        start = self.convert_operand(base)
        if isinstance(start, AddressOperand) and offset is None and not coordinates:
            return start
        if not isinstance(start, RegisterOperand | LabelOperand | ImmediateOperand):
            if offset is not None or isinstance(start, AddressOperand):
                fail(
                    rules.ARGUMENT,
                    f"only a register, a symbol or a number takes an offset, found `{text_of(start)}`",
                    help="write one expression: ptx.addr(ptx.op.binary('+', …))",
                )
            return ConstantAddressOperand(start, coordinates)
        name = start.text if isinstance(start, ImmediateOperand) else start.name
        if offset is None:
            return AddressOperand(name, None, coordinates)
        offset_operand = self.convert_operand(offset)
        if isinstance(offset_operand, ImmediateOperand):
            return AddressOperand(name, offset_operand.text, coordinates)
        return AddressOperand(name, None, coordinates, offset_operand)

    def make_guard(self, pred: Any) -> Predicate:
        """Return the guard for `pred=`; a name is accepted too."""
        if isinstance(pred, Register):
            return pred.__guard__(False)
        if isinstance(pred, Negation):
            return pred.reg.__guard__(True)
        operand = self.convert_operand(pred) if isinstance(pred, str | Operand) else None
        is_negated = isinstance(operand, NegatedOperand)
        inner = operand.operand if isinstance(operand, NegatedOperand) else operand
        if not isinstance(inner, RegisterOperand | LabelOperand):
            refuse(self.trace, Complaint(GUARD, f"`pred` must be a predicate register, found {describe(pred)}"))
        return Predicate(inner.name, is_negated)

    def declare(self, kind: ScalarType, name: str, count: int | None) -> None:
        """Record the type of a declared register or range; generated names avoid it."""
        top = self.trace.top
        while name.startswith(f"%{top.prefix}"):
            if top.counts:
                fail(rules.NAME, f"`{name}` could collide with a generated register name", help="rename it")
            top.prefix = f"{top.prefix}fresh_"
        self.trace.used_names.add(name)
        if count is None:
            self.types[name] = kind
        else:
            self.ranges.setdefault(name, []).append((count, kind))

    def build_body(self) -> tuple[Statement, ...]:
        """Return the statements, preceded by declarations of what was created without one: registers without a given
        name, and shared memory of `smem.alloc`."""
        trace = self.trace
        statements = (*trace.top.build_statements(), *trace.variables, *trace.prologue, *trace.statements)
        return statements if self.style is None else tuple(apply_layout(statements, self.style, 1))


@lru_cache(maxsize=1 << 14)
def find_address_places(
    spelling: Spelling, count: int, target: Target, version: Version
) -> tuple[Places, Version] | None:
    """Return which of this many operands are addresses and the PTX version needed, or None if the table has no such
    instruction for the target and version."""
    plans = find_plans(spelling, target, version).get(count)
    if not plans:
        return None
    places = tuple([all(plan.signature[index].kind is Kind.ADDRESS for plan in plans) for index in range(count)])
    return places, min(plan.version for plan in plans)


def check_symbol_name(name: Any) -> str:
    """Return a name that PTX accepts, or refuse it."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        fail(rules.NAME, f"expected a PTX name (letters, digits, `_`, `$`; `%` only first), found {describe(name)}")
    return name
