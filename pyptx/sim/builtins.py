"""Functions that every PTX module may call without defining them: printing, assertions, the device heap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyptx.diagnostics import Origin
from pyptx.ir import Instruction
from pyptx.sim import rules
from pyptx.sim.access import load, store
from pyptx.sim.formats import Value
from pyptx.sim.lanes import Lanes
from pyptx.sim.memory import Site

if TYPE_CHECKING:
    from pyptx.sim.machine import Batch

_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|j|z|t|L)?([diouxXeEfFgGaAcsp%])")


def call(machine: Batch, name: str, frame: int, lanes: Lanes, origin: Origin | None) -> None:
    """Run a builtin in some lanes; its frame starts `frame` bytes above the caller's."""
    site = Site(machine.memory, Instruction("call"), name)
    base = machine.sp[lanes.sel] + frame
    machine.memory.ensure_local(int(base.max()) + 64, origin)
    if name == "vprintf":
        _vprintf(machine, site, lanes, base)
    elif name == "__assertfail":
        text = _string(site, lanes, _word(site, lanes, base, 0, "u8"), 0)
        place = machine.memory.place(lanes, 0, name)
        raise rules.error(rules.TRAP, origin, f"assertion failed: {text}", notes=(place,))
    else:
        raise rules.error(rules.UNDEFINED_EXTERN, origin, f"the function `{name}` is called and nothing defines it")


def _word(site: Site, lanes: Lanes, base: Value, offset: int, dtype: str) -> Value:
    out = np.empty(lanes.n, dtype)
    load(site, lanes, None, "local", base + offset, out.dtype, (out,))
    return out


def _vprintf(machine: Batch, site: Site, lanes: Lanes, base: Value) -> None:
    """Print lane by lane: the frame holds the result, the format's address, the arguments' address."""
    formats, arguments = _word(site, lanes, base, 8, "u8"), _word(site, lanes, base, 16, "u8")
    for at in range(lanes.n):
        one = lanes.shape.of(lanes.index[at : at + 1])
        machine.printed.append(
            _formatted(site, one, _string(site, one, formats[at : at + 1], 0), arguments[at : at + 1])
        )
    done = np.ones(lanes.n, np.uint32)
    store(site, lanes, None, "local", base, done.dtype, (done,))


def _string(site: Site, lanes: Lanes, address: Value, at: int) -> str:
    made = bytearray()
    where = address[at : at + 1].copy()
    one = lanes.shape.of(lanes.index[at : at + 1])
    byte = np.empty(1, np.uint8)
    while len(made) < 4096:
        load(site, one, None, "", where, byte.dtype, (byte,))
        if not byte[0]:
            break
        made.append(int(byte[0]))
        where += np.uint64(1)
    return made.decode("utf-8", "replace")


def _formatted(site: Site, one: Lanes, text: str, arguments: Value) -> str:
    offset = 0

    def take(dtype: str) -> Value:
        nonlocal offset
        size = np.dtype(dtype).itemsize
        offset = -(-offset // size) * size
        out = np.empty(1, dtype)
        load(site, one, None, "", arguments + np.uint64(offset), out.dtype, (out,))
        offset += size
        return out[0]

    def shown(found: re.Match[str]) -> str:
        flags, width, precision, size, kind = found.groups()
        if kind == "%":
            return "%"
        width = str(int(take("i4"))) if width == "*" else width or ""
        precision = str(int(take("i4"))) if precision == "*" else precision
        spec = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        wide = size in ("l", "ll", "j", "z", "t")
        if kind in "di":
            return (spec + "d") % int(take("i8" if wide else "i4"))
        if kind in "ouxX":
            return (spec + kind.replace("u", "d")) % int(take("u8" if wide else "u4"))
        if kind == "c":
            return (spec + "c") % chr(int(take("u4")) & 0xFF)
        if kind == "s":
            return (spec + "s") % _string(site, one, np.array([take("u8")]), 0)
        if kind == "p":
            return f"0x{int(take('u8')):x}"
        return (spec + kind.replace("a", "g").replace("A", "G")) % float(take("f8"))

    return _CONVERSION.sub(shown, text)
