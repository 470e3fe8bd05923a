"""Bulk copies and reductions without a tensor map, and copies of single words with zero fill."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from random import Random

import numpy as np

from tools.conformance.engines.bits import draw_words
from tools.conformance.engines.cases import Case, Inputs
from tools.conformance.engines.text import BOX, dump_box, fill_box, load_box, make_entry, start_barrier, wait

REDUCTIONS = (
    "add.u32 add.s32 add.u64 add.f32 add.f64 add.noftz.f16 add.noftz.bf16 min.u32 min.s32 min.u64 min.s64 min.f16 "
    "min.bf16 max.u32 max.s32 max.u64 max.s64 max.f16 max.bf16 inc.u32 dec.u32 and.b32 and.b64 or.b32 or.b64 xor.b32 "
    "xor.b64"
).split()
_NUMBERS = "ld.global.u32 %c0, [%table]; ld.global.u32 %c1, [%table+4]; ld.global.u32 %c2, [%table+8];"
"""The bytes, and the places in the box and in global memory."""


def list_cases() -> Iterator[Case]:
    """Yield bulk copies, bulk reductions, and copies of words."""
    load = make_entry("bulk_load", f"""{fill_box("fill")}
{_NUMBERS}
{start_barrier("%c0")}
add.u32 %m, %box, %c1; cvt.u64.u32 %x, %c2; add.u64 %x, %x, %data;
@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%m], [%x], %c0, [%bar];
{wait("wait")}
bar.sync 0;
{dump_box("dump")}""")  # fmt: skip
    store = make_entry("bulk_store", _write("cp.async.bulk.global.shared::cta.bulk_group"))
    for number in range(12):
        yield Case(f"bulk/load/{number}", load, partial(_draw_load))
        yield Case(f"bulk/store/{number}", store, partial(_draw_store, "b32", "bits"))
    for operation in REDUCTIONS:
        kind = operation.rpartition(".")[2]
        name = f"bulk_{operation.replace('.', '_')}"
        entry = make_entry(name, _write(f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}"))
        for bits in ("near", "wide", "specials", "tiny", "bits") if kind[0] in "fb" and kind[1] in "f16" else ("bits",):
            yield Case(f"bulk/{operation}/{bits}", entry, partial(_draw_store, kind, bits))
    yield from _list_words()


def _write(opcode: str) -> str:
    return f"""{load_box("fill")}
{_NUMBERS}
fence.proxy.async;
bar.sync 0;
add.u32 %m, %box, %c1; cvt.u64.u32 %x, %c2; add.u64 %x, %x, %out;
@%first {opcode} [%x], [%m], %c0;
@%first cp.async.bulk.commit_group;
@%first cp.async.bulk.wait_group 0;
bar.sync 0;"""


def _draw_extent(random: Random) -> tuple[int, int, int]:
    size = 16 * random.choice((1, 2, 3, random.randint(1, 256), random.randint(1, 512)))
    return size, 16 * random.randint(0, (BOX - size) // 16), 16 * random.randint(0, (BOX - size) // 16)


def _draw_load(random: Random) -> Inputs:
    return Inputs(struct.pack("<4I", *_draw_extent(random), 0), random.randbytes(BOX), bytes(BOX + 16))


def _draw_store(kind: str, bits: str, random: Random) -> Inputs:
    return Inputs(
        struct.pack("<4I", *_draw_extent(random), 0), _draw_bytes(random, kind, bits), _draw_bytes(random, kind, bits)
    )


def _draw_bytes(random: Random, kind: str, bits: str) -> bytes:
    if bits == "bits":
        return random.randbytes(BOX)
    return np.ascontiguousarray(draw_words(random, kind, bits, BOX // (int(kind.lstrip("bf")) // 8))).tobytes()


def _list_words() -> Iterator[Case]:
    """Yield `cp.async` of every size with fewer bytes from memory, and with a predicate that ignores the source."""
    for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        for ignores in (False, True):
            last = "%p" if ignores else "%c0"
            body = f"""{fill_box("fill", 4096)}
mad.wide.u32 %x, %t, 16, %data; mad.wide.u32 %y, %t, 4, %table;
mad.lo.u32 %m, %t, 16, %box;
ld.global.u32 %c0, [%y];
setp.gt.u32 %p, %c0, {size // 2};
bar.sync 0;
cp.async.{cache}.shared::cta.global [%m], [%x], {size}, {last};
cp.async.commit_group;
cp.async.wait_group 0;
bar.sync 0;
{dump_box("dump", 4096)}"""
            name = f"words_{cache}_{size}{'_ignore' * ignores}"
            yield Case(f"words/{name[6:]}", make_entry(name, body, size=4096), partial(_draw_sizes, size))


def _draw_sizes(size: int, random: Random) -> Inputs:
    sizes = [random.randint(0, size) for _ in range(128)]
    return Inputs(struct.pack("<128I", *sizes), random.randbytes(2048), bytes(4096))
