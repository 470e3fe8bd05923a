"""`--save` and `--expect` of `pyptx sim`, through `main`."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from pyptx.cli.sim_outputs import Expectation, describe_differences
from tests.cli.conftest import HEAD, Command

Array = NDArray[Any]


def test_the_array_of_a_tensor_map_is_saved_and_compared(pyptx: Command, tmp_path: Path) -> None:
    (tmp_path / "map.ptx").write_text(f"{HEAD}.visible .entry k(.param .align 64 .b8 map[128])\n{{\n    ret;\n}}\n")
    words = ("map.ptx", "--arg", "f32[4,4]=arange map(box=4x4)")
    assert pyptx(*words, "--save", "map=o.npy").status == 0
    assert np.load("o.npy").tolist() == np.arange(16).reshape(4, 4).tolist()
    assert pyptx(*words, "--expect", "map=o.npy").status == 0
    np.save("o.npy", np.arange(15, dtype="f4"))
    done = pyptx(*words, "--expect", "map=o.npy")
    assert (done.status, done.err) == (1, "map.ptx: `map` has 16 elements, but o.npy has 15\n")


def test_an_unexpected_result_is_named_with_its_place(pyptx: Command, tmp_path: Path) -> None:
    expected = np.arange(32, dtype=np.float32) * 2
    np.save(tmp_path / "ref.npy", expected)
    words = ("scale.ptx", "--block", "32", "--arg", "f32[32]=arange", "--arg", "f32=2", "--expect", "data=ref.npy")
    assert pyptx(*words).status == 0
    expected[7] += 0.5
    np.save(tmp_path / "ref.npy", expected)
    result = pyptx(*words)
    assert result.status == 1
    assert "differs from ref.npy in 1 of 32 elements, first [7]: found 14.0, expected 14.5" in result.err
    assert pyptx(*words, "--tolerance", "0.02").status == 0


@pytest.mark.parametrize(
    ("kind", "right", "status"),
    [
        ("bf16[8]=arange", np.arange(8).astype(ml_dtypes.bfloat16), 0),
        ("bf16[8]=ones", np.arange(8).astype(ml_dtypes.bfloat16), 1),
        ("f32[4]=arange", np.arange(4, dtype="u4"), 0),
        ("u32[4]=1", np.ones(4, "f4"), 0),
        ("u32[4]=1", np.ones(4, "f4").view("u4"), 1),
    ],
)  # fmt: skip
def test_expected_files_hold_numbers_or_the_bits_of_small_floats(
    pyptx: Command, tmp_path: Path, kind: str, right: Array, status: int
) -> None:
    """NumPy stores a dtype that it does not know as bytes."""
    np.save(tmp_path / "ref.npy", right)
    words = ("copy.ptx", "--block", "4", "--arg", kind, "--arg", f"{kind.partition('=')[0]}=zeros")
    assert pyptx(*words, "--expect", "to=ref.npy").status == status


def test_an_array_is_saved_to_the_file_that_is_named_or_not_at_all(pyptx: Command, tmp_path: Path) -> None:
    words = ("scale.ptx", "--arg", "f32[4096]=ones", "--arg", "f32=1", "--save")
    assert pyptx(*words, "0=plain").status == 0
    assert np.load(tmp_path / "plain").shape == (4096,)
    result = pyptx(*words, "0=/dev/full")
    assert (result.status, result.err) == (2, "pyptx: /dev/full: No space left on device\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        result = pyptx(*words, "0=cut.npy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (result.status, result.err) == (2, "pyptx: cut.npy: File too large\n")
    assert not (tmp_path / "cut.npy").exists()


@pytest.mark.parametrize(
    ("actual", "right", "tolerance", "difference"),
    [
        ([102.0, -1.0], [100.0, 0.0], 0.01, ""),
        ([102.25, 0.0], [100.0, 0.0], 0.01, "1 of 2 elements, first [0]: found 102.25, expected 100.0"),
        ([100.0, 1.25], [100.0, 0.0], 0.01, "1 of 2 elements, first [1]: found 1.25, expected 0.0"),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0, ""),
        ([np.nan, 1.0], [0.0, 1.0], 0.01, "1 of 2 elements, first [0]: found nan, expected 0.0"),
        ([np.nan, 1.0], [np.nan, 1.0078125], 0.01, ""),
        ([np.inf, 1.0078125], [np.inf, 1.0], 0.01, ""),
        ([np.inf, 500.0], [np.inf, 1.0], 0.01, "1 of 2 elements, first [1]: found 500.0, expected 1.0"),
        ([np.inf, 1.0], [-np.inf, 1.0], 0.01, "1 of 2 elements, first [0]: found inf, expected -inf"),
        ([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0, 0.0, 0.0], 0.0,
         "2 of 4 elements, first [1, 0]: found 3.0, expected 0.0"),
    ],
)  # fmt: skip
def test_a_tolerance_is_relative_to_each_number_and_the_largest_finite_one(
    actual: list[Any], right: list[float], tolerance: float, difference: str
) -> None:
    item = Expectation(0, "out", Path("ref.npy"), np.array(right, "f4"))
    differences = describe_differences(item, np.array(actual, "f4"), tolerance)
    assert differences == ([f"`out` differs from ref.npy in {difference}"] if difference else [])
