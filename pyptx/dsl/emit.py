"""Turns Python values into one checked instruction node. Every instruction enters a trace through this module.

A spelling is checked once per target (cached), operands at every call; errors are raised at the user's line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, cast

from pyptx.check import spelling as spellings
from pyptx.check.complaint import Complaint
from pyptx.check.operand_rules import GUARD, IMMEDIATE_RANGE, OPERAND_COUNT, OPERAND_KIND, OPERAND_TYPE, STATE_SPACE
from pyptx.check.operands import find_misfit
from pyptx.check.symbols import UNDECLARED
from pyptx.diagnostics import PtxError, format_count
from pyptx.dsl import rules
from pyptx.dsl.origin import find_user_frame
from pyptx.dsl.trace import Trace, fail, get_trace
from pyptx.dsl.values import (
    Negation,
    Pair,
    Register,
    RegisterRange,
    Value,
    compute_integer_range,
    find_accepted_types,
    make_decimal,
    make_float_literal,
    unwrap_number,
)
from pyptx.ir.nodes import Instruction, Predicate
from pyptx.ir.operands import (
    AddressOperand,
    ImmediateOperand,
    LabelOperand,
    Operand,
    ParenthesizedOperand,
    RegisterOperand,
    VectorOperand,
    text_of,
)
from pyptx.isa import lookup, special
from pyptx.isa.model import Kind, Match
from pyptx.isa.model import Operand as Wanted
from pyptx.isa.targets import Target, Version
from pyptx.types import f32, f64, from_name

SINK = RegisterOperand("_")


class Spelling:
    """An opcode with its modifiers, interned: equal spellings are the same object."""

    __slots__ = ("dotted", "modifiers", "opcode")

    def __init__(self, opcode: str, modifiers: tuple[str, ...]) -> None:
        self.opcode, self.modifiers = opcode, modifiers
        self.dotted = tuple(f".{word}" for word in modifiers)

    def __str__(self) -> str:
        return ".".join((self.opcode, *self.modifiers))


@lru_cache(maxsize=1 << 16)
def spell(opcode: str, *modifiers: str) -> Spelling:
    """Return the interned spelling; modifiers without dots."""
    for part in modifiers:
        if not isinstance(part, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            fail(rules.ARGUMENT, f"a modifier of `{opcode}` must be a string, found {describe(part)}",
                 help='write it as PTX does, without its dot: "cta"')  # fmt: skip
    return Spelling(opcode, modifiers)


class Plan(NamedTuple):
    """One operand list of a usable match: what each position takes, and the PTX version that it needs on the target."""

    match: Match
    signature: tuple[Wanted, ...]
    takes: tuple[frozenset[str] | None, ...]
    version: Version


Plans = dict[int, tuple[Plan, ...]]


@lru_cache(maxsize=1 << 14)
def find_plans(spelling: Spelling, target: Target, version: Version) -> Plans:
    by_count: dict[int, list[Plan]] = {}
    for match in lookup.find_matches(spelling.opcode, spelling.modifiers):
        if spellings.find_missing_requirement(match, target, version) is not None:
            continue
        first = max((need.find_first_version(target) or (0, 0) for need in match.needs), default=(0, 0))
        for signature in match.signatures:
            plan = Plan(match, signature, tuple(_find_accepted_types(operand) for operand in signature), first)
            by_count.setdefault(len(signature), []).append(plan)
    return {count: tuple(plans) for count, plans in by_count.items()}


_REGISTER_KINDS = (Kind.VALUE, Kind.REGISTER, Kind.MOVABLE)


def _find_accepted_types(formal: Wanted) -> frozenset[str] | None:
    if formal.kind is Kind.PIPE and formal.optional_parts:
        formal = formal.parts[0]
    plain = formal.kind in _REGISTER_KINDS and formal.type and not formal.count
    return find_accepted_types(formal.type, formal.widenable) if plain and formal.type else None


def require_plans(trace: Trace, spelling: Spelling, count: int = 0) -> Plans:
    """Return the operand lists of a spelling on the trace's target, or raise why there are none; suggestions take
    `count` operands."""
    plans = find_plans(spelling, trace.target, trace.table_version)
    if not plans:
        verdict = spellings.judge_spelling(
            spelling.opcode, spelling.modifiers, trace.target, trace.table_version, count
        )
        assert verdict.complaint is not None
        refuse(trace, verdict.complaint)
    trace.plans[spelling] = plans
    return plans


def refuse(trace: Trace, complaint: Complaint) -> NoReturn:
    """Raise a finding of the checks at the user's line."""
    help = complaint.help
    if complaint.rule is spellings.NEWER_VERSION and trace.fixed_version is not None:
        major, minor = trace.fixed_version
        help = f"the kernel requests version=({major}, {minor}): request a newer one or omit it"
    elif complaint.rule is UNDECLARED and help is None:
        help = (
            "a string names a symbol: a parameter, ptx.var(...) or an allocation; pass register objects, not "
            "their names"
        )
    elif complaint.rule is spellings.OTHER_TARGET:
        help = re.sub("`.target (.*)`", r"arch='\1'", help or f"the kernel is compiled for arch='{trace.target}'")
    raise PtxError([complaint.rule.report(trace.locate(), complaint.message, help=help)])


def emit(spelling: Spelling, values: Sequence[Any], pred: Any = None, trace: Trace | None = None) -> Instruction:
    """Add one instruction to the trace."""
    if trace is None:
        trace = get_trace()
    if trace.exact is not None:
        return trace.exact.emit(spelling, values, pred)
    plans = trace.plans.get(spelling)
    if plans is None:
        plans = require_plans(trace, spelling, len(values))
    candidates = plans.get(len(values))
    if candidates is None:
        refuse_count(trace, spelling, plans, len(values))
    furthest, worst = -1, None
    for plan in candidates:
        operands: list[Operand] = []
        for value, fitting, formal in zip(values, plan.takes, plan.signature, strict=True):
            plain = isinstance(value, Register) and value.__trace__ is trace
            if plain and fitting is not None and value.__type_name__ in fitting:
                operands.append(value.__node__)
                continue
            operand = place(value, formal, trace)
            if isinstance(operand, Complaint):
                if len(operands) > furthest:
                    furthest, worst = len(operands), operand
                break
            operands.append(operand)
        else:
            if plan.version > trace.least_version:
                trace.require_version(plan.version, f"`{spelling}`")
            guard = None if pred is None else make_guard(pred, trace)
            origin = find_user_frame(trace.root, trace.frames)
            node = Instruction(spelling.opcode, spelling.dotted, tuple(operands), guard, None, origin)
            if trace.pending:
                raise PtxError(trace.pending)
            trace.body.append(node)
            return node
    assert worst is not None
    refuse(trace, worst)


def emit_unchecked(spelling: Spelling, values: Sequence[Any], pred: Any, trace: Trace) -> Instruction:
    """Add an instruction that the table does not have. Findings of `check` about its spelling are warnings."""
    trace.lenient_origins.add(trace.locate())
    if trace.exact is not None:
        return trace.exact.emit(spelling, values, pred, is_unchecked=True)
    operands = tuple(convert(value, None, trace) for value in values)
    guard = None if pred is None else make_guard(pred, trace)
    node = Instruction(spelling.opcode, spelling.dotted, operands, guard, None, trace.locate())
    trace.append(node)
    return node


def make_guard(pred: Any, trace: Trace) -> Predicate:
    """Return the guard for `pred=`."""
    is_negated = isinstance(pred, Negation)
    register = pred.reg if isinstance(pred, Negation) else pred
    if not isinstance(register, Register):
        refuse(
            trace, Complaint(GUARD, f"`pred` must be a predicate register or its negation `~p`, found {describe(pred)}")
        )
    if register.__trace__ is not trace:
        refuse_foreign(register)
    if register.__type_name__ != "pred":
        help = f"compare it first: pred={register.name.lstrip('%')} != 0"
        refuse(
            trace,
            Complaint(GUARD, f"the guard `{register.name}` must be a predicate, found .{register.__type_name__}", help),
        )
    return register.__guard__(is_negated)


def refuse_foreign(register: Register) -> NoReturn:
    """Refuse a register of another kernel or of a closed block."""
    if register.__trace__ is None:
        fail(rules.FOREIGN, f"`{register.name}` belongs to no kernel: it was made outside one or its block is closed",
             help="create it in the kernel function, or before `ptx.scope()`")  # fmt: skip
    fail(rules.FOREIGN, f"`{register.name}` belongs to the kernel `{register.__trace__.name}`, not this one",
         help="pass values between kernels through memory or parameters")  # fmt: skip


def refuse_count(trace: Trace, spelling: Spelling, plans: Plans, count: int) -> NoReturn:
    newer = spellings.explain_unavailable_count(
        spelling.opcode, spelling.modifiers, count, trace.target, trace.table_version
    )
    if newer is not None:
        refuse(trace, newer)
    counts = sorted(plans)
    shape = ", ".join(str(operand) for operand in plans[counts[-1]][-1].signature)
    refuse(trace, Complaint(
        OPERAND_COUNT,
        f"`{spelling}` takes {format_count('operand', *counts)}, found {count}",
        f"the form is `{spelling} {shape}`" if shape else "remove the operands",
    ))  # fmt: skip


def place(value: Any, formal: Wanted, trace: Trace) -> Operand | Complaint:
    """Return the operand for a position of an instruction, or why the value does not fit."""
    if isinstance(value, Register):
        return _place_register(value, formal, trace)
    if formal.count:
        if isinstance(value, RegisterRange):
            return _place_range(value, formal, trace)
        if isinstance(value, list):
            return _place_list(cast("list[Any]", value), formal, trace)
    if isinstance(value, Pair) and formal.kind is Kind.PIPE:
        for side, part in ((value.left, formal.parts[0]), (value.right, formal.parts[1])):
            side_operand = place(side, part, trace)
            if isinstance(side_operand, Complaint):
                return side_operand
        return value.__operand__()
    if isinstance(value, Negation) and value.reg.__trace__ is not trace:
        refuse_foreign(value.reg)
    if formal.kind is Kind.LABEL and isinstance(value, str):
        trace.jumps.append((value, trace.locate()))
        return LabelOperand(value)
    if formal.kind is Kind.ADDRESS and isinstance(value, Value | AddressOperand):
        return _place_address(value, formal, trace)
    if isinstance(value, int | float) and formal.kind is not Kind.ADDRESS:
        return _place_number(value, formal, trace)
    if isinstance(value, ImmediateOperand):
        key = id(formal), ImmediateOperand, value.text
        if key not in trace.placements:
            trace.placements[key] = find_misfit(formal, value, trace.scope) or value
        return trace.placements[key]
    if isinstance(value, tuple) and formal.kind is not Kind.LIST:
        help = "a list makes a vector, [a, b]; a tuple holds the arguments of a call"
        if len(cast("tuple[object, ...]", value)) == 1:
            help = "unpack it where it comes from, (x,) = …, or index it, x[0]; " + help
        return Complaint(
            OPERAND_KIND, f"`{formal.name}` must not be a tuple, found {describe(cast('object', value))}", help
        )
    number = unwrap_number(cast("object", value))
    if number is not value:
        return place(number, formal, trace)
    operand = convert(value, formal, trace)
    complaint = find_misfit(formal, operand, trace.scope)
    if complaint is None:
        return operand
    remedy = get_remedy(cast("Any", value))
    return complaint if remedy is None else Complaint(complaint.rule, complaint.message, remedy)


def _place_address(value: Value | AddressOperand, formal: Wanted, trace: Trace) -> Operand | Complaint:
    """Caches which bases and coordinates fit the position; the offset does not matter."""
    operand = value.__address__() if isinstance(value, Value) else value
    if type(operand) is not AddressOperand:
        return find_misfit(formal, operand, trace.scope) or operand
    coordinates = operand.rest
    key = (id(formal), operand.base, *map(text_of, coordinates)) if coordinates else (id(formal), operand.base)
    if key in trace.fitting:
        return operand
    complaint = find_misfit(formal, operand, trace.scope)
    if complaint is not None:
        remedy = get_remedy(value) if complaint.rule is STATE_SPACE else None
        return complaint if remedy is None else Complaint(complaint.rule, complaint.message, remedy)
    trace.fitting.add(key)
    return operand


def _place_number(value: int | float, formal: Wanted, trace: Trace) -> Operand | Complaint:
    """Return a number as an operand. Cached: the trace keeps the plans, and thus the identity of each position,
    alive."""
    key = id(formal), type(value), value
    operand = trace.placements.get(key)
    if operand is None:
        number = _convert_number(value, formal)
        operand = number if isinstance(number, Complaint) else find_misfit(formal, number, trace.scope) or number
        # -0.0 and 0.0 are equal keys but different numbers.
        if value or type(value) is not float:
            trace.placements[key] = operand
    return operand


def _place_register(value: Register, formal: Wanted, trace: Trace) -> Operand | Complaint:
    if value.__trace__ is not trace:
        refuse_foreign(value)
    if formal.kind is Kind.PIPE and formal.optional_parts:
        formal = formal.parts[0]
    if formal.kind is Kind.ADDRESS:
        if len(formal.parts) > 1:
            return find_misfit(formal, value.__address__(), trace.scope) or value.__address__()
        if value.dtype.kind in ("b", "u", "s") and value.dtype.bits in (32, 64):
            return value.__address__()
        return Complaint(
            OPERAND_TYPE, f"an address must be a 32- or 64-bit integer, but `{value.name}` is .{value.__type_name__}"
        )
    if formal.kind in _REGISTER_KINDS and formal.type and formal.count <= (1 if formal.braceable else 0):
        if value.__type_name__ in find_accepted_types(formal.type, formal.widenable):
            return value.__node__
        return complain_type(formal, value)
    return find_misfit(formal, value.__node__, trace.scope) or value.__node__


def complain_type(formal: Wanted, value: Register) -> Complaint:
    """Return the message for a register of the wrong type."""
    assert formal.type is not None
    first = formal.type
    if value.__type_name__ == first:
        return Complaint(
            OPERAND_TYPE, f"`{formal.name}` is .{first} in an 8-bit register, but `{value.name}` is a 16-bit register",
            f"convert it through .{first[0]}16: ptxas cannot move 8-bit registers otherwise",
        )  # fmt: skip
    type_names = sorted(find_accepted_types(first, formal.widenable) & _USUAL, key=lambda name: (name != first, name))
    kinds = " or ".join(f".{name}" for name in type_names[:4])
    return Complaint(
        OPERAND_TYPE, f"`{formal.name}` is .{formal.type}, found `{value.name}` of type .{value.__type_name__}",
        f"use a register of type {kinds}",
    )  # fmt: skip


_USUAL = frozenset(f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64, 128)) | frozenset(
    ("f32", "f64", "f16", "bf16", "f16x2", "bf16x2", "tf32", "pred", "e4m3x2", "e5m2x2", "e2m1x2")
)


def _place_range(value: RegisterRange, formal: Wanted, trace: Trace) -> Operand | Complaint:
    if value.__trace__ is not trace:
        refuse_foreign(value.__members__[0])
    if value.count != formal.count:
        return Complaint(
            OPERAND_COUNT,
            f"`{formal.name}` has {format_count('element', formal.count)}, found `{value.base}` of {value.count}",
            f"use reg.array({value.dtype}, {formal.count})",
        )  # fmt: skip
    if formal.type is None or value.dtype.name in find_accepted_types(formal.type, formal.widenable):
        return value.__node__
    return complain_type(formal, value.__members__[0])


def _place_list(values: list[Any], formal: Wanted, trace: Trace) -> Operand | Complaint:
    if len(values) != formal.count:
        return Complaint(
            OPERAND_COUNT, f"`{formal.name}` has {format_count('element', formal.count)}, found {len(values)}"
        )
    key = tuple(map(id, values))
    entry = trace.vectors.get(key)
    if entry is None and all(isinstance(v, Register) and v.__trace__ is trace for v in values):
        kinds = frozenset([v.__type_name__ for v in values])
        operand = VectorOperand(tuple([v.__node__ for v in values]))
        entry = trace.vectors[key] = operand, kinds, values
    if entry is not None and formal.type and entry[1] <= find_accepted_types(formal.type, formal.widenable):
        return entry[0]
    scalar = formal.scalar()
    elements: list[Operand] = []
    for value in values:
        if value is None and "w" in formal.access:
            elements.append(SINK)
            continue
        element = place(value, scalar, trace)
        if isinstance(element, Complaint):
            return element
        elements.append(element)
    vector = VectorOperand(tuple(elements))
    return find_misfit(formal, vector, trace.scope) or vector


def _convert_number(value: int | float, formal: Wanted) -> Operand | Complaint:
    """Return a Python number as the operand's type spells it."""
    kind = from_name(formal.type) if formal.type else None
    if kind is not None and kind.name in ("f32", "f64"):
        return make_float_literal(value, kind)
    if isinstance(value, float):
        if kind is not None and kind.name in ("b32", "b64"):
            return make_float_literal(value, f32 if kind.bits == 32 else f64)
        return (
            ImmediateOperand(repr(value))
            if value == value and abs(value) != float("inf")
            else make_float_literal(value, f64)
        )
    if kind is not None and kind.kind in ("b", "u", "s"):
        low, high = compute_integer_range(kind, lenient=True)
        if not low <= value <= high:
            return Complaint(IMMEDIATE_RANGE, f"`{formal.name}` is .{kind}: {value} is not between {low} and {high}")
    return ImmediateOperand(str(int(value)))


def convert(value: Any, formal: Wanted | None, trace: Trace) -> Operand:
    """Return any Python value as an operand, or raise: numbers, names, lists, tuples, addresses, allocations."""
    if formal is None and type(value) is int:
        return make_decimal(value)
    bracket = formal is not None and formal.kind is Kind.ADDRESS
    if isinstance(value, Value):
        if isinstance(value, Register) and value.__trace__ is not trace:
            refuse_foreign(value)
        return value.__address__() if bracket else value.__operand__()
    if value is None:
        return SINK
    if isinstance(value, Operand):
        return value
    if isinstance(value, str):
        return _convert_name(value, bracket, trace)
    if isinstance(value, int):
        return AddressOperand(str(int(value))) if bracket else ImmediateOperand(str(int(value)))
    if isinstance(value, float):
        return make_float_literal(value, f32)
    if not isinstance(value, list | tuple):
        name = formal.name if formal is not None else "an operand"
        fail(
            rules.OPERAND,
            f"`{name}` cannot be {describe(value)}",
            help="pass a register, a number, a name (str), a list, an allocation, a barrier or ptx.addr(...)",
        )
    part = formal.scalar() if formal is not None and formal.count else None
    elements = tuple([convert(item, part, trace) for item in cast("list[Any]", value)])
    return VectorOperand(elements) if isinstance(value, list) else ParenthesizedOperand(elements)


def _convert_name(name: str, bracket: bool, trace: Trace) -> Operand:
    if bracket:
        return AddressOperand(name)
    if name.startswith("%"):
        register = special.find_special_register(name)
        if register is not None:
            require_special(trace, register)
        return RegisterOperand(name)
    return LabelOperand(name)


def require_special(trace: Trace, register: special.SpecialRegister) -> None:
    """Record the PTX version that a special register needs, or refuse it on this target."""
    first = register.available.find_first_version(trace.target)
    if first is None:
        message = f"`{register.name}` is not available on {trace.target}: it needs {register.available}"
        refuse(trace, Complaint(spellings.OTHER_TARGET, message))
    trace.require_version(first, f"`{register.name}`")


def get_remedy(value: object) -> str | None:
    """Return how to use a value of this package where it does not fit."""
    return value.__remedy__() if isinstance(value, Value) else None


def describe(value: object) -> str:
    """Return a value for a message, shortened."""
    if isinstance(value, Register):
        return f"`{value.name}` of type .{value.__type_name__}"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
