"""Keywords as the text that operators take: what is written is what is read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.runtime.arrays import get_numpy_dtype
from pyptx.runtime.torch_options import decode, encode
from pyptx.types import bf16, e4m3

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=4,
)


@given(values)
def test_values_survive(value: Any) -> None:
    read = decode(f"x={encode(value)}")["x"]
    assert (repr(read), type(read)) == (repr(value), type(value))


def test_the_text_reads_like_a_call() -> None:
    text = ", ".join(f"{name}={encode(value)}" for name, value in {"n": -2, "eps": 1e-5, "kinds": [bf16, e4m3]}.items())
    assert text == "n=-2, eps=1e-05, kinds=[bf16, e4m3]"
    assert decode(text) == {"n": -2, "eps": 1e-5, "kinds": [bf16, e4m3]}


def test_numbers_that_are_no_numbers_survive() -> None:
    assert math.isnan(decode(f"x={encode(math.nan)}")["x"])
    assert decode(f"x={encode(-math.inf)}")["x"] == -math.inf


def test_objects_are_the_same_ones() -> None:
    first, second = object(), object()
    text = f"x={encode(first)}, y={encode(second)}, z={encode(first)}"
    assert [*decode(text).values()] == [first, second, first]


def test_memory_is_referred_to_by_position() -> None:
    assert decode("p=memory[1], q=memory[0]", ["a", "b"]) == {"p": "b", "q": "a"}


NUMBERS: list[Any] = [
    np.float32(1.5), np.float64("nan"), np.int8(-3), np.bool_(1), *np.ones(1, get_numpy_dtype("bfloat16")),
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_of_numpy_keeps_its_type(number: Any) -> None:
    text = encode(number)
    assert "object" not in text  # which another process would not know
    read = decode(f"x={text}")["x"]
    assert (type(read), read.tobytes()) == (type(number), number.tobytes())


@pytest.mark.parametrize("text", [
    "x=f(1)", "x=1 + 1", "x=a.b", "x=object", "x=object(1)", "x=y[0]", "x=[y for y in z]", "x", "x=1)(y=2",
])  # fmt: skip
def test_nothing_else_is_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"not an option|not options|no scalar type"):
        decode(text)
