"""The bytes of numbers and structures as arguments: every size and kind of a parameter, up to its limits."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.ir import Function
from pyptx.parser import parse
from pyptx.sim.launch.arguments import Buffers, encode_parameters
from pyptx.sim.state.address_space import AddressSpace
from tests.sim.kernels import HEAD

_INTEGERS = [f"{kind}{bits}" for kind in "sub" for bits in (8, 16, 32, 64)]


def _encode(params: str, *values: Any) -> bytes:
    """Return the parameter bytes of a kernel with these parameters."""
    (entry,) = parse(f"{HEAD}.visible .entry k({params}) {{ ret; }}").directives
    assert isinstance(entry, Function)
    return bytes(encode_parameters(entry.params, values, Buffers(AddressSpace()), None)[0])


@pytest.mark.parametrize("kind", _INTEGERS)
def test_an_integer_is_as_wide_as_its_parameter(kind: str) -> None:
    bits = int(kind[1:])
    low, high = -(1 << bits - 1), (1 << bits - (kind[0] == "s")) - 1
    for value in (low, low + 1, -1, 0, 1, high - 1, high, True):
        assert _encode(f".param .{kind} n", value) == (value % (1 << bits)).to_bytes(bits // 8, "little")
    for value in (low - 1, high + 1):
        with pytest.raises(PtxError) as caught:
            _encode(f".param .{kind} n", value)
        (found,) = caught.value.diagnostics
        assert found.message == f"`n` is .{kind}, but {value} does not fit"
        assert found.help == f"pass a number from {low} to {high}, or declare a wider parameter"


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, -2.0, 65504.0, float("inf"), 3, -7])
def test_a_float_is_as_wide_as_its_parameter(value: float) -> None:
    for kind, code in (("f32", "<f"), ("f64", "<d")):
        assert _encode(f".param .{kind} x", value) == struct.pack(code, value)
    for bits, code in ((16, "<e"), (32, "<f"), (64, "<d")):
        is_float = isinstance(value, float)
        expected = struct.pack(code, value) if is_float else int(value).to_bytes(bits // 8, "little", signed=True)
        assert _encode(f".param .b{bits} x", value) == expected


@pytest.mark.parametrize(
    ("param", "kind"),
    [(f".{kind} x", kind) for kind in (*_INTEGERS, "b128") if kind[0] != "b" or kind in ("b8", "b128")],
)
def test_a_fraction_does_not_become_an_integer(param: str, kind: str) -> None:
    for value in (1.5, 2.0):
        with pytest.raises(PtxError) as caught:
            _encode(f".param {param}", value)
        (found,) = caught.value.diagnostics
        assert found.message == f"`x` is .{kind}, but {value} is not an integer"


@pytest.mark.parametrize(
    ("kind", "size", "value"), [("f32", 2, 1.5), ("f32", 4, 1.5), ("f64", 1, 1), ("b8", 8, 2.0), ("b8", 24, 2.0)]
)
def test_a_number_is_no_array_of_floats_and_a_float_no_array(kind: str, size: int, value: float) -> None:
    with pytest.raises(PtxError) as caught:
        _encode(f".param .{kind} x[{size}]", value)
    (found,) = caught.value.diagnostics
    assert found.message == f"`x` is an array of .{kind}, but {value} is one number"
    assert found.help == "for a structure, pass sim.Struct(…) or its bytes"


@pytest.mark.parametrize(
    ("kind", "value", "nearest"),
    [("f32", (1 << 24) + 1, 1 << 24), ("f32", (1 << 24) + 3, (1 << 24) + 4), ("f64", (1 << 53) + 1, 1 << 53)],
)
def test_an_integer_that_a_float_cannot_represent_is_refused(kind: str, value: int, nearest: int) -> None:
    assert _encode(f".param .{kind} x", nearest) == struct.pack("<f" if kind == "f32" else "<d", nearest)
    with pytest.raises(PtxError) as caught:
        _encode(f".param .{kind} x", value)
    (found,) = caught.value.diagnostics
    assert found.message == f"`x` is .{kind}, which cannot represent {value}; the nearest value is {nearest}"
    assert found.help == f"pass float({value}) to round it"


@pytest.mark.parametrize(
    ("param", "value", "help"),
    [
        (".f32 x", 1e39, None), (".f32 x", 1 << 128, None), (".f64 x", -(1 << 1024), None), (".b16 x", 65536.0, None),
        (".align 8 .b8 x[16]", 1 << 128, "for a structure, pass sim.Struct(…) or its bytes"),
        (".b8 x[9]", -1 - (1 << 71), "for a structure, pass sim.Struct(…) or its bytes"),
        (".b8 x[8]", 1 << 64, f"pass a number from {-(1 << 63)} to {(1 << 64) - 1}, or declare a wider parameter"),
    ],
)  # fmt: skip
def test_a_number_that_does_not_fit(param: str, value: float, help: str | None) -> None:
    with pytest.raises(PtxError) as caught:
        _encode(f".param {param}", value)
    (found,) = caught.value.diagnostics
    assert found.message.endswith(f"but {'an integer of 1025 bits' if value == -(1 << 1024) else value} does not fit")
    assert found.help == help


def test_a_number_fills_an_array_of_bytes() -> None:
    for size in (3, 8, 9, 16):
        for value in (0, -1, 77, (1 << 8 * size) - 1, -(1 << 8 * size - 1)):
            assert _encode(f".param .b8 x[{size}]", value) == (value % (1 << 8 * size)).to_bytes(size, "little")


def test_each_argument_is_at_the_offset_of_its_parameter() -> None:
    data = _encode(".param .u8 a, .param .u32 b, .param .u16 c, .param .u64 d, .param .b8 e[3]", 1, 2, 3, 4, b"xyz")
    assert data == struct.pack("<BxxxIHxxxxxxQ3s", 1, 2, 3, 4, b"xyz")


def test_the_fields_of_a_structure_are_at_their_offsets() -> None:
    fields: list[tuple[int, Any]] = [(0, np.uint8(7)), (2, np.int16(-2)), (8, np.float64(1.5)), (18, b"ab"), (19, b"c")]
    assert _encode(".param .b8 s[20]", sim.Struct(20, fields)) == struct.pack("<Bxhxxxxdxx2s", 7, -2, 1.5, b"ac")
    for offset, size in ((-1, 1), (20, 1), (17, 4), (0, 21)):
        with pytest.raises(PtxError) as caught:
            _encode(".param .b8 s[20]", sim.Struct(20, [(offset, bytes(size))]))
        (found,) = caught.value.diagnostics
        assert found.message == f"`s`: the field at byte {offset} lies outside a structure of 20 bytes"


@pytest.mark.parametrize(
    ("param", "value", "text"),
    [
        (".u32 n", np.uint64(1), "`n` is .u32 of 4 bytes, but the argument has 8"),
        (".u64 n", b"abc", "`n` is .u64 of 8 bytes, but the argument has 3"),
        (".b8 n[5]", sim.Struct(6, []), "`n` is .b8[5] of 5 bytes, but the argument has 6"),
        (".b8 n[1]", b"", "`n` is .b8[1] of 1 bytes, but the argument has 0"),
    ],
)
def test_an_argument_of_another_size(param: str, value: Any, text: str) -> None:
    with pytest.raises(PtxError, match=re.escape(text) + "(\n|$)"):
        _encode(f".param {param}", value)


@pytest.mark.parametrize(
    ("names", "problem", "help"),
    [
        ({"first": 1}, "missing argument `second`", "pass args={'first': …, 'second': …}"),
        ({}, "missing arguments `first`, `second`", "pass args={'first': …, 'second': …}"),
        ({"first": 1, "second": 2, "x": 3}, "unknown argument `x`", "pass args={'first': …, 'second': …}"),
        ({"first": 1, "secnd": 2}, "missing argument `second`; unknown argument `secnd`", "did you mean `second`?"),
        ({"first": 1, "second": 2, "firt": 3, "secon": 4}, "unknown arguments `firt`, `secon`",
         "did you mean `first`, `second`?"),
    ],
)  # fmt: skip
def test_names_that_do_not_match(names: dict[str, int], problem: str, help: str) -> None:
    (entry,) = parse(f"{HEAD}.visible .entry k(.param .u32 first, .param .u32 second) {{ ret; }}").directives
    assert isinstance(entry, Function)
    with pytest.raises(PtxError) as caught:
        encode_parameters(entry.params, names, Buffers(AddressSpace()), entry.origin)
    (found,) = caught.value.diagnostics
    assert (found.message, found.help, found.line) == (problem, help, 4)


def test_the_number_of_arguments() -> None:
    with pytest.raises(PtxError) as caught:
        _encode(".param .u32 a, .param .b8 b[4]", 1)
    text = "the kernel has 2 parameters, found 1 argument; the parameters are: a (.u32), b (.b8)"
    assert caught.value.diagnostics[0].message == text
    with pytest.raises(PtxError) as caught:
        _encode("", 1)
    assert caught.value.diagnostics[0].message == "the kernel has 0 parameters, found 1 argument"
