"""Instruction descriptors: positions by the manual's three tables, types of each kind, shapes that exist."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.isa.descriptors import KINDS, InstructionDescriptor
from pyptx.types import bf16, e2m1, e2m3, e3m2, e4m3, e5m2, f16, f32, from_name, s8, s32, tf32, u8, ue4m3, ue8m0

F16 = InstructionDescriptor("f16", 128, 256, bf16, bf16, f32)
F16_BITS = 1 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 8 << 24
BITS = [
    (F16, F16_BITS),
    (InstructionDescriptor("f16", 64, 8, f16, bf16, f16), 1 << 10 | 1 << 17 | 4 << 24),
    (InstructionDescriptor("tf32", 64, 8, tf32, tf32, f32), 1 << 4 | 2 << 7 | 2 << 10 | 1 << 17 | 4 << 24),
    (InstructionDescriptor("f8f6f4", 64, 8, e5m2, e2m1, f16), 1 << 7 | 5 << 10 | 1 << 17 | 4 << 24),
    (InstructionDescriptor("f8f6f4", 64, 8, e2m3, e3m2, f32), 1 << 4 | 3 << 7 | 4 << 10 | 1 << 17 | 4 << 24),
    (InstructionDescriptor("i8", 64, 8, s8, u8, s32, saturate=True), 1 << 3 | 2 << 4 | 1 << 7 | 1 << 17 | 4 << 24),
    (replace(F16, negate_a=True), F16_BITS | 1 << 13),
    (replace(F16, negate_b=True), F16_BITS | 1 << 14),
    (replace(F16, transpose_a=True), F16_BITS | 1 << 15),
    (replace(F16, transpose_b=True), F16_BITS | 1 << 16),
    (replace(F16, sparse=True, sparsity_selector=3), F16_BITS | 7),
    (replace(F16, m=32, n=64, max_shift=32), 1 << 4 | 1 << 7 | 1 << 10 | 8 << 17 | 2 << 24 | 3 << 30),
    (
        InstructionDescriptor("mxf8f6f4", 256, 16, e4m3, e2m1, f32, sparse=True, a_scale_id=3, b_scale_id=2),
        1 << 2 | 2 << 4 | 5 << 10 | 2 << 17 | 1 << 23 | 2 << 27 | 3 << 29,
    ),
    (InstructionDescriptor("mxf4", 128, 8, e2m1, e2m1, f32, k96=True),
     1 << 7 | 1 << 10 | 1 << 17 | 1 << 23 | 1 << 27 | 1 << 31),
    (InstructionDescriptor("mxf4nvf4", 128, 8, e2m1, e2m1, f32), 1 << 7 | 1 << 10 | 1 << 17 | 1 << 27),
    (
        InstructionDescriptor("mxf4nvf4", 128, 8, e2m1, e2m1, f32, scale=ue8m0, a_scale_id=2),
        1 << 7 | 1 << 10 | 1 << 17 | 1 << 23 | 1 << 27 | 2 << 29,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("descriptor", "bits"), BITS, ids=lambda x: f"{x:#x}" if isinstance(x, int) else x.kind)
def test_fields_stand_where_the_manual_puts_them(descriptor: InstructionDescriptor, bits: int) -> None:
    assert f"{descriptor.encode():032b}" == f"{bits:032b}"


TYPES = {
    "f16": ("f16 bf16", "f16 f32", ""), "tf32": ("tf32", "f32", ""), "i8": ("u8 s8", "s32", ""),
    "f8f6f4": ("e4m3 e5m2 e2m3 e3m2 e2m1", "f16 f32", ""), "mxf8f6f4": ("e4m3 e5m2 e2m3 e3m2 e2m1", "f32", "ue8m0"),
    "mxf4": ("e2m1", "f32", "ue8m0"), "mxf4nvf4": ("e2m1", "f32", "ue8m0 ue4m3"),
}  # fmt: skip


@st.composite
def descriptors(draw: st.DrawFn) -> InstructionDescriptor:
    kind = draw(st.sampled_from(KINDS))
    inputs, outputs, scales = ([from_name(name) for name in names.split()] for names in TYPES[kind])
    flag, plain = st.booleans(), not scales
    return InstructionDescriptor(
        kind,
        draw(st.integers(1, 16)) * 16 if plain else draw(st.integers(1, 3)) * 128,
        draw(st.integers(1, 32)) * 8,
        draw(st.sampled_from(inputs)),
        draw(st.sampled_from(inputs)),
        draw(st.sampled_from(outputs)),
        *(draw(flag) for _ in range(5)),
        sparsity_selector=draw(st.integers(0, 3)) if plain else 0,
        saturate=plain and draw(flag),
        max_shift=draw(st.sampled_from([0, 8, 16, 32])) if plain else 0,
        scale=None if plain else draw(st.sampled_from(scales)),
        a_scale_id=0 if plain else draw(st.integers(0, 3)),
        b_scale_id=0 if plain else draw(st.integers(0, 3)),
        k96=kind in ("mxf4", "mxf4nvf4") and draw(flag),
    )


@given(descriptors())
def test_decoding_undoes_encoding(descriptor: InstructionDescriptor) -> None:
    bits = descriptor.encode()
    assert 0 <= bits < 1 << 32
    copy = InstructionDescriptor.decode(descriptor.kind, bits)
    assert copy == descriptor
    assert repr(copy) == repr(descriptor), "a flag is decoded as a number"


@given(st.sampled_from(KINDS), st.integers(0, (1 << 32) - 1))
def test_any_bits_decode_to_what_encodes_to_them_or_are_refused(kind: str, bits: int) -> None:
    try:
        descriptor = InstructionDescriptor.decode(kind, bits)
    except ValueError:
        return
    assert descriptor.encode() == bits
    descriptor.problems()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": e4m3}, "A of kind f16 must be f16 or bf16, not e4m3"),
        ({"b": tf32}, "B of kind f16"),
        ({"d": s32}, "D of kind f16 must be f16 or f32, not s32"),
        ({"kind": "f64"}, "no kind 'f64'; the kinds are f16, tf32"),
        ({"n": 12}, "for kind f16, M must be a multiple of 16 and N a multiple of 8, got 128 and 12"),
        ({"m": 100}, "M must be a multiple of 16"),
        ({"n": 512}, "`n` has 6 bits; 64 does not fit"),
        ({"max_shift": 4}, "0, 8, 16 or 32 columns, got 4"),
        ({"sparsity_selector": 4}, "`sparsity_selector` has 2 bits"),
    ],
)
def test_what_the_bits_cannot_hold_is_an_error(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(F16, **change).encode()  # type: ignore[arg-type]


def test_scale_factors_have_a_type() -> None:
    with pytest.raises(ValueError, match="scale factor of kind mxf4 must be ue8m0, not ue4m3"):
        InstructionDescriptor("mxf4", 128, 8, e2m1, e2m1, f32, scale=ue4m3).encode()


@pytest.mark.parametrize(
    ("kind", "bits"), [("f16", 1 << 6), ("f16", 1 << 23), ("i8", 1 << 29), ("mxf4", 1 << 12), ("mxf8f6f4", 1 << 31)]
)
def test_reserved_bits_are_zero(kind: str, bits: int) -> None:
    with pytest.raises(ValueError, match=f"kind {kind} must have 0 in bits {bits:#x}"):
        InstructionDescriptor.decode(kind, bits)


KS = [("f16", 16), ("tf32", 8), ("f8f6f4", 32), ("i8", 32), ("mxf8f6f4", 32), ("mxf4", 64), ("mxf4nvf4", 64)]


@pytest.mark.parametrize(("kind", "k"), KS)
def test_k_follows_from_kind_and_sparsity(kind: str, k: int) -> None:
    operation = InstructionDescriptor(kind, 128, 128, e2m1, e2m1, f32)
    assert (operation.k, replace(operation, sparse=True).k, replace(operation, k96=True).k) == (k, 2 * k, 96)


SHAPES = [
    ("f16", 1, False, False, {64, 128}, set(range(8, 257, 8))),
    ("f16", 2, False, True, {128, 256}, set(range(16, 257, 16))),
    ("tf32", 1, True, False, {32, 64, 128}, {64, 128, 256}),
    ("f8f6f4", 1, True, True, {32, 64, 128}, {64, 128}),
    (
        "i8",
        1,
        False,
        False,
        {64, 128},
        {8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256},
    ),
    ("i8", 2, False, False, {128, 256}, set(range(32, 257, 32))),
    ("mxf8f6f4", 1, False, False, {128}, set(range(8, 257, 8))),
    ("mxf8f6f4", 2, False, False, {128, 256}, set(range(16, 257, 16))),
    ("mxf4", 2, False, True, {256}, set(range(16, 257, 16))),
    ("mxf4nvf4", 1, True, False, set[int](), set[int]()),
    ("f16", 2, True, False, set[int](), set[int]()),
]


@pytest.mark.parametrize(("kind", "group", "ws", "sparse", "rows", "columns"), SHAPES)
def test_shapes_are_the_manuals(
    kind: str, group: int, ws: bool, sparse: bool, rows: set[int], columns: set[int]
) -> None:
    name = {"i8": "s8", "tf32": "tf32", "f16": "f16"}.get(kind, "e2m1")
    a, d = from_name(name), s32 if kind == "i8" else f32
    shapes = {
        (m, n)
        for m in (32, 64, 96, 128, 256)
        for n in range(8, 265, 8)
        if not InstructionDescriptor(kind, m, n, a, a, d, sparse=sparse).problems(cta_group=group, ws=ws)
    }
    assert shapes == {(m, n) for m in rows for n in columns}


OPTIONS = [
    (InstructionDescriptor("i8", 128, 32, s8, s8, s32, negate_a=True), "kind i8 cannot negate integers"),
    (
        InstructionDescriptor("mxf4", 128, 32, e2m1, e2m1, f32, transpose_a=True),
        "A of type e2m1 cannot be transposed in kind mxf4",
    ),
    (InstructionDescriptor("f8f6f4", 128, 32, e4m3, e2m3, f32, transpose_b=True), "B of type e2m3"),
    (InstructionDescriptor("f8f6f4", 128, 24, e4m3, e4m3, f32, transpose_b=True), "N in steps of 16"),
    (replace(F16, saturate=True), "only kind i8 saturates"),
    (replace(F16, sparsity_selector=1), "needs a sparse A"),
    (replace(F16, max_shift=8), "the maximum shift needs `.ws`"),
    (InstructionDescriptor("mxf4", 128, 32, e2m1, e2m1, f32, a_scale_id=1), "0 or 2"),
    (InstructionDescriptor("mxf4", 128, 32, e2m1, e2m1, f32, k96=True, sparse=True), "K = 96 needs dense"),
]


@pytest.mark.parametrize(("operation", "message"), OPTIONS, ids=[m for _, m in OPTIONS])
def test_options_that_do_not_go_together(operation: InstructionDescriptor, message: str) -> None:
    problems = operation.problems()
    assert len(problems) == 1
    assert message in problems[0]


@pytest.mark.parametrize(("n", "group"), [(32, 1), (32, 2), (48, 1), (48, 2), (64, 2)])
def test_n_of_a_transposed_b_is_a_multiple_of_16_per_cta(n: int, group: int) -> None:
    operation = InstructionDescriptor("f8f6f4", 64 * 2 * group, n, e4m3, e4m3, f32, transpose_b=True)
    assert len(operation.problems(cta_group=group)) == (n % (16 * group) != 0)


def test_a_plain_operation_has_no_problems() -> None:
    assert F16.problems() == []
    assert replace(F16, m=256).problems(cta_group=2) == []
