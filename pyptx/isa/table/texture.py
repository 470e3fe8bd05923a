"""Manual: Texture Instructions.

The manual's syntax line of tex and tld4 is a product of mode, geometry, sampler, offset, depth comparison and residency
predicate, of which each geometry allows some; so these rows are written as that product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyptx.isa.model import Form
from pyptx.isa.notation import form

MEANING = {
    "tex": "Look up a texture.",
    "tex.base": "Look up a texture at mipmap level 0.",
    "tex.level": "Look up a texture at a mipmap level.",
    "tex.grad": "Look up a texture at a mipmap level selected by gradients.",
    "tld4": "Fetch one component of the four texels that bilinear filtering would use.",
    "txq": "Query an attribute of a texture or a sampler.",
    "txq.level": "Query the size of a mipmap level.",
    "istypep": "Test whether a handle refers to a texture, a sampler or a surface.",
}

_TEX = "texture-instructions-tex"
_TLD4 = "texture-instructions-tld4"
_TXQ = "texture-instructions-txq"

_RESULT = "v4.u32 v4.s32 v4.f32 v4.f16@4.2,sm_53 v2.f16x2@4.2,sm_53"
_TEXTURES = (("[a:var.texref, ", "1.0"), ("[a:var.texref, b:var.samplerref, ", "1.5"))
"""Unified mode, where the texture knows its sampler; and independent mode; each with its first version."""
_PREDICATE = "7.1,sm_60"
_MIPMAPS = "3.1,sm_20"
_EXTRAS = "4.3,sm_30"
"""Since when there are offsets and depth comparison."""


@dataclass(frozen=True)
class _Geometry:
    """What geometries of one kind of coordinates take. The manual: `tex`; an array's index comes first, as bits."""

    names: str
    ctype: str
    coordinates: str
    gradient: str = ""
    offset: str = ""
    depth: str = ""


_DEPTH = "{, f:.f32}"
_GEOMETRIES = (
    _Geometry("1d", "s32", "c:.s32~", "*1", "{, e:.s32~}"),
    _Geometry("2d", "s32", "c:.s32*2", "*2", "{, e:.s32*2}"),
    _Geometry("3d", "s32", "c:.s32*4", "*4", "{, e:.s32*4}"),
    _Geometry("a1d@2.3", "s32", "c:.b32*2", "*1", "{, e:.s32~}"),
    _Geometry("a2d@2.3", "s32", "c:.b32*4", "*2", "{, e:.s32*2}"),
    _Geometry("2dms@3.2,sm_30 a2dms@3.2,sm_30", "s32", "c:.b32*4", "", "{, e:.s32*2}"),
    _Geometry("1d", "f32", "c:.f32~", "*1", "{, e:.s32~}", _DEPTH),
    _Geometry("2d", "f32", "c:.f32*2", "*2", "{, e:.s32*2}", _DEPTH),
    _Geometry("3d", "f32", "c:.f32*4", "*4", "{, e:.s32*4}"),
    _Geometry("a1d@2.3", "f32", "c:.b32*2", "*1", "{, e:.s32~}", _DEPTH),
    _Geometry("a2d@2.3", "f32", "c:.b32*4", "*2", "{, e:.s32*2}", _DEPTH),
    _Geometry("cube@3.0", "f32", "c:.f32*4", "*4", "", _DEPTH),
    _Geometry("acube@3.0,sm_20", "f32", "c:.b32*4", "*4", "", _DEPTH),
    # As PTX 1.x wrote them, with coordinates that are ignored.
    _Geometry("1d", "s32", "c:.s32*4", "*1", "{, e:.s32~}"),
    _Geometry("2d", "s32", "c:.s32*4", "*2", "{, e:.s32*2}"),
    _Geometry("a1d@2.3", "s32", "c:.b32*4", "*1", "{, e:.s32~}"),
    _Geometry("1d", "f32", "c:.f32*4", "*1", "{, e:.s32~}", _DEPTH),
    _Geometry("2d", "f32", "c:.f32*4", "*2", "{, e:.s32*2}", _DEPTH),
    _Geometry("a1d@2.3", "f32", "c:.b32*4", "*1", "{, e:.s32~}", _DEPTH),
)


def _lookups(mode: str, since: str, after: str, geometry: _Geometry) -> Iterator[Form]:
    """Yield the rows of one mode and geometry: plain, with offset and depth, with a residency predicate."""
    extras = geometry.offset + geometry.depth
    for texture, oldest in _TEXTURES:
        address = f"{texture}{geometry.coordinates}]{after}"
        for result, extra, first in (
            ("", "", since or oldest),
            ("", extras, _EXTRAS),
            ("|p:.pred", extras, _PREDICATE),
        ):
            yield form(
                f"tex{mode}.geom.result.{geometry.ctype}  d:w_.result/1*result{result}, {address}{extra}",
                base="base@" + _MIPMAPS, geom=geometry.names, result=_RESULT, since=first, see=_TEX,
            )  # fmt: skip


def _tex() -> Iterator[Form]:
    for geometry in _GEOMETRIES:
        yield from _lookups("{.base}", "", "", geometry)
        if not geometry.gradient:
            continue
        yield from _lookups(".level", _MIPMAPS, f", lod:.{geometry.ctype}~", geometry)
        partials = f", dPdx:.f32{geometry.gradient}, dPdy:.f32{geometry.gradient}"
        yield from _lookups(".grad", "4.3,sm_20" if "cube" in geometry.names else _MIPMAPS, partials, geometry)


def _tld4() -> Iterator[Form]:
    for geom, coordinates, offset, first in (
        ("2d", "c:.f32*2", "{, e:.s32*2}", "2.2,sm_20"),
        ("2d", "c:.f32*4", "{, e:.s32*2}", "2.2,sm_20"),
        ("a2d", "c:.b32*4", "{, e:.s32*2}", _EXTRAS),
        ("cube", "c:.f32*4", "", _EXTRAS),
        ("acube", "c:.b32*4", "", _EXTRAS),
    ):
        for texture, _ in _TEXTURES:
            address = f"{texture}{coordinates}]"
            for result, extra, since in (
                ("", "", first),
                ("", offset + _DEPTH, _EXTRAS),
                ("|p:.pred", offset + _DEPTH, _PREDICATE),
            ):
                yield form(
                    f"tld4.comp.{geom}.v4.dtype.f32  d:w_.dtype*4{result}, {address}{extra}",
                    comp="r g b a", dtype="u32 s32 f32", since=since, see=_TLD4,
                )  # fmt: skip


FORMS = (
    *_tex(),
    *_tld4(),
    form(
        "txq.query.b32  d, [a:var.texref]",
        query="width height depth channel_data_type@2.1 channel_order@2.1 normalized_coords array_size@4.1 "
        "num_mipmap_levels@4.1,sm_20 num_samples@4.1,sm_30 memory_layout@4.2 filter_mode "
        "addr_mode_0 addr_mode_1 addr_mode_2",
        ptx=(1, 5), see=_TXQ,
    ),
    form(
        "txq.query.b32  d, [a:var.samplerref]",
        query="force_unnormalized_coords@2.2 filter_mode addr_mode_0 addr_mode_1 addr_mode_2", ptx=(1, 5), see=_TXQ,
    ),
    form("txq.level.query.b32  d, [a:var.texref], lod:.u32~", query="width height depth", since="4.3,sm_30", see=_TXQ),
    form(
        "istypep.kind  p:w.pred, a:.u64",
        kind="texref samplerref surfref", since="4.0,sm_30", see="texture-instructions-istypep",
    ),
)  # fmt: skip
