"""The scalar types of PTX: one list, from which the DSL, the IR and the table take theirs. Knows names and widths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True, eq=False)
class PtxType:
    """A scalar type. Equality and hash go by name."""

    name: str
    bits: int

    @property
    def ptx(self) -> str:
        """The type as PTX spells it, with its dot."""
        return "." + self.name

    @property
    def kind(self) -> str:
        """`pred`, `opaque`, `b` (untyped bits), `u`, `s` or `f` (every floating or fixed-point format)."""
        return _kind(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PtxType) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


@cache
def _kind(name: str) -> str:
    if name == "pred":
        return "pred"
    if name in _OPAQUE:
        return "opaque"
    return name[0] if name[0] in "bus" and name[1].isdigit() and name not in _FIXED_POINT else "f"


_OPAQUE = {"texref", "samplerref", "surfref"}
_FIXED_POINT = {"s2f6", "s2f6x2"}

b1, b8, b16, b32, b64, b128 = (PtxType(f"b{n}", n) for n in (1, 8, 16, 32, 64, 128))
u4, u8, u16, u32, u64 = (PtxType(f"u{n}", n) for n in (4, 8, 16, 32, 64))
s4, s8, s16, s32, s64 = (PtxType(f"s{n}", n) for n in (4, 8, 16, 32, 64))
u8x4, s8x4 = PtxType("u8x4", 32), PtxType("s8x4", 32)
u16x2, s16x2 = PtxType("u16x2", 32), PtxType("s16x2", 32)
f16, f32, f64 = PtxType("f16", 16), PtxType("f32", 32), PtxType("f64", 64)
f16x2, f32x2 = PtxType("f16x2", 32), PtxType("f32x2", 64)
bf16, bf16x2, tf32 = PtxType("bf16", 16), PtxType("bf16x2", 32), PtxType("tf32", 32)
e4m3, e5m2, e4m3x2, e5m2x2 = PtxType("e4m3", 8), PtxType("e5m2", 8), PtxType("e4m3x2", 16), PtxType("e5m2x2", 16)
e4m3x4, e5m2x4 = PtxType("e4m3x4", 32), PtxType("e5m2x4", 32)
e2m1, e2m1x2, e2m1x4 = PtxType("e2m1", 4), PtxType("e2m1x2", 8), PtxType("e2m1x4", 16)
e2m1p4x4 = PtxType("e2m1p4x4", 32)
e2m3, e2m3x2, e2m3x4 = PtxType("e2m3", 6), PtxType("e2m3x2", 16), PtxType("e2m3x4", 32)
e3m2, e3m2x2, e3m2x4 = PtxType("e3m2", 6), PtxType("e3m2x2", 16), PtxType("e3m2x4", 32)
ue8m0, ue8m0x2, ue4m3 = PtxType("ue8m0", 8), PtxType("ue8m0x2", 16), PtxType("ue4m3", 8)
ue8m0x4 = PtxType("ue8m0x4", 32)
s2f6, s2f6x2 = PtxType("s2f6", 8), PtxType("s2f6x2", 16)
pred = PtxType("pred", 1)
texref, samplerref, surfref = PtxType("texref", 64), PtxType("samplerref", 64), PtxType("surfref", 64)

ALL: tuple[PtxType, ...] = tuple(value for value in list(globals().values()) if isinstance(value, PtxType))
_BY_NAME = {t.name: t for t in ALL}


def from_name(name: str) -> PtxType:
    """Return the type of this name, with or without its dot; ValueError when PTX has no such type."""
    try:
        return _BY_NAME[name.removeprefix(".")]
    except KeyError:
        raise ValueError(f"PTX has no scalar type {name!r}; the types are {', '.join(_BY_NAME)}") from None


def __dir__() -> list[str]:
    return ["PtxType", "from_name", *(t.name for t in ALL)]
