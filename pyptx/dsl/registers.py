"""Registers as the user sees them: `Reg` with typed operators, `RegArray`, `PipeRef`, `NegPred`; and their
construction."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn, cast

from pyptx.dsl import rules
from pyptx.dsl.arithmetic import cast_hint, check_operand, common_type, signed, unsigned, untyped
from pyptx.dsl.emit import Spelling, emit, foreign, remedy_of, shown, spelled
from pyptx.dsl.trace import CURRENT, Trace, current, fail, prefixed
from pyptx.dsl.values import (
    Negation,
    Pair,
    Register,
    is_pair,
    literal,
    plain,
    storage,
    symbol_of,
    takes,
)
from pyptx.ir.operands import ImmediateOperand
from pyptx.types import PtxType, from_name, pred, u32


def _make_view(name: str) -> property:
    def read(register: Reg) -> Reg:
        """Return the same register viewed as this type; emits nothing."""
        return register.view(from_name(name))

    def write(register: Reg, value: Any) -> None:
        """Accept the result of `x.s32 += y`, which has already been written."""
        if not isinstance(value, Register) or value.name != register.name:
            fail(rules.TYPES, f"`{register.name}` viewed as .{name} is not a separate register",
                 help=f"write ptx.mov({name}, x, value)")  # fmt: skip

    return property(read, write)


class Reg(Register):
    """A register of the kernel being traced. Operators add instructions and return new registers; in-place operators
    (`x += y`) write the register itself."""

    __slots__ = ("__held__", "__views__")

    def __init__(self, name: str, dtype: PtxType) -> None:
        super().__init__(name, dtype, CURRENT.get())
        self.__views__: dict[str, Reg] = {}
        self.__held__: str | None = None
        """What pyptx reuses the register for, so that in-place operators must not write it."""

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Reg({self.name!r}, {self.__type_name__})"

    def __bool__(self) -> NoReturn:
        fail(rules.TRUTH, f"`{self.name}` has no value while the kernel is being traced, so Python cannot branch on it",
             help="use ptx.if_, ptx.while_ or ptx.selp; combine conditions with & and |, negate with ~")  # fmt: skip

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Support NumPy numbers and arrays as the left operand of an operator; refuse NumPy functions."""
        is_operator = method == "__call__" and hasattr(inputs[0], "ndim") and not options
        operation = _OF_NUMPY.get(ufunc.__name__) if is_operator else None
        if operation is None:
            name = ufunc.__name__
            fail(rules.TRUTH, f"`np.{name}` computes in Python, where `{self.name}` has no value",
                 help="use an operator, a method or an instruction: x.max(y), abs(x), ptx.sin(f32, x)")  # fmt: skip
        if not inputs[0].ndim:
            return operation(inputs[0].item(), self)
        objects = inputs[0].astype(object)
        for at, value in enumerate(objects.flat):
            objects.flat[at] = operation(value, self)
        return objects

    def __add__(self, other: Any) -> Reg:
        return binary("add", "+", self, other)

    def __radd__(self, other: Any) -> Reg:
        return binary("add", "+", other, self)

    def __sub__(self, other: Any) -> Reg:
        return binary("sub", "-", self, other)

    def __rsub__(self, other: Any) -> Reg:
        return binary("sub", "-", other, self)

    def __mul__(self, other: Any) -> Reg:
        return binary("mul", "*", self, other)

    def __rmul__(self, other: Any) -> Reg:
        return binary("mul", "*", other, self)

    def __floordiv__(self, other: Any) -> Reg:
        return binary("div", "//", self, other)

    def __rfloordiv__(self, other: Any) -> Reg:
        return binary("div", "//", other, self)

    def __truediv__(self, other: Any) -> Reg:
        return binary("truediv", "/", self, other)

    def __rtruediv__(self, other: Any) -> Reg:
        return binary("truediv", "/", other, self)

    def __mod__(self, other: Any) -> Reg:
        return binary("rem", "%", self, other)

    def __rmod__(self, other: Any) -> Reg:
        return binary("rem", "%", other, self)

    def __and__(self, other: Any) -> Reg:
        return logic("and", "&", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Reg:
        return logic("or", "|", self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Reg:
        return logic("xor", "^", self, other)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Reg:
        return shift("shl", "<<", self, other)

    def __rlshift__(self, other: Any) -> Reg:
        return shift("shl", "<<", other, self)

    def __rshift__(self, other: Any) -> Reg:
        return shift("shr", ">>", self, other)

    def __rrshift__(self, other: Any) -> Reg:
        return shift("shr", ">>", other, self)

    def __iadd__(self, other: Any) -> Reg:
        return binary("add", "+=", self, other, _check_changeable(self, "+="))

    def __isub__(self, other: Any) -> Reg:
        return binary("sub", "-=", self, other, _check_changeable(self, "-="))

    def __imul__(self, other: Any) -> Reg:
        return binary("mul", "*=", self, other, _check_changeable(self, "*="))

    def __ifloordiv__(self, other: Any) -> Reg:
        return binary("div", "//=", self, other, _check_changeable(self, "//="))

    def __itruediv__(self, other: Any) -> Reg:
        return binary("truediv", "/=", self, other, _check_changeable(self, "/="))

    def __imod__(self, other: Any) -> Reg:
        return binary("rem", "%=", self, other, _check_changeable(self, "%="))

    def __iand__(self, other: Any) -> Reg:
        return logic("and", "&=", self, other, _check_changeable(self, "&="))

    def __ior__(self, other: Any) -> Reg:
        return logic("or", "|=", self, other, _check_changeable(self, "|="))

    def __ixor__(self, other: Any) -> Reg:
        return logic("xor", "^=", self, other, _check_changeable(self, "^="))

    def __ilshift__(self, other: Any) -> Reg:
        return shift("shl", "<<=", self, other, _check_changeable(self, "<<="))

    def __irshift__(self, other: Any) -> Reg:
        return shift("shr", ">>=", self, other, _check_changeable(self, ">>="))

    def __neg__(self) -> Reg:
        check_operand("neg", self.dtype, "-")
        kind = self.dtype if self.dtype.kind == "f" else signed(self.dtype)
        return _emit_result("neg", kind, self.dtype, self)

    def __abs__(self) -> Reg:
        check_operand("abs", self.dtype, "abs")
        return _emit_result("abs", self.dtype, self.dtype, self)

    def __invert__(self) -> Any:
        if self.dtype.kind == "pred":
            return NegPred(self)
        check_operand("not", self.dtype, "~")
        return _emit_result("not", untyped(self.dtype), self.dtype, self)

    def __lt__(self, other: Any) -> Reg:
        return compare("lt", "<", self, other)

    def __le__(self, other: Any) -> Reg:
        return compare("le", "<=", self, other)

    def __gt__(self, other: Any) -> Reg:
        return compare("gt", ">", self, other)

    def __ge__(self, other: Any) -> Reg:
        return compare("ge", ">=", self, other)

    def __eq__(self, other: Any) -> Reg:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare("eq", "==", self, other)

    def __ne__(self, other: Any) -> Reg:  # pyright: ignore[reportIncompatibleMethodOverride]
        return compare("ne", "!=", self, other)

    def view(self, dtype: Dtype) -> Reg:
        """Return the same register viewed as another type: `x.view(s32) >> 1` shifts arithmetically. Emits nothing."""
        dtype = type_of(dtype)
        if dtype is self.dtype:
            return self
        known = self.__views__.get(dtype.name)
        if known is None:
            _check_view(self, dtype)
            known = self.__views__[dtype.name] = Reg(self.name, dtype)
        known.__trace__, known.__held__ = self.__trace__, self.__held__
        return known

    b16, u16, s16 = _make_view("b16"), _make_view("u16"), _make_view("s16")
    b32, u32, s32 = _make_view("b32"), _make_view("u32"), _make_view("s32")
    b64, u64, s64 = _make_view("b64"), _make_view("u64"), _make_view("s64")
    f16, bf16, f16x2, bf16x2 = _make_view("f16"), _make_view("bf16"), _make_view("f16x2"), _make_view("bf16x2")
    f32, f64 = _make_view("f32"), _make_view("f64")

    def max(self, other: Any) -> Reg:
        """Return the larger of two values, typed by the register."""
        return binary("max", "max", self, other)

    def min(self, other: Any) -> Reg:
        """Return the smaller of two values, typed by the register."""
        return binary("min", "min", self, other)


def _check_view(register: Reg, dtype: PtxType) -> None:
    """Refuse a view of a `.f32` or `.f64` register as a type whose instructions do not accept it."""
    trace = register.__trace__
    symbol = None if trace is None or trace.exact is not None else trace.scope.find(register.name)
    if symbol is None or symbol.type not in ("f32", "f64") or symbol.type in takes(dtype.name, False):
        return
    bits = f"b{symbol.type[1:]}"
    help = f"x.view({bits}) reads its bits"
    if dtype.bits == int(symbol.type[1:]):
        help += f"; ptx.mov({bits}, x).view({dtype.name}) copies them into a register for .{dtype.name} arithmetic"
    fail(rules.TYPES, f"`{register.name}` is declared as .{symbol.type} and cannot be read as .{dtype.name}", help=help)


_OPERATORS: Any = operator
"""Python's operators; their stubs are not precise enough for registers."""
_OF_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "add": _OPERATORS.add, "subtract": _OPERATORS.sub, "multiply": _OPERATORS.mul, "divide": _OPERATORS.truediv,
    "floor_divide": _OPERATORS.floordiv, "remainder": _OPERATORS.mod, "bitwise_and": _OPERATORS.and_,
    "bitwise_or": _OPERATORS.or_, "bitwise_xor": _OPERATORS.xor, "left_shift": _OPERATORS.lshift,
    "right_shift": _OPERATORS.rshift, "less": _OPERATORS.lt, "less_equal": _OPERATORS.le,
    "greater": _OPERATORS.gt, "greater_equal": _OPERATORS.ge, "equal": _OPERATORS.eq, "not_equal": _OPERATORS.ne,
}  # fmt: skip
"""What NumPy numbers call for an operator with a register on the right."""


class NegPred(Negation):
    """`~p`: emits nothing; instructions and guards read the negated predicate."""

    __slots__ = ()
    reg: Reg

    def __init__(self, reg: Reg) -> None:
        super().__init__(reg)

    def __invert__(self) -> Reg:
        return self.reg

    def __and__(self, other: Any) -> Reg:
        return logic("and", "&", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Reg:
        return logic("or", "|", self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Reg:
        return logic("xor", "^", self, other)

    __rxor__ = __xor__

    def __bool__(self) -> NoReturn:
        bool(self.reg)
        raise AssertionError

    def __repr__(self) -> str:
        return f"~{self.reg!r}"


Pred = Reg | NegPred


class PipeRef(Pair):
    """`a|b`, two destinations of one instruction: `d, p = …` unpacks them."""

    __slots__ = ()

    def __iter__(self) -> Any:
        return iter((self.left, self.right))

    def __len__(self) -> int:
        return 2

    def __repr__(self) -> str:
        return f"PipeRef({self.left!r}, {self.right!r})"


def fresh(dtype: Dtype, name: str | None = None, trace: Trace | None = None) -> Reg:
    """Return a new register of the trace with a unique name."""
    trace = trace or current()
    dtype = type_of(dtype)
    given_name = None if trace.exact is None else trace.exact.take(dtype)
    if given_name is not None:
        return Reg(given_name, dtype)
    letter, storage_type = storage(dtype)
    if name is None:
        full = trace.declarations.fresh(letter, storage_type)
    else:
        full = trace.name_for(prefixed(name), "reg")
        trace.declarations.named.append((storage_type, full))
    trace.scope.put(full, symbol_of(dtype))
    register = Reg(full, dtype)
    if trace.declarations is not trace.top:
        trace.declarations.owned.append(register)
    return register


def destination(value: Any) -> Any:
    """Return the destination of an instruction: a type stands for a new register of that type, also inside a list or a
    pair."""
    if isinstance(value, PtxType):
        return fresh(value)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [destination(item) for item in items] if any(isinstance(item, PtxType) for item in items) else items
    if isinstance(value, Pair) and any(isinstance(side, PtxType) for side in (value.left, value.right)):
        return PipeRef(destination(value.left), destination(value.right))
    return value


Dtype = PtxType | str
"""A type, or its name: `f16` or "f16"."""


def type_of(dtype: Any) -> PtxType:
    """Return a type, or the type with this name; refuse everything else."""
    if isinstance(dtype, PtxType):
        return dtype
    if isinstance(dtype, str):
        try:
            return from_name(dtype)
        except ValueError as wrong:
            fail(rules.ARGUMENT, str(wrong), help="use a type of pyptx.types, or its name: 'bf16'")
    return fail(rules.ARGUMENT, f"expected a type of pyptx.types, found {shown(dtype)}", help="use u32, f32, …")


def move(dst: Reg, src: Any) -> None:
    """Emit the one `mov` that writes a value of any kind to a register of any type."""
    emit(spelled("mov", move_type(dst.dtype)), (dst, _check_source(dst, src)))


def move_type(dtype: PtxType) -> str:
    """Return the type that `mov` uses for a register of this type."""
    if dtype.name in ("pred", "f32", "f64") or (
        dtype.kind in "us" and dtype.bits in (16, 32, 64) and "x" not in dtype.name
    ):
        return dtype.name
    return storage(dtype)[1].ptx[1:]


def _check_source(dst: Reg, src: Any) -> Any:
    src = plain(src)
    if is_pair(src, dst.dtype):
        return literal(src, dst.dtype)
    if isinstance(src, list | tuple):
        fail(rules.TYPES, f"`{dst.name}` is one register, found {shown(cast('object', src))}",
             help="reg.array creates several; ptx.inst.mov.b64(x, [low, high]) packs two into one")  # fmt: skip
    if isinstance(src, int | float) and not isinstance(src, bool):
        return literal(src, dst.dtype) if dst.dtype.bits >= 8 or dst.dtype.kind == "pred" else src
    return int(src) if isinstance(src, bool) else src


def _emit_result(opcode: str, kind: PtxType, into: Reg | PtxType, *sources: Any) -> Reg:
    register = into if isinstance(into, Reg) else fresh(into)
    emit(spelled(opcode, kind.name), (register, *sources))
    return register


def _make_result(symbol: str, dtype: PtxType, trace: Trace) -> Reg:
    """Return a new register for the result of a binary operator."""
    register = fresh(dtype, None, trace)
    trace.operators[register.name] = symbol
    return register


def _check_changeable(register: Reg, symbol: str) -> Reg:
    """Return the register that an in-place operator writes; refuse one that pyptx reuses."""
    if register.__held__ is not None:
        fail(rules.HELD, f"`{symbol}` would change `{register.name}`, which is {register.__held__}",
             help=f"change a copy: x = reg.from_(x, {register.__type_name__})")  # fmt: skip
    return register


def _refuse_widening(into: Reg | None, dtype: PtxType, other: Any, symbol: str) -> None:
    """Refuse an in-place operator whose result is wider than the register."""
    if into is not None and dtype is not into.dtype:
        fail(
            rules.TYPES,
            f"`{symbol}` of .{into.dtype} and .{other.dtype}: `{into.name}` cannot hold the .{dtype} result",
            help=f"narrow the other operand first: {cast_hint(other.dtype, into.dtype)}",
        )


@lru_cache(maxsize=4096)
def _choose_arithmetic(operation: str, symbol: str, left: PtxType, right: PtxType | None) -> tuple[PtxType, Spelling]:
    """Return the type and instruction of an operation on two registers, or on a register and a number."""
    if right is None:
        check_operand(operation, left, symbol)
    dtype = left if right is None else common_type(operation, left, right, symbol)
    if dtype.kind != "f":
        if operation == "truediv":
            fail(rules.TYPES, f"`/` on .{dtype}", help="use a // b, which truncates toward zero as PTX does")
        modes = ("lo",) if operation == "mul" else ()
        return dtype, spelled(operation, *modes, unsigned(dtype).name)
    if operation != "truediv":
        return dtype, spelled(operation, dtype.name)
    if dtype.name not in ("f32", "f64"):
        fail(rules.TYPES, f"`/` on .{dtype}: PTX divides only f32 and f64", help="convert to f32 first")
    return dtype, spelled("div", "rn", dtype.name)


def binary(operation: str, symbol: str, left: Any, right: Any, into: Reg | None = None) -> Reg:
    """Emit an arithmetic instruction typed by its registers. It writes `into` or a new register."""
    if isinstance(left, Register) and isinstance(right, Register):
        dtype, spelling = _choose_arithmetic(operation, symbol, left.dtype, right.dtype)
        _refuse_widening(into, dtype, right, symbol)
        if left.dtype is not dtype or right.dtype is not dtype:
            left, right = _widen_to(left, dtype), _widen_to(right, dtype)
    elif isinstance(left, Register):
        dtype, spelling = _choose_arithmetic(operation, symbol, left.dtype, None)
        right = constant(left, right, symbol)
        if operation in ("div", "rem") and getattr(right, "text", "") == "0":
            fail(rules.LITERAL, f"`{symbol}` by 0: the result is undefined in PTX", help="guard it with ptx.if_")
    else:
        return _emit_with_number(operation, symbol, left, right)
    trace = current()
    result = _make_result(symbol, dtype, trace) if into is None else into
    emit(spelling, (result, left, right), None, trace)
    return result


def _emit_with_number(operation: str, symbol: str, number: Any, right: Register) -> Reg:
    """Emit an arithmetic instruction whose left operand is a Python number."""
    dtype, spelling = _choose_arithmetic(operation, symbol, right.dtype, None)
    left, trace = constant(right, number, symbol), current()
    result = _make_result(symbol, dtype, trace)
    emit(spelling, (result, left, right), None, trace)
    if isinstance(number, int | float):
        trace.from_numbers[result.name] = number
    return result


def compare(operation: str, symbol: str, left: Any, right: Any) -> Reg:
    """Emit `setp`, typed by its registers, and return the predicate."""
    if isinstance(right, Register) and right.dtype.kind == "pred" and _is_pred(left):
        fail(rules.TYPES, f"`{symbol}` on predicates", help="use p ^ q, which is true where they differ")
    left, right, dtype = _convert_operands(operation, symbol, left, right)
    result = fresh(pred)
    kind = dtype
    if dtype.kind == "b" and operation not in ("eq", "ne"):
        kind = unsigned(dtype)
    # `!=` means the unordered `ne`, for operands that may be NaN.
    word = "neu" if operation == "ne" and dtype.kind == "f" else operation
    emit(spelled("setp", word, kind.name), (result, left, right))
    return result


def logic(operation: str, symbol: str, left: Any, right: Any, into: Reg | None = None) -> Reg:
    """Emit `and`, `or`, `xor` on bits or predicates. It writes `into` or a new register."""
    if _is_pred(left) or _is_pred(right):
        sides: list[Any] = []
        for side in (left, right):
            if isinstance(side, bool):
                sides.append(int(side))
            elif _is_pred(side):
                sides.append(side)
            else:
                fail(rules.TYPES, f"`{symbol}` of a predicate and {shown(side)}", help="compare it first: x != 0")
        result = _make_result(symbol, pred, current()) if into is None else into
        emit(spelled(operation, "pred"), (result, *sides))
        return result
    left, right, dtype = _convert_operands(operation, symbol, left, right, into)
    result = _make_result(symbol, dtype, current()) if into is None else into
    return _emit_result(operation, untyped(dtype), result, left, right)


def shift(operation: str, symbol: str, left: Any, right: Any, into: Reg | None = None) -> Reg:
    """Emit `shl` or `shr` with the type of the shifted register and a 32-bit amount. It writes `into` or a new
    register."""
    dtype = left.dtype if isinstance(left, Register) else right.dtype
    check_operand(operation, dtype, symbol)
    if not isinstance(left, Register):
        left = literal(_check_integer(left, symbol), dtype)
    if isinstance(right, Register):
        check_operand(operation, right.dtype, symbol)
        if right.dtype.bits == 64:
            fail(
                rules.TYPES,
                f"`{symbol}` by a 64-bit register",
                help=f"convert it first: ptx.cvt(u32, {right.dtype}, dst, src)",
            )
        right = widen(right, u32) if right.dtype.bits < 32 else right
    else:
        right = _check_integer(right, symbol)
        if not 0 <= right < dtype.bits:
            fail(rules.LITERAL, f"`{symbol}` on .{dtype} shifts by 0 to {dtype.bits - 1}, found {right}",
                 help="shifting out all bits gives 0, or -1 for negative numbers: use that value instead")  # fmt: skip
    kind = untyped(dtype) if operation == "shl" else unsigned(dtype)
    result = _make_result(symbol, dtype, current()) if into is None else into
    return _emit_result(operation, kind, result, left, right)


def widen(source: Register, to: PtxType) -> Reg:
    """Emit the `cvt` that extends an integer according to its own signedness."""
    own = unsigned(source.dtype)
    kind = from_name(f"{own.kind}{to.bits}")
    result = fresh(kind)
    emit(spelled("cvt", kind.name, own.name), (result, source))
    return result


def _is_pred(value: Any) -> bool:
    return isinstance(value, Negation) or (isinstance(value, Register) and value.dtype.kind == "pred")


def _check_integer(value: Any, symbol: str) -> int:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int):
        fail(rules.TYPES, f"`{symbol}` takes registers and integers, found {shown(value)}",
             help="pass the number of bits")  # fmt: skip
    return value


def _convert_operands(
    operation: str, symbol: str, left: Any, right: Any, into: Reg | None = None
) -> tuple[Any, Any, PtxType]:
    """Return both sides as instruction operands of one type."""
    for side in (left, right):
        if isinstance(side, Register) and side.__trace__ is not current():
            foreign(side)
    if isinstance(left, Register) and isinstance(right, Register):
        dtype = common_type(operation, left.dtype, right.dtype, symbol)
        _refuse_widening(into, dtype, right, symbol)
        return _widen_to(left, dtype), _widen_to(right, dtype), dtype
    known, other = (left, right) if isinstance(left, Register) else (right, left)
    check_operand(operation, known.dtype, symbol)
    value = constant(known, other, symbol, operation in _BITWISE)
    return (left, value, known.dtype) if known is left else (value, right, known.dtype)


_BITWISE = frozenset(("eq", "ne", "and", "or", "xor"))
"""Operations that read only the bits of a constant, so ptxas accepts either sign."""


def constant(known: Register, other: Any, symbol: str, lenient: bool = False) -> Any:
    """Return a number as the operand beside a register; `lenient` accepts either sign. Half precision has no
    immediates, so the number goes into a register; a pair type takes a pair of numbers, the low half first."""
    value: Any = other if isinstance(other, int | float) else plain(other)
    if isinstance(value, ImmediateOperand):
        return value
    pair = is_pair(value, known.dtype)
    if not isinstance(value, int | float) and not pair:
        if isinstance(value, Negation):
            check_operand(symbol, pred, symbol)
        help = "use `is None`" if value is None else remedy_of(value) or "operators take registers and numbers"
        fail(rules.TYPES, f"`{symbol}` of `{known.name}` and {shown(value)}", help=help)
    dtype = known.dtype
    # 0.0 and -0.0 are equal keys but different numbers, also inside a pair.
    remembered = not pair and value != 0
    kind = cast("type", type(value))
    number = _make_literal(kind, value, dtype, lenient) if remembered else literal(value, dtype, lenient=lenient)
    if dtype.kind != "f" or dtype.name in ("f32", "f64"):
        return number
    register = fresh(dtype)
    emit(spelled("mov", untyped(dtype).name), (register, number))
    return register


@lru_cache(maxsize=4096)
def _make_literal(kind: type, value: int | float, dtype: PtxType, lenient: bool) -> ImmediateOperand:
    """Return a cached literal. The key includes the type, because 1, True and 1.0 are equal."""
    return literal(value, dtype, lenient=lenient)


def _widen_to(side: Any, dtype: PtxType) -> Any:
    if side.dtype.kind != "f" and side.dtype.bits < dtype.bits:
        return widen(side, dtype)
    return side
