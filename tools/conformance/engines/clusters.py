"""Two CTAs of a cluster: multicast copies, copies and reductions into the other CTA's shared memory, `st.async`.

The first CTA of the table issues; each CTA waits for the bytes that the table says and returns its box.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from random import Random

from tools.conformance.engines.cases import Case, Inputs
from tools.conformance.engines.tensor_maps import draw_corner, draw_tiled, measure
from tools.conformance.engines.text import BOX, dump_box, load_box, make_entry, wait

_REDUCTIONS = "add.u32 add.s32 add.u64 min.u32 min.s32 max.u32 max.s32 inc.u32 dec.u32 and.b32 or.b32 xor.b32".split()
_MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
_OUT = BOX + 16
_BEFORE = f"""mov.u32 %rank, %cluster_ctarank;
mad.wide.u32 %data, %rank, {BOX}, %data; mad.wide.u32 %out, %rank, {_OUT}, %out;
mad.wide.u32 %y, %rank, 4, %table;
ld.global.u32 %c0, [%y]; ld.global.u32 %c1, [%table+8]; ld.global.u32 %c2, [%table+12]; ld.global.u32 %c3, [%table+16];
ld.global.u32 %c4, [%table+20];
ld.global.u32 %c5, [%table+24]; ld.global.u32 %c6, [%table+28]; ld.global.u32 %c7, [%table+32];
{load_box("fill")}
@%first mbarrier.init.shared::cta.b64 [%bar], 1;
fence.mbarrier_init.release.cluster;
fence.proxy.async;
{_MEET}
@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], %c0;
setp.eq.u32 %q, %rank, %c1;
and.pred %p, %q, %first;
cvt.u16.u32 %h0, %c2;
add.u32 %m, %box, %c3; add.u32 %at, %box, %c4;
xor.b32 %n, %rank, 1;
mapa.shared::cluster.u32 %c8, %m, %n; mapa.shared::cluster.u32 %c9, %bar, %n;"""
"""The table: the bytes that each CTA expects, the CTA that issues, the mask, the places in the boxes, coordinates."""
_AFTER = f"""{wait("wait")}
{_MEET}
{dump_box("dump")}"""


def list_cases() -> Iterator[Case]:
    """Yield the cases."""
    tensor = make_entry("multicast_tensor", f"""{_BEFORE}
@%p cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%m], [%map,
    {{%c5, %c6, %c7}}], [%bar], %h0;
{_AFTER}""", ctas=2)  # fmt: skip
    plain = make_entry("multicast_bulk", f"""{_BEFORE}
cvt.u64.u32 %x, %c4; add.u64 %x, %x, %data;
@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%m], [%x], %c5, [%bar], %h0;
{_AFTER}""", ctas=2)  # fmt: skip
    copy = make_entry("bulk_to_cta", f"""{_BEFORE}
@%p cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%c8], [%at], %c5, [%c9];
{_AFTER}""", ctas=2)  # fmt: skip
    for number in range(20):
        yield Case(f"cluster/tensor/{number}", tensor, _draw_tensor)
    for number in range(6):
        yield Case(f"cluster/bulk/{number}", plain, partial(_draw, True, None))
        yield Case(f"cluster/copy/{number}", copy, partial(_draw, False, None))
    for operation in _REDUCTIONS:
        name = operation.replace(".", "_")
        entry = make_entry(f"reduce_in_cta_{name}", f"""{_BEFORE}
@%p cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{operation} [%c8], [%at], %c5, [%c9];
{_AFTER}""", ctas=2)  # fmt: skip
        yield Case(f"cluster/reduce/{operation}", entry, partial(_draw, False, None))
        yield from _list_single(operation)
    yield from _list_remote()


def _list_single(operation: str) -> Iterator[Case]:
    """Yield `red.async` by every thread of the issuing CTA on a word or two of its own."""
    if operation in ("add.u64",):
        return
    entry = make_entry(f"red_async_{operation.replace('.', '_')}", f"""{_BEFORE}
mad.lo.u32 %c8, %t, 4, %c8; mad.lo.u32 %at, %t, 4, %at; ld.shared.u32 %v0, [%at];
@%q red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{operation} [%c8], %v0, [%c9];
{_AFTER}""", ctas=2)  # fmt: skip
    yield Case(f"cluster/red.async/{operation}", entry, partial(_draw, False, 512))


def _list_remote() -> Iterator[Case]:
    """Yield `st.async`, and loads, stores and atomics of the other CTA's memory."""
    for vector, count in (("", 1), (".v2", 2), (".v4", 4)):
        values = ", ".join(f"%v{n}" for n in range(count))
        values = f"{{{values}}}" if count > 1 else values
        entry = make_entry(f"st_async_{count}", f"""{_BEFORE}
mad.lo.u32 %c8, %t, {4 * count}, %c8; mad.lo.u32 %at, %t, {4 * count}, %at; ld.shared{vector}.b32 {values}, [%at];
@%q st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{vector}.b32 [%c8], {values}, [%c9];
{_AFTER}""", ctas=2)  # fmt: skip
        yield Case(f"cluster/st.async/{count}", entry, partial(_draw, False, 512 * count))
    entry = make_entry("remote", f"""{_BEFORE}
mad.lo.u32 %c8, %t, 16, %c8; mad.lo.u32 %at, %t, 16, %at;
ld.shared::cluster.v4.b32 {{%v0, %v1, %v2, %v3}}, [%c8];
{_MEET}
@%q st.shared.v4.b32 [%at], {{%v0, %v1, %v2, %v3}};
@!%q st.shared::cluster.b32 [%c8], %v1;
@!%q atom.shared::cluster.add.u32 %v3, [%c8+4], %v2;
@!%q red.shared::cluster.xor.b32 [%c8+8], %v2;
@!%q st.shared.b32 [%at], %v3;
{_MEET}
{_AFTER}""", ctas=2)  # fmt: skip
    for number in range(4):
        yield Case(f"cluster/remote/{number}", entry, partial(_draw, False, 0))


def _draw_tensor(random: Random) -> Inputs:
    tensor = draw_tiled(random, 3)
    issuer, mask = random.randrange(2), random.choice((1, 2, 3, 3))
    expected = [tensor.box_bytes if mask >> rank & 1 else 0 for rank in range(2)]
    place = 256 * random.randint(0, 8)
    table = struct.pack("<6I3i", *expected, issuer, mask, place, 0, *draw_corner(random, tensor))
    size = max(2 * BOX, -(-(tensor.address + measure(tensor)) // 16) * 16)
    return Inputs(table, random.randbytes(size), bytes(2 * _OUT), tensor)


def _draw(multicast: bool, fixed: int | None, random: Random) -> Inputs:
    """Return inputs of a copy of `fixed` or a random number of bytes, to the CTAs of a mask or to the other one."""
    size = 16 * random.randint(1, 200) if fixed is None else fixed
    issuer, mask = random.randrange(2), random.choice((1, 2, 3))
    targets = mask if multicast else 2 >> issuer
    expected = [size if targets >> rank & 1 else 0 for rank in range(2)]
    places = [16 * random.randint(0, 128), BOX // 2 + 16 * random.randint(0, 128)]
    table = struct.pack("<8I", *expected, issuer, mask, *places, size, 0).ljust(48, b"\0")
    return Inputs(table, random.randbytes(2 * BOX), bytes(2 * _OUT))
