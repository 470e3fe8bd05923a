"""`ptx.mma.sync`: dense, sparse and block-scaled."""

from __future__ import annotations

from typing import Any

import pytest

from pyptx import ptx, reg
from pyptx.types import (
    b1,
    b32,
    bf16,
    bf16x2,
    e2m1,
    e3m2,
    e4m3,
    f16,
    f16x2,
    f32,
    f64,
    s8,
    s32,
    tf32,
    u8,
    u16,
    ue8m0,
)
from tests.dsl.tracing import code
from tests.ptx.mistakes import assert_mistake

REGISTERS = {"f32": f32, "f16": f16x2, "bf16": bf16x2, "tf32": tf32, "s32": s32, "f64": f64}
SIZES = {"d": 4, "a": 4, "b": 2, "c": 4}


def product(types: tuple[Any, ...], shape: tuple[int, int, int], sizes: dict[str, int], **options: Any) -> None:
    """Multiply once, with fragments of these sizes."""
    kinds = [REGISTERS.get(dtype.name, b32) for dtype in types]
    arrays = [reg.array(kind, {**SIZES, **sizes}[name], name=name) for name, kind in zip("dabc", kinds, strict=True)]
    types_by_name = dict(zip(("dtype_d", "dtype_a", "dtype_b", "dtype_c"), types, strict=True))
    instances = {name: make() if callable(make) else make for name, make in options.items()}
    fragments = dict(zip("dabc", arrays, strict=True))
    arguments: dict[str, Any] = {**types_by_name, **fragments, **instances}
    ptx.mma.sync(shape=shape, **arguments)


F32_BF16 = (f32, bf16, bf16, f32)
MX = (f32, e4m3, e4m3, f32)
FP4 = (f32, e2m1, e2m1, f32)
SMALL = {"d": 2, "a": 1, "b": 1, "c": 2}


def scale() -> Any:
    return reg.alloc(b32)


CASES: list[tuple[str, str, tuple[Any, ...]]] = [
    ("sm_80", "m16n8k16.row.col.f32.bf16.bf16.f32 D, A, B, C", (F32_BF16, (16, 8, 16), {})),
    ("sm_80", "m16n8k8.row.col.f32.tf32.tf32.f32 D, A, B, C", ((f32, tf32, tf32, f32), (16, 8, 8), {})),
    ("sm_75", "m8n8k4.col.row.f16.f16.f16.f16 D, A, B, C",
     ((f16, f16, f16, f16), (8, 8, 4), {"a": 2}, {"a_layout": "col", "b_layout": "row"})),
    ("sm_80", "m8n8k4.row.col.rz.f64.f64.f64.f64 D, A, B, C", ((f64,) * 4, (8, 8, 4), SMALL, {"rounding": "rz"})),
    ("sm_80", "m16n8k32.row.col.satfinite.s32.s8.u8.s32 D, A, B, C",
     ((s32, s8, u8, s32), (16, 8, 32), {}, {"satfinite": True})),
    ("sm_80", "m8n8k128.row.col.s32.b1.b1.s32.xor.popc D, A, B, C",
     ((s32, b1, b1, s32), (8, 8, 128), SMALL, {"bit_op": "xor"})),
    ("sm_80", "m8n8k128.row.col.s32.b1.b1.s32.and.popc D, A, B, C", ((s32, b1, b1, s32), (8, 8, 128), SMALL)),
    ("sm_120a", "m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e4m3.f32 D, A, B, C",
     ((f32, e3m2, e4m3, f32), (16, 8, 32), {})),
    ("sm_89", "m16n8k32.row.col.f32.e4m3.e4m3.f32 D, A, B, C", (MX, (16, 8, 32), {})),
    ("sm_80", "sp::ordered_metadata.m16n8k32.row.col.f32.bf16.bf16.f32 D, A, B, C, %r0, 1",
     (F32_BF16, (16, 8, 32), {"b": 4}, {"sparse_metadata": scale, "sparsity_selector": 1})),
    ("sm_80", "sp.m16n8k32.row.col.f32.bf16.bf16.f32 D, A, B, C, %r0, 0",
     (F32_BF16, (16, 8, 32), {"b": 4}, {"sparse_metadata": scale, "ordered_metadata": False})),
    ("sm_120a",
     "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0 D, A, B, C, %r0, {2, 1}, %r1, {0, 0}",
     (MX, (16, 8, 32), {}, {"kind": "mxf8f6f4", "scale_a": scale, "scale_b": scale, "scale_a_id": (2, 1)})),
    ("sm_120a",
     "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
     " D, A, B, C, %r0, {0, 0}, %r1, {0, 0}",
     (FP4, (16, 8, 64), {}, {"kind": "mxf4nvf4", "scale_a": scale, "scale_b": scale})),
    ("sm_120a",
     "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
     " D, A, B, C, %r0, {0, %rs0}, %r1, {0, 0}",
     (FP4, (16, 8, 64), {}, {"kind": "kind::mxf4nvf4", "scale_vec": 2, "scale_a": scale, "scale_b": scale,
                             "scale_a_id": lambda: (0, reg.alloc(u16))})),
    ("sm_120a",
     "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 D, A, B, C, %r0, {0, 0}, %r1, {0, 0}",
     (FP4, (16, 8, 64), {}, {"kind": "mxf4", "scale_a": scale, "scale_b": scale, "scale_dtype": ue8m0})),
]  # fmt: skip


@pytest.mark.parametrize(("arch", "expected", "case"), CASES, ids=[expected for _, expected, _ in CASES])
def test_a_product_is_exactly_one_instruction(arch: str, expected: str, case: tuple[Any, ...]) -> None:
    types, shape, sizes, *options = case

    def body() -> None:
        product(types, shape, sizes, **(options[0] if options else {}))

    words, operands = expected.split(" ", 1)
    sparse, words = words.split(".m16", 1) if words.startswith("sp") else ("", words)
    head, words = (f"mma.{sparse}.", f"m16{words}") if sparse else ("mma.", words)
    for name in "DABC":
        count = {**SIZES, **sizes}[name.lower()]
        vector = ", ".join(f"%{name.lower()}{i}" for i in range(count))
        operands = operands.replace(name, f"{{{vector}}}", 1)
    assert code(body, arch=arch) == [f"{head}sync.aligned.{words} {operands};"]


def test_accumulators_may_be_numbers_and_fragments_single_registers() -> None:
    def body() -> None:
        d, a = reg.array(f64, 2, name="d"), reg.alloc(f64)
        ptx.mma.sync(
            shape=(8, 8, 4), dtype_d=f64, dtype_a=f64, dtype_b=f64, dtype_c=f64, d=d, a=a, b=a, c=[0.0, 1], pred=None
        )

    assert code(body, arch="sm_80") == [
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%fd0}, {%fd0}, "
        "{0d0000000000000000, 0d3FF0000000000000};"
    ]


MISTAKES: list[tuple[str, tuple[Any, ...], str, str]] = [
    ("shape", (F32_BF16, (16, 16, 16), {}), "PTX0102", "m16n16k16"),
    ("layout", (F32_BF16, (16, 8, 16), {}, {"b_layout": "row"}), "PTX0102", "row"),
    ("fragment", (F32_BF16, (16, 8, 16), {"b": 4}), "PTX0201", "2 elements"),
    ("kind without scales", (FP4, (16, 8, 64), {}, {"kind": "mxf4"}), "PTX0818", "needs `scale_a`"),
    ("scales without kind", (MX, (16, 8, 32), {}, {"scale_a": scale, "scale_b": scale}), "PTX0818", "takes no"),
    ("one scale", (FP4, (16, 8, 64), {}, {"kind": "mxf4", "scale_a": scale}), "PTX0818", "found one"),
    ("scale_vec alone", (MX, (16, 8, 32), {}, {"scale_vec": 1}), "PTX0818", "needs scale factors"),
    ("scale_dtype alone", (MX, (16, 8, 32), {}, {"scale_dtype": ue8m0}), "PTX0818", "needs scale factors"),
    ("selector alone", (F32_BF16, (16, 8, 16), {}, {"sparsity_selector": 1}), "PTX0818", "sparse_metadata"),
    ("selector too large", (F32_BF16, (16, 8, 32), {"b": 4}, {"sparse_metadata": scale, "sparsity_selector": 2}),
     "PTX0204", "0 to 1"),
    ("no shape", (F32_BF16, 16, {}), "PTX0818", "(m, n, k)"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "rule", "words"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES])
def test_a_mistake_is_an_error_at_its_line(case: tuple[Any, ...], rule: str, words: str) -> None:
    types, shape, sizes, *options = case
    assert_mistake(lambda: product(types, shape, sizes, **(options[0] if options else {})), rule, words, arch="sm_120a")


def test_an_older_target_is_named() -> None:
    assert_mistake(lambda: product(MX, (16, 8, 32), {}), "PTX0302", "sm_89", arch="sm_80")
