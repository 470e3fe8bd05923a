"""Scalar types, state spaces and linking directives, as enumerations; and integers that keep their spelling."""

from __future__ import annotations

from enum import Enum
from typing import Self

from pyptx import types


class _Spelled(Enum):
    """An enumeration whose members know their PTX spelling."""

    @property
    def ptx(self) -> str:
        """The PTX spelling, with its dot."""
        return f".{self.value}"

    @classmethod
    def from_ptx(cls, spelling: str) -> Self:
        """Return the member with this spelling, with or without its dot; ValueError if there is none."""
        member = cls.__members__.get(spelling.removeprefix(".").upper())
        if member is None:
            raise ValueError(f"{spelling!r} is not a {cls.__name__}; expected one of {', '.join(m.ptx for m in cls)}")
        return member

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __hash__ = object.__hash__


class StateSpace(_Spelled):
    """The state space of a variable."""

    REG = "reg"
    SREG = "sreg"
    CONST = "const"
    GLOBAL = "global"
    LOCAL = "local"
    PARAM = "param"
    SHARED = "shared"
    TEX = "tex"


class LinkingDirective(_Spelled):
    """The visibility of a symbol to the linker."""

    VISIBLE = "visible"
    EXTERN = "extern"
    WEAK = "weak"
    COMMON = "common"


class ScalarType(_Spelled):
    """The scalar types of `pyptx.types`, as an enumeration; the value of a member is that type."""

    @property
    def ptx(self) -> str:
        return self.value.ptx

    @property
    def bits(self) -> int:
        """The width in bits."""
        return self.value.bits

    B1, B8, B16, B32, B64, B128 = types.b1, types.b8, types.b16, types.b32, types.b64, types.b128
    U4, U8, U16, U32, U64 = types.u4, types.u8, types.u16, types.u32, types.u64
    S4, S8, S16, S32, S64 = types.s4, types.s8, types.s16, types.s32, types.s64
    U8X4, S8X4, U16X2, S16X2 = types.u8x4, types.s8x4, types.u16x2, types.s16x2
    F16, F32, F64, F16X2, F32X2 = types.f16, types.f32, types.f64, types.f16x2, types.f32x2
    BF16, BF16X2, TF32 = types.bf16, types.bf16x2, types.tf32
    E4M3, E5M2, E4M3X2, E5M2X2 = types.e4m3, types.e5m2, types.e4m3x2, types.e5m2x2
    E4M3X4, E5M2X4 = types.e4m3x4, types.e5m2x4
    E2M1, E2M1X2, E2M1X4 = types.e2m1, types.e2m1x2, types.e2m1x4
    E2M3, E2M3X2, E2M3X4 = types.e2m3, types.e2m3x2, types.e2m3x4
    E3M2, E3M2X2, E3M2X4 = types.e3m2, types.e3m2x2, types.e3m2x4
    UE8M0, UE8M0X2, UE8M0X4, UE4M3 = types.ue8m0, types.ue8m0x2, types.ue8m0x4, types.ue4m3
    E2M1P4X4 = types.e2m1p4x4
    S2F6, S2F6X2 = types.s2f6, types.s2f6x2
    PRED = types.pred
    TEXREF, SAMPLERREF, SURFREF = types.texref, types.samplerref, types.surfref


class Number(int):
    """An integer that keeps its spelling: `Number(16, "0x10")`. Equal to the plain int; the parser creates one only if
    the text is not the decimal spelling."""

    text: str

    def __new__(cls, value: int, text: str) -> Self:
        self = super().__new__(cls, value)
        self.text = text
        return self

    def __getnewargs__(self) -> tuple[int, str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return int(self), self.text

    def __repr__(self) -> str:
        return f"Number({int(self)}, {self.text!r})"


UNSIZED = Number(0, "")
"""The size of an array declared with empty brackets, `a[]`."""


def spell_number(value: int) -> str:
    """Return the spelling of an integer."""
    return value.text if isinstance(value, Number) else int.__repr__(value)
