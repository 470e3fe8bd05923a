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
from pyptx.dsl.emit import SINK, Spelling, foreign, judged, place, plans_of, refuse, refuse_count, shown
from pyptx.dsl.exact_layout import settled
from pyptx.dsl.origin import frame_here
from pyptx.dsl.trace import Trace, fail
from pyptx.dsl.values import Negation, Register, Value, float_literal
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
)
from pyptx.isa.model import Kind
from pyptx.isa.targets import Target, Version
from pyptx.types import PtxType, f32

NAME = re.compile(r"(?:[A-Za-z_][\w$]*|[$%][\w$]+)", re.ASCII)
_SYMBOL = re.compile(rf"{NAME.pattern}(?:\.\w+)?", re.ASCII)
Places = tuple[bool, ...]


class Given:
    """Names that `ptx.names` assigns to registers, by class and in order, and to labels created inside it."""

    def __init__(self, exact: Exact, registers: Sequence[Register], labels: Sequence[str]) -> None:
        self.queues: dict[tuple[str, int], deque[str]] = {}
        for register in registers:
            self.queues.setdefault(exact.class_of(register), deque()).append(register.name)
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
        self.given: list[Given] = []
        self.declared: dict[str, ScalarType] = {}
        self.ranges: dict[str, list[tuple[int, ScalarType]]] = {}
        """The lengths and types of the ranges of each base."""
        self.blocks: list[Any] = []
        self.places: dict[tuple[Spelling, int], Places] = {}
        self.symbols: dict[str, Operand] = {}
        self.numbers: dict[int, ImmediateOperand] = {}
        trace.top.prefix = "fresh_"

    def class_of(self, register: Register) -> tuple[str, int]:
        """Return the declared class of a register."""
        kind = self.type_of(register.name)
        name = register.__type_name__ if kind is None else kind.ptx[1:]
        bits = register.dtype.bits if kind is None else kind.bits
        if name == "pred":
            return "pred", 1
        return ("f" if name[0] == "f" else "b" if name[0] == "b" and name[1] != "f" else "i"), max(bits, 16)

    def type_of(self, name: str) -> ScalarType | None:
        """Return the declared type of a register."""
        known = self.declared.get(name)
        if known is not None:
            return known
        for at in range(len(name) - 1, 0, -1):
            if not "0" <= name[at] <= "9":
                return None
            for count, kind in self.ranges.get(name[:at], ()) if name[at] != "0" or at == len(name) - 1 else ():
                if int(name[at:]) < count:
                    return kind
        return None

    def take(self, dtype: PtxType) -> str | None:
        """Return the name for a new register, or None to generate one."""
        return self.given[-1].take(dtype) if self.given else None

    def label(self, kind: str) -> str:
        """Return the next given label, or generate one."""
        if self.given and self.given[-1].labels:
            return self.given[-1].labels.popleft()
        trace = self.trace
        while True:
            name = f"$fresh_{kind}_{trace.number(f'exact {kind}')}"
            if name not in trace.taken:
                trace.taken.add(name)
                return name

    def emit(self, spelling: Spelling, values: Sequence[Any], pred: Any, *, unchecked: bool = False) -> Instruction:
        """Add one instruction as written."""
        trace = self.trace
        places = self.places.get((spelling, len(values)))
        if places is None:
            places = self._find_places(spelling, len(values), unchecked)
        operands: list[Operand] = []
        for value, bracketed in zip(values, places, strict=True):
            if isinstance(value, Register):
                if value.__trace__ is not trace and value.__trace__ is not None:
                    foreign(value)
                operands.append(value.__address__() if bracketed else value.__node__)
            elif isinstance(value, Operand):
                operands.append(value)
            else:
                operands.append(self._place(spelling, len(operands), value, bracketed, len(values)))
        guard = None if pred is None else self.guard(pred)
        here = frame_here(trace.root, trace.frames)
        node = Instruction(spelling.opcode, spelling.dotted, tuple(operands), guard, None, here)
        trace.append(node)
        return node

    def _find_places(self, spelling: Spelling, count: int, unchecked: bool) -> Places:
        """Return which operands are addresses; refuse a spelling that the table does not have."""
        if unchecked:
            return (False,) * count
        trace = self.trace
        entry = known(spelling, count, trace.target, trace.judged_at)
        if entry is None:
            refuse_count(trace, spelling, plans_of(trace, spelling, count), count)
        plans_of(trace, spelling, count)
        places, version = entry
        if version > trace.needed:
            trace.need(version, f"`{spelling}`")
        self.places[spelling, count] = places
        return places

    def _place(self, spelling: Spelling, at: int, value: Any, bracketed: bool, count: int) -> Operand:
        if isinstance(value, float):
            for plan in self.trace.plans.get(spelling, {}).get(count, ()):
                operand = place(value, plan.signature[at], self.trace)
                if isinstance(operand, Operand):
                    return operand
        if bracketed and isinstance(value, str | int) and not isinstance(value, bool):
            return AddressOperand(str(value))
        if bracketed and isinstance(value, Value):
            return value.__address__()
        return self.operand(value)

    def operand(self, value: Any) -> Operand:
        """Return a Python value as the operand that it spells."""
        if isinstance(value, Register):
            return value.__node__
        if isinstance(value, Operand):
            return value
        if isinstance(value, str):
            known = self.symbols.get(value)
            return known if known is not None else self._make_symbol(value)
        if isinstance(value, int):
            known = self.numbers.get(value)
            if known is None:
                known = self.numbers[value] = ImmediateOperand(str(int(value)))
            return known
        if value is None:
            return SINK
        if isinstance(value, list):
            return VectorOperand(tuple([self.operand(item) for item in cast("list[Any]", value)]))
        if isinstance(value, tuple):
            return ParenthesizedOperand(tuple([self.operand(item) for item in cast("tuple[Any, ...]", value)]))
        if isinstance(value, Value):
            return value.__operand__()
        if isinstance(value, float):
            return float_literal(value, f32)
        return fail(
            rules.OPERAND,
            f"an operand cannot be {shown(value)}",
            help="pass a register, a number, a name (str), a list, a tuple, ptx.addr(...) or a ptx.op value",
        )

    def _make_symbol(self, name: str) -> Operand:
        if not _SYMBOL.fullmatch(name):
            fail(rules.NAME, f"expected the name of a symbol or register, found {shown(name)}")
        known = RegisterOperand(name) if name[0] == "%" or name == "_" or "." in name else LabelOperand(name)
        self.symbols[name] = known
        return known

    def address(self, base: Any, offset: Any, more: Sequence[Any]) -> Operand:
        """Return `[base]`, `[base+offset]`, `[map, {…}]` as written."""
        parts: Sequence[Any] = more
        if offset is not None and (more or type(offset) in (list, tuple)):
            parts, offset = (offset, *more), None
        rest = tuple([self.operand(part) for part in parts])
        start = self.operand(base)
        if isinstance(start, AddressOperand):
            return start
        if not isinstance(start, RegisterOperand | LabelOperand | ImmediateOperand):
            return ConstantAddressOperand(start, rest)
        name = start.text if isinstance(start, ImmediateOperand) else start.name
        if offset is None:
            return AddressOperand(name, None, rest)
        added = self.operand(offset)
        if isinstance(added, ImmediateOperand):
            return AddressOperand(name, added.text, rest)
        return AddressOperand(name, None, rest, added)

    def guard(self, pred: Any) -> Predicate:
        """Return the guard for `pred=`; a name is accepted too."""
        if isinstance(pred, Register):
            return pred.__guard__(False)
        if isinstance(pred, Negation):
            return pred.reg.__guard__(True)
        operand = self.operand(pred) if isinstance(pred, str | Operand) else None
        negated = isinstance(operand, NegatedOperand)
        inner = operand.operand if isinstance(operand, NegatedOperand) else operand
        if not isinstance(inner, RegisterOperand | LabelOperand):
            refuse(self.trace, Complaint(GUARD, f"`pred` must be a predicate register, found {shown(pred)}"))
        return Predicate(inner.name, negated)

    def declare(self, kind: ScalarType, name: str, count: int | None) -> None:
        """Record the type of a declared register or range; generated names avoid it."""
        top = self.trace.top
        while name.startswith(f"%{top.prefix}"):
            if top.counts:
                fail(rules.NAME, f"`{name}` could collide with a generated register name", help="rename it")
            top.prefix = f"{top.prefix}fresh_"
        self.trace.taken.add(name)
        if count is None:
            self.declared[name] = kind
        else:
            self.ranges.setdefault(name, []).append((count, kind))

    def body(self) -> tuple[Statement, ...]:
        """Return the statements, preceded by declarations of what was created without one: registers without a given
        name, and shared memory of `smem.alloc`."""
        trace = self.trace
        statements = (*trace.top.statements(), *trace.variables, *trace.prologue, *trace.statements)
        return statements if self.style is None else tuple(settled(statements, self.style, 1))


@lru_cache(maxsize=1 << 14)
def known(spelling: Spelling, count: int, target: Target, version: Version) -> tuple[Places, Version] | None:
    """Return which of this many operands are addresses and the PTX version needed, or None if the table has no such
    instruction for the target and version."""
    plans = judged(spelling, target, version).get(count)
    if not plans:
        return None
    places = tuple([all(plan.signature[at].kind is Kind.ADDRESS for plan in plans) for at in range(count)])
    return places, min(plan.version for plan in plans)


def checked_name(name: Any) -> str:
    """Return a name that PTX accepts, or refuse it."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        fail(rules.NAME, f"expected a PTX name (letters, digits, `_`, `$`; `%` only first), found {shown(name)}")
    return name
