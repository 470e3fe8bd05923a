"""The resources of each kernel in a cubin, read from the cubin itself; spills come from ptxas' statistics."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace

from pyptx.isa.limits import find_shared_start
from pyptx.toolchain.assembler import assemble
from pyptx.toolchain.cubin import Cubin
from pyptx.toolchain.elf import Elf, Section, iterate_attributes, read_elf

# Attributes of `.nv.info`, with the names that `cuobjdump -elf` prints.
_MAX_THREADS, _REQNTID, _FRAME_SIZE, _MIN_STACK_SIZE = 0x05, 0x10, 0x11, 0x12
_CBANK_PARAM_SIZE, _REGCOUNT, _CTA_PER_CLUSTER, _NUM_BARRIERS = 0x19, 0x2F, 0x3D, 0x4C

_SPILLS = re.compile(
    r"Function properties for (?P<name>\S+)\n[^\n]*? bytes stack frame, "
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)

Dims = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one kernel. Sizes are in bytes: `frame` is its own stack frame per thread, `stack` includes the
    functions it calls; `shared` is the shared memory of a CTA without the reserved KiB, of which the launch must
    request `dynamic_shared`; `constant` maps bank to size (bank 0 holds the parameters). Spills are None without the
    assembler's log."""

    name: str
    registers: int
    frame: int
    stack: int
    shared: int
    local: int
    constant: tuple[tuple[int, int], ...]
    parameters: int
    barriers: int
    spill_stores: int | None
    spill_loads: int | None
    max_threads: Dims | None
    required_threads: Dims | None
    cluster: Dims | None
    dynamic_shared: int = 0


def resources(
    source: str | bytes | Cubin, target: str | None = None, *, dynamic_shared: int = 0
) -> dict[str, Resources]:
    """Return the resources of each entry of a module by name, in the cubin's order. PTX text is assembled first. A
    cubin does not record how much dynamic shared memory its launches request: pass it in bytes as `dynamic_shared`."""
    if dynamic_shared < 0:
        raise ValueError(f"dynamic_shared must be a size in bytes, found {dynamic_shared}")
    cubin = assemble(source, target) if isinstance(source, str) else source
    elf = read_elf(bytes(cubin))
    spills = {m["name"]: m for m in _SPILLS.finditer(cubin.log)} if isinstance(cubin, Cubin) else {}
    numbers = _read_numbers_by_symbol(elf)
    by_name: dict[str, Resources] = {}
    for index, symbol in enumerate(elf.symbols):
        if symbol.is_entry and symbol.section:
            needs = _read_entry(elf, symbol.name, numbers.get(index, {}), spills.get(symbol.name))
            shared = needs.shared + dynamic_shared
            by_name[symbol.name] = replace(needs, shared=shared, dynamic_shared=dynamic_shared)
    return by_name


def _read_numbers_by_symbol(elf: Elf) -> dict[int, dict[int, int]]:
    """Return the `.nv.info` attributes that hold (symbol, number) pairs: registers, frames, stacks."""
    table: dict[int, dict[int, int]] = {}
    section = elf.find_section(".nv.info")
    for attribute, value in iterate_attributes(section) if section else ():
        if len(value) == 8:
            symbol, number = struct.unpack("<II", value)
            table.setdefault(symbol, {})[attribute] = number
    return table


def _read_entry(elf: Elf, name: str, numbers: dict[int, int], spills: re.Match[str] | None) -> Resources:
    info = elf.find_section(f".nv.info.{name}")
    own = dict(iterate_attributes(info)) if info else {}
    return Resources(
        name=name,
        registers=numbers.get(_REGCOUNT, 0),
        frame=numbers.get(_FRAME_SIZE, 0),
        stack=numbers.get(_MIN_STACK_SIZE, numbers.get(_FRAME_SIZE, 0)),
        shared=_compute_static_shared(elf, name),
        local=_get_size(elf.find_section(f".nv.local.{name}")),
        constant=_read_constant_banks(elf, name),
        parameters=int.from_bytes(own.get(_CBANK_PARAM_SIZE, b""), "little"),
        barriers=_read_barriers(elf, name, own),
        spill_stores=int(spills["stores"]) if spills else None,
        spill_loads=int(spills["loads"]) if spills else None,
        max_threads=_read_dims(own.get(_MAX_THREADS)),
        required_threads=_read_dims(own.get(_REQNTID)),
        cluster=_read_dims(own.get(_CTA_PER_CLUSTER)),
    )


def _compute_static_shared(elf: Elf, name: str) -> int:
    return max(0, _get_size(elf.find_section(f".nv.shared.{name}")) - find_shared_start(elf.arch))


def _read_barriers(elf: Elf, name: str, own: dict[int, bytes]) -> int:
    """Return the number of barriers, which CUDA 12 kept in the flags of the code section."""
    if _NUM_BARRIERS in own:
        return int.from_bytes(own[_NUM_BARRIERS][:1], "little")
    code = elf.find_section(f".text.{name}")
    return code.flags >> 20 & 0x7F if code else 0


def _read_constant_banks(elf: Elf, name: str) -> tuple[tuple[int, int], ...]:
    """Return (bank, size) of the kernel's own banks and of those that the module shares."""
    banks: dict[int, int] = {}
    for section in elf.sections:
        match = re.fullmatch(r"\.nv\.constant(\d+)(?:\.(.*))?", section.name, re.DOTALL)
        if match and match[2] in (None, name):
            banks[int(match[1])] = section.size
    return tuple(sorted(banks.items()))


def _get_size(section: Section | None) -> int:
    return section.size if section else 0


def _read_dims(value: bytes | None) -> Dims | None:
    if value is None or len(value) != 12:
        return None
    x, y, z = struct.unpack("<III", value)
    return x, y, z
