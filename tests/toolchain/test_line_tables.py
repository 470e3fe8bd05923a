"""Line-number programs, byte by byte, as the DWARF standard defines them (section 6.2)."""

from __future__ import annotations

import itertools
import struct

import pytest

from pyptx.toolchain.elf import Elf, Section, Symbol
from pyptx.toolchain.line_tables import Row, read_line_table

FILES = b"dir\0\0a.cu\0\1\0\0/b.cu\0\1\0\0\0"
LENGTHS = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
SET_ADDRESS, END = b"\0\x09\2" + bytes(8), b"\0\1\1"


def make_unit(
    program: bytes,
    version: int = 2,
    unit: int = 16,
    minimum: bytes = b"",
    base: int = -5,
    step: int = 14,
    end: bytes = b"",
) -> bytes:
    """Special opcodes start at 13, lines from `base` in `step` steps; `end` is the rest of the header."""
    fields = bytes([unit]) + minimum + struct.pack("<BbBB", 1, base, step, 13)
    rest = fields + LENGTHS + FILES + end
    body = struct.pack("<HI", version, len(rest)) + rest + program
    return struct.pack("<I", len(body)) + body


def read(data: bytes) -> list[tuple[int, str, int]]:
    """Return address, file and line of each row."""
    return [row[1:] for row in read_line_table(make_elf(data), ".debug_line")]


def make_elf(data: bytes, *others: Section) -> Elf:
    return Elf(90, (Section(".debug_line", 1, 0, data, len(data), 0, 0), *others), (Symbol("k", 2, 0x10, 1, 0, 0),))


@pytest.mark.parametrize(
    ("program", "row"),
    [
        (b"\1", (0, "dir/a.cu", 1)),
        (b"\4\2\1", (0, "/b.cu", 1)),
        (b"\3\x90\1\1", (0, "dir/a.cu", 145)),
        (b"\3\xe8\0\3\x7c\1", (0, "dir/a.cu", 101)),
        (b"\2\3\1", (48, "dir/a.cu", 1)),
        (bytes([13 + 14 * 2 + 7]), (32, "dir/a.cu", 3)),
        (b"\x08\1", (17 * 16, "dir/a.cu", 1)),
        (b"\x09\x34\x12\1", (0x1234, "dir/a.cu", 1)),
        (b"\5\x81\1\6\7\x0a\x0b\x0c\3\1", (0, "dir/a.cu", 1)),
        (b"\0\3\x90\1\2\1", (0, "dir/a.cu", 1)),
    ],
    ids=[
        "copy", "set file", "advance line", "back", "advance pc", "special", "constant pc", "fixed pc", "no rows",
        "an opcode of a vendor",
    ],
)  # fmt: skip
def test_opcodes(program: bytes, row: tuple[int, str, int]) -> None:
    assert read(make_unit(SET_ADDRESS + program)) == [row]


def test_the_end_of_a_sequence_is_no_line_and_resets_the_state() -> None:
    rows = read(make_unit(SET_ADDRESS + b"\4\2\3\x05\1\2\4" + END + b"\1"))
    assert rows == [(0, "/b.cu", 6), (64, "", 0), (0, "dir/a.cu", 1)]


def test_version_4_has_a_field_more() -> None:
    special = bytes([13 + 14 * 2 + 7])
    assert read(make_unit(special, 4, minimum=b"\1")) == [(32, "dir/a.cu", 3)]
    assert read(make_unit(special, 3)) == [(32, "dir/a.cu", 3)]


def test_a_special_opcode_advances_by_the_steps_of_the_header() -> None:
    """The constant advance is that of special opcode 255."""
    for number, step in itertools.product(range(13, 256), (9, 11)):
        address, line = divmod(number - 13, step)
        assert read(make_unit(b"\3\x20" + bytes([number, 8, 1]), unit=4, base=-3, step=step)) == [
            (4 * address, "dir/a.cu", 30 + line),
            (4 * (address + 242 // step), "dir/a.cu", 30 + line),
        ]


def test_units_follow_each_other() -> None:
    """The second has a longer header, and the state starts anew."""
    first, second = make_unit(b"\4\2\3\x05\2\4\1"), make_unit(b"\3\x02\1\2\x01\1", unit=1, end=b"\1\2\3")
    assert read(first + second) == [(64, "/b.cu", 6), (0, "dir/a.cu", 3), (1, "dir/a.cu", 3)]
    assert read(first + b"\0\0\0") == [(64, "/b.cu", 6)]


@pytest.mark.parametrize("number", [0, 1, 127, 128, 129, 255, 256, 0x3FFF, 0x4000, 0x12345678])
def test_numbers_of_any_length(number: int) -> None:
    septets = [number >> shift & 127 for shift in range(0, max(1, number.bit_length()), 7)]
    program = b"\2" + bytes([*(septet | 128 for septet in septets[:-1]), septets[-1]]) + b"\1"
    assert read(make_unit(program, unit=1)) == [(number, "dir/a.cu", 1)]


@pytest.mark.parametrize(
    ("encoded", "number"),
    [(b"\2", 2), (b"\x7e", -2), (b"\xff\0", 127), (b"\x81\x7f", -127), (b"\x80\1", 128), (b"\x80\x7f", -128)],
)
def test_signed_numbers(encoded: bytes, number: int) -> None:
    """The examples of the standard."""
    assert read(make_unit(b"\3\xe8\7\3" + encoded + b"\1")) == [(0, "dir/a.cu", 1001 + number)]


def test_relocations_name_the_function() -> None:
    program = SET_ADDRESS + b"\1"
    header = struct.pack("<BBbBB", 1, 1, -5, 14, 13) + LENGTHS + FILES
    body = struct.pack("<HI", 2, len(header)) + header + program
    relocation = struct.pack("<QIIQ", 4 + len(body) - len(program) + 3, 2, 0, 0)
    elf = make_elf(struct.pack("<I", len(body)) + body, Section(".rela.debug_line", 4, 0, relocation, 24, 0, 0))
    assert read_line_table(elf, ".debug_line") == [Row("k", 0, "dir/a.cu", 1)]
    assert read_line_table(elf, ".nv_debug_line_sass") == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack("<IHI", 100, 5, 4), "line-number program of DWARF version 5"),
        (struct.pack("<IHI", 100, 1, 4), "line-number program of DWARF version 1"),
        (struct.pack("<I", 100), "damaged section .debug_line"),
        (struct.pack("<IH", 100, 2), "damaged section .debug_line"),
        (struct.pack("<IHI", 100, 2, 4), "damaged section .debug_line"),
    ],
)
def test_damaged_programs(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_line_table(make_elf(data), ".debug_line")
