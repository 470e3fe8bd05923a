"""Registers as the user sees them: `Reg` with typed operators, `RegArray`, `PipeRef`, `NegPred`; and their
construction."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn, cast

from pyptx.dsl import rules
from pyptx.dsl.arithmetic import check_operand, to_signed, to_untyped
from pyptx.dsl.creation import declare_register
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.operators import emit_binary, emit_comparison, emit_logic, emit_shift
from pyptx.dsl.trace import CURRENT, Trace, fail, get_trace
from pyptx.dsl.values import (
    Negation,
    Pair,
    Register,
    choose_storage,
    find_accepted_types,
    is_pair,
    make_literal,
    unwrap_number,
)
from pyptx.types import PtxType, from_name


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
        for index, value in enumerate(objects.flat):
            objects.flat[index] = operation(value, self)
        return objects

    def __add__(self, other: Any) -> Reg:
        return emit_binary("add", "+", self, other)

    def __radd__(self, other: Any) -> Reg:
        return emit_binary("add", "+", other, self)

    def __sub__(self, other: Any) -> Reg:
        return emit_binary("sub", "-", self, other)

    def __rsub__(self, other: Any) -> Reg:
        return emit_binary("sub", "-", other, self)

    def __mul__(self, other: Any) -> Reg:
        return emit_binary("mul", "*", self, other)

    def __rmul__(self, other: Any) -> Reg:
        return emit_binary("mul", "*", other, self)

    def __floordiv__(self, other: Any) -> Reg:
        return emit_binary("div", "//", self, other)

    def __rfloordiv__(self, other: Any) -> Reg:
        return emit_binary("div", "//", other, self)

    def __truediv__(self, other: Any) -> Reg:
        return emit_binary("truediv", "/", self, other)

    def __rtruediv__(self, other: Any) -> Reg:
        return emit_binary("truediv", "/", other, self)

    def __mod__(self, other: Any) -> Reg:
        return emit_binary("rem", "%", self, other)

    def __rmod__(self, other: Any) -> Reg:
        return emit_binary("rem", "%", other, self)

    def __and__(self, other: Any) -> Reg:
        return emit_logic("and", "&", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Reg:
        return emit_logic("or", "|", self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Reg:
        return emit_logic("xor", "^", self, other)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Reg:
        return emit_shift("shl", "<<", self, other)

    def __rlshift__(self, other: Any) -> Reg:
        return emit_shift("shl", "<<", other, self)

    def __rshift__(self, other: Any) -> Reg:
        return emit_shift("shr", ">>", self, other)

    def __rrshift__(self, other: Any) -> Reg:
        return emit_shift("shr", ">>", other, self)

    def __iadd__(self, other: Any) -> Reg:
        return emit_binary("add", "+=", self, other, _check_changeable(self, "+="))

    def __isub__(self, other: Any) -> Reg:
        return emit_binary("sub", "-=", self, other, _check_changeable(self, "-="))

    def __imul__(self, other: Any) -> Reg:
        return emit_binary("mul", "*=", self, other, _check_changeable(self, "*="))

    def __ifloordiv__(self, other: Any) -> Reg:
        return emit_binary("div", "//=", self, other, _check_changeable(self, "//="))

    def __itruediv__(self, other: Any) -> Reg:
        return emit_binary("truediv", "/=", self, other, _check_changeable(self, "/="))

    def __imod__(self, other: Any) -> Reg:
        return emit_binary("rem", "%=", self, other, _check_changeable(self, "%="))

    def __iand__(self, other: Any) -> Reg:
        return emit_logic("and", "&=", self, other, _check_changeable(self, "&="))

    def __ior__(self, other: Any) -> Reg:
        return emit_logic("or", "|=", self, other, _check_changeable(self, "|="))

    def __ixor__(self, other: Any) -> Reg:
        return emit_logic("xor", "^=", self, other, _check_changeable(self, "^="))

    def __ilshift__(self, other: Any) -> Reg:
        return emit_shift("shl", "<<=", self, other, _check_changeable(self, "<<="))

    def __irshift__(self, other: Any) -> Reg:
        return emit_shift("shr", ">>=", self, other, _check_changeable(self, ">>="))

    def __neg__(self) -> Reg:
        check_operand("neg", self.dtype, "-")
        kind = self.dtype if self.dtype.kind == "f" else to_signed(self.dtype)
        return _emit_result("neg", kind, self.dtype, self)

    def __abs__(self) -> Reg:
        check_operand("abs", self.dtype, "abs")
        return _emit_result("abs", self.dtype, self.dtype, self)

    def __invert__(self) -> Any:
        if self.dtype.kind == "pred":
            return NegPred(self)
        check_operand("not", self.dtype, "~")
        return _emit_result("not", to_untyped(self.dtype), self.dtype, self)

    def __lt__(self, other: Any) -> Reg:
        return emit_comparison("lt", "<", self, other)

    def __le__(self, other: Any) -> Reg:
        return emit_comparison("le", "<=", self, other)

    def __gt__(self, other: Any) -> Reg:
        return emit_comparison("gt", ">", self, other)

    def __ge__(self, other: Any) -> Reg:
        return emit_comparison("ge", ">=", self, other)

    def __eq__(self, other: Any) -> Reg:  # pyright: ignore[reportIncompatibleMethodOverride]
        return emit_comparison("eq", "==", self, other)

    def __ne__(self, other: Any) -> Reg:  # pyright: ignore[reportIncompatibleMethodOverride]
        return emit_comparison("ne", "!=", self, other)

    def view(self, dtype: Dtype) -> Reg:
        """Return the same register viewed as another type: `x.view(s32) >> 1` shifts arithmetically. Emits nothing."""
        dtype = resolve_type(dtype)
        if dtype is self.dtype:
            return self
        alias = self.__views__.get(dtype.name)
        if alias is None:
            _check_view(self, dtype)
            alias = self.__views__[dtype.name] = Reg(self.name, dtype)
        alias.__trace__, alias.__held__ = self.__trace__, self.__held__
        return alias

    b16, u16, s16 = _make_view("b16"), _make_view("u16"), _make_view("s16")
    b32, u32, s32 = _make_view("b32"), _make_view("u32"), _make_view("s32")
    b64, u64, s64 = _make_view("b64"), _make_view("u64"), _make_view("s64")
    f16, bf16, f16x2, bf16x2 = _make_view("f16"), _make_view("bf16"), _make_view("f16x2"), _make_view("bf16x2")
    f32, f64 = _make_view("f32"), _make_view("f64")

    def max(self, other: Any) -> Reg:
        """Return the larger of two values, typed by the register."""
        return emit_binary("max", "max", self, other)

    def min(self, other: Any) -> Reg:
        """Return the smaller of two values, typed by the register."""
        return emit_binary("min", "min", self, other)


def _check_view(register: Reg, dtype: PtxType) -> None:
    """Refuse a view of a `.f32` or `.f64` register as a type whose instructions do not accept it."""
    trace = register.__trace__
    symbol = None if trace is None or trace.exact is not None else trace.scope.find(register.name)
    if symbol is None or symbol.type not in ("f32", "f64") or symbol.type in find_accepted_types(dtype.name, False):
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
        return emit_logic("and", "&", self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Reg:
        return emit_logic("or", "|", self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Reg:
        return emit_logic("xor", "^", self, other)

    __rxor__ = __xor__
    __hash__ = Negation.__hash__

    def __eq__(self, other: object) -> bool:
        return emit_comparison("eq", "==", self, other) if isinstance(other, Pred) else super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return emit_comparison("ne", "!=", self, other) if isinstance(other, Pred) else super().__ne__(other)

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


def create_register(dtype: Dtype, name: str | None = None, trace: Trace | None = None) -> Reg:
    """Return a new register of the trace with a unique name."""
    return declare_register(Reg, resolve_type(dtype), name, trace or get_trace())


def make_destination(value: Any) -> Any:
    """Return the destination of an instruction: a type stands for a new register of that type, also inside a list or a
    pair."""
    if isinstance(value, PtxType):
        return create_register(value)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [make_destination(item) for item in items] if any(isinstance(item, PtxType) for item in items) else items
    if isinstance(value, Pair) and any(isinstance(side, PtxType) for side in (value.left, value.right)):
        return PipeRef(make_destination(value.left), make_destination(value.right))
    return value


Dtype = PtxType | str
"""A type, or its name: `f16` or "f16"."""


def resolve_type(dtype: Any) -> PtxType:
    """Return a type, or the type with this name; refuse everything else."""
    if isinstance(dtype, PtxType):
        return dtype
    if isinstance(dtype, str):
        try:
            return from_name(dtype)
        except ValueError as wrong:
            fail(rules.ARGUMENT, str(wrong), help="use a type of pyptx.types, or its name: 'bf16'")
    return fail(rules.ARGUMENT, f"expected a type of pyptx.types, found {describe(dtype)}", help="use u32, f32, …")


def move(dst: Reg, src: Any) -> None:
    """Emit the one `mov` that writes a value of any kind to a register of any type."""
    emit(spell("mov", move_type(dst.dtype)), (dst, _check_source(dst, src)))


def move_type(dtype: PtxType) -> str:
    """Return the type that `mov` uses for a register of this type."""
    if dtype.name in ("pred", "f32", "f64") or (
        dtype.kind in "us" and dtype.bits in (16, 32, 64) and "x" not in dtype.name
    ):
        return dtype.name
    return choose_storage(dtype)[1].ptx[1:]


def _check_source(dst: Reg, src: Any) -> Any:
    src = unwrap_number(src)
    if is_pair(src, dst.dtype):
        return make_literal(src, dst.dtype)
    if isinstance(src, list | tuple):
        fail(rules.TYPES, f"`{dst.name}` is one register, found {describe(cast('object', src))}",
             help="reg.array creates several; ptx.inst.mov.b64(x, [low, high]) packs two into one")  # fmt: skip
    if isinstance(src, int | float) and not isinstance(src, bool):
        return make_literal(src, dst.dtype) if dst.dtype.bits >= 8 or dst.dtype.kind == "pred" else src
    return int(src) if isinstance(src, bool) else src


def _emit_result(opcode: str, kind: PtxType, into: Reg | PtxType, *sources: Any) -> Reg:
    register = into if isinstance(into, Reg) else create_register(into)
    emit(spell(opcode, kind.name), (register, *sources))
    return register


def _check_changeable(register: Reg, symbol: str) -> Reg:
    """Return the register that an in-place operator writes; refuse one that pyptx reuses."""
    if register.__held__ is not None:
        fail(rules.HELD, f"`{symbol}` would change `{register.name}`, which is {register.__held__}",
             help=f"change a copy: x = reg.from_(x, {register.__type_name__})")  # fmt: skip
    return register
