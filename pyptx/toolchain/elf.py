"""Reads a cubin: ELF64 sections, symbols, relocations and the attributes of `.nv.info`. Knows no PTX."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pyptx.diagnostics import PtxError
from pyptx.toolchain import rules

ELF_MAGIC = b"\x7fELF\x02\x01"
"""The first bytes of a 64-bit little-endian file."""
_NOBITS = 8
_ENTRY = 0x10


class Symbol(NamedTuple):
    """One symbol; `section` is the index of its section, 0 if it is defined elsewhere."""

    name: str
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_entry(self) -> bool:
        return bool(self.other & _ENTRY) and self.info & 15 == 2


class Section(NamedTuple):
    """One section; `data` is empty for memory without contents in the file, `size` is always its size."""

    name: str
    kind: int
    flags: int
    data: bytes
    size: int
    link: int
    info: int


@dataclass(frozen=True, slots=True)
class Elf:
    """The parts of a cubin. `arch` is its architecture number; the header keeps it in bits 8 to 15 since CUDA 13 (ABI
    version 8), in the lowest byte before."""

    arch: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...] = field(default=())

    def find_section(self, name: str) -> Section | None:
        return next((s for s in self.sections if s.name == name), None)


def read_elf(data: bytes) -> Elf:
    """Return the parts of a cubin; PtxError if the bytes are not one."""
    if not data.startswith(ELF_MAGIC):
        raise _make_error("expected a cubin (a 64-bit little-endian ELF file)")
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise _make_error(f"damaged cubin: {error}") from error


def _make_error(message: str) -> PtxError:
    return PtxError([rules.TOOL_FAILED.report(None, message)])


def _read(data: bytes) -> Elf:
    (start,), (flags,) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<I", data, 0x30)
    count, names = struct.unpack_from("<HH", data, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i) for i in range(count)]
    strings = data[headers[names][4] : headers[names][4] + headers[names][5]]
    sections = tuple(
        Section(
            _read_name(strings, h[0]),
            h[1],
            h[2],
            b"" if h[1] == _NOBITS else data[h[4] : h[4] + h[5]],
            h[5],
            h[6],
            h[7],
        )
        for h in headers
    )
    return Elf(flags >> 8 & 0xFF if data[8] >= 8 else flags & 0xFF, sections, tuple(_read_symbols(sections)))


def _read_symbols(sections: tuple[Section, ...]) -> Iterator[Symbol]:
    for table in (s for s in sections if s.name == ".symtab"):
        strings = sections[table.link].data
        for name, info, other, section, value, size in struct.iter_unpack("<IBBHQQ", table.data):
            yield Symbol(_read_name(strings, name), info, other, section, value, size)


def _read_name(strings: bytes, start: int) -> str:
    return strings[start : strings.index(b"\0", start)].decode("utf-8", "replace")


def list_relocations(elf: Elf, section: Section) -> tuple[tuple[int, int, str, bytes], ...]:
    """Return the relocations in a `.rel`/`.rela` section as (offset, type, symbol or section name, addend)."""
    size, rows = 24 if section.name.startswith(".rela") else 16, list[tuple[int, int, str, bytes]]()
    for start in range(0, len(section.data), size):
        offset, kind, index = struct.unpack_from("<QII", section.data, start)
        symbol = elf.symbols[index]
        name = symbol.name or elf.sections[symbol.section].name
        rows.append((offset, kind, name, section.data[start + 16 : start + size]))
    return tuple(sorted(rows))


def iterate_attributes(section: Section) -> Iterator[tuple[int, bytes]]:
    """Yield (attribute, value) of a `.nv.info` section: one-byte format, one-byte attribute, and a two-byte value, or a
    two-byte length and the value if the format is 4."""
    offset = 0
    while offset + 4 <= len(section.data):
        kind, attribute, value = struct.unpack_from("<BBH", section.data, offset)
        offset += 4
        if kind == 4:
            yield attribute, section.data[offset : offset + value]
            offset += value
        else:
            yield attribute, value.to_bytes(4, "little")
