"""Manual: Surface Instructions."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.isa.choices import ST_COP
from pyptx.isa.model import Form
from pyptx.isa.notation import form

MEANING = {
    "suld.b": "Load from a surface at byte coordinates.",
    "sust.b": "Store to a surface at byte coordinates.",
    "sust.p": "Store to a surface at texel coordinates, converting to its format.",
    "sured.b": "Reduce into a surface at byte coordinates.",
    "sured.p": "Reduce into a surface at texel coordinates.",
    "suq": "Query an attribute of a surface.",
}

_CLAMP = "trap clamp@2.0 zero@2.0"
"""The manual has .trap alone for targets before sm_20; ptxas accepts the others there too."""
_LOAD_COP = "ca@2.0,sm_20 cg@2.0,sm_20 cs@2.0,sm_20 cv@2.0,sm_20"
_COORDINATES = (
    ("1d", "c:.b32~"),
    ("2d a1d@3.0,sm_20", "c:.b32*2"),
    ("3d@3.0,sm_20 a2d@3.0,sm_20", "c:.b32*4"),
    # As PTX 1.x wrote them, with coordinates that are ignored.
    ("1d", "c:.b32*2"),
    ("1d 2d a1d@3.0,sm_20", "c:.b32*4"),
)
_SULD, _SUST, _SURED = (f"surface-instructions-{name}" for name in ("suld", "sust", "sured"))
_ONE_OR_TWO = "b8 b16 b32 b64"
_FOUR = "b8 b16 b32"
_RED_BYTES = (
    "add.u32 add.s32 add.u64 min.u32 min.s32 max.u32 max.s32 and.b32 or.b32 "
    "min.u64@8.1,sm_50 min.s64@8.1,sm_50 max.u64@8.1,sm_50 max.s64@8.1,sm_50"
)
_RED_TEXELS = "add.b32 min.b32 max.b32 and.b32 or.b32 min.b64@8.1,sm_50 max.b64@8.1,sm_50"


def _accesses() -> Iterator[Form]:
    for geom, coordinates in _COORDINATES:
        address = f"[a:var.surfref, {coordinates}]"
        operand = f"[a:wvar.surfref, {coordinates}]"
        yield form(
            f"suld.b.geom{{.cop}}{{.vec}}.type.clamp  d:w_.type+~*vec, {address}",
            geom=geom, cop=_LOAD_COP, vec="v2", type=_ONE_OR_TWO, clamp=_CLAMP, ptx=(1, 5), see=_SULD,
        )  # fmt: skip
        yield form(
            f"suld.b.geom{{.cop}}.v4.type.clamp       d:w_.type+*4, {address}",
            geom=geom, cop=_LOAD_COP, type=_FOUR, clamp=_CLAMP, ptx=(1, 5), see=_SULD,
        )  # fmt: skip
        yield form(
            f"sust.b.geom{{.cop}}{{.vec}}.type.clamp  {operand}, b:.type+~*vec",
            geom=geom, cop=ST_COP, vec="v2", type=_ONE_OR_TWO, clamp=_CLAMP, ptx=(1, 5), see=_SUST,
        )  # fmt: skip
        yield form(
            f"sust.b.geom{{.cop}}.v4.type.clamp       {operand}, b:.type+*4",
            geom=geom, cop=ST_COP, type=_FOUR, clamp=_CLAMP, ptx=(1, 5), see=_SUST,
        )  # fmt: skip
        # ptxas also stores one value in every element of a vector.
        for vec, types in (("v2", _ONE_OR_TWO), ("v4", _FOUR)):
            yield form(
                f"sust.b.geom{{.cop}}.{vec}.type.clamp  {operand}, b:.type+",
                geom=geom, cop=ST_COP, type=types, clamp=_CLAMP, ptx=(1, 5), see=_SUST,
            )  # fmt: skip
        # The manual has no arrays and no cache operators here; ptxas accepts both.
        yield form(
            f"sust.p.geom{{.cop}}{{.vec}}.b32.clamp   {operand}, b:.b32+~*vec",
            geom=geom.replace("a1d@3.0,sm_20", "a1d@4.1,sm_30").replace("a2d@3.0,sm_20", "a2d@4.1,sm_30"), cop=ST_COP,
            vec="v2 v4", clamp=_CLAMP, ptx=(2, 0), sm="sm_20", see=_SUST,
        )  # fmt: skip


def _reductions() -> Iterator[Form]:
    # The manual has .3d since PTX 2.0; ptxas accepts it since 3.0.
    for geom, coordinates in (("1d", "c:.b32~"), ("2d", "c:.b32*2"), ("3d@3.0 1d 2d", "c:.b32*4"), ("1d", "c:.b32*2")):
        for unit, choices in (("b", _RED_BYTES), ("p", _RED_TEXELS)):
            for op_type in choices.split():
                type_name, _, since = op_type.partition("@")
                op, _, ctype = type_name.partition(".")
                yield form(
                    f"sured.{unit}.{op}.geom.{ctype}.clamp  [a:wvar.surfref, {coordinates}], b:.{ctype}+",
                    geom=geom, clamp=_CLAMP, since=since or "2.0,sm_20", see=_SURED,
                )  # fmt: skip


FORMS = (
    *_accesses(),
    *_reductions(),
    form(
        "suq.query.b32  d, [a:var.surfref]",
        query="width height depth channel_data_type@2.1 channel_order@2.1 array_size@4.1 memory_layout@4.2",
        ptx=(1, 5), see="surface-instructions-suq",
    ),
)  # fmt: skip
