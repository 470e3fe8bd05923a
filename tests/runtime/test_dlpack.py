"""Capsules: what they say of each dtype, and how it is read again."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from pyptx.runtime import dlpack
from pyptx.runtime.dlpack import CPU, Content, describe_dtype, make_capsule, read

# The codes of `DLDataTypeCode` in dlpack.h 1.1.
DTYPES = {
    "int8": (0, 8), "int64": (0, 64), "uint16": (1, 16), "float16": (2, 16), "float64": (2, 64), "bfloat16": (4, 16),
    "complex64": (5, 64), "bool": (6, 8), "float8_e3m4": (7, 8), "float8_e4m3": (8, 8), "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8), "float8_e4m3fnuz": (11, 8), "float8_e5m2": (12, 8), "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8), "float6_e2m3fn": (15, 6), "float6_e3m2fn": (16, 6), "float4_e2m1fn": (17, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("versioned", [False, True])
def test_a_dtype_is_read_as_it_was_written(name: str, versioned: bool) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    assert describe_dtype(dtype) == (*DTYPES[name], 1)
    capsule = make_capsule(None, 4096, (2, 3), dtype, (CPU, 0), versioned=versioned)
    assert read(capsule) == Content(4096, (2, 3), name, True, (CPU, 0), False)


@pytest.mark.parametrize(
    ("code", "bits", "lanes", "expectation"),
    [
        (17, 4, 2, "uint8"),
        (17, 4, 4, "elements of type 17 with 4 bits in 4 lanes"),
        (2, 32, 4, "elements of type 2 with 32 bits in 4 lanes"),
        (4, 16, 2, "elements of type 4 with 16 bits in 2 lanes"),
        (3, 64, 1, "elements of type 3 with 64 bits in 1 lanes"),
    ],
)
def test_elements_of_several_lanes_are_pairs_of_four_bits(
    code: int, bits: int, lanes: int, expectation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe(dtype: object) -> tuple[int, int, int]:
        return code, bits, lanes

    monkeypatch.setattr(dlpack, "describe_dtype", describe)
    capsule = make_capsule(None, 4096, (8,), np.dtype("u1"), (CPU, 0), versioned=True)
    if lanes == 2 and bits == 4:
        assert read(capsule).dtype == expectation
    else:
        with pytest.raises(ValueError, match=f"^{expectation}$"):
            read(capsule)
