"""Line-number programs of DWARF, versions 2 to 4, as compilers store them in cubins: which line each address of a
function comes from. Reads no machine code."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pyptx.toolchain.elf import Elf, list_relocations

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_FIRST_WITH_MOST_OPERATIONS, _LAST_VERSION = 4, 4


class Row(NamedTuple):
    """The line of the addresses from this one to that of the next row; line 0 is none, and ends a function. The file
    is empty where the section has one for all lines."""

    function: str
    address: int
    file: str
    line: int


def read_line_table(elf: Elf, name: str) -> list[Row]:
    """Return the rows of a section, such as `.debug_line`, in the order of the program. ValueError for a damaged one,
    or one of another version."""
    section = elf.find_section(name)
    if section is None:
        return []
    functions = {
        offset: symbol
        for other in elf.sections
        if other.name in (f".rel{name}", f".rela{name}")
        for offset, _, symbol, _ in list_relocations(elf, other)
    }
    try:
        return list(_read_units(section.data, functions))
    except (struct.error, IndexError) as why:
        raise ValueError(f"damaged section {name}: {why}") from None


def _read_units(data: bytes, functions: dict[int, str]) -> Iterator[Row]:
    offset = 0
    while offset + 4 <= len(data):
        (size,) = struct.unpack_from("<I", data, offset)
        yield from _read_unit(data, offset + 4, offset + 4 + size, functions)
        offset += 4 + size


@dataclass
class _Reader:
    data: bytes
    offset: int

    def byte(self) -> int:
        self.offset += 1
        return self.data[self.offset - 1]

    def unsigned(self) -> int:
        """Read a number in LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        start = self.offset
        value = self.unsigned()
        bits = 7 * (self.offset - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.offset)
        text, self.offset = self.data[self.offset : end].decode("utf-8", "replace"), end + 1
        return text


def _read_unit(data: bytes, offset: int, end: int, functions: dict[int, str]) -> Iterator[Row]:
    """Run the program of one unit."""
    version, header_size = struct.unpack_from("<HI", data, offset)
    if not 2 <= version <= _LAST_VERSION:
        raise ValueError(f"line-number program of DWARF version {version}")
    reader = _Reader(data, offset + 6)
    unit = reader.byte()
    reader.offset += version >= _FIRST_WITH_MOST_OPERATIONS
    reader.byte()
    base, step, first_special = struct.unpack_from("<bBB", data, reader.offset)
    lengths = reader.offset + 2
    reader.offset += 2 + first_special
    files = _read_files(reader)
    reader.offset = offset + 6 + header_size
    function, address, file, line = "", 0, 1, 1
    while reader.offset < end:
        number = reader.byte()
        if number >= first_special:
            address += (number - first_special) // step * unit
            line += base + (number - first_special) % step
            yield Row(function, address, files.get(file, ""), line)
        elif number == 0:
            size = reader.unsigned()
            start, extended = reader.offset, reader.byte()
            if extended == _SET_ADDRESS:
                (address,) = struct.unpack_from("<Q", data, reader.offset)
                function = functions.get(reader.offset, "")
            elif extended == _END_SEQUENCE:
                yield Row(function, address, "", 0)
                function, address, file, line = "", 0, 1, 1
            reader.offset = start + size
        elif number == _COPY:
            yield Row(function, address, files.get(file, ""), line)
        elif number == _ADVANCE_PC:
            address += reader.unsigned() * unit
        elif number == _ADVANCE_LINE:
            line += reader.signed()
        elif number == _SET_FILE:
            file = reader.unsigned()
        elif number == _CONST_ADD_PC:
            address += (255 - first_special) // step * unit
        elif number == _FIXED_ADVANCE_PC:
            address += int.from_bytes(data[reader.offset : reader.offset + 2], "little")
            reader.offset += 2
        else:
            for _ in range(data[lengths + number]):
                reader.unsigned()


def _read_files(reader: _Reader) -> dict[int, str]:
    """Read the folders and files of a unit's header; return the files by their number."""
    folders = [""]
    while folder := reader.text():
        folders.append(folder)
    files: dict[int, str] = {}
    while name := reader.text():
        folder = folders[reader.unsigned()]
        for _ in ("time", "size"):
            reader.unsigned()
        files[len(files) + 1] = f"{folder}/{name}" if folder and not name.startswith("/") else name
    return files
