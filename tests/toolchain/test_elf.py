"""Facts read from a cubin without a tool."""

from __future__ import annotations

from pyptx.toolchain import assemble
from pyptx.toolchain.elf import list_relocations, read_elf
from tests.toolchain.modules import HEAD

ADDRESSES = HEAD + ".global .u64 table[4];\n.visible .global .u64 starts[2] = {table, table+16};\n"


def test_relocations_say_place_name_and_addend() -> None:
    elf = read_elf(assemble(ADDRESSES).data)
    relocations = [
        (offset, name, addend)
        for section in elf.sections
        if section.name == ".rela.nv.global.init"
        for offset, _, name, addend in list_relocations(elf, section)
    ]
    assert relocations == [(0, "table", bytes(8)), (8, "table", (16).to_bytes(8, "little"))]
