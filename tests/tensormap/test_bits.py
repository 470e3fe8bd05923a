"""The 128 bytes: encode and decode are inverses, `tensormap.replace` agrees with both, and ptxas with all of them."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.tensormap import (
    SIZE,
    ElementType,
    Fill,
    Im2col,
    Im2colMode,
    Interleave,
    L2Promotion,
    Swizzle,
    TensorMap,
    decode,
    encode,
    problems,
    replace_field,
)
from pyptx.toolchain import disassemble
from tests.tensormap.machine import execute

ADDRESSES = st.integers(0, 2**60 - 1).map(lambda n: n * 16)
SIZES = st.integers(1, 2**32)
STRIDES = st.integers(0, 2**36 - 1).map(lambda n: n * 16)


@st.composite
def im2cols(draw: st.DrawFn, rank: int) -> Im2col:
    mode = draw(st.sampled_from(Im2colMode))
    bits = {3: 16, 4: 8, 5: 5}[rank] if mode is Im2colMode.IM2COL else 16
    count = rank - 2 if mode is Im2colMode.IM2COL else 1
    corners = st.tuples(*[st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)] * count)
    return Im2col(draw(corners), draw(corners), draw(st.integers(1, 256)), draw(st.integers(1, 1024)), mode)


@st.composite
def tensor_maps(draw: st.DrawFn) -> TensorMap:
    rank = draw(st.integers(1, 5))
    im2col = draw(im2cols(rank)) if rank >= 3 and draw(st.booleans()) else None
    return TensorMap(
        draw(st.sampled_from(ElementType)),
        draw(ADDRESSES),
        draw(st.tuples(*[SIZES] * rank)),
        draw(st.tuples(*[STRIDES] * (rank - 1))),
        () if im2col else draw(st.tuples(*[st.integers(1, 256)] * rank)),
        draw(st.tuples(*[st.integers(1, 8)] * rank)),
        draw(st.sampled_from(Interleave)),
        draw(st.sampled_from(Swizzle)),
        draw(st.sampled_from(L2Promotion)),
        draw(st.sampled_from(Fill)),
        im2col,
    )


@given(tensor_maps())
def test_decoding_undoes_encoding(tensor: TensorMap) -> None:
    data = encode(tensor)
    assert len(data) == SIZE
    assert decode(data) == tensor


@given(st.binary(min_size=SIZE, max_size=SIZE))
def test_any_bytes_decode_or_are_refused_with_a_reason(data: bytes) -> None:
    try:
        tensor = decode(data)
    except ValueError as error:
        assert "not a tensor map" in str(error) or "im2col needs" in str(error)  # noqa: PT017
    else:
        assert decode(encode(tensor)) == tensor
        problems(tensor)


PIXELS = TensorMap(
    ElementType.TF32_FTZ, 0x100, (3, 19, 3), (32, 592), (), (1, 3, 1), swizzle=Swizzle.B32,
    im2col=Im2col((-3,), (-1,), 8, 42),
)  # fmt: skip
VOLUMES = TensorMap(
    ElementType.U32, 0x100, (14, 3, 4, 4, 3), (64, 240, 912, 3664), (), (1, 3, 3, 2, 1), swizzle=Swizzle.B32,
    im2col=Im2col((-1, -3, -2), (-3, -4, 2), 8, 69),
)  # fmt: skip
BOXES = TensorMap(ElementType.F32, 0x100, (24, 2, 6), (144, 240), (12, 13, 10), (6, 1, 2), swizzle=Swizzle.B64)


@pytest.mark.parametrize(
    ("tensor", "first", "words"),
    [
        (PIXELS, 14, [0xFFFFFFFD, 0x29, 0x540, 0, 0x100]), (VOLUMES, 14, [0x0B9D7BBF, 0x44, 0x8A0, 0, 0x100]),
        (BOXES, 16, [520, 0, 0x200]),
    ],
)  # fmt: skip
def test_a_driver_encoded_the_same_words(tensor: TensorMap, first: int, words: list[int]) -> None:
    """As the driver for CUDA 13.0 did for an H200."""
    data = encode(tensor)
    assert list(struct.unpack_from(f"<{len(words)}I", data, 4 * first)) == words
    assert decode(data) == tensor


def test_the_number_of_bytes_is_checked() -> None:
    with pytest.raises(ValueError, match="128 bytes, got 64"):
        decode(bytes(64))


@given(tensor_maps().filter(lambda t: t.im2col is None))
def test_a_tiled_map_can_be_made_by_replacing_every_field_of_zeros(tensor: TensorMap) -> None:
    data = bytes(SIZE)
    for field, value, ordinal in fields(tensor):
        data = replace_field(data, field, value, ordinal)
    expected = replace(tensor, l2_promotion=L2Promotion.NONE)
    assert decode(data) == expected
    # No instruction replaces the sums of the driver.
    assert data[:64] == encode(expected)[:64]
    assert not any(data[64:])


def fields(tensor: TensorMap) -> Iterator[tuple[str, int, int]]:
    yield "global_address", tensor.address, 0
    yield "rank", tensor.rank - 1, 0
    yield "elemtype", tensor.dtype, 0
    yield "interleave_layout", tensor.interleave, 0
    yield "swizzle_mode", tensor.swizzle.mode, 0
    yield "swizzle_atomicity", tensor.swizzle.atomicity, 0
    yield "fill_mode", tensor.fill, 0
    for i in range(tensor.rank):
        yield "box_dim", tensor.box[i], i
        yield "global_dim", tensor.dims[i], i
        yield "element_stride", tensor.element_strides[i], i
    for i, stride in enumerate(tensor.strides):
        yield "global_stride", stride, i


def test_replacing_an_unknown_field_or_ordinal_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no field `\.l2_promotion`; the fields are global_address, .*element_stride"):
        replace_field(bytes(SIZE), "l2_promotion", 1)
    with pytest.raises(ValueError, match=r"`\.global_stride` must have an ordinal from 0 to 3, got 4"):
        replace_field(bytes(SIZE), "global_stride", 16, 4)
    with pytest.raises(ValueError, match=r"`\.global_dim` must have an ordinal from 0 to 4, got -1"):
        replace_field(bytes(SIZE), "global_dim", 16, -1)
    with pytest.raises(ValueError, match=r"`\.box_dim` must have an ordinal from 0 to 4, got 5"):
        replace_field(bytes(SIZE), "box_dim", 1, 5)


CHOICES: dict[str, tuple[int, ...]] = {
    "elemtype": tuple(range(16)),
    "interleave_layout": tuple(range(3)),
    "swizzle_mode": tuple(range(5)),
    "swizzle_atomicity": tuple(range(4)),
    "fill_mode": (0, 1),
}
"""Fields whose value is an immediate."""
NUMBERS = {"global_address": 1, "rank": 1, "box_dim": 5, "global_dim": 5, "global_stride": 4, "element_stride": 5}
"""Fields whose value is a register, and how many ordinals they have."""
WIDE = ("global_address", "global_stride")
IMMEDIATES = [(field, value) for field, values in CHOICES.items() for value in values]
REGISTERS = [(field, i) for field, count in NUMBERS.items() for i in range(count)]


def entry(name: str, replace: str) -> str:
    return (
        f".visible .entry {name}(.param .u64 map, .param .u64 wide, .param .u32 narrow) {{\n"
        " .reg .b64 %rd<3>; .reg .b32 %r<2>;\n"
        " ld.param.u64 %rd1, [map]; ld.param.u64 %rd2, [wide]; ld.param.u32 %r1, [narrow];\n"
        f" tensormap.replace.tile.{replace};\n ret;\n}}\n"
    )


@pytest.fixture(scope="module")
def programs() -> dict[str, list[str]]:
    """Return the machine code of one `tensormap.replace` per entry function."""
    text = ".version 9.0\n.target sm_103a\n.address_size 64\n"
    for field, value in IMMEDIATES:
        text += entry(f"{field}_is_{value}", f"{field}.global.b1024.b32 [%rd1], {value}")
    for field, i in REGISTERS:
        ordinal = f"{i}, " if NUMBERS[field] > 1 else ""
        kind, register = ("b64", "%rd2") if field in WIDE else ("b32", "%r1")
        text += entry(f"{field}_at_{i}", f"{field}.global.b1024.{kind} [%rd1], {ordinal}{register}")
    text_of_function: dict[str, list[str]] = {}
    for instruction in disassemble(text, "sm_103a"):
        text_of_function.setdefault(instruction.function, []).append(instruction.text)
    return text_of_function


@pytest.mark.parametrize(("field", "value"), IMMEDIATES, ids=str)
def test_ptxas_writes_choices_as_we_do(field: str, value: int, programs: dict[str, list[str]], seed: int) -> None:
    for before in (bytes(SIZE), b"\xff" * SIZE, random.Random(seed).randbytes(SIZE)):
        assert execute(programs[f"{field}_is_{value}"], before, {}) == replace_field(before, field, value)


@pytest.mark.parametrize(("field", "ordinal"), REGISTERS, ids=str)
def test_ptxas_writes_numbers_as_we_do(field: str, ordinal: int, programs: dict[str, list[str]], seed: int) -> None:
    source = random.Random(seed)
    for bits in (8, 32) * 4:
        before = source.randbytes(SIZE)
        value = source.getrandbits(2 * bits) << 4 if field in WIDE else source.getrandbits(bits) + 1
        value &= (1 << 64 if field in WIDE else 1 << 32) - 1
        parameters = {8: value, 12: value >> 32, 16: value}
        assert execute(programs[f"{field}_at_{ordinal}"], before, parameters) == replace_field(
            before, field, value, ordinal
        )
