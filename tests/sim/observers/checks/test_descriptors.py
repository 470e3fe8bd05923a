"""Findings for matrix descriptors with overlapping offsets, and for tensor maps whose type differs from the
product's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.isa.descriptors import Tcgen05Descriptor
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from pyptx.tensormap import ElementType, Swizzle, TensorMap
from tests.messages import raises
from tests.sim import tensor as t
from tests.sim.patterns.cases import CASES
from tests.sim.patterns.observe import run
from tests.sim.patterns.planted import patterns
from tests.sim.semantics.test_tcgen05_mma import A_AT, SPACE, descriptor, instruction

Array = np.ndarray[Any, Any]
GEMM = (Path(__file__).parents[4] / "examples" / "hopper_gemm.ptx").read_text("utf-8")
FIELDS = "0x4000004000010000"
SIZE = 128


def multiply(text: str = GEMM, a: ElementType = ElementType.BF16, **options: Any) -> list[Finding]:
    """Run the bf16 Hopper GEMM with a map of A of some type."""
    x, d = np.zeros((SIZE, SIZE), "u2"), np.zeros((SIZE, SIZE), "f4")
    maps = [
        TensorMap(dtype, 0, (SIZE * 2 // (dtype.bits // 8), SIZE), (2 * SIZE,), (64 * 2 // (dtype.bits // 8), SIZE),
                  swizzle=Swizzle.B128)
        for dtype in (a, ElementType.BF16)
    ]  # fmt: skip
    args = [sim.Tensor(x, maps[0]), sim.Tensor(x, maps[1]), d, SIZE, SIZE // 64]
    return sim.run(parse(text), grid=(1, 1), block=384, shared=131072, args=args, **options).hazards


OFFSETS: dict[str, tuple[str, str, str]] = {
    "a group of too few bytes": ("0x4000000800010000", "LBO 16 and SBO 128", "write SBO 1024 in bits 32–45 (1024 >> 4"),
    "no stride": ("0x4000000000010000", "LBO 16 and SBO 0", "write SBO 1024 in bits 32–45"),
    "swapped": ("0x4000000100400000", "they look swapped", "write LBO 16 in bits 16–29 and SBO 1024 in bits 32–45"),
}


@pytest.mark.parametrize(("fields", "messages", "remedy"), list(OFFSETS.values()), ids=list(OFFSETS))
@pytest.mark.parametrize("operand", ["A", "B"])
def test_groups_of_rows_that_overlap(fields: str, messages: str, remedy: str, operand: str) -> None:
    line = f"%d{operand.lower()}0, %{operand.lower()}_desc, "
    findings = multiply(GEMM.replace(line + FIELDS, line + fields))
    assert {finding.rule.code for finding in findings} == {"PTX0987"}
    first = findings[0]
    assert first.place.text.startswith("wgmma.mma_async")
    assert messages in first.what
    assert f"several elements of {operand} to the same bytes" in first.what
    assert remedy in first.help


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random", "adversarial"])
def test_descriptors_that_are_right_are_clean_in_every_schedule(schedule: str) -> None:
    assert multiply(schedule=schedule) == []


@pytest.mark.parametrize(
    ("fields", "overlaps"), [("0x0800100000", True), ("0x0800080000", True), ("0x1000080000", False)]
)
def test_core_matrices_without_a_swizzle(fields: str, overlaps: bool) -> None:
    text = patterns()["wgmma_shared"].text
    assert "%a, %a, 0x1000080000" in text
    edit = text.replace("%a, %a, 0x1000080000", f"%a, %a, {fields}")
    result = run(parse(edit), CASES["wgmma_shared"], "eager", 0)
    assert {finding.code for finding in result.sightings} == ({"PTX0987"} if overlaps else set())


def tensor_product(mode: Swizzle, lbo: int, sbo: int, *, across: bool = False) -> None:
    """Multiply in tensor memory, with a descriptor of A that has these offsets."""
    names = ("f16", "f16")
    image = np.zeros((1, SPACE), "u1")
    for offset in (0, A_AT):
        t.place(image[0], offset, np.zeros((128, 16), "u2"), mode)
    a = Tcgen05Descriptor(t.BOX, lbo, sbo, mode).encode()
    b = Tcgen05Descriptor(t.BOX + A_AT, *((4096, 1024) if mode.span else (128, 256)), mode).encode()
    bits = descriptor("f16", 128, 64, names, "f32", transpose_a=across)
    text = instruction("tcgen05.mma.cta_group::1.kind::f16", bits, "%x", 0)
    text = f"mov.b64 %x, {a}; mov.b64 %far, {b};\n{text}".replace("%x, 0,", "%x, %far,")
    t.run(text, image, np.zeros((1, 128, 512), "u4"), check="layouts,strict")


def test_products_in_tensor_memory() -> None:
    tensor_product(Swizzle.B128, 16, 1024)
    tensor_product(Swizzle.B64, 0, 512)
    tensor_product(Swizzle.NONE, 128, 256)
    tensor_product(Swizzle.B128, 2048, 1024, across=True)
    for mode, lbo, sbo, across, messages in (
        (Swizzle.B128, 16, 512, False, "8 lines of the 128-byte swizzle take 1024 bytes"),
        (Swizzle.B64, 512, 16, False, "they look swapped"),
        (Swizzle.B128, 1024, 1024, True, "neither is below 1024"),
        (Swizzle.NONE, 128, 128, False, "8 rows of 16 bytes take 128: LBO (bits 16–29) is the distance between two"),
    ):
        with raises(PtxError, match="PTX0987") as excinfo:
            tensor_product(mode, lbo, sbo, across=across)
        assert messages in str(excinfo.value)
        assert "several elements of A" in str(excinfo.value)


@pytest.mark.parametrize("dtype", [ElementType.F16, ElementType.F32])
def test_a_map_of_another_type_is_found_with_both_places(dtype: ElementType) -> None:
    findings = multiply(a=dtype)
    assert {finding.rule.code for finding in findings} == {"PTX0988"}
    first = findings[0]
    assert f"tensor map says {dtype.name.lower()}, the product reads 16 bytes at" in first.what
    assert "as bf16" in first.what
    assert "encode the map with type bf16, or multiply as" in first.help
    assert first.other is not None
    assert first.other.text.startswith("cp.async.bulk.tensor.2d")
    assert multiply(a=dtype, check="races") == []


@pytest.mark.parametrize("dtype", [ElementType.BF16, ElementType.U16])
def test_maps_of_the_type_or_of_plain_bits_are_clean(dtype: ElementType) -> None:
    assert multiply(a=dtype) == []
