"""Copies of tensors: loads that return all of shared memory, stores and reductions that return all of the tensor."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random

import numpy as np

from pyptx.tensormap import ElementType, Interleave, Swizzle, TensorMap, problems
from tools.conformance.engines.bits import KINDS, draw_words
from tools.conformance.engines.cases import Case, Entry, Inputs
from tools.conformance.engines.tensor_maps import draw_corner, draw_im2col, draw_pixel, draw_tiled, measure
from tools.conformance.engines.text import BOX, dump_box, fill_box, load_box, make_entry, start_barrier, wait

_RANKS = range(1, 6)
_NUMBERS = "ld.global.u32 %c0, [%table]; ld.global.u32 %at, [%table+4]; add.u32 %m, %box, %at;" + " ".join(
    f"ld.global.u32 %c{n + 1}, [%table+{8 + 4 * n}];" for n in range(8)
)
"""Bytes that the barrier expects, the place in the box, five coordinates, three offsets."""
_T = ElementType
REDUCTIONS = {
    "add": (_T.U32, _T.S32, _T.U64, _T.F16, _T.BF16, _T.F32, _T.F32_FTZ, _T.F64),
    "min": (_T.U32, _T.S32, _T.U64, _T.S64, _T.F16, _T.BF16),
    "max": (_T.U32, _T.S32, _T.U64, _T.S64, _T.F16, _T.BF16),
    "inc": (_T.U32,), "dec": (_T.U32,),
    "and": (_T.U32, _T.S32, _T.U64, _T.S64), "or": (_T.U32, _T.S32, _T.U64, _T.S64),
    "xor": (_T.U32, _T.S32, _T.U64, _T.S64),
}  # fmt: skip


def list_cases() -> Iterator[Case]:
    """Yield loads, stores and reductions."""
    for rank in _RANKS:
        entry = make_load(f"load_tile_{rank}d", rank, "tile")
        for number in range(80 if rank > 1 else 30):
            yield Case(f"load/tile/{rank}d/{number}", entry, partial(_draw_load, rank))
        store = make_store(f"store_tile_{rank}d", rank, "tile", "")
        for number in range(30 if rank > 1 else 12):
            yield Case(f"store/tile/{rank}d/{number}", store, partial(_draw_store, rank, None, "bits"))
        for number in range(40 if rank > 2 else 0):
            yield Case(f"interleave/load/{rank}d/{number}", entry, partial(_draw_load, rank, interleaved=True))
            draw = partial(_draw_store, rank, None, "bits", interleaved=True)
            yield Case(f"interleave/store/{rank}d/{number}", store, draw)
    for rank in (3, 4, 5):
        entry = make_load(f"load_im2col_{rank}d", rank, "im2col")
        for number in range(60):
            yield Case(f"im2col/load/{rank}d/{number}", entry, partial(_draw_pixels, rank, False))
        store = make_store(f"store_im2col_{rank}d", rank, "im2col_no_offs", "")
        for number in range(15):
            yield Case(f"im2col/store/{rank}d/{number}", store, partial(_draw_pixels, rank, True))
    entry = make_load("load_atoms_2d", 2, "tile")
    for swizzle in (Swizzle.B128_ATOM_32B, Swizzle.B128_ATOM_32B_FLIP_8B, Swizzle.B128_ATOM_64B):
        for number in range(6):
            yield Case(f"atoms/{swizzle.name.lower()}/{number}", entry, partial(_draw_atoms, swizzle))
    yield from _list_reductions()


def _list_reductions() -> Iterator[Case]:
    for operation, types in REDUCTIONS.items():
        for rank in (1, 2, 3):
            entry = make_store(f"reduce_{operation}_{rank}d", rank, "tile", operation)
            for dtype in types:
                kinds = ("near", "wide", "specials", "tiny", "bits") if rank == 2 and dtype.is_float else ("bits",)
                for kind in kinds:
                    draw = partial(_draw_store, rank, dtype, kind)
                    yield Case(f"reduce/{operation}/{dtype.name.lower()}/{rank}d/{kind}", entry, draw)


def _name_coordinates(rank: int) -> str:
    return ", ".join(f"%c{n + 1}" for n in range(rank))


def make_load(name: str, rank: int, mode: str) -> Entry:
    """Return a kernel that fills the box, loads into it and returns all of it."""
    taps = f", {{{', '.join(f'%h{n}' for n in range(rank - 2))}}}" if mode == "im2col" else ""
    body = f"""{fill_box("fill")}
{_NUMBERS}
cvt.u16.u32 %h0, %c6; cvt.u16.u32 %h1, %c7; cvt.u16.u32 %h2, %c8;
{start_barrier("%c0")}
@%first cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes [%m], [%map, {{{
        _name_coordinates(rank)
    }}}], [%bar]{taps};
{wait("wait")}
bar.sync 0;
{dump_box("dump")}"""
    return make_entry(name, body)


def make_store(name: str, rank: int, mode: str, operation: str) -> Entry:
    """Return a kernel that stores a part of the box to a tensor, or reduces it into one."""
    opcode = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}" if operation else (
        f"cp.async.bulk.tensor.{rank}d.global.shared::cta"
    )  # fmt: skip
    body = f"""{load_box("fill")}
{_NUMBERS}
fence.proxy.async;
bar.sync 0;
@%first {opcode}.{mode}.bulk_group [%map, {{{_name_coordinates(rank)}}}], [%m];
@%first cp.async.bulk.commit_group;
@%first cp.async.bulk.wait_group 0;
bar.sync 0;"""
    return make_entry(name, body)


def make_table(tensor: TensorMap, place: int, corner: tuple[int, ...], taps: tuple[int, ...] = ()) -> bytes:
    """Return the numbers that the kernels read."""
    corner, taps = (*corner, 0, 0, 0, 0, 0)[:5], (*taps, 0, 0, 0)[:3]
    return struct.pack("<2I8i", tensor.box_bytes, place, *corner, *taps)


def _draw_place(random: Random, tensor: TensorMap) -> int:
    unit = 128 if tensor.interleave is Interleave.NONE else 256
    most = min(2048, BOX - tensor.footprint)
    return random.choice((0, unit * random.randint(0, most // unit)))


def _draw_load(rank: int, random: Random, *, interleaved: bool = False) -> Inputs:
    tensor = draw_tiled(random, rank, overlap=random.random() < 0.2, interleaved=interleaved)
    table = make_table(tensor, _draw_place(random, tensor), draw_corner(random, tensor))
    data = _draw_data(random, tensor, random.choice(("bits", "bits", "specials")))
    return Inputs(table, data, bytes(BOX + 16), tensor)


def _draw_atoms(swizzle: Swizzle, random: Random) -> Inputs:
    """Return a load with one of the swizzles that the manual does not promise for this target."""
    tensor = replace(draw_tiled(random, 2), swizzle=swizzle)
    while problems(tensor):
        tensor = replace(draw_tiled(random, 2), swizzle=swizzle)
    table = make_table(tensor, _draw_place(random, tensor), draw_corner(random, tensor))
    return Inputs(table, _draw_data(random, tensor, "bits"), bytes(BOX + 16), tensor)


def _draw_store(
    rank: int, dtype: ElementType | None, kind: str, random: Random, *, interleaved: bool = False
) -> Inputs:  # fmt: skip
    tensor = draw_tiled(random, rank, dtype, interleaved=interleaved)
    table = make_table(tensor, _draw_place(random, tensor), draw_corner(random, tensor, stores=True))
    return Inputs(table, _draw_data(random, tensor, kind, BOX), _draw_data(random, tensor, kind), tensor, True)


def _draw_pixels(rank: int, stores: bool, random: Random) -> Inputs:
    tensor = draw_im2col(random, rank)
    corner, taps = draw_pixel(random, tensor)
    if stores:
        corner = tuple(max(place, 0) for place in corner)
    table = make_table(tensor, _draw_place(random, tensor), corner, () if stores else taps)
    if stores:
        return Inputs(table, random.randbytes(BOX), _draw_data(random, tensor, "bits"), tensor, True)
    return Inputs(table, _draw_data(random, tensor, "bits"), bytes(BOX + 16), tensor)


def _draw_data(random: Random, tensor: TensorMap, kind: str, size: int = 0) -> bytes:
    """Return elements of the tensor's type: `size` bytes, or the tensor with a few bytes around it."""
    form = tensor.dtype.format
    assert form is not None
    size = size or -(-(tensor.address + measure(tensor) + 64) // 16) * 16
    if kind == "bits" or kind not in KINDS:
        return random.randbytes(size)
    count = size // (form.width // 8)
    return np.ascontiguousarray(draw_words(random, form.name, kind, count)).tobytes()
