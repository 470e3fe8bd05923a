"""Bulk and tensor copies as the machine runs them: lane by lane, from addresses to bytes and signals.

Manual: cp.async.bulk, cp.reduce.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk.tensor. `copies` knows which
bytes a tensor copy moves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from pyptx import tensormap
from pyptx.diagnostics import PtxError, format_count
from pyptx.numbers import compute_type_bits, is_float
from pyptx.sim import rules as hazards
from pyptx.sim.base.events import Bytes
from pyptx.sim.base.formats import Array, dtype_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import bulk_together, copies, extents
from pyptx.sim.engines.copies.movement import combine, find_reduction_type
from pyptx.sim.engines.copies.overrides import Change, read_overrides
from pyptx.sim.engines.copies.reports import Test
from pyptx.sim.engines.issuing import act_on_mbarriers, find_signaled, locate_objects, select_lanes
from pyptx.sim.rules import faults
from pyptx.sim.state.effects import BULK
from pyptx.sim.state.memory import GLOBAL_BASE, SHARED_WINDOW, Site
from pyptx.sim.state.regions import Region
from pyptx.sim.state.sink import SILENT, Sink
from pyptx.tensormap import Im2colMode, TensorMap, element_type
from pyptx.types import from_name

_CHUNK = 16


def copy(
    operation: str, signals: bool, extras: tuple[str, ...], site: Site, group: Lanes, mask: Any, target_space: str,
    target: Any, source_space: str, source: Any, *operands: Any, report: Test | None = None,
) -> None:  # fmt: skip
    """Copy bytes between memories, or reduce them into the target."""
    bar, operands = (operands[1], operands[2:]) if signals else (np.array(0), operands)
    size, optional = operands[1], dict(zip(extras, operands[2:], strict=True))
    absent, sink = np.array(0), site.memory.sink or SILENT
    sum_type = _find_sum_type(sink, operation)
    active, (target_addresses, source_addresses, sizes, bars, ctas, byte_mask, left_edges, right_edges) = select_lanes(
        group, mask, target, source, size, bar, optional.get("ctas", absent), optional.get("bytes", np.array(0xFFFF)),
        optional.get("left", absent), optional.get("right", absent),
    )  # fmt: skip
    if active is None:
        return
    earlier_copies = set[bytes]()
    for position, lane in split_lanes(active):
        count = int(sizes[position])
        edges = int(left_edges[position]), int(right_edges[position])
        source_region, begin = _locate_bytes(site, lane, source_space, source_addresses[position], count, "r", edges)
        target_region, end = _locate_bytes(
            site, lane, target_space, target_addresses[position], count, "rw" if operation else "w"
        )
        ends = locate_in_ctas(site, lane, end, int(ctas[position])) if "ctas" in extras else [end]
        if not operation and source_region.space == target_region.space == "shared":
            sink.on_peer_copy(site, lane, end)
        is_copied = (
            np.resize(np.unpackbits(np.array([byte_mask[position]], "u2").view("u1"), bitorder="little"), count) != 0
        )

        def land(
            source_region: Region = source_region, begin: int = begin, target_region: Region = target_region,
            ends: list[int] = ends, count: int = count, is_copied: Array = is_copied, lane: Lanes = lane,
        ) -> None:  # fmt: skip
            for end in ends:
                incoming, target = _read_bytes(source_region, begin, count), target_region.data[end : end + count]
                old = target.copy() if sum_type else target
                _write_bytes(operation, incoming, target, is_copied)
                if sum_type:
                    sink.on_sum(
                        site, lane, sum_type, *(values.view(dtype_of(sum_type)) for values in (old, incoming, target))
                    )

        signal, rows = None, None
        low = max(begin, 0)
        source_bytes = extents.make_bytes(source_region, low, min(begin + count, _find_end(source_region)) - low)
        if signals:
            ranks = int(ctas[position]) if "ctas" in extras else None
            targets = [extents.make_bytes(target_region, end, count) for end in ends]
            signal, rows = _make_signal(site, lane, bars[position], count, ranks, source_bytes, targets)
            signal = _wrap_report(site, lane, bars[position], ranks, report, (target_region, end, count), signal)
            for target in ends if target_region.space == "shared" else ():
                sink.on_bring(site, lane, target + np.arange(edges[0], count - edges[1], dtype=np.int64), count)
        else:
            target_bytes = extents.select_written(target_region, end, is_copied)
            sink.on_write_back(
                site, lane, source_bytes, target_bytes, _measure_element(operation), earlier_copies, None
            )
        _issue(site, lane, land, signal, count, rows)


def _find_sum_type(sink: Sink[Site], operation: str) -> str:
    """Return the floating-point type that a reduction adds, empty for others and if values are not checked."""
    kind = operation.rpartition(".")[2]
    return kind if operation.startswith("add") and is_float(kind) and sink.compares_values else ""


def _measure_element(operation: str) -> int:
    """Return the size of an element of a reduction, 0 for a copy."""
    return compute_type_bits(operation.rpartition(".")[2]) // 8 if operation else 0


def _write_bytes(operation: str, new: Array, old: Array, is_copied: Array) -> None:
    if operation:
        name, _, kind = operation.partition(".")
        kind = kind.rpartition(".")[2]
        dtype, element = dtype_of(kind), element_type(from_name(kind))
        old.view(dtype)[...] = combine(name, old.view(dtype), new.view(dtype), element)
    else:
        np.copyto(old, new, where=is_copied)


def load(
    mode: str, extras: tuple[str, ...], site: Site, group: Lanes, mask: Any, target_space: str, target: Any, space: str,
    map_address: Any, bar_space: str, bar: Any, outs: Any, corner: Any, *operands: Any, report: Test | None = None,
) -> None:  # fmt: skip
    """Copy a box of a tensor to shared memory, of several CTAs if a mask names them, and signal their mbarriers."""
    optional = dict(zip(extras, operands, strict=True))
    offsets, find_change = optional.get("offsets", optional.get("halo", ())), read_overrides(group, mask, operands)
    active, (target_addresses, maps, bars, corners, taps, ctas) = select_lanes(
        group, mask, target, map_address, bar, corner, offsets, optional.get("ctas", np.array(0))
    )
    if active is None:
        return
    memory, sink = site.memory, site.memory.sink or SILENT
    alike = mode == "tile" and report is None and not {"overrides", "offsets", "halo"} & set(extras)
    if alike and bulk_together.may_combine(site):
        tensor = _read_common_map(site, active, maps)
        cta_mask = ctas if "ctas" in extras else None
        if tensor is not None and bulk_together.load(
            site, active, target_space, target_addresses, tensor, bars, corners, cta_mask, tensor.box_bytes, maps
        ):
            return
    for position, lane in split_lanes(active):
        tensor = _read_map(site, lane, maps[position], find_change(position))
        end = int(
            memory.resolve(site, target_space, lane, target_addresses[position : position + 1], _CHUNK, "w")[1][0]
        )
        cta_mask = int(ctas[position]) if "ctas" in extras else None
        ends = [end] if cta_mask is None else locate_in_ctas(site, lane, end, cta_mask)
        plan = _plan_copy(site, lane, mode, tensor, _read_vector(corners, position), _read_vector(taps, position), end)
        region = _find_region(site, lane, tensor, plan)
        if mode == "tile":
            sink.on_box(site, lane, tensor, _read_vector(corners, position), plan.inside)

        def land(plan: copies.Copy = plan, region: Region = region, ends: list[int] = ends) -> None:
            for end in ends:
                copies.load(plan, region.data, region.low, _select_shared(site, end), memory.shared.low)

        size = count_bytes(tensor, mode)
        source = extents.list_units(plan)
        targets = [
            extents.list_box(plan, memory.shared, end, size, memory.shape.shared_stride, has_gaps=tensor.has_gaps)
            for end in ends
        ]
        sink.on_fill(site, ends, size, tensor)
        signal, rows = _make_signal(site, lane, bars[position], size, cta_mask, source, targets, maps[position])
        signal = _wrap_report(site, lane, bars[position], cta_mask, report, (memory.shared, end, size), signal)
        units = plan.shared if plan.inside is None else plan.shared[plan.inside]
        sink.on_bring_box(site, lane, units, plan.unit, ends, size)
        _issue(site, lane, land, signal, size, rows)


def store(
    mode: str, operation: str, site: Site, group: Lanes, mask: Any, space: str, map_address: Any, source_space: str,
    source: Any, outs: Any, corner: Any, *operands: Any,
) -> None:  # fmt: skip
    """Copy a box from shared memory to a tensor, or reduce it into the tensor."""
    active, (maps, source_addresses, corners) = select_lanes(group, mask, map_address, source, corner)
    find_change = read_overrides(group, mask, operands)
    if active is None:
        return
    memory, sink = site.memory, site.memory.sink or SILENT
    _check_places(site, active, mode, corners)
    alike = mode == "tile" and not operation and not any(isinstance(item, dict) for item in operands)
    if alike and bulk_together.may_combine(site):
        tensor = _read_common_map(site, active, maps)
        if tensor is not None and bulk_together.store(
            site, active, source_space, source_addresses, tensor, corners, count_bytes(tensor, mode), maps
        ):
            return
    earlier_copies = set[bytes]()
    for position, lane in split_lanes(active):
        tensor = _read_map(site, lane, maps[position], find_change(position))
        _check_map_of_store(site, lane, tensor, operation)
        begin = int(
            memory.resolve(site, source_space, lane, source_addresses[position : position + 1], _CHUNK, "r")[1][0]
        )
        plan = _plan_copy(site, lane, mode, tensor, _read_vector(corners, position), (), begin)
        region = _find_region(site, lane, tensor, plan)
        if mode == "tile":
            sink.on_box(site, lane, tensor, _read_vector(corners, position), plan.inside)
        if not region.writable:
            raise _make_error(site, lane, f"`{region.name}` is read-only", faults.READ_ONLY)
        if plan.inside is not None and copies.ends_in_chunk(tensor):
            whole = copies.widen(tensor)
            plan = _plan_copy(site, lane, mode, whole, _read_vector(corners, position), (), begin)
            plan = copies.clip_to_memory(plan, region.low + region.size)
        if region.lent:
            region.copy_data()

        def land(plan: copies.Copy = plan, region: Region = region, begin: int = begin, tensor: TensorMap = tensor,
                 lane: Lanes = lane) -> None:  # fmt: skip
            shared = _select_shared(site, begin)
            if operation:
                values = copies.reduce(plan, operation, region.data, region.low, shared, memory.shared.low)
                if operation == "add" and tensor.dtype.is_float and sink.compares_values:
                    sink.on_sum(site, lane, find_reduction_type(tensor.dtype), *values)
            else:
                copies.store(plan, region.data, region.low, shared, memory.shared.low)

        size, element = count_bytes(tensor, mode), tensor.dtype.bits // 8 if operation else 0
        source_bytes = extents.select_source(
            plan, memory.shared, begin, size, memory.shape.shared_stride, has_gaps=tensor.has_gaps
        )
        sink.on_write_back(site, lane, source_bytes, extents.list_units(plan), element, earlier_copies, maps[position])
        _issue(site, lane, land, None, size)


def _check_places(site: Site, lanes: Lanes, mode: str, corners: Any) -> None:
    """Raise an error for a negative coordinate of a store, which faults (measured on an H200)."""
    if mode == "scatter4":
        return
    for axis, corner in enumerate(corners):
        places = corner.view(np.int32) if corner.dtype.itemsize == 4 else corner
        if int(places.min()) < 0:
            position = int(places.argmin())
            lane = split_lanes(lanes)[position][1]
            text = f"coordinate {int(places[position])} of dimension {axis}: a store must not start below the tensor"
            raise _make_error(site, lane, text)


def _check_map_of_store(site: Site, lane: Lanes, tensor: TensorMap, operation: str) -> None:
    """Raise an error for a map with which stores or reductions fault (measured on an H200)."""
    box = tensor.im2col
    if box is not None and box.mode is Im2colMode.IM2COL and (min(box.lower) < 0 or max(box.upper) > 0):
        text = f"the box with corners {box.lower} and {box.upper}: a store needs a box inside the tensor"
        raise _make_error(site, lane, text)
    if operation and tensor.dtype not in copies.REDUCIBLE[operation]:
        names = ", ".join(dtype.name for dtype in sorted(copies.REDUCIBLE[operation]))
        raise _make_error(site, lane, f"the elements are {tensor.dtype.name}, but `.{operation}` reduces {names}")


def count_bytes(tensor: TensorMap, mode: str) -> int:
    """Return the bytes that a load counts: the whole box, including elements outside the tensor."""
    return 4 * tensor.box_bytes if mode in ("gather4", "scatter4") else tensor.box_bytes


def split_lanes(group: Lanes) -> list[tuple[int, Lanes]]:
    """Return every lane as its own set, with its position."""
    shape = group.shape
    return [(position, shape.select_range(int(lane), int(lane) + 1)) for position, lane in enumerate(group.index)]


def _read_vector(vector: Any, lane: int) -> tuple[int, ...]:
    return tuple(int(item[lane]) for item in vector)


def _locate_bytes(
    site: Site, lane: Lanes, space: str, address: Any, size: int, kind: str, edges: tuple[int, int] = (0, 0)
) -> tuple[Region, int]:
    """Return the region and offset of bytes, whose first and last 16 must be legal accesses except for `edges`."""
    if any(edges):
        return _locate_inner_bytes(site, lane, space, address, size, edges)
    if size % _CHUNK:
        raise _make_error(site, lane, f"{format_count('byte', size)}: expected a multiple of 16")
    start = np.array([address])
    region, offsets = site.memory.resolve(site, space, lane, start, _CHUNK, kind)
    if size > _CHUNK:
        last, _ = site.memory.resolve(site, space, lane, start + start.dtype.type(size - _CHUNK), _CHUNK, kind)
        if last is not region:
            raise _make_error(site, lane, f"{size} bytes from {int(address):#x} extend into another allocation")
    return region, int(np.atleast_1d(offsets)[0])


def _locate_inner_bytes(
    site: Site, lane: Lanes, space: str, address: Any, size: int, edges: tuple[int, int]
) -> tuple[Region, int]:
    """Return the region and offset of bytes whose edges may be outside the allocation."""
    if size % _CHUNK or int(address) % _CHUNK or not all(0 <= edge < _CHUNK for edge in edges):
        text = (
            f"{size} bytes at {int(address):#x} without the first {edges[0]} and the last {edges[1]}: expected "
            "multiples of 16, and fewer than 16 left out"
        )
        raise _make_error(site, lane, text)
    start = np.array([address])
    number = start.dtype.type
    region, offsets = site.memory.resolve(site, space, lane, start + number(edges[0]), 1, "r")
    last, _ = site.memory.resolve(site, space, lane, start + number(size - edges[1] - 1), 1, "r")
    if last is not region:
        raise _make_error(site, lane, f"{size} bytes from {int(address):#x} extend into another allocation")
    return region, int(np.atleast_1d(offsets)[0]) - edges[0]


def locate_in_ctas(site: Site, lane: Lanes, offset: int, ctas: int) -> list[int]:
    """Return an offset in every CTA of the cluster that a mask names."""
    memory = site.memory
    stride, size = memory.shape.shared_stride, memory.cluster
    if ctas >> size:
        raise _make_error(
            site, lane, f"the mask {ctas:#x} names CTAs outside the cluster of {size}", hazards.ABSENT_CTA
        )
    first = int(lane.cta[0]) // size * size
    return [(first + rank) * stride + offset % stride for rank in range(size) if ctas >> rank & 1]


def _select_shared(site: Site, offset: int) -> Array:
    """Return the shared memory of the CTA that contains an offset."""
    stride = site.memory.shape.shared_stride
    first = offset // stride * stride
    return site.memory.shared.data[first : first + stride]


def _locate_barriers(site: Site, lane: Lanes, address: Any, ctas: int | None) -> Array:
    """Return the offsets of the mbarriers that a copy signals, one per destination."""
    objects = locate_objects(site, lane, "shared", np.array([address]))
    if ctas is None:
        return objects
    return find_signaled(site, objects, np.array(locate_in_ctas(site, lane, objects.item(), ctas), np.int64))


def _make_signal(
    site: Site, lane: Lanes, address: Any, count: int, ctas: int | None, source: Bytes, targets: list[Bytes],
    tensor_map: Any = None,
) -> tuple[Callable[[], None], Array]:  # fmt: skip
    """Return a function that signals the arrival of the bytes to the mbarriers of a copy, and the rows of these
    mbarriers."""
    offsets = _locate_barriers(site, lane, address, ctas)
    signals = list(zip(targets, offsets.tolist(), strict=True))
    report_landing = (site.memory.sink or SILENT).on_load(site, lane, source, signals, tensor_map)
    rows = act_on_mbarriers(site, lane, lambda m: m.find_rows(offsets))

    def send_signal() -> None:
        report_landing()
        act_on_mbarriers(site, lane, lambda m: m.transfer(m.find_rows(offsets), np.full(len(offsets), -count)))

    return send_signal, rows


def _wrap_report(
    site: Site, lane: Lanes, address: Any, ctas: int | None, report: Test | None, extent: tuple[Region, int, int],
    signal: Callable[[], None],
) -> Callable[[], None]:  # fmt: skip
    """Return a signal that first reports the copied bytes to the mbarriers."""
    if report is None:
        return signal
    offsets = _locate_barriers(site, lane, address, ctas)
    region, begin, count = extent

    def run() -> None:
        if report(region.data[begin : begin + count]):
            act_on_mbarriers(site, lane, lambda m: m.report(m.find_rows(offsets)))
        signal()

    return run


def _find_end(region: Region) -> int:
    """Return the end of a region; shared memory has the bytes of all CTAs of the batch."""
    return region.size if region.space == "global" else len(region.data)


def _read_bytes(region: Region, begin: int, count: int) -> Array:
    """Return bytes of a region; bytes outside it, at ignored edges, are undefined: all ones."""
    low, high = max(begin, 0), min(begin + count, _find_end(region))
    if (low, high) == (begin, begin + count):
        return region.data[begin : begin + count]
    buffer = np.full(count, 0xFF, np.uint8)
    buffer[low - begin : high - begin] = region.data[low:high]
    return buffer


def _issue(
    site: Site, lane: Lanes, land: Callable[[], None], signal: Callable[[], None] | None, size: int,
    rows: Array | None = None,
) -> None:  # fmt: skip
    def land_and_signal() -> None:
        land()
        if signal is not None:
            signal()

    barrier_rows = None if rows is None else rows[None]
    site.memory.effects.issue(BULK, lane.index, lane.shape.lanes, land_and_signal, signal is None, size, barrier_rows)


@lru_cache(maxsize=64)
def _decode_map(data: bytes) -> TensorMap:
    return tensormap.validate(tensormap.decode(data))


def _read_map(site: Site, lane: Lanes, address: Any, change: Change | None) -> TensorMap:
    """Return the tensor map at a generic address."""
    base = np.array([address], np.uint64)
    halves: list[bytes] = []
    for half in (0, 64):
        region, offsets = site.memory.resolve(site, "", lane, base + np.uint64(half), 64, "r")
        begin = int(np.atleast_1d(offsets)[0])
        halves.append(region.data[begin : begin + 64].tobytes())
    try:
        tensor_map = _decode_map(b"".join(halves))
        return tensormap.validate(change(tensor_map)) if change is not None else tensor_map
    except ValueError as why:
        raise _make_error(site, lane, f"at {int(address):#x}: {why}") from None


def _read_common_map(site: Site, lanes: Lanes, addresses: Array) -> TensorMap | None:
    """Return the tensor map that all lanes use, None if they use several or each CTA its own."""
    first, memory = addresses[0], site.memory
    if not (addresses == first).all() or SHARED_WINDOW <= int(first) < GLOBAL_BASE:
        return None
    return _read_map(site, memory.shape.select_range(int(lanes.index[0]), int(lanes.index[0]) + 1), first, None)


def _plan_copy(
    site: Site, lane: Lanes, mode: str, tensor: TensorMap, corner: tuple[int, ...], taps: tuple[int, ...], offset: int
) -> copies.Copy:
    memory = site.memory
    destination = offset % memory.shape.shared_stride + memory.shared.low
    if destination % 128:
        raise _make_error(site, lane, f"shared address {destination:#x}: expected a multiple of 128", faults.MISALIGNED)
    count = 2 if mode in ("gather4", "scatter4") else len(corner)
    if count != tensor.rank:
        raise _make_error(site, lane, f"{format_count('dimension', count)}, the tensor map has {tensor.rank}")
    if mode not in ("gather4", "scatter4") and copies.has_misaligned_start(tensor, corner[0]):
        elements = 128 // tensor.dtype.bits
        text = (
            f"coordinate {corner[0]} of the first dimension: without an interleave, expected a multiple of {elements}, "
            "which is 16 bytes"
        )
        raise _make_error(site, lane, text, faults.MISALIGNED)
    if mode == "im2col" or (tensor.im2col is not None and tensor.im2col.mode is Im2colMode.IM2COL):
        _check_pixel(site, lane, tensor, corner)
    try:
        if mode in ("gather4", "scatter4"):
            plan = copies.plan_gather(tensor, corner, destination)
        elif mode == "tile":
            plan = copies.plan_tile(tensor, corner, destination)
        else:
            plan = copies.plan_im2col(tensor, corner, destination, taps)
    except ValueError as why:
        raise _make_error(site, lane, str(why)) from None
    excess = int(plan.shared.max(initial=0)) + plan.unit - memory.shared.low - memory.shared.size
    if excess > 0:
        text = f"the box at shared address {destination:#x} ends {excess} bytes after the CTA's shared memory"
        raise _make_error(site, lane, text, faults.OUT_OF_BOUNDS)
    return plan


def _check_pixel(site: Site, lane: Lanes, tensor: TensorMap, corner: tuple[int, ...]) -> None:
    """Raise an error for a first pixel outside the box, with which copies fault (measured on an H200)."""
    box = tensor.im2col
    if box is None or len(corner) != tensor.rank:
        return
    axes = zip(corner[1:-1], tensor.dims[1:-1], box.lower, box.upper, strict=True)
    for axis, (place, size, low, high) in enumerate(axes, 1):
        if not low <= place <= size - 1 + high:
            text = f"coordinate {place} of dimension {axis} is outside the box, from {low} to {size - 1 + high}"
            raise _make_error(site, lane, text)


def _find_region(site: Site, lane: Lanes, tensor: TensorMap, plan: copies.Copy) -> Region:
    """Return the allocation of a tensor, which must contain all copied bytes."""
    region = site.memory.space.find_region(tensor.address)
    inside = plan.address if plan.inside is None else plan.address[plan.inside]
    if region is None or (
        len(inside) and (inside.min() < region.low or inside.max() + plan.unit > region.low + region.size)
    ):
        name = "no allocation" if region is None else f"`{region.name}` of {region.size} bytes"
        text = f"the tensor at {tensor.address:#x} is not inside {name}"
        raise _make_error(site, lane, text, faults.OUT_OF_BOUNDS)
    return region


def _make_error(site: Site, lane: Lanes, problem: str, rule: Any = faults.COPY) -> PtxError:
    text = f"`{site.instruction.full_opcode}`: {problem}"
    notes = (site.memory.describe_thread(lane, 0, site.function),)
    return faults.error(rule, site.origin, text, notes=notes, help=hazards.REMEDIES.get(rule.code))
