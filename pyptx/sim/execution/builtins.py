"""Functions that every PTX module may call without defining them: printing, assertions, the device heap."""

from __future__ import annotations

from functools import partial

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import Origin, PtxError
from pyptx.ir import Function, opcode_span
from pyptx.isa.printf import LONGEST, Parts, Unprintable, list_argument_offsets, parse_format
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.program.frames import lay_out
from pyptx.sim.rules import faults
from pyptx.sim.semantics.access import load, store
from pyptx.sim.state.memory import Site
from pyptx.sim.state.printing import MOST_PRINTED, format_output

_SIZES = {
    "vprintf": ((4,), (8, 8)), "__assertfail": ((), (8, 8, 4, 8, 8)), "malloc": ((8,), (8,)), "free": ((), (8,)),
}  # fmt: skip
"""Bytes of the results and parameters of the system's functions."""


def call(machine: Batch, name: str, frame: int, lanes: Lanes, step: Step) -> None:
    """Run a builtin for these lanes; its frame starts `frame` bytes above the caller's."""
    site, origin = Site(machine.memory, step, name), opcode_span(step.instruction)
    _require_signature(name, step, origin)
    base = machine.sp[lanes.sel] + frame
    machine.memory.ensure_local(int(base.max()) + 64, origin)
    if name == "vprintf":
        _print_lanes(machine, site, lanes, base, origin)
    elif name == "__assertfail":
        _fail_assertion(machine, site, lanes, base, origin)
    elif name == "malloc":
        sizes = _load_word(site, lanes, base, 8, "u8").tolist()
        fill = machine.memory.fresh.to_bytes(4, "little")
        addresses = np.array([machine.memory.space.allocate_on_heap(size, fill) for size in sizes], np.uint64)
        store(site, lanes, None, "local", base, addresses.dtype, (addresses,))
    elif name == "free":
        for position, address in enumerate(_load_word(site, lanes, base, 0, "u8").tolist()):
            if address and not machine.memory.space.free_on_heap(address):
                text = f"`free` of {address:#x}, which `malloc` did not return or which was already freed"
                place = machine.memory.describe_thread(lanes, position, name)
                raise faults.error(faults.BAD_FREE, origin, text, notes=(place,))
    else:
        raise faults.error(faults.UNDEFINED_EXTERN, origin, f"the function `{name}` is called but not defined")


def _fail_assertion(machine: Batch, site: Site, lanes: Lanes, base: Array, origin: Origin | None) -> None:
    """Raise the error of an assertion that failed in these lanes, with the words of the first."""
    first = lanes.shape.select_index(lanes.index[:1])
    message, file, name = (
        _read_text(site, first, _load_word(site, lanes, base, offset, "u8")[:1]) for offset in (0, 8, 24)
    )
    notes = [machine.memory.describe_thread(lanes, 0, "__assertfail")]
    if file:
        line = int(_load_word(site, lanes, base, 16, "u4")[0])
        notes.append(f"the assertion is at {file}:{line}" + (f", in `{name}`" if name else ""))
    raise faults.error(faults.ASSERTION, origin, f"assertion failed: {message or '(null)'}", notes=tuple(notes))


def _read_text(site: Site, lane: Lanes, address: Array) -> str:
    try:
        return _read_strings(site, lane, address).get(0, b"").decode("utf-8", "backslashreplace")
    except Unprintable as why:
        return str(why)


def _require_signature(name: str, step: Step, origin: Origin | None) -> None:
    """Reject a declaration whose parameters do not match the function's."""
    symbol = step.scope.find(name)
    function = symbol.declaration if symbol is not None else None
    if name not in _SIZES or not isinstance(function, Function):
        return
    sizes = tuple(
        tuple(size for _, _, size in lay_out(params)[0]) for params in (function.return_params or (), function.params)
    )
    if sizes != _SIZES[name]:
        size_lists = (", ".join(f"{size} bytes" for size in part) or "nothing" for part in (*sizes, *_SIZES[name]))
        result, parameters, real_result, real_parameters = size_lists
        text = (
            f"`{name}` is declared to take {parameters} and return {result}; it takes {real_parameters} and returns "
            f"{real_result}"
        )
        raise faults.error(faults.ILLEGAL, origin, text)


def _load_word(site: Site, lanes: Lanes, base: Value, offset: int, dtype: str) -> Value:
    return _load(site, lanes, "local", base + offset, dtype)


def _load(site: Site, lanes: Lanes, space: str, address: Value, dtype: str) -> Array:
    out = np.empty(lanes.n, dtype)
    load(site, lanes, None, space, address, out.dtype, (out,))
    return out


def _print_lanes(machine: Batch, site: Site, lanes: Lanes, base: Value, origin: Origin | None) -> None:
    """Print lane by lane: the frame holds the result, the format's address and the arguments' address. The result is
    the number of arguments, -1 without a format."""
    formats, arguments = _load_word(site, lanes, base, 8, "u8"), _load_word(site, lanes, base, 16, "u8")
    texts, counts = [""] * lanes.n, np.full(lanes.n, -1, np.int32)
    for parts, members in _group_by_format(machine, site, lanes, formats, origin):
        group, offsets = lanes.shape.select_index(lanes.index[members]), list_argument_offsets(parts)
        columns = [_load(site, group, "", arguments[members] + np.uint64(offset), dtype) for offset, dtype in offsets]
        counts[members] = len(offsets)
        for position, member in enumerate(members):
            lane = lanes.shape.select_index(group.index[position : position + 1])
            try:
                texts[member] = format_output(
                    parts, [column[position] for column in columns], partial(_read_string, site, lane)
                )
            except Unprintable as why:
                raise _make_format_error(machine, group, position, origin, why) from None
    machine.printed.show(texts)
    machine.stats.printed += sum(map(len, texts))
    if machine.stats.printed > MOST_PRINTED:
        text = f"the launch printed more than {MOST_PRINTED >> 20} MiB; its output ends here"
        help = "let one thread print, or print less often"
        raise faults.error(
            faults.PRINTED_TOO_MUCH, origin, text, help=help, notes=(_describe_thread(machine, lanes, 0),)
        )
    store(site, lanes, None, "local", base, counts.dtype, (counts,))


def _group_by_format(
    machine: Batch, site: Site, lanes: Lanes, address: Array, origin: Origin | None
) -> list[tuple[Parts, list[int]]]:
    """Return the formats and the lanes that print each; lanes with a null address print nothing."""
    formats: dict[bytes, tuple[Parts, list[int]]] = {}
    member = 0
    try:
        for member, text in _read_strings(site, lanes, address).items():
            if text not in formats:
                formats[text] = parse_format(text), []
            formats[text][1].append(member)
    except Unprintable as why:
        raise _make_format_error(machine, lanes, member, origin, why) from None
    return list(formats.values())


def _make_format_error(
    machine: Batch, lanes: Lanes, position: int, origin: Origin | None, why: Unprintable
) -> PtxError:
    return faults.error(
        faults.PRINTED_FORMAT, origin, f"printf: {why}", notes=(_describe_thread(machine, lanes, position),)
    )


def _describe_thread(machine: Batch, lanes: Lanes, position: int) -> str:
    return machine.memory.describe_thread(lanes, position, "vprintf")


def _read_string(site: Site, lane: Lanes, address: int, limit: int | None = None) -> bytes:
    """Return the bytes that one lane reads at an address, up to a NUL or at most `limit` of them."""
    return _read_strings(site, lane, np.array([address], np.uint64), limit)[0]


def _read_strings(site: Site, lanes: Lanes, address: Array, limit: int | None = None) -> dict[int, bytes]:
    """Return the string of each lane with a nonzero address. Lanes of different CTAs may read different strings at the
    same address."""
    columns: list[Array] = []
    readers = active = np.flatnonzero(address)
    while len(active) and len(columns) != limit:
        if len(columns) == LONGEST:
            raise Unprintable(f"the string at {int(address[active[0]]):#x} has no NUL in its first {LONGEST} bytes")
        column = np.zeros(lanes.n, np.uint8)
        readers_now = lanes.shape.select_index(lanes.index[active])
        column[active] = _load(site, readers_now, "", address[active] + np.uint64(len(columns)), "u1")
        columns.append(column)
        active = np.flatnonzero(column)
    rows = np.stack(columns, axis=1) if columns else np.zeros((lanes.n, 0), np.uint8)
    return {lane: rows[lane].tobytes().partition(b"\0")[0] for lane in readers.tolist()}
