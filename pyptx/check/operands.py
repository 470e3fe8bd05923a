"""Checks the operands of a well-spelled instruction: count, kind, declared type and width, range of immediates.

An instruction is legal if one operand list of one usable match fits; otherwise the list that matches furthest is
reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyptx.check.complaint import Complaint
from pyptx.check.constants import refused
from pyptx.check.fits import ADDRESS_REGISTERS, accepted
from pyptx.check.operand_rules import IMMEDIATE_RANGE, OPERAND_COUNT, OPERAND_KIND, OPERAND_TYPE, STATE_SPACE
from pyptx.check.spelling import NEWER_VERSION, OTHER_TARGET, elsewhere
from pyptx.check.suggestions import meant
from pyptx.check.symbols import UNDECLARED, UNKNOWN_FUNCTION, UNKNOWN_LABEL, Scope, Symbol, register
from pyptx.check.symbols import Kind as Means
from pyptx.diagnostics import counted
from pyptx.ir import (
    AddressOperand,
    BinaryOperand,
    CastOperand,
    ConditionalOperand,
    ConstantAddressOperand,
    ImmediateOperand,
    IndexedOperand,
    Instruction,
    LabelOperand,
    NegatedOperand,
    ParenthesizedOperand,
    PipeOperand,
    RegisterOperand,
    UnaryOperand,
    VectorOperand,
    evaluate,
    text_of,
)
from pyptx.ir.operands import Operand as Actual
from pyptx.isa import special
from pyptx.isa.model import Kind, Match, Operand
from pyptx.types import from_name

Signature = tuple[Operand, ...]
_VECTOR_SELECTORS = frozenset((".x", ".y", ".z", ".w", ".r", ".g", ".b", ".a"))
_OPAQUE = frozenset(("texref", "samplerref", "surfref"))
_FLOAT_TYPES = frozenset(("f32", "f64"))


ACCUMULATES = "scale_d"
"""The table's name for the operand that decides whether an accumulator is read or only written."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One operand list of a match. `accepts` holds the register types that each simple position accepts (None: look
    closer), `integers` whether it takes any integer, and `accumulates` the index of the operand that decides whether
    the accumulator is read."""

    match: Match
    signature: Signature
    accepts: tuple[frozenset[str] | None, ...]
    integers: tuple[bool, ...]
    accumulates: int | None


def plans(matches: tuple[Match, ...]) -> dict[int, list[Plan]]:
    """Return the operand lists of the matches, grouped by length."""
    by_count: dict[int, list[Plan]] = {}
    for match in matches:
        for signature in match.signatures:
            decides = [index for index, operand in enumerate(signature) if operand.name == ACCUMULATES]
            accepts = tuple(_find_accepted_types(operand) for operand in signature)
            integers = tuple(_takes_integers(operand) for operand in signature)
            runs = Plan(match, signature, accepts, integers, decides[0] if decides else None)
            by_count.setdefault(len(signature), []).append(runs)
    return by_count


def _find_accepted_types(operand: Operand) -> frozenset[str] | None:
    scalar = operand.kind in (Kind.VALUE, Kind.REGISTER, Kind.MOVABLE) and operand.count <= 1
    return accepted(operand.type, operand.widenable) if scalar and operand.type and not operand.count else None


def _takes_integers(operand: Operand) -> bool:
    number = operand.kind in (Kind.VALUE, Kind.MOVABLE) and operand.access == "r" and not operand.count
    return number and operand.bounds is None and operand.type is not None and from_name(operand.type).kind in "bus"


def examine(
    instruction: Instruction, by_count: dict[int, list[Plan]], scope: Scope
) -> tuple[Plan | None, Complaint | None]:
    """Return the operand list that matches the operands, or why none does."""
    best: tuple[int, Complaint] | None = None
    for plan in by_count.get(len(instruction.operands), ()):
        at, complaint = _find_first_misfit(plan, instruction.operands, scope)
        if complaint is None:
            return plan, None
        if best is None or at > best[0]:
            best = at, complaint
    return None, best[1] if best else _explain_count(instruction, by_count, scope)


def _find_first_misfit(plan: Plan, actual: tuple[Actual, ...], scope: Scope) -> tuple[int, Complaint | None]:
    known = scope.found
    for index, operand in enumerate(actual):
        accepts = plan.accepts[index]
        if isinstance(operand, RegisterOperand):
            symbol = known.get(operand.name) or scope.find(operand.name)
            if accepts is not None and symbol is not None and symbol.plain in accepts:
                continue
        elif isinstance(operand, ImmediateOperand) and plan.integers[index] and _is_short_integer(operand):
            continue
        complaint = misfit(plan.signature[index], operand, scope)
        if complaint is not None:
            return index, Complaint(complaint.rule, complaint.message, complaint.help, operand=index)
    return len(actual), None


def _is_short_integer(actual: ImmediateOperand) -> bool:
    return len(actual.text) < _DIGITS_OF_64_BITS and isinstance(actual.value, int)


_DIGITS_OF_64_BITS = 18
"""Numbers shorter than this always fit in 64 bits."""


def _explain_count(instruction: Instruction, by_count: dict[int, list[Plan]], scope: Scope) -> Complaint:
    """Return which operands the form takes; an undeclared name among the actual ones is the likelier mistake."""
    for index, actual in enumerate(instruction.operands):
        if (
            isinstance(actual, RegisterOperand | LabelOperand)
            and actual.name != "_"
            and not _is_known(actual.name, scope)
        ):
            return _complain_undeclared(actual.name, scope, index)
    if scope.header is not None:
        words = tuple(word.lstrip(".") for word in instruction.modifiers)
        newer = elsewhere(instruction.opcode, words, len(instruction.operands), *scope.header)
        if newer is not None:
            return newer
    many = sorted(by_count)
    shape = ", ".join(str(operand) for operand in by_count[many[-1]][-1].signature)
    return Complaint(
        OPERAND_COUNT,
        f"`{instruction.full_opcode}` takes {counted('operand', *many)}, found {len(instruction.operands)}",
        f"the form is `{instruction.full_opcode} {shape}`" if shape else "remove the operands",
    )


def _is_known(name: str, scope: Scope) -> bool:
    return scope.find(name.partition(".")[0]) is not None or special.special_register(name) is not None


def misfit(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    """Return why an operand does not fit its position, or None if it does."""
    if wanted.kind is Kind.PIPE and wanted.optional_parts and not isinstance(actual, PipeOperand):
        wanted = wanted.parts[0]
    return _CHECKS.get(type(actual), _check_constant)(wanted, actual, scope)


def _check_register(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, RegisterOperand | LabelOperand)
    name = actual.name
    if name == "_":
        allowed = wanted.discardable or wanted.kind is Kind.SINK
        return None if allowed else _complain_kind(wanted, "`_`", "a result to keep")
    symbol = scope.find(name)
    if symbol is not None:
        return _check_symbol(wanted, name, symbol, scope)
    if name.startswith("%") or "." in name:
        base, _, component = name.partition(".")
        vector = scope.find(base)
        if vector is not None and component:
            return _check_component(wanted, name, vector, scope)
        known = special.special_register(name)
        if known is not None:
            return _check_special_register(wanted, known, scope)
    if wanted.kind is Kind.LABEL:
        return Complaint(
            UNKNOWN_LABEL, f"no label `{name}` in this block or an enclosing one", meant(name, scope) or _INWARD
        )
    if wanted.kind is Kind.FUNCTION:
        return Complaint(
            UNKNOWN_FUNCTION, f"no function `{name}` is declared before this call", _suggest_function(name, scope)
        )
    return _complain_undeclared(name, scope, None)


_INWARD = "a label is visible in its own block and in nested blocks; move it out, or correct its name"


def _suggest_function(name: str, scope: Scope) -> str:
    return meant(name, scope) or f"declare it before the kernel: `.extern .func {name} (…);`"


def _complain_undeclared(name: str, scope: Scope, index: int | None) -> Complaint:
    return Complaint(UNDECLARED, f"`{name}` is not declared here", meant(name, scope), operand=index)


def _check_symbol(wanted: Operand, name: str, symbol: Symbol, scope: Scope) -> Complaint | None:
    if symbol.kind is Means.REGISTER:
        return _check_declared_register(wanted, name, symbol)
    if symbol.kind is Means.VARIABLE:
        return _check_variable(wanted, name, symbol)
    fitting = {Means.LABEL: Kind.LABEL, Means.FUNCTION: Kind.FUNCTION}.get(symbol.kind)
    if wanted.kind is fitting:
        return None
    # ptxas accepts a function's address wherever a value is read, whatever its type.
    if symbol.kind is Means.FUNCTION and wanted.kind in (Kind.VALUE, Kind.MOVABLE) and wanted.access == "r":
        return None
    if wanted.kind is Kind.FUNCTION and symbol.kind is Means.LABEL:
        return None
    if symbol.kind in (Means.TARGETS, Means.PROTOTYPE) and wanted.kind in (Kind.LABEL, Kind.FUNCTION):
        return None
    return _complain_kind(wanted, f"`{name}`", f"the name of a {symbol.kind}")


_REGISTER_KINDS = frozenset((Kind.VALUE, Kind.REGISTER, Kind.MOVABLE, Kind.VARIABLE, Kind.FUNCTION))


def _check_declared_register(wanted: Operand, name: str, symbol: Symbol) -> Complaint | None:
    if wanted.kind not in _REGISTER_KINDS:
        return _complain_kind(wanted, f"`{name}`", "a register")
    if wanted.kind in (Kind.VARIABLE, Kind.FUNCTION):
        return None if symbol.type in ("u64", "b64", "s64") else _complain_type(wanted, name, symbol.type, "b64")
    if symbol.vector:
        return (
            None
            if wanted.count == symbol.vector and _holds(wanted, symbol.type)
            else _complain_vector(wanted, name, symbol)
        )
    if wanted.count:
        return Complaint(
            OPERAND_KIND,
            f"`{wanted.name}` is a vector of {counted('register', wanted.count)}, found the single register `{name}`",
            "write the registers in braces: {a, b, …}",
        )
    return None if _holds(wanted, symbol.type) else _complain_type(wanted, name, symbol.type)


def _holds(wanted: Operand, declared: str) -> bool:
    return wanted.type is None or declared in accepted(wanted.type, wanted.widenable)


def _complain_vector(wanted: Operand, name: str, symbol: Symbol) -> Complaint:
    return Complaint(
        OPERAND_KIND,
        f"`{name}` is a vector (.v{symbol.vector} .{symbol.type}), expected `{wanted}`",
        f"name one component: {name}.x",
    )


def _check_component(wanted: Operand, name: str, symbol: Symbol, scope: Scope) -> Complaint | None:
    base, _, component = name.partition(".")
    if symbol.kind is Means.REGISTER and symbol.vector and f".{component}" in _VECTOR_SELECTORS:
        return _check_declared_register(wanted, name, register(symbol.type))
    if symbol.kind is Means.REGISTER and component in wanted.selectable:
        return None
    return Complaint(OPERAND_KIND, f"`{base}` has no component `.{component}` here")


def _check_special_register(wanted: Operand, register: special.SpecialRegister, scope: Scope) -> Complaint | None:
    name, type_name = register.name, register.type.name
    if register.vector and wanted.count != _COMPONENTS and wanted.kind is not Kind.SPECIAL:
        return Complaint(OPERAND_KIND, f"`{name}` is a vector", f"name one component: {name}.x")
    if wanted.kind not in (Kind.MOVABLE, Kind.SPECIAL):
        fix = f"first read it into a register: mov.{type_name} %r, {name}"
        return Complaint(OPERAND_KIND, f"the special register `{name}` cannot be used here", fix)
    if wanted.access != "r":
        return Complaint(OPERAND_KIND, f"the special register `{name}` can only be read")
    if not _holds(wanted, type_name) and (wanted.type is None or from_name(wanted.type).bits not in register.narrower):
        return _complain_type(wanted, name, type_name)
    header = scope.header
    if header is None or register.available.on(*header):
        return None
    return Complaint(
        OTHER_TARGET if register.available.first_version(header[0]) is None else NEWER_VERSION,
        f"`{name}` needs {register.available}",
    )


_COMPONENTS = 4


def _check_variable(wanted: Operand, name: str, symbol: Symbol) -> Complaint | None:
    if wanted.kind is Kind.MOVABLE:
        ok = wanted.type is None or (from_name(wanted.type).bits >= 32 and from_name(wanted.type).kind != "f")
        return None if ok else _complain_kind(wanted, f"`{name}`", "an address")
    if wanted.kind is Kind.VARIABLE:
        opaque = wanted.type in _OPAQUE
        if opaque and symbol.type != wanted.type and not symbol.entry:
            return _complain_type(wanted, name, symbol.type)
        return None
    if wanted.kind is Kind.LIST:
        return None
    fix = f"first load its value into a register: ld.{symbol.space} from [{name}]; `mov` gives its address"
    return _complain_kind(wanted, f"`{name}`", f"a variable in .{symbol.space}", fix)


def _check_address(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, AddressOperand)
    if wanted.kind is not Kind.ADDRESS:
        return _complain_kind(wanted, f"`{text_of(actual)}`", "an address")
    complaint = _check_address_base(wanted, actual, scope) or refused(actual)
    return complaint or _check_address_rest(wanted, actual.rest, scope)


def _check_address_base(wanted: Operand, actual: AddressOperand, scope: Scope) -> Complaint | None:
    name = actual.base
    if name and name[0] in "-0123456789":
        return _check_absolute_address(wanted, text_of(actual)) or refused(ImmediateOperand(name))
    symbol = scope.find(name) or scope.find(name.partition(".")[0])
    if symbol is None:
        return _complain_undeclared(name, scope, None)
    if symbol.kind is Means.REGISTER:
        if symbol.type in ADDRESS_REGISTERS:
            return None
        return Complaint(OPERAND_TYPE, f"an address register must be .b32 or .b64, `{name}` is .{symbol.type}")
    if symbol.kind is not Means.VARIABLE:
        return _complain_kind(wanted, f"`{name}`", f"the name of a {symbol.kind}")
    return _check_state_space(wanted, name, symbol) or _check_register_base(wanted, name, symbol)


def _check_register_base(wanted: Operand, name: str, symbol: Symbol) -> Complaint | None:
    if wanted.parts[0].kind is not Kind.REGISTER or symbol.type in _OPAQUE:
        return None
    fix = f"first move the address into a register: mov.u32 %r, {name}"
    return Complaint(OPERAND_KIND, f"this form takes its address in a register, found the variable `{name}`", fix)


_GENERIC = frozenset(("global", "shared", "local"))
"""State spaces whose variables a generic address can name; constants and parameters need their own space."""


def _check_state_space(wanted: Operand, name: str, symbol: Symbol) -> Complaint | None:
    wants = (wanted.space or "generic").partition("::")[0]
    if symbol.space == wants or (wants == "generic" and symbol.space in _GENERIC) or symbol.type in _OPAQUE:
        return None
    return Complaint(
        STATE_SPACE,
        f"the instruction accesses {wanted.space or 'generic'} memory, but `{name}` is in .{symbol.space}",
        f"use the .{symbol.space} form of the instruction",
    )


def _check_absolute_address(wanted: Operand, shown: str) -> Complaint | None:
    """Reject a number as an address outside local memory, as ptxas does."""
    if wanted.space == "local":
        return None
    return Complaint(
        OPERAND_KIND, f"the address `{shown}` is a number, which only .local allows", "move the address into a register"
    )


def _check_address_rest(wanted: Operand, rest: tuple[Actual, ...], scope: Scope) -> Complaint | None:
    parts = wanted.parts[1:]
    if not len(parts) - wanted.optional_parts <= len(rest) <= len(parts):
        return Complaint(
            OPERAND_COUNT, f"expected the address `{wanted}`, found {len(rest) + 1} part{'s' if rest else ''}"
        )
    for part, actual in zip(parts, rest, strict=False):
        complaint = misfit(part, actual, scope)
        if complaint is not None:
            return complaint
    return None


def _check_other_address(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    if wanted.kind is not Kind.ADDRESS:
        return _complain_kind(wanted, f"`{text_of(actual)}`", "an address")
    if isinstance(actual, IndexedOperand):
        symbol = scope.find(actual.name)
        return _complain_undeclared(actual.name, scope, None) if symbol is None else refused(actual.index)
    return _check_absolute_address(wanted, text_of(actual)) or refused(actual)


def _check_vector(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, VectorOperand)
    if not wanted.count:
        if wanted.braceable and len(actual.elements) == 1:
            return _check_element(wanted, actual.elements[0], scope)
        return _complain_kind(wanted, f"`{text_of(actual)}`", "a vector", _LONE)
    if len(actual.elements) != wanted.count:
        return Complaint(
            OPERAND_COUNT,
            f"`{wanted.name}` has {counted('element', wanted.count)}, found {len(actual.elements)}",
            f"write {counted('register', wanted.count)} in braces",
        )
    for element in actual.elements:
        complaint = _check_element(wanted, element, scope)
        if complaint is not None:
            return complaint
    return None


_LONE = "name one register, or add a vector modifier (`.v2`, `.v4`) to the instruction"


def _check_element(wanted: Operand, element: Actual, scope: Scope) -> Complaint | None:
    if isinstance(element, RegisterOperand | LabelOperand):
        symbol = scope.find(element.name)
        if symbol is not None and symbol.kind is Means.REGISTER and not symbol.vector:
            return None if _holds(wanted, symbol.type) else _complain_type(wanted, element.name, symbol.type)
        if element.name == "_" and "w" in wanted.access:
            return None
    return _refuse_sum_in_list(element) or misfit(wanted.scalar(), element, scope)


def _refuse_sum_in_list(element: Actual) -> Complaint | None:
    """Reject `{%r1+4, …}` and `(symbol+4, …)`: in lists, ptxas accepts only a plain register or symbol."""
    if not isinstance(element, BinaryOperand) or not isinstance(element.left, RegisterOperand | LabelOperand):
        return None
    fix = "compute it into a register first"
    return Complaint(OPERAND_KIND, f"`{text_of(element)}` is not allowed in a list", fix)


def _check_pipe(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, PipeOperand)
    if wanted.kind is not Kind.PIPE:
        return _complain_kind(wanted, f"`{text_of(actual)}`", "a pair of destinations")
    return misfit(wanted.parts[0], actual.left, scope) or misfit(wanted.parts[1], actual.right, scope)


def _check_list(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, ParenthesizedOperand)
    if wanted.kind is not Kind.LIST:
        return _check_constant(wanted, actual, scope)
    for element in actual.elements:
        if isinstance(element, RegisterOperand | LabelOperand) and not _is_known(element.name, scope):
            return _complain_undeclared(element.name, scope, None)
        wrong = _refuse_sum_in_list(element) or refused(element)
        if wrong is not None:
            return wrong
    return None


def _check_negated(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    assert isinstance(actual, NegatedOperand)
    if not wanted.negatable:
        return _complain_kind(wanted, f"`{text_of(actual)}`", "a negated predicate")
    return misfit(wanted, actual.operand, scope)


def _check_constant(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    wrong = refused(actual)
    if wrong is not None:
        return wrong
    value = evaluate(actual)
    if value is None:
        return _check_expression(wanted, actual, scope)
    if wanted.kind not in (Kind.VALUE, Kind.IMMEDIATE, Kind.MOVABLE) or wanted.access != "r" or wanted.count:
        return _complain_kind(wanted, f"`{text_of(actual)}`", "a number")
    return _check_number(wanted, actual, value)


def _check_number(wanted: Operand, actual: Actual, value: int | float) -> Complaint | None:
    wanted_type = from_name(wanted.type) if wanted.type else None
    if wanted_type is not None and wanted_type.kind == "f":
        if wanted.type not in _FLOAT_TYPES:
            return Complaint(
                OPERAND_KIND, f".{wanted.type} does not allow immediates, found `{text_of(actual)}`", "use a register"
            )
        if isinstance(value, int):
            return Complaint(
                OPERAND_TYPE,
                f"`{wanted.name}` is .{wanted.type}, found the integer `{text_of(actual)}`",
                "write a floating-point number, such as 1.0 or 0f3F800000",
            )
    elif isinstance(value, float) and not _takes_float_bits(wanted, actual):
        return Complaint(OPERAND_TYPE, f"`{wanted.name}` is .{wanted.type}, found the number `{text_of(actual)}`")
    if wanted.bounds is not None and isinstance(value, int):
        return _check_bounds(wanted, actual, value)
    return None


def _takes_float_bits(wanted: Operand, actual: Actual) -> bool:
    """Accept `0f…` for 32 untyped bits and `0d…` or `1.5` for 64, as ptxas does."""
    single = isinstance(actual, ImmediateOperand) and actual.text[:2].lower() == "0f"
    return wanted.type == ("b32" if single else "b64")


def _check_bounds(wanted: Operand, actual: Actual, value: int) -> Complaint | None:
    assert wanted.bounds is not None
    low, high, step = wanted.bounds
    if low <= value <= high and (value - low) % step == 0:
        return None
    multiple = f" in steps of {step}" if step > 1 else ""
    bounds = f"{low}" if low == high else f"{low} to {high}{multiple}"
    return Complaint(IMMEDIATE_RANGE, f"`{wanted.name}` must be {bounds}, found {text_of(actual)}")


def _check_expression(wanted: Operand, actual: Actual, scope: Scope) -> Complaint | None:
    """Check `symbol+4` and similar: an address computed by the assembler, or a negated register."""
    stack: list[Actual] = [actual]
    while stack:
        item = stack.pop()
        if isinstance(item, BinaryOperand):
            stack += (item.left, item.right)
        elif isinstance(item, UnaryOperand | CastOperand):
            stack.append(item.operand)
        elif isinstance(item, ConditionalOperand):
            stack += (item.test, item.then, item.other)
        elif isinstance(item, RegisterOperand | LabelOperand):
            symbol = scope.find(item.name)
            if symbol is None:
                return _complain_undeclared(item.name, scope, None)
            if symbol.kind is Means.REGISTER and not wanted.minus and not _sums_register(wanted, actual, scope):
                return _complain_kind(wanted, f"`{text_of(actual)}`", "an expression over registers")
            if symbol.kind is Means.VARIABLE and wanted.type in _FLOAT_TYPES:
                return Complaint(
                    OPERAND_TYPE, f"`{wanted.name}` is .{wanted.type}, found the address `{text_of(actual)}`",
                    f"first load its value into a register: ld.{symbol.space} from [{text_of(actual)}]",
                )  # fmt: skip
    return (
        None
        if wanted.kind in (Kind.MOVABLE, Kind.VALUE) or _sums_register(wanted, actual, scope)
        else _complain_kind(wanted, f"`{text_of(actual)}`", "an expression")
    )


_SUMMANDS = ADDRESS_REGISTERS - {"b8", "u8", "s8"}


def _sums_register(wanted: Operand, actual: Actual, scope: Scope) -> bool:
    """Tell whether this is a valid `register+number`: ptxas adds the number to the bits of an integer register before
    the instruction reads it. Register parts do not support it, and other registers crash ptxas."""
    if not isinstance(actual, BinaryOperand) or not isinstance(actual.left, RegisterOperand | LabelOperand):
        return False
    symbol = scope.find(actual.left.name)
    scalar = wanted.kind in (Kind.VALUE, Kind.REGISTER, Kind.MOVABLE) and not wanted.count and not wanted.selectable
    if symbol is None or symbol.kind is not Means.REGISTER or symbol.vector:
        return False
    return scalar and symbol.type in _SUMMANDS and _holds(wanted, symbol.type) and wanted.access == "r"


_EXPECTED = {
    Kind.VALUE: "a register or a number",
    Kind.REGISTER: "a register",
    Kind.IMMEDIATE: "a number",
    Kind.ADDRESS: "an address",
    Kind.PIPE: "two destinations `a|b`",
    Kind.MOVABLE: "a register, a number or an address",
    Kind.VARIABLE: "a variable or a 64-bit handle",
    Kind.LABEL: "a label",
    Kind.FUNCTION: "a function",
    Kind.LIST: "a list in parentheses",
    Kind.SPECIAL: "a special register",
    Kind.SINK: "`_`",
}


def _complain_kind(wanted: Operand, shown: str, what: str, help: str | None = None) -> Complaint:
    expected = "a register" if wanted.access == "w" and wanted.kind is Kind.VALUE else _EXPECTED[wanted.kind]
    if wanted.count:
        expected = f"a vector of {counted('register', wanted.count)}"
    return Complaint(OPERAND_KIND, f"`{wanted.name}` must be {expected}, found {shown}, {what}", help)


def _complain_type(wanted: Operand, name: str, declared: str, expected: str | None = None) -> Complaint:
    allowed = (
        sorted(accepted(wanted.type, wanted.widenable)) if expected is None and wanted.type else [expected or "b64"]
    )
    kinds = " or ".join(f".{t}" for t in allowed[:4])
    return Complaint(
        OPERAND_TYPE,
        f"`{wanted.name}` is .{wanted.type or expected}, found `{name}` declared .{declared}",
        f"use a register declared {kinds}",
    )


_CHECKS: dict[type, Callable[[Operand, Actual, Scope], Complaint | None]] = {
    RegisterOperand: _check_register,
    LabelOperand: _check_register,
    AddressOperand: _check_address,
    IndexedOperand: _check_other_address,
    ConstantAddressOperand: _check_other_address,
    VectorOperand: _check_vector,
    PipeOperand: _check_pipe,
    ParenthesizedOperand: _check_list,
    NegatedOperand: _check_negated,
}
