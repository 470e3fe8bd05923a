"""The number formats: one row each, what a code means, and the one way to round a number to a code.

Knows bits, and the names of array dtypes; no PTX program and no array. Manual: Fundamental Types, Packed Data Types,
Alternate Floating-Point Data Formats, Fixed-point Data format.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property


class Kind(Enum):
    """The kind of value that a code encodes."""

    BITS = "untyped"
    INTEGER = "an integer, in two's complement if signed"
    FIXED = "an integer with a binary point"
    FLOAT = "sign, exponent and mantissa, with subnormal numbers"
    POWER = "an exponent alone"


class Special(Enum):
    """Which codes of a floating-point format are not finite numbers."""

    NONE = "none"
    NAN = "the last one is NaN"
    IEEE = "all exponent bits set: infinity, with a mantissa NaN"


@dataclass(frozen=True)
class Format:
    """A number format. `largest`, `infinity` and `nan` are codes without the sign."""

    name: str
    kind: Kind
    bits: int
    """The width of a code."""
    mantissa: int = 0
    """The number of bits after the binary point."""
    special: Special = Special.NONE
    signed: bool = True
    width: int = 0
    """The width of a scalar if its code does not fill it."""
    shift: int = 0
    """The lowest bit of the code in a scalar; the bits below are ignored."""
    lane: int = 0
    """The width of an element of a packed type if it differs from that of a scalar."""
    arrays: tuple[str, ...] = ()
    """The dtypes of NumPy and ml_dtypes for arrays of scalars, the one to allocate first."""
    pair: str = ""
    """The dtype of an array of packed pairs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", self.width or self.bits)
        object.__setattr__(self, "lane", self.lane or (8 if self.bits == 6 else self.width))

    @property
    def exponent(self) -> int:
        """The number of exponent bits."""
        return self.bits - self.mantissa - self.signed

    @cached_property
    def bias(self) -> int:
        """The exponent field of numbers from 1 to 2."""
        return (1 << self.exponent - 1) - 1

    @cached_property
    def least_exponent(self) -> int:
        """The exponent of the smallest normal number and of the subnormal ones."""
        return 1 - self.bias

    @cached_property
    def sign(self) -> int:
        """The sign bit, or 0."""
        return 1 << self.bits - 1 if self.signed else 0

    @cached_property
    def magnitude(self) -> int:
        """All bits except the sign."""
        return (1 << self.bits - self.signed) - 1

    @cached_property
    def exponent_mask(self) -> int:
        """The bits of the exponent."""
        return self.magnitude >> self.mantissa << self.mantissa

    @cached_property
    def one(self) -> int:
        """The code of 1."""
        return self.bias << self.mantissa

    @cached_property
    def infinity(self) -> int | None:
        """The code of infinity: all exponent bits."""
        return self.exponent_mask if self.special is Special.IEEE else None

    @cached_property
    def nan(self) -> int | None:
        """The NaN that instructions return: all bits set."""
        return None if self.special is Special.NONE else self.magnitude

    @cached_property
    def largest(self) -> int:
        """The code of the largest finite number."""
        return self.magnitude if self.nan is None else (self.infinity or self.nan) - 1

    @cached_property
    def maximum(self) -> float:
        """The largest finite number."""
        return decode_number(self.largest, self)

    @cached_property
    def minimum(self) -> float:
        """The least finite number."""
        return -self.maximum if self.signed else decode_number(0, self)

    @property
    def letter(self) -> str:
        """PTX's abbreviation of the kind: `b`, `u`, `s` or `f`."""
        if self.kind is Kind.INTEGER:
            return "s" if self.signed else "u"
        return "b" if self.kind is Kind.BITS else "f"


def _make_integer_format(bits: int, signed: bool) -> Format:
    array = f"{'' if signed else 'u'}int{bits}"
    bool_names = () if signed or bits != 8 else ("bool",)
    return Format(f"{'us'[signed]}{bits}", Kind.INTEGER, bits, signed=signed, arrays=(array, *bool_names))


FORMATS = {
    form.name: form
    for form in (
        *(Format(f"b{bits}", Kind.BITS, bits, signed=False) for bits in (1, 8, 16, 32, 64, 128)),
        *(_make_integer_format(bits, signed) for signed in (False, True) for bits in (4, 8, 16, 32, 64)),
        Format("f16", Kind.FLOAT, 16, 10, Special.IEEE, arrays=("float16",)),
        Format("f32", Kind.FLOAT, 32, 23, Special.IEEE, arrays=("float32",)),
        Format("f64", Kind.FLOAT, 64, 52, Special.IEEE, arrays=("float64",)),
        Format("bf16", Kind.FLOAT, 16, 7, Special.IEEE, arrays=("bfloat16",)),
        Format("tf32", Kind.FLOAT, 19, 10, Special.IEEE, width=32, shift=13, arrays=("float32",)),
        Format("e4m3", Kind.FLOAT, 8, 3, Special.NAN, arrays=("float8_e4m3fn",)),
        Format("e5m2", Kind.FLOAT, 8, 2, Special.IEEE, arrays=("float8_e5m2",)),
        Format("e2m3", Kind.FLOAT, 6, 3, arrays=("float6_e2m3fn",)),
        Format("e3m2", Kind.FLOAT, 6, 2, arrays=("float6_e3m2fn",)),
        Format("e2m1", Kind.FLOAT, 4, 1, arrays=("float4_e2m1fn",), pair="float4_e2m1fn_x2"),
        Format("e2m1p4", Kind.FLOAT, 4, 1, lane=8),
        Format("ue4m3", Kind.FLOAT, 7, 3, Special.NAN, signed=False, width=8),
        Format("ue8m0", Kind.POWER, 8, 0, Special.NAN, signed=False, arrays=("float8_e8m0fnu",)),
        Format("s2f6", Kind.FIXED, 8, 6),
    )
}
"""Every format by its name. A packed type, such as `e4m3x2`, has the format of its elements."""


def split_packed(name: str) -> tuple[str, int]:
    """Return the format of a type's elements and their number: `e4m3x2` is (`e4m3`, 2), `f32` is (`f32`, 1)."""
    base, _, count = name.rpartition("x")
    return (base, int(count)) if base and count.isdigit() else (name, 1)


def compute_type_bits(name: str) -> int:
    """Return the width of a type, scalar or packed."""
    element, count = split_packed(name)
    form = FORMATS[element]
    return form.width if count == 1 else form.lane * count


def is_float(name: str) -> bool:
    """Tell whether this is a floating-point format."""
    form = FORMATS.get(name)
    return form is not None and form.kind is Kind.FLOAT


def decode_number(code: int, form: Format) -> float:
    """Return the number that a code encodes; bits above the format's are ignored."""
    magnitude = code & form.magnitude
    if form.kind in (Kind.BITS, Kind.INTEGER, Kind.FIXED):
        return math.ldexp(magnitude - (code & form.sign), -form.mantissa)
    if form.nan is not None and magnitude > form.largest:
        value = math.inf if magnitude == form.infinity else math.nan
    elif form.kind is Kind.POWER:
        value = math.ldexp(1.0, magnitude - form.bias)
    else:
        exponent, fraction = magnitude >> form.mantissa, magnitude & (1 << form.mantissa) - 1
        if exponent:
            fraction |= 1 << form.mantissa
        value = math.ldexp(fraction, max(exponent, 1) - form.bias - form.mantissa)
    return -value if code & form.sign else value


ROUNDINGS = ("rn", "rna", "rz", "rm", "rp")
"""To nearest even, to nearest away from zero, toward zero, down, up."""


class Overflow(Enum):
    """The result for a number that exceeds the largest one after rounding."""

    REFUSE = "nothing"
    SATURATE = "the largest number"
    SPECIAL = "infinity, else NaN, else the largest number, as conversions without `.satfinite` do"


def encode(
    value: float | Fraction, form: Format, rounding: str = "rn", overflow: Overflow = Overflow.REFUSE
) -> int | None:
    """Return the code of a number in a floating-point format or a power-of-two format, rounded once; None if there is
    none. Between powers of two there is no agreed nearest one: only directed rounding has a result."""
    if isinstance(value, float) and math.isnan(value):
        return _encode_nan(value, form)
    negative = value < 0 or (value == 0 and math.copysign(1.0, value) < 0)
    if negative and not form.signed:
        return None
    sign = form.sign if negative else 0
    if isinstance(value, float) and math.isinf(value):
        code = form.largest if overflow is Overflow.SATURATE else form.infinity
        if code is None and overflow is Overflow.SPECIAL:
            code = form.largest if form.nan is None else form.nan
        return None if code is None else sign | code
    numerator, denominator = abs(value).as_integer_ratio()
    code = _round_power if form.kind is Kind.POWER else _round_float
    code_bits = code(numerator, denominator, form, rounding, negative)
    if code_bits is None or code_bits <= form.largest:
        return None if code_bits is None else sign | code_bits
    if overflow is Overflow.REFUSE:
        return None
    inward = rounding == "rz" or rounding == ("rp" if negative else "rm")
    special = form.infinity if form.infinity is not None else form.nan
    return sign | (form.largest if overflow is Overflow.SATURATE or inward or special is None else special)


def _encode_nan(value: float, form: Format) -> int | None:
    """Return a NaN. From 16 bits on it keeps the sign and the upper payload of the given one, as processors do."""
    if form.infinity is None or form.bits <= 8:
        return form.nan
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    lost_bits = 52 - form.mantissa
    quiet = 1 << form.mantissa - 1 if lost_bits else 0
    return (form.sign if bits >> 63 else 0) | form.infinity | quiet | (bits & (1 << 52) - 1) >> lost_bits


def _round_float(numerator: int, denominator: int, form: Format, rounding: str, negative: bool) -> int:
    if not numerator:
        return 0
    exponent = max(_find_exponent(numerator, denominator), form.least_exponent)
    shift = form.mantissa - exponent
    numerator, denominator = numerator << max(shift, 0), denominator << max(-shift, 0)
    units, remainder = divmod(numerator, denominator)
    # The step from the largest mantissa carries into the exponent, as bits do; a subnormal has exponent bits 0.
    return (
        (exponent + form.bias - 1 << form.mantissa)
        + units
        + _rounds_up(units, remainder, denominator, rounding, negative)
    )


def _rounds_up(units: int, remainder: int, denominator: int, rounding: str, negative: bool) -> bool:
    match rounding:
        case "rn":
            return 2 * remainder > denominator or (2 * remainder == denominator and units % 2 == 1)
        case "rna":
            return 2 * remainder >= denominator
        case "rz":
            return False
        case "rm" | "rp":
            return remainder > 0 and negative is (rounding == "rm")
        case _:
            raise ValueError(f"rounding {rounding!r}: expected one of {', '.join(ROUNDINGS)}")


def _round_power(numerator: int, denominator: int, form: Format, rounding: str, negative: bool) -> int | None:
    if not numerator:
        return None
    exponent = _find_exponent(numerator, denominator)
    exact = numerator << max(-exponent, 0) == denominator << max(exponent, 0)
    if not exact and rounding in ("rn", "rna"):
        return None
    code = exponent + form.bias + (not exact and rounding == "rp")
    return code if code >= 0 else None


def _find_exponent(numerator: int, denominator: int) -> int:
    """Return the exponent of the power of two at or below a positive ratio."""
    exponent = numerator.bit_length() - denominator.bit_length()
    below = numerator << max(-exponent, 0) < denominator << max(exponent, 0)
    return exponent - below
