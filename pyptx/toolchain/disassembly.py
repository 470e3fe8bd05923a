"""SASS: as printed by nvdisasm, as instructions mapped to PTX and source lines, and compared between two PTX texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyptx.diagnostics import PtxError
from pyptx.toolchain.assembler import assemble, assemble_with_nvjitlink, assemble_with_ptxas
from pyptx.toolchain.cubin import Cubin, Engine
from pyptx.toolchain.elf import Elf, Section, Symbol, iterate_attributes, list_relocations, read_elf
from pyptx.toolchain.process import DEFAULT_TIMEOUT, create_private_folder, run
from pyptx.toolchain.tools import find_tool

_FUNCTION = re.compile(r"\s*\.type\s+(?P<name>\S+),@function")
_LABEL = re.compile(r"(?P<name>[^\s:]+):")
_PLACE = re.compile(r'\s*//## File "(?P<file>.*?)", line (?P<line>\d+)(?P<inlined> inlined at .*)?')
_INSTRUCTION = re.compile(r"\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<text>.*?)\s*;?\s*")
_OPCODE = re.compile(r"(?:@!?\w+\s+)?(?P<opcode>[A-Z][\w.]*)")
_PTX_TEXT = ".nv_debug_ptx_txt"


@dataclass(frozen=True, slots=True)
class SassInstruction:
    """One machine instruction: its address, its text, the line of PTX that it came from, and the source `file` and
    `line` that the PTX states with `.loc`. Lines are None if the line table has no entry."""

    function: str
    address: int
    opcode: str
    text: str
    ptx_line: int | None = None
    file: str | None = None
    line: int | None = None


def sass(
    source: str | bytes | Cubin, target: str | None = None, *, lines: bool = False, timeout: float = DEFAULT_TIMEOUT
) -> str:
    """Return nvdisasm's text of a cubin, or of PTX, which is assembled first. `lines=True` adds the PTX and source
    places: comments `//## File "…", line N`, where the file `.nv_debug_ptx_txt` is the PTX."""
    tool = find_tool("nvdisasm")
    cubin = assemble(source, target, lineinfo=lines, timeout=timeout) if isinstance(source, str) else source
    read_elf(bytes(cubin))
    with create_private_folder() as folder:
        (folder / "in.cubin").write_bytes(bytes(cubin))
        places = ["--print-line-info-inline", "--print-line-info-ptx"] if lines else []
        run_result = run([tool.path, "--print-code", *places, "in.cubin"], cwd=folder, timeout=timeout)
    if run_result.status != 0:
        raise run_result.make_failure()
    if not run_result.output.strip():
        raise run_result.make_useless_error("text")
    return run_result.output


def disassemble(
    source: str | bytes | Cubin, target: str | None = None, *, timeout: float = DEFAULT_TIMEOUT
) -> tuple[SassInstruction, ...]:
    """Return every instruction with its places. PTX is assembled with line information; a cubin has places if it was
    (`assemble(…, lineinfo=True)`, `nvcc -lineinfo`)."""
    return tuple(_parse_instructions(sass(source, target, lines=True, timeout=timeout)))


def _parse_instructions(listing: str) -> Iterator[SassInstruction]:
    """Parse the text. A place applies to the following instructions up to the next place of its kind, PTX or source.
    For inlined code the innermost place comes first and is kept."""
    names: set[str] = set()
    function, ptx_line, file, line, fresh = "", None, None, None, True
    for text in listing.split("\n"):
        if place := _PLACE.match(text):
            if place["file"].startswith(_PTX_TEXT):
                ptx_line = int(place["line"])
            elif fresh:
                file, line, fresh = place["file"], int(place["line"]), not place["inlined"]
            else:
                fresh = not place["inlined"]
        elif match := _INSTRUCTION.fullmatch(text):
            opcode = _OPCODE.match(match["text"])
            address = int(match["address"], 16)
            yield SassInstruction(
                function, address, opcode["opcode"] if opcode else "", match["text"], ptx_line, file, line
            )
            fresh = True
        elif function_match := _FUNCTION.match(text):
            names.add(function_match["name"])
        elif (label := _LABEL.fullmatch(text.strip())) and label["name"] in names:
            function, ptx_line, file, line, fresh = label["name"], None, None, None, True


def sass_equal(ptx_a: str, ptx_b: str, target: str | None = None, *, engine: Engine | None = None) -> bool:
    """Tell whether two PTX texts compile to the same machine code; see `sass_difference`."""
    return not sass_difference(ptx_a, ptx_b, target, engine=engine)


def sass_difference(
    ptx_a: str, ptx_b: str, target: str | None = None, *, engine: Engine | None = None
) -> tuple[str, ...]:
    """Return the names of the functions and data whose machine code, relocations, resources, launch limits or initial
    values differ, in either text; empty if the two are the same program. Names of functions and variables matter; their
    order and debug information do not. Both are compiled as relocatable code, so that device functions and references
    to other modules are compared too. `engine=None` uses nvJitLink in this process if it is installed."""
    parts_a, parts_b = (_collect_program(_assemble_relocatable(ptx, target, engine)) for ptx in (ptx_a, ptx_b))
    return tuple(sorted(name for name in {*parts_a, *parts_b} if parts_a.get(name) != parts_b.get(name)))


def _assemble_relocatable(ptx: str, target: str | None, engine: Engine | None) -> Cubin:
    if engine == "ptxas":
        return assemble_with_ptxas(ptx, target, options=["-c"])
    try:
        return assemble_with_nvjitlink(ptx, target, relocatable=True)
    except PtxError:
        # Not installed, or a text that only ptxas accepts, such as one that starts with a `#` line.
        if engine:
            raise
    return assemble_with_ptxas(ptx, target, options=["-c"])


_SKIPPED = (".debug", ".nv_debug_", ".note", ".rel.debug", ".rela.debug", ".rel.nv_debug_", ".rela.nv_debug_")
_TABLES = {"", ".strtab", ".shstrtab", ".symtab", ".symtab_shndx", ".nv.callgraph", ".nv.prototype", ".nv.rel.action"}
_MERCURY = ".nv.merc"
"""Sections of the second encoding that ptxas writes for newer architectures, each named after its counterpart."""
_WITH_SYMBOLS = {0x0A, 0x0F, 0x11, 0x12, 0x23, 0x2F}
"""Attributes with symbol numbers, which depend on the order of the text; those about sizes are replaced by names."""


def _collect_program(cubin: Cubin) -> dict[str, object]:
    """Return the content of the program by section name, without anything that depends on order or debugging."""
    elf = read_elf(cubin.data)
    parts: dict[str, object] = {}
    symbols: dict[str, list[Symbol]] = {}
    for section in elf.sections:
        name = section.name.removeprefix(_MERCURY)
        if name in _TABLES or name.startswith(_SKIPPED):
            continue
        parts[section.name] = _read_content(elf, section)
    for symbol in elf.symbols:
        inside = elf.sections[symbol.section].name if 0 < symbol.section < len(elf.sections) else str(symbol.section)
        if symbol.name and (inside in parts or inside.isdigit()):
            name = _drop_number(symbol.name)
            symbols.setdefault(f"{inside}: {name}", []).append(symbol._replace(section=0, name=name))
    return parts | {name: sorted(group) for name, group in symbols.items()}


def _drop_number(name: str) -> str:
    """Drop the number that ptxas appends to a function's own shared variables (`$tile__12`): it counts lines of the
    text."""
    return _NUMBERED.sub(r"\1", name) if name.startswith("$") else name


_NUMBERED = re.compile(r"(.*)__\d+")


def _read_content(elf: Elf, section: Section) -> object:
    if section.name.startswith(".rel"):
        return tuple(
            sorted(
                (offset, kind, _drop_number(name), addend)
                for offset, kind, name, addend in list_relocations(elf, section)
            )
        )
    if section.name == ".nv.info":
        return tuple(sorted(_name_symbol(elf, *row) for row in iterate_attributes(section)))
    if section.name.startswith(".nv.info."):
        return tuple(sorted(row for row in iterate_attributes(section) if row[0] not in _WITH_SYMBOLS))
    if section.name.startswith((".nv_debug.shared", ".nv.shared")):
        # Shared variables. The file has no content for them, although nvJitLink marks them as if it did.
        return section.size
    return (section.flags, section.size, section.data)


def _name_symbol(elf: Elf, attribute: int, value: bytes) -> tuple[int, str, bytes]:
    """Return an attribute with its leading symbol number as a name."""
    if attribute in _WITH_SYMBOLS and len(value) >= 4:
        index = int.from_bytes(value[:4], "little")
        if index < len(elf.symbols):
            return attribute, _drop_number(elf.symbols[index].name), value[4:]
    return attribute, "", value
