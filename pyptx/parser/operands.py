"""Parses operands, addresses and constant expressions with explicit stacks: nothing recurses on the input."""

from __future__ import annotations

import re
from typing import NoReturn, cast

from pyptx.ir.kinds import ScalarType
from pyptx.ir.operands import (
    AddressOperand,
    BinaryOperand,
    CastOperand,
    ConditionalOperand,
    ConstantAddressOperand,
    FieldOperand,
    GenericOperand,
    ImmediateOperand,
    IndexedOperand,
    LabelOperand,
    MaskOperand,
    NegatedOperand,
    Operand,
    ParenthesizedOperand,
    PipeOperand,
    RegisterOperand,
    UnaryOperand,
    VectorOperand,
)
from pyptx.parser import rules
from pyptx.parser.cursor import Cursor
from pyptx.parser.errors import Failure

ALONE = frozenset({"ret", "exit", "trap", "brkpt"})
"""Opcodes without operands: after them, a missing `;` must not turn the next opcode into an operand."""
DEEPEST = 20_000
_UNARY, _AFTER_NAME, _FIELD = 12, 0, -1
_BINARY = {
    "*": 11, "/": 11, "%": 11, "+": 10, "-": 10, "<<": 9, ">>": 9, "<": 8, ">": 8, "<=": 8, ">=": 8, "==": 7, "!=": 7,
    "&": 6, "^": 5, "|": 4, "&&": 3, "||": 2,
}  # fmt: skip
_TERNARY = 1
_CLOSER = {"(": ")", "{": "}", "[": "]", "index": "]", "mask": ")"}


class _Frame:
    """An open bracket: finished elements, and the operands and operators of the current one."""

    __slots__ = ("elements", "kind", "open_tests", "operators", "subject", "values")

    def __init__(self, kind: str, subject: str = "") -> None:
        self.kind = kind
        self.subject = subject
        self.elements: list[Operand] = []
        self.values: list[Operand] = []
        self.operators: list[tuple[int, str]] = []
        self.open_tests = 0


_is_component = re.compile(r"\.(?:[xyzwrgba]|b(?!32$)[0-3]{1,3}|b[0-7]{4}|h[0-3]{1,2})").fullmatch


def parse_operand(cursor: Cursor, *, initializer: bool = False, lists: bool = True) -> Operand:
    """Parse one operand; in an initializer also `generic(x)`, masks and fields. Without `lists`, parentheses may only
    enclose constants."""
    start = cursor.start
    operand = _parse(cursor, initializer)
    if not lists and isinstance(operand, ParenthesizedOperand) and not _is_constant(operand):
        message = "expected an operand, found a parenthesized list"
        raise Failure(rules.UNEXPECTED, start, 1, message, "only `call` takes parenthesized lists")
    return operand


def _parse(cursor: Cursor, initializer: bool) -> Operand:
    frames = [_Frame("")]
    while True:
        if not _parse_primary(cursor, frames, initializer):
            continue
        while not _parse_after_value(cursor, frames, initializer):
            if len(frames) == 1 and not frames[0].values:
                return frames[0].elements[0]


def _parse_primary(cursor: Cursor, frames: list[_Frame], initializer: bool) -> bool:
    """Parse up to a complete value; return False while another must follow (after an operator or opening bracket)."""
    frame, kind, token = frames[-1], cursor.kind, cursor.token
    if kind == "NAME":
        value = _parse_name(cursor, frames, initializer)
        if frames[-1] is not frame:
            return False
        frame.values.append(value)
        return True
    if kind == "NUMBER":
        return _parse_number(cursor, frames, initializer)
    if kind != "PUNCTUATION":
        cursor.fail("an operand")
    if token in ("-", "+", "~", "!"):
        cursor.take()
        frame.operators.append((_UNARY, token))
        return False
    if token not in ("(", "{", "["):
        empty = frame.kind == "(" or (frame.kind == "{" and initializer)
        if empty and token == _CLOSER[frame.kind] and not frame.elements and not frame.operators:
            return _close(cursor, frames)
        cursor.fail("an operand")
    if frame.operators and token != "(" and not _makes_pipe(frame):
        cursor.fail("a constant")
    cursor.take()
    if token == "(" and cursor.kind == "DOTTED":
        frame.operators.append((_UNARY, _parse_cast_type(cursor)))
        return False
    _push(cursor, frames, _Frame(token))
    return False


def _push(cursor: Cursor, frames: list[_Frame], frame: _Frame) -> None:
    if len(frames) > DEEPEST:
        raise Failure(rules.DEPTH, cursor.start, 1, f"brackets nested to more than {DEEPEST} levels")
    frames.append(frame)


def _parse_cast_type(cursor: Cursor) -> str:
    if cursor.token not in (".s64", ".u64"):
        cursor.fail("`.s64` or `.u64`", "constants can only be cast with `(.s64)` or `(.u64)`")
    spelling = cursor.take()
    cursor.expect(")", "after the type of a cast")
    return spelling


def _parse_number(cursor: Cursor, frames: list[_Frame], initializer: bool) -> bool:
    frame = frames[-1]
    start, text = cursor.start, cursor.take()
    if initializer and cursor.token == "(":
        cursor.take()
        _push(cursor, frames, _Frame("mask", text))
        return False
    if text[:2] in ("0f", "0F") and frame.operators:
        _fail_constant(
            start, len(text), f"`{text}` is an exact value and cannot have an operator", "set its sign bit instead"
        )
    if frame.operators and frame.operators[-1] == (_UNARY, "-"):
        frame.operators.pop()
        text = f"-{text}"
    frame.values.append(ImmediateOperand(text))
    return True


def _fail_constant(start: int, length: int, message: str, help: str) -> None:
    raise Failure(rules.CONSTANT, start, length, message, help)


def _parse_name(cursor: Cursor, frames: list[_Frame], initializer: bool) -> Operand:
    """Parse a name with its component; for `name[`, open a frame and return the value as its subject."""
    frame, start = frames[-1], cursor.start
    name = cursor.take()
    if name == "WARP_SZ":
        if frame.operators and frame.operators[-1] == (_UNARY, "-"):
            frame.operators.pop()
            name = "-WARP_SZ"
        return ImmediateOperand(name)
    if frame.operators and not _takes_name(frame, initializer):
        message = f"expected a constant, found `{name}`"
        _fail_constant(start, len(name), message, "only the first term may be a register or a symbol")
    if initializer and name == "generic" and cursor.token == "(":
        cursor.take()
        symbol = cursor.take_name("the name of a variable")
        cursor.expect(")", "after the variable")
        return GenericOperand(symbol)
    if cursor.kind == "DOTTED":
        if not _is_component(cursor.token):
            _fail_component(cursor, start, name)
        name += cursor.take()
    if cursor.token == "[" and not initializer:
        cursor.take()
        _push(cursor, frames, _Frame("index", name))
    return RegisterOperand(name) if name[0] == "%" or name == "_" or "." in name else LabelOperand(name)


def _fail_component(cursor: Cursor, start: int, name: str) -> NoReturn:
    """Fail for a dotted word after a name: on a separate line, the name starts the next instruction."""
    before = cursor.text.rfind("\n", 0, start)
    if before >= 0 and not cursor.text[before + 1 : start].strip():
        end = len(cursor.text[:before].rstrip())
        message = f"expected an operand, found the instruction `{name}{cursor.token}`"
        raise Failure(rules.UNEXPECTED, max(0, end - 1), 1, message, "complete the statement and end it with `;`")
    cursor.fail("`,` or `;`", "components are `.x .y .z .w`, `.r .g .b .a`, `.b0` to `.b3`, `.h0` and `.h1`")


def _takes_name(frame: _Frame, initializer: bool) -> bool:
    """Tell whether a name may follow the pending operators: `a|`, `field =`, or one `!` or `-`."""
    if frame.operators[-1] == (_FIELD, "=") or _makes_pipe(frame):
        return True
    return len(frame.operators) == 1 and frame.operators[0] in ((_UNARY, "!"), (_UNARY, "-")) and not initializer


def _makes_pipe(frame: _Frame) -> bool:
    return frame.operators[-1] == (_BINARY["|"], "|") and not _is_constant(frame.values[-1])


def _parse_after_value(cursor: Cursor, frames: list[_Frame], initializer: bool) -> bool:
    """Parse what may follow a value: return True if another operand must follow, False if a bracket was closed or the
    whole operand is finished (the outermost frame then holds it as its element)."""
    frame, token = frames[-1], cursor.token
    if cursor.kind != "PUNCTUATION":
        token = ""
    if token in _BINARY or token == "?" or (token == "=" and initializer):
        if _push_operator(cursor, frame, token):
            return True
    elif token == ":" and frame.open_tests:
        frame.open_tests -= 1
        while frame.operators[-1] != (_TERNARY, "?"):
            _apply(frame)
        frame.operators[-1] = (_TERNARY, "?:")
        cursor.take()
        return True
    if frame.open_tests:
        cursor.fail("`:`", "write a conditional as `test ? then : other`")
    _reduce(frame, _FIELD)
    frame.elements.append(frame.values.pop())
    if not frame.kind:
        return False
    if token == "," and frame.kind in ("(", "{", "["):
        cursor.take()
        return True
    if token != _CLOSER[frame.kind]:
        separator = "`,` or " if frame.kind in ("(", "{", "[") else ""
        cursor.fail(f"{separator}`{_CLOSER[frame.kind]}`")
    _close(cursor, frames)
    return False


def _push_operator(cursor: Cursor, frame: _Frame, token: str) -> bool:
    """Push a binary operator; return False if it cannot follow this value."""
    value = frame.values[-1]
    symbolic = isinstance(value, RegisterOperand | LabelOperand | GenericOperand)
    if token == "=":
        if not isinstance(value, LabelOperand):
            return False
        frame.operators.append((_FIELD, "="))
    elif token == "|" and not isinstance(value, ImmediateOperand | ParenthesizedOperand):
        if frame.operators:
            return False
        frame.operators.append((_BINARY["|"], "|"))
    elif symbolic:
        if token == "-":
            help = "add a negative constant instead: `+-4`"
            _fail_constant(
                cursor.start, len(token), "expected `+`, found `-`: nothing can be subtracted from a symbol", help
            )
        if token != "+":
            return False
        frame.operators.append((_AFTER_NAME, "+"))
    elif not _is_constant(value):
        return False
    elif isinstance(value, ImmediateOperand) and value.text[:2] in ("0f", "0F") and len(value.text) == 10:
        message = f"`{value.text}` is an exact value and cannot have an operator"
        _fail_constant(cursor.start, len(token), message, "use the 0d form or a decimal number")
    elif token == "?":
        _reduce(frame, _TERNARY + 1)
        frame.open_tests += 1
        frame.operators.append((_TERNARY, "?"))
    else:
        _reduce(frame, _BINARY[token])
        frame.operators.append((_BINARY[token], token))
    cursor.take()
    return True


def _reduce(frame: _Frame, weakest: int) -> None:
    """Apply the pending operators that bind at least this strongly, up to an open `?` unless all must be applied."""
    while frame.operators and frame.operators[-1][0] >= weakest:
        _apply(frame)


def _apply(frame: _Frame) -> None:
    precedence, operator = frame.operators.pop()
    values = frame.values
    right = values.pop()
    if precedence == _UNARY:
        if operator[0] == ".":
            values.append(CastOperand(ScalarType.from_ptx(operator), right))
        elif operator == "!" and isinstance(right, RegisterOperand | LabelOperand):
            values.append(NegatedOperand(right))
        else:
            values.append(UnaryOperand(operator, right))
        return
    left = values.pop()
    if operator == "?:":
        values.append(ConditionalOperand(values.pop(), left, right))
    elif operator == "=":
        values.append(FieldOperand(cast("LabelOperand", left).name, right))
    elif operator == "|" and not _is_constant(left):
        values.append(PipeOperand(left, right))
    else:
        values.append(BinaryOperand(operator, left, right))


def _is_constant(operand: Operand) -> bool:
    if isinstance(operand, ParenthesizedOperand):
        return len(operand.elements) == 1 and _is_number(operand.elements[0])
    return _is_number(operand)


def _is_number(operand: Operand) -> bool:
    """Tell whether an operand consists of numbers, judging by its outermost term."""
    numbers = ImmediateOperand | BinaryOperand | ConditionalOperand | CastOperand | ParenthesizedOperand
    if isinstance(operand, UnaryOperand):
        return not isinstance(operand.operand, RegisterOperand | LabelOperand)
    return isinstance(operand, numbers)


def _close(cursor: Cursor, frames: list[_Frame]) -> bool:
    """Take the closing bracket and pass the finished operand to the enclosing frame."""
    frame = frames.pop()
    elements = tuple(frame.elements)
    outer = frames[-1]
    if frame.kind == "(":
        operand: Operand = ParenthesizedOperand(elements)
        if (outer.operators or outer.kind) and not _is_constant(operand):
            cursor.fail("a constant expression in these parentheses")
    elif frame.kind == "{":
        operand = VectorOperand(elements)
    elif frame.kind == "[":
        operand = _build_address(elements)
        if isinstance(operand, ConstantAddressOperand) and not _is_constant(operand.expression):
            cursor.fail("a register, a symbol or a constant as the address")
        if isinstance(operand, AddressOperand) and operand.rest and operand.offset is not None:
            message = "an address with coordinates cannot have an offset"
            raise Failure(rules.UNEXPECTED, cursor.start, 1, message, "add the offset to a register first")
    elif frame.kind == "mask":
        operand = MaskOperand(frame.subject, elements[0])
    else:
        operand = IndexedOperand(frame.subject, elements[0])
    cursor.take()
    outer.values.append(operand)
    return True


def _build_address(elements: tuple[Operand, ...]) -> Operand:
    """Return the operand for `[…]` around these elements."""
    first, coordinates = elements[0], elements[1:]
    if isinstance(first, RegisterOperand | LabelOperand):
        return AddressOperand(first.name, None, coordinates)
    if isinstance(first, ImmediateOperand):
        return AddressOperand(first.text, None, coordinates)
    if isinstance(first, BinaryOperand) and first.operator == "+":
        left, right = first.left, first.right
        if isinstance(left, ImmediateOperand) and isinstance(right, ImmediateOperand):
            return AddressOperand(left.text, right.text, coordinates)
        if isinstance(left, RegisterOperand | LabelOperand):
            if isinstance(right, ImmediateOperand):
                return AddressOperand(left.name, right.text, coordinates)
            return AddressOperand(left.name, None, coordinates, right)
    return ConstantAddressOperand(first, coordinates)
