"""Numbers, names of modifiers, and nested operands in readable Python: what stays as PTX spells it."""

from __future__ import annotations

import struct

import pytest

from pyptx.codegen.printer import format_expression
from pyptx.codegen.sugar_operands import chain, number, shorten_float, spell_word
from tests.codegen.sugared import find_difference, statements

_PLAIN = {
    "0": "0", "7": "7", "-5": "-5", "9" * 39: "9" * 39, "-" + "9" * 38: "-" + "9" * 38, "0f3F800000": "1.0",
    "0f3DCCCCCD": "0.1", "0f80000000": "-0.0", "0f7F7FFFFF": "3.4028235e+38", "0f00000001": "1e-45",
    "0d3FF0000000000000": "1.0", "0d3FB999999999999A": "0.1", "0dBFF0000000000001": "-1.0000000000000002",
}  # fmt: skip
_SPELLED = [
    "007", "-0", "0x10", "10U", "9" * 40, "-" + "9" * 39, "0f3f800000", "0F3F800000", "0f7F800000", "0fFF800000",
    "0f7FC00000", "0f3F8000000", "0d3ff0000000000000", "0D3FF0000000000000", "0d7FF0000000000000",
    "0dFFF0000000000000", "0d7FF8000000000000", "0d3FF00000000000000", "1.5", "0b11",
]  # fmt: skip


@pytest.mark.parametrize("text", [*_PLAIN, *_SPELLED])
def test_a_number_is_plain_if_ptx_would_spell_it_the_same(text: str) -> None:
    assert format_expression(number(text)) == _PLAIN.get(text, f'ptx.imm("{text}")')


def test_a_short_number_has_the_fewest_digits_of_its_single_precision() -> None:
    for bits in (*range(0x3F800000, 0x3F800400, 7), *range(1, 0x7F7FFFFF, 0x2F31337)):
        value = struct.unpack(">f", bits.to_bytes(4, "big"))[0]
        short = shorten_float(value)
        assert struct.pack(">f", short) == bits.to_bytes(4, "big")
        digits = len(repr(short).partition("e")[0].replace(".", "").strip("0"))
        assert digits <= 1 or struct.pack(">f", float(f"{value:.{digits - 1}g}")) != bits.to_bytes(4, "big")


@pytest.mark.parametrize(
    ("modifier", "name"),
    [
        ("s32", "s32"), ("1d", "_1d"), ("and", "and_"), ("async", "async_"), ("shared::cta", "shared__cta"),
        ("a:b", None), ("a::", None), ("é", None), ("", None), ("a-b", None), ("_", "_"),
    ],
)  # fmt: skip
def test_the_name_of_a_modifier(modifier: str, name: str | None) -> None:
    assert spell_word(modifier) == name


@pytest.mark.parametrize(
    ("opcode", "modifiers", "python"),
    [
        ("add", (".s32",), "ptx.inst.add.s32"), ("and", (".b32",), "ptx.inst.and_.b32"), ("ret", (), "ptx.inst.ret"),
        ("tex", (".1d", ".v4", ".s32", ".s32"), "ptx.inst.tex._1d.v4.s32.s32"),
        ("made", (".up", ".a:b", ".c"), 'ptx.inst.made.up["a:b"].c'),
        ("ld", (".shared::cta", ".u32"), "ptx.inst.ld.shared__cta.u32"),
        ("cp", (".async", ".commit_group"), "ptx.inst.cp.async_.commit_group"),
    ],
)  # fmt: skip
def test_the_chain_of_an_instruction(opcode: str, modifiers: tuple[str, ...], python: str) -> None:
    assert format_expression(chain(opcode, modifiers)) == python


ADDRESSES = {
    "[%rd1]": 'ptx.ld(u32, rd[1], space="shared")',
    "[%rd1+8]": 'ptx.ld(u32, ptx.addr(rd[1], 8), space="shared")',
    "[%rd1+-8]": 'ptx.ld(u32, ptx.addr(rd[1], -8), space="shared")',
    "[%rd1+0]": 'ptx.ld(u32, ptx.addr(rd[1], 0), space="shared")',
    "[box]": 'ptx.ld(u32, ptx.addr("box"), space="shared")',
    "[box+4]": 'ptx.ld(u32, ptx.addr("box", 4), space="shared")',
    "[%rd1+0x8]": 'ptx.inst.ld.shared.u32(r1, ptx.addr(rd[1], ptx.imm("0x8")))',
    "[%rd1+010]": 'ptx.inst.ld.shared.u32(r1, ptx.addr(rd[1], ptx.imm("010")))',
    "[16]": "ptx.inst.ld.shared.u32(r[1], ptx.addr(16))",
    "[box+(1+2)]": 'ptx.inst.ld.shared.u32(r1, ptx.addr("box", ptx.op.paren(ptx.op.binary("+", 1, 2))))',
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses(address: str) -> None:
    ptx, before = f"ld.shared.u32 %r1, {address};\n", ".shared .b32 box[9];\n"
    assert statements(ptx, before)[-1] == ADDRESSES[address]
    assert find_difference(ptx, before) is None


@pytest.mark.parametrize(
    ("value", "python"),
    [
        ("((((5))))", "ptx.mov(u32, r[2], ((((5,),),),))"),
        ("(((((5)))))", "ptx.inst.mov.u32(r[2], (((((5,),),),),))"),
        ("box+4+4", 'ptx.mov(u32, r[2], ptx.op.plus("box", ptx.op.plus(4, 4)))'),
        ("4*4", 'ptx.inst.mov.u32(r[2], ptx.op.binary("*", 4, 4))'),
    ],
)
def test_expressions_that_are_not_sums_or_too_deep_are_written_as_they_are(value: str, python: str) -> None:
    ptx, before = f"mov.u32 %r2, {value};\nmov.u32 %r2, 1;\n", ".shared .b32 box[9];\n"
    assert statements(ptx, before) == [python, "ptx.mov(u32, r[2], 1)"]
    assert find_difference(ptx, before) is None
