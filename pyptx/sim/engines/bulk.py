"""Bulk and tensor copies as the machine runs them: lane by lane, from addresses to bytes, and who is told.

Manual: cp.async.bulk, cp.reduce.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk.tensor. Which bytes a tensor
copy moves is in `copies`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from pyptx import tensormap
from pyptx.diagnostics import PtxError
from pyptx.numbers import is_float, type_bits
from pyptx.sim import rules as hazards
from pyptx.sim.base.events import Bytes
from pyptx.sim.base.formats import Array, dtype_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import bulk_together, copies, extents
from pyptx.sim.engines.copies.movement import combine, computed_as
from pyptx.sim.engines.copies.overrides import Change, overriding
from pyptx.sim.engines.copies.reports import Test
from pyptx.sim.engines.issuing import chosen, objects, told
from pyptx.sim.rules import faults
from pyptx.sim.state.effects import BULK
from pyptx.sim.state.memory import GLOBAL_BASE, SHARED_WINDOW, Site
from pyptx.sim.state.regions import Region
from pyptx.sim.state.sink import SILENT, Sink
from pyptx.tensormap import TensorMap, element_type
from pyptx.types import from_name

_CHUNK = 16


def copy(
    operation: str, signals: bool, extras: tuple[str, ...], site: Site, group: Lanes, mask: Any, to: str, target: Any,
    of: str, source: Any, *rest: Any, report: Test | None = None,
) -> None:  # fmt: skip
    """Copy bytes between memories, or reduce them into the target."""
    where, rest = (rest[1], rest[2:]) if signals else (np.array(0), rest)
    size, others = rest[1], dict(zip(extras, rest[2:], strict=True))
    none, sink = np.array(0), site.memory.sink or SILENT
    sums = _sums(sink, operation)
    some, (there, here, sizes, bars, ctas, byte_mask, left, right) = chosen(
        group, mask, target, source, size, where, others.get("ctas", none), others.get("bytes", np.array(0xFFFF)),
        others.get("left", none), others.get("right", none),
    )  # fmt: skip
    if some is None:
        return
    seen = set[bytes]()
    for lane, one in one_by_one(some):
        count = int(sizes[lane])
        edges = int(left[lane]), int(right[lane])
        first, begin = _bytes(site, one, of, here[lane], count, "r", edges)
        last, end = _bytes(site, one, to, there[lane], count, "rw" if operation else "w")
        ends = everywhere(site, one, end, int(ctas[lane])) if "ctas" in extras else [end]
        if not operation and first.space == last.space == "shared":
            sink.on_peer_copy(site, one, end)
        kept = np.resize(np.unpackbits(np.array([byte_mask[lane]], "u2").view("u1"), bitorder="little"), count) != 0

        def land(first: Region = first, begin: int = begin, last: Region = last, ends: list[int] = ends,
                 count: int = count, kept: Array = kept, one: Lanes = one) -> None:  # fmt: skip
            for end in ends:
                given, target = _held(first, begin, count), last.data[end : end + count]
                old = target.copy() if sums else target
                _put(operation, given, target, kept)
                if sums:
                    sink.on_sum(site, one, sums, *(values.view(dtype_of(sums)) for values in (old, given, target)))

        signal, rows = None, None
        low = max(begin, 0)
        whole = extents.region_bytes(first, low, min(begin + count, _end(first)) - low)
        if signals:
            ranks = int(ctas[lane]) if "ctas" in extras else None
            targets = [extents.region_bytes(last, end, count) for end in ends]
            signal, rows = _signal(site, one, bars[lane], count, ranks, whole, targets)
            signal = _reporting(site, one, bars[lane], ranks, report, (last, end, count), signal)
            for target in ends if last.space == "shared" else ():
                sink.on_bring(site, one, target + np.arange(edges[0], count - edges[1], dtype=np.int64), count)
        else:
            targeted = extents.written(last, end, kept)
            sink.on_write_back(site, one, whole, targeted, _element_size(operation), seen, None)
        _issue(site, one, land, signal, count, rows)


def _sums(sink: Sink[Site], operation: str) -> str:
    """Return the floating-point type that a reduction adds up, empty for all else and where nobody looks at values."""
    kind = operation.rpartition(".")[2]
    return kind if operation.startswith("add") and is_float(kind) and sink.compares_values else ""


def _element_size(operation: str) -> int:
    """Return the bytes of an element of a reduction, 0 for a copy."""
    return type_bits(operation.rpartition(".")[2]) // 8 if operation else 0


def _put(operation: str, new: Array, old: Array, kept: Array) -> None:
    if operation:
        name, _, kind = operation.partition(".")
        kind = kind.rpartition(".")[2]
        dtype, element = dtype_of(kind), element_type(from_name(kind))
        old.view(dtype)[...] = combine(name, old.view(dtype), new.view(dtype), element)
    elif kept.all():
        old[...] = new
    else:
        old[kept] = new[kept]


def load(
    mode: str, extras: tuple[str, ...], site: Site, group: Lanes, mask: Any, to: str, target: Any, space: str,
    where: Any, bar_space: str, bar: Any, outs: Any, at: Any, *rest: Any, report: Test | None = None,
) -> None:  # fmt: skip
    """Copy a box of a tensor to shared memory, of several CTAs if a mask names them, and tell their barriers."""
    others = dict(zip(extras, rest, strict=True))
    offsets, changed = others.get("offsets", others.get("halo", ())), overriding(group, mask, rest)
    some, (there, maps, bars, places, taps, ctas) = chosen(
        group, mask, target, where, bar, at, offsets, others.get("ctas", np.array(0))
    )
    if some is None:
        return
    memory, sink = site.memory, site.memory.sink or SILENT
    alike = mode == "tile" and report is None and not {"overrides", "offsets", "halo"} & set(extras)
    if alike and bulk_together.possible(site):
        tensor = _map_of_all(site, some, maps)
        named = ctas if "ctas" in extras else None
        if tensor is not None and bulk_together.load(
            site, some, to, there, tensor, bars, places, named, tensor.box_bytes, maps
        ):
            return
    for lane, one in one_by_one(some):
        tensor = _map(site, one, maps[lane], changed(lane))
        end = int(memory.resolve(site, to, one, there[lane : lane + 1], _CHUNK, "w")[1][0])
        named = int(ctas[lane]) if "ctas" in extras else None
        ends = [end] if named is None else everywhere(site, one, end, named)
        made = _plan(site, one, mode, tensor, _numbers(places, lane), _numbers(taps, lane), end)
        region = _tensor_bytes(site, one, tensor, made)
        if mode == "tile":
            sink.on_box(site, one, tensor, _numbers(places, lane), made.inside)

        def land(made: copies.Copy = made, region: Region = region, ends: list[int] = ends) -> None:
            for end in ends:
                copies.load(made, region.data, region.low, _shared(site, end), memory.shared.low)

        size = tensor_bytes(tensor, mode)
        source, targets = extents.units(made), [extents.region_bytes(memory.shared, end, size) for end in ends]
        sink.on_fill(site, ends, size, tensor)
        signal, rows = _signal(site, one, bars[lane], size, named, source, targets, maps[lane])
        signal = _reporting(site, one, bars[lane], named, report, (memory.shared, end, size), signal)
        units = made.shared if made.inside is None else made.shared[made.inside]
        sink.on_bring_box(site, one, units, made.unit, ends, size)
        _issue(site, one, land, signal, size, rows)


def store(
    mode: str, operation: str, site: Site, group: Lanes, mask: Any, space: str, where: Any, of: str, source: Any,
    outs: Any, at: Any, *rest: Any,
) -> None:  # fmt: skip
    """Copy a box from shared memory to a tensor, or reduce it into the tensor."""
    some, (maps, here, places) = chosen(group, mask, where, source, at)
    changed = overriding(group, mask, rest)
    if some is None:
        return
    memory, sink = site.memory, site.memory.sink or SILENT
    alike = mode == "tile" and not operation and not any(isinstance(item, dict) for item in rest)
    if alike and bulk_together.possible(site):
        tensor = _map_of_all(site, some, maps)
        if tensor is not None and bulk_together.store(
            site, some, of, here, tensor, places, tensor_bytes(tensor, mode), maps
        ):
            return
    seen = set[bytes]()
    for lane, one in one_by_one(some):
        tensor = _map(site, one, maps[lane], changed(lane))
        begin = int(memory.resolve(site, of, one, here[lane : lane + 1], _CHUNK, "r")[1][0])
        made = _plan(site, one, mode, tensor, _numbers(places, lane), (), begin)
        region = _tensor_bytes(site, one, tensor, made)
        if mode == "tile":
            sink.on_box(site, one, tensor, _numbers(places, lane), made.inside)
        if not region.writable:
            raise _wrong(site, one, f"`{region.name}` is read-only", faults.READ_ONLY)
        if region.lent:
            region.own()

        def land(made: copies.Copy = made, region: Region = region, begin: int = begin, tensor: TensorMap = tensor,
                 one: Lanes = one) -> None:  # fmt: skip
            shared = _shared(site, begin)
            if operation:
                values = copies.reduce(made, operation, region.data, region.low, shared, memory.shared.low)
                if operation == "add" and tensor.dtype.is_float and sink.compares_values:
                    sink.on_sum(site, one, computed_as(tensor.dtype), *values)
            else:
                copies.store(made, region.data, region.low, shared, memory.shared.low)

        size, element = tensor_bytes(tensor, mode), tensor.dtype.bits // 8 if operation else 0
        held = extents.held(made, memory.shared, begin, size)
        sink.on_write_back(site, one, held, extents.units(made), element, seen, maps[lane])
        _issue(site, one, land, None, size)


def tensor_bytes(tensor: TensorMap, mode: str) -> int:
    """Return the bytes that a load counts: the whole box, elements outside the tensor included."""
    return 4 * tensor.box_bytes if mode in ("gather4", "scatter4") else tensor.box_bytes


def one_by_one(group: Lanes) -> list[tuple[int, Lanes]]:
    """Return every lane by itself, with its position."""
    shape = group.shape
    return [(at, shape.range(int(lane), int(lane) + 1)) for at, lane in enumerate(group.index)]


def _numbers(vector: Any, lane: int) -> tuple[int, ...]:
    return tuple(int(item[lane]) for item in vector)


def _bytes(
    site: Site, one: Lanes, space: str, address: Any, size: int, kind: str, edges: tuple[int, int] = (0, 0)
) -> tuple[Region, int]:
    """Return where bytes lie: their first and last 16 must be legal accesses, but for so many at either edge."""
    if any(edges):
        return _inner_bytes(site, one, space, address, size, edges)
    if size % _CHUNK:
        raise _wrong(site, one, f"{size} bytes: expected a multiple of 16")
    whole = np.array([address])
    region, offsets = site.memory.resolve(site, space, one, whole, _CHUNK, kind)
    if size > _CHUNK:
        last, _ = site.memory.resolve(site, space, one, whole + whole.dtype.type(size - _CHUNK), _CHUNK, kind)
        if last is not region:
            raise _wrong(site, one, f"{size} bytes from {int(address):#x} extend into another allocation")
    return region, int(np.atleast_1d(offsets)[0])


def _inner_bytes(
    site: Site, one: Lanes, space: str, address: Any, size: int, edges: tuple[int, int]
) -> tuple[Region, int]:
    """Return where bytes lie whose edges may lie outside of the allocation."""
    if size % _CHUNK or int(address) % _CHUNK or not all(0 <= edge < _CHUNK for edge in edges):
        text = (
            f"{size} bytes at {int(address):#x} without the first {edges[0]} and the last {edges[1]}: expected "
            "multiples of 16, and fewer than 16 left out"
        )
        raise _wrong(site, one, text)
    whole = np.array([address])
    number = whole.dtype.type
    region, offsets = site.memory.resolve(site, space, one, whole + number(edges[0]), 1, "r")
    last, _ = site.memory.resolve(site, space, one, whole + number(size - edges[1] - 1), 1, "r")
    if last is not region:
        raise _wrong(site, one, f"{size} bytes from {int(address):#x} extend into another allocation")
    return region, int(np.atleast_1d(offsets)[0]) - edges[0]


def everywhere(site: Site, one: Lanes, offset: int, ctas: int) -> list[int]:
    """Return an offset in every CTA of the cluster that a mask names."""
    memory = site.memory
    stride, size = memory.shape.shared_stride, memory.cluster
    if ctas >> size:
        raise _wrong(site, one, f"the mask {ctas:#x} names CTAs outside the cluster of {size}", hazards.ABSENT_CTA)
    first = int(one.cta[0]) // size * size
    return [(first + rank) * stride + offset % stride for rank in range(size) if ctas >> rank & 1]


def _shared(site: Site, offset: int) -> Array:
    """Return the shared memory of the CTA that an offset lies in."""
    stride = site.memory.shape.shared_stride
    first = offset // stride * stride
    return site.memory.shared.data[first : first + stride]


def _signal(
    site: Site, one: Lanes, address: Any, count: int, ctas: int | None, source: Bytes, targets: list[Bytes],
    tensor_map: Any = None,
) -> tuple[Callable[[], None], Array]:  # fmt: skip
    """Return what tells the barriers of a copy that its bytes have arrived, and the rows of these barriers."""
    offset = int(objects(site, one, "shared", np.array([address]))[0])
    offsets = np.array([offset] if ctas is None else everywhere(site, one, offset, ctas))
    signals = list(zip(targets, offsets.tolist(), strict=True))
    landed = (site.memory.sink or SILENT).on_load(site, one, source, signals, tensor_map)
    rows = told(site, one, lambda m: m.rows(offsets))

    def signal() -> None:
        landed()
        told(site, one, lambda m: m.transfer(m.rows(offsets), np.full(len(offsets), -count)))

    return signal, rows


def _reporting(
    site: Site, one: Lanes, address: Any, ctas: int | None, report: Test | None, copied: tuple[Region, int, int],
    signal: Callable[[], None],
) -> Callable[[], None]:  # fmt: skip
    """Return a signal before which the barriers hear what the copied bytes look like."""
    if report is None:
        return signal
    offset = int(objects(site, one, "shared", np.array([address]))[0])
    offsets = np.array([offset] if ctas is None else everywhere(site, one, offset, ctas))
    region, begin, count = copied

    def run() -> None:
        if report(region.data[begin : begin + count]):
            told(site, one, lambda m: m.report(m.rows(offsets)))
        signal()

    return run


def _end(region: Region) -> int:
    """Return where a region ends; shared memory has the bytes of all CTAs of the batch."""
    return region.size if region.space == "global" else len(region.data)


def _held(region: Region, begin: int, count: int) -> Array:
    """Return bytes of a region; what lies outside of it, at ignored edges, is undefined: all ones."""
    low, high = max(begin, 0), min(begin + count, _end(region))
    if (low, high) == (begin, begin + count):
        return region.data[begin : begin + count]
    made = np.full(count, 0xFF, np.uint8)
    made[low - begin : high - begin] = region.data[low:high]
    return made


def _issue(
    site: Site, one: Lanes, land: Callable[[], None], signal: Callable[[], None] | None, size: int,
    rows: Array | None = None,
) -> None:  # fmt: skip
    def landing() -> None:
        land()
        if signal is not None:
            signal()

    tells = None if rows is None else rows[None]
    site.memory.effects.issue(BULK, one.index, one.shape.lanes, landing, signal is None, size, tells)


@lru_cache(maxsize=64)
def _decoded(data: bytes) -> TensorMap:
    return tensormap.validate(tensormap.decode(data))


def _map(site: Site, one: Lanes, address: Any, change: Change | None) -> TensorMap:
    """Return the tensor map at a generic address."""
    at = np.array([address], np.uint64)
    found: list[bytes] = []
    for half in (0, 64):
        region, offsets = site.memory.resolve(site, "", one, at + np.uint64(half), 64, "r")
        begin = int(np.atleast_1d(offsets)[0])
        found.append(region.data[begin : begin + 64].tobytes())
    try:
        made = _decoded(b"".join(found))
        return tensormap.validate(change(made)) if change is not None else made
    except ValueError as why:
        raise _wrong(site, one, f"at {int(address):#x}: {why}") from None


def _map_of_all(site: Site, some: Lanes, addresses: Array) -> TensorMap | None:
    """Return the tensor map that all lanes use, None where they use several or each CTA its own."""
    first, memory = addresses[0], site.memory
    if not (addresses == first).all() or SHARED_WINDOW <= int(first) < GLOBAL_BASE:
        return None
    return _map(site, memory.shape.range(int(some.index[0]), int(some.index[0]) + 1), first, None)


def _plan(
    site: Site, one: Lanes, mode: str, tensor: TensorMap, at: tuple[int, ...], taps: tuple[int, ...], offset: int
) -> copies.Copy:
    memory = site.memory
    destination = offset % memory.shape.shared_stride + memory.shared.low
    if destination % 128:
        raise _wrong(site, one, f"shared address {destination:#x}: expected a multiple of 128", faults.MISALIGNED)
    count = 2 if mode in ("gather4", "scatter4") else len(at)
    if count != tensor.rank:
        raise _wrong(site, one, f"{count} dimensions, the tensor map has {tensor.rank}")
    try:
        if mode in ("gather4", "scatter4"):
            return copies.gather(tensor, at, destination)
        return copies.tile(tensor, at, destination) if mode == "tile" else copies.im2col(tensor, at, destination, taps)
    except ValueError as why:
        raise _wrong(site, one, str(why)) from None


def _tensor_bytes(site: Site, one: Lanes, tensor: TensorMap, made: copies.Copy) -> Region:
    """Return the allocation that holds a tensor; all that is copied must lie in it."""
    region = site.memory.space.region_at(tensor.address)
    inside = made.address if made.inside is None else made.address[made.inside]
    if region is None or (
        len(inside) and (inside.min() < region.low or inside.max() + made.unit > region.low + region.size)
    ):
        name = "no allocation" if region is None else f"`{region.name}` of {region.size} bytes"
        text = f"the tensor at {tensor.address:#x} is not inside {name}"
        raise _wrong(site, one, text, faults.OUT_OF_BOUNDS)
    return region


def _wrong(site: Site, one: Lanes, why: str, rule: Any = faults.COPY) -> PtxError:
    text = f"`{site.instruction.full_opcode}`: {why}"
    notes = (site.memory.place(one, 0, site.function),)
    return faults.error(rule, site.origin, text, notes=notes, help=hazards.REMEDIES.get(rule.code))
