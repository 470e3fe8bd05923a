"""The block-scaled product in its other format, and the shapes that it refuses."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from examples.parts.example import HALF, Run, find_example

EXAMPLE = find_example("rtx/block_scaled_gemm")


def test_the_product_of_nvfp4_is_right() -> None:
    form = EXAMPLE.module.NVFP4
    variant = replace(EXAMPLE, make=partial(EXAMPLE.make, form=form), draw=partial(EXAMPLE.module.draw, form=form))
    outcome = variant.simulate(Run({"m": 148, "n": 132, "k": 160, "words": 8}, HALF, 1e-3))
    outcome.verify()
    assert outcome.report.hazards == []


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"m": 130, "n": 128, "k": 128, "words": 1}, "multiples of 4, rows of 32 bytes; found 130, 128, 128 bytes"),
        ({"m": 128, "n": 128, "k": 256, "words": 1}, "rows of 256 bytes need 2 words of scales; found 1"),
    ],
)
def test_a_shape_that_the_format_does_not_cover_is_refused(shape: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EXAMPLE.make().grid(**shape)


@pytest.mark.parametrize(
    ("name", "k", "message"),
    [
        ("block_scaled_gemm", 112, "a multiple of 32 bytes, with 512 bytes of factors per 128; found 112 bytes"),
        ("nvfp4_gemm", 12, "a multiple of 8 bytes, with 512 bytes of factors per 32; found 12 bytes"),
    ],
)
def test_rows_that_end_within_a_group_are_refused(name: str, k: int, message: str) -> None:
    kernel = find_example(f"blackwell/{name}").make()
    with pytest.raises(ValueError, match=message):
        kernel.grid(m=256, n=192, k=k, a_blocks=2, b_blocks=2, words=128)
