"""Values that can be operands besides Python's own numbers, strings, lists and tuples. Contains no trace logic."""

from __future__ import annotations

import math
import sys
from functools import cache, lru_cache
from typing import Any, NoReturn, cast

from pyptx.check.fits import DECLARABLE, list_accepted_types
from pyptx.check.symbols import Symbol, make_register
from pyptx.diagnostics import PtxError, PythonFrame
from pyptx.dsl import rules
from pyptx.dsl.operations import refuse_operations
from pyptx.dsl.trace import Trace, fail
from pyptx.ir.kinds import ScalarType
from pyptx.ir.nodes import Predicate
from pyptx.ir.operands import (
    AddressOperand,
    ImmediateOperand,
    NegatedOperand,
    Operand,
    PipeOperand,
    RegisterOperand,
    VectorOperand,
)
from pyptx.numbers import FORMATS, Format, Kind, Overflow, decode_number, encode
from pyptx.types import ALL, PtxType, from_name

_ARITHMETIC_FLOATS = frozenset(("f32", "f64", "f16", "bf16"))


class Value:
    """A value of this package that can be an operand."""

    __slots__ = ()

    def __operand__(self) -> Operand:
        """Return it as a value: a register, a symbol, a vector."""
        raise NotImplementedError(type(self).__name__)

    def __address__(self) -> Operand:
        """Return it as an address, in brackets."""
        return self.__operand__()

    def __single__(self) -> Value:
        """Return it as one operand, emitting an add if it is a register plus an offset."""
        return self

    def __ring_base__(self) -> tuple[str | Register, int] | None:
        """Return the base of barriers placed on it, a symbol or a register and a number of bytes; None if it is not
        memory."""
        return None

    def __remedy__(self) -> str | None:
        """Return how to use it where it does not fit: as a number, or in an instruction on another memory."""
        return None

    def __describe__(self) -> str:
        """Return a clause for messages that says what it is."""
        raise NotImplementedError(type(self).__name__)

    def __alternative__(self) -> str | None:
        """Return what to write instead of a Python operation, or None if that depends on the operation."""
        return self.__remedy__()

    def __bool__(self) -> bool:
        return True

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | float):
            fail(
                rules.TYPES, f"{self.__describe__()} and cannot be compared with a number", help=self.__alternative__()
            )
        return self is other

    def __format__(self, spec: str) -> str:
        if spec:
            fail(rules.TRUTH, f"{self.__describe__()} and does not support the format {spec!r}",
                 help="ptx.printf prints values when the kernel runs; {x.name} is a register's name")  # fmt: skip
        return repr(self)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame.f_back is not None and frame.f_globals.get("__name__") in ("copy", "pickle"):
            frame = frame.f_back
        raise PtxError([rules.COPY.report(
            PythonFrame(frame.f_code, frame.f_lasti),
            f"this {type(self).__name__} belongs to the kernel being traced and cannot be copied or pickled",
            help="reg.from_(x, dtype) copies a register's value; pass the PTX text, k.ptx(…), to another process",
        )])  # fmt: skip


refuse_operations(Value)


class Register(Value):
    """A register: name, type, and the trace that it belongs to. Hashed by identity."""

    __slots__ = ("__node__", "__trace__", "__type_name__", "_bracketed", "_guards", "dtype", "name")

    def __init__(self, name: str, dtype: PtxType, trace: Trace | None) -> None:
        self.name, self.dtype, self.__trace__ = name, dtype, trace
        self.__type_name__ = dtype.name
        self.__node__ = RegisterOperand(name)
        self._bracketed: AddressOperand | None = None
        self._guards: tuple[Predicate, Predicate] | None = None

    def __operand__(self) -> Operand:
        return self.__node__

    def __describe__(self) -> str:
        return f"`{self.name}` is a register with no value during tracing"

    def __address__(self) -> Operand:
        if self._bracketed is None:
            self._bracketed = AddressOperand(self.name)
        return self._bracketed

    def __guard__(self, is_negated: bool) -> Predicate:
        """Return `@%p` or `@!%p`."""
        if self._guards is None:
            self._guards = Predicate(self.name), Predicate(self.name, True)
        return self._guards[is_negated]


class RegisterRange(Value):
    """Registers of one type, declared as one range and used as one vector."""

    __slots__ = ("__members__", "__node__", "__trace__", "base", "count", "dtype")

    def __init__(self, base: str, dtype: PtxType, members: tuple[Register, ...], trace: Trace | None) -> None:
        self.base, self.dtype, self.__members__, self.__trace__ = base, dtype, members, trace
        self.count = len(members)
        self.__node__ = VectorOperand(tuple([register.__node__ for register in members]))

    def __describe__(self) -> str:
        return f"`{self.base}` is a vector of {self.count} registers"

    def __alternative__(self) -> str:
        return "operate on each element: [r + 1 for r in x]; `x[i] = value` writes one"

    def __operand__(self) -> Operand:
        return self.__node__


class Negation(Value):
    """`~p`: a negated predicate."""

    __slots__ = ("reg",)

    def __init__(self, reg: Register) -> None:
        self.reg = reg

    def __describe__(self) -> str:
        return f"`~{self.reg.name}` is a predicate"

    def __alternative__(self) -> str:
        return "predicates support & | ^ ~; ptx.if_ branches on one, ptx.selp converts one to a number"

    def __operand__(self) -> Operand:
        return NegatedOperand(self.reg.__node__)


class Pair(Value):
    """`a|b`: two destinations. Either may be None, written `_`, or a type, for a new register."""

    __slots__ = ("left", "right")

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right

    def __describe__(self) -> str:
        return f"`{self!r}` is a pair of destinations"

    def __alternative__(self) -> str:
        return "unpack the registers: d, p = pair"

    def __operand__(self) -> Operand:
        left, right = (RegisterOperand("_") if side is None else side.__node__ for side in (self.left, self.right))
        return PipeOperand(left, right)


@cache
def choose_storage(dtype: PtxType) -> tuple[str, ScalarType]:
    """Return the letters of a type's register class and the type its registers are declared with."""
    if dtype.name == "pred":
        return "p", ScalarType.PRED
    if dtype.name in ("f32", "f64"):
        return ("f", ScalarType.F32) if dtype.name == "f32" else ("fd", ScalarType.F64)
    # ptxas requires real 8-bit registers for a pair of fp4 values, and moves no others.
    if dtype.name == "e2m1x2":
        return "rb", ScalarType.B8
    fitting = [
        (letter, scalar_type)
        for bits, letter, scalar_type in _CLASSES
        if dtype.kind != "opaque" and 6 <= dtype.bits <= bits
    ]
    if not fitting:
        fail(rules.TYPES, f"no register can hold a value of type .{dtype.name}", help="use a type of 8 to 128 bits")
    return fitting[0]


_CLASSES = (
    (16, "rs", ScalarType.B16), (32, "r", ScalarType.B32), (64, "rd", ScalarType.B64), (128, "rq", ScalarType.B128),
)  # fmt: skip


@cache
def make_symbol(dtype: PtxType) -> Symbol:
    """Return the symbol of a register of this type for the operand checks."""
    return make_register(
        dtype.name if dtype.name in DECLARABLE and dtype.bits != 8 else choose_storage(dtype)[1].ptx[1:]
    )


@cache
def find_accepted_types(type_name: str, widenable: bool) -> frozenset[str]:
    """Return the types whose registers an operand of this type accepts.

    Stricter than ptxas, which sees `.b32` registers: an integer is not an `f32`. Packed formats are held in integer
    registers.
    """
    names = [t.name for t in ALL if t.kind != "opaque" and t.bits not in (1, 4) and _holds(t, type_name, widenable)]
    return frozenset([*names, "pred"] if type_name == "pred" else names)


def _holds(have: PtxType, type_name: str, widenable: bool) -> bool:
    storages, want = list_accepted_types(type_name, widenable), from_name(type_name)
    storage_type = choose_storage(have)[1].ptx[1:]
    if have.name == type_name and storage_type in storages:
        return True
    if have.kind in ("b", "u", "s"):
        if storage_type not in storages:
            return False
        return type_name not in _ARITHMETIC_FLOATS or have.kind == "b"
    if have.name == "f16x2" and have.name in storages:
        return True
    return want.kind == "b" and storage_type in storages


def unwrap_number(value: Any) -> Any:
    """Return a number of another library, such as NumPy, as a Python number; everything else as it is."""
    if value is None or isinstance(value, int | float | str | Value | Operand | list | tuple):
        return cast("object", value)
    kind = cast("Any", type(cast("object", value)))
    if hasattr(kind, "__index__"):
        return int(value)
    return float(value) if hasattr(kind, "__float__") and not hasattr(kind, "__len__") else value


def is_integer(value: object, low: int | None = None) -> bool:
    """Tell whether a value is an integer (not a bool) of at least `low`."""
    return isinstance(value, int) and not isinstance(value, bool) and (low is None or value >= low)


def compute_integer_range(dtype: PtxType, *, lenient: bool = False) -> tuple[int, int]:
    """Return the least and the greatest integer of a type; `lenient` accepts both signs, as ptxas does."""
    low = -(1 << dtype.bits - 1) if dtype.kind == "s" or dtype.kind == "b" or lenient else 0
    high = (1 << dtype.bits - 1) - 1 if dtype.kind == "s" and not lenient else (1 << dtype.bits) - 1
    return low, high


@cache
def find_half_type(dtype: PtxType) -> PtxType | None:
    """Return the type of each half of a pair of floating-point numbers (`f16` for `f16x2`), or None."""
    return from_name(dtype.name[:-2]) if dtype.kind == "f" and dtype.name.endswith("x2") else None


def is_pair(value: object, dtype: PtxType) -> bool:
    """Tell whether a value is a pair of numbers, (low half, high half), for a type that holds one."""
    return isinstance(value, tuple) and find_half_type(dtype) is not None


def _encode_pair(value: object, dtype: PtxType, half: PtxType) -> int:
    """Return the bits of a pair: (low half, high half), or one number for both."""
    numbers = cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value, value))
    if len(numbers) != 2 or not all(isinstance(number, int | float) for number in numbers):
        fail(
            rules.LITERAL,
            f".{dtype} holds two numbers, found {value!r}",
            help="write (low, high), or one number for both",
        )
    low, high = (encode_float(number, half) for number in numbers)
    return low | high << half.bits


def make_literal(value: Any, dtype: PtxType, *, lenient: bool = False) -> ImmediateOperand:
    """Return a number, or a pair of them for a pair type, as PTX spells it for this type, or refuse it."""
    half = find_half_type(dtype)
    if half is not None:
        return make_decimal(_encode_pair(value, dtype, half))
    if dtype.kind == "pred":
        if value not in (0, 1):
            fail(rules.LITERAL, f"a predicate must be True or False, found {value!r}")
        return make_decimal(int(value))
    if dtype.kind == "f":
        return (
            make_decimal(encode_float(value, dtype))
            if dtype.name not in ("f32", "f64")
            else make_float_literal(value, dtype)
        )
    if isinstance(value, float):
        fail(
            rules.LITERAL,
            f"expected an integer for .{dtype.name}, found {value!r}",
            help=f"write {suggest_integer(value)}",
        )
    low, high = compute_integer_range(dtype, lenient=lenient)
    if not low <= value <= high:
        fail(
            rules.LITERAL,
            f"{value} does not fit .{dtype.name}: the range is {low} to {high}",
            help=f"write {value & (1 << dtype.bits) - 1:#x} for the same bits" if low == 0 and value < 0 else None,
        )
    return make_decimal(int(value))


def suggest_integer(value: float) -> str:
    """Return an integer to suggest for a float."""
    return str(round(value)) if math.isfinite(value) else "an integer"


@lru_cache(maxsize=4096)
def make_decimal(value: int) -> ImmediateOperand:
    """Return an integer as PTX spells it."""
    return ImmediateOperand(str(value))


def make_float_literal(value: int | float, dtype: PtxType) -> ImmediateOperand:
    """Return `0f…` or `0d…`; integers must be exact."""
    return ImmediateOperand(("0f%08X" if dtype.bits == 32 else "0d%016X") % encode_float(value, dtype))


def encode_float(value: int | float, dtype: PtxType) -> int:
    """Return the bits of a number in a floating-point type, rounded to nearest even; integers must be exact."""
    form = FORMATS.get(dtype.name)
    if form is None or form.kind not in (Kind.FLOAT, Kind.POWER):
        fail(
            rules.LITERAL,
            f"there are no literals of type .{dtype.name}",
            help="load the bits through a register of an integer type",
        )
    code = _encode_literal(value if isinstance(value, int) else float(value), form)
    if code is None:
        _refuse_range(value, form)
    if isinstance(value, int) and decode_number(code, form) != value:
        fail(rules.LITERAL, f".{dtype.name} cannot hold {value} exactly", help=f"write {value}.0 to round it")
    return code << form.shift


def _encode_literal(value: int | float, form: Format) -> int | None:
    if form.name not in ("bf16", "tf32") or value != value:
        return encode(value, form)
    # As ml_dtypes does: by way of f32, of which the largest numbers become infinite.
    single = FORMATS["f32"]
    code = encode(value, single)
    return None if code is None else encode(decode_number(code, single), form, overflow=Overflow.SPECIAL)


def _refuse_range(value: int | float, form: Format) -> NoReturn:
    if form.bits >= 16:
        fail(rules.LITERAL, f"{value!r} does not fit .{form.name}", help="use a type with a larger exponent, or inf")
    powers = ", powers of two" if form.kind is Kind.POWER else ""
    fail(
        rules.LITERAL,
        f"{value!r} does not fit .{form.name}: the range is {form.minimum:g} to {form.maximum:g}{powers}",
        help="clamp it, or scale it by a power of two first",
    )
