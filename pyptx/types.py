"""The scalar types of PTX: one list, from which the DSL, the IR and the table take theirs. Knows names; the widths are
those of `pyptx.numbers`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from pyptx.numbers import FORMATS, compute_type_bits, split_packed


@dataclass(frozen=True, slots=True, eq=False)
class PtxType:
    """A scalar type. Equality and hash use the name."""

    name: str
    bits: int

    @property
    def ptx(self) -> str:
        """The PTX spelling, with its dot."""
        return "." + self.name

    @property
    def kind(self) -> str:
        """`pred`, `opaque`, `b` (untyped bits), `u`, `s` or `f` (every floating or fixed-point format)."""
        return _find_kind(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PtxType) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


@cache
def _find_kind(name: str) -> str:
    if name in ("pred", *_OPAQUE):
        return "pred" if name == "pred" else "opaque"
    return FORMATS[split_packed(name)[0]].letter


def _list_numbers(names: str) -> list[PtxType]:
    return [PtxType(name, compute_type_bits(name)) for name in names.split()]


_OPAQUE = ("texref", "samplerref", "surfref")

b1, b8, b16, b32, b64, b128 = _list_numbers("b1 b8 b16 b32 b64 b128")
u4, u8, u16, u32, u64 = _list_numbers("u4 u8 u16 u32 u64")
s4, s8, s16, s32, s64 = _list_numbers("s4 s8 s16 s32 s64")
u8x4, s8x4, u16x2, s16x2 = _list_numbers("u8x4 s8x4 u16x2 s16x2")
f16, f32, f64, f16x2, f32x2 = _list_numbers("f16 f32 f64 f16x2 f32x2")
bf16, bf16x2, tf32 = _list_numbers("bf16 bf16x2 tf32")
e4m3, e5m2, e4m3x2, e5m2x2, e4m3x4, e5m2x4 = _list_numbers("e4m3 e5m2 e4m3x2 e5m2x2 e4m3x4 e5m2x4")
e2m1, e2m1x2, e2m1x4, e2m1p4x4 = _list_numbers("e2m1 e2m1x2 e2m1x4 e2m1p4x4")
e2m3, e2m3x2, e2m3x4 = _list_numbers("e2m3 e2m3x2 e2m3x4")
e3m2, e3m2x2, e3m2x4 = _list_numbers("e3m2 e3m2x2 e3m2x4")
ue8m0, ue8m0x2, ue4m3, ue8m0x4 = _list_numbers("ue8m0 ue8m0x2 ue4m3 ue8m0x4")
s2f6, s2f6x2 = _list_numbers("s2f6 s2f6x2")
pred = PtxType("pred", 1)
texref, samplerref, surfref = (PtxType(name, 64) for name in _OPAQUE)

ALL: tuple[PtxType, ...] = tuple(value for value in list(globals().values()) if isinstance(value, PtxType))
_BY_NAME = {t.name: t for t in ALL}


def from_name(name: str) -> PtxType:
    """Return the type of this name, with or without its dot; ValueError if PTX has no such type."""
    try:
        return _BY_NAME[name.removeprefix(".")]
    except KeyError:
        raise ValueError(f"PTX has no scalar type {name!r}; the types are {', '.join(_BY_NAME)}") from None


def __dir__() -> list[str]:
    return ["PtxType", "from_name", *(t.name for t in ALL)]
