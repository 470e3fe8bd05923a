"""Executes the dozen machine instructions that ptxas generates for `tensormap.replace`, to see which bits they
write."""

from __future__ import annotations

import re
import struct

MASK = 0xFFFFFFFF
PARAMETERS = 0x380
"""The offset of the kernel's parameters in the constant bank, on sm_100 and newer."""
_TEXT = re.compile(r"(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>.*)")
_MEMORY = re.compile(r"\[R\d+\.64(?:\+(0x[0-9a-f]+))?\]")


def execute(program: list[str], before: bytes, parameters: dict[int, int]) -> bytes:
    """Return the 128 bytes of the map, after the program. `parameters` are 32-bit words by offset."""
    memory, registers = bytearray(before), dict[str, int]()

    def value(operand: str) -> int:
        if operand.startswith("c["):
            return parameters.get(int(operand.split("[")[2].rstrip("]"), 16) - PARAMETERS, 0) & MASK
        return int(operand, 0) & MASK if operand.lstrip("-")[0].isdigit() else registers.get(operand.split(".")[0], 0)

    for line in program:
        match = _TEXT.fullmatch(line)
        assert match, line
        opcode, (target, *sources) = match["opcode"], (*re.split(r",\s*", match["operands"].strip()), "")
        match opcode.split("."):
            case ["EXIT" | "BRA" | "NOP" | "LDCU", *_]:
                continue
            case ["LDC", *size]:
                registers[target] = value(sources[0])
                if size:
                    registers[f"R{int(target[1:]) + 1}"] = value(re.sub("0x[0-9a-f]+]$", _four_more, sources[0]))
            case ["LDG", "E"]:
                registers[target] = int.from_bytes(memory[_place(line) : _place(line) + 4], "little")
            case ["STG", "E", *size]:
                words = [sources[0]] + [f"R{int(sources[0][1:]) + 1}"] * bool(size)
                data = struct.pack(f"<{len(words)}I", *map(value, words))
                memory[_place(line) : _place(line) + len(data)] = data
            case ["HFMA2", *_]:
                registers[target] = _half(sources[3]) | _half(sources[2]) << 16
            case _:
                registers[target] = _compute(opcode, [value(s) for s in sources if s and s[0] != "!"])
    return bytes(memory)


def _four_more(offset: re.Match[str]) -> str:
    return f"{int(offset[0][:-1], 16) + 4:#x}]"


def _place(line: str) -> int:
    match = _MEMORY.search(line)
    assert match, line
    return int(match[1] or "0", 16)


def _half(number: str) -> int:
    return struct.unpack("<H", struct.pack("<e", float(number)))[0]


def _compute(opcode: str, values: list[int]) -> int:
    match opcode:
        case "LOP3.LUT":
            a, b, c, table = values
            rows = (
                ((a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)) for i in range(8) if table >> i & 1
            )
            result = 0
            for row in rows:
                result |= row
        case "MOV":
            result = values[0]
        case "IMAD.MOV.U32" | "IADD3" | "VIADD":
            result = sum(values)
        case "IMAD.SHL.U32":
            result = values[0] * values[1] + values[2]
        case "SHF.L.U32":
            result = values[0] << values[1]
        case "SHF.R.U32.HI":
            result = values[2] >> values[1]
        case "SHF.R.U64":
            result = (values[0] | values[2] << 32) >> values[1]
        case _:
            raise AssertionError(f"no semantics for {opcode}")
    return result & MASK
