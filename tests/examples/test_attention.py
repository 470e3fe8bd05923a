"""The attention kernels overlap exponentials with products in machine code, where ptxas may move waits."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from examples.parts.example import Example, find_example


@pytest.mark.parametrize(
    ("name", "products", "exponentials"),
    [("attention_overlap", 8 + 12, 96), ("attention_backward_dq", 8 + 8, 32), ("attention_backward_dkv", 8 + 8, 32)],
)
def test_most_exponentials_run_between_the_waits_for_the_two_products_of_a_block(
    name: str, products: int, exponentials: int
) -> None:
    example = find_example(f"hopper/{name}")
    text = example.make().sass(**example.large)
    parts = [Counter(re.findall(r"HGMMA|MUFU\.EX2", part)) for part in text.split("WARPGROUP.DEPBAR")]
    (block,) = (i for i, part in enumerate(parts) if part["HGMMA"] == products)
    assert parts[block + 1]["MUFU.EX2"] > exponentials // 2


def with_head(example: Example, dimension: int) -> dict[str, Any]:
    return {**example.large, "d": dimension}


@pytest.mark.parametrize("name", ["attention", "attention_overlap", "decode_attention"])
def test_a_head_dimension_without_tiles_is_refused(name: str) -> None:
    example = find_example(f"hopper/{name}")
    with pytest.raises(ValueError, match="the head dimension must be 64, 128 or 256, found 96"):
        example.make().ptx(**with_head(example, 96))


@pytest.mark.parametrize("name", ["attention_backward_dq", "attention_backward_dkv"])
def test_the_backward_pass_refuses_a_head_dimension_that_does_not_fit(name: str) -> None:
    example = find_example(f"hopper/{name}")
    with pytest.raises(ValueError, match="the head dimension must be 64 or 128, found 256"):
        example.make().ptx(**with_head(example, 256))


def test_a_fourth_of_the_weights_of_a_small_head_are_polynomials() -> None:
    example = find_example("hopper/attention_overlap")
    text = example.make().ptx(**with_head(example, 64))
    factors, weights, copies = 2, 192 // 2, 2
    assert text.count("ex2.approx") == copies * (factors + weights * 3 // 4)
